package redis

import (
	"bytes"
	"strings"
)

// configGet shows what matches its patterns, each parameter once. One that was
// asked for by its name is shown by the name that was asked for.
func configGet(c *call) verdict {
	type setting struct{ name, value string }
	var shown []setting
	for _, p := range parameters() {
		for _, pattern := range c.args[2:] {
			isName := !bytes.ContainsAny(pattern, "*?[")
			if isName && equalFold(pattern, p.name) {
				shown = append(shown, setting{string(pattern), p.get(c.srv)})
				break
			}
			if !isName && globMatch(pattern, []byte(p.name), true) {
				shown = append(shown, setting{p.name, p.get(c.srv)})
				break
			}
		}
	}
	c.out.Map(len(shown))
	for _, s := range shown {
		c.out.BulkString(s.name)
		c.out.BulkString(s.value)
	}
	return done
}

// configSet checks all its values before it applies any.
func configSet(c *call) verdict {
	if len(c.args)%2 != 0 {
		return c.fail(errSyntax)
	}
	apply := make([]func(), 0, len(c.args)/2)
	seen := make(map[string]bool)
	all := parameters()
	for i := 2; i < len(c.args); i += 2 {
		name := strings.ToLower(string(c.args[i]))
		p := findParameter(all, name)
		if p == nil {
			return c.fail("ERR Unknown option or number of arguments for CONFIG SET - '" + cString(c.args[i]) + "'")
		}
		change, why := p.change(c.srv, string(c.args[i+1]))
		if name == "requirepass" {
			c.redact(i+1, i+2)
		}
		if seen[name] {
			why = "duplicate parameter"
		}
		if why != "" {
			return c.fail("ERR CONFIG SET failed (possibly related to argument '" + name + "') - " + why)
		}
		seen[name] = true
		apply = append(apply, change)
	}
	for _, change := range apply {
		change()
	}
	return c.ok()
}

func findParameter(all []parameter, name string) *parameter {
	for i := range all {
		if all[i].name == name {
			return &all[i]
		}
	}
	return nil
}

// change is what sets the parameter, or why it cannot be set.
func (p *parameter) change(s *Server, value string) (apply func(), why string) {
	if p.set == nil {
		return nil, "can't set immutable config"
	}
	apply, err := p.set(s, value)
	if err != nil {
		return nil, err.Error()
	}
	return apply, ""
}

func configResetstat(c *call) verdict {
	c.srv.resetStats()
	return c.ok()
}

func configRewrite(c *call) verdict {
	return c.fail("ERR The server does not rewrite its configuration file: change the file by hand, CONFIG SET lasts until the restart")
}
