package casestudy

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"
)

// load is what a front end is killed under: writers that commit numbered
// transactions, one after the other. Transaction n of a writer sets, at once,
//
//	w/first and w/second   to n
//	w/ring-(n mod 32)      to n, and some bytes
//
// so what is there tells which transactions were made, and whether whole.
type load struct {
	Writers int
	Bytes   int
}

const ringKeys = 32

func (l load) key(writer int, what string) []byte { return fmt.Appendf(nil, "%02d/%s", writer, what) }

func (l load) ringKey(writer int, n uint64) []byte {
	return l.key(writer, fmt.Sprintf("ring-%02d", n%ringKeys))
}

func (l load) ringValue(n uint64) []byte {
	return append(fmt.Appendf(nil, "%d:", n), bytes.Repeat([]byte{byte('a' + n%26)}, l.Bytes)...)
}

func (l load) transaction(writer int, n uint64) []Pair {
	number := strconv.AppendUint(nil, n, 10)
	return []Pair{{l.key(writer, "first"), number}, {l.ringKey(writer, n), l.ringValue(n)}, {l.key(writer, "second"), number}}
}

// inspect finds the last transaction of a writer and checks that it and those
// before are there whole, and nothing of later ones.
func (l load) inspect(db Database, writer int) (last uint64, err error) {
	first, err := db.Get(l.key(writer, "first"))
	if err != nil {
		return 0, err
	}
	second, err := db.Get(l.key(writer, "second"))
	if err != nil || !bytes.Equal(first, second) {
		return 0, fmt.Errorf("writer %d: half a transaction, %s and %s (%w)", writer, first, second, err)
	}
	if first != nil {
		if last, err = strconv.ParseUint(string(first), 10, 64); err != nil {
			return 0, fmt.Errorf("writer %d: %q is no number: %w", writer, first, err)
		}
	}
	for i := range uint64(ringKeys) {
		var want []byte
		if n := last - i; i < last {
			want = l.ringValue(n)
		}
		got, err := db.Get(l.ringKey(writer, last-i+ringKeys)) // never below zero
		if err != nil || !bytes.Equal(got, want) {
			return 0, fmt.Errorf("writer %d is at %d, and its transaction %d left %.20q, not %.20q (%w)", writer, last, last-i, got, want, err)
		}
	}
	return last, nil
}

// opened is the first word of a front end: each writer's last transaction. Then
// come acks.
type opened struct {
	Last  []uint64
	Error string
}

// ack says that a transaction was acknowledged.
type ack struct {
	Writer int
	N      uint64
}

// beFront opens the database, tells what is in it, and commits until it is killed.
func beFront(s Study, o order) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var word opened
	db, err := openFront(ctx, s, o.Place, o.Index)
	for w := 0; w < o.Load.Writers && err == nil; w++ {
		var last uint64
		last, err = o.Load.inspect(db, w)
		word.Last = append(word.Last, last)
	}
	if err != nil {
		word.Error = err.Error()
	}
	say := &speaker{out: json.NewEncoder(os.Stdout)}
	if err := say.word(word); err != nil || word.Error != "" {
		return err
	}
	var all sync.WaitGroup
	errs := make(chan error, o.Load.Writers)
	for w, last := range word.Last {
		all.Go(func() { errs <- commit(db, *o.Load, w, last+1, say) })
	}
	all.Wait()
	return <-errs
}

// commit commits transactions without end.
func commit(db Database, l load, writer int, n uint64, say *speaker) error {
	for ; ; n++ {
		if err := db.Commit(l.transaction(writer, n)...); err != nil {
			return fmt.Errorf("writer %d, transaction %d: %w", writer, n, err)
		}
		if err := say.word(ack{writer, n}); err != nil {
			return err
		}
	}
}

// speaker lets many goroutines speak to the parent, one at a time.
type speaker struct {
	mu  sync.Mutex
	out *json.Encoder
}

func (s *speaker) word(v any) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out.Encode(v)
}
