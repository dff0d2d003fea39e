// Package functions holds the modules of the examples, as built, so that they can
// be used without a compiler: by `ostro bench`, by tests, and by copying them.
package functions

import (
	"embed"
	"strings"
)

//go:embed *.wasm
var modules embed.FS

// Names lists the examples.
func Names() []string {
	entries, err := modules.ReadDir(".")
	if err != nil {
		panic(err) // Embedded: it is there.
	}
	var names []string
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), ".wasm"))
	}
	return names
}

// Module returns an example's module, or an error if there is no such example.
func Module(name string) ([]byte, error) { return modules.ReadFile(name + ".wasm") }
