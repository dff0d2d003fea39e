package wire_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/ostrodb/ostro/wire"
)

func TestArgumentsAboutModulesComeBackAndNonsenseDoesNot(t *testing.T) {
	for _, m := range []wire.Module{
		{Act: wire.ModuleInstall, Name: []byte("tree"), Code: []byte("\x00asm")},
		{Act: wire.ModuleReplace, Name: []byte(strings.Repeat("n", 255)), Code: bytes.Repeat([]byte{7}, 1000)},
		{Act: wire.ModuleDelete, Name: []byte("tree")},
		{Act: wire.ModuleList},
	} {
		arg := wire.AppendModule(nil, &m)
		got, err := wire.DecodeModule(arg)
		if err != nil || got.Act != m.Act || !bytes.Equal(got.Name, m.Name) || !bytes.Equal(got.Code, m.Code) {
			t.Errorf("%+v came back as %+v, %v", m, got, err)
		}
		for cut := range 2 + len(m.Name) {
			if got, err := wire.DecodeModule(arg[:cut]); err == nil {
				t.Errorf("the first %d bytes are %+v", cut, got)
			}
		}
	}
	for _, arg := range []string{"\x00\x00", "\x05\x00", "\xff\x00", "\x03\x01nx", "\x04\x00x"} {
		if got, err := wire.DecodeModule([]byte(arg)); err == nil {
			t.Errorf("%q is %+v", arg, got)
		}
	}
}
