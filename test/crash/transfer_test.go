package crash

import (
	"fmt"
	"math/rand/v2"
	"strconv"

	"github.com/ostrodb/ostro/test/harness"
)

const (
	bankDB   = "15"
	accounts = 16
)

// transfer moves money between accounts that others use at the same time, and
// counts its transfers inside the same transactions. Hence its counter tells
// which prefix of its transfers the server holds.
type transfer struct {
	ledger
	halt
	rng   *rand.Rand
	name  string
	based int64
	moves []move // sent since the last look
}

type move struct{ from, to, amount int }

func newTransfer(n int, rng *rand.Rand) *transfer {
	return &transfer{rng: rng, name: "moved:" + strconv.Itoa(n)}
}

func account(n int) string { return "account:" + strconv.Itoa(n) }

func (m *transfer) invent() move {
	mv := move{m.rng.IntN(accounts), m.rng.IntN(accounts), m.rng.IntN(1000)}
	m.moves = append(m.moves, mv)
	m.sent++
	return mv
}

func (m *transfer) run(c *harness.Conn, _ bool) error {
	m.open()
	if _, err := c.Do("SELECT", bankDB); err != nil {
		return nil
	}
	for !m.halted() {
		var broken bool
		var err error
		if m.rng.IntN(4) == 0 {
			broken, err = m.careful(c)
		} else {
			broken, err = m.blind(c, 1+m.rng.IntN(100))
		}
		if broken || err != nil {
			return err
		}
	}
	return nil
}

// blind pipelines transfers that need not know what the accounts hold.
func (m *transfer) blind(c *harness.Conn, batch int) (broken bool, err error) {
	for range batch {
		mv := m.invent()
		by := strconv.Itoa(mv.amount)
		_ = c.Send("MULTI")
		_ = c.Send("DECRBY", account(mv.from), by)
		_ = c.Send("INCRBY", account(mv.to), by)
		_ = c.Send("INCR", m.name)
		_ = c.Send("EXEC")
	}
	if c.Flush() != nil {
		return true, nil
	}
	for range batch {
		for range 4 {
			if _, err := c.Receive(); err != nil {
				return true, hang(err)
			}
		}
		v, err := c.Receive()
		if err != nil {
			return true, hang(err)
		}
		if n := m.acknowledged.Add(1); len(v.Elems) != 3 || v.Elems[2].Int != n {
			return false, fmt.Errorf("transfer %d of %s was answered by %s", n, m.name, harness.Text(v))
		}
	}
	return false, nil
}

// careful reads both accounts and writes them only if nobody else has meanwhile.
func (m *transfer) careful(c *harness.Conn) (broken bool, err error) {
	mv := m.invent()
	if mv.to == mv.from {
		mv.to = (mv.from + 1) % accounts
		m.moves[len(m.moves)-1] = mv
	}
	from, to := account(mv.from), account(mv.to)
	for {
		_ = c.Send("WATCH", from, to)
		_ = c.Send("MGET", from, to)
		if c.Flush() != nil {
			return true, nil
		}
		if _, err := c.Receive(); err != nil {
			return true, hang(err)
		}
		has, err := c.Receive()
		if err != nil {
			return true, hang(err)
		}
		if len(has.Elems) != 2 {
			return false, fmt.Errorf("MGET was answered by %s", harness.Text(has))
		}
		v, err := m.exchange(c, mv, number(has.Elems[0].Text()), number(has.Elems[1].Text()))
		if err != nil {
			return true, hang(err)
		}
		switch {
		case v.IsNull():
			continue // Somebody else was faster.
		case len(v.Elems) == 3 && v.Elems[2].Int == m.acknowledged.Add(1):
			return false, nil
		}
		return false, fmt.Errorf("a watched transfer of %s was answered by %s", m.name, harness.Text(v))
	}
}

func number(s string) int {
	n, _ := strconv.Atoi(s)
	return n
}
