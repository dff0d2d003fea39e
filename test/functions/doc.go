// Package functions tests what users write functions with: the SDKs and templates
// with the real compilers, and the examples against models in Go, all through the
// runtime that servers use.
package functions
