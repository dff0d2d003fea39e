package bench

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/ostrodb/ostro/bench/workload"
)

// luaLibrary is what functions do in WebAssembly, in Lua.
//
//go:embed splinter.lua
var luaLibrary string

// giveLua installs the library on a Redis.
func giveLua(addr string) error {
	c, err := dialControl(addr)
	if err != nil {
		return err
	}
	defer c.close()
	if _, err := c.do("FUNCTION", "LOAD", "REPLACE", luaLibrary); err != nil {
		return fmt.Errorf("install functions on Redis: %w", err)
	}
	return nil
}

// loadRedis writes n records, pipelined.
func loadRedis(ctx context.Context, addr string, n int, record func(i int) (key, value []byte)) error {
	c, err := dialControl(addr)
	if err != nil {
		return err
	}
	defer c.close()
	for from := 0; from < n && ctx.Err() == nil; from += fillPipeline {
		to := min(from+fillPipeline, n)
		for i := from; i < to; i++ {
			key, value := record(i)
			c.send("SET", string(key), string(value))
		}
		if err := c.collect(nil, to-from); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// ringCommand is a command whose word number at ends in the digits of a record.
type ringCommand struct {
	words  []string
	at     int
	writes bool
}

// call is an FCALL of a function with one key.
func call(name, key string, args ...string) ringCommand {
	return ringCommand{words: append([]string{"FCALL", name, "1", key}, args...), at: 3}
}

// newCommands builds a ring of commands, dealt as deck says.
func newCommands(pipeline int, deck func(i int) ringCommand) *requests {
	r := &requests{keys: workload.Text30}
	for i := range slotsFor(pipeline) {
		c := deck(i)
		s := slot{from: len(r.bytes), replies: 1, keys: 1, writes: c.writes}
		r.bytes = fmt.Appendf(r.bytes, "*%d\r\n", len(c.words))
		for j, word := range c.words {
			r.bulk([]byte(word))
			if j == c.at {
				// Where a key would begin that ends there: only its last digits are overwritten.
				s.key[0] = len(r.bytes) - 2 - workload.Text30.Len()
			}
		}
		s.to = len(r.bytes)
		r.slots = append(r.slots, s)
	}
	return r
}

// sampleKey is a key as rings have it before they are patched.
func sampleKey() string {
	key := make([]byte, workload.Text30.Len())
	workload.Text30.Put(key, 0)
	return string(key)
}
