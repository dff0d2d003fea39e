package provider

import (
	"net/url"
	"sync"

	"github.com/ostrodb/ostro/fabric"
	"github.com/ostrodb/ostro/fabric/inproc"
	"github.com/ostrodb/ostro/fabric/nic"
)

// networks are those of this process, by name, each as long as it has devices.
var networks struct {
	sync.Mutex
	byName map[string]*shared
}

type shared struct {
	*inproc.Network
	users int
}

func openInproc(u *url.URL, o Options) (fabric.Device, error) {
	networks.Lock()
	defer networks.Unlock()
	name := u.Opaque
	n := networks.byName[name]
	if n == nil {
		network, err := inproc.New(nic.Config{Log: o.Log})
		if err != nil {
			return nil, err
		}
		if networks.byName == nil {
			networks.byName = map[string]*shared{}
		}
		n = &shared{Network: network}
		networks.byName[name] = n
	}
	n.users++
	d, err := n.Device(o.Name)
	if err != nil {
		_ = leave(name, n)
		return nil, err
	}
	return owner{d, sync.OnceValue(func() error {
		networks.Lock()
		defer networks.Unlock()
		return leave(name, n)
	})}, nil
}

// leave ends a network with its last device. The caller has the lock.
func leave(name string, n *shared) error {
	if n.users--; n.users > 0 {
		return nil
	}
	delete(networks.byName, name)
	return n.Close()
}
