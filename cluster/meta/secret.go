package meta

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
)

// Secret is what the cluster's nodes prove themselves with to each other, where no
// file names another one. It is made once. Who may read the cluster's metadata may know
// it: nodes trust etcd in everything.
func (s *Store) Secret(ctx context.Context) ([]byte, error) {
	secret := make([]byte, 32)
	rand.Read(secret)
	_, _, err := s.change(ctx, nil, func(e *edit) error {
		if kv, there := e.seen.raw[keySecret]; there {
			if err := json.Unmarshal(kv.Value, &secret); err != nil || len(secret) < 16 {
				return fmt.Errorf("the cluster's secret in etcd is damaged: delete %s and restart all nodes", e.prefix+keySecret)
			}
			return nil
		}
		return e.put(keySecret, secret)
	})
	return secret, err
}
