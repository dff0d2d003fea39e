package redis

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestTheDocsNameEveryCommandAndParameter keeps docs/redis-compatibility.md
// complete.
func TestTheDocsNameEveryCommandAndParameter(t *testing.T) {
	text, err := os.ReadFile("../../docs/redis-compatibility.md")
	if err != nil {
		t.Fatal(err)
	}
	named := make(map[string]bool)
	for _, word := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(string(text), -1) {
		named[word[1]] = true
	}
	for _, cmd := range commandList {
		for _, each := range append([]*command{cmd}, cmd.subs...) {
			name := each.name[strings.LastIndex(each.name, "|")+1:]
			if !named[strings.ToUpper(name)] {
				t.Errorf("the docs do not name %s", each.name)
			}
		}
	}
	for _, p := range parameters() {
		if !named[p.name] {
			t.Errorf("the docs do not name %s", p.name)
		}
	}
}
