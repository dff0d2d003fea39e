package meter

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/ostrodb/ostro/tenant/extension/wasm"
)

// Instructions of tests.
var (
	block = []byte{0x02, 0x40}
	loop  = []byte{0x03, 0x40}
	when  = []byte{0x04, 0x40}
	other = []byte{0x05}
	end   = []byte{0x0b}
)

func get(i byte) []byte  { return []byte{0x20, i} }
func put(i byte) []byte  { return []byte{0x41, 0, 0x21, i} } // i32.const 0, local.set
func br(l byte) []byte   { return []byte{0x0c, l} }
func brIf(l byte) []byte { return []byte{0x20, 0, 0x0d, l} } // local.get 0, br_if
func use(i byte) []byte  { return append(get(i), 0x1a) }     // local.get, drop

// measured goes through a function of 70 locals: two words of a set.
func measured(t *testing.T, parts ...[]byte) *merges {
	t.Helper()
	var body []byte
	for _, p := range parts {
		body = append(body, p...)
	}
	m := &wasm.Module{
		Types: []wasm.FuncType{{}}, Funcs: []uint32{0},
		Code: []wasm.Code{{Locals: []wasm.LocalRun{{N: 70, Type: wasm.I32}}, Body: append(body, 0x0b)}},
	}
	g := &merges{}
	g.begin(70)
	r, in := m.Body(0), wasm.Instr{}
	for r.Next(&in) {
		g.take(m, &in)
	}
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	return g
}

func TestTheEffortIsForWhatIsReadBehindThePlacesWhereBranchesMeet(t *testing.T) {
	// meets is the effort for a place where so many ways meet, with so many values that live, in loops so deep.
	meets := func(ways, values, depth int) int { return ways * (values*values*(1+depth) + 64*values) }
	// passes is the effort for a branch that is not taken, with so many values that live behind it.
	passes := func(values int) int { return 64 * values }
	for what, c := range map[string]struct {
		code [][]byte
		want int
	}{
		"nothing meets":                    {[][]byte{use(1), use(69)}, 0},
		"a block that nobody leaves early": {[][]byte{block, use(1), end, use(2)}, 0},
		"a block's end":                    {[][]byte{block, brIf(0), end, use(1), use(69)}, meets(2, 2, 0) + passes(2)},
		"what is written first":            {[][]byte{block, brIf(0), end, put(1), use(1), use(2)}, meets(2, 1, 0) + passes(1)},
		"nothing is read behind it":        {[][]byte{use(1), block, brIf(0), use(2), end}, passes(1)},
		"an if":                            {[][]byte{get(0), when, put(1), end, use(1)}, meets(2, 1, 0)},
		"an else":                          {[][]byte{get(0), when, put(1), other, put(1), end, use(1)}, meets(2, 1, 0)},
		"code that is never reached":       {[][]byte{block, block, brIf(0), br(1), use(5), end, use(1), end, use(2)}, meets(2, 2, 0) + meets(2, 1, 0) + passes(1)},
		"a loop's beginning":               {[][]byte{loop, use(1), brIf(0), end}, meets(3, 2, 1)},
		"a loop that is left for good":     {[][]byte{loop, use(1), end, use(2)}, meets(2, 2, 1)},
		// What the inner loop's end leads to is read at the beginning of the outer one: the second way back finds it.
		"loops in each other": {[][]byte{loop, use(1), put(1), loop, brIf(0), end, brIf(0), end}, 2*meets(3, 2, 2) + passes(2)},
	} {
		if got := measured(t, c.code...).effort(); got != c.want {
			t.Errorf("%s: %d, want %d", what, got, c.want)
		}
	}
}

func TestCodeThatIsNeverReachedIsNotGoneThroughAgainAndAgain(t *testing.T) {
	trap, back := []byte{0x00}, []byte{0x0f}
	table := []byte{0x41, 0, 0x0e, 1, 0, 0} // i32.const 0, br_table 0 0
	for what, leave := range map[string][]byte{"br": br(0), "br_table": table, "return": back, "unreachable": trap} {
		dead := slices.Repeat(slices.Concat(use(1), brIf(0), leave), 1000)
		with, without := measured(t, loop, use(2), leave, dead, end, use(3)), measured(t, loop, use(2), leave, end, use(3))
		if len(with.steps) != len(without.steps) || with.effort() != without.effort() {
			t.Errorf("behind %s: %d steps and an effort of %d, without %d and %d", what, len(with.steps), with.effort(), len(without.steps), without.effort())
		}
	}
	again := measured(t, block, br(0), end, use(1), block, trap, other, end, use(2))
	if reads(again.steps) != 2 {
		t.Errorf("behind the end of a block code is reached: %v", again.steps)
	}
}

func reads(steps []step) (n int) {
	for _, s := range steps {
		if s.op == wasm.LocalGet {
			n++
		}
	}
	return n
}

func TestAnElseWithoutAnIfHoldsUpNobody(t *testing.T) {
	// The first loop's else would take away what the second one needs, again and again.
	for _, code := range [][][]byte{
		{loop, use(1), other, loop, use(2), brIf(0), end, brIf(0), end},
		{block, other, loop, use(2), brIf(0), end, end},
		{get(0), when, put(1), other, put(2), other, loop, use(3), brIf(0), end, end, use(1)},
		{other, loop, use(1), brIf(0), end},
	} {
		measured(t, code...).effort() // It returns.
	}
}

func TestTheHeightOfTheStackIsKnown(t *testing.T) {
	operand := []byte{0x41, 0}
	add := []byte{0x6a}
	for what, c := range map[string]struct {
		code        [][]byte
		most, below int
	}{
		"operands":      {[][]byte{operand, operand, add, operand, add}, 2, 0},
		"below a block": {[][]byte{operand, operand, block, operand, {0x1a}, end, add}, 3, 2},
		"behind a trap": {[][]byte{operand, block, {0x00}, operand, operand, end, operand, add}, 3, 1},
		"of a vector":   {[][]byte{append([]byte{0xfd, 0x0c}, make([]byte, 16)...), {0x1a}}, 1, 0},
		"after a store": {[][]byte{operand, operand, {0x36, 2, 0}, operand, block, end}, 2, 1},
	} {
		g := measured(t, c.code...)
		if last := g.blocks[len(g.blocks)-1]; g.most != c.most || last.below != c.below {
			t.Errorf("%s: %d at most, %d below the block; want %d and %d", what, g.most, last.below, c.most, c.below)
		}
	}
}

func TestTheExamplesAreFarFromWhatIsRefused(t *testing.T) {
	all, err := filepath.Glob("../../../examples/functions/*.wasm")
	if err != nil || len(all) == 0 {
		t.Fatalf("examples: %v, %v", all, err)
	}
	limits := DefaultLimits()
	limits.Effort /= 20
	limits.Efforts /= 20
	limits.CallSteps /= 20
	limits.CallStepsSum /= 20
	for _, path := range all {
		code, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Rewrite(code, limits); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
}
