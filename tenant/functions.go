package tenant

import (
	"fmt"
	"math"
	"strconv"
	"sync/atomic"

	"github.com/ostrodb/ostro/tenant/sched"
)

// Share is where a tenant's functions wait for their turn; nil is the operator.
func (r *Registry) Share(a *Account) *sched.Share {
	if a == nil {
		return r.share
	}
	return a.share
}

// Memory is what a tenant's functions take their memory from; nil is the operator.
func (r *Registry) Memory(a *Account) *Memory {
	if a == nil {
		return &r.memory
	}
	return &a.memory
}

// MemoryOf is the same by name. A tenant that is not there any more has what its calls that still run need.
func (r *Registry) MemoryOf(name string) *Memory {
	if a := r.Account(name); a != nil {
		return &a.memory
	}
	if name == Operator {
		return &r.memory
	}
	return &Memory{}
}

// Scheduler tells how functions take turns on this node.
func (r *Registry) Scheduler() sched.Metrics { return r.sched.Metrics() }

// Memory counts what the instances of a tenant's functions have, and refuses what would be over the limit.
// The zero value is the operator's, who has none.
type Memory struct {
	tenant  atomic.Pointer[Tenant]
	used    atomic.Int64
	held    atomic.Int64 // by calls, until their ends
	refused atomic.Int64
	relief  atomic.Pointer[func()]
}

// Relieve sets what gives memory back that nobody needs at the moment. It is called before something is refused.
func (m *Memory) Relieve(f func()) { m.relief.Store(&f) }

func (m *Memory) become(t *Tenant) { m.tenant.Store(t) }

// Take asks for bytes.
func (m *Memory) Take(bytes int64) error {
	if m.take(bytes) {
		return nil
	}
	if f := m.relief.Load(); f != nil {
		(*f)()
		if m.take(bytes) {
			return nil
		}
	}
	t := m.tenant.Load()
	m.refused.Add(1)
	return &Exceeded{Tenant: t.Name, What: "function-memory", Limit: t.Limits.FunctionMemory}
}

func (m *Memory) take(bytes int64) bool {
	if m.within(m.used.Add(bytes)) {
		return true
	}
	m.used.Add(-bytes)
	return false
}

func (m *Memory) within(bytes int64) bool {
	t := m.tenant.Load()
	return t == nil || t.Limits.FunctionMemory == 0 || bytes <= t.Limits.FunctionMemory
}

// shrink gives back what nobody needs at the moment, if it is more than the limit is by now. Without it a call would find an
// instance from before that has all the memory it ever got.
func (m *Memory) shrink() {
	if f := m.relief.Load(); f != nil && !m.within(m.used.Load()) {
		(*f)()
	}
}

// Give takes a Take back.
func (m *Memory) Give(bytes int64) { m.used.Add(-bytes) }

// heldMost is how many bytes a tenant's calls keep at a time, beside memory: long responses, writes, values. Calls that wait in
// their midst keep what they have, and without a bound the responses of some hundred of them took five gigabytes.
const heldMost = 32 << 20

// Hold asks for bytes that a call keeps until its end.
func (m *Memory) Hold(bytes int64) error {
	if m.held.Add(bytes) <= heldMost {
		return nil
	}
	m.held.Add(-bytes)
	m.refused.Add(1)
	name := Operator
	if t := m.tenant.Load(); t != nil {
		name = t.Name
	}
	return &Exceeded{Tenant: name, What: "held", Limit: heldMost}
}

// Release takes a Hold back.
func (m *Memory) Release(bytes int64) { m.held.Add(-bytes) }

// Scarce tells that more than three quarters are taken.
func (m *Memory) Scarce() bool {
	t := m.tenant.Load()
	return t != nil && t.Limits.FunctionMemory > 0 && m.used.Load() > t.Limits.FunctionMemory/4*3
}

// Used is how many bytes are taken.
func (m *Memory) Used() int64 { return m.used.Load() }

// functions fills in what a tenant's functions use.
func (u *Usage) functions(share *sched.Share, memory *Memory) {
	s := share.Usage()
	u.FunctionMemory, u.FunctionCalls = memory.Used(), s.Turns
	u.FunctionNanos, u.FunctionThrottled = int64(s.CPU), s.Throttled
	u.FunctionRefused = s.Refused + memory.refused.Load()
}

// ParseCores reads a number of cores, such as 0.5, in thousandths.
func ParseCores(text string) (int64, error) {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || !(n >= 0 && n <= 1e6) {
		return 0, fmt.Errorf("%q is no number of cores: it is one such as 0.5 or 2, or 0 for no limit", text)
	}
	if n > 0 && n < 0.001 {
		return 0, fmt.Errorf("%s cores are too few: the least is 0.001", text)
	}
	return int64(math.Round(n * 1000)), nil
}
