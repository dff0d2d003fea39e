package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// devVoice tells what happens to a cluster on this machine: sentences for people,
// or a JSON object a line for machines.
type devVoice struct {
	mu   sync.Mutex
	out  io.Writer
	json bool
}

func newDevVoice(machines bool) *devVoice { return &devVoice{out: os.Stdout, json: machines} }

// devEvent is a line for machines. Cluster is told when it is ready.
type devEvent struct {
	Event   string        `json:"event"`
	Text    string        `json:"text,omitempty"`
	Node    string        `json:"node,omitempty"`
	PID     int           `json:"pid,omitempty"`
	Cluster *clusterState `json:"cluster,omitempty"`
}

func (v *devVoice) say(e devEvent) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.json {
		fmt.Fprintln(v.out, e.Text)
		return
	}
	text, _ := json.Marshal(e) // Strings and numbers always marshal.
	fmt.Fprintf(v.out, "%s\n", text)
}

func (v *devVoice) trouble(text string) { v.say(devEvent{Event: "trouble", Text: text}) }
func (v *devVoice) waiting(text string) {
	v.say(devEvent{Event: "waiting", Text: "Waiting: " + text + "."})
}
func (v *devVoice) stopping() { v.say(devEvent{Event: "stopping", Text: "Stopping."}) }
func (v *devVoice) stopped()  { v.say(devEvent{Event: "stopped", Text: "Stopped."}) }

func (v *devVoice) died(c *child, how string, again time.Duration) {
	next := "It stays dead."
	if again > 0 {
		next = fmt.Sprintf("It is started again in %s.", again)
	}
	v.say(devEvent{Event: "died", Node: c.name, Text: fmt.Sprintf("%s ended: %s. %s Its log: %s", c.name, how, next, c.log)})
}

func (v *devVoice) respawned(c *child) {
	v.say(devEvent{Event: "started", Node: c.name, PID: c.pid(), Text: fmt.Sprintf("%s runs again, process %d.", c.name, c.pid())})
}

func (v *devVoice) added(n clusterNode) {
	v.say(devEvent{Event: "added", Node: n.ID, PID: n.PID, Text: fmt.Sprintf("%s was added on %s, process %d.", n.ID, n.Redis, n.PID)})
}

// ready tells how to connect and what to try.
func (v *devVoice) ready(s clusterState, dir string, f *devFlags) {
	v.say(devEvent{Event: "ready", Cluster: &s, Text: welcome(s, dir, f)})
}

func welcome(s clusterState, dir string, f *devFlags) string {
	first := s.Nodes[0]
	flag := ""
	if f.dir != defaultClusterDir {
		flag = " --dir " + f.dir
	}
	var b strings.Builder
	fmt.Fprintf(&b, "A cluster of %d nodes is ready: replication %s over %s, data in %s.\n\n", len(s.Nodes), s.Replication, s.Fabric, dir)
	for _, n := range s.Nodes {
		fmt.Fprintf(&b, "  %-8s %-16s process %-8d http://%s/\n", n.ID, n.Redis, n.PID, n.Admin)
	}
	_, port, _ := strings.Cut(first.Redis, ":")
	var hosts []string
	for _, n := range s.Nodes[:min(2, len(s.Nodes))] {
		hosts = append(hosts, n.Native)
	}
	last := s.Nodes[len(s.Nodes)-1]
	line := func(label, command, what string) {
		fmt.Fprintf(&b, "%-9s %-38s %s\n", label, command, what)
	}
	b.WriteString("\n")
	line("Connect", "redis-cli -c -p "+port, "")
	line("", "ostro://"+strings.Join(hosts, ","), "for the native client")
	line("Look", "ostro cluster status --watch"+flag, "")
	line("Try", "ostro cluster add"+flag, "one more node")
	if len(s.Nodes) > 1 {
		line("", fmt.Sprint("kill -9 ", last.PID), last.ID+" dies: the others take over what it had")
		line("", fmt.Sprint("kill -STOP ", last.PID), "it hangs: the same, and it must not answer when it goes on")
	}
	if len(s.Nodes) > 2 { // The second of two is refused that.
		line("", "ostro cluster drain "+last.ID+flag, "it gives all to the others")
	}
	line("Logs", filepath.Join(dir, "*.log"), "")
	b.WriteString("Ctrl-C stops all; the next start goes on with what is there.")
	return b.String()
}
