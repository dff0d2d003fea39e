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

// birthFuel is what code has that runs before the first call of an instance: some tenths of a second.
const birthFuel = 100_000_000

// birth is such code as a call: one that has nothing to do with data.
func (p *Pool) birth(function string, turns Turns) *Invocation {
	return &Invocation{Function: function, Store: nothing{}, ReadOnly: true, Turns: turns, Fuel: min(p.limits.Fuel, birthFuel)}
}

// initialize brings a new instance to where its first call begins: by its own code the first time, by the image of that
// later, if it has one.
func (p *Pool) initialize(in *instance, turns Turns) error {
	m := p.module
	if !m.about.Metering.Restorable || !m.about.Initializes && !p.opts.Fresh && !m.interrupted.Load() {
		return p.runInitialize(in, turns)
	}
	if had, err := p.applyImage(in); had {
		return err
	}
	if err := p.runInitialize(in, turns); err != nil {
		return err
	}
	return p.keepImage(in)
}

// applyImage gives the instance what an earlier one has left, if there was one.
func (p *Pool) applyImage(in *instance) (had bool, _ error) {
	p.module.imaging.Lock()
	defer p.module.imaging.Unlock()
	im := p.imageIfAny()
	if im == nil {
		return false, nil
	}
	return true, im.apply(in)
}

// keepImage keeps the instance's beginning for others, unless one that began at the same time was faster. What depends on
// the tenant is for its own only: its clock and its random bytes. What its limits have refused is for nobody.
func (p *Pool) keepImage(in *instance) error {
	p.module.imaging.Lock()
	defer p.module.imaging.Unlock()
	if in.mem.refused || p.closed.Load() || p.imageIfAny() != nil {
		return nil
	}
	im, err := newImage(in)
	if err != nil {
		return err
	}
	if in.task.private {
		p.image.Store(im)
	} else {
		p.module.image.Store(im)
	}
	return nil
}

// runInitialize runs what a module has for it. The area is part of that: some make it when they are asked where it is.
func (p *Pool) runInitialize(in *instance, turns Turns) error {
	if p.module.about.Initializes {
		if _, err := in.runFirst(initializeName, p.module.initialize, turns); err != nil {
			return err
		}
	}
	return in.findArea(turns)
}

// runFirst runs code that comes before any call.
func (in *instance) runFirst(name string, function uint64, turns Turns) (result uint64, err error) {
	private := in.task.private // What ran before may have seen what is the tenant's, too.
	in.task.begin(in, in.pool.birth(name, turns), &in.pool.limits)
	in.task.private = private
	defer in.task.end()
	err = in.run(function)
	return in.task.stack[0], err
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
	if im.filed && !in.mapped {
		// The file must not be closed before it is mapped: its number may be another file's then.
		p.module.imaging.Lock()
		defer p.module.imaging.Unlock()
		if im.fd < 0 {
			return false
		}
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
