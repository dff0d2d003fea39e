package frame

import (
	"errors"
	"io"
	"net"
	"syscall"
)

// UsualEnd tells the end that the other side, or a Close here, makes of a connection from what is worth a word.
func UsualEnd(err error) bool {
	return err == nil || errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) || errors.Is(err, syscall.ECONNRESET)
}
