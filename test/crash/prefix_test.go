package crash

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ostrodb/ostro/test/harness"
)

// lateMillis is how long after its time a key may still be seen: a server takes
// its time of day once for a round of commands.
const lateMillis = 1000

// verify looks for a prefix of the writer's operations, of at least least of
// them, that explains what the server holds. The writer goes on from there.
func (w *writer) verify(c *harness.Conn, least int64) error {
	w.rebase(least)
	var found [2]dump
	for i, db := range w.dbs {
		var err error
		if found[i], err = readAll(c, db); err != nil {
			return err
		}
	}
	m := newMatch(w.base.clone(), found, w.mix.cache)
	best, fewest := 0, m.count()
	for n := 0; ; n++ {
		if m.count() == 0 {
			w.takeUp(m.image, found, least+int64(n))
			return nil
		}
		if m.count() < fewest {
			best, fewest = n, m.count()
		}
		if n == len(w.queue) {
			break
		}
		m.step(w.queue[n].changes)
	}
	return w.explain(found, least, best)
}

// takeUp makes what was found the writer's new beginning. What has expired or
// was forgotten is gone for good.
func (w *writer) takeUp(im *image, found [2]dump, n int64) {
	for i := range im {
		for k, e := range im[i] {
			if _, ok := found[i].keys[k]; !ok && (e.expireAt != 0 || w.mix.cache) {
				delete(im[i], k)
			}
		}
	}
	w.base, w.ahead, w.based, w.queue, w.pending = im, im.clone(), n, nil, nil
	w.settled(n)
}

// match compares an image with what was found, and keeps doing so while the
// image changes.
type match struct {
	image *image
	found [2]dump
	wrong [2]map[string]struct{}
	cache bool // keys may be missing
}

func newMatch(im *image, found [2]dump, cache bool) *match {
	m := &match{image: im, found: found, cache: cache}
	m.all()
	return m
}

func (m *match) count() int { return len(m.wrong[0]) + len(m.wrong[1]) }

// all compares every key.
func (m *match) all() {
	for i := range m.image {
		m.wrong[i] = map[string]struct{}{}
		for k := range m.image[i] {
			m.look(i, k)
		}
		for k := range m.found[i].keys {
			m.look(i, k)
		}
	}
}

// look compares one key.
func (m *match) look(db int, key string) {
	e, has := m.image[db][key]
	_, there := m.found[db].keys[key]
	if m.cache && !there || m.found[db].explained(key, e, has) {
		delete(m.wrong[db], key)
	} else {
		m.wrong[db][key] = struct{}{}
	}
}

// step changes the image.
func (m *match) step(changes []change) {
	m.image.apply(changes)
	for _, c := range changes {
		if c.act == emptyDB || c.act == swapDBs {
			m.all()
			return
		}
	}
	for _, c := range changes {
		m.look(0, c.key)
	}
}

// explained tells whether the dump may be what it is for a key if the image has
// that entry, or none.
func (d *dump) explained(key string, e entry, has bool) bool {
	got, seen := d.keys[key]
	switch {
	case !has:
		return !seen
	case !seen:
		return e.expireAt != 0 && e.expireAt <= d.end
	}
	return got.entry == e && (e.expireAt == 0 || got.at <= e.expireAt+lateMillis)
}

// explain tells how far the server is from the prefix that fits it best.
func (w *writer) explain(found [2]dump, least int64, best int) error {
	m := newMatch(w.base.clone(), found, w.mix.cache)
	for _, o := range w.queue[:best] {
		m.step(o.changes)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "databases %s and %s hold no prefix of what was sent: %d operations must be there, %d were acknowledged, %d sent; after %d of them %d keys differ:",
		w.dbs[0], w.dbs[1], least, w.acknowledged.Load(), w.sent, least+int64(best), m.count())
	for i := range m.wrong {
		keys := make([]string, 0, len(m.wrong[i]))
		for k := range m.wrong[i] {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		for _, k := range keys[:min(len(keys), 12)] {
			fmt.Fprintf(&b, "\n  %s in %s: %s, want %s%s", k, w.dbs[i], found[i].tell(k), tell(m.image[i], k), w.history(found[i].keys[k], k))
		}
	}
	return errors.New(b.String())
}

func (d *dump) tell(key string) string {
	s, ok := d.keys[key]
	if !ok {
		return "absent"
	}
	return brief(s.value) + fmt.Sprintf(" until %d seen at %d", s.expireAt, s.at)
}

func tell(m map[string]entry, key string) string {
	e, ok := m[key]
	if !ok {
		return "absent"
	}
	return brief(e.value) + fmt.Sprintf(" until %d", e.expireAt)
}

// history tells which operations of late have touched a key.
func (w *writer) history(got seen, key string) string {
	var b strings.Builder
	for n, o := range w.queue {
		for _, c := range o.changes {
			if c.key == key || c.act == emptyDB || c.act == swapDBs {
				fmt.Fprintf(&b, "\n      operation %d: %s", w.based+int64(n)+1, brief(fmt.Sprint(o.commands)))
				if c.act == putKey && c.entry == got.entry {
					b.WriteString("  <- found")
				}
			}
		}
	}
	return b.String()
}
