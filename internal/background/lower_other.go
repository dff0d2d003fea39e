//go:build !linux

package background

const (
	niceness = 10
	modesty  = 5
	patience = 15
)

func lower(int) {}
