package peer

import (
	"bytes"
	"slices"
	"testing"
	"time"
)

func TestPiecesAreSentThoughTheTimeOfTheLastWriteIsOver(t *testing.T) {
	a, b := twoEnds(t)
	s := newSender(a, time.Minute)
	if err := s.send(&frame{kind: kindAnswer, call: 1}); err != nil {
		t.Fatal(err)
	}
	if err := a.SetWriteDeadline(time.Now().Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
	if err := s.send(&frame{kind: kindAnswer, call: 2, pieces: [][]byte{[]byte("ab"), []byte("c")}}); err != nil {
		t.Fatal(err)
	}
	for call := uint64(1); call <= 2; call++ {
		var f frame
		if _, err := f.read(b, nil); err != nil || f.call != call {
			t.Fatalf("answer %d instead of %d: %v", f.call, call, err)
		}
	}
}

// As the answer to a pull of which all has landed.
func TestAnAnswerWithoutPiecesGivesBackWhatItHasBeforeItWaits(t *testing.T) {
	a, _ := twoEnds(t)
	s := newSender(a, time.Minute)
	s.writing, s.queued = true, make([]byte, queuedBytes+1) // Somebody writes, and the other side does not read.
	back, done := make(chan struct{}), make(chan error)
	go func() { done <- s.queue(&frame{kind: kindAnswer, sent: func() { close(back) }}) }()
	<-back
	s.mu.Lock()
	s.err = ErrClosed
	s.drained.Broadcast()
	s.mu.Unlock()
	if err := <-done; err != ErrClosed {
		t.Error(err)
	}
}

func TestWhatFollowsTheFirstBytesOfPiecesIsLeft(t *testing.T) {
	whole := []byte("abcdef")
	for n := range len(whole) + 1 {
		pieces := [][]byte{{}, whole[:1], {}, whole[1:3], whole[3:], {}}
		if got := slices.Concat(after(pieces, n)...); !bytes.Equal(got, whole[n:]) {
			t.Errorf("after %d bytes %q is left", n, got)
		}
	}
}
