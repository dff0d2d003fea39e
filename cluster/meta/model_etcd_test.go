package meta

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// etcdStep is how many bytes etcd takes in a step, as it comes, and perChange what each change and condition has beside its key and value.
const (
	etcdStep  = 3 << 19
	perChange = 32
)

// memory is as much of etcd as transactions need, for models that make very many.
type memory struct {
	revision int64
	pairs    map[string]*mvccpb.KeyValue // never changed in place
	largest  int                         // bytes of a step
}

func (m *memory) all(_ context.Context, prefix string) (kvs []*mvccpb.KeyValue, revision int64, err error) {
	for _, key := range slices.Sorted(maps.Keys(m.pairs)) {
		if strings.HasPrefix(key, prefix) {
			kvs = append(kvs, m.pairs[key])
		}
	}
	return kvs, m.revision, nil
}

func (m *memory) commit(_ context.Context, ifs []clientv3.Cmp, ops []clientv3.Op) (bool, int64, error) {
	for i := range ifs {
		if !m.holds(&ifs[i]) {
			return false, m.revision, nil
		}
	}
	touched := map[string]bool{}
	step := 0
	for i := range ifs {
		step += len(ifs[i].GetCompare().Key) + perChange
	}
	for _, op := range ops {
		step += len(op.KeyBytes()) + len(op.ValueBytes()) + perChange
	}
	if m.largest = max(m.largest, step); step > etcdStep {
		return false, 0, rpctypes.ErrRequestTooLarge
	}
	for _, op := range ops {
		key := string(op.KeyBytes())
		if touched[key] {
			return false, 0, fmt.Errorf("duplicate key %s in a transaction", key) // As etcd has it.
		}
		touched[key] = true
	}
	m.revision++
	for _, op := range ops {
		if op.IsDelete() {
			delete(m.pairs, string(op.KeyBytes()))
		} else {
			m.put(string(op.KeyBytes()), bytes.Clone(op.ValueBytes()))
		}
	}
	return true, m.revision, nil
}

func (m *memory) put(key string, value []byte) {
	created := m.revision
	if old := m.pairs[key]; old != nil {
		created = old.CreateRevision
	}
	m.pairs[key] = &mvccpb.KeyValue{Key: []byte(key), Value: value, CreateRevision: created, ModRevision: m.revision}
}

func (m *memory) holds(c *clientv3.Cmp) bool {
	var created, modified int64
	if kv := m.pairs[string(c.GetCompare().Key)]; kv != nil {
		created, modified = kv.CreateRevision, kv.ModRevision
	}
	if c.GetCompare().Target == pb.Compare_CREATE {
		return c.GetCompare().GetCreateRevision() == created
	}
	return c.GetCompare().GetModRevision() == modified
}
