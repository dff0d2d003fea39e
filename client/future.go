package client

import (
	"bytes"
	"context"
	"sync"

	"github.com/ostrodb/ostro/wire"
)

// Future is the outcome of an operation that may still be under way.
type Future = Pending[Result]

// Pending is an outcome that may not be known yet.
type Pending[T any] struct {
	ctx context.Context

	mu     sync.Mutex
	over   bool
	result T
	err    error
	done   chan struct{}    // made when somebody asks for it
	then   []func(T, error) // called once it is over
}

// received completes a future with what a server answered.
func received(f *Future) func(*wire.Result, error) {
	return func(r *wire.Result, err error) {
		var result Result
		if r != nil {
			result = Result{Value: bytes.Clone(r.Value), Version: r.Version, Expires: r.ExpireAt}
		}
		f.complete(result, err)
	}
}

// complete is called once, when the operation is over.
func (f *Pending[T]) complete(result T, err error) {
	f.mu.Lock()
	f.over, f.result, f.err = true, result, err
	then := f.then
	f.then = nil
	if f.done != nil {
		close(f.done)
	}
	f.mu.Unlock()
	for _, call := range then {
		call(result, err)
	}
}

// Done is closed when the operation is over.
func (f *Pending[T]) Done() <-chan struct{} {
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
func (f *Pending[T]) Wait() (T, error) {
	select {
	case <-f.Done():
		return f.result, f.err
	case <-f.ctx.Done():
		var none T
		return none, f.ctx.Err()
	}
}

// Then calls back with the outcome, at once if it is known. The call comes from the goroutine
// that receives results: it may begin operations, and must not wait for one.
func (f *Pending[T]) Then(call func(T, error)) {
	f.mu.Lock()
	if !f.over {
		f.then = append(f.then, call)
		f.mu.Unlock()
		return
	}
	f.mu.Unlock()
	call(f.result, f.err)
}
