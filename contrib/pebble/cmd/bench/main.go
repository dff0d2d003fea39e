// Bench measures updates of a replicated Pebble, with busy replicas and without.
package main

import (
	"github.com/ostrodb/ostro/bench/casestudy"
	"github.com/ostrodb/ostro/contrib/pebble/internal/study"
)

func main() {
	casestudy.Main(study.Study())
	casestudy.Bench(study.Study())
}
