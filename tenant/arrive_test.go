package tenant

import (
	"sync/atomic"
	"testing"

	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/internal/await"
)

// deaf is a puller who never answers.
type deaf struct{}

func (deaf) Want([]store.ArrivingKey, func(error)) {}

var everyPlace = store.Range{First: 0, Last: ^record.Place(0)}

// pair is a source that still empties what a deleted tenant had, and a target that has done so.
type pair struct {
	t              *testing.T
	source, target *store.Store
	registry       *Registry // the target's
	db             int
	away           atomic.Bool // the target serves nothing
}

func newPair(t *testing.T) *pair {
	t.Helper()
	p := &pair{t: t}
	p.source = p.open(func() func(record.Place) bool { return func(record.Place) bool { return true } })
	p.target = p.open(func() func(record.Place) bool { return func(record.Place) bool { return !p.away.Load() } })
	book, err := OpenFile("")
	p.must(err)
	p.registry = newRegistry(t, book, p.target)
	edit(t, p.registry, create("anna", Wish{Password: text("x")}))
	p.db = p.registry.Account("anna").Tenant().First
	p.must(p.source.OpenPrivate(p.db))
	put(t, p.source, p.db, "key", "secret")
	return p
}

func (p *pair) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

func (p *pair) open(serves func() func(record.Place) bool) *store.Store {
	p.t.Helper()
	st, err := store.Open(store.Options{SegmentBytes: 64 << 10, Cluster: true, LogID: 7, Serves: serves})
	p.must(err)
	p.t.Cleanup(func() { _ = st.Close() })
	return st
}

func (p *pair) delete() {
	p.t.Helper()
	edit(p.t, p.registry, func(c *Catalog) error { return c.Delete("anna") })
}

// emptied waits until the target has nothing of the tenant's, and knows it.
func (p *pair) emptied() {
	p.t.Helper()
	await.True(p.t, "nothing of a deleted tenant is left", func() bool {
		keys, _ := p.target.Count(p.db)
		return keys == 0 && len(p.target.Private()) == 0
	})
}

// entries are all that the source has.
func (p *pair) entries() (all []byte) {
	p.t.Helper()
	ss, err := p.source.NewSession()
	p.must(err)
	defer ss.Close()
	ss.Begin()
	defer ss.End()
	ss.Pull(everyPlace, store.PullCursor{}, 1<<20, func(e []byte) { all = append(all, e...) })
	return all
}

// arrive moves all from the source to the target.
func (p *pair) arrive() {
	p.t.Helper()
	a, err := p.target.Arrive(store.ArriveOptions{Ranges: []store.Range{everyPlace}, Ceiling: p.source.Ceiling(), Puller: deaf{}})
	p.must(err)
	w, err := a.NewWorker()
	p.must(err)
	p.must(w.Import(p.t.Context(), p.entries()))
	p.came(a.Stats())
	p.must(a.Finish(p.t.Context()))
	a.End()
}

// inherit is arrive with a dead source.
func (p *pair) inherit() {
	p.t.Helper()
	p.importAll(store.ImportOptions{}, func(im *store.Importer) { p.must(im.Finish(p.t.Context())) })
}

// copyAll is arrive with late ownership.
func (p *pair) copyAll() {
	p.t.Helper()
	p.away.Store(true)
	p.importAll(store.ImportOptions{Foreign: true}, func(im *store.Importer) {
		p.must(im.Apply(p.t.Context()))
		p.away.Store(false)
		im.Abort()
	})
}

func (p *pair) importAll(o store.ImportOptions, end func(*store.Importer)) {
	p.t.Helper()
	im, err := p.target.NewImporter(o)
	p.must(err)
	w, err := im.NewWorker()
	p.must(err)
	p.must(w.Import(p.t.Context(), p.entries()))
	p.came(im.Stats())
	end(im)
}

// came checks that what the tenant had came. To count keys would be too late: the registry may look, and delete it, at any time.
func (p *pair) came(s store.ImportStats) {
	p.t.Helper()
	if s.Taken != 1 {
		p.t.Fatalf("%d records came", s.Taken)
	}
}

func TestWhatADeletedTenantHadIsDeletedWhereItArrives(t *testing.T) {
	for name, move := range map[string]func(*pair){"arrival": (*pair).arrive, "import": (*pair).inherit, "copy": (*pair).copyAll} {
		t.Run(name, func(t *testing.T) {
			p := newPair(t)
			p.delete()
			p.emptied()
			move(p)
			p.emptied()
		})
	}
}

// A node gives a range away before it has come to it, has emptied the rest, and gets it back.
func TestWhatADeletedTenantHadIsDeletedWhereItComesBack(t *testing.T) {
	p := newPair(t)
	put(t, p.target, p.db, "other", "secret")
	p.away.Store(true)
	p.delete()
	for _, later := range []string{"bert", "carl"} { // Once the second one's are empty, what the first was emptied with is done.
		edit(t, p.registry, create(later, Wish{Password: text("y")}))
		edit(t, p.registry, func(c *Catalog) error { return c.Delete(later) })
		await.True(t, "databases without records are forgotten", func() bool { return len(p.target.Private()) == 1 })
	}
	p.away.Store(false)
	im, err := p.target.NewImporter(store.ImportOptions{})
	p.must(err)
	p.must(im.Finish(t.Context()))
	p.emptied()
}
