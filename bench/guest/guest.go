// Package guest holds the functions that `ostro bench splinter` calls beside the
// shipped examples, as built.
package guest

import (
	"bytes"
	_ "embed"
	"fmt"
)

// Module has get, put, many, power and loop: see src/guest.c.
//
//go:embed guest.wasm
var Module []byte

// Hostile has what does harm, or tries to: see src/hostile.c.
//
//go:embed hostile.wasm
var Hostile []byte

//go:embed numbered.wasm
var numbered []byte

// MostNumbered is how many modules Numbered makes.
const MostNumbered = 100_000

// Numbered is the module of one function, which Name names. No two are alike.
func Numbered(n int) []byte {
	return bytes.Replace(numbered, []byte(Name(0)), []byte(Name(n)), 1)
}

// Name is what the function of a numbered module is called.
func Name(n int) string { return fmt.Sprintf("f%05d", n) }
