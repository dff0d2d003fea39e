package redis

// lcsTable holds the length of the longest common subsequence of every pair of
// prefixes of a and b, row by row.
type lcsTable struct {
	a, b    []byte
	lengths []uint32
}

// lcsTableBytes is what the table of two strings takes.
func lcsTableBytes(a, b []byte) int64 {
	return lcsCells(a, b) * 4
}

func newLCSTable(a, b []byte) *lcsTable {
	t := &lcsTable{a: a, b: b, lengths: make([]uint32, (len(a)+1)*(len(b)+1))}
	width := len(b) + 1
	for i := range a {
		above := t.lengths[i*width : (i+1)*width]
		row := t.lengths[(i+1)*width : (i+2)*width]
		for j := range b {
			if a[i] == b[j] {
				row[j+1] = above[j] + 1
			} else {
				row[j+1] = max(above[j+1], row[j])
			}
		}
	}
	return t
}

func (t *lcsTable) at(i, j int) uint32 { return t.lengths[i*(len(t.b)+1)+j] }

func (t *lcsTable) length() int { return int(t.at(len(t.a), len(t.b))) }

// lcsCells is how many lengths the table of two strings has.
func lcsCells(a, b []byte) int64 { return int64(len(a)+1) * int64(len(b)+1) }

// lcsResult is what LCS has found: the length, and if they were asked for the bytes and their runs.
type lcsResult struct {
	length int
	common []byte
	runs   []lcsMatch
}

// solveLCS finds the longest common subsequence.
func solveLCS(a, b []byte, onlyLength bool) lcsResult {
	t := newLCSTable(a, b)
	r := lcsResult{length: t.length()}
	if !onlyLength {
		r.common, r.runs = t.walk()
	}
	return r
}

// lcsMatch is a run of bytes common to both strings: where it begins in each,
// and how long it is.
type lcsMatch struct{ a, b, length int }

// walk goes back from the table's far corner along the subsequence that Redis
// picks and returns it, with its runs from last to first.
func (t *lcsTable) walk() (common []byte, runs []lcsMatch) {
	common = make([]byte, t.length())
	end := len(common)
	var run lcsMatch
	emit := func() {
		if run.length > 0 {
			runs = append(runs, run)
			run = lcsMatch{}
		}
	}
	for i, j := len(t.a), len(t.b); i > 0 && j > 0; {
		if t.a[i-1] != t.b[j-1] {
			emit()
			if t.at(i-1, j) > t.at(i, j-1) {
				i--
			} else {
				j--
			}
			continue
		}
		i, j, end = i-1, j-1, end-1
		common[end] = t.a[i]
		run = lcsMatch{a: i, b: j, length: run.length + 1}
	}
	emit()
	return common, runs
}
