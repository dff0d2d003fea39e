package server

import (
	"context"
	"time"
)

// Drop ends a node as a kill does: nothing is said to anybody, its lease ends by itself, and its
// store has what lies in its files.
func (n *Node) Drop() {
	_ = n.cluster.meta.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	_ = n.cluster.stop(ctx, false)
	if n.admin != nil {
		_ = n.admin.Close(ctx)
	}
}
