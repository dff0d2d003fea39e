package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A running `cluster dev` takes orders of other commands over a unix socket in its directory.
// Only who may write there can give some.
const controlName = "control.sock"

// controlPath is the socket's path. A long one goes through an open directory, for the
// system takes only short ones; keep that open while the path is in use.
func controlPath(dir string) (path string, keep io.Closer, err error) {
	path = filepath.Join(dir, controlName)
	f, err := os.Open(dir)
	if err != nil {
		return "", nil, err
	}
	if len(path) > longestSocket {
		path = fmt.Sprintf("/proc/self/fd/%d/%s", f.Fd(), controlName)
	}
	return path, f, nil
}

// listen takes orders until all ends.
func (d *devCluster) listen() error {
	path, keep, err := controlPath(d.dir)
	if err != nil {
		return err
	}
	_ = os.Remove(path) // Of a former process: we have the directory's lock.
	l, err := net.Listen("unix", path)
	if err != nil {
		_ = keep.Close()
		return fmt.Errorf("listen for other commands: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /add", d.serveAdd)
	mux.HandleFunc("POST /forget/{node}", d.serveForget)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = server.Serve(l) }()
	d.watchers.Go(func() {
		<-d.stopping
		_ = server.Close()
		_ = keep.Close()
	})
	return nil
}

// serveAdd starts one more node.
func (d *devCluster) serveAdd(w http.ResponseWriter, _ *http.Request) {
	n, err := d.addNode()
	if err != nil {
		http.Error(w, err.Error(), http.StatusConflict)
		return
	}
	_ = json.NewEncoder(w).Encode(n)
}

func (d *devCluster) addNode() (clusterNode, error) {
	d.adding.Lock()
	defer d.adding.Unlock()
	s := d.snapshot()
	n := s.node(d.dir, s.next())
	if len(s.Nodes) >= mostDevNodes {
		return n, fmt.Errorf("there are %d nodes already, as many as there can be", mostDevNodes)
	}
	for _, addr := range []string{n.Redis, n.Native, n.Admin} {
		if err := portFree(addr, n.ID); err != nil {
			return n, err
		}
	}
	d.mu.Lock()
	d.state.Nodes = append(d.state.Nodes, n)
	d.mu.Unlock()
	if err := d.startNode(n); err != nil {
		return n, err
	}
	s = d.snapshot()
	n = s.Nodes[len(s.Nodes)-1]
	d.out.added(n)
	return n, nil
}

// serveForget ends the process of a node that was removed, and never starts it again.
func (d *devCluster) serveForget(_ http.ResponseWriter, r *http.Request) {
	id := r.PathValue("node")
	d.mu.Lock()
	c := d.nodes[id]
	delete(d.nodes, id)
	d.state.Nodes = slices.DeleteFunc(d.state.Nodes, func(n clusterNode) bool { return n.ID == id })
	d.mu.Unlock()
	d.save()
	if c != nil {
		d.end(c)
	}
}

// order gives an order to the `cluster dev` that runs in dir.
func order(ctx context.Context, dir, what string, answer any) error {
	path, keep, err := controlPath(dir)
	if err != nil {
		return err
	}
	defer keep.Close()
	client := &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", path)
		},
		DisableKeepAlives: true,
	}}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://dev"+what, nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return notRunning(dir, err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	switch {
	case err != nil:
		return err
	case resp.StatusCode != http.StatusOK:
		return errors.New(strings.TrimSpace(string(text)))
	case answer == nil:
		return nil
	}
	return json.Unmarshal(text, answer)
}
