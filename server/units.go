package server

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Size is a number of bytes that people write as 512MiB or 2GB.
//
// As in a redis.conf, "kb", "mb", "gb" and "tb" are powers of 1024 (and so are
// "KiB" to "TiB"), while the bare letters "k", "m", "g" and "t" are powers of
// 1000. Case does not matter.
type Size int64

var sizeUnits = []struct {
	suffix string
	bytes  int64
}{
	// Longer suffixes stand first: "mib" ends in "b".
	{"kib", 1 << 10},
	{"mib", 1 << 20},
	{"gib", 1 << 30},
	{"tib", 1 << 40},
	{"kb", 1 << 10},
	{"mb", 1 << 20},
	{"gb", 1 << 30},
	{"tb", 1 << 40},
	{"k", 1e3},
	{"m", 1e6},
	{"g", 1e9},
	{"t", 1e12},
	{"b", 1},
	{"", 1},
}

// ParseSize reads "512MiB", "2gb", "1.5g" or a plain number of bytes.
func ParseSize(s string) (Size, error) {
	text := strings.ToLower(strings.TrimSpace(s))
	for _, unit := range sizeUnits {
		number, ok := strings.CutSuffix(text, unit.suffix)
		if !ok {
			continue
		}
		n, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
		if err != nil || math.IsNaN(n) || n < 0 || n*float64(unit.bytes) >= math.MaxInt64 {
			break
		}
		return Size(n * float64(unit.bytes)), nil
	}
	return 0, fmt.Errorf("%q is not a size; write it like 512MiB or 2GB", s)
}

// String writes a size so that ParseSize reads the same one back.
func (s Size) String() string {
	for _, unit := range []struct {
		suffix string
		bytes  Size
	}{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}} {
		if s != 0 && s%unit.bytes == 0 {
			return fmt.Sprintf("%d%s", s/unit.bytes, unit.suffix)
		}
	}
	return strconv.FormatInt(int64(s), 10)
}

// Short writes a size for eyes: three digits and a unit.
func (s Size) Short() string {
	value, unit := float64(s), 0
	for value >= 1000 && unit < 5 {
		value, unit = value/1024, unit+1
	}
	suffix := [...]string{"B", "KiB", "MiB", "GiB", "TiB", "PiB"}[unit]
	if unit == 0 || value >= 100 {
		return fmt.Sprintf("%.0f %s", value, suffix)
	}
	return fmt.Sprintf("%.1f %s", value, suffix)
}

// Budget is an amount of memory: either bytes or a part of what the machine
// (or the container) has.
type Budget struct {
	Bytes   Size
	Percent int // used when Bytes is 0
}

// ParseBudget reads a size or a percentage such as "75%".
func ParseBudget(s string) (Budget, error) {
	number, ok := strings.CutSuffix(strings.TrimSpace(s), "%")
	if !ok {
		bytes, err := ParseSize(s)
		if err == nil && bytes == 0 {
			err = fmt.Errorf("%q is no budget; give a size such as 2GB or a share of memory such as 75%%", s)
		}
		return Budget{Bytes: bytes}, err
	}
	percent, err := strconv.Atoi(strings.TrimSpace(number))
	if err != nil || percent < 1 || percent > 100 {
		return Budget{}, fmt.Errorf("%q is not a share of memory; write 1%% to 100%%", s)
	}
	return Budget{Percent: percent}, nil
}

func (b Budget) String() string {
	if b.Bytes != 0 {
		return b.Bytes.String()
	}
	return strconv.Itoa(b.Percent) + "%"
}

// Of resolves the budget against the memory there is.
func (b Budget) Of(total Size) Size {
	if b.Bytes != 0 {
		return b.Bytes
	}
	return Size(float64(total) / 100 * float64(b.Percent))
}
