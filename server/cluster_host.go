package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ostrodb/ostro/cluster/meta"
	"github.com/ostrodb/ostro/cluster/migrate"
	"github.com/ostrodb/ostro/cluster/peer"
	"github.com/ostrodb/ostro/cluster/replica"
	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/device"
	"github.com/ostrodb/ostro/fabric"
	"github.com/ostrodb/ostro/fabric/provider"
	"github.com/ostrodb/ostro/internal/background"
)

// host is what a node of a cluster has for as long as it runs: its place in the
// metadata, the replicas it keeps for others, and the ports by which they reach it.
// What it serves itself is a life, of which it may have several: when others took over its
// log while it could not be reached, it begins another with an empty log.
//
//	host ── meta, fabric, peers, backup, cluster port
//	  └─ life ── join ── map ── primary, store ── gate, front doors ── coordinator, heir
type host struct {
	node   *Node
	cfg    Config
	log    *slog.Logger
	memory Size

	lock     *os.File
	self     view.NodeID
	id       identity // of the life that begins
	meta     *meta.Store
	cache    *meta.Cache
	settings meta.Settings
	secret   []byte
	device   fabric.Device
	pool     *peer.Pool
	peers    *peer.Server
	backup   *replica.Backup
	listener net.Listener
	tier     *device.Bucket // all nodes' part of the shared tier; nil if there is none

	ctx    context.Context // ends when the node stops
	cancel context.CancelFunc
	tasks  sync.WaitGroup
	life   atomic.Pointer[life]
	slots  *slotMover
	ready  atomic.Bool // all of the above is there

	inherited atomic.Int64 // records of dead nodes that this one took over
	balanced  balanced     // what it has done as the balancer
}

func newHost(n *Node, memory Size) *host {
	h := &host{node: n, cfg: n.cfg, log: n.log.With("part", "cluster"), memory: memory}
	h.ctx, h.cancel = context.WithCancel(context.Background())
	return h
}

// open opens all that is needed before the node joins. The host must be stopped also
// if it fails.
func (h *host) open() error {
	for _, open := range []func() error{
		h.openDirectory, h.openTier, h.openMeta, h.openFabric, h.openPeers,
	} {
		if err := open(); err != nil {
			return err
		}
	}
	h.slots = &slotMover{self: h.self, meta: h.meta, cache: h.cache, log: h.log, ctx: h.ctx}
	h.ready.Store(true)
	return nil
}

// openDirectory makes the data directory this process' own and finds out who the node is.
func (h *host) openDirectory() error {
	if err := os.MkdirAll(h.cfg.Dir, 0o755); err != nil {
		return fmt.Errorf("make the data directory: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(h.cfg.Dir, "node.lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return err
	}
	h.lock = f
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return fmt.Errorf("the data directory %s is in use by another server: %w", h.cfg.Dir, device.ErrLocked)
	}
	h.id, err = readIdentity(h.cfg.Dir, h.cfg.NodeID)
	h.self = h.id.Node
	return err
}

func (h *host) openMeta() error {
	c, err := meta.ParseURL(h.cfg.Cluster)
	if err != nil {
		return err
	}
	c.Log = h.log
	if h.meta, err = meta.Open(h.ctx, c); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(h.ctx, 10*time.Second)
	defer cancel()
	if h.settings, err = h.meta.Configure(ctx, h.cfg.newSettings()); err != nil {
		return err
	}
	h.warnOfSettings()
	if h.secret, err = h.readSecret(ctx); err != nil {
		return err
	}
	h.cache, err = h.meta.Follow(ctx)
	return err
}

// newSettings are those of a cluster that has none yet.
func (c *Config) newSettings() meta.Settings {
	return meta.Settings{
		Replicas: c.ClusterReplicas, LeaseMillis: int(c.ClusterLease.Milliseconds()),
		SegmentBytes: int(c.SegmentSize), MinNodes: c.ClusterMinNodes, Databases: c.Databases,
	}
}

// databases is how many the cluster has by now: the number may have grown since this node was started.
func (h *host) databases() int {
	return max(h.settings.Databases, h.cache.Snapshot().Settings.Databases)
}

// warnOfSettings tells of settings that were given here and that the cluster has otherwise.
func (h *host) warnOfSettings() {
	if wanted := h.cfg.newSettings(); wanted != h.settings {
		h.log.Info("the cluster keeps the settings it was made with", "settings", fmt.Sprintf("%+v", h.settings), "configured", fmt.Sprintf("%+v", wanted))
	}
}

func (h *host) readSecret(ctx context.Context) ([]byte, error) {
	if h.cfg.ClusterSecretFile == "" {
		return h.meta.Secret(ctx)
	}
	text, err := os.ReadFile(h.cfg.ClusterSecretFile)
	return []byte(strings.TrimSpace(string(text))), err
}

func (h *host) openFabric() (err error) {
	urls := h.cfg.Fabric
	if urls == "" {
		urls = "tcp://" + net.JoinHostPort(h.cfg.announceHost(), "0")
	}
	h.device, err = provider.Open(h.ctx, urls, provider.Options{Name: string(h.self), Secret: h.secret, Log: h.log})
	if err != nil {
		return fmt.Errorf("open the fabric: %w", err)
	}
	return nil
}

// openPeers opens the cluster port. Others can ask for replicas from here on, whether
// this node has joined or not.
func (h *host) openPeers() (err error) {
	h.pool, err = peer.NewPool(peer.PoolOptions{Node: h.self, Secret: h.secret, Address: h.addressOf})
	if err != nil {
		return err
	}
	h.peers, err = peer.NewServer(peer.ServerOptions{Node: h.self, Secret: h.secret, Log: h.log})
	if err != nil {
		return err
	}
	h.peers.Handle(MethodStatus, h.answerStatus)
	h.peers.Handle(MethodLoad, h.answerLoad)
	migrate.NewSource(origin{h}).Handle(h.peers)
	migrate.HandleSent(h.peers, h.drives)
	if err := h.openBackup(); err != nil {
		return err
	}
	return h.listen()
}

func (h *host) addressOf(n view.NodeID) (string, error) {
	known, ok := h.cache.Snapshot().Nodes[n]
	if !ok {
		return "", fmt.Errorf("there is no node %s", n)
	}
	return known.Address, nil
}

// described is the node as others shall know it.
func (l *life) described() meta.Node {
	h := l.host
	return meta.Node{
		ID: l.id.Node, Log: l.id.Log, Zone: h.cfg.Zone, CapacityBytes: uint64(h.memory),
		Address: h.cfg.announced(h.cfg.clusterPort()), RedisAddress: h.cfg.announced(h.cfg.Port), RedisTLS: h.cfg.announced(h.cfg.TLSPort),
		AdminAddress: h.node.AdminAddr(), Replicas: h.backup.ID(),
	}
}

// announced is a port as others reach it; empty if it is off.
func (c *Config) announced(port int) string {
	if port == 0 {
		return ""
	}
	return net.JoinHostPort(c.announceHost(), strconv.Itoa(port))
}

// start begins the first life and returns when it serves.
func (h *host) start() error {
	h.tasks.Go(h.followMap)
	h.tasks.Go(h.watchFabric)
	l, err := h.begin()
	if err != nil {
		return err
	}
	h.tasks.Go(func() { h.live(l) })
	return nil
}

// live begins another life whenever one has ended, until the node stops.
func (h *host) live(l *life) {
	for {
		select {
		case <-h.ctx.Done():
			return
		case <-l.ended:
		}
		h.node.enter("rejoining")
		h.log.Warn("this node's log is over: it begins another", "why", context.Cause(l.ctx))
		l.retire()
		for {
			var err error
			if l, err = h.begin(); err == nil {
				break
			}
			if h.ctx.Err() != nil {
				return
			}
			h.log.Error("the node could not begin again and tries once more", "why", err)
			h.pause(time.Second)
		}
		if h.ctx.Err() == nil {
			h.node.serving()
		}
	}
}

func (h *host) pause(d time.Duration) { background.Pause(h.ctx, d) }

// fabricEvery is how often the fabric is asked whether it is there.
const fabricEvery = time.Second

// watchFabric notices that the NIC which has this node's queues and buffers is gone. They do not
// come back with another one, so the node must be started again.
func (h *host) watchFabric() {
	for silent := 0; h.ctx.Err() == nil; h.pause(fabricEvery) {
		_, err := h.device.Metrics()
		if err == nil {
			silent = 0
			continue
		}
		if silent++; silent > 1 && h.ctx.Err() == nil {
			h.node.fail(fmt.Errorf("the fabric is gone: look whether the NIC runs, and start the node again: %w", err))
			return
		}
	}
}

// followMap keeps the gate of the current life at the newest snapshot.
func (h *host) followMap() {
	for {
		changed := h.cache.Changed()
		s := h.cache.Snapshot()
		if l := h.life.Load(); l != nil {
			l.follow(s)
		}
		h.forgetLogs(s)
		select {
		case <-h.ctx.Done():
			return
		case <-changed:
		}
	}
}

// stop ends the node in good order: what was received is answered, the log is
// whole, then the lease is given back so that others can take over at once.
func (h *host) stop(ctx context.Context, save bool) error {
	var errs []error
	h.cancel()
	if h.listener != nil {
		_ = h.listener.Close()
	}
	if l := h.life.Load(); l != nil {
		errs = append(errs, l.close(ctx, save))
	}
	h.tasks.Wait()
	if h.slots != nil {
		h.slots.tasks.Wait()
	}
	if l := h.life.Load(); l != nil { // It began in the meantime.
		errs = append(errs, l.close(ctx, save))
	}
	errs = append(errs, h.closePeers())
	if h.device != nil {
		errs = append(errs, h.device.Close())
	}
	if h.cache != nil {
		h.cache.Close()
	}
	if h.meta != nil {
		errs = append(errs, h.meta.Close())
	}
	if h.tier != nil {
		errs = append(errs, h.tier.Close())
	}
	if h.lock != nil {
		errs = append(errs, h.lock.Close())
	}
	return errors.Join(errs...)
}
