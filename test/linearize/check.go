package linearize

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// limit is how long the search for one object's order may take. Histories
// should be short enough that it never matters.
const limit = 2 * time.Minute

// Check returns nil if every object's history has an order that explains it, and
// else a *Violation of the first that has none.
func Check(ops []Op) error {
	byObject := map[string][]Op{}
	for _, o := range ops {
		byObject[o.Object] = append(byObject[o.Object], o)
	}
	for _, object := range slices.Sorted(maps.Keys(byObject)) {
		if err := checkObject(object, byObject[object]); err != nil {
			return err
		}
	}
	return nil
}

func checkObject(object string, ops []Op) error {
	relevant := prune(ops)
	switch explain(guide(relevant)) {
	case porcupine.Ok:
		return nil
	case porcupine.Unknown:
		return fmt.Errorf("%s: %d operations, %d of them without an answer, could not be ordered within %s: make histories shorter",
			object, len(relevant), unanswered(relevant), limit)
	}
	return &Violation{Object: object, Ops: shortest(relevant)}
}

func explain(ops []Op) porcupine.CheckResult {
	history := make([]porcupine.Operation, len(ops))
	for i, o := range ops {
		history[i] = porcupine.Operation{ClientId: o.Client, Input: o, Call: o.Call, Output: o, Return: o.Return}
	}
	return porcupine.CheckOperationsTimeout(model, history, limit)
}

// prune leaves out what cannot matter: reads without an answer, and writes without an answer
// that nobody ever saw: neither its value, nor, by deleting it, that there was one. Such a write
// may be ordered last of all.
func prune(ops []Op) []Op {
	seen := map[string]bool{}
	for _, o := range ops {
		if o.answered() {
			seen[o.Got] = true
		}
		if o.Act == CAS {
			seen[o.Want] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(ops), func(o Op) bool {
		return !o.answered() && (o.reads() || o.Act == Set && !seen[o.Put] && onlyWhole(ops) && !somethingDeleted(ops))
	})
}

// guide shortens the search for an order of appends: without answers, any number of them could have happened in any
// order. What was read after all that was answered tells which did, and in which.
func guide(ops []Op) []Op {
	last, ok := lastRead(ops)
	if !ok {
		return ops
	}
	guided := slices.DeleteFunc(slices.Clone(ops), func(o Op) bool {
		return !o.answered() && !strings.Contains(last.Got, o.Put) // It may be ordered after that read.
	})
	for i := range guided {
		guided[i].grown = last.Got
	}
	return guided
}

// lastRead is an answered read of an object that only grows, after all else that was answered.
func lastRead(ops []Op) (last Op, ok bool) {
	for _, o := range ops {
		switch {
		case o.Act != Get && o.Act != Append:
			return last, false
		case o.Act == Get && o.answered() && (!ok || o.Call > last.Call):
			last, ok = o, true
		}
	}
	return last, ok && !slices.ContainsFunc(ops, func(o Op) bool {
		return o != last && o.answered() && o.Return >= last.Call
	})
}

// onlyWhole tells whether all values of an object are written as a whole: then a value that
// was there was written as such.
func onlyWhole(ops []Op) bool {
	return !slices.ContainsFunc(ops, func(o Op) bool { return o.Act == Append || o.Act == Add })
}

// somethingDeleted tells whether somebody learnt that there was a value, and not which.
func somethingDeleted(ops []Op) bool {
	return slices.ContainsFunc(ops, func(o Op) bool { return o.Act == Delete && o.answered() && o.Found })
}

func unanswered(ops []Op) (n int) {
	for _, o := range ops {
		if !o.answered() {
			n++
		}
	}
	return n
}

// shortest is the shortest beginning of a history that has no order. It ends with
// the first answer that cannot be: without it all is explained.
func shortest(ops []Op) []Op {
	var ends []int64
	for _, o := range ops {
		if o.answered() {
			ends = append(ends, o.Return)
		}
	}
	slices.Sort(ends)
	// What has no order has none with more operations either.
	i, _ := slices.BinarySearchFunc(ends, true, func(end int64, _ bool) int {
		if explain(until(ops, end)) == porcupine.Illegal {
			return 1
		}
		return -1
	})
	if i == len(ends) {
		return ops
	}
	return until(ops, ends[i])
}

// until is what was known at a moment: later operations had not begun, and those in between
// had no answer.
func until(ops []Op, end int64) []Op {
	var known []Op
	for _, o := range ops {
		if o.Call > end {
			continue
		}
		if o.Return > end {
			o.Return, o.Got, o.Found = Never, "", false
		}
		known = append(known, o)
	}
	return prune(known)
}
