package extension

import "time"

// Status is what a store says about a key. Negative ones are what guests get.
type Status int32

// Statuses; docs/function-abi.md explains them to authors of functions.
const (
	OK          Status = 0
	Absent      Status = -1
	Elsewhere   Status = -2
	TooLarge    Status = -3
	ReadOnly    Status = -4
	NoSuchTable Status = -5
	Full        Status = -6

	// Later is for the host only: the store would have to wait, and the call is a trial. It ends with ErrAbandoned.
	Later Status = 1
)

// Store is the data that one call works on: the tables of one tenant. Its methods are called on the goroutine of the
// call, one at a time. They may wait; whoever schedules calls gives them a way to let others run meanwhile.
type Store interface {
	// Get finds a value, and describes it in v if it is OK. One that fits into buf is copied there; of one that does not
	// v.Whole is the bytes, which must stay as they are until the call has ended; a store that has to copy them for that asks
	// v.Room first.
	Get(table uint32, key, buf []byte, v *Value) Status
	// Scan visits keys that begin with prefix, from a cursor on, 0 at the beginning. A visit that returns false was not
	// taken: it comes again with the cursor that Scan returns, which is 0 at the end. One call looks at a bounded number
	// of records, whether they are visited or not, and tells how many: the call pays for them.
	Scan(table uint32, cursor uint64, prefix []byte, visit func(key, value []byte) bool) (next uint64, looked int, st Status)
	// Commit applies all changes at one moment, or returns an error and applies none. Values that were read must not
	// have changed. Keys and values are the store's from then on. A call that wrote nothing comes here, too, if it has read
	// more than one key: what it read must have been there at one moment.
	Commit(c *Changes) error
}

// Placed is a Store of which not everything is here; see Invocation. It is asked before a write of a key is collected: what is not OK
// the function gets instead.
type Placed interface {
	Place(table uint32, key []byte) Status
}

// Ahead is a Store that brings near what will be read; see Invocation. It is told the keys of the next calls of Get on a table, in
// their order; nothing of the guest runs until it is told that there are none any more.
type Ahead interface {
	Ahead(table uint32, keys [][]byte)
}

// Prompt is a Store that may be asked for a value of table 0 before anybody needs it; see Invocation. It gives the
// value at once, and counts that as a read; or it does not, for whatever reason, and then it was not asked. A value that
// does not fit into buf is not given.
type Prompt interface {
	Prompt(key, buf []byte, v *Value) bool
}

// Value is what Get found.
type Value struct {
	Len     int
	Version uint64
	Whole   []byte // only if it did not fit

	task    *Task      // whose call it is for; nil: nobody's
	refused *CallError // why there is no room for it
}

// Room tells whether the call may keep so many bytes more. If not, the value is not needed: the call ends.
func (v *Value) Room(bytes int) bool {
	if v.task != nil {
		v.refused = v.task.viewable(bytes)
	}
	return v.refused == nil
}

// Changes are what a call has done.
type Changes struct {
	Reads    []Read
	Writes   []Write // at most one of a key
	Response []byte  // that the call will give; valid during Commit
}

// Read is a key that was looked at, and the version that it had: 0 if it was absent. Its key is valid during Commit.
type Read struct {
	Table   uint32
	Key     []byte
	Version uint64
}

// Write is a new value of a key, or its end.
type Write struct {
	Table  uint32
	Key    []byte
	Value  []byte
	TTL    time.Duration // 0: none
	Delete bool
}
