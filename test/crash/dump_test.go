package crash

import (
	"fmt"
	"strconv"
	"time"

	"github.com/ostrodb/ostro/test/harness"
)

// dump is everything that a database holds, as read through SCAN and GET.
type dump struct {
	keys       map[string]seen
	began, end int64 // Unix milliseconds
	size       int64 // DBSIZE, asked before
}

// seen is a key that was there.
type seen struct {
	entry
	at int64 // when it was asked for, at the earliest
}

// readAll dumps one database.
func readAll(c *harness.Conn, db string) (dump, error) {
	d := dump{keys: map[string]seen{}, began: time.Now().UnixMilli()}
	if _, err := ask(c, "SELECT", db); err != nil {
		return d, err
	}
	size, err := ask(c, "DBSIZE")
	if err != nil {
		return d, err
	}
	d.size, _ = strconv.ParseInt(size, 10, 64)
	for cursor := "0"; ; {
		v, err := c.Do("SCAN", cursor, "COUNT", "500")
		if err != nil || len(v.Elems) != 2 {
			return d, fmt.Errorf("SCAN of database %s: %s, %v", db, harness.Text(v), err)
		}
		var page []string
		for i := range v.Elems[1].Elems {
			page = append(page, v.Elems[1].Elems[i].Text())
		}
		if err := d.readPage(c, page); err != nil {
			return d, fmt.Errorf("database %s: %w", db, err)
		}
		if cursor = v.Elems[0].Text(); cursor == "0" {
			d.end = time.Now().UnixMilli()
			return d, nil
		}
	}
}

// readPage reads the values and expiries of some keys.
func (d *dump) readPage(c *harness.Conn, keys []string) error {
	at := time.Now().UnixMilli()
	for _, k := range keys {
		_ = c.Send("GET", k)
		_ = c.Send("PEXPIRETIME", k)
	}
	if err := c.Flush(); err != nil {
		return err
	}
	for _, k := range keys {
		value, err := c.Receive()
		if err == nil {
			err = value.Err()
		}
		if err != nil {
			return fmt.Errorf("GET %s: %w", k, err)
		}
		expiry, err := c.Receive()
		if err != nil {
			return fmt.Errorf("PEXPIRETIME %s: %w", k, err)
		}
		const gone = -2 // It expired between the two commands, so it is not there.
		if !value.IsNull() && expiry.Int != gone {
			d.keys[k] = seen{entry{string(value.Str), max(expiry.Int, 0)}, at}
		}
	}
	return nil
}

// ask sends a command that must not fail.
func ask(c *harness.Conn, args ...string) (string, error) {
	v, err := c.Do(args...)
	if err == nil {
		err = v.Err()
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", args[0], err)
	}
	return harness.Text(v), nil
}
