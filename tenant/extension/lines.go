package extension

import (
	"encoding/binary"
	"reflect"
	"unsafe"

	"github.com/ostrodb/ostro/internal/prefetch"
)

// A call of a function that was not called for a while finds nothing of it in the processor's caches, and waits for one
// piece after the other: some fifty. Who knows that a call is coming can ask for all of them at once.

// lines are bytes that lie together.
type lines struct {
	at    unsafe.Pointer
	bytes uintptr
}

const (
	stackUsed   = 6 * 64 // of the machine's stack, by small functions
	contextUsed = 8 * 64 // of what compiled code refers to
	savedUsed   = 3 * 64 // of where it saves registers
	valueUsed   = 3 * 64 // of where a guest leaves its response
	mostUsed    = 12 * 64
)

// Mark tells one instance from another.
type Mark uintptr

// Mark is that of the lease's instance.
func (l *Lease) Mark() Mark { return Mark(uintptr(unsafe.Pointer(l.in))) }

// Lines are what a call like the last one on this lease will look at.
func (l *Lease) Lines(to *prefetch.List) {
	in := l.in
	if in == nil {
		return
	}
	to.Add(unsafe.Pointer(l.slot), unsafe.Sizeof(l.slot.idle))
	to.Add(unsafe.Pointer(in), unsafe.Offsetof(in.mod))
	to.Add(unsafe.Pointer(l.pool), unsafe.Offsetof(l.pool.mu))
	if in.engine == nil {
		in.engine = in.findEngine()
	}
	for _, e := range in.engine {
		to.Add(e.at, e.bytes)
	}
	if area, ok := in.mem.at(in.area, areaBytes); ok && in.area != 0 {
		to.Add(unsafe.Pointer(&area[0]), areaBytes)
		in.linesAt(to, binary.LittleEndian.Uint32(area), uintptr(l.task.argsLen))
		in.linesAt(to, binary.LittleEndian.Uint32(area[12:]), valueUsed)
	}
	for _, s := range l.task.used {
		in.linesAt(to, uint32(s.from), uintptr(s.to-s.from))
	}
}

func (in *instance) linesAt(to *prefetch.List, ptr uint32, n uintptr) {
	if n = min(n, mostUsed, uintptr(len(in.mem.buf))); uintptr(ptr) < uintptr(len(in.mem.buf))-n {
		to.Add(unsafe.Pointer(&in.mem.buf[ptr]), n)
	}
}

// findEngine finds what the runtime has of an instance, by the names of its fields: there is no other way to know. What
// it does not find is not asked for.
func (in *instance) findEngine() (all []lines) {
	engine := structAt(reflect.ValueOf(in.fn))
	if !engine.IsValid() {
		return []lines{}
	}
	all = append(all, linesOf(engine)...)
	if top := engine.FieldByName("stackTop"); top.IsValid() && top.Kind() == reflect.Uintptr {
		below := uintptr(top.Uint()) - stackUsed
		all = append(all, lines{*(*unsafe.Pointer)(unsafe.Pointer(&below)), stackUsed})
	}
	parent := structAt(engine.FieldByName("parent"))
	if !parent.IsValid() {
		return all
	}
	all = append(all, lines{parent.Addr().UnsafePointer(), 24})
	if c := parent.FieldByName("opaque"); c.IsValid() && c.Kind() == reflect.Slice && c.Len() > 0 {
		all = append(all, lines{c.UnsafePointer(), min(uintptr(c.Len()), contextUsed)})
	}
	if module := structAt(parent.FieldByName("module")); module.IsValid() {
		if f, ok := module.Type().FieldByName("Closed"); ok {
			all = append(all, lines{unsafe.Add(module.Addr().UnsafePointer(), f.Offset), f.Type.Size()})
		}
	}
	return all
}

// linesOf are those of an engine without the room for registers that hardly any function has to save.
func linesOf(engine reflect.Value) []lines {
	at, size := engine.Addr().UnsafePointer(), engine.Type().Size()
	context, ok := engine.Type().FieldByName("execCtx")
	if !ok || context.Type.Kind() != reflect.Struct {
		return []lines{{at, size}}
	}
	saved, ok := context.Type.FieldByName("savedRegisters")
	if !ok || saved.Type.Size() < savedUsed {
		return []lines{{at, size}}
	}
	from := context.Offset + saved.Offset
	to := from + saved.Type.Size()
	return []lines{{at, from + savedUsed}, {unsafe.Add(at, to), size - to}}
}

// structAt is what a pointer, or an interface with one, leads to.
func structAt(v reflect.Value) reflect.Value {
	for v.IsValid() && v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	if !v.IsValid() || v.Kind() != reflect.Pointer || v.IsNil() || v.Elem().Kind() != reflect.Struct {
		return reflect.Value{}
	}
	return v.Elem()
}
