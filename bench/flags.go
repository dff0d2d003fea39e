package bench

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// count is a number that people write as 10M or 200k.
type count uint64

func (c count) String() string {
	switch {
	case c >= 1e6 && c%1e6 == 0:
		return strconv.FormatUint(uint64(c/1e6), 10) + "M"
	case c >= 1e3 && c%1e3 == 0:
		return strconv.FormatUint(uint64(c/1e3), 10) + "k"
	}
	return strconv.FormatUint(uint64(c), 10)
}

// Set and Type make a count a flag.
func (c *count) Set(s string) error {
	number, unit := strings.TrimSpace(s), 1.0
	for suffix, u := range map[string]float64{"k": 1e3, "m": 1e6, "g": 1e9} {
		if rest, ok := strings.CutSuffix(strings.ToLower(number), suffix); ok {
			number, unit = rest, u
			break
		}
	}
	v, err := strconv.ParseFloat(number, 64)
	if err != nil || !(v > 0) || v*unit > math.MaxUint32 {
		return fmt.Errorf("%q is not a number of records; write it like 500k or 10M", s)
	}
	*c = count(v * unit)
	return nil
}

// Type names the flag's value in its help.
func (c *count) Type() string { return "count" }
