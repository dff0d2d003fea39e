// Bench measures updates of a replicated bbolt, with busy replicas and without.
package main

import (
	"github.com/ostrodb/ostro/bench/casestudy"
	"github.com/ostrodb/ostro/contrib/bbolt/internal/study"
)

func main() {
	casestudy.Main(study.Study())
	casestudy.Bench(study.Study())
}
