package wire

import "fmt"

// ModuleAct is what is done about a module of functions.
type ModuleAct uint8

// Acts.
const (
	ModuleInstall ModuleAct = iota + 1 // of a new name
	ModuleReplace                      // whether there is one of that name or not
	ModuleDelete
	ModuleList // no name
	moduleActEnd
)

// Module is the argument of OpModule.
type Module struct {
	Act  ModuleAct
	Name []byte // at most 255 bytes
	Code []byte // the module's own bytes
}

// AppendModule appends the argument of OpModule.
func AppendModule(b []byte, m *Module) []byte {
	name := m.Name[:min(len(m.Name), 255)]
	b = append(b, byte(m.Act), byte(len(name)))
	b = append(b, name...)
	return append(b, m.Code...)
}

// DecodeModule reads the argument of OpModule. Its bytes are the argument's.
func DecodeModule(arg []byte) (m Module, err error) {
	if len(arg) < 2 || len(arg) < 2+int(arg[1]) {
		return m, ErrShort
	}
	m = Module{Act: ModuleAct(arg[0]), Name: arg[2 : 2+int(arg[1]) : 2+int(arg[1])], Code: arg[2+int(arg[1]):]}
	if m.Act == 0 || m.Act >= moduleActEnd || len(m.Code) > 0 && m.Act > ModuleReplace {
		return m, fmt.Errorf("%w: act %d on a module with %d bytes of code", ErrMalformed, arg[0], len(m.Code))
	}
	return m, nil
}
