package view

import "github.com/ostrodb/ostro/engine/record"

// Share is about a fraction of the set, above 0 and up to 1, from its end on. It is cut where a slot
// begins if one begins near enough, so that Redis Cluster clients can follow, else within a slot.
func (s Ranges) Share(fraction float64) Ranges {
	switch {
	case fraction >= 1:
		return s
	case !(fraction > 0): // Nor is it a number, perhaps.
		return nil
	}
	wanted, taken := s.Fraction()*fraction, s.lastSlots(fraction)
	sum, near := taken.Fraction(), wanted/8
	if len(taken) > 0 && !taken.Equal(s) && sum > wanted-near && sum < wanted+near {
		return taken
	}
	return s.lastPlaces(fraction)
}

// lastSlots is what comes nearest to a fraction of the set, from its end on, without a cut within a slot; it may be nothing.
func (s Ranges) lastSlots(fraction float64) Ranges {
	wanted, pieces := s.Fraction()*fraction, s.AtSlots()
	var taken []Range
	sum := 0.0
	for i := len(pieces) - 1; i >= 0; i-- {
		size := pieces[i].Fraction()
		if sum+size/2 > wanted {
			break // It is nearer without this one.
		}
		taken, sum = append(taken, pieces[i]), sum+size
	}
	return RangesOf(taken...)
}

// lastPlaces is a fraction of the set, cut wherever it ends; one place at least.
func (s Ranges) lastPlaces(fraction float64) Ranges {
	wanted := s.Fraction() * fraction
	var taken []Range
	for i := len(s) - 1; i >= 0; i-- {
		if size := s[i].Fraction(); size <= wanted {
			taken, wanted = append(taken, s[i]), wanted-size
			continue
		}
		width := record.Place(wanted * 0x1p64)
		if width > 0 || len(taken) == 0 {
			taken = append(taken, Range{s[i].Last - max(width, 1) + 1, s[i].Last})
		}
		break
	}
	return RangesOf(taken...)
}

// Join plans how a node gets as much as its fellows have: those that have more than all would have in
// equal parts give of that, in proportion and in whole slots. Without a move the node has its share already.
func (m Map) Join(to NodeID, fellows ...NodeID) []Move {
	fair := 1 / float64(len(fellows)+1)
	missing := fair - m.Ranges(to).Fraction()
	over, sum := map[NodeID]float64{}, 0.0
	for _, n := range fellows {
		if more := m.Ranges(n).Fraction() - fair; n != to && more > 0 {
			over[n] = more
			sum += more
		}
	}
	if missing < fair/8 || sum < fair/8 {
		return nil // It is not worth the moving.
	}
	var moves []Move
	for _, n := range fellows {
		if more := over[n]; more > 0 {
			has := m.Ranges(n)
			give := min(more, missing*more/sum) / has.Fraction()
			if some := has.lastSlots(give); len(some) > 0 {
				moves = append(moves, Move{some, n, to})
			}
		}
	}
	return moves
}
