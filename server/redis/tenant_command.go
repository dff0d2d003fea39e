package redis

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/ostrodb/ostro/tenant"
)

// tenantPatience bounds how long a change of the tenants may take.
const tenantPatience = 10 * time.Second

// editTenants changes the catalog in the background, and answers OK.
func (c *call) editTenants(edit func(*tenant.Catalog) error) verdict {
	r := c.srv.cfg.Tenants
	switch {
	case r == nil:
		return c.fail("ERR this server keeps no tenants")
	case c.conn.multi.active:
		return c.fail("ERR tenants are not changed inside a transaction: send the command by itself")
	}
	over, err := c.await(func(finished func(error)) {
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), tenantPatience)
			defer cancel()
			finished(r.Edit(ctx, edit))
		}()
	})
	if !over {
		return later
	}
	return c.okUnless(err)
}

func tenantCreate(c *call) verdict {
	name, wish, ok := c.tenantWish()
	switch {
	case !ok:
		return done
	case !c.srv.authRequired():
		return c.fail("ERR set requirepass first: without it everybody is the operator, whatever tenants there are")
	}
	return c.editTenants(func(t *tenant.Catalog) error { return t.Create(name, wish, time.Now().UTC()) })
}

func tenantSet(c *call) verdict {
	name, wish, ok := c.tenantWish()
	if !ok {
		return done
	}
	return c.editTenants(func(t *tenant.Catalog) error { return t.Change(name, wish) })
}

func tenantDelete(c *call) verdict {
	name := string(c.args[2])
	return c.editTenants(func(t *tenant.Catalog) error { return t.Delete(name) })
}

// tenantWish reads TENANT CREATE|SET <name> [<what> <value> ...], or answers with an error.
func (c *call) tenantWish() (name string, w tenant.Wish, ok bool) {
	numbers := map[string]**int64{"bytes": &w.Bytes, "operations": &w.Operations, "connections": &w.Connections, "inflight": &w.InFlight, "function-memory": &w.FunctionMemory}
	for i := 3; i < len(c.args); i += 2 {
		if i+1 == len(c.args) {
			c.out.Error(errSyntax)
			return "", w, false
		}
		what := strings.ToLower(string(c.args[i]))
		if what == "password" {
			password := string(c.args[i+1])
			w.Password = &password
			c.redact(i+1, i+2)
			continue
		}
		if what == "function-cpu" {
			if w.FunctionCPU, ok = c.coresArg(i + 1); !ok {
				return "", w, false
			}
			continue
		}
		n, ok := c.intArg(i + 1)
		switch {
		case !ok:
			return "", w, false
		case what == "databases":
			databases := int(n)
			w.Databases = &databases
		case numbers[what] != nil:
			*numbers[what] = &n
		default:
			c.out.Error("ERR " + shown(c.args[i]) + " is nothing that a tenant has: PASSWORD, DATABASES, BYTES, OPERATIONS, CONNECTIONS, INFLIGHT, FUNCTION-CPU, FUNCTION-MEMORY")
			return "", w, false
		}
	}
	return string(c.args[2]), w, true
}

// coresArg reads a number of cores, such as 0.5, in thousandths, or answers with an error.
func (c *call) coresArg(i int) (*int64, bool) {
	n, err := tenant.ParseCores(string(c.args[i]))
	if err != nil {
		c.out.Error("ERR " + err.Error())
		return nil, false
	}
	return &n, true
}

// tenantList answers with JSON: for each tenant what it may, and what it has used of this node.
func tenantList(c *call) verdict {
	all := []tenant.Usage{}
	if r := c.srv.cfg.Tenants; r != nil {
		all = append(all, r.Usage()...)
	}
	slices.SortFunc(all, func(a, b tenant.Usage) int { return cmp.Compare(a.Name, b.Name) })
	text, err := json.Marshal(all)
	if err != nil {
		return c.fail("ERR " + err.Error())
	}
	c.out.Bulk(text)
	return done
}
