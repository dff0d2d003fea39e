package redis

import (
	"testing"
	"time"
)

func TestEveryReplyTimeIsInTheBucketThatEndsBehindIt(t *testing.T) {
	for i := range ReplyBuckets - 1 {
		end := int64(ReplyBound(i))
		if got := replyBucket(end - 1); got != i {
			t.Fatalf("%d ns are in bucket %d, not in %d, which ends at %d", end-1, got, i, end)
		}
		if got := replyBucket(end); got != i+1 {
			t.Fatalf("%d ns are in bucket %d, not in %d", end, got, i+1)
		}
	}
	for _, nanos := range []int64{-1, 0} {
		if got := replyBucket(nanos); got != 0 {
			t.Fatalf("%d ns are in bucket %d", nanos, got)
		}
	}
	if got := replyBucket(int64(time.Hour)); got != ReplyBuckets-1 {
		t.Fatalf("an hour is in bucket %d", got)
	}
}
