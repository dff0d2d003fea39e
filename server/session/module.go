package session

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/ostrodb/ostro/tenant/library"
	"github.com/ostrodb/ostro/wire"
)

const (
	// modulePatience bounds how long an installation may take; the largest modules take seconds to compile.
	modulePatience = 2 * time.Minute
	// modulesAtOnce is how many a session may have under way: each keeps its code in memory.
	modulesAtOnce = 4
)

// module installs, deletes or lists what the session's tenant has installed, and nobody else's. What takes its
// time is done in the background while the operation waits alone.
func (w *worker) module(op *wire.Op) bool {
	c := w.on.c
	m, err := wire.DecodeModule(op.Arg)
	switch {
	case err != nil:
		w.refuse(op, wire.Invalid, "the argument of "+op.Code.String()+" makes no sense: "+err.Error())
	case c.shelf == nil:
		w.refuse(op, wire.Unknown, "this server has no functions")
	case m.Act == wire.ModuleList:
		w.aboutModules(op, listModules)
	default:
		if err := errors.Join(library.CheckName(string(m.Name)), c.shelf.Fits(len(m.Code))); err != nil {
			w.refuse(op, wire.Invalid, err.Error())
			break
		}
		w.aboutModules(op, changeModule)
	}
	return true
}

// aboutModules begins what takes its time.
func (w *worker) aboutModules(op *wire.Op, do func(context.Context, *library.Shelf, *wire.Module) wire.Result) {
	c := w.on.c
	if c.installing.Add(1) > modulesAtOnce {
		c.installing.Add(-1)
		w.refuse(op, wire.Refused, "this session changes or lists modules as often as it may at a time: wait for one of them")
		return
	}
	p := w.parkOf(op)
	if p == nil {
		c.installing.Add(-1)
		return
	}
	if w.on.park == nil {
		w.admitPark(p)
	}
	p.fetch, p.waits = nil, true
	own, _ := wire.DecodeModule(p.op.Arg) // It was fine, and the park's bytes stay.
	w.srv.changing.Go(func() {
		defer c.installing.Add(-1)
		ctx, cancel := context.WithTimeout(w.srv.changes, modulePatience)
		defer cancel()
		r := do(ctx, c.shelf, &own)
		p.outcome = &r
		w.postCall(p)
	})
}

// listModules tells of all modules. Of many functions it takes milliseconds: too long for a worker.
func listModules(ctx context.Context, s *library.Shelf, _ *wire.Module) (r wire.Result) {
	err := s.Tell(ctx, func() (err error) {
		r.Value, err = json.Marshal(s.Usage())
		return err
	})
	if err != nil {
		return wire.Result{Status: wire.Refused, Value: []byte(err.Error())}
	}
	return r
}

// changeModule installs or deletes one. What is there already is fine: the client may have lost an answer.
func changeModule(ctx context.Context, s *library.Shelf, m *wire.Module) wire.Result {
	name := string(m.Name)
	if m.Act == wire.ModuleDelete {
		return moduleResult(0, s.Delete(ctx, name))
	}
	p := library.Package{Name: name, Code: m.Code}
	entry, err := s.Install(ctx, p, m.Act == wire.ModuleReplace)
	if errors.Is(err, library.ErrExists) && s.Has(p) {
		err = nil
	}
	return moduleResult(uint64(entry.Version), err)
}

func moduleResult(version uint64, err error) wire.Result {
	switch {
	case errors.Is(err, library.ErrUnknown):
		return wire.Result{Status: wire.NotFound}
	case errors.Is(err, library.ErrExists):
		return wire.Result{Status: wire.Invalid, Value: []byte(err.Error() + ": replace it, or choose another name")}
	case err != nil:
		return wire.Result{Status: wire.Invalid, Value: []byte(err.Error())}
	}
	return wire.Result{Version: version}
}
