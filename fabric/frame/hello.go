package frame

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/ostrodb/ostro/fabric"
)

// Two NICs make sure that the other one knows the secret before either says
// anything else:
//
//	caller  magic, nonce C
//	callee  magic, nonce S, HMAC(secret, magic "callee" C S)
//	caller  HMAC(secret, magic "caller" C S hello), length, hello
//	callee  0, or a length and why not
//
// The nonces are fresh, so nothing of an earlier conversation is of use. The
// stream that follows is neither encrypted nor signed: the network between NICs
// is trusted not to change bytes, as it is for RDMA.
const (
	magic      = "OSTROFB1"
	nonceBytes = 32
	helloBytes = 4096
)

// ErrUnauthorized says that the peer does not know the secret.
var ErrUnauthorized = errors.New("frame: the peer does not know the secret")

// Hello says what a caller wants: to be the peer of a queue pair.
type Hello struct {
	From    fabric.Endpoint
	To      uint32
	Token   uint64
	RNRWait time.Duration
}

// Call is the caller's part, up to sending the hello.
func Call(c io.ReadWriter, secret []byte, h Hello) error {
	body, err := json.Marshal(h)
	if err != nil {
		return fmt.Errorf("frame: call: %w", err)
	}
	return Introduce(c, magic, secret, body)
}

// Introduce is the caller's part in any protocol whose connections begin like
// this. Its magic is 8 bytes that name the protocol and its version.
func Introduce(c io.ReadWriter, magic string, secret, hello []byte) error {
	if len(hello) > helloBytes {
		return errors.New("frame: call: the device's name is too long")
	}
	var mine, theirs [nonceBytes]byte
	_, _ = rand.Read(mine[:])
	if _, err := c.Write(append([]byte(magic), mine[:]...)); err != nil {
		return fmt.Errorf("frame: call: %w", err)
	}
	proof := make([]byte, sha256.Size)
	if err := readMagic(c, magic, &theirs); err != nil {
		return err
	}
	if _, err := io.ReadFull(c, proof); err != nil {
		return fmt.Errorf("frame: call: %w", err)
	}
	if !hmac.Equal(proof, sign(secret, magic+"callee", mine, theirs, nil)) {
		return ErrUnauthorized
	}
	out := sign(secret, magic+"caller", mine, theirs, hello)
	out = binary.LittleEndian.AppendUint16(out, uint16(len(hello)))
	if _, err := c.Write(append(out, hello...)); err != nil {
		return fmt.Errorf("frame: call: %w", err)
	}
	return nil
}

// Answered waits for the callee's verdict.
func Answered(c io.Reader) error {
	var n [1]byte
	if _, err := io.ReadFull(c, n[:]); err != nil {
		return fmt.Errorf("frame: call: %w", err)
	}
	if n[0] == 0 {
		return nil
	}
	why := make([]byte, n[0])
	if _, err := io.ReadFull(c, why); err != nil {
		return fmt.Errorf("frame: call: %w", err)
	}
	return fmt.Errorf("frame: the peer refuses: %q", why)
}

// Listen is the callee's part, up to the hello.
func Listen(c io.ReadWriter, secret []byte) (Hello, error) {
	var h Hello
	body, err := Hear(c, magic, secret)
	if err != nil {
		return h, err
	}
	if err := json.Unmarshal(body, &h); err != nil {
		return h, errors.Join(ErrMalformed, err)
	}
	return h, nil
}

// Hear is the callee's part in any protocol whose connections begin like this.
func Hear(c io.ReadWriter, magic string, secret []byte) (hello []byte, err error) {
	var mine, theirs [nonceBytes]byte
	if err := readMagic(c, magic, &theirs); err != nil {
		return nil, err
	}
	_, _ = rand.Read(mine[:])
	out := append([]byte(magic), mine[:]...)
	if _, err := c.Write(append(out, sign(secret, magic+"callee", theirs, mine, nil)...)); err != nil {
		return nil, fmt.Errorf("frame: listen: %w", err)
	}
	var head [sha256.Size + 2]byte
	if _, err := io.ReadFull(c, head[:]); err != nil {
		return nil, fmt.Errorf("frame: listen: %w", err)
	}
	n := binary.LittleEndian.Uint16(head[sha256.Size:])
	if n > helloBytes {
		return nil, ErrMalformed
	}
	hello = make([]byte, n)
	if _, err := io.ReadFull(c, hello); err != nil {
		return nil, fmt.Errorf("frame: listen: %w", err)
	}
	if !hmac.Equal(head[:sha256.Size], sign(secret, magic+"caller", theirs, mine, hello)) {
		return nil, ErrUnauthorized
	}
	return hello, nil
}

// Accept lets the caller in.
func Accept(c io.Writer) error {
	_, err := c.Write([]byte{0})
	return err
}

// Refuse tells the caller why not.
func Refuse(c io.Writer, why string) {
	why = why[:min(len(why), 255)]
	_, _ = c.Write(append([]byte{byte(len(why))}, why...))
}

func readMagic(c io.Reader, magic string, nonce *[nonceBytes]byte) error {
	head := make([]byte, len(magic)+nonceBytes)
	if _, err := io.ReadFull(c, head); err != nil {
		return fmt.Errorf("frame: greet: %w", err)
	}
	if string(head[:len(magic)]) != magic {
		return ErrMalformed
	}
	copy(nonce[:], head[len(magic):])
	return nil
}

// sign proves the knowledge of the secret in one role of one conversation.
func sign(secret []byte, role string, caller, callee [nonceBytes]byte, body []byte) []byte {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(role))
	mac.Write(caller[:])
	mac.Write(callee[:])
	mac.Write(body)
	return mac.Sum(nil)
}
