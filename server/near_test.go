package server

import "testing"

func TestANameThatIsFarFromAllIsNotGuessed(t *testing.T) {
	names := []string{"zone", "port", "server", "memory-limit", "run"}
	for name, want := range map[string]string{
		"prot": "port", "serv": "server", "memroy-limt": "memory-limit", "rnu": "run",
		"nope": "", "x": "", "": "", "bore": "", "memory": "",
	} {
		if got := Near(name, names); got != want {
			t.Errorf("%q was taken for %q, want %q", name, got, want)
		}
	}
}
