package server

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/ostrodb/ostro/cluster/peer"
	"github.com/ostrodb/ostro/wire"
)

// greetWithin is how long a connection may take to say what it is.
const greetWithin = 5 * time.Second

// listen opens the cluster port, which peers and native clients share.
func (h *host) listen() error {
	host := "0.0.0.0"
	for _, b := range h.cfg.Bind {
		if b = strings.TrimPrefix(b, "-"); b != "" {
			host = b
			break
		}
	}
	l, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(h.cfg.clusterPort())))
	if err != nil {
		return fmt.Errorf("open the cluster port: %w", err)
	}
	h.listener = l
	h.tasks.Go(func() { h.accept(l) })
	return nil
}

func (h *host) accept(l net.Listener) {
	for {
		c, err := l.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil: // As when there are too many open files.
			h.log.Warn("a connection to the cluster port was not taken", "why", err)
			h.pause(50 * time.Millisecond)
			if h.ctx.Err() != nil {
				return
			}
			continue
		}
		go h.greet(c)
	}
}

// greet hands a connection to whom its first bytes are for.
func (h *host) greet(c net.Conn) {
	first, whole, err := peer.Peek(c, greetWithin)
	if err != nil {
		_ = c.Close()
		return
	}
	switch string(first[:]) {
	case peer.Magic:
		h.peers.ServeConn(whole)
	case wire.Magic:
		h.greetClient(c)
	default:
		_ = c.Close()
	}
}

// greetClient serves a native client, if there is a life to serve from. Its magic was read.
func (h *host) greetClient(c net.Conn) {
	if l := h.life.Load(); l != nil {
		if native := l.native.Load(); native != nil { // Its doors may not be open yet.
			native.ServeConn(c)
			return
		}
	}
	_ = c.Close()
}
