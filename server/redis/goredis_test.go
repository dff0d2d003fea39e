package redis_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/ostrodb/ostro/server/redis"
)

// withGoRedis runs a test through go-redis, in both protocol versions.
func withGoRedis(t *testing.T, test func(t *testing.T, ctx context.Context, c *goredis.Client)) {
	addr := startOstro(t, redis.Config{Loops: 2})
	for _, proto := range []int{2, 3} {
		t.Run(fmt.Sprintf("RESP%d", proto), func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			c := goredis.NewClient(&goredis.Options{Addr: addr, Protocol: proto, ReadTimeout: patience})
			defer c.Close()
			must(t, c.FlushAll(ctx).Err())
			test(t, ctx, c)
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestGoRedisReadsAndWrites(t *testing.T) {
	withGoRedis(t, func(t *testing.T, ctx context.Context, c *goredis.Client) {
		must(t, c.Set(ctx, "greeting", "hello", time.Hour).Err())
		if got, err := c.Get(ctx, "greeting").Result(); err != nil || got != "hello" {
			t.Errorf("GET: %q, %v", got, err)
		}
		if ttl := c.TTL(ctx, "greeting").Val(); ttl > time.Hour || ttl < time.Hour-patience {
			t.Errorf("TTL: %v", ttl)
		}
		if _, err := c.Get(ctx, "nosuch").Result(); !errors.Is(err, goredis.Nil) {
			t.Errorf("GET of nothing: %v", err)
		}
		if n := c.IncrByFloat(ctx, "f", 10.6).Val(); n != 10.6 {
			t.Errorf("INCRBYFLOAT: %v", n)
		}
		if got := c.MGet(ctx, "greeting", "nosuch").Val(); got[0] != "hello" || got[1] != nil {
			t.Errorf("MGET: %v", got)
		}
		if got := c.BitField(ctx, "b", "SET", "u8", 0, 200, "OVERFLOW", "FAIL", "INCRBY", "u8", 0, 100).Val(); got[0] != 0 {
			t.Errorf("BITFIELD: %v", got)
		}
		lcs := c.LCS(ctx, &goredis.LCSQuery{Key1: "greeting", Key2: "greeting", Idx: true, WithMatchLen: true}).Val()
		if lcs.Len != 5 || len(lcs.Matches) != 1 || lcs.Matches[0].MatchLen != 5 {
			t.Errorf("LCS: %+v", lcs)
		}
	})
}

func TestGoRedisPipelinesKeepTheirOrder(t *testing.T) {
	withGoRedis(t, func(t *testing.T, ctx context.Context, c *goredis.Client) {
		const n = 1000
		got, err := c.Pipelined(ctx, func(p goredis.Pipeliner) error {
			for i := range n {
				p.Incr(ctx, "counter")
				p.Set(ctx, "k"+strconv.Itoa(i), i, 0)
				p.Get(ctx, "k"+strconv.Itoa(i))
			}
			return nil
		})
		must(t, err)
		for i := range n {
			if count := got[3*i].(*goredis.IntCmd).Val(); count != int64(i+1) {
				t.Fatalf("INCR %d answered %d", i, count)
			}
			if v := got[3*i+2].(*goredis.StringCmd).Val(); v != strconv.Itoa(i) {
				t.Fatalf("GET %d answered %q", i, v)
			}
		}
	})
}

func TestGoRedisTransactionsAreAllOrNothing(t *testing.T) {
	withGoRedis(t, func(t *testing.T, ctx context.Context, c *goredis.Client) {
		_, err := c.TxPipelined(ctx, func(p goredis.Pipeliner) error {
			p.MSet(ctx, "a", 1, "b", 2)
			p.Rename(ctx, "a", "c")
			p.IncrBy(ctx, "c", 10)
			return nil
		})
		must(t, err)
		if got := c.MGet(ctx, "a", "b", "c").Val(); got[0] != nil || got[1] != "2" || got[2] != "11" {
			t.Errorf("after the transaction: %v", got)
		}
	})
}

// Money moves between accounts in transactions while others look at all of them
// at once: the sum never changes.
func TestTransfersNeverShowHalf(t *testing.T) {
	withGoRedis(t, func(t *testing.T, ctx context.Context, c *goredis.Client) {
		accounts := []string{"a", "b", "c", "d"}
		for _, a := range accounts {
			must(t, c.Set(ctx, a, 1000, 0).Err())
		}
		var movers, watchers sync.WaitGroup
		stop := make(chan struct{})
		for w := range 4 {
			movers.Go(func() {
				for i := range 300 {
					from, to := accounts[(w+i)%4], accounts[(w+i*3+1)%4]
					if _, err := c.TxPipelined(ctx, func(p goredis.Pipeliner) error {
						p.DecrBy(ctx, from, 7)
						p.IncrBy(ctx, to, 7)
						return nil
					}); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		watchers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if sum := sumInTransaction(t, ctx, c, accounts); sum != 4000 {
					t.Errorf("the accounts hold %d in all", sum)
					return
				}
			}
		})
		movers.Wait()
		close(stop)
		watchers.Wait()
		if sum := sumInTransaction(t, ctx, c, accounts); sum != 4000 {
			t.Errorf("in the end the accounts hold %d", sum)
		}
	})
}

func sumInTransaction(t *testing.T, ctx context.Context, c *goredis.Client, keys []string) (sum int64) {
	got, err := c.TxPipelined(ctx, func(p goredis.Pipeliner) error {
		for _, k := range keys {
			p.Get(ctx, k)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	for _, cmd := range got {
		n, _ := cmd.(*goredis.StringCmd).Int64()
		sum += n
	}
	return sum
}

func TestWatchedIncrementsLoseNone(t *testing.T) {
	withGoRedis(t, func(t *testing.T, ctx context.Context, c *goredis.Client) {
		const workers, each = 8, 50
		var wg sync.WaitGroup
		for range workers {
			wg.Go(func() {
				for range each {
					if err := incrementWatched(ctx, c, "counter"); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
		if got, err := c.Get(ctx, "counter").Int(); err != nil || got != workers*each {
			t.Errorf("the counter is %d, %v; want %d", got, err, workers*each)
		}
	})
}

// incrementWatched reads a counter and writes it back one higher, and begins again
// whenever somebody else was faster.
func incrementWatched(ctx context.Context, c *goredis.Client, key string) error {
	for {
		err := c.Watch(ctx, func(tx *goredis.Tx) error {
			n, err := tx.Get(ctx, key).Int()
			if err != nil && !errors.Is(err, goredis.Nil) {
				return err
			}
			_, err = tx.TxPipelined(ctx, func(p goredis.Pipeliner) error {
				p.Set(ctx, key, n+1, 0)
				return nil
			})
			return err
		}, key)
		if !errors.Is(err, goredis.TxFailedErr) {
			return err
		}
	}
}

func TestGoRedisIteratorsSeeEveryKey(t *testing.T) {
	withGoRedis(t, func(t *testing.T, ctx context.Context, c *goredis.Client) {
		const n = 5000
		var want []string
		_, err := c.Pipelined(ctx, func(p goredis.Pipeliner) error {
			for i := range n {
				k := fmt.Sprintf("key:%04d", i)
				want = append(want, k)
				p.Set(ctx, k, i, 0)
				p.Set(ctx, "other:"+k, i, 0)
			}
			return nil
		})
		must(t, err)
		var got []string
		for it := c.Scan(ctx, 0, "key:*", 100).Iterator(); it.Next(ctx); {
			got = append(got, it.Val())
		}
		slices.Sort(got)
		if got = slices.Compact(got); !slices.Equal(got, want) {
			t.Errorf("the iterator saw %d of %d keys", len(got), len(want))
		}
		if keys := c.Keys(ctx, "key:*").Val(); len(keys) != n {
			t.Errorf("KEYS shows %d of %d keys", len(keys), n)
		}
		if size := c.DBSize(ctx).Val(); size != 2*n {
			t.Errorf("DBSIZE is %d, want %d", size, 2*n)
		}
	})
}

func TestToolsCanReadWhatTheServerSaysOfItself(t *testing.T) {
	withGoRedis(t, func(t *testing.T, ctx context.Context, c *goredis.Client) {
		must(t, c.Set(ctx, "k", "v", time.Hour).Err())
		info := c.InfoMap(ctx).Val()
		for section, field := range map[string]string{
			"Server": "redis_version", "Clients": "connected_clients", "Memory": "used_memory", "Persistence": "rdb_last_save_time",
			"Stats": "total_commands_processed", "Replication": "role", "CPU": "used_cpu_user", "Keyspace": "db0", "Ostro": "index_bytes",
		} {
			if info[section][field] == "" {
				t.Errorf("INFO has no %s in section %s", field, section)
			}
		}
		if got := info["Keyspace"]["db0"]; got != "keys=1,expires=1,avg_ttl=0" {
			t.Errorf("keyspace of db0: %q", got)
		}
		if stats := c.Info(ctx, "commandstats").Val(); !slices.Contains(lines(stats), "#Commandstats") {
			t.Errorf("commandstats: %q", stats)
		}
		commands := c.Command(ctx).Val()
		if set := commands["set"]; set == nil || set.Arity != -3 || set.FirstKeyPos != 1 || set.ReadOnly {
			t.Errorf("COMMAND says of SET: %+v", set)
		}
		if list, err := c.ClientList(ctx).Result(); err != nil || len(lines(list)) == 0 {
			t.Errorf("CLIENT LIST: %q, %v", list, err)
		}
		me, err := c.ClientInfo(ctx).Result()
		if err != nil || me.DB != 0 || me.LibName == "" {
			t.Errorf("CLIENT INFO: %+v, %v", me, err)
		}
		must(t, c.ConfigSet(ctx, "slowlog-log-slower-than", "0").Err())
		must(t, c.Echo(ctx, "slow").Err())
		entries, err := c.SlowLogGet(ctx, -1).Result()
		if err != nil || len(entries) == 0 {
			t.Errorf("SLOWLOG GET: %+v, %v", entries, err)
		}
		must(t, c.ConfigSet(ctx, "slowlog-log-slower-than", "10000").Err())
		if now := c.Time(ctx).Val(); time.Since(now).Abs() > time.Minute {
			t.Errorf("TIME: %v", now)
		}
	})
}

func lines(s string) []string { return strings.Fields(strings.ReplaceAll(s, "# ", "#")) }
