package meta

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Pace bounds how fast somebody may bring bytes: so many at once, and so many a second from then on.
type Pace struct{ Burst, Rate int64 }

// Payer is who brings something to an archive.
type Payer struct {
	Name string
	Pace Pace
	// Shares is for those who have a common pace, too. One that has brought little of late need not wait for the others.
	Shares bool
}

const (
	archivePace = "pace/" // NAME: what a payer has left
	paceOfAll   = "~all"

	// littleBytes is what a payer may always bring: many who bring much cannot keep one out who does not.
	littleBytes = 8 << 20
	// compactBytes is after how much etcd forgets what was replaced. It frees the room of the past for what comes.
	compactBytes = 64 << 20
	// paceTries is how often a payer tries while others pay.
	paceTries = 50
)

// commonPace is of all together who share one.
var commonPace = Pace{Burst: 256 << 20, Rate: 1 << 20}

// TooFastError says when to try again.
type TooFastError struct {
	Pace     Pace
	All      bool // it is the pace of all together
	Operator bool // it is of who shares none
	After    time.Duration
}

func (e *TooFastError) Error() string {
	who := "a tenant may"
	switch {
	case e.All:
		who = "all tenants together may"
	case e.Operator:
		who = "the operator may"
	}
	return fmt.Sprintf("too much code is installed: %s bring %d MiB to the cluster at once, and %d KiB a second from then on; try again in %d s",
		who, e.Pace.Burst>>20, e.Pace.Rate>>10, int64((e.After+time.Second-1)/time.Second))
}

// bucket is what is left of a pace at some time. None is a full one.
type bucket struct {
	Left    int64 `json:"left"`              // less than 0: owed
	At      int64 `json:"at"`                // in milliseconds; by the clock that is ahead of the others'
	Written int64 `json:"written,omitempty"` // by all, since etcd has forgotten the past
}

func (b *bucket) fill(p Pace, now int64) {
	if b.At == 0 {
		b.Left, b.At = p.Burst, now
	}
	if past := now - b.At; past > 0 {
		b.At = now
		b.Left = min(p.Burst, b.Left+int64(float64(past)/1000*float64(p.Rate)))
	}
}

// take refuses what is more than there is. Who has a full bucket may take more than that, and owes it.
func (b *bucket) take(p Pace, bytes int64) *TooFastError {
	if lacks := min(bytes, p.Burst) - b.Left; lacks > 0 {
		return &TooFastError{Pace: p, After: time.Duration(float64(lacks) / float64(p.Rate) * float64(time.Second))}
	}
	b.Left -= bytes
	return nil
}

// charge has a payer pay for bytes before they are brought. *TooFastError: not now.
func (a *Archive) charge(ctx context.Context, p Payer, bytes int64) error {
	for range paceTries {
		done, err := a.chargeOnce(ctx, p, bytes, time.Now().UnixMilli())
		if done || err != nil {
			return err
		}
		pause(ctx, rand.N(20*time.Millisecond))
	}
	return errors.New("others change functions all the time: try again")
}

func (a *Archive) chargeOnce(ctx context.Context, p Payer, bytes, now int64) (done bool, err error) {
	own, all := a.prefix+archivePace+p.Name, a.prefix+archivePace+paceOfAll
	resp, err := a.s.client.Txn(ctx).Then(clientv3.OpGet(own), clientv3.OpGet(all)).Commit()
	if err != nil {
		return false, fmt.Errorf("read %s from etcd: %w", own, err)
	}
	var buckets [2]bucket
	var revisions [2]int64
	for i := range buckets {
		if kvs := resp.Responses[i].GetResponseRange().Kvs; len(kvs) > 0 {
			revisions[i] = kvs[0].ModRevision
			if err := json.Unmarshal(kvs[0].Value, &buckets[i]); err != nil {
				return false, fmt.Errorf("%s in etcd makes no sense: %w", kvs[0].Key, err)
			}
		}
	}
	if err := pay(&buckets[0], &buckets[1], p, bytes, now); err != nil {
		return false, err
	}
	forget := buckets[1].Written >= compactBytes
	if forget {
		buckets[1].Written = 0
	}
	c := change{a: a}
	for i, key := range []string{own, all} {
		text, err := json.Marshal(buckets[i])
		if err != nil {
			return false, err
		}
		c.replace(key, revisions[i], clientv3.OpPut(key, string(text)))
	}
	done, _, err = a.s.kv.commit(ctx, c.ifs, c.ops)
	if err != nil {
		return false, fmt.Errorf("write %s to etcd: %w", own, err)
	}
	if done && forget {
		a.s.compact(ctx, resp.Header.Revision)
	}
	return done, nil
}

// pay takes bytes from a payer's own bucket and the common one, or from none.
func pay(own, all *bucket, p Payer, bytes, now int64) error {
	own.fill(p.Pace, now)
	all.fill(commonPace, now)
	little := p.Pace.Burst-own.Left+bytes <= littleBytes
	if late := own.take(p.Pace, bytes); late != nil {
		late.Operator = !p.Shares
		return late
	}
	all.Written += bytes
	switch {
	case !p.Shares:
	case little:
		all.Left -= bytes
	default:
		if late := all.take(commonPace, bytes); late != nil {
			late.All = true
			return late
		}
	}
	return nil
}

// sweepPaces removes buckets that are full again, by any pace: who has none has a full one.
func (a *Archive) sweepPaces(ctx context.Context, now int64) error {
	prefix := a.prefix + archivePace
	resp, err := a.s.client.Get(ctx, prefix, clientv3.WithPrefix())
	if err != nil {
		return fmt.Errorf("read %s from etcd: %w", prefix, err)
	}
	for _, kv := range resp.Kvs {
		var b bucket
		if json.Unmarshal(kv.Value, &b) != nil || b.Written > 0 || now-b.At < fullAfter.Milliseconds() || b.Left < 0 {
			continue
		}
		same := clientv3.Compare(clientv3.ModRevision(string(kv.Key)), "=", kv.ModRevision)
		if _, _, err := a.s.kv.commit(ctx, []clientv3.Cmp{same}, []clientv3.Op{clientv3.OpDelete(string(kv.Key))}); err != nil {
			return fmt.Errorf("remove %s from etcd: %w", kv.Key, err)
		}
	}
	return nil
}

// fullAfter is when every bucket that owes nothing is full again.
const fullAfter = time.Hour
