package meta

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

func (a *Archive) piece(blob string, i int) string {
	return fmt.Sprintf("%s%s%s/%04d", a.prefix, archivePiece, blob, i)
}

// use finds out what is known about a blob that pages use; revision 0: none does.
func (a *Archive) use(ctx context.Context, blob string) (u use, revision int64, err error) {
	key := a.prefix + archiveUse + blob
	resp, err := a.s.client.Get(ctx, key)
	if err != nil {
		return u, 0, fmt.Errorf("read %s from etcd: %w", key, err)
	}
	if len(resp.Kvs) == 0 {
		return u, 0, nil
	}
	if err := json.Unmarshal(resp.Kvs[0].Value, &u); err != nil {
		return u, 0, fmt.Errorf("%s in etcd makes no sense: %w", key, err)
	}
	return u, resp.Kvs[0].ModRevision, nil
}

// pieces finds out what is there of a blob that no page uses yet.
func (a *Archive) pieces(ctx context.Context, blob string) (u use, err error) {
	b, err := a.Blob(ctx, blob)
	return use{Bytes: int64(len(b)), Pieces: piecesOf(len(b))}, err
}

func piecesOf(bytes int) int { return max((bytes+pieceBytes-1)/pieceBytes, 1) }

// editBytes is about what a change writes beside blobs and its page.
const editBytes = 4 << 10

// Bring brings the blobs that a Write is going to use, which must follow, unless a limit says no: all limits are asked
// before the first piece is there. The payer pays for the page, and for its end.
func (a *Archive) Bring(ctx context.Context, p Payer, was Leaf, d Draft, blobs map[string][]byte) error {
	fresh, grows, err := a.fresh(ctx, d.Uses, blobs)
	if err != nil {
		return err
	}
	asked := change{a: a, grows: grows, holds: d.Holds, first: was.Text == nil}
	if err := asked.account(ctx); err != nil {
		return err
	}
	if err := a.s.room(ctx); err != nil {
		return err
	}
	bytes := int64(2*len(d.Text) + editBytes)
	for _, blob := range fresh {
		bytes += int64(len(blobs[blob]))
	}
	if err := a.charge(ctx, p, bytes); err != nil {
		return err
	}
	for _, blob := range fresh {
		if err := a.PutBlob(ctx, blob, blobs[blob]); err != nil {
			return err
		}
	}
	return nil
}

// fresh lists the blobs that are to be used and are not yet, and tells by how much all together grow.
func (a *Archive) fresh(ctx context.Context, uses map[string]int, blobs map[string][]byte) (fresh []string, grows int64, err error) {
	for blob, n := range uses {
		u, revision, err := a.use(ctx, blob)
		if err != nil {
			return nil, 0, err
		}
		b, brought := blobs[blob]
		switch {
		case revision == 0 && n > 0 && brought:
			fresh = append(fresh, blob)
			grows += int64(len(b))
		case revision != 0 && u.Users+n <= 0:
			grows -= u.Bytes
		}
	}
	return fresh, grows, nil
}

// PutBlob brings a blob's pieces, unless it is used already. Write must follow.
func (a *Archive) PutBlob(ctx context.Context, blob string, b []byte) error {
	if _, revision, err := a.use(ctx, blob); err != nil || revision != 0 {
		return err
	}
	for i := range piecesOf(len(b)) {
		part := b[i*pieceBytes : min((i+1)*pieceBytes, len(b))]
		if _, err := a.s.client.Put(ctx, a.piece(blob, i), string(part)); err != nil {
			return fmt.Errorf("write %s to etcd: %w", a.piece(blob, i), err)
		}
	}
	return nil
}

// Blob returns a blob. fs.ErrNotExist: it is not there.
func (a *Archive) Blob(ctx context.Context, blob string) ([]byte, error) {
	prefix := a.prefix + archivePiece + blob + "/"
	resp, err := a.s.client.Get(ctx, prefix, clientv3.WithPrefix())
	switch {
	case err != nil:
		return nil, fmt.Errorf("read %s from etcd: %w", prefix, err)
	case len(resp.Kvs) == 0:
		return nil, fmt.Errorf("%s in etcd: %w", prefix, fs.ErrNotExist)
	}
	var b []byte
	for _, kv := range resp.Kvs {
		b = append(b, kv.Value...)
	}
	return b, nil
}

// Sweep removes pieces that no page uses and that the last Sweep had seen already: leave some time in between, in which
// whoever brings a blob comes to an end. One that is removed all the same is found missing by its Write.
func (a *Archive) Sweep(ctx context.Context) error {
	prefix := a.prefix + archivePiece
	resp, err := a.s.client.Get(ctx, prefix, clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		return fmt.Errorf("read %s from etcd: %w", prefix, err)
	}
	first := map[string]int64{}
	for _, kv := range resp.Kvs {
		if blob, _, _ := strings.Cut(string(kv.Key[len(prefix):]), "/"); first[blob] == 0 {
			first[blob] = kv.ModRevision
		}
	}
	uses, err := a.s.client.Get(ctx, a.prefix+archiveUse, clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		return fmt.Errorf("read %s from etcd: %w", a.prefix+archiveUse, err)
	}
	for _, kv := range uses.Kvs {
		delete(first, string(kv.Key[len(a.prefix)+len(archiveUse):]))
	}
	stray := map[string]int64{}
	for blob, revision := range first {
		switch {
		case a.stray[blob] != revision:
			stray[blob] = revision
		default:
			unused := clientv3.Compare(clientv3.CreateRevision(a.prefix+archiveUse+blob), "=", 0)
			gone := clientv3.OpDelete(prefix+blob+"/", clientv3.WithPrefix())
			if _, _, err := a.s.kv.commit(ctx, []clientv3.Cmp{unused}, []clientv3.Op{gone}); err != nil {
				return fmt.Errorf("remove %s from etcd: %w", prefix+blob, err)
			}
		}
	}
	a.stray = stray
	return a.sweepPaces(ctx, time.Now().UnixMilli())
}
