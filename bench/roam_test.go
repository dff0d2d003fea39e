package bench

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/ostrodb/ostro/engine/record"
)

// fakeNode answers each GET as it is told to, once release is closed.
func fakeNode(t *testing.T, release <-chan struct{}, answer func(key string) string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				for in := bufio.NewScanner(c); in.Scan(); {
					if !strings.HasPrefix(in.Text(), "$30") || !in.Scan() {
						continue
					}
					<-release
					if _, err := fmt.Fprint(c, answer(in.Text())); err != nil {
						return
					}
				}
			}()
		}
	}()
	return l.Addr().String()
}

// All keys have moved while many operations wait for the one connection to where they were.
func TestOperationsThatWaitWhereTheirKeysWereAreSentWhereTheyAre(t *testing.T) {
	release, now := make(chan struct{}), make(chan struct{})
	close(now)
	there := fakeNode(t, now, func(string) string { return "$1\r\nx\r\n" })
	moved := func(key string) string { return fmt.Sprintf("-MOVED %d %s\r\n", record.SlotOf([]byte(key)), there) }
	was := fakeNode(t, release, moved)
	ctx, stop := context.WithCancel(t.Context())
	drawn := 0
	draw := func() uint32 { // The first node answers once many operations wait for it.
		if drawn++; drawn == 200 {
			close(release)
			stop()
		}
		return 0
	}
	r, err := newRoamer([]string{was, there}, [record.PlaceSlots]uint8{}, 1, []uint32{7}, draw, 16)
	if err != nil {
		t.Fatal(err)
	}
	defer r.close()
	total, err := r.run(ctx, 2000, 0)
	if err != nil {
		t.Fatal(err)
	}
	if len(total.trail) < 200 || total.late != 0 || len(total.errors) > 0 || total.moved == 0 {
		t.Errorf("%d were answered, %d not, %d redirected, errors %v", len(total.trail), total.late, total.moved, total.errors)
	}
}
