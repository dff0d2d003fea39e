package meta

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Archive is pages in etcd, each of which changes by itself, and blobs that pages use. As with a Book, nothing in it
// decides who owns or serves what. A blob lies there in pieces, once, for as long as some page uses it:
//
//	page/NAME   what somebody wrote      use/BLOB   how many use it, its size      piece/BLOB/n   its bytes      total   of all blobs
//	pace/NAME   what somebody may bring
//
// Invariant: pages, uses and the total change together. Pieces are there before a use is, and go with the last one;
// those without a use are of somebody who did not come to an end, and Sweep removes them.
type Archive struct {
	s      *Store
	prefix string
	stray  map[string]int64 // blobs without a use as the last Sweep saw them, and the revision of their first piece
}

const (
	archivePage  = "page/"
	archiveUse   = "use/"
	archivePiece = "piece/"
	archiveTotal = "total"

	// pieceBytes is well below what etcd takes in one request.
	pieceBytes = 512 << 10
	// archiveBytes is what all blobs together may have: etcd keeps everything in memory maps and a file of limited size.
	archiveBytes = 512 << 20
	// archiveChanges is how many comparisons one change may need; etcd takes 128.
	archiveChanges = 100
)

// Leaf is a page of an archive. Text is nil if there is none.
type Leaf struct {
	Name     string
	Text     []byte
	Revision int64 // of its last change, also of its end
}

// use is what is known about a blob.
type use struct {
	Users  int   `json:"users"`
	Bytes  int64 `json:"bytes"`
	Pieces int   `json:"pieces"`
}

// Archive opens an archive.
func (s *Store) Archive(name string) *Archive {
	return &Archive{s: s, prefix: s.prefix + books + name + "/"}
}

// Read returns all pages as of a revision.
func (a *Archive) Read(ctx context.Context) ([]Leaf, int64, error) {
	prefix := a.prefix + archivePage
	kvs, revision, err := a.s.kv.all(ctx, prefix)
	if err != nil {
		return nil, 0, fmt.Errorf("read %s from etcd: %w", prefix, err)
	}
	var all []Leaf
	for _, kv := range kvs {
		all = append(all, Leaf{string(kv.Key[len(prefix):]), kv.Value, kv.ModRevision})
	}
	return all, revision, nil
}

// Page returns a page as of now.
func (a *Archive) Page(ctx context.Context, name string) (Leaf, error) {
	resp, err := a.s.client.Get(ctx, a.prefix+archivePage+name)
	if err != nil {
		return Leaf{}, fmt.Errorf("read %s from etcd: %w", a.prefix+archivePage+name, err)
	}
	if len(resp.Kvs) == 0 {
		return Leaf{Name: name}, nil
	}
	return Leaf{name, resp.Kvs[0].Value, resp.Kvs[0].ModRevision}, nil
}

// Follow tells of all pages as of a revision, and of changes after that, with asOf 0, until ctx ends. After an outage it
// tells of all again.
func (a *Archive) Follow(ctx context.Context, take func(leaves []Leaf, asOf int64)) {
	for ctx.Err() == nil {
		a.followOnce(ctx, take)
		select {
		case <-ctx.Done():
		case <-time.After(bookPause):
		}
	}
}

func (a *Archive) followOnce(ctx context.Context, take func([]Leaf, int64)) {
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
	defer cancel()
	all, revision, err := a.Read(ctx)
	if err != nil {
		return
	}
	take(all, revision)
	prefix := a.prefix + archivePage
	for answer := range a.s.client.Watch(ctx, prefix, clientv3.WithPrefix(), clientv3.WithRev(revision+1)) {
		if answer.Err() != nil {
			return
		}
		var leaves []Leaf
		for _, e := range answer.Events {
			leaf := Leaf{string(e.Kv.Key[len(prefix):]), e.Kv.Value, e.Kv.ModRevision}
			if e.Type == clientv3.EventTypeDelete {
				leaf.Text = nil
			}
			leaves = append(leaves, leaf)
		}
		if len(leaves) > 0 {
			take(leaves, 0)
		}
	}
}

// ErrArchiveFull is a blob for which there is no room.
var ErrArchiveFull = errors.New("the cluster keeps no more than " + strconv.Itoa(archiveBytes>>20) + " MB of code: delete some")

// Write makes a page text, or with nil ends it, and changes how often it uses blobs, all or nothing: done is false if
// somebody was faster, or if a blob that is used now is not there.
func (a *Archive) Write(ctx context.Context, was Leaf, text []byte, uses map[string]int) (now Leaf, done bool, err error) {
	c := change{a: a}
	key := a.prefix + archivePage + was.Name
	op := clientv3.OpPut(key, string(text))
	if text == nil {
		op = clientv3.OpDelete(key)
	}
	c.replace(key, modRevision(was), op)
	for blob, n := range uses {
		if err := c.use(ctx, blob, n); err != nil {
			return was, false, err
		}
	}
	if err := c.account(ctx); err != nil {
		return was, false, err
	}
	if len(c.ifs) > archiveChanges || len(c.ops) > archiveChanges {
		return was, false, errors.New("too many modules are changed at once: change them in several steps")
	}
	done, revision, err := a.s.kv.commit(ctx, c.ifs, c.ops)
	if err != nil {
		return was, false, fmt.Errorf("write %s to etcd: %w", key, err)
	}
	return Leaf{was.Name, text, revision}, done, nil
}

// modRevision is what etcd says of a page's last change: nothing if it is gone.
func modRevision(l Leaf) int64 {
	if l.Text == nil {
		return 0
	}
	return l.Revision
}

// change is a transaction that comes to be.
type change struct {
	a     *Archive
	ifs   []clientv3.Cmp
	ops   []clientv3.Op
	grows int64 // bytes of all blobs together
}

func (c *change) replace(key string, revision int64, op clientv3.Op) {
	c.ifs = append(c.ifs, clientv3.Compare(clientv3.ModRevision(key), "=", revision))
	c.ops = append(c.ops, op)
}

// use adds n users to a blob.
func (c *change) use(ctx context.Context, blob string, n int) error {
	key := c.a.prefix + archiveUse + blob
	u, revision, err := c.a.use(ctx, blob)
	if err != nil {
		return err
	}
	if revision == 0 {
		if u, err = c.a.pieces(ctx, blob); err != nil {
			return err
		}
		for i := range u.Pieces {
			c.ifs = append(c.ifs, clientv3.Compare(clientv3.CreateRevision(c.a.piece(blob, i)), ">", 0))
		}
		c.grows += u.Bytes
	}
	if u.Users += n; u.Users <= 0 {
		c.replace(key, revision, clientv3.OpDelete(key))
		c.ops = append(c.ops, clientv3.OpDelete(c.a.prefix+archivePiece+blob+"/", clientv3.WithPrefix()))
		c.grows -= u.Bytes
		return nil
	}
	text, err := json.Marshal(u)
	if err != nil {
		return err
	}
	c.replace(key, revision, clientv3.OpPut(key, string(text)))
	return nil
}

// account keeps the total.
func (c *change) account(ctx context.Context) error {
	if c.grows == 0 {
		return nil
	}
	key := c.a.prefix + archiveTotal
	resp, err := c.a.s.client.Get(ctx, key)
	if err != nil {
		return fmt.Errorf("read %s from etcd: %w", key, err)
	}
	var total, revision int64
	if len(resp.Kvs) > 0 {
		revision = resp.Kvs[0].ModRevision
		if total, err = strconv.ParseInt(string(resp.Kvs[0].Value), 10, 64); err != nil {
			return fmt.Errorf("%s in etcd makes no sense: %w", key, err)
		}
	}
	if total += c.grows; total > archiveBytes && c.grows > 0 {
		return ErrArchiveFull
	}
	c.replace(key, revision, clientv3.OpPut(key, strconv.FormatInt(total, 10)))
	return nil
}
