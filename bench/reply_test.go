package bench

import "testing"

const someReplies = "+OK\r\n$5\r\nhello\r\n$0\r\n\r\n$-1\r\n:42\r\n_\r\n$12\r\na\r\nb\r\n+OK\r\n!\r\n-ERR no\r\n"

func TestRepliesAreCountedHoweverTheyAreCut(t *testing.T) {
	for cut := range len(someReplies) {
		for size := 1; size <= 7; size++ {
			var r replies
			done := r.feed([]byte(someReplies[:cut]))
			for rest := someReplies[cut:]; len(rest) > 0; {
				n := min(size, len(rest))
				done += r.feed([]byte(rest[:n]))
				rest = rest[n:]
			}
			if done != 8 || r.nulls != 2 || r.fails != 1 || r.first != "ERR no" || r.odd {
				t.Fatalf("cut at %d, then %d at a time: %d replies, %+v", cut, size, done, r)
			}
		}
	}
}

func TestAReplyThatNobodyAskedForIsNoticed(t *testing.T) {
	var r replies
	r.feed([]byte("*1\r\n"))
	if !r.odd {
		t.Error("an array was taken for a reply")
	}
}

func TestCountingAllocatesNothing(t *testing.T) {
	var r replies
	b := []byte("+OK\r\n$5\r\nhello\r\n:1\r\n")
	if n := testing.AllocsPerRun(100, func() { r.feed(b) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
