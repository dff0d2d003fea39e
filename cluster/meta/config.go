package meta

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"regexp"
	"strings"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
)

// Config says where etcd is and how to speak to it.
type Config struct {
	Endpoints []string // host:port
	Cluster   string   // keeps several clusters in one etcd apart; "default" if empty

	TLS         bool   // also on if one of the files is named
	CAFile      string // whose certificates to trust; the system's if empty
	CertFile    string // our certificate and its key, if etcd asks for one
	KeyFile     string
	User        string
	Password    string
	DialTimeout time.Duration // how long Open waits; 5 s if zero
	Log         *slog.Logger  // slog.Default if nil

	knockTimeout time.Duration // how long one endpoint may take to show what is wrong with it; 1 s if zero
}

var clusterName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// ParseURL reads etcd://[user@]host[:port],host[:port].../[cluster] with the options
//
//	tls=on  ca=FILE  cert=FILE  key=FILE  password-file=FILE
//
// The port is 2379 if none is named.
func ParseURL(text string) (Config, error) {
	u, err := parseHosts(text)
	if err != nil {
		return Config{}, fmt.Errorf("%q is no etcd URL, such as etcd://a,b,c/name?ca=FILE: %w", redacted(text), err)
	}
	return u, u.check()
}

// redacted is the URL without what may be a password, for messages.
func redacted(text string) string {
	scheme, rest, ok := strings.Cut(text, "://")
	if at := strings.LastIndex(rest, "@"); ok && at >= 0 {
		return scheme + "://..." + rest[at:]
	}
	return text
}

func parseHosts(text string) (Config, error) {
	rest, ok := strings.CutPrefix(text, "etcd://")
	if !ok {
		return Config{}, errors.New("it does not begin with etcd://")
	}
	rest, query, _ := strings.Cut(rest, "?")
	hosts, cluster, _ := strings.Cut(rest, "/")
	c := Config{Cluster: cluster}
	if user, after, ok := strings.Cut(hosts, "@"); ok {
		if strings.Contains(user, ":") {
			return Config{}, errors.New("passwords do not belong into URLs, which others can see: use password-file=FILE")
		}
		c.User, hosts = user, after
	}
	for _, h := range strings.Split(hosts, ",") {
		endpoint, err := withPort(h)
		if err != nil {
			return Config{}, err
		}
		c.Endpoints = append(c.Endpoints, endpoint)
	}
	return c, c.options(query)
}

func withPort(host string) (string, error) {
	if host == "" {
		return "", errors.New("a host is empty")
	}
	if _, _, err := net.SplitHostPort(host); err == nil {
		return host, nil
	}
	name := strings.Trim(host, "[]")
	if strings.Contains(name, ":") && net.ParseIP(name) == nil {
		return "", fmt.Errorf("%q is no host", host)
	}
	return net.JoinHostPort(name, "2379"), nil
}

func (c *Config) options(query string) error {
	values, err := url.ParseQuery(query)
	if err != nil {
		return err
	}
	for name := range values {
		switch value := values.Get(name); name {
		case "tls":
			if value != "on" && value != "off" {
				return fmt.Errorf("tls is on or off, not %q", value)
			}
			c.TLS = value == "on"
		case "ca":
			c.CAFile = value
		case "cert":
			c.CertFile = value
		case "key":
			c.KeyFile = value
		case "password-file":
			text, err := os.ReadFile(value)
			if err != nil {
				return err
			}
			c.Password = strings.TrimRight(string(text), "\r\n")
		default:
			return fmt.Errorf("there is no option %q: use tls, ca, cert, key, password-file", name)
		}
	}
	return nil
}

func (c Config) check() error {
	switch {
	case len(c.Endpoints) == 0:
		return errors.New("no etcd is named: give the host of one at least")
	case !clusterName.MatchString(c.cluster()):
		return fmt.Errorf("%q is no name of a cluster: use 1 to 64 letters, digits, dots, dashes and underscores", c.Cluster)
	case (c.CertFile == "") != (c.KeyFile == ""):
		return errors.New("a certificate and its key go together: name both files")
	case c.User == "" && c.Password != "":
		return errors.New("there is a password and no user: write etcd://user@host")
	}
	return nil
}

func (c Config) cluster() string {
	if c.Cluster == "" {
		return "default"
	}
	return c.Cluster
}

// prefix is what all keys of the cluster begin with.
func (c Config) prefix() string { return "/ostro/" + c.cluster() + "/" }

func (c Config) dialTimeout() time.Duration {
	if c.DialTimeout == 0 {
		return 5 * time.Second
	}
	return c.DialTimeout
}

func (c Config) logger() *slog.Logger {
	if c.Log == nil {
		return slog.Default()
	}
	return c.Log
}

func (c Config) client() (clientv3.Config, error) {
	if err := c.check(); err != nil {
		return clientv3.Config{}, err
	}
	secure, err := c.tls()
	if err != nil {
		return clientv3.Config{}, err
	}
	scheme := "http://"
	if secure != nil {
		scheme = "https://"
	}
	var endpoints []string
	for _, e := range c.Endpoints {
		endpoints = append(endpoints, scheme+e)
	}
	options := []grpc.DialOption{quickReconnect()}
	if c.User != "" && c.Password != "" {
		l := &login{user: c.User, password: c.Password, probe: c.prefix() + keySettings}
		options = append(options, l.options()...)
	}
	return clientv3.Config{
		Endpoints: endpoints, TLS: secure,
		DialTimeout:       c.dialTimeout(),
		DialKeepAliveTime: 5 * time.Second, DialKeepAliveTimeout: 2 * time.Second,
		DialOptions: options,
		Logger:      zapTo(c.logger()),
	}, nil
}

func (c Config) tls() (*tls.Config, error) {
	if !c.TLS && c.CAFile == "" && c.CertFile == "" {
		return nil, nil
	}
	if c.CAFile == "" && c.CertFile == "" {
		return &tls.Config{MinVersion: tls.VersionTLS12}, nil
	}
	info := transport.TLSInfo{TrustedCAFile: c.CAFile, CertFile: c.CertFile, KeyFile: c.KeyFile}
	secure, err := info.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("read the files for TLS with etcd: %w", err)
	}
	return secure, nil
}
