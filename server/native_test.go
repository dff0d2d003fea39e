package server_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ostrodb/ostro/client"
	"github.com/ostrodb/ostro/internal/port"
	"github.com/ostrodb/ostro/server"
	"github.com/ostrodb/ostro/server/session"
)

func TestNativeAndRedisClientsSeeTheSameRecords(t *testing.T) {
	c := testConfig(t, t.TempDir())
	c.NativePort = port.For(t).Number
	n := start(t, c)
	native, err := client.Dial(t.Context(), fmt.Sprintf("ostro://127.0.0.1:%d", c.NativePort), client.Options{Unrecorded: true, SessionTimeout: testPatience})
	if err != nil {
		t.Fatal(err)
	}
	defer native.Close()
	if _, err := native.Do(t.Context(), client.Put(0, []byte("a"), []byte("1"))); err != nil {
		t.Fatal(err)
	}
	if got := say(t, n.Addr(), "APPEND a 23"); got != ":3" {
		t.Fatalf("APPEND said %s", got)
	}
	if r, err := native.Do(t.Context(), client.Get(0, []byte("a"))); err != nil || string(r.Value) != "123" {
		t.Fatalf("%q, %v", r.Value, err)
	}
}

func TestAProgramThatEmbedsAServerBringsItsOwnMergeFunctions(t *testing.T) {
	c := testConfig(t, t.TempDir())
	c.NativePort = port.For(t).Number
	start(t, c, server.WithMerges(map[string]session.Merge{
		"longest": func(dst, old []byte, _ bool, operand []byte) ([]byte, error) {
			if len(old) >= len(operand) {
				operand = old
			}
			return append(dst, operand...), nil
		},
	}))
	native, err := client.Dial(t.Context(), fmt.Sprintf("ostro://127.0.0.1:%d", c.NativePort), client.Options{SessionTimeout: testPatience})
	if err != nil {
		t.Fatal(err)
	}
	defer native.Close()
	for _, name := range []string{"Ada", "Augusta", "Byron"} {
		if _, err := native.Do(t.Context(), client.Merge(0, []byte("name"), "longest", []byte(name))); err != nil {
			t.Fatal(err)
		}
	}
	if r, err := native.Do(t.Context(), client.Get(0, []byte("name"))); err != nil || string(r.Value) != "Augusta" {
		t.Fatalf("%q, %v", r.Value, err)
	}
	if _, err := native.Do(t.Context(), client.Merge(0, []byte("name"), "shortest", nil)); err == nil || !strings.Contains(err.Error(), "there is no merge function shortest") {
		t.Fatalf("a function that nobody registered: %v", err)
	}
}

func TestAPasswordThatIsSetWhileTheServerRunsIsNativeClientsToo(t *testing.T) {
	c := testConfig(t, t.TempDir())
	c.NativePort = port.For(t).Number
	n := start(t, c)
	enter := func(password string) error {
		native, err := client.Dial(t.Context(), fmt.Sprintf("ostro://127.0.0.1:%d", c.NativePort), client.Options{Password: password, SessionTimeout: testPatience})
		if err == nil {
			native.Close()
		}
		return err
	}
	if err := enter(""); err != nil {
		t.Fatalf("there is no password yet: %v", err)
	}
	if got := say(t, n.Addr(), "CONFIG SET requirepass s3cret"); got != "+OK" {
		t.Fatal(got)
	}
	if err := enter(""); err == nil || !strings.Contains(err.Error(), "wrong password") {
		t.Fatalf("whoever has no password got %v", err)
	}
	if err := enter("s3cret"); err != nil {
		t.Fatalf("whoever has it got %v", err)
	}
}

func TestNativeClientsGiveTheServersPassword(t *testing.T) {
	c := testConfig(t, t.TempDir())
	c.NativePort, c.RequirePass = port.For(t).Number, "s3cret"
	start(t, c)
	if _, err := client.Dial(t.Context(), fmt.Sprintf("ostro://127.0.0.1:%d", c.NativePort), client.Options{Password: "wrong", SessionTimeout: testPatience}); err == nil || !strings.Contains(err.Error(), "wrong password") {
		t.Fatalf("a wrong password got %v", err)
	}
	native, err := client.Dial(t.Context(), fmt.Sprintf("ostro://:s3cret@127.0.0.1:%d", c.NativePort), client.Options{SessionTimeout: testPatience})
	if err != nil {
		t.Fatal(err)
	}
	defer native.Close()
	if err := native.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
}
