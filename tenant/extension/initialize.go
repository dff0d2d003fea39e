package extension

import (
	crand "crypto/rand"
)

// nothing is the data of code that runs before any call: none.
type nothing struct{}

func (nothing) Get(uint32, []byte, []byte) (Value, Status) { return Value{}, NoSuchTable }

func (nothing) Scan(uint32, uint64, []byte, func(key, value []byte) bool) (uint64, Status) {
	return 0, NoSuchTable
}

func (nothing) Commit(*Changes) error { return nil }

// initialize brings a new instance to where its first call begins: by its own code the first time, by the image of that
// later, if it has one.
func (p *Pool) initialize(in *instance) error {
	m := p.module
	if !m.about.Metering.Restorable || !m.about.Initializes && !p.opts.Fresh {
		return p.runInitialize(in)
	}
	m.imaging.Lock()
	defer m.imaging.Unlock()
	if m.image != nil {
		return m.image.apply(in)
	}
	if err := p.runInitialize(in); err != nil {
		return err
	}
	im, err := newImage(in)
	if err != nil {
		return err
	}
	m.image = im
	return im.apply(in)
}

func (p *Pool) runInitialize(in *instance) error {
	if !p.module.about.Initializes {
		return nil
	}
	in.task.begin(in, &Invocation{Function: initializeName, Store: nothing{}, ReadOnly: true}, &p.limits)
	defer in.task.end()
	return in.run(initializeName)
}

func (m *Module) imageIfAny() *image {
	m.imaging.Lock()
	defer m.imaging.Unlock()
	return m.image
}

// seed is where random bytes of this pool begin.
func (p *Pool) seed() [32]byte {
	if p.opts.Seed != nil {
		return *p.opts.Seed
	}
	var seed [32]byte
	_, _ = crand.Read(seed[:])
	return seed
}
