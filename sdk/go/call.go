//go:build wasip1

package ostro

import (
	"encoding/binary"
	"strconv"
	"time"
)

// Call is one invocation: what it was given, the store, the response. It is also
// the tenant's default table.
type Call struct {
	Table
	Keys [][]byte
	Args [][]byte
}

// Run carries out one call. Its result is the exported function's.
func Run(function func(*Call) error) int32 {
	defer func() {
		if p := recover(); p != nil {
			fail(codePanic, "panic: "+said(p))
		}
	}()
	if err := function(newCall()); err != nil {
		fail(codeOf(err), err.Error())
	}
	return 0
}

// said returns what a panic says, as far as that needs no package fmt, which
// would make every module a third larger.
func said(p any) string {
	switch p := p.(type) {
	case error:
		return p.Error()
	case string:
		return p
	}
	return "a value that is no error and no string"
}

func newCall() *Call {
	block := invocation()
	keys, args := binary.LittleEndian.Uint32(block), binary.LittleEndian.Uint32(block[4:])
	all := make([][]byte, keys+args)
	bytes := block[8+4*len(all):]
	for i := range all {
		n := binary.LittleEndian.Uint32(block[8+4*i:])
		all[i], bytes = bytes[:n:n], bytes[n:]
	}
	return &Call{Keys: all[:keys], Args: all[keys:]}
}

// Key returns the i-th key of the invocation.
func (c *Call) Key(i int) ([]byte, error) {
	if i >= len(c.Keys) {
		return nil, argument("key " + strconv.Itoa(i+1) + " is missing")
	}
	return c.Keys[i], nil
}

// Arg returns the i-th argument of the invocation.
func (c *Call) Arg(i int) ([]byte, error) {
	if i >= len(c.Args) {
		return nil, argument("argument " + strconv.Itoa(i+1) + " is missing")
	}
	return c.Args[i], nil
}

// ArgInt returns the i-th argument, a decimal number.
func (c *Call) ArgInt(i int) (int64, error) {
	text, err := c.Arg(i)
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil {
		return 0, argument("argument " + strconv.Itoa(i+1) + " should be a number")
	}
	return n, nil
}

// Resp appends to the response.
func (c *Call) Resp(piece []byte) { respond(piece) }

// Write is Resp for fmt.Fprintf and other writers.
func (c *Call) Write(piece []byte) (int, error) {
	c.Resp(piece)
	return len(piece), nil
}

// Level tells how important a line of the log is.
type Level uint32

// Levels, the least important first.
const (
	Debug Level = iota
	Info
	Warning
	Severe
)

// Log writes a line to the function's log.
func (c *Call) Log(level Level, line string) {
	at, n := start([]byte(line))
	abiLog(uint32(level), at, n)
}

// Now returns the time, in steps of a millisecond.
func (c *Call) Now() time.Time { return time.Unix(0, abiNow()) }

// Random fills b with random bytes.
func (c *Call) Random(b []byte) { abiRandom(start(b)) }

// Yield lets others run. It is never necessary: every call of the store does.
func (c *Call) Yield() { abiYield() }

// fail ends the call; it does not return.
func fail(code int32, message string) {
	at, n := start([]byte(message))
	abiFail(code, at, n)
}
