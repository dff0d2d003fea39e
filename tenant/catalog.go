package tenant

import (
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"time"
)

// Catalog is all tenants, as a Book keeps them.
type Catalog struct {
	// Next is the number of the next database that is given to a tenant; 0 before the first. What is below
	// and no tenant's was a deleted one's.
	Next    int               `json:"next"`
	Tenants map[string]Tenant `json:"tenants"`
}

// What a Catalog says no to.
var (
	ErrUnknown = errors.New("there is no such tenant")
	ErrExists  = errors.New("there is a tenant of that name already")
)

// Wish is a tenant to be, or a change of one: what is nil stays as it is.
type Wish struct {
	Password                                 *string
	Databases                                *int
	Bytes, Operations, Connections, InFlight *int64
	FunctionCPU, FunctionMemory              *int64
}

// Create adds a tenant.
func (c *Catalog) Create(name string, w Wish, now time.Time) error {
	if err := checkName(name); err != nil {
		return err
	}
	if _, ok := c.Tenants[name]; ok {
		return fmt.Errorf("%w: %s", ErrExists, name)
	}
	t := Tenant{Name: name, Databases: 1, Created: now, Key: make([]byte, 16)}
	_, _ = rand.Read(t.Key) // It never fails.
	if w.Password == nil {
		return errors.New("a tenant needs a password")
	}
	if w.Databases != nil {
		t.Databases = *w.Databases
	}
	if t.Databases < 1 || t.Databases > MaxDatabases {
		return fmt.Errorf("%d databases are not possible: a tenant has 1 to %d", t.Databases, MaxDatabases)
	}
	c.Next = max(c.Next, firstDatabase)
	if t.First = c.Next; t.First+t.Databases > lastDatabase {
		return errors.New("no numbers of databases are left to give")
	}
	if err := t.change(w); err != nil {
		return err
	}
	c.Next += t.Databases
	c.put(t)
	return nil
}

// Change changes what a tenant may, or its password.
func (c *Catalog) Change(name string, w Wish) error {
	t, ok := c.Tenants[name]
	switch {
	case !ok:
		return fmt.Errorf("%w: %s", ErrUnknown, name)
	case w.Databases != nil && *w.Databases != t.Databases:
		return fmt.Errorf("%s has %d databases: that cannot be changed", name, t.Databases)
	}
	if err := t.change(w); err != nil {
		return err
	}
	c.put(t)
	return nil
}

// Delete takes a tenant away, with all that it has.
func (c *Catalog) Delete(name string) error {
	if _, ok := c.Tenants[name]; !ok {
		return fmt.Errorf("%w: %s", ErrUnknown, name)
	}
	c.Tenants = maps.Clone(c.Tenants)
	delete(c.Tenants, name)
	return nil
}

func (c *Catalog) put(t Tenant) {
	if c.Tenants = maps.Clone(c.Tenants); c.Tenants == nil {
		c.Tenants = map[string]Tenant{}
	}
	c.Tenants[t.Name] = t
}

func (t *Tenant) change(w Wish) error {
	if w.Password != nil {
		if *w.Password == "" {
			return errors.New("an empty password is none")
		}
		if err := CheckPassword(*w.Password); err != nil {
			return err
		}
		if len(t.Key) == 0 {
			t.Key = t.Secret.Salt // The ids of its clients stay.
		}
		t.Secret = NewSecret(*w.Password)
	}
	for field, wish := range map[*int64]*int64{
		&t.Limits.Bytes: w.Bytes, &t.Limits.Operations: w.Operations, &t.Limits.Connections: w.Connections, &t.Limits.InFlight: w.InFlight,
		&t.Limits.FunctionCPU: w.FunctionCPU, &t.Limits.FunctionMemory: w.FunctionMemory,
	} {
		if wish != nil {
			*field = *wish
		}
	}
	return t.Limits.check()
}
