package linearize_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ostrodb/ostro/test/linearize"
)

// op is an operation of a script: from and to are moments, to is 0 if no answer came.
func op(from, to int64, o linearize.Op) linearize.Op {
	o.Object, o.Call, o.Return = "x", from, to
	if to == 0 {
		o.Return = linearize.Never
	}
	return o
}

func get(from, to int64, got string) linearize.Op {
	return op(from, to, linearize.Op{Act: linearize.Get, Got: got, Found: got != ""})
}

func set(from, to int64, put string) linearize.Op {
	return op(from, to, linearize.Op{Act: linearize.Set, Put: put})
}

func cas(from, to int64, want, put string) linearize.Op {
	return op(from, to, linearize.Op{Act: linearize.CAS, Want: want, WantNone: want == "", Put: put})
}

func swap(from, to int64, put, got string) linearize.Op {
	return op(from, to, linearize.Op{Act: linearize.Swap, Put: put, Got: got, Found: got != ""})
}

func add(from, to int64, by int64, got string) linearize.Op {
	return op(from, to, linearize.Op{Act: linearize.Add, Amount: by, Got: got})
}

func appended(from, to int64, put string, length int) linearize.Op {
	return op(from, to, linearize.Op{Act: linearize.Append, Put: put, Got: strconv.Itoa(length)})
}

func remove(from, to int64, found bool) linearize.Op {
	return op(from, to, linearize.Op{Act: linearize.Delete, Found: found})
}

func transfer(from, to int64, a, b int, amount int64, got string) linearize.Op {
	return op(from, to, linearize.Op{Act: linearize.Transfer, From: a, To: b, Amount: amount, Got: got})
}

func balances(from, to int64, got string) linearize.Op {
	return op(from, to, linearize.Op{Act: linearize.Balances, Got: got})
}

type ops []linearize.Op

func TestHistoriesThatAnOrderExplainsPass(t *testing.T) {
	for name, history := range map[string]ops{
		"nothing is there at first":                      {get(1, 2, "")},
		"one after the other":                            {set(1, 2, "a"), get(3, 4, "a"), set(5, 6, "b"), get(7, 8, "b")},
		"reads beside a write see either":                {set(1, 2, "a"), set(3, 9, "b"), get(4, 5, "a"), get(6, 7, "b")},
		"a lost write was never":                         {set(1, 2, "a"), set(3, 0, "b"), get(4, 5, "a")},
		"a lost write happens much later":                {set(1, 2, "a"), set(3, 0, "b"), get(4, 5, "a"), get(6, 7, "b")},
		"a lost write overtakes an answered one":         {set(1, 0, "a"), set(2, 3, "b"), get(4, 5, "b"), get(6, 7, "a")},
		"a lost compare and set":                         {set(1, 2, "a"), cas(3, 0, "a", "b"), get(4, 5, "b")},
		"a lost compare and set that came too late":      {set(1, 2, "a"), cas(3, 0, "a", "b"), set(4, 5, "c"), get(6, 7, "c")},
		"a lost delete":                                  {set(1, 2, "a"), remove(3, 0, false), get(4, 5, "a"), get(6, 7, "")},
		"a lost write that only a delete met":            {set(1, 2, "a"), remove(3, 4, true), set(5, 0, "b"), remove(6, 7, true), get(8, 9, "")},
		"compare and set on nothing":                     {cas(1, 2, "", "a"), get(3, 4, "a")},
		"swaps form a chain":                             {swap(1, 9, "a", ""), swap(1, 9, "b", "a"), swap(1, 9, "c", "b"), get(10, 11, "c")},
		"counters":                                       {add(1, 5, 1, "2"), add(1, 5, 1, "1"), get(6, 7, "2")},
		"a lost addition counts once it is seen":         {add(1, 0, 1, ""), add(2, 3, 1, "1"), add(4, 5, 1, "3")},
		"appends at once come in some order":             {appended(1, 9, "ab", 4), appended(1, 9, "cd", 2), get(10, 11, "cdab")},
		"a lost append lands between others":             {appended(1, 0, "ab", 0), appended(2, 3, "cd", 2), appended(4, 5, "ef", 6), get(6, 7, "cdabef")},
		"transfers move money":                           {transfer(1, 2, 0, 1, 5, "-5 5"), balances(3, 4, "-5 5 0"), transfer(5, 6, 1, 2, 5, "0 5"), balances(7, 8, "-5 0 5")},
		"a lost transfer is seen whole":                  {transfer(1, 0, 0, 1, 5, ""), balances(3, 4, "0 0 0"), balances(5, 6, "-5 5 0")},
		"a read without an answer says nothing":          {set(1, 2, "a"), get(3, 0, "")},
		"values that were appended are not written anew": {set(1, 0, "a"), appended(2, 3, "b", 2), get(4, 5, "ab")},
	} {
		if err := linearize.Check(history); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestHistoriesThatNoOrderExplainsFail(t *testing.T) {
	for name, history := range map[string]ops{
		"an acknowledged write is lost":           {set(1, 2, "a"), get(3, 4, "")},
		"a stale read":                            {set(1, 2, "a"), set(3, 4, "b"), get(5, 6, "a")},
		"a value that nobody wrote":               {set(1, 2, "a"), get(3, 4, "z")},
		"a value flips back":                      {set(1, 2, "a"), set(3, 9, "b"), get(4, 5, "b"), get(6, 7, "a")},
		"a lost write comes and goes":             {set(1, 2, "a"), set(3, 0, "b"), get(4, 5, "b"), get(6, 7, "a")},
		"a lost write comes before its call":      {get(1, 2, "a"), set(3, 0, "a")},
		"two compare and sets win":                {set(1, 2, "a"), cas(3, 9, "a", "b"), cas(3, 9, "a", "c")},
		"compare and set against a newer value":   {set(1, 2, "a"), set(3, 4, "b"), cas(5, 6, "a", "c")},
		"a swap misses a write":                   {set(1, 2, "a"), swap(3, 4, "b", "")},
		"a deleted value comes back":              {set(1, 2, "a"), remove(3, 4, true), get(5, 6, "a")},
		"a delete of something finds nothing":     {set(1, 2, "a"), remove(3, 4, false)},
		"two additions give the same sum":         {add(1, 9, 1, "1"), add(1, 9, 1, "1")},
		"an addition is lost":                     {add(1, 2, 1, "1"), add(3, 4, 1, "1")},
		"a lost addition counts twice":            {add(1, 0, 1, ""), add(2, 3, 1, "3")},
		"an append is lost":                       {appended(1, 2, "ab", 2), get(3, 4, "")},
		"an append happens twice":                 {appended(1, 0, "ab", 0), get(3, 4, "abab")},
		"half a transfer is seen":                 {transfer(1, 0, 0, 1, 5, ""), balances(3, 4, "-5 0 0")},
		"a transfer is undone":                    {transfer(1, 2, 0, 1, 5, "-5 5"), balances(3, 4, "0 0 0")},
		"a transfer without the one it builds on": {transfer(1, 2, 0, 1, 5, "-5 5"), transfer(3, 4, 1, 2, 5, "-5 5")},
	} {
		var v *linearize.Violation
		if err := linearize.Check(history); !errors.As(err, &v) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// None of them had happened when nothing was there at last.
func TestManyAppendsWithoutAnAnswerAndNothingThereAtLast(t *testing.T) {
	var history ops
	for i := range 14 {
		history = append(history, appended(1, 0, fmt.Sprintf("%c;", 'a'+i), 0))
	}
	if err := linearize.Check(append(history, get(10, 11, ""))); err != nil {
		t.Fatal(err)
	}
	var v *linearize.Violation
	few := append(slices.Clone(history[:4]), appended(2, 3, "x;", 2), get(10, 11, ""))
	if err := linearize.Check(few); !errors.As(err, &v) {
		t.Fatal(err)
	}
}

// Any of them may have happened, in any order: too many to try.
func TestManyAppendsWithoutAnAnswerAreOrderedByWhatWasReadAtLast(t *testing.T) {
	var history ops
	for i := range 14 {
		history = append(history, appended(1, 0, fmt.Sprintf("%c;", 'a'+i), 0))
	}
	history = append(history, appended(2, 3, "x;", 2), appended(4, 5, "y;", 8), get(10, 11, "x;k;c;y;a;b;"))
	if err := linearize.Check(history); err != nil {
		t.Fatal(err)
	}
	few := append(slices.Clone(history[:4]), history[14], history[15], get(10, 11, "x;c;a;b;")) // y is not there.
	var v *linearize.Violation
	if err := linearize.Check(few); !errors.As(err, &v) {
		t.Fatal(err)
	}
}

func TestObjectsAreIndependent(t *testing.T) {
	a, b := set(1, 2, "a"), get(3, 4, "")
	b.Object = "y"
	if err := linearize.Check(ops{a, b}); err != nil {
		t.Fatal(err)
	}
}

func TestAViolationIsToldUpToTheFirstAnswerThatCannotBe(t *testing.T) {
	history := ops{set(1, 2, "first"), set(3, 0, "lost"), set(4, 5, "second"), get(6, 7, "first"), set(8, 9, "later"), get(10, 11, "first"), get(12, 13, "lost")}
	err := linearize.Check(history)
	if err == nil {
		t.Fatal("a stale read was explained")
	}
	for line := range strings.Lines(err.Error()) {
		if strings.Contains(line, "cannot be") && !strings.Contains(line, "GET -> first") {
			t.Errorf("the wrong answer is blamed:\n%s", err)
		}
	}
	if text := err.Error(); !strings.Contains(text, "cannot be") || strings.Contains(text, "later") {
		t.Errorf("the history is not cut where it ceases to make sense:\n%s", err)
	}
}

func TestHistoriesOfATrueRegisterPassAndThoseOfAForgetfulOneFail(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for n := range 200 {
		if err := linearize.Check(play(rng, false)); err != nil {
			t.Fatalf("history %d: %v", n, err)
		}
		if linearize.Check(play(rng, true)) == nil {
			t.Fatalf("history %d: a lost write was explained", n)
		}
	}
}

// play makes a history whose operations take effect within their time. A forgetful
// register has lost the last write and shows the one before it.
func play(rng *rand.Rand, forgetful bool) (history ops) {
	value, answered, now := "", "", int64(0)
	var pending func()
	for i := range 30 {
		now += 10
		from, to := now-rng.Int64N(9), now+rng.Int64N(9)
		put := fmt.Sprint("v", i)
		switch rng.IntN(5) {
		case 0: // Lost, and it happens a little later, if ever.
			history = append(history, set(from, 0, put))
			if rng.IntN(2) == 0 {
				pending = func() { value = put }
			}
		case 1:
			history, value, answered = append(history, swap(from, to, put, value)), put, put
		case 2:
			history, value, answered = append(history, cas(from, to, value, put)), put, put
		case 3:
			history = append(history, get(from, to, value))
		case 4:
			history, value, answered = append(history, set(from, to, put)), put, put
		}
		if pending != nil && rng.IntN(3) == 0 {
			pending()
			pending = nil
		}
	}
	history = append(history, set(now+20, now+21, "last"))
	if !forgetful {
		answered = "last"
	}
	return append(history, get(now+30, now+31, answered))
}
