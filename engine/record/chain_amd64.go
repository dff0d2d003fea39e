package record

import (
	"unsafe"

	"golang.org/x/sys/cpu"
)

// chainsFast tells whether chainHeaders works here.
var chainsFast = cpu.X86.HasSSE42

// chainHeaders is Chain.Add of the entries in n bytes from p on. A call for each header would take several times as long as its sum.
//
//go:noescape
func chainHeaders(sum uint32, p unsafe.Pointer, n int) uint32
