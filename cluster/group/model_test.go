package group_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/ostrodb/ostro/cluster/group"
)

// model is what the replicas' memories must be.
type model struct {
	*scene
	mems  [][]byte
	waits []func(*rapid.T) // for the ends of operations in flight
}

const modelBytes = 256 // Few, so that operations meet.

func TestRandomOperationsMatchAModel(t *testing.T) {
	everywhere(t, func(t *testing.T, provider string, mode group.Mode) {
		sizes := []int{1, 2, 3, 7}
		if testing.Short() {
			sizes = sizes[2:3]
		}
		for _, n := range sizes {
			t.Run(fmt.Sprint(n), func(t *testing.T) {
				spec := group.Spec{Mode: mode, Window: 7, Slots: 9, MaxWrite: 64}
				m := &model{scene: newScene(t, provider, spec, n)}
				for range n {
					m.mems = append(m.mems, make([]byte, memoryBytes))
				}
				rapid.Check(t, m.run)
			})
		}
	})
}

// run has a list of operations in flight and then compares all memories.
func (m *model) run(t *rapid.T) {
	m.waits = m.waits[:0]
	for range rapid.IntRange(1, 25).Draw(t, "operations") {
		var flags []group.Flag
		if rapid.Bool().Draw(t, "durable") {
			flags = append(flags, group.Durable)
		}
		rapid.SampledFrom([]func(*rapid.T, []group.Flag){m.write, m.cas, m.copy, m.flush}).Draw(t, "kind")(t, flags)
	}
	for _, wait := range m.waits {
		wait(t)
	}
	for i, want := range m.mems {
		if got := m.scene.mems[i].Bytes(); !bytes.Equal(got, want) {
			t.Fatalf("replica %d has %x, want %x", i, got[:modelBytes], want[:modelBytes])
		}
	}
}

func (m *model) started(t *rapid.T, p *group.Pending, err error, found [group.MaxReplicas]uint64) {
	if err != nil {
		t.Fatal(err)
	}
	m.waits = append(m.waits, func(t *rapid.T) {
		if r, err := p.Wait(m.ctx()); err != nil || r.Found != found {
			t.Fatalf("found %v, %v, want %v", r.Found, err, found)
		}
	})
}

func (m *model) write(t *rapid.T, flags []group.Flag) {
	data := rapid.SliceOfN(rapid.Byte(), 1, 64).Draw(t, "data")
	off := rapid.IntRange(0, modelBytes-len(data)).Draw(t, "off")
	p, err := m.g.Write(m.ctx(), uint64(off), data, flags...)
	for _, mem := range m.mems {
		copy(mem[off:], data)
	}
	m.started(t, p, err, [group.MaxReplicas]uint64{})
}

func (m *model) cas(t *rapid.T, flags []group.Flag) {
	off := 8 * rapid.IntRange(0, modelBytes/8-1).Draw(t, "word")
	execute := group.Map(rapid.IntRange(0, 1<<m.g.Replicas()-1).Draw(t, "map"))
	old, swap := rapid.Uint64Range(0, 3).Draw(t, "old"), rapid.Uint64Range(0, 3).Draw(t, "new")
	if rapid.Bool().Draw(t, "hit") {
		old = binary.LittleEndian.Uint64(m.mems[0][off:])
	}
	p, err := m.g.CAS(m.ctx(), uint64(off), old, swap, execute, flags...)
	var found [group.MaxReplicas]uint64
	for i, mem := range m.mems {
		if !execute.Has(i) {
			continue
		}
		found[i] = binary.LittleEndian.Uint64(mem[off:])
		if found[i] == old {
			binary.LittleEndian.PutUint64(mem[off:], swap)
		}
	}
	m.started(t, p, err, found)
}

func (m *model) copy(t *rapid.T, flags []group.Flag) {
	n := rapid.IntRange(1, modelBytes/2).Draw(t, "n") // Longer than a gWRITE may be, too.
	src := rapid.IntRange(0, modelBytes-n).Draw(t, "src")
	dst := rapid.IntRange(0, modelBytes-n).Draw(t, "dst")
	p, err := m.g.Copy(m.ctx(), uint64(dst), uint64(src), uint64(n), flags...)
	if dst < src+n && src < dst+n {
		if err == nil {
			t.Fatal("a copy onto itself was taken")
		}
		return
	}
	for _, mem := range m.mems {
		copy(mem[dst:], mem[src:src+n])
	}
	m.started(t, p, err, [group.MaxReplicas]uint64{})
}

func (m *model) flush(t *rapid.T, _ []group.Flag) {
	p, err := m.g.Flush(m.ctx(), 0, memoryBytes)
	m.started(t, p, err, [group.MaxReplicas]uint64{})
}
