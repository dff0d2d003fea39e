package redis_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/internal/await"
	"github.com/ostrodb/ostro/internal/port"
	"github.com/ostrodb/ostro/server/redis"
)

// startOstro serves a store in memory until the test ends.
func startOstro(t testing.TB, cfg redis.Config) (addr string) {
	t.Helper()
	return startOstroOn(t, store.Options{}, cfg)
}

func startOstroOn(t testing.TB, o store.Options, cfg redis.Config) (addr string) {
	t.Helper()
	return startServer(t, o, cfg).Addr().String()
}

// startRedis runs the real redis-server until the test ends.
func startRedis(t testing.TB) (addr string) {
	t.Helper()
	path, err := exec.LookPath("redis-server")
	if err != nil {
		t.Fatal("this test compares with a real redis-server: install the package redis-server")
	}
	own := port.For(t)
	cmd := exec.Command(path, "--port", strconv.Itoa(own.Number), "--bind", "127.0.0.1", "--save", "", "--dir", t.TempDir())
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // It may have ended by itself.
		_ = cmd.Wait()         // It was killed.
	})
	await.True(t, "redis-server answers on "+own.Addr(), func() bool {
		c, err := net.Dial("tcp", own.Addr())
		if err == nil {
			_ = c.Close() // It was only a try.
		}
		return err == nil
	})
	return own.Addr()
}

// rawClient sends commands and shows replies as they came over the wire.
type rawClient struct {
	conn net.Conn
	in   *bufio.Reader
}

func dialRaw(t testing.TB, addr string) *rawClient {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() }) // The server may have closed it.
	return &rawClient{conn: conn, in: bufio.NewReader(conn)}
}

func (c *rawClient) send(args ...string) error { return c.sendAll([][]string{args}) }

// sendAll sends commands at once, without waiting for replies in between.
func (c *rawClient) sendAll(commands [][]string) error {
	var b bytes.Buffer
	for _, args := range commands {
		fmt.Fprintf(&b, "*%d\r\n", len(args))
		for _, a := range args {
			fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(a), a)
		}
	}
	if err := c.conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	_, err := c.conn.Write(b.Bytes())
	return err
}

// do sends a command and returns its reply.
func (c *rawClient) do(args ...string) (*reply, error) {
	if err := c.send(args...); err != nil {
		return nil, err
	}
	return c.receive()
}

// reply is one reply: its bytes, and what they mean.
type reply struct {
	raw   string
	kind  byte
	text  string   // what follows the kind, or a bulk string's content
	items []*reply // of arrays, sets, and maps
	null  bool
}

func (c *rawClient) receive() (*reply, error) {
	line, err := c.in.ReadString('\n')
	if err != nil {
		return nil, err
	}
	r := &reply{raw: line, kind: line[0], text: strings.TrimSuffix(line[1:], "\r\n")}
	switch r.kind {
	case '$', '=':
		return r, c.receiveBulk(r)
	case '*', '~', '>', '%':
		return r, c.receiveItems(r)
	case '_':
		r.null = true
	}
	return r, nil
}

func (c *rawClient) receiveBulk(r *reply) error {
	n, err := strconv.Atoi(r.text)
	if err != nil || n < 0 {
		r.null = n < 0
		return err
	}
	body := make([]byte, n+2)
	if _, err := io.ReadFull(c.in, body); err != nil {
		return err
	}
	r.raw += string(body)
	r.text = string(body[:n])
	return nil
}

func (c *rawClient) receiveItems(r *reply) error {
	n, err := strconv.Atoi(r.text)
	if err != nil || n < 0 {
		r.null = n < 0
		return err
	}
	if r.kind == '%' {
		n *= 2
	}
	for range n {
		item, err := c.receive()
		if err != nil {
			return err
		}
		r.items = append(r.items, item)
		r.raw += item.raw
	}
	return nil
}
