// Package shm is the fabric between processes of one machine: regions are
// memory that a NIC process maps, too, so that it executes requests whatever
// the processes do, also when they are stopped.
//
// Control requests are JSON in packets on a unix socket; memory goes along as
// file descriptors. Whoever may connect to the socket may use the NIC: its
// directory's permissions are the access control. A process that ends, in
// whatever way, takes its regions and queue pairs with it.
package shm

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"

	"golang.org/x/sys/unix"

	"github.com/ostrodb/ostro/fabric/nic"
)

// version is that of the control protocol and of the shared memory.
const version = 2

// packetBytes bounds a control packet.
const packetBytes = 16 << 10

// maxFiles is how many descriptors a packet may carry.
const maxFiles = 2

// hello is a program's first packet. The answer is an ordinary Response with the
// doorbells and their event.
type hello struct {
	Version int
	Name    string
}

// answer is a Response, and the size of the memory that comes with it.
type answer struct {
	nic.Response
	MemoryBytes int    `json:",omitempty"`
	Code        string `json:",omitempty"` // which sentinel the error is
	Remote      bool   `json:",omitempty"` // hello: the NIC reaches other machines
}

// send writes one packet with descriptors.
func send(c *net.UnixConn, v any, files ...int) error {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode a control packet: %w", err)
	}
	if len(data) > packetBytes {
		return fmt.Errorf("a control packet of %d bytes is too long", len(data))
	}
	var rights []byte
	if len(files) > 0 {
		rights = unix.UnixRights(files...)
	}
	_, _, err = c.WriteMsgUnix(data, rights, nil)
	return err
}

// receive reads one packet. Its descriptors are the caller's, also beside an error.
func receive(c *net.UnixConn, into any) ([]*os.File, error) {
	data := make([]byte, packetBytes+1)
	rights := make([]byte, unix.CmsgSpace(4*maxFiles))
	n, on, flags, _, err := c.ReadMsgUnix(data, rights)
	if err != nil {
		return nil, err
	}
	files, err := filesIn(rights[:on])
	switch {
	case err != nil:
		return files, err
	case n == 0 && len(files) == 0:
		return nil, io.EOF
	case flags&(unix.MSG_TRUNC|unix.MSG_CTRUNC) != 0 || n > packetBytes:
		return files, errors.New("a control packet is too long")
	}
	if err := json.Unmarshal(data[:n], into); err != nil {
		return files, fmt.Errorf("decode a control packet: %w", err)
	}
	return files, nil
}

func filesIn(rights []byte) ([]*os.File, error) {
	messages, err := unix.ParseSocketControlMessage(rights)
	if err != nil {
		return nil, fmt.Errorf("decode descriptors: %w", err)
	}
	var files []*os.File
	for i := range messages {
		fds, err := unix.ParseUnixRights(&messages[i])
		if err != nil {
			return files, fmt.Errorf("decode descriptors: %w", err)
		}
		for _, fd := range fds {
			unix.CloseOnExec(fd)
			files = append(files, os.NewFile(uintptr(fd), "passed"))
		}
	}
	return files, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}
