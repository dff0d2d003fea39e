package call_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/tenant"
	"github.com/ostrodb/ostro/tenant/library"
	"github.com/ostrodb/ostro/tenant/sched"
)

// residentBytes is what the process has in memory, once what nobody uses was given back.
func residentBytes(t *testing.T) int64 {
	t.Helper()
	debug.FreeOSMemory()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal("memory is measured where /proc tells of it:", err)
	}
	for line := range bytes.Lines(status) {
		if f := bytes.Fields(line); len(f) == 3 && string(f[0]) == "VmRSS:" {
			kilobytes, err := strconv.ParseInt(string(f[1]), 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return kilobytes << 10
		}
	}
	t.Fatal("/proc/self/status has no VmRSS")
	return 0
}

// A tenant that has done everything once, and now does nothing: it has a database with a record, a share of the
// scheduler that has run a call, and a shelf for its functions. 64 KiB is what it may take.
func TestThousandsOfIdleTenantsTakeLittleMemory(t *testing.T) {
	many := 3000
	if testing.Short() {
		many = 1000
	}
	st, err := store.Open(store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	book, err := tenant.OpenFile("")
	if err != nil {
		t.Fatal(err)
	}
	tenants, err := tenant.Open(t.Context(), book, st, slog.New(slog.DiscardHandler), sched.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer tenants.Close()
	files, err := library.OpenFiles("")
	if err != nil {
		t.Fatal(err)
	}
	lib, err := library.Open(t.Context(), library.Options{Book: files})
	if err != nil {
		t.Fatal(err)
	}
	defer lib.Close()
	ss, err := st.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	defer ss.Close()
	password := "secret"
	var before, after runtime.MemStats
	resident := residentBytes(t)
	runtime.ReadMemStats(&before)
	if err := tenants.Edit(context.Background(), func(c *tenant.Catalog) error {
		for n := range many {
			if err := c.Create(fmt.Sprint("tenant", n), tenant.Wish{Password: &password}, time.Now()); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	var calls sync.WaitGroup
	shelves := make([]*library.Shelf, many)
	for n := range many {
		a := tenants.Account(fmt.Sprint("tenant", n))
		shelves[n] = lib.Shelf(a)
		calls.Add(1)
		if err := tenants.Share(a).Go(func(*sched.Turn) { calls.Done() }); err != nil {
			t.Fatal(err)
		}
		ss.Begin()
		k := ss.Key(a.Tenant().First, []byte("key"))
		if st := ss.Put(&k, store.Write{Value: []byte("value")}, nil); st != store.OK {
			t.Fatal(st, ss.Err())
		}
		ss.End()
	}
	calls.Wait()
	grown := residentBytes(t) - resident
	runtime.ReadMemStats(&after)
	heap := int64(after.HeapAlloc+after.StackInuse) - int64(before.HeapAlloc+before.StackInuse)
	t.Logf("%d tenants: %d bytes each of the process's memory, %d of them on the heap and stacks", many, grown/int64(many), heap/int64(many))
	if each := max(grown, heap) / int64(many); each > 64<<10 {
		t.Errorf("an idle tenant takes %d bytes", each)
	}
	if n := len(tenants.Usage()); n != many {
		t.Errorf("%d tenants", n)
	}
	runtime.KeepAlive(shelves)
}
