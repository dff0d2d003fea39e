package library

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"time"
)

// Owner is whose functions they are: the number of a tenant's first database, which no other tenant
// ever gets. 0 is the operator.
type Owner int

// Operator owns what is no tenant's.
const Operator Owner = 0

// Sum names code by what it is.
type Sum [sha256.Size]byte

// SumOf is the name of code.
func SumOf(code []byte) Sum { return sha256.Sum256(code) }

func (s Sum) String() string { return hex.EncodeToString(s[:]) }

// MarshalText implements encoding.TextMarshaler.
func (s Sum) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *Sum) UnmarshalText(text []byte) error {
	if hex.DecodedLen(len(text)) != len(s) {
		return fmt.Errorf("%q is no SHA-256", text)
	}
	_, err := hex.Decode(s[:], text)
	return err
}

// Entry is a module that is installed.
type Entry struct {
	Name      string    `json:"name"`
	Version   int       `json:"version"`
	Sum       Sum       `json:"sha256"`
	Bytes     int64     `json:"bytes"`
	Functions []string  `json:"functions"`
	Installed time.Time `json:"installed"`
}

// Page is what a tenant has installed.
type Page struct {
	Owner   Owner            `json:"owner"`
	Tenant  string           `json:"tenant"`
	Modules map[string]Entry `json:"modules"`
	// Revision grows with every change of the page, its end included.
	Revision int64 `json:"-"`
}

// Book keeps pages and code.
type Book interface {
	// Read returns all pages as of a revision.
	Read(ctx context.Context) (pages []Page, asOf int64, err error)
	// Edit changes a page: what edit does to its argument, or nothing. It may be called again when somebody
	// else was faster. The code of entries that are new is in code, or the book has it. It returns the page
	// as it is then; one without modules is kept no longer.
	Edit(ctx context.Context, owner Owner, code map[Sum][]byte, edit func(*Page) error) (Page, error)
	// Code returns what some entry of some page names.
	Code(ctx context.Context, sum Sum) ([]byte, error)
	// Follow tells of pages that have changed, by others, too, until ctx ends. With asOf these are all that there were at
	// that revision; 0: there are others.
	Follow(ctx context.Context, take func(pages []Page, asOf int64))
}

var names = regexp.MustCompile(`^[a-zA-Z0-9_]{1,64}$`)

// CheckName tells what is wrong with a module's name.
func CheckName(name string) error {
	if !names.MatchString(name) {
		return fmt.Errorf("%.80q is no name for a module: 1 to 64 letters, digits and _", name)
	}
	return nil
}

// Names lists the modules in order.
func (p *Page) Names() []string { return slices.Sorted(maps.Keys(p.Modules)) }

// Bytes is how much code the modules have together.
func (p *Page) Bytes() int64 {
	var sum int64
	for _, e := range p.Modules {
		sum += e.Bytes
	}
	return sum
}
