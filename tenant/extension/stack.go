package extension

import (
	"reflect"

	"github.com/ostrodb/ostro/tenant/extension/meter"
)

// The runtime keeps a stack for whoever calls from outside, which grows by doubling and never shrinks. The count that a module has
// of it is an estimate; what it really takes is looked at here, where the guest lets others run and when a call ends.

const (
	// keptStack is how large a stack may be that an instance keeps for its next call.
	keptStack = 64 << 10
	// stackMost is how many times what a module may count the stack may really be.
	stackMost = 4
)

// noStack stands for one that cannot be looked at.
var noStack []byte

// bind gets the entry of the instance, and with it a stack of the size that they begin with.
func (in *instance) bind() {
	in.fn, in.engine = in.mod.ExportedFunction(meter.EntryExport), nil
	in.payBack()
	in.stack = &noStack
	if engine := structAt(reflect.ValueOf(in.fn)); engine.IsValid() {
		if f := engine.FieldByName("stack"); f.IsValid() && f.Type() == reflect.TypeOf(noStack) {
			in.stack = (*[]byte)(f.Addr().UnsafePointer())
		}
	}
	in.stackKnown = len(*in.stack)
}

// stackGrew tells that the stack is larger than when it was last looked at.
func (in *instance) stackGrew() bool { return len(*in.stack) > in.stackKnown }

// payStack takes what the stack has grown by from the tenant's allowance.
func (in *instance) payStack() error {
	n := len(*in.stack)
	more := int64(n - in.stackKnown)
	if a := in.mem.allowance; a != nil && more > 0 {
		if err := a.Take(more); err != nil {
			return err
		}
		in.stackPaid += more
	}
	in.stackKnown = n
	return nil
}

// payBack gives back what the stack has grown by.
func (in *instance) payBack() {
	if in.stackPaid > 0 {
		in.mem.allowance.Give(in.stackPaid)
		in.stackPaid = 0
	}
}

// watchStack ends a call whose stack is larger than it may be, or than its tenant has memory for.
func (t *Task) watchStack() {
	in := t.in
	if most := stackMost * in.pool.stackBytes; len(*in.stack) > most {
		t.stop(&CallError{Kind: OutOfStack, Message: stackUsedUp})
	}
	if err := in.payStack(); err != nil {
		t.over("got no more memory for its stack: " + err.Error())
	}
}

const stackUsedUp = "called itself too deeply and used up its stack"

// settleStack lets a stack go that is larger than what is kept, or than the tenant has memory for. The guest has ended.
func (in *instance) settleStack() {
	if len(*in.stack) > keptStack || in.payStack() != nil {
		in.bind()
	}
}
