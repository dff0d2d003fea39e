package client

import (
	"bytes"
	"context"
	"sync"

	"github.com/ostrodb/ostro/wire"
)

// Future is the outcome of an operation that may still be under way.
type Future struct {
	ctx context.Context

	mu     sync.Mutex
	over   bool
	result Result
	err    error
	done   chan struct{}         // made when somebody asks for it
	then   []func(Result, error) // called once it is over
}

// completed is called once, when the operation is over.
func (f *Future) completed(r *wire.Result, err error) {
	f.mu.Lock()
	f.over, f.err = true, err
	if r != nil {
		f.result = Result{Value: bytes.Clone(r.Value), Version: r.Version, Expires: r.ExpireAt}
	}
	then := f.then
	f.then = nil
	if f.done != nil {
		close(f.done)
	}
	f.mu.Unlock()
	for _, call := range then {
		call(f.result, f.err)
	}
}

// Done is closed when the operation is over.
func (f *Future) Done() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.done == nil {
		f.done = make(chan struct{})
		if f.over {
			close(f.done)
		}
	}
	return f.done
}

// Wait returns the outcome, or the error of the context that the operation was begun with
// if that ends first. The operation is not taken back then.
func (f *Future) Wait() (Result, error) {
	select {
	case <-f.Done():
		return f.result, f.err
	case <-f.ctx.Done():
		return Result{}, f.ctx.Err()
	}
}

// Then calls back with the outcome, at once if it is known. The call comes from the goroutine
// that receives results: it may begin operations, and must not wait for one.
func (f *Future) Then(call func(Result, error)) {
	f.mu.Lock()
	if !f.over {
		f.then = append(f.then, call)
		f.mu.Unlock()
		return
	}
	f.mu.Unlock()
	call(f.result, f.err)
}
