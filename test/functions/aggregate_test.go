package functions

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"
)

func TestAggregateSumsAFieldOfTheRecordsThatAListNames(t *testing.T) {
	g := newExample(t, "aggregate")
	for _, n := range []int{0, 1, 4, 33, 5000} {
		list, sums := "", [2]int64{}
		for i := range n {
			key := fmt.Sprintf("record-%023d", i)
			record := make([]byte, 100)
			for field := range sums {
				number := rand.Int64() - rand.Int64()
				binary.LittleEndian.PutUint64(record[50*field:], uint64(number))
				sums[field] += number
			}
			g.data[key] = string(record)
			list += key
		}
		g.data["list"] = list
		if got := g.call(t, "aggregate", "list"); got != fmt.Sprint(sums[0]) {
			t.Fatalf("%d records: %s, want %d", n, got, sums[0])
		}
		if got := g.call(t, "aggregate", "list", 30, 50); got != fmt.Sprint(sums[1]) {
			t.Fatalf("%d records, field at 50: %s, want %d", n, got, sums[1])
		}
	}
}

func TestAggregateRefusesToGiveAWrongSum(t *testing.T) {
	g := newExample(t, "aggregate")
	g.data["list"] = "k1k2"
	g.data["k1"] = "12345678"
	g.refused(t, 1, "aggregate", "other", 2)
	g.refused(t, 2, "aggregate", "list", 3)
	g.refused(t, 2, "aggregate", "list", 0)
	g.refused(t, 3, "aggregate", "list", 2)
	g.data["k2"] = "1234567"
	g.refused(t, 4, "aggregate", "list", 2)
	g.data["k2"] = "12345678"
	g.refused(t, 4, "aggregate", "list", 2, 1)
	g.refused(t, 4, "aggregate", "list", 2, -1)
	g.refused(t, 241, "aggregate", "list", "two")
	g.refused(t, 241, "aggregate", "")
}
