package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/peterh/liner"

	"github.com/ostrodb/ostro/wire/resp"
)

// shell is an interactive session on a terminal.
type shell struct {
	client  *client
	printer *printer
	line    *liner.State
	inMulti bool
	names   []string // of commands, for completion; asked for once
}

func interactive(c *client, p *printer) error {
	s := &shell{client: c, printer: p, line: liner.NewLiner()}
	defer s.line.Close()
	s.line.SetCtrlCAborts(true)
	s.line.SetCompleter(s.complete)
	s.line.SetTabCompletionStyle(liner.TabPrints)
	s.loadHistory()
	defer s.saveHistory()
	if err := c.connect(); err != nil {
		s.complain(err) // Stay: the server may come up.
	}
	for {
		text, err := s.line.Prompt(s.prompt())
		switch {
		case errors.Is(err, liner.ErrPromptAborted):
			continue // Ctrl-C drops the line.
		case errors.Is(err, io.EOF):
			fmt.Fprintln(p.out)
			return nil
		case err != nil:
			return fmt.Errorf("read a line: %w", err)
		}
		if s.run(text) {
			return nil
		}
	}
}

// prompt shows where commands go: server, database, transaction.
func (s *shell) prompt() string {
	if !s.client.Connected() {
		return "not connected> "
	}
	text := s.client.String()
	if s.client.db != 0 {
		text += "[" + strconv.Itoa(s.client.db) + "]"
	}
	if s.inMulti {
		text += "(TX)"
	}
	return text + "> "
}

// run executes one line and tells whether the session is over.
func (s *shell) run(text string) (over bool) {
	words, ok := resp.SplitWords(text)
	if !ok {
		s.complain(errors.New("the quotes do not balance"))
		return false
	}
	if len(words) == 0 {
		return false
	}
	if !secret(words) {
		s.line.AppendHistory(strings.TrimSpace(text))
	}
	switch strings.ToLower(words[0]) {
	case "exit", "quit":
		return true
	case "clear":
		fmt.Fprint(s.printer.out, "\x1b[H\x1b[2J")
		return false
	case "help", "?":
		s.help(words[1:])
		return false
	}
	wasConnected := s.client.Connected()
	reply, err := s.client.Do(words...)
	if err != nil {
		s.inMulti = false
		if err = ending(words, err); err != nil {
			s.complain(err)
			if wasConnected {
				s.complain(errors.New("the command may or may not have run; the next one reconnects"))
			}
		}
		return false
	}
	s.printer.Print(&reply)
	s.follow(words, &reply)
	return false
}

// follow keeps the prompt and a later reconnect true to what the server did.
func (s *shell) follow(words []string, reply *resp.Value) {
	if reply.Err() != nil {
		return
	}
	switch strings.ToLower(words[0]) {
	case "select":
		if !s.inMulti && len(words) == 2 {
			s.client.db, _ = strconv.Atoi(words[1])
		}
	case "multi":
		s.inMulti = true
	case "exec", "discard":
		s.inMulti = false
	case "reset":
		s.inMulti, s.client.db, s.client.resp3 = false, 0, false
	case "auth":
		s.client.password = words[len(words)-1]
		if len(words) == 3 {
			s.client.user = words[1]
		}
	case "hello":
		s.client.resp3 = len(words) > 1 && words[1] == "3"
	}
}

// secret tells whether a command holds a password: such a line stays out of
// the history.
func secret(words []string) bool {
	name := strings.ToLower(words[0])
	return name == "auth" ||
		slices.ContainsFunc(words[1:], func(w string) bool {
			w = strings.ToLower(w)
			return name == "hello" && w == "auth" || name == "config" && w == "requirepass"
		})
}

func (s *shell) complain(err error) {
	for line := range sentences(err) {
		fmt.Fprintln(s.printer.out, line)
	}
}

// complete offers command names for the first word.
func (s *shell) complete(text string) []string {
	if strings.Contains(text, " ") {
		return nil
	}
	upper := strings.ToUpper(text) == text && text != ""
	var found []string
	for _, name := range s.commandNames() {
		if upper {
			name = strings.ToUpper(name)
		}
		if strings.HasPrefix(name, text) {
			found = append(found, name+" ")
		}
	}
	return found
}

// commandNames asks the server, outside of transactions, where a question
// would be queued.
func (s *shell) commandNames() []string {
	if s.names != nil || s.inMulti {
		return s.names
	}
	reply, err := s.client.Do("COMMAND", "LIST")
	if err != nil || reply.Err() != nil {
		return nil
	}
	for i := range reply.Elems {
		s.names = append(s.names, strings.ToLower(reply.Elems[i].Text()))
	}
	s.names = append(s.names, "clear", "exit", "help")
	slices.Sort(s.names)
	return s.names
}

// help explains itself, or a command in the server's own words.
func (s *shell) help(words []string) {
	if len(words) == 0 {
		fmt.Fprint(s.printer.out, `Type a command and Enter. Quote words that hold spaces: SET greeting "hello there".
  help COMMAND   what a command does     Tab      complete a command's name
  clear          clear the screen        Up       earlier lines; Ctrl-R searches them
  exit           leave (or Ctrl-D)
`)
		return
	}
	reply, err := s.client.Do("COMMAND", "DOCS", words[0])
	if err == nil {
		err = reply.Err()
	}
	if err != nil {
		s.complain(err)
		return
	}
	if len(reply.Elems) < 2 {
		s.complain(fmt.Errorf("the server has no command %q", words[0]))
		return
	}
	fmt.Fprintln(s.printer.out, strings.ToUpper(words[0]))
	doc := reply.Elems[1].Elems
	for i := 0; i+1 < len(doc); i += 2 {
		switch key := doc[i].Text(); key {
		case "summary", "since", "group", "complexity":
			fmt.Fprintf(s.printer.out, "  %-11s %s\n", key, doc[i+1].Text())
		}
	}
}

// historyFile is where lines are kept between sessions.
func historyFile() string {
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	return filepath.Join(home, ".ostro_history")
}

func (s *shell) loadHistory() {
	if f, err := os.Open(historyFile()); err == nil {
		defer f.Close()
		_, _ = s.line.ReadHistory(f) // A session without history is still one.
	}
}

func (s *shell) saveHistory() {
	f, err := os.OpenFile(historyFile(), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return
	}
	defer f.Close()
	_, _ = s.line.WriteHistory(f)
}
