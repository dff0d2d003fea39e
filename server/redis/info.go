package redis

import (
	"fmt"
	"slices"
	"strings"
)

// infoSection is a part of INFO.
type infoSection struct {
	name   string
	inAll  bool // shown by INFO all but not by default
	report func(s *Server, w *infoWriter)
}

func infoSections() []infoSection {
	return []infoSection{
		{"server", false, (*Server).infoServer},
		{"clients", false, (*Server).infoClients},
		{"memory", false, (*Server).infoMemory},
		{"persistence", false, (*Server).infoPersistence},
		{"stats", false, (*Server).infoStats},
		{"replication", false, (*Server).infoReplication},
		{"cpu", false, (*Server).infoCPU},
		{"modules", false, func(*Server, *infoWriter) {}},
		{"commandstats", true, (*Server).infoCommandstats},
		{"errorstats", false, (*Server).infoErrorstats},
		{"cluster", false, (*Server).infoCluster},
		{"keyspace", false, (*Server).infoKeyspace},
		{"ostro", false, (*Server).infoOstro},
	}
}

func info(c *call) verdict {
	text := ""
	if c.conn.account() != nil {
		text = c.infoTenant()
	} else {
		text = c.srv.info(c.args[1:])
	}
	c.out.Verbatim("txt", text)
	return done
}

// info is the text of the named sections, of the default ones for no names.
func (s *Server) info(names [][]byte) string {
	var w infoWriter
	for _, section := range infoSections() {
		if section.wanted(names) {
			w.heading(section.name)
			section.report(s, &w)
		}
	}
	return w.text.String()
}

func (section *infoSection) wanted(names [][]byte) bool {
	if len(names) == 0 {
		return !section.inAll
	}
	return slices.ContainsFunc(names, func(name []byte) bool {
		return equalFold(name, section.name) || equalFold(name, "all") || equalFold(name, "everything") ||
			equalFold(name, "default") && !section.inAll
	})
}

// infoWriter writes lines of name:value, and a heading before each section.
type infoWriter struct{ text strings.Builder }

var infoTitles = map[string]string{"cpu": "CPU"}

func (w *infoWriter) heading(name string) {
	title := infoTitles[name]
	if title == "" {
		title = strings.ToUpper(name[:1]) + name[1:]
	}
	if w.text.Len() > 0 {
		w.text.WriteString("\r\n")
	}
	w.text.WriteString("# " + title + "\r\n")
}

func (w *infoWriter) line(name string, value any) {
	fmt.Fprintf(&w.text, "%s:%v\r\n", name, value)
}

// bytes writes a number of bytes for machines and for people.
func (w *infoWriter) bytes(name string, n int64) {
	w.line(name, n)
	w.line(name+"_human", humanBytes(n))
}

func (w *infoWriter) ratio(name string, part, whole int64) {
	w.line(name, fmt.Sprintf("%.2f", float64(part)/float64(max(whole, 1))))
}

func humanBytes(n int64) string {
	f := float64(n)
	if n < 1024 {
		return fmt.Sprintf("%dB", n)
	}
	for _, unit := range "KMGTP" {
		if f /= 1024; f < 1024 {
			return fmt.Sprintf("%.2f%c", f, unit)
		}
	}
	return fmt.Sprintf("%.2fE", f/1024)
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

func zeroOne(b bool) int {
	if b {
		return 1
	}
	return 0
}
