package casestudy

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"syscall"
)

// roleVariable tells a process what it is. Its value is an order.
const roleVariable = "OSTRO_CASE_STUDY"

// order is what a child is started to be.
type order struct {
	Role     string
	Place    Place
	Index    int   // of a replica; of a front end, the replica to open from
	Priority int   // of a NIC
	Load     *load // of a front end
}

// Main runs the role of a process that was started for one, and ends it. In all others it returns.
func Main(s Study) {
	text := os.Getenv(roleVariable)
	if text == "" {
		return
	}
	var o order
	err := json.Unmarshal([]byte(text), &o)
	if err == nil {
		switch o.Role {
		case "nic":
			err = beNIC(o)
		case "replica":
			err = beReplica(s, o)
		case "front":
			err = beFront(s, o)
		case "busy":
			beBusy()
		default:
			err = fmt.Errorf("no role is called %q", o.Role)
		}
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", o.Role, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// child is this program in a role. It ends with its parent at the latest.
type child struct {
	name string
	cmd  *exec.Cmd
	in   io.WriteCloser
	pipe *os.File
	out  *json.Decoder
	said said
	once sync.Once
	gone atomic.Bool
}

func start(name string, o order) (*child, error) {
	text, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	c := &child{name: name, cmd: exec.Command(self)}
	c.cmd.Env = append(os.Environ(), roleVariable+"="+string(text))
	c.cmd.Stderr = &c.said
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	// A pipe of our own: what a killed child has said is to be heard after its end.
	out, theirs, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	defer theirs.Close()
	c.pipe, c.out, c.cmd.Stdout = out, json.NewDecoder(out), theirs
	if err := c.cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", name, err), out.Close())
	}
	return c, nil
}

// startReady starts a child that says when it is ready.
func startReady(name string, o order) (*child, error) {
	c, err := start(name, o)
	if err != nil {
		return nil, err
	}
	var word string
	if err := c.hear(&word); err != nil {
		c.end()
		return nil, err
	}
	return c, nil
}

// ready is what a child says when it is.
func ready() { fmt.Println(`"ready"`) }

// hear takes the next word of the child.
func (c *child) hear(into any) error {
	if err := c.out.Decode(into); err != nil {
		c.kill()
		return fmt.Errorf("%s said nothing more (%w); its last words: %s", c.name, err, &c.said)
	}
	return nil
}

func (c *child) signal(s syscall.Signal) error {
	if err := c.cmd.Process.Signal(s); err != nil {
		return fmt.Errorf("signal %s: %w", c.name, err)
	}
	return nil
}

// kill is kill -9, and returns when the process is gone. What it has said can still be heard.
func (c *child) kill() {
	c.once.Do(func() {
		_ = c.cmd.Process.Kill()
		_ = c.cmd.Wait()
		_ = c.in.Close()
		c.gone.Store(true)
	})
}

func (c *child) killed() bool { return c.gone.Load() }

// end is kill, and the end of hearing.
func (c *child) end() {
	c.kill()
	_ = c.pipe.Close()
}

// said keeps the end of what a child complains about, to be shown if it matters.
type said struct {
	mu   sync.Mutex
	text []byte
}

const saidBytes = 8 << 10

func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text = append(s.text, p...)
	s.text = s.text[max(0, len(s.text)-saidBytes):]
	return len(p), nil
}

func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return string(s.text)
}
