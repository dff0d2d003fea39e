package main

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// startNIC starts the NIC process, if nodes shall use one and it can be had.
func (d *devCluster) startNIC(ctx context.Context) error {
	if d.flags.fabric == "tcp" {
		d.state.Fabric = "tcp"
		return nil
	}
	err := d.tryNIC(ctx)
	switch {
	case err == nil:
		d.state.Fabric = "shm"
		return nil
	case d.flags.fabric == "shm" || ctx.Err() != nil:
		return err
	}
	d.state.Fabric = "tcp"
	d.out.trouble("the NIC cannot be used, nodes take tcp instead: " + err.Error())
	return nil
}

func (d *devCluster) tryNIC(ctx context.Context) error {
	socket := d.nicSocket()
	_ = os.Remove(socket) // Of a NIC that was killed. Ours is the only one in this directory.
	c := &child{
		name: "nic", log: filepath.Join(d.dir, "nic.log"),
		args: []string{"nic", "--socket", socket, "--realtime", strconv.Itoa(d.flags.realtime)},
	}
	if err := c.start(); err != nil {
		return err
	}
	if err := accepts(ctx, socket, c); err != nil {
		d.end(c)
		return err
	}
	d.nic, d.fabric = c, "shm://"+socket
	// Nodes cannot go on with another NIC than the one that has their memory: when it
	// ends they end, too, and all are started again.
	d.watchers.Go(func() { d.watch(c, true) })
	return nil
}

// longestSocket is what the system takes as the path of a socket.
const longestSocket = 100

// nicSocket is a path that is short enough.
func (d *devCluster) nicSocket() string {
	if path := filepath.Join(d.dir, "nic.sock"); len(path) <= longestSocket {
		return path
	}
	return runtimePath(fmt.Sprintf("ostro-nic-%08x.sock", crc32.ChecksumIEEE([]byte(d.dir))))
}

// accepts waits until a child listens on a socket.
func accepts(ctx context.Context, socket string, c *child) error {
	late := time.After(10 * time.Second)
	for {
		conn, err := net.Dial("unixpacket", socket)
		if err == nil {
			return conn.Close()
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-c.gone():
			return fmt.Errorf("it ended at once: %s", c.lastWords(1))
		case <-late:
			return errors.New("it does not listen within 10 seconds; look at " + c.log)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
