package crash

import (
	"fmt"
	"maps"
	"strconv"
	"strings"

	"github.com/ostrodb/ostro/test/harness"
	"github.com/ostrodb/ostro/wire/resp"
)

// exchange writes both accounts of a watched transfer, and returns EXEC's answer.
func (m *transfer) exchange(c *harness.Conn, mv move, from, to int) (resp.Value, error) {
	_ = c.Send("MULTI")
	_ = c.Send("SET", account(mv.from), strconv.Itoa(from-mv.amount))
	_ = c.Send("SET", account(mv.to), strconv.Itoa(to+mv.amount))
	_ = c.Send("INCR", m.name)
	_ = c.Send("EXEC")
	if err := c.Flush(); err != nil {
		return resp.Value{}, err
	}
	for range 4 {
		if _, err := c.Receive(); err != nil {
			return resp.Value{}, err
		}
	}
	return c.Receive()
}

// bank is what the accounts held when they were last looked at.
type bank struct {
	held  map[string]int
	users []*transfer
}

// verify looks whether every account holds what the transfers that are there
// have moved, and that none that must be there is missing.
func (b *bank) verify(c *harness.Conn, logged bool) error {
	d, err := readAll(c, bankDB)
	if err != nil {
		return err
	}
	if d.size != int64(len(d.keys)) {
		return fmt.Errorf("the bank: DBSIZE says %d, SCAN finds %d", d.size, len(d.keys))
	}
	want := maps.Clone(b.held)
	for _, u := range b.users {
		n := int64(number(d.keys[u.name].value))
		if n < u.least(logged) || n > u.sent {
			return fmt.Errorf("%s is %d: %d transfers must be there, %d were sent", u.name, n, u.least(logged), u.sent)
		}
		for _, mv := range u.moves[:n-u.based] {
			want[account(mv.from)] -= mv.amount
			want[account(mv.to)] += mv.amount
		}
		want[u.name] = int(n)
	}
	return b.compare(want, d)
}

func (b *bank) compare(want map[string]int, d dump) error {
	var wrong []string
	for k, n := range want {
		if got := number(d.keys[k].value); got != n {
			wrong = append(wrong, fmt.Sprintf("%s holds %d instead of %d", k, got, n))
		}
	}
	for k := range d.keys {
		if _, ok := want[k]; !ok {
			wrong = append(wrong, k+" was never written")
		}
	}
	if len(wrong) > 0 {
		return fmt.Errorf("the bank: transactions are there by half: %s", strings.Join(wrong, ", "))
	}
	b.held = want
	for _, u := range b.users {
		n := int64(want[u.name])
		u.moves, u.based = nil, n
		u.settled(n)
	}
	return nil
}
