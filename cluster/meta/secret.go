package meta

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
)

// Secret is what the cluster's nodes prove themselves with to each other, where no
// file names another one. It is made once, by the first node that asks. Who may read the cluster's metadata may know
// it: nodes trust etcd in everything.
func (s *Store) Secret(ctx context.Context) ([]byte, error) {
	made := make([]byte, 32)
	rand.Read(made)
	var secret []byte
	_, _, err := s.change(ctx, nil, func(e *edit) (err error) {
		if secret, err = s.SecretOf(e.seen); err != nil || secret != nil {
			return err
		}
		secret = made
		return e.put(keySecret, secret)
	})
	return secret, err
}

// SecretOf is Secret for who only reads: nil if there is none.
func (s *Store) SecretOf(seen *Snapshot) ([]byte, error) {
	kv, there := seen.raw[keySecret]
	if !there {
		return nil, nil
	}
	var secret []byte
	if err := json.Unmarshal(kv.Value, &secret); err != nil || len(secret) < 16 {
		return nil, fmt.Errorf("the cluster's secret in etcd is damaged: delete %s and restart all nodes", s.prefix+keySecret)
	}
	return secret, nil
}
