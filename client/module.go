package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/ostrodb/ostro/wire"
)

// ErrNoModule says that no module of that name is installed.
var ErrNoModule = errors.New("no such module")

// Module is a module of functions that is installed for the client's tenant.
type Module struct {
	Name      string    `json:"name"`
	Version   int64     `json:"version"`
	Functions []string  `json:"functions"`
	Bytes     int64     `json:"bytes"`
	Installed time.Time `json:"installed"`
}

// InstallModule installs a WebAssembly module of functions under a name, for the client's tenant, on all servers. When it returns, the
// server that was asked has it, and others soon after. One that is there already with the same code is fine; one of another code
// is an error, unless replace says to put this one in its place. Who calls a function meanwhile gets the old one or the new one.
func (c *Client) InstallModule(ctx context.Context, name string, code []byte, replace bool) error {
	act := wire.ModuleInstall
	if replace {
		act = wire.ModuleReplace
	}
	_, err := c.aboutModules(ctx, &wire.Module{Act: act, Name: []byte(name), Code: code})
	return err
}

// DeleteModule removes a module; ErrNoModule if there is none of that name.
func (c *Client) DeleteModule(ctx context.Context, name string) error {
	_, err := c.aboutModules(ctx, &wire.Module{Act: wire.ModuleDelete, Name: []byte(name)})
	if errors.Is(err, ErrNotFound) {
		return fmt.Errorf("delete module %s: %w", name, ErrNoModule)
	}
	return err
}

// Modules lists what is installed for the client's tenant.
func (c *Client) Modules(ctx context.Context) (all []Module, err error) {
	r, err := c.aboutModules(ctx, &wire.Module{Act: wire.ModuleList})
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(r.Value, &all); err != nil {
		return nil, fmt.Errorf("read the list of modules: %w", err)
	}
	return all, nil
}

func (c *Client) aboutModules(ctx context.Context, m *wire.Module) (Result, error) {
	if len(m.Name) > 255 {
		return Result{}, fmt.Errorf("%w: a module's name has at most 64 letters, digits and _", ErrTooLarge)
	}
	return c.Do(ctx, opOf(wire.OpModule, 0, nil, wire.AppendModule(nil, m)))
}
