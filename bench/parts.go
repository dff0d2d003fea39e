package bench

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// part is one of the measurements that an experiment consists of.
type part[X any] struct {
	name    string
	measure func(X, context.Context) error
}

// parts are those of an experiment X, in their order.
type parts[X any] []part[X]

func (all parts[X]) names() (names []string) {
	for _, p := range all {
		names = append(names, p.name)
	}
	return names
}

// check finds parts that were asked for and are none.
func (all parts[X]) check(asked []string) error {
	names := all.names()
	for _, name := range asked {
		if !slices.Contains(names, name) {
			return fmt.Errorf("--parts %q: use %s", name, strings.Join(names, ", "))
		}
	}
	return nil
}

// measure runs those that were asked for. It ends with the first that fails, and says which.
func (all parts[X]) measure(ctx context.Context, x X, asked []string) (failed string, err error) {
	for _, p := range all {
		if !slices.Contains(asked, p.name) {
			continue
		}
		if err := p.measure(x, ctx); err != nil {
			return p.name, fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return "", nil
}

// positive says whether there are numbers, and all at least 1.
func positive(all ...int) bool { return len(all) > 0 && slices.Min(all) >= 1 }
