package meta

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Book is a set of named pages in etcd beside what the cluster itself is: nothing in it decides who owns or serves
// what. It is read whole and changed page by page.
type Book struct {
	s      *Store
	prefix string

	mu      sync.Mutex
	changed chan struct{}
}

// books is where books lie: behind all other keys, which are read and watched without them.
const books = "~"

// Pages are a book's as they were read.
type Pages struct {
	Text     map[string][]byte
	modified map[string]int64
}

// Book opens a book. Follow tells it of others' changes.
func (s *Store) Book(name string) *Book {
	return &Book{s: s, prefix: s.prefix + books + name + "/", changed: make(chan struct{})}
}

// Read returns all pages as of now.
func (b *Book) Read(ctx context.Context) (Pages, error) {
	kvs, _, err := b.s.kv.all(ctx, b.prefix)
	if err != nil {
		return Pages{}, fmt.Errorf("read %s from etcd: %w", b.prefix, err)
	}
	p := Pages{map[string][]byte{}, map[string]int64{}}
	for _, kv := range kvs {
		name := string(kv.Key[len(b.prefix):])
		p.Text[name], p.modified[name] = kv.Value, kv.ModRevision
	}
	return p, nil
}

// Write makes the pages that differ from those read what they are in next, all of them or none: done is false
// if one of them was changed meanwhile.
func (b *Book) Write(ctx context.Context, read Pages, next map[string][]byte) (done bool, err error) {
	var ifs []clientv3.Cmp
	var ops []clientv3.Op
	change := func(name string, op clientv3.Op) {
		ifs = append(ifs, clientv3.Compare(clientv3.ModRevision(b.prefix+name), "=", read.modified[name]))
		ops = append(ops, op)
	}
	for name, text := range next {
		if was, ok := read.Text[name]; !ok || !bytes.Equal(was, text) {
			change(name, clientv3.OpPut(b.prefix+name, string(text)))
		}
	}
	for name := range read.Text {
		if _, ok := next[name]; !ok {
			change(name, clientv3.OpDelete(b.prefix+name))
		}
	}
	if len(ops) == 0 {
		return true, nil
	}
	done, _, err = b.s.kv.commit(ctx, ifs, ops)
	if err != nil {
		return false, fmt.Errorf("write %s to etcd: %w", b.prefix, err)
	}
	return done, nil
}

// Changed is closed when the book may have changed since the call, as far as Follow has heard.
func (b *Book) Changed() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.changed
}

// bookPause is how long Follow rests when etcd does not answer.
const bookPause = 500 * time.Millisecond

// Follow tells of changes until ctx ends. After an outage it tells of one in any case.
func (b *Book) Follow(ctx context.Context) {
	for ctx.Err() == nil {
		for answer := range b.s.client.Watch(clientv3.WithRequireLeader(ctx), b.prefix, clientv3.WithPrefix(), clientv3.WithCreatedNotify()) {
			if answer.Err() != nil {
				break
			}
			b.tell()
		}
		select {
		case <-ctx.Done():
		case <-time.After(bookPause):
		}
	}
}

func (b *Book) tell() {
	b.mu.Lock()
	defer b.mu.Unlock()
	close(b.changed)
	b.changed = make(chan struct{})
}
