package server

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Sources tells Load where settings come from.
type Sources struct {
	File    string            // YAML; empty: none
	Environ []string          // as os.Environ
	Flags   map[string]string // only those that were given
}

// Loaded is a Config together with where each of its settings came from.
type Loaded struct {
	Config
	Origin   map[string]string // "default", "ostro.yaml:3", "OSTRO_PORT", "--port"
	Warnings []string          // things that are probably not meant, but do no harm
}

// Problem is one thing that is wrong with a configuration.
type Problem struct {
	Where   string // "ostro.yaml:3: port", "OSTRO_PORT", "--port"
	Message string // goes on from there: "must be ..."
}

func (p Problem) String() string { return p.Where + " " + p.Message }

// ConfigError holds everything that is wrong, so that an operator mends it in
// one go.
type ConfigError struct{ Problems []Problem }

func (e *ConfigError) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// Load builds a Config from its sources and checks it. An error is a
// *ConfigError that lists all problems of all sources at once.
func Load(from Sources) (Loaded, error) {
	l := loader{Loaded: Loaded{Config: Default(), Origin: map[string]string{}}}
	l.settings = map[string]Setting{}
	for _, s := range l.Settings() {
		l.settings[s.Key] = s
		l.Origin[s.Key] = "default"
	}
	if from.File != "" {
		l.file(from.File)
	}
	l.environ(from.Environ)
	for key, text := range from.Flags {
		l.set(key, text, "--"+key)
	}
	l.check()
	if len(l.problems) > 0 {
		return l.Loaded, &ConfigError{Problems: l.problems}
	}
	return l.Loaded, nil
}

type loader struct {
	Loaded
	settings map[string]Setting // bound to Loaded.Config
	problems []Problem
}

func (l *loader) problem(where, format string, args ...any) {
	l.problems = append(l.problems, Problem{Where: where, Message: fmt.Sprintf(format, args...)})
}

func (l *loader) set(key, text, where string) {
	if err := l.settings[key].Set(text); err != nil {
		l.problem(place(key, where), "cannot be set: %s", err)
		return
	}
	l.Origin[key] = where
}

// place names a setting as its author wrote it, and where.
func place(key, origin string) string {
	switch {
	case origin == "" || origin == "default":
		return key
	case strings.HasPrefix(origin, "--") || strings.HasPrefix(origin, "OSTRO_"):
		return origin
	default:
		return origin + ": " + key
	}
}

// environ takes every variable that names a setting. One that merely looks
// like a setting is warned of, not refused, because others put variables into
// our name space: Kubernetes sets OSTRO_PORT=tcp://10.0.0.7:6379 and
// OSTRO_SERVICE_HOST for a service called ostro.
func (l *loader) environ(environ []string) {
	byName := map[string]string{}
	var names []string
	for _, s := range l.Settings() {
		byName[s.Env()] = s.Key
		names = append(names, s.Env())
	}
	for _, pair := range environ {
		name, text, _ := strings.Cut(pair, "=")
		key, known := byName[name]
		switch {
		case known && name == "OSTRO_PORT" && strings.HasPrefix(text, "tcp://"):
			l.Warnings = append(l.Warnings, "OSTRO_PORT="+text+" was set by Kubernetes for a service, not as a setting; ignored")
		case known:
			l.set(key, text, name)
		case strings.HasPrefix(name, "OSTRO_") && name != "OSTRO_CONFIG":
			if near := Near(name, names); near != "" {
				l.Warnings = append(l.Warnings, name+" is not a setting and was ignored; did you mean "+near+"?")
			}
		}
	}
}

func (l *loader) file(name string) {
	text, err := os.ReadFile(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		l.problem(name, "does not exist; `ostro config default > %s` writes one to start from", name)
		return
	case err != nil:
		l.problem(name, "cannot be read: %s", err)
		return
	}
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		l.problem(name, "is not YAML: %s", strings.TrimPrefix(err.Error(), "yaml: "))
		return
	}
	if len(document.Content) == 0 {
		return // empty, or comments only
	}
	l.mapping(name, "", document.Content[0], map[string]int{})
}

// mapping takes the settings of one YAML mapping. A nested mapping is a short
// way to write several settings that begin alike:
//
//	tls:
//	  port: 6380      is tls-port: 6380
//
// seen remembers the line of each setting, for one that is set twice.
func (l *loader) mapping(file, prefix string, m *yaml.Node, seen map[string]int) {
	at := func(n *yaml.Node) string { return fmt.Sprintf("%s:%d", file, n.Line) }
	if m.Kind != yaml.MappingNode {
		l.problem(at(m)+":", "expected settings of the form `key: value`")
		return
	}
	for i := 0; i+1 < len(m.Content); i += 2 {
		name, value := m.Content[i], m.Content[i+1]
		key := prefix + name.Value
		if _, known := l.settings[key]; !known {
			if value.Kind == yaml.MappingNode && l.isPrefix(key+"-") {
				l.mapping(file, key+"-", value, seen)
				continue
			}
			l.problem(at(name)+":", "%s", l.unknown(key))
			continue
		}
		if line, twice := seen[key]; twice {
			l.problem(place(key, at(name)), "was already set in line %d", line)
			continue
		}
		seen[key] = name.Line
		text, err := scalar(value)
		if err != nil {
			l.problem(place(key, at(value)), "cannot be set: %s", err)
			continue
		}
		l.set(key, text, at(value))
	}
}

// scalar returns the text of a plain value, or of a list of them.
func scalar(n *yaml.Node) (string, error) {
	switch {
	case n.Kind == yaml.AliasNode:
		return scalar(n.Alias)
	case n.Kind == yaml.ScalarNode && n.Tag == "!!null":
		return "", nil
	case n.Kind == yaml.ScalarNode:
		return n.Value, nil
	case n.Kind != yaml.SequenceNode:
		return "", errors.New("expected one value, found a mapping")
	}
	var texts []string
	for _, item := range n.Content {
		text, err := scalar(item)
		if err != nil {
			return "", err
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, ","), nil
}

func (l *loader) isPrefix(prefix string) bool {
	for key := range l.settings {
		if strings.HasPrefix(key, prefix) {
			return true
		}
	}
	return false
}

func (l *loader) unknown(key string) string {
	if ours := redisNames[key]; ours != "" {
		return fmt.Sprintf("unknown setting %q; Ostro calls it %q", key, ours)
	}
	if near := Near(key, l.Keys()); near != "" {
		return fmt.Sprintf("unknown setting %q; did you mean %q?", key, near)
	}
	return fmt.Sprintf("unknown setting %q; `ostro config default` lists all", key)
}
