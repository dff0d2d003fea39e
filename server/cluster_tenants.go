package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/ostrodb/ostro/cluster/meta"
	"github.com/ostrodb/ostro/tenant"
)

// etcdBook keeps a cluster's tenants in etcd: a page for each, and one for the number of the next database.
type etcdBook struct{ *meta.Book }

const (
	pageNext   = "next"
	pageTenant = "tenant/"
)

// Read implements tenant.Book.
func (b etcdBook) Read(ctx context.Context) (tenant.Catalog, error) {
	pages, err := b.Book.Read(ctx)
	if err != nil {
		return tenant.Catalog{}, err
	}
	return catalogOf(pages.Text)
}

// editTries is how often an edit is tried while others edit, too.
const editTries = 20

// Edit implements tenant.Book.
func (b etcdBook) Edit(ctx context.Context, edit func(*tenant.Catalog) error) error {
	for range editTries {
		pages, err := b.Book.Read(ctx)
		if err != nil {
			return err
		}
		c, err := catalogOf(pages.Text)
		if err != nil {
			return err
		}
		if err := edit(&c); err != nil {
			return err
		}
		next, err := pagesOf(&c)
		if err != nil {
			return err
		}
		done, err := b.Write(ctx, pages, next)
		if done || err != nil {
			return err
		}
	}
	return errors.New("others change the tenants all the time: try again")
}

func catalogOf(pages map[string][]byte) (c tenant.Catalog, err error) {
	c.Tenants = map[string]tenant.Tenant{}
	for name, text := range pages {
		switch {
		case name == pageNext:
			c.Next, err = strconv.Atoi(string(text))
		case strings.HasPrefix(name, pageTenant):
			var t tenant.Tenant
			err = json.Unmarshal(text, &t)
			c.Tenants[t.Name] = t
		}
		if err != nil {
			return c, fmt.Errorf("the page %q of the tenants in etcd makes no sense: %w", name, err)
		}
	}
	return c, nil
}

func pagesOf(c *tenant.Catalog) (map[string][]byte, error) {
	pages := map[string][]byte{pageNext: []byte(strconv.Itoa(c.Next))}
	for name, t := range c.Tenants {
		text, err := json.Marshal(t)
		if err != nil {
			return nil, err
		}
		pages[pageTenant+name] = text
	}
	return pages, nil
}

// openTenants reads who shares the cluster.
func (l *life) openTenants() error {
	book := l.meta.Book("tenants")
	l.tasks.Go(func() { book.Follow(l.ctx) })
	var err error
	l.tenants, err = tenant.Open(l.ctx, etcdBook{book}, l.store, l.log.With("part", "tenants"), l.node.cfg.turns())
	if err == nil {
		l.node.tenants.Store(l.tenants)
	}
	return err
}
