package extension

import (
	crand "crypto/rand"
)

// nothing is the data of code that runs before any call: none.
type nothing struct{}

func (nothing) Get(uint32, []byte, []byte, *Value) Status { return NoSuchTable }

func (nothing) Scan(uint32, uint64, []byte, func(key, value []byte) bool) (uint64, int, Status) {
	return 0, 0, NoSuchTable
}

func (nothing) Commit(*Changes) error { return nil }

// initialize brings a new instance to where its first call begins: by its own code the first time, by the image of that
// later, if it has one.
func (p *Pool) initialize(in *instance) error {
	m := p.module
	if !m.about.Metering.Restorable || !m.about.Initializes && !p.opts.Fresh && !m.interrupted.Load() {
		return p.runInitialize(in)
	}
	m.imaging.Lock()
	defer m.imaging.Unlock()
	if im := p.imageIfAny(); im != nil {
		return im.apply(in)
	}
	if err := p.runInitialize(in); err != nil {
		return err
	}
	im, err := newImage(in)
	if err != nil {
		return err
	}
	if in.task.private {
		p.image.Store(im)
	} else {
		m.image.Store(im)
	}
	return nil
}

func (p *Pool) runInitialize(in *instance) error {
	if !p.module.about.Initializes {
		return nil
	}
	in.task.begin(in, &Invocation{Function: initializeName, Store: nothing{}, ReadOnly: true}, &p.limits)
	defer in.task.end()
	return in.run(p.module.initialize)
}

// imageIfAny is the module's, which pools of several tenants share, or the pool's own, if initialization has seen a
// clock or random bytes: those are a tenant's.
func (p *Pool) imageIfAny() *image {
	if im := p.image.Load(); im != nil {
		return im
	}
	return p.module.image.Load()
}

// reset brings an instance to where its first call began, whatever state it is in. It reports false if that is not
// possible, and then the instance has to go.
func (in *instance) reset() bool {
	p := in.pool
	if !p.module.about.Metering.Restorable {
		return false
	}
	im := p.imageIfAny()
	if im == nil {
		p.module.interrupted.Store(true) // The next instance that is made leaves an image.
		return false
	}
	return im.reset(in)
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
