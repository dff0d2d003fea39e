// Package devicetest is the suite that every device.Device passes.
package devicetest

import (
	"testing"

	"github.com/ostrodb/ostro/engine/device"
	"github.com/ostrodb/ostro/engine/record"
)

// segmentBytes is small, and no multiple of a large page.
const segmentBytes = 68 << 10

// Suite tells how to get at the devices under test.
type Suite struct {
	// Open gives an empty device.
	Open func(t *testing.T) device.Device
	// Reopen gives what a new process finds after the old one was killed. The old
	// device is not closed in any way, and holds no lock.
	Reopen func(t *testing.T, d device.Device) device.Device
}

// Run runs the whole suite.
func (s Suite) Run(t *testing.T) {
	t.Run("segments", s.segments)
	t.Run("mappings", s.mappings)
	t.Run("metadata", s.metadata)
	t.Run("streams", s.streams)
	t.Run("device", s.whole)
}

// test is one sentence of the suite, on a device of its own.
func (s Suite) test(t *testing.T, name string, f func(t *testing.T, d device.Device)) {
	t.Run(name, func(t *testing.T) { f(t, s.Open(t)) })
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func create(t *testing.T, d device.Device, id record.SegmentID) device.File {
	t.Helper()
	f, err := d.Create(id, segmentBytes)
	must(t, err)
	t.Cleanup(func() { must(t, f.Close()) })
	return f
}

func open(t *testing.T, d device.Device, id record.SegmentID) device.File {
	t.Helper()
	f, err := d.Open(id)
	must(t, err)
	t.Cleanup(func() { must(t, f.Close()) })
	return f
}

func mapped(t *testing.T, f device.File) []byte {
	t.Helper()
	m, err := f.Map()
	must(t, err)
	if int64(len(m)) != f.Size() {
		t.Fatalf("the mapping has %d bytes, the file %d", len(m), f.Size())
	}
	return m
}

func contents(t *testing.T, f device.File) []byte {
	t.Helper()
	p := make([]byte, f.Size())
	_, err := f.ReadAt(p, 0)
	must(t, err)
	return p
}
