package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"github.com/ostrodb/ostro/cluster/meta"
	"github.com/ostrodb/ostro/tenant/library"
)

// functionBook keeps a cluster's functions in etcd: a page for each tenant, and the code. What this node needs of the
// code it keeps on its own disk, too.
type functionBook struct {
	archive *meta.Archive
	vault   *library.Vault
	edits   sync.Mutex // of this node: they would only disturb each other
}

// Read implements library.Book.
func (b *functionBook) Read(ctx context.Context) ([]library.Page, int64, error) {
	leaves, revision, err := b.archive.Read(ctx)
	if err != nil {
		return nil, 0, err
	}
	pages, err := pagesOfLeaves(leaves)
	if err == nil {
		used := map[library.Sum]bool{}
		for _, p := range pages {
			for _, e := range p.Modules {
				used[e.Sum] = true
			}
		}
		b.vault.Keep(func(s library.Sum) bool { return used[s] })
	}
	return pages, revision, err
}

// Follow implements library.Book. A page that makes no sense was written by another version: what was there stays.
func (b *functionBook) Follow(ctx context.Context, take func([]library.Page, int64)) {
	b.archive.Follow(ctx, func(leaves []meta.Leaf, asOf int64) {
		if pages, err := pagesOfLeaves(leaves); err == nil {
			take(pages, asOf)
		}
	})
}

// functionTries is how often an edit is tried while other nodes edit, too.
const functionTries = 50

// Edit implements library.Book.
func (b *functionBook) Edit(ctx context.Context, o library.Owner, code map[library.Sum][]byte, edit func(*library.Page) error) (library.Page, error) {
	b.edits.Lock()
	defer b.edits.Unlock()
	brought := false
	for range functionTries {
		page, done, err := b.editOnce(ctx, o, code, edit, &brought)
		if done || err != nil {
			return page, err
		}
		select {
		case <-ctx.Done():
			return page, ctx.Err()
		case <-time.After(rand.N(20 * time.Millisecond)):
		}
	}
	return library.Page{}, errors.New("others change functions all the time: try again")
}

func (b *functionBook) editOnce(ctx context.Context, o library.Owner, code map[library.Sum][]byte, edit func(*library.Page) error, brought *bool) (next library.Page, done bool, err error) {
	leaf, err := b.archive.Page(ctx, strconv.Itoa(int(o)))
	if err != nil {
		return next, false, err
	}
	was, err := pageOfLeaf(leaf)
	if err != nil {
		return was, false, err
	}
	next = was
	if err := edit(&next); err != nil {
		return was, false, err
	}
	draft := meta.Draft{Text: textOfPage(&next), Uses: named(usesOf(was.Modules, next.Modules)), Holds: next.Bytes()}
	if len(code) > 0 && !*brought {
		blobs := map[string][]byte{}
		for sum, bytes := range code {
			blobs[sum.String()] = bytes
		}
		if err := b.archive.Bring(ctx, payerOf(o), leaf, draft, blobs); err != nil {
			return was, false, err
		}
		*brought = true // It stays so while others are faster: nobody pays twice.
	}
	leaf, done, err = b.archive.Write(ctx, leaf, draft)
	next.Revision = leaf.Revision
	return next, done, err
}

// How fast code may come to etcd. The operator has a pace of its own, so that no tenant takes it.
var (
	tenantPace   = meta.Pace{Burst: 64 << 20, Rate: 256 << 10}
	operatorPace = meta.Pace{Burst: 256 << 20, Rate: 1 << 20}
)

func payerOf(o library.Owner) meta.Payer {
	if o == library.Operator {
		return meta.Payer{Name: strconv.Itoa(int(o)), Pace: operatorPace}
	}
	return meta.Payer{Name: strconv.Itoa(int(o)), Pace: tenantPace, Shares: true}
}

// usesOf is how many entries more, or less, name each code.
func usesOf(was, next map[string]library.Entry) map[library.Sum]int {
	uses := map[library.Sum]int{}
	for _, e := range next {
		uses[e.Sum]++
	}
	for _, e := range was {
		uses[e.Sum]--
	}
	for sum, n := range uses {
		if n == 0 {
			delete(uses, sum)
		}
	}
	return uses
}

func named(uses map[library.Sum]int) map[string]int {
	out := map[string]int{}
	for sum, n := range uses {
		out[sum.String()] = n
	}
	return out
}

// Code implements library.Book.
func (b *functionBook) Code(ctx context.Context, s library.Sum) ([]byte, error) {
	if code, err := b.vault.Get(s); err == nil {
		return code, nil
	}
	code, err := b.archive.Blob(ctx, s.String())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("the code %s is not in etcd: install the module again", s)
	case err != nil:
		return nil, err
	case library.SumOf(code) != s:
		return nil, fmt.Errorf("the code %s in etcd is damaged: install the module again", s)
	}
	_ = b.vault.Put(s, code) // It is there the next time, or comes from etcd again.
	return code, nil
}

func pagesOfLeaves(leaves []meta.Leaf) (pages []library.Page, err error) {
	for _, l := range leaves {
		p, err := pageOfLeaf(l)
		if err != nil {
			return nil, err
		}
		pages = append(pages, p)
	}
	return pages, nil
}

func pageOfLeaf(l meta.Leaf) (p library.Page, err error) {
	owner, err := strconv.Atoi(l.Name)
	if err == nil && l.Text != nil {
		err = json.Unmarshal(l.Text, &p)
	}
	if err != nil {
		return p, fmt.Errorf("the page %q of the functions in etcd makes no sense: %w", l.Name, err)
	}
	p.Owner, p.Revision = library.Owner(owner), l.Revision
	return p, nil
}

// textOfPage is nil for a page that is not kept.
func textOfPage(p *library.Page) []byte {
	if len(p.Modules) == 0 {
		return nil
	}
	text, err := json.Marshal(p)
	if err != nil {
		panic(err) // It has nothing that JSON does not.
	}
	return text
}

// strayEvery is how often it is looked for code that was brought and never used, and for a past that etcd may forget.
const strayEvery = 5 * time.Minute

// openFunctions reads what is installed in the cluster.
func (l *life) openFunctions() error {
	vault, err := library.OpenVault(l.node.cfg.functionsDir())
	if err != nil {
		return err
	}
	book := &functionBook{archive: l.meta.Archive("functions"), vault: vault}
	opts := l.node.libraryOptions(book, l.tenants)
	opts.Keep = vault.Keep
	l.functions, err = library.Open(l.ctx, opts)
	if err != nil {
		return err
	}
	l.node.functions.Store(l.functions)
	l.tasks.Go(func() { l.sweepStrays(book.archive) })
	return nil
}

func (l *life) sweepStrays(a *meta.Archive) {
	for {
		if err := a.Sweep(l.ctx); err != nil && l.ctx.Err() == nil {
			l.log.Warn("code of functions that nobody uses could not be removed; it is tried again", "error", err)
		}
		if err := l.meta.Forget(l.ctx); err != nil && l.ctx.Err() == nil {
			l.log.Warn("etcd could not be had to forget its past; it is tried again", "error", err)
		}
		select {
		case <-l.ctx.Done():
			return
		case <-time.After(strayEvery):
		}
	}
}
