package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ostrodb/ostro/bench/workload"
	"github.com/ostrodb/ostro/cluster/meta"
	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/record"
)

// estate is records that one node serves: those whose keys lie in its slots.
type estate struct {
	ids []uint32
}

// keysOf chooses n records that a node serves.
func keysOf(s *meta.Snapshot, node string, n uint64) estate {
	mine := slotsOf(s, node)
	key := make([]byte, workload.Text30.Len())
	workload.Text30.Put(key, 0)
	out := estate{ids: make([]uint32, 0, n)}
	for id := uint32(0); uint64(len(out.ids)) < n; id++ {
		workload.Text30.Patch(key, uint64(id))
		if mine[record.SlotOf(key)] {
			out.ids = append(out.ids, id)
		}
	}
	return out
}

// slotsOf tells which slots a node serves.
func slotsOf(s *meta.Snapshot, node string) (mine [record.PlaceSlots]bool) {
	for _, slots := range s.Map.Slots() {
		if slots.Owners[0] == view.NodeID(node) {
			for i := int(slots.First); i <= int(slots.Last); i++ {
				mine[i] = true
			}
		}
	}
	return mine
}

func (m estate) key(i int) string {
	key := make([]byte, workload.Text30.Len())
	workload.Text30.Put(key, uint64(m.ids[i]))
	return string(key)
}

func (f takeoverFlags) load(ctx context.Context, p *progress, n devNode, mine estate) error {
	value := make([]byte, f.value)
	workload.FillValue(value, 0, 0)
	ring, err := newRequests(workload.Writes, workload.Text30, value, fillPipeline, 1, 0)
	if err != nil {
		return err
	}
	l, err := dialLoad(n.Redis, fillClients, fillPipeline, ring)
	if err != nil {
		return err
	}
	defer l.close()
	at := 0
	_, err = l.run(ctx, 0, func(ids []uint32) int {
		n := copy(ids, mine.ids[at:])
		at += n
		p.set(uint64(at), uint64(len(mine.ids)))
		return n
	})
	return err
}

// askUntilAnswered asks living nodes for a key, as a client does that follows
// redirections, until one has it.
func (c *cluster) askUntilAnswered(ctx context.Context, key string) error {
	addr := c.Nodes[0].Redis
	return poll(ctx, "nobody answers for "+strconv.Quote(key), func() error {
		conn, err := dialControl(addr)
		if err != nil {
			addr = c.Nodes[0].Redis // It pointed to the dead one.
			return err
		}
		defer conn.close()
		got, err := conn.do("GET", key)
		var answer replyError
		if errors.As(err, &answer) && strings.HasPrefix(string(answer), "MOVED ") {
			addr = string(answer[strings.LastIndexByte(string(answer), ' ')+1:])
		}
		if err == nil && got == "" {
			return errors.New("it is missing")
		}
		return err
	})
}

// verify reads every record from whoever serves it.
func (m estate) verify(ctx context.Context, p *progress, s *meta.Snapshot, c *cluster, value int) error {
	done := 0
	for _, n := range c.Nodes {
		mine := slotsOf(s, n.ID)
		var ids []uint32
		for i, id := range m.ids {
			if mine[record.SlotOf([]byte(m.key(i)))] {
				ids = append(ids, id)
			}
		}
		if len(ids) == 0 {
			continue
		}
		if err := verifyIDs(ctx, n.Redis, ids, value); err != nil {
			return fmt.Errorf("%s: %w", n.ID, err)
		}
		done += len(ids)
		p.set(uint64(done), uint64(len(m.ids)))
	}
	if done != len(m.ids) {
		return fmt.Errorf("%d of %d records are served by no node that was started", len(m.ids)-done, len(m.ids))
	}
	return nil
}

// verifyIDs reads records of one node and compares them.
func verifyIDs(ctx context.Context, addr string, ids []uint32, value int) error {
	c, err := dialControl(addr)
	if err != nil {
		return err
	}
	defer c.close()
	key := make([]byte, workload.Text30.Len())
	workload.Text30.Put(key, 0)
	scratch := make([]byte, value)
	for part := range slices.Chunk(ids, 1024) {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		for _, id := range part {
			workload.Text30.Patch(key, uint64(id))
			c.send("GET", string(key))
		}
		if err := c.w.Flush(); err != nil {
			return err
		}
		for _, id := range part {
			got, err := c.receive()
			if err == nil {
				err = workload.CheckValue(got, uint64(id), 0, value, scratch)
			}
			if err != nil {
				return fmt.Errorf("read back: %w", err)
			}
		}
	}
	return nil
}
