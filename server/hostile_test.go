package server_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ostrodb/ostro/client"
	"github.com/ostrodb/ostro/internal/port"
	"github.com/ostrodb/ostro/server"
	"github.com/ostrodb/ostro/tenant/library/librarytest"
)

// shared is a server with two tenants: mallory, whose functions are hostile, and alice, who only wants to work.
type shared struct {
	node                     *server.Node
	operator, mallory, alice *redis.Client
}

func newShared(t *testing.T, limits ...any) *shared {
	t.Helper()
	c := testConfig(t, "")
	c.RequirePass = "root"
	c.FunctionDeadline = testDeadline
	c.NativePort = port.For(t).Number
	n := start(t, c)
	as := func(user, password string) *redis.Client {
		r := redis.NewClient(&redis.Options{Addr: n.Addr(), Username: user, Password: password, ReadTimeout: time.Minute, MaxRetries: -1, PoolSize: 80})
		t.Cleanup(func() { _ = r.Close() })
		return r
	}
	s := &shared{node: n, operator: as("default", "root"), mallory: as("mallory", "m"), alice: as("alice", "a")}
	s.must(t, s.operator, append([]any{"TENANT", "CREATE", "mallory", "PASSWORD", "m"}, limits...)...)
	s.must(t, s.operator, "TENANT", "CREATE", "alice", "PASSWORD", "a")
	s.must(t, s.alice, "FUNCTION", "LOAD", "#!wasm name=mine\n"+string(librarytest.Module("hello", "greet")))
	return s
}

func (s *shared) must(t *testing.T, who *redis.Client, args ...any) any {
	t.Helper()
	got, err := who.Do(t.Context(), args...).Result()
	if err != nil {
		t.Fatalf("%.60v: %v", args, err)
	}
	return got
}

// works has alice do what she does: each of it must succeed, whatever mallory is up to.
func (s *shared) works(ctx context.Context) error {
	if err := s.alice.Set(ctx, "k", "v", 0).Err(); err != nil {
		return err
	}
	if got, err := s.alice.Get(ctx, "k").Result(); err != nil || got != "v" {
		return fmt.Errorf("GET gave %q, %w", got, err)
	}
	if got, err := s.alice.Do(ctx, "FCALL", "greet", 1, "k").Text(); err != nil || got != "hello" {
		return fmt.Errorf("FCALL gave %q, %w", got, err)
	}
	return nil
}

func hostileModule(t *testing.T) string {
	t.Helper()
	code, err := os.ReadFile("../tenant/extension/testdata/hostile.wasm")
	if err != nil {
		t.Fatal(err)
	}
	return "#!wasm name=evil\n" + string(code)
}

func TestAHostileFunctionGetsAnErrorAndOthersGoOn(t *testing.T) {
	s := newShared(t)
	s.must(t, s.mallory, "FUNCTION", "LOAD", hostileModule(t))
	// What takes long is ended by its fuel or by its deadline, whichever is first on this machine. It comes last: who owes
	// time for it waits with the next call, and that may be for longer than its deadline.
	endless := []string{"fuel", "longer than a call may"}
	for _, hostile := range []struct {
		reasons []string
		fns     []string
	}{
		{[]string{"trap"}, []string{"trap", "wildread"}},
		{[]string{"memory"}, []string{"wildpointer", "wildkey"}},
		{[]string{"returned"}, []string{"hugevalue"}},
		{[]string{"response"}, []string{"giantresponse"}},
		{append([]string{"stack"}, endless...), []string{"recursion", "pingpong"}}, // In debt, on a busy machine, it may wait for too long.
		{append([]string{"host calls"}, endless...), []string{"hostflood"}},
		{append([]string{"wrote too many keys"}, endless...), []string{"writeflood"}},
		{endless, []string{"loop", "tightloop", "growflood", "bigfill", "bigcopy"}},
	} {
		for _, fn := range hostile.fns {
			t.Run(fn, func(t *testing.T) { s.survives(t, fn, hostile.reasons) })
		}
	}
}

// survives has mallory call a hostile function, which must fail for one of some reasons, while alice works.
func (s *shared) survives(t *testing.T, fn string, reasons []string) {
	ended := make(chan error, 1)
	go func() { ended <- s.mallory.Do(t.Context(), "FCALL", fn, 1, "k").Err() }()
	for over := false; !over; {
		if err := s.works(t.Context()); err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-ended:
			over = true
			wantFailure(t, fn, err, reasons)
		default:
		}
	}
	if n := s.mallory.DBSize(t.Context()).Val(); n != 0 {
		t.Errorf("it left %d keys", n)
	}
}

func TestAHostileFunctionOfANativeClientGetsAnErrorAndItsOtherOperationsGoOn(t *testing.T) {
	s := newShared(t)
	s.must(t, s.mallory, "FUNCTION", "LOAD", hostileModule(t))
	native, err := client.Dial(t.Context(), fmt.Sprintf("ostro://mallory:m@127.0.0.1:%d", s.node.Config().NativePort), client.Options{SessionTimeout: testPatience})
	if err != nil {
		t.Fatal(err)
	}
	defer native.Close()
	ended := make(chan error, 1)
	go func() {
		_, err := native.Do(t.Context(), client.Invoke(0, []byte("k"), "loop"))
		ended <- err
	}()
	for {
		if _, err := native.Do(t.Context(), client.Put(0, []byte("a"), []byte("1"))); err != nil {
			t.Fatal(err)
		}
		if err := s.works(t.Context()); err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-ended:
			if err == nil {
				t.Error("an endless call has ended well")
			}
			return
		default:
		}
	}
}

func wantFailure(t *testing.T, fn string, err error, reasons []string) {
	t.Helper()
	if err == nil || !strings.HasPrefix(err.Error(), "ERR function "+fn+": ") {
		t.Errorf("answer %v", err)
		return
	}
	why := strings.TrimPrefix(err.Error(), "ERR function "+fn+": ") // Its name may be a reason, too.
	for _, r := range reasons {
		if strings.Contains(why, r) {
			return
		}
	}
	t.Errorf("answer %q says nothing of %q", err, reasons)
}

func TestAFloodOfEndlessCallsStopsNobody(t *testing.T) {
	s := newShared(t, "FUNCTION-CPU", "0.1")
	s.must(t, s.mallory, "FUNCTION", "LOAD", hostileModule(t))
	var flood sync.WaitGroup
	var failed, other atomic.Int64
	for range 40 {
		flood.Go(func() {
			switch err := s.mallory.Do(t.Context(), "FCALL", "loop", 1, "k").Err(); {
			case err != nil && strings.HasPrefix(err.Error(), "ERR function loop: "):
				failed.Add(1)
			default:
				other.Add(1)
				t.Errorf("answer %v", err)
			}
		})
	}
	for failed.Load()+other.Load() < 40 {
		if err := s.works(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	flood.Wait()
	m, _ := s.node.Scheduler()
	for ; m.Turns != 0; m, _ = s.node.Scheduler() { // A call is answered a moment before its turn ends.
		if err := s.works(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if m.Throttled == 0 || m.Killed == 0 {
		t.Errorf("the scheduler says %+v", m)
	}
	for _, u := range s.node.Tenants() {
		if u.Name == "mallory" && (u.FunctionNanos == 0 || u.FunctionThrottled == 0 || u.FunctionCalls != 0) {
			t.Errorf("mallory's account: %+v", u)
		}
	}
}

func TestFunctionsHaveNoMoreMemoryThanTheirTenantMay(t *testing.T) {
	s := newShared(t, "FUNCTION-MEMORY", "1000")
	if err := s.mallory.Do(t.Context(), "FUNCTION", "LOAD", hostileModule(t)).Err(); err == nil || !strings.Contains(err.Error(), "bytes of functions' memory") {
		t.Fatalf("without memory the module was installed: %v", err)
	}
	const limit = 8 << 20
	s.must(t, s.operator, "TENANT", "SET", "mallory", "FUNCTION-MEMORY", limit)
	s.must(t, s.mallory, "FUNCTION", "LOAD", hostileModule(t))
	if _, err := s.mallory.Do(t.Context(), "FCALL", "hoard", 1, "k").Result(); err != nil {
		t.Fatalf("a function that asks for more than there is, and takes no for an answer: %v", err)
	}
	for _, u := range s.node.Tenants() {
		if u.Name == "mallory" && (u.FunctionMemory > limit || u.FunctionRefused == 0) {
			t.Errorf("mallory's account: %+v", u)
		}
	}
	if err := s.works(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestALoweredLimitOfMemoryHoldsForTheNextCall(t *testing.T) {
	s := newShared(t)
	s.must(t, s.mallory, "FUNCTION", "LOAD", hostileModule(t))
	s.must(t, s.mallory, "FCALL", "hoard", 1, "k") // Its instance keeps what it got.
	const limit = 4 << 20
	s.must(t, s.operator, "TENANT", "SET", "mallory", "FUNCTION-MEMORY", limit)
	pages := s.must(t, s.mallory, "FCALL", "hoard", 1, "k").(string)
	if n := int(pages[0]) + int(pages[1])<<8; n == 0 || n > limit>>16 {
		t.Errorf("a call took %d pages more, with a limit of %d", n, limit>>16)
	}
	for _, u := range s.node.Tenants() {
		if u.Name == "mallory" && u.FunctionMemory > limit {
			t.Errorf("mallory's account: %+v", u)
		}
	}
}

func TestModulesThatAreBrokenOrBombsAreRefused(t *testing.T) {
	s := newShared(t)
	whole := librarytest.Module("hello", "greet")
	modules := map[string][]byte{
		"nothing": {}, "text": []byte("(module)"), "half": whole[:len(whole)/2], "bomb": nested(20_000),
		"twisted": bytes.Replace(whole, []byte("memory"), []byte("nomore"), 1),
	}
	for name, code := range modules {
		t.Run(name, func(t *testing.T) {
			ended := make(chan error, 1)
			go func() { ended <- s.mallory.Do(t.Context(), "FUNCTION", "LOAD", "#!wasm name=x\n"+string(code)).Err() }()
			for {
				if err := s.works(t.Context()); err != nil {
					t.Fatal(err)
				}
				select {
				case err := <-ended:
					if err == nil {
						t.Error("it was installed")
					}
					return
				default:
				}
			}
		})
	}
}

// nested is a module with a function of n blocks, one in the other.
func nested(n int) []byte {
	body := append([]byte{0}, bytes.Repeat([]byte{0x02, 0x40}, n)...) // no locals; block
	body = append(body, bytes.Repeat([]byte{0x0b}, n)...)
	body = append(body, 0x41, 0x00, 0x0b) // i32.const 0; end
	const name = "ostro_fn_x"
	exports := append([]byte{2, 6}, "memory"...)
	exports = append(exports, 2, 0, byte(len(name)))
	exports = append(append(exports, name...), 0, 0)
	m := []byte("\x00asm\x01\x00\x00\x00")
	for _, section := range []struct {
		id   byte
		data []byte
	}{
		{1, []byte{1, 0x60, 0, 1, 0x7f}},
		{3, []byte{1, 0}},
		{5, []byte{1, 0, 1}},
		{7, exports},
		{10, append(append([]byte{1}, leb(len(body))...), body...)},
	} {
		m = append(append(append(m, section.id), leb(len(section.data))...), section.data...)
	}
	return m
}

func leb(n int) (b []byte) {
	for ; n >= 0x80; n >>= 7 {
		b = append(b, byte(n)|0x80)
	}
	return append(b, byte(n))
}
