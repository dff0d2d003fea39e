// Uses everything that the SDK has; probe_test.go says what must come out.
package main

import (
	"strconv"
	"time"

	"example.com/probe/ostro"
)

func respBytes(c *ostro.Call, b []byte) {
	c.Resp(strconv.AppendInt(nil, int64(len(b)), 10))
	c.Resp([]byte(":"))
	c.Resp(b)
	c.Resp([]byte(";"))
}

//go:wasmexport ostro_fn_args
func args() int32 {
	return ostro.Run(func(c *ostro.Call) error {
		for _, key := range c.Keys {
			respBytes(c, key)
		}
		c.Resp([]byte("|"))
		for _, arg := range c.Args {
			respBytes(c, arg)
		}
		return nil
	})
}

//go:wasmexport ostro_fn_get
func get() int32 {
	return ostro.Run(func(c *ostro.Call) error {
		table, err := c.ArgInt(0)
		if err != nil {
			return err
		}
		value, found, err := ostro.Table{ID: uint32(table)}.Get(c.Keys[0])
		switch {
		case err != nil:
			return err
		case found:
			respBytes(c, value)
		default:
			c.Resp([]byte("absent"))
		}
		return nil
	})
}

//go:wasmexport ostro_fn_multiget
func multiget() int32 {
	return ostro.Run(func(c *ostro.Call) error {
		values, err := c.Multiget(c.Args...)
		for _, value := range values {
			if value == nil {
				c.Resp([]byte("absent;"))
				continue
			}
			respBytes(c, value)
		}
		return err
	})
}

//go:wasmexport ostro_fn_build
func build() int32 {
	return ostro.Run(func(c *ostro.Call) error {
		millis, err := c.ArgInt(0)
		if err != nil {
			return err
		}
		n := 2
		for _, piece := range c.Args[1:] {
			n += len(piece)
		}
		buffer, err := c.Alloc(c.Keys[0], n)
		if err != nil {
			return err
		}
		for _, piece := range c.Args[1:] {
			if _, err := buffer.Write(piece); err != nil {
				return err
			}
		}
		if err := buffer.Put(time.Duration(millis) * time.Millisecond); err != nil {
			return err
		}
		value, _, err := c.Get(c.Keys[0]) // Its own write.
		respBytes(c, value)
		return err
	})
}

//go:wasmexport ostro_fn_del
func del() int32 {
	return ostro.Run(func(c *ostro.Call) error {
		if err := c.SetFor([]byte("beside"), c.Keys[0], 7*time.Millisecond); err != nil {
			return err
		}
		return c.Del(c.Keys[0])
	})
}

//go:wasmexport ostro_fn_scan
func scan() int32 {
	return ostro.Run(func(c *ostro.Call) error {
		skipped, err := c.Scan(c.Keys[0], func(key, value []byte) bool {
			respBytes(c, key)
			respBytes(c, value)
			return true
		})
		c.Resp(strconv.AppendInt(nil, int64(skipped), 10))
		return err
	})
}

//go:wasmexport ostro_fn_rest
func rest() int32 {
	return ostro.Run(func(c *ostro.Call) error {
		c.Log(ostro.Debug, "one")
		c.Log(ostro.Severe, "two")
		c.Yield()
		var a, b [8]byte
		c.Random(a[:])
		c.Random(b[:])
		c.Resp(strconv.AppendInt(nil, c.Now().UnixNano(), 10))
		if a != b {
			c.Resp([]byte(" random"))
		}
		return nil
	})
}

//go:wasmexport ostro_fn_fail
func fail() int32 {
	return ostro.Run(func(c *ostro.Call) error {
		code, err := c.ArgInt(0)
		if err != nil {
			return err
		}
		return &ostro.Error{Code: int32(code), Message: "on purpose"}
	})
}

//go:wasmexport ostro_fn_panic
func panics() int32 {
	return ostro.Run(func(c *ostro.Call) error {
		c.Resp(c.Keys[len(c.Keys)])
		return nil
	})
}

func main() {}
