package tenant

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"fmt"
	"regexp"
	"slices"
	"sync/atomic"
	"time"
)

// Tenant is who somebody is, and what they may use.
type Tenant struct {
	Name string `json:"name"`
	// First is the store's number of the tenant's database 0; the others follow.
	First     int    `json:"first"`
	Databases int    `json:"databases"`
	Secret    Secret `json:"secret"`
	// Key makes ids that its clients choose others than those of anybody else. Nobody is told, and it stays.
	Key     []byte    `json:"key,omitempty"`
	Limits  Limits    `json:"limits"`
	Created time.Time `json:"created"`
}

// Limits are what a tenant may use; 0 is as much as there is.
type Limits struct {
	Bytes       int64 `json:"bytes,omitempty"`       // that records take in the log of a node
	Operations  int64 `json:"operations,omitempty"`  // a second, on each node
	Connections int64 `json:"connections,omitempty"` // at a time, to each node
	InFlight    int64 `json:"inFlight,omitempty"`    // operations that wait, on each node

	FunctionCPU    int64 `json:"functionCPU,omitempty"`    // thousandths of a core, on each node
	FunctionMemory int64 `json:"functionMemory,omitempty"` // bytes that instances of functions have, on each node
}

// Cores is the limit of FunctionCPU in cores.
func (l *Limits) Cores() float64 { return float64(l.FunctionCPU) / 1000 }

// Secret is what is kept of a password.
type Secret struct {
	Salt []byte `json:"salt"`
	Sum  []byte `json:"sum"`
}

// MaxPasswordBytes is how long a password can be. What is longer is wrong and not even hashed: to hash 60 MB took half a
// second of the time of all who share a loop, whoever sent them.
const MaxPasswordBytes = 1024

// CheckPassword refuses a password that could not be used.
func CheckPassword(password string) error {
	if len(password) > MaxPasswordBytes {
		return fmt.Errorf("a password has at most %d bytes, and this one %d", MaxPasswordBytes, len(password))
	}
	return nil
}

// NewSecret makes a password into what is kept of it.
func NewSecret(password string) Secret {
	s := Secret{Salt: make([]byte, 16)}
	_, _ = rand.Read(s.Salt) // It never fails.
	s.Sum = s.of([]byte(password))
	return s
}

// secretsHashed counts, for tests: both of who is known and of who is not must be.
var secretsHashed atomic.Int64

func (s *Secret) of(password []byte) []byte {
	secretsHashed.Add(1)
	h := sha256.New()
	h.Write(s.Salt)
	h.Write(password)
	return h.Sum(nil)
}

// Matches tells whether a password is the right one, in a time that tells nothing about it.
func (s *Secret) Matches(password []byte) bool {
	return len(password) <= MaxPasswordBytes && subtle.ConstantTimeCompare(s.of(password), s.Sum) == 1
}

// SamePassword compares passwords that are known, in a time that tells nothing about either, its length included.
func SamePassword(given, want []byte) bool {
	if len(given) > MaxPasswordBytes {
		return false
	}
	a, b := sha256.Sum256(given), sha256.Sum256(want)
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1
}

// ClientID is what an id that a client of the tenant chose is in the store. It depends on what nobody knows: or who knows another's
// could choose one that comes to the same.
func (t *Tenant) ClientID(chosen uint64) uint64 {
	key := t.Key
	if len(key) == 0 { // Of a version that had none.
		key = t.Secret.Salt
	}
	b := binary.LittleEndian.AppendUint64(slices.Clone(key), chosen)
	sum := sha256.Sum256(binary.LittleEndian.AppendUint64(b, uint64(t.First)))
	return binary.LittleEndian.Uint64(sum[:])
}

// NewPassword makes a password that nobody guesses.
func NewPassword() string { return rand.Text() }

// Operator is the name of whoever runs the server: no tenant can have it.
const Operator = "default"

// What one operation of a tenant can take of the memory, and of the time of a loop, that others share is bounded, whatever
// its limits are.
const (
	MaxValueBytes = 16 << 20 // of a value
	MaxReplyBytes = 32 << 20 // of an answer, or of a transaction's
	MaxKeys       = 4096     // of what is one step: a command on many keys, a transaction
)

const (
	// MaxInputBytes is what all connections of a tenant to a node may have sent together that cannot be executed yet: commands
	// that are not complete, what MULTI queues, and the keys that they watch.
	MaxInputBytes = 256 << 20
	// MaxUnreadBytes is what all clients of a tenant together may leave unread of their answers at a node.
	MaxUnreadBytes = 256 << 20
	// UncountedBytes is how much of either a connection may have that its tenant's account need not know of: most never have more.
	UncountedBytes = 64 << 10
)

// MaxDatabases is how many databases a tenant can have.
const MaxDatabases = 16

var names = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9_.@-]{0,63}$`)

func checkName(name string) error {
	switch {
	case name == Operator:
		return fmt.Errorf("%q is whoever runs the server: give the tenant another name", name)
	case !names.MatchString(name):
		return fmt.Errorf("%q is no name for a tenant: up to 64 letters, digits and _ . @ -, the first of them a letter or a digit", name)
	}
	return nil
}

func (l *Limits) check() error {
	for what, n := range map[string]int64{
		"bytes": l.Bytes, "operations": l.Operations, "connections": l.Connections, "inflight": l.InFlight,
		"function-cpu": l.FunctionCPU, "function-memory": l.FunctionMemory,
	} {
		if n < 0 {
			return fmt.Errorf("%s is %d: a limit is a positive number, or 0 for none", what, n)
		}
	}
	return nil
}
