//go:build !linux

package index

func adviseHuge(mapping) {}
