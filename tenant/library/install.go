package library

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/ostrodb/ostro/internal/background"
	"github.com/ostrodb/ostro/tenant/extension"
	"github.com/ostrodb/ostro/tenant/extension/meter"
)

// What an installation says no to.
var (
	ErrExists  = errors.New("there is a module of that name already")
	ErrUnknown = errors.New("there is no such module")
)

// Package is a module to be installed.
type Package struct {
	Name string
	Code []byte
}

// Install checks and compiles a module, and makes it the one of its name, at one moment, on this node when it returns and
// on others soon after. replace: there may be another one already.
func (s *Shelf) Install(ctx context.Context, p Package, replace bool) (Entry, error) {
	mode := Append
	if replace {
		mode = Replace
	}
	entries, err := s.InstallAll(ctx, []Package{p}, mode)
	if err != nil {
		return Entry{}, err
	}
	return entries[0], nil
}

// Fits refuses a module by its size alone, before anybody has copied it.
func (s *Shelf) Fits(bytes int) error {
	if most := s.lib.opts.Limits.Extension.Module.ModuleBytes; bytes > most {
		return &extension.RefusedError{Err: &meter.LimitError{What: "bytes", Has: bytes, Most: most}}
	}
	return nil
}

// FitAll refuses a dump by its size alone.
func (s *Shelf) FitAll(bytes int) error {
	if most := s.lib.opts.Limits.CodeBytes + dumpSlack; int64(bytes) > most {
		return fmt.Errorf("the payload has %d bytes, and the modules of a tenant can have %d", bytes, s.lib.opts.Limits.CodeBytes)
	}
	return nil
}

// Mode is what is done about modules that are there.
type Mode byte

// Modes.
const (
	Append  Mode = iota // names must be new
	Replace             // of the same name: replaced
	Flush               // all: deleted
)

// InstallAll installs modules all at one moment, or none.
func (s *Shelf) InstallAll(ctx context.Context, packages []Package, mode Mode) ([]Entry, error) {
	// What was compiled is the runtime's, which stays until somebody else has it.
	if !s.lib.running.enter() {
		return nil, errClosed
	}
	defer s.lib.running.leave()
	if err := s.admit(ctx, packages, mode); err != nil {
		return nil, err
	}
	code := map[Sum][]byte{}
	entries, warms := make([]Entry, len(packages)), make([]*warm, len(packages))
	defer func() { s.adopt(entries, warms) }()
	for i, p := range packages {
		var err error
		if entries[i], warms[i], err = s.check(ctx, p); err != nil {
			return nil, err
		}
		code[entries[i].Sum] = p.Code
	}
	page, err := s.lib.opts.Book.Edit(ctx, s.owner, code, func(page *Page) error { return s.amend(page, entries, mode) })
	if err != nil {
		return nil, err
	}
	s.lib.take([]Page{page}, 0)
	return entries, nil
}

// errAdmitted ends an edit that was only asked whether it could be.
var errAdmitted = errors.New("it could be installed")

// admit refuses what the tenant has no room for, or has already, before it is compiled: who is refused takes little of what
// others wait for. It is asked again when the modules are there, with the names of their functions.
func (s *Shelf) admit(ctx context.Context, packages []Package, mode Mode) error {
	for _, p := range packages {
		if err := CheckName(p.Name); err != nil {
			return err
		}
	}
	_, err := s.lib.opts.Book.Edit(ctx, s.owner, nil, func(page *Page) error {
		entries := make([]Entry, len(packages))
		for i, p := range packages {
			entries[i] = Entry{Name: p.Name, Bytes: int64(len(p.Code))}
		}
		if err := s.amend(page, entries, mode); err != nil {
			return err
		}
		return errAdmitted
	})
	if errors.Is(err, errAdmitted) {
		return nil
	}
	return err
}

// amend makes a page what it is with further entries, or tells why it cannot be.
func (s *Shelf) amend(page *Page, entries []Entry, mode Mode) error {
	page.Tenant = s.tenant
	if mode == Flush {
		page.Modules = nil
	}
	for i := range entries {
		if err := page.put(&entries[i], mode != Append); err != nil {
			return err
		}
	}
	return page.within(&s.lib.opts.Limits)
}

// check compiles a module, and tells what there is to know about it. A tenant has one compiled at a time, and all
// together no more than there are compilers, and as many large ones: who installs much, or what is hard to compile, waits
// for others, and others for one of its modules at most, no longer than compilePatience.
func (s *Shelf) check(ctx context.Context, p Package) (Entry, *warm, error) {
	w, err := s.compileInTurn(ctx, p.Code)
	if err != nil {
		return Entry{}, nil, err
	}
	return Entry{
		Name: p.Name, Version: 1, Sum: SumOf(p.Code), Bytes: int64(len(p.Code)),
		Functions: w.module.About().Functions, Installed: time.Now().UTC(),
	}, w, nil
}

// compileInTurn waits for the tenant's turn, and for the compiler as long as ctx lasts and the server does not stop.
func (s *Shelf) compileInTurn(ctx context.Context, code []byte) (*warm, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(s.lib.ctx, func() { cancel(errClosed) })()
	if err := s.own.enter(ctx, s); err != nil {
		return nil, err
	}
	d := s.lib.deskOf(len(code))
	if err := d.enter(ctx, s); err != nil {
		s.own.leave(s, 0)
		return nil, err
	}
	began := time.Now()
	c := s.lib.begin(func() (w *warm, err error) {
		background.Quietly(func() { w, err = s.lib.warmNow(s, code) })
		return w, err
	})
	go func() {
		s.lib.attend(c, func() {
			d.leave(s, time.Since(began))
			began = time.Now()
		})
		s.own.leave(s, time.Since(began))
	}()
	w, err := c.wait(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("the module was not compiled in time: try again, or split its largest functions (%w)", err)
	}
	return w, err
}

// deskOf is where a module of a size is compiled: small ones wait for no large one.
func (l *Library) deskOf(bytes int) *desk {
	if bytes > quietBytes {
		return &l.large
	}
	return &l.desk
}

// adopt gives what was compiled to the editions that it is for, if they are there.
func (s *Shelf) adopt(entries []Entry, warms []*warm) {
	editions := s.content.Load().editions
	for i, w := range warms {
		e := editions[entries[i].Name]
		if w != nil && e != nil && e.entry.same(&entries[i]) && e.ready(w, nil) {
			s.lib.warm.add(e)
		} else {
			s.lib.warm.bury(nil, w)
		}
	}
}

// put adds an entry to the page, as the next version if there is one.
func (p *Page) put(e *Entry, replace bool) error {
	was, there := p.Modules[e.Name]
	if there && !replace {
		return fmt.Errorf("%w: %s, version %d", ErrExists, e.Name, was.Version)
	}
	e.Version = was.Version + 1
	for name, other := range p.Modules {
		if name == e.Name {
			continue
		}
		if both := common(e.Functions, other.Functions); len(both) > 0 {
			return fmt.Errorf("module %s has functions of these names already: %s; rename those that are new, or delete that module", name, strings.Join(both, ", "))
		}
	}
	if p.Modules = maps.Clone(p.Modules); p.Modules == nil {
		p.Modules = map[string]Entry{}
	}
	p.Modules[e.Name] = *e
	return nil
}

func common(a, b []string) (both []string) {
	in := map[string]bool{}
	for _, s := range a {
		in[s] = true
	}
	for _, s := range b {
		if in[s] {
			both = append(both, s)
		}
	}
	return both
}

// within tells which limit the page exceeds.
func (p *Page) within(l *Limits) error {
	sum := p.Bytes()
	switch {
	case len(p.Modules) > l.Modules:
		return fmt.Errorf("%d modules are installed, and that is as many as a tenant can have: delete some", l.Modules)
	case sum > l.CodeBytes:
		return fmt.Errorf("the modules would have %d bytes together, and a tenant can have %d: delete some", sum, l.CodeBytes)
	}
	return nil
}

// Delete takes a module away.
func (s *Shelf) Delete(ctx context.Context, name string) error {
	return s.edit(ctx, func(p *Page) error {
		if _, ok := p.Modules[name]; !ok {
			return fmt.Errorf("%w: %.80q", ErrUnknown, name)
		}
		p.Modules = maps.Clone(p.Modules)
		delete(p.Modules, name)
		return nil
	})
}

// flushStep is how many modules are taken away at a time.
const flushStep = 50

// Flush takes all modules away.
func (s *Shelf) Flush(ctx context.Context) error {
	for more := true; more; {
		err := s.edit(ctx, func(p *Page) error {
			p.Modules = maps.Clone(p.Modules)
			names := p.Names()
			more = len(names) > flushStep
			for _, name := range names[:min(flushStep, len(names))] {
				delete(p.Modules, name)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *Shelf) edit(ctx context.Context, edit func(*Page) error) error {
	page, err := s.lib.opts.Book.Edit(ctx, s.owner, nil, edit)
	if err == nil {
		s.lib.take([]Page{page}, 0)
	}
	return err
}

// Code is a module's, as it was installed.
func (s *Shelf) Code(ctx context.Context, name string) ([]byte, error) {
	e := s.content.Load().editions[name]
	if e == nil {
		return nil, fmt.Errorf("%w: %.80q", ErrUnknown, name)
	}
	return s.lib.opts.Book.Code(ctx, e.entry.Sum)
}
