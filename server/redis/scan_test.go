package redis_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"

	goredis "github.com/redis/go-redis/v9"

	"github.com/ostrodb/ostro/server/redis"
)

// While other keys come by the ten thousands, so that the index grows, and go
// again, KEYS and SCAN still show every key that stays, and KEYS shows none twice.
func TestKeysThatStayAreSeenWhileOthersComeAndGo(t *testing.T) {
	ctx := t.Context()
	c := goredis.NewClient(&goredis.Options{Addr: startOstro(t, redis.Config{Loops: 2})})
	defer c.Close()
	var want []string
	for i := range 500 {
		want = append(want, fmt.Sprintf("stays:%03d", i))
		must(t, c.Set(ctx, want[i], i, 0).Err())
	}
	stop := make(chan struct{})
	var writer sync.WaitGroup
	writer.Go(func() { comeAndGo(t, ctx, c, stop) })
	for range 30 {
		keys := c.Keys(ctx, "stays:*").Val()
		slices.Sort(keys)
		if !slices.Equal(keys, want) {
			t.Fatalf("KEYS shows %d keys, %d of them different, want %d", len(keys), len(slices.Compact(keys)), len(want))
		}
		var scanned []string
		for it := c.Scan(ctx, 0, "stays:*", 1000).Iterator(); it.Next(ctx); {
			scanned = append(scanned, it.Val())
		}
		slices.Sort(scanned)
		if scanned = slices.Compact(scanned); !slices.Equal(scanned, want) {
			t.Fatalf("SCAN shows %d of %d keys", len(scanned), len(want))
		}
	}
	close(stop)
	writer.Wait()
}

// comeAndGo writes and deletes keys until it is told to stop.
func comeAndGo(t *testing.T, ctx context.Context, c *goredis.Client, stop <-chan struct{}) {
	for n := 0; ; n += 500 {
		select {
		case <-stop:
			return
		default:
		}
		if _, err := c.Pipelined(ctx, func(p goredis.Pipeliner) error {
			for i := range 500 {
				p.Set(ctx, "comes:"+strconv.Itoa(n+i), "and goes", 0)
				p.Del(ctx, "comes:"+strconv.Itoa(n+i-20_000))
			}
			return nil
		}); err != nil {
			t.Error(err)
			return
		}
	}
}
