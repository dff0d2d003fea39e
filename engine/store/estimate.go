package store

import (
	"math/rand/v2"

	"github.com/ostrodb/ostro/engine/index"
	"github.com/ostrodb/ostro/engine/record"
)

// estimateDraws is how many records an estimate looks at: it is right within a few percent of all.
const estimateDraws = 1024

// Estimate tells about how many records the store has in some places, and how many bytes of its log they take. It
// draws some of all records, however they are spread.
func (st *Store) Estimate(ranges []Range) (records, bytes int64) {
	ss, err := st.NewSession()
	if err != nil {
		return 0, 0
	}
	defer ss.Close()
	drawn, there := ss.draw(ranges, estimateDraws)
	if drawn == 0 {
		return 0, 0
	}
	share := float64(there) / float64(drawn)
	return int64(share * float64(st.ix.Len())), int64(share * float64(st.Metrics().LiveBytes))
}

// draw draws records, and counts those in some places.
func (ss *Session) draw(ranges []Range, n int) (drawn, there int) {
	ss.Begin()
	defer ss.End()
	for range n {
		var pr index.Probe
		if !ss.ix.Random(rand.Uint64(), &pr) {
			return drawn, there
		}
		drawn++
		there += b2i(anyHas(ranges, pr.Place()))
	}
	return drawn, there
}

// surveyRun is how many records are drawn before others may do what has to wait for all who look.
const surveyRun = 256

// Survey draws n records, and tells of each in which place it is, and about how many bytes of the log it takes: one that is
// not in memory, as many as all do on average.
func (st *Store) Survey(n int, tell func(p record.Place, bytes int64)) {
	ss, err := st.NewSession()
	if err != nil {
		return
	}
	defer ss.Close()
	usual := st.Metrics().LiveBytes / max(1, int64(st.ix.Len()))
	for ; n > 0; n -= surveyRun {
		if !ss.survey(min(n, surveyRun), usual, tell) {
			return
		}
	}
}

func (ss *Session) survey(n int, usual int64, tell func(p record.Place, bytes int64)) bool {
	ss.Begin()
	defer ss.End()
	for range n {
		var pr index.Probe
		if !ss.ix.Random(rand.Uint64(), &pr) {
			return false
		}
		bytes := usual
		if p := ss.log.See(pr.Address()).Entry(); !p.IsNil() {
			bytes = int64(p.Length())
		}
		tell(pr.Place(), bytes)
	}
	return true
}
