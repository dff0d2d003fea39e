package extension

import "github.com/ostrodb/ostro/tenant/extension/meter"

// Limits bound what a module may be and what its calls may use.
type Limits struct {
	Module meter.Limits
	Call   CallLimits
}

// CallLimits bound a single call.
type CallLimits struct {
	Fuel          int64 // in all
	Slice         int64 // until others may run
	HostCalls     int64
	ArgumentBytes int
	ResponseBytes int
	LogBytes      int
	// Writes is how many keys a call has that writes, those that it has read among them: they are applied in one piece, on a
	// loop that others wait for.
	Writes     int
	Reads      int // that are remembered, of calls that write nothing
	WriteBytes int
	Views      int
	ViewBytes  int
	ValueBytes int // of one
}

// DefaultLimits are for functions that nobody has set others for.
func DefaultLimits() Limits {
	return Limits{
		Module: meter.DefaultLimits(),
		Call: CallLimits{
			Fuel:          1_000_000_000,
			Slice:         50_000,
			HostCalls:     1_000_000,
			ArgumentBytes: 16 << 20,
			ResponseBytes: 16 << 20,
			LogBytes:      64 << 10,
			Writes:        2048,
			Reads:         65_536,
			WriteBytes:    16 << 20,
			Views:         65_536,
			ViewBytes:     16 << 20,
			ValueBytes:    16 << 20,
		},
	}
}
