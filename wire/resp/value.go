package resp

import (
	"fmt"
	"strconv"
	"strings"
)

// Kind is the type of a reply: its first byte on the wire.
type Kind byte

// The types of RESP2 and RESP3.
const (
	SimpleString   Kind = '+'
	SimpleError    Kind = '-'
	Integer        Kind = ':'
	BulkString     Kind = '$'
	Array          Kind = '*'
	Null           Kind = '_'
	Boolean        Kind = '#'
	Double         Kind = ','
	BigNumber      Kind = '('
	BulkError      Kind = '!'
	VerbatimString Kind = '='
	Map            Kind = '%'
	Set            Kind = '~'
	Push           Kind = '>'
	attribute      Kind = '|'
)

// Value is one decoded reply. RESP2's null bulk and null array have the kind
// Null. A Value owns its bytes.
type Value struct {
	Kind   Kind
	Str    []byte  // strings, errors, the digits of big numbers, text of verbatim strings
	Format string  // of a verbatim string: "txt", "mkd"
	Int    int64   // Integer; Boolean: 1 or 0
	Float  float64 // Double
	Elems  []Value // Array, Set, Push; Map: key, value, key, value ...
	Attrs  []Value // attributes sent before the value, as pairs
}

// IsNull reports the absence of a value.
func (v *Value) IsNull() bool { return v.Kind == Null }

// Err returns an error reply as an error, nil for every other kind.
func (v *Value) Err() error {
	if v.Kind == SimpleError || v.Kind == BulkError {
		return ReplyError(v.Str)
	}
	return nil
}

// ReplyError is an error that the server answered; its first word is a code.
type ReplyError string

func (e ReplyError) Error() string { return string(e) }

// Code returns the first word: ERR, WRONGTYPE, MOVED.
func (e ReplyError) Code() string {
	code, _, _ := strings.Cut(string(e), " ")
	return code
}

// Text returns a scalar as text, as one would print it.
func (v *Value) Text() string {
	switch v.Kind {
	case Integer:
		return strconv.FormatInt(v.Int, 10)
	case Boolean:
		return strconv.FormatBool(v.Int != 0)
	case Double:
		return string(AppendDouble(nil, v.Float))
	case Array, Set, Push, Map:
		return fmt.Sprintf("(%d elements)", len(v.Elems))
	}
	return string(v.Str)
}
