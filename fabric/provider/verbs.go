//go:build verbs

package provider

import (
	"net/url"

	"github.com/ostrodb/ostro/fabric"
	"github.com/ostrodb/ostro/fabric/verbs"
)

// verbs://DEVICE?listen=host:port&secret-file=PATH
func init() {
	openers["verbs"] = func(u *url.URL, o Options) (fabric.Device, error) {
		secret, err := secretOf(u, o)
		if err != nil {
			return nil, err
		}
		listen := u.Query().Get("listen")
		if listen == "" {
			listen = ":0"
		}
		d, err := verbs.Open(verbs.Config{Device: u.Host, Listen: listen, Secret: secret, Name: o.Name})
		if err != nil {
			return nil, err
		}
		return d, nil
	}
}
