//go:build !linux

package background

const (
	niceness = 10
	patience = 15
)

func lower(int) {}
