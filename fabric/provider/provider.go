// Package provider opens a fabric device by URL, so that everything above it is
// written for the interfaces of package fabric alone.
//
//	inproc:NAME               devices of this process that use the same name
//	shm:///run/ostro/nic.sock processes of this machine, through `ostro nic`
//	tcp://host:port           other machines; host:port is where this one listens
//	verbs://mlx5_0            RDMA hardware, in builds that have it
//
// Several URLs with commas between them are tried in order. What cannot be
// opened is logged with the reason, and the next one is taken.
package provider

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strings"

	"github.com/ostrodb/ostro/fabric"
	"github.com/ostrodb/ostro/fabric/driver"
	"github.com/ostrodb/ostro/fabric/nic"
	"github.com/ostrodb/ostro/fabric/shm"
	"github.com/ostrodb/ostro/fabric/tcp"
)

// Options are what a URL does not say.
type Options struct {
	Name   string // the device's peer name; required
	Secret []byte // for tcp; ?secret-file=PATH in the URL wins
	Log    *slog.Logger
}

// openers is how each scheme is opened. Builds with more providers add to it.
var openers = map[string]func(*url.URL, Options) (fabric.Device, error){
	"inproc": openInproc,
	"shm":    openShm,
	"tcp":    openTCP,
}

// Open opens the first of the URLs that can be opened.
func Open(_ context.Context, urls string, o Options) (fabric.Device, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Name == "" {
		return nil, errors.New("fabric: a device needs a name")
	}
	list := strings.Split(urls, ",")
	var failed []error
	for i, raw := range list {
		d, err := open(raw, o)
		if err == nil {
			o.Log.Info("fabric", "url", raw, "device", o.Name)
			return d, nil
		}
		failed = append(failed, err)
		if i+1 < len(list) {
			o.Log.Warn("a fabric is not available; the next one is taken", "url", raw, "next", list[i+1], "error", err)
		}
	}
	return nil, errors.Join(failed...)
}

func open(raw string, o Options) (fabric.Device, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return nil, fmt.Errorf("fabric: %w", err)
	}
	opener, ok := openers[u.Scheme]
	switch {
	case ok:
		return opener(u, o)
	case u.Scheme == "verbs":
		return nil, fmt.Errorf("fabric: this build has no verbs provider: %w", fabric.ErrUnsupported)
	default:
		return nil, fmt.Errorf("fabric: %q is no fabric; use inproc:NAME, shm:///path or tcp://host:port", raw)
	}
}

func openShm(u *url.URL, o Options) (fabric.Device, error) {
	if u.Host != "" || u.Path == "" {
		return nil, fmt.Errorf("fabric: %q names no socket; use shm:///path/to/nic.sock", u)
	}
	return device(shm.Open(u.Path, o.Name))
}

// device keeps a failed pointer from becoming an interface that is not nil.
func device(d *driver.Device, err error) (fabric.Device, error) {
	if err != nil {
		return nil, err
	}
	return d, nil
}

// owner is a device with an engine of its own.
type owner struct {
	fabric.Device
	close func() error
}

func (o owner) Close() error { return errors.Join(o.Device.Close(), o.close()) }

// secretOf is what all NICs share.
func secretOf(u *url.URL, o Options) ([]byte, error) {
	secret := o.Secret
	if path := u.Query().Get("secret-file"); path != "" {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("fabric: read the secret: %w", err)
		}
		secret = []byte(strings.TrimSpace(string(text)))
	}
	if len(secret) == 0 {
		return nil, fmt.Errorf("fabric: %s needs a secret that all NICs share; give one with ?secret-file=PATH", u.Scheme)
	}
	return secret, nil
}

func openTCP(u *url.URL, o Options) (fabric.Device, error) {
	secret, err := secretOf(u, o)
	if err != nil {
		return nil, err
	}
	h, err := tcp.Open(tcp.Config{
		Listen: u.Host, Advertise: u.Query().Get("advertise"), Secret: secret, NIC: nic.Config{Log: o.Log},
	})
	if err != nil {
		return nil, err
	}
	d, err := h.Device(o.Name)
	if err != nil {
		return nil, errors.Join(err, h.Close())
	}
	return owner{d, h.Close}, nil
}
