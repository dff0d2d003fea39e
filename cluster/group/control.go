package group

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"strings"

	"github.com/ostrodb/ostro/fabric"
	"github.com/ostrodb/ostro/fabric/frame"
)

// A client reaches a replica of another process by a control connection, on no
// critical path. Both prove that they know the secret (see package frame); then
// come requests and answers, one after the other:
//
//	length 4, little-endian    JSON of a request or an answer, up to controlBytes
//
// The magic has the version: what speaks another one is told so by neither side
// being understood.
const (
	controlMagic = "OSTROGM1"
	controlBytes = 64 << 10
)

// verb is what a control request asks for.
type verb string

const (
	askOffer  verb = "offer"
	askJoin   verb = "join"
	askLeave  verb = "leave"
	askHealth verb = "health"
)

type controlRequest struct {
	Verb verb
	Spec *Spec `json:",omitempty"`
	Join *Join `json:",omitempty"`
}

type controlAnswer struct {
	Error  string  `json:",omitempty"`
	Code   string  `json:",omitempty"` // which sentinel the error is
	Offer  *Offer  `json:",omitempty"`
	Health *Health `json:",omitempty"`
}

// sentinels are the errors that keep their identity on the way.
var sentinels = map[string]error{"busy": ErrBusy, "refused": ErrRefused, "unsupported": fabric.ErrUnsupported}

func failure(err error) controlAnswer {
	a := controlAnswer{Error: err.Error()}
	for code, sentinel := range sentinels {
		if errors.Is(err, sentinel) {
			a.Code = code
		}
	}
	return a
}

// far is an error that a replica of another process reported.
type far struct {
	says string
	is   error
}

func (f far) Error() string { return f.says }

func (f far) Unwrap() error { return f.is }

func (a controlAnswer) err() error {
	if a.Error == "" {
		return nil
	}
	return far{a.Error, sentinels[a.Code]}
}

// errMalformed says that a peer does not speak the control protocol.
var errMalformed = errors.New("group: a control message makes no sense")

func writeControl(w io.Writer, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("group: encode a control message: %w", err)
	}
	if len(body) > controlBytes {
		return fmt.Errorf("group: a control message of %d bytes is too long", len(body))
	}
	_, err = w.Write(append(binary.LittleEndian.AppendUint32(nil, uint32(len(body))), body...))
	return err
}

// readControl reads one message. begun is called when its length has come.
func readControl(r io.Reader, into any, begun func()) error {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return err
	}
	begun()
	n := binary.LittleEndian.Uint32(head[:])
	if n > controlBytes {
		return fmt.Errorf("%w: %d bytes are too long", errMalformed, n)
	}
	body := make([]byte, n)
	if _, err := io.ReadFull(r, body); err != nil {
		return err
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("%w: %w", errMalformed, err)
	}
	return nil
}

// place is where a replica is reached, of a URL:
//
//	unix:///run/ostro/replica.sock
//	tcp://host:port?secret-file=PATH
type place struct {
	network, addr string
	secret        []byte
}

func parsePlace(raw string, secret []byte) (place, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return place{}, fmt.Errorf("group: %w", err)
	}
	switch {
	case u.Scheme == "unix" && u.Host == "" && u.Path != "":
		return place{network: "unix", addr: u.Path}, nil // Who may open the socket may use it.
	case u.Scheme == "tcp" && u.Port() != "":
	default:
		return place{}, fmt.Errorf("group: %q is no place of a replica; use unix:///path/to/replica.sock or tcp://host:port?secret-file=PATH", raw)
	}
	if path := u.Query().Get("secret-file"); path != "" {
		text, err := os.ReadFile(path)
		if err != nil {
			return place{}, fmt.Errorf("group: read the secret: %w", err)
		}
		secret = []byte(strings.TrimSpace(string(text)))
	}
	if len(secret) == 0 {
		return place{}, fmt.Errorf("group: %s needs a secret that clients and replicas share; give one with ?secret-file=PATH", raw)
	}
	return place{network: "tcp", addr: u.Host, secret: secret}, nil
}

func (p place) listen() (net.Listener, error) {
	if p.network == "unix" {
		return frame.ListenUnix("unix", p.addr)
	}
	return net.Listen("tcp", p.addr)
}
