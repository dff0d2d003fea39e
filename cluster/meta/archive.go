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
	// spareBytes is the last part of that, for the many who have little: nobody has more in it than one of spareShares of
	// what others leave, 8 MiB at first. So a few who bring all they may do not keep the next one out.
	spareBytes  = archiveBytes / 4
	spareShares = 16
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

// Draft is what a page is to be.
type Draft struct {
	Text  []byte         // nil: it ends
	Uses  map[string]int // how many times more, or less, it uses blobs
	Holds int64          // bytes of all blobs that it uses then
}

// Write makes a page what its draft says, and changes how often it uses blobs, all or nothing: done is false if somebody
// was faster, or if a blob that is used now is not there.
func (a *Archive) Write(ctx context.Context, was Leaf, d Draft) (now Leaf, done bool, err error) {
	c := change{a: a, holds: d.Holds, first: was.Text == nil}
	key := a.prefix + archivePage + was.Name
	op := clientv3.OpPut(key, string(d.Text))
	if d.Text == nil {
		op = clientv3.OpDelete(key)
	}
	c.replace(key, modRevision(was), op)
	for blob, n := range d.Uses {
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
	return Leaf{was.Name, d.Text, revision}, done, nil
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
	holds int64 // bytes of the page's blobs, after it
	first bool  // there is no page yet
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
	total += c.grows
	if most := mostBeside(total - c.holds); c.grows > 0 && c.holds > most {
		return &FullError{Holds: c.holds, Most: most, First: c.first}
	}
	c.replace(key, revision, clientv3.OpPut(key, strconv.FormatInt(total, 10)))
	return nil
}

// mostBeside is how much a page may hold beside what others do: all up to where the spare part begins, or else a share of what
// they leave.
func mostBeside(others int64) int64 {
	left := archiveBytes - others
	return max(left-spareBytes, left/spareShares, 0)
}

// ErrArchiveFull is a blob for which there is no room.
var ErrArchiveFull = errors.New("the cluster has little room left for code")

// FullError is an ErrArchiveFull that says how much there is room for.
type FullError struct {
	Holds, Most int64 // bytes of all that the page would use, and may
	First       bool  // it uses none yet
}

func (e *FullError) Error() string {
	help := "delete some of yours, or install less"
	if e.First {
		help = "install less, or ask the operator to make room"
	}
	return fmt.Sprintf("%v (%d MiB in all, the last %d for those who have little): your modules would have %d bytes together, and can have %d: %s",
		ErrArchiveFull, archiveBytes>>20, spareBytes>>20, e.Holds, e.Most, help)
}

func (e *FullError) Unwrap() error { return ErrArchiveFull }
