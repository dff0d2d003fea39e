package bench

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// control is a plain RESP client for the few commands around a measurement.
type control struct {
	conn net.Conn
	r    *bufio.Reader
	w    *bufio.Writer
}

// controlTimeout bounds every dial and every command, for a server that hangs
// must not hang the benchmark.
const controlTimeout = 5 * time.Minute

// replyError is an error that the server answered with.
type replyError string

func (e replyError) Error() string { return string(e) }

func dialControl(addr string) (*control, error) {
	conn, err := net.DialTimeout("tcp", addr, controlTimeout)
	if err != nil {
		return nil, err
	}
	return &control{conn, bufio.NewReaderSize(conn, 64<<10), bufio.NewWriterSize(conn, 64<<10)}, nil
}

func (c *control) close() { c.conn.Close() }

// do sends one command and returns its reply as text; nil replies are empty.
func (c *control) do(words ...string) (string, error) {
	_ = c.conn.SetDeadline(time.Now().Add(controlTimeout)) // a broken connection fails below
	c.send(words...)
	if err := c.w.Flush(); err != nil {
		return "", err
	}
	reply, err := c.receive()
	return string(reply), err
}

// send queues a command without waiting for its reply.
func (c *control) send(words ...string) {
	fmt.Fprintf(c.w, "*%d\r\n", len(words))
	for _, word := range words {
		fmt.Fprintf(c.w, "$%d\r\n%s\r\n", len(word), word)
	}
}

// receive reads one reply that is no aggregate; nil is a null.
func (c *control) receive() ([]byte, error) {
	line, err := c.r.ReadSlice('\n')
	if err != nil {
		return nil, err
	}
	if len(line) < 3 {
		return nil, fmt.Errorf("reply %q is too short", line)
	}
	kind, rest := line[0], string(line[1:len(line)-2])
	switch kind {
	case '+', ':':
		return []byte(rest), nil
	case '-':
		return nil, replyError(rest)
	case '_':
		return nil, nil
	case '$', '=':
		n, err := strconv.Atoi(rest)
		if err != nil || n < 0 {
			return nil, err
		}
		body := make([]byte, n+2)
		if _, err := io.ReadFull(c.r, body); err != nil {
			return nil, err
		}
		return body[:n], nil
	default:
		return nil, fmt.Errorf("reply %q is of a kind that was not asked for", line)
	}
}

// info returns one field of INFO.
func (c *control) info(section, field string) (string, error) {
	text, err := c.do("INFO", section)
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), field+":"); ok {
			return value, nil
		}
	}
	return "", fmt.Errorf("INFO %s has no field %s", section, field)
}

// size returns how many keys the server has.
func (c *control) size() (uint64, error) {
	reply, err := c.do("DBSIZE")
	if err != nil {
		return 0, err
	}
	return strconv.ParseUint(reply, 10, 64)
}

// ready asks once whether the server answers and has loaded its data.
func ready(addr string) error {
	conn, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return err
	}
	c := &control{conn, bufio.NewReader(conn), bufio.NewWriter(conn)}
	defer c.close()
	switch reply, err := c.do("PING"); {
	case err != nil && strings.HasPrefix(err.Error(), "NOAUTH"):
		return nil // It serves those who log in.
	case err != nil:
		return err
	case reply != "PONG":
		return errors.New("answered PING with " + reply)
	}
	return nil
}
