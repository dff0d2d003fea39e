package redis_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	goredis "github.com/redis/go-redis/v9"

	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/internal/await"
	"github.com/ostrodb/ostro/server/redis"
	"github.com/ostrodb/ostro/tenant"
	"github.com/ostrodb/ostro/tenant/library"
	"github.com/ostrodb/ostro/tenant/library/librarytest"
)

// loadable is a module as FUNCTION LOAD takes it.
func loadable(name, text string, functions ...string) string {
	return "#!wasm name=" + name + "\n" + string(librarytest.Module(text, functions...))
}

func TestGoRedisInstallsListsAndDeletesFunctions(t *testing.T) {
	withGoRedis(t, func(t *testing.T, ctx context.Context, c *goredis.Client) {
		must(t, c.FunctionFlush(ctx).Err())
		code := loadable("greeter", "hello", "hello", "bye")
		if name, err := c.FunctionLoad(ctx, code).Result(); err != nil || name != "greeter" {
			t.Fatalf("loaded %q, %v", name, err)
		}
		if err := c.FunctionLoad(ctx, code).Err(); err == nil || !strings.Contains(err.Error(), "Library 'greeter' already exists") {
			t.Errorf("loaded again: %v", err)
		}
		must(t, c.FunctionLoadReplace(ctx, loadable("greeter", "HELLO", "hello", "bye")).Err())
		must(t, c.FunctionLoad(ctx, loadable("other", "x", "f")).Err())
		list, err := c.FunctionList(ctx, goredis.FunctionListQuery{LibraryNamePattern: "greet*", WithCode: true}).Result()
		if err != nil || len(list) != 1 || list[0].Name != "greeter" || list[0].Engine != "WASM" || len(list[0].Functions) != 2 ||
			list[0].Code != loadable("greeter", "HELLO", "hello", "bye") {
			t.Fatalf("%+v, %v", list, err)
		}
		stats, err := c.FunctionStats(ctx).Result()
		if err != nil || stats.Running() || stats.Engines[0].LibrariesCount != 2 || stats.Engines[0].FunctionsCount != 3 {
			t.Errorf("%+v, %v", stats, err)
		}
		dump, err := c.FunctionDump(ctx).Result()
		must(t, err)
		must(t, c.FunctionDelete(ctx, "greeter").Err())
		if err := c.FunctionDelete(ctx, "greeter").Err(); err == nil || err.Error() != "ERR Library not found" {
			t.Errorf("deleted again: %v", err)
		}
		if err := c.FunctionRestore(ctx, dump).Err(); err == nil || !strings.Contains(err.Error(), "already") {
			t.Errorf("restored over what is there: %v", err)
		}
		must(t, c.Do(ctx, "function", "restore", dump, "replace").Err())
		if list, err = c.FunctionList(ctx, goredis.FunctionListQuery{}).Result(); err != nil || len(list) != 2 {
			t.Errorf("%+v, %v", list, err)
		}
		if err := c.FunctionKill(ctx).Err(); err == nil || !strings.HasPrefix(err.Error(), "NOTBUSY") {
			t.Errorf("killed: %v", err)
		}
		must(t, c.FunctionFlushAsync(ctx).Err())
		if list, err = c.FunctionList(ctx, goredis.FunctionListQuery{}).Result(); err != nil || len(list) != 0 {
			t.Errorf("after a flush %+v, %v", list, err)
		}
	})
}

func TestWhatLoadCannotUseIsExplained(t *testing.T) {
	c := dialRaw(t, startOstro(t, redis.Config{}))
	for arg, want := range map[string]string{
		"":                           "ERR Missing library metadata",
		"local x = 1":                "ERR Missing library metadata",
		"#!wasm name=a":              "ERR Missing library metadata",
		"#!lua name=a\nreturn 1":     "ERR Engine 'lua' not found",
		"#!wasm\nx":                  "ERR Library name was not given",
		"#!wasm name=a b=c\nx":       "ERR Invalid metadata value given: b=c",
		"#!wasm name=a/b\nx":         "ERR \"a/b\" is no name for a module",
		"#!wasm name=a\nx":           "ERR the module is refused",
		loadable("a", "x"):           "ERR the module is refused: it exports no function",
		loadable("a", "x", "f")[:60]: "ERR the module is refused",
		"#!wasm name=a\n" + strings.Repeat("x", 5<<20): "ERR the module is refused",
	} {
		r, err := c.do("function", "load", arg)
		if err != nil || !strings.HasPrefix(r.raw, "-"+want) {
			t.Errorf("%.40q answers %.200q, %v; want %q", arg, r.raw, err, want)
		}
	}
	converse(t, c, [][2]string{
		{"FUNCTION LOAD KEEP x", "-ERR Unknown option given: KEEP"},
		{"FUNCTION RESTORE x", "-ERR payload version or checksum are wrong: it is not what FUNCTION DUMP of this server returned"},
		{"FUNCTION RESTORE OSTROFN1", "-ERR payload version or checksum are wrong: it is not what FUNCTION DUMP of this server returned"},
		{"FUNCTION RESTORE OSTROFN1-and-what-else-there-is-to-say-about-it", "-ERR payload version or checksum are wrong: it is not what FUNCTION DUMP of this server returned"},
		{"FUNCTION RESTORE x SOMEHOW", "-ERR Wrong restore policy given, value should be either FLUSH, APPEND or REPLACE."},
		{"FUNCTION FLUSH NOW", "-ERR FUNCTION FLUSH only supports SYNC|ASYNC option"},
		{"FUNCTION LIST WITHALL", "-ERR Unknown argument WITHALL"},
		{"FUNCTION LIST LIBRARYNAME", "-ERR library name argument was not given"},
		{"FUNCTION LIST", "*0"},
		{"FUNCTION LOGS nothing", "-ERR Library not found"},
		{"FUNCTION INFO nothing", "-ERR Library not found"},
		{"MULTI", "+OK"},
		{"FUNCTION FLUSH", "-ERR functions are not changed or listed inside a transaction: send the command by itself"},
		{"EXEC", "-EXECABORT Transaction discarded because of previous errors."},
	}...)
}

func TestNothingThatTellsOfManyFunctionsIsQueued(t *testing.T) {
	c := dialRaw(t, startOstro(t, redis.Config{}))
	const refused = "ERR functions are not changed or listed inside a transaction"
	says(t, c, "m", "function", "load", loadable("m", "x", "f"))
	for _, line := range []string{
		"function list", "function list withcode", "function info", "function info m", "function logs m", "function dump",
		"function load x", "function delete m", "function restore x",
	} {
		says(t, c, "OK", "multi")
		says(t, c, refused, strings.Fields(line)...)
		says(t, c, "EXECABORT", "exec")
	}
	converse(t, c, [][2]string{
		{"MULTI", "+OK"},
		{"FUNCTION KILL", "+QUEUED"},
		{"TENANT FUNCTION default INFO", "+QUEUED"}, // Nobody knows what it comes to before it runs.
		{"EXEC", "*2 -NOTBUSY No scripts in execution right now. -" + refused + ": send the command by itself"},
	}...)
}

func TestCodeIsSentToOneClientOfATenantAtATimeAndNotWithoutEnd(t *testing.T) {
	addr, operator := startWithTenants(t, store.Options{}, "anna password anna", "bert password bert")
	anna, bert := as(t, addr, "anna"), as(t, addr, "bert")
	large := func(i int) {
		name := fmt.Sprint("m", i)
		says(t, anna, name, "function", "load", loadable(name, strings.Repeat("x", 4_000_000), "f"+name))
	}
	for i := range 7 {
		large(i)
	}
	says(t, bert, "m", "function", "load", loadable("m", "x", "f"))
	const busy = "-TRYAGAIN another client has not read the code yet that it asked for"
	// dumping asks for code until it comes, and reads no more than the beginning: who had it before may not have given it back yet.
	dumping := func(c *rawClient) {
		t.Helper()
		await.True(t, "code comes", func() bool {
			must(t, c.send("function", "dump"))
			first, err := c.in.Peek(1)
			must(t, err)
			if first[0] == '$' {
				return true
			}
			r, err := c.receive()
			must(t, err)
			if !strings.HasPrefix(r.raw, busy) {
				t.Fatalf("a dump answers %.100q", r.raw)
			}
			return false
		})
	}
	for _, leave := range []func(*rawClient){
		func(c *rawClient) {
			if r, err := c.receive(); err != nil || len(r.text) < 28_000_000 {
				t.Errorf("who waited has %d bytes, %v", len(r.text), err)
			}
		},
		func(c *rawClient) { must(t, c.conn.Close()) },
	} {
		slow := as(t, addr, "anna")
		dumping(slow) // It is more than sockets hold.
		says(t, anna, busy[1:], "function", "dump")
		says(t, anna, busy[1:], "function", "list", "withcode")
		says(t, bert, "OSTROFN1", "function", "dump")
		says(t, operator, "OSTROFN1", "tenant", "function", "anna", "dump")
		if r := mustDo(t, anna, "function", "list"); len(r.items) != 7 {
			t.Errorf("the list meanwhile is %.100q", r.raw)
		}
		leave(slow)
		dumping(anna)
		if r, err := anna.receive(); err != nil || len(r.text) < 28_000_000 {
			t.Errorf("the next one has %d bytes, %v", len(r.text), err)
		}
	}
	for i := range 2 {
		large(7 + i)
	}
	const refused = "ERR the modules do not fit one reply of a tenant, 32 MiB: ask for some of them, with FUNCTION LIST LIBRARYNAME <pattern> [WITHCODE]"
	says(t, anna, refused, "function", "dump")
	says(t, anna, refused, "function", "list", "withcode")
	for i, r := range converseAll(t, anna, [][]string{
		{"function", "list", "libraryname", "m[0-2]", "withcode"}, {"function", "list", "libraryname", "m[3-5]", "withcode"},
	}) {
		if len(r) < 12_000_000 {
			t.Errorf("pattern %d of a pipeline answers %.100q", i, r)
		}
	}
	says(t, operator, "OSTROFN1", "tenant", "function", "anna", "dump")
}

func TestInfoOfOneModuleTellsOfThatOne(t *testing.T) {
	c := dialRaw(t, startOstro(t, redis.Config{}))
	says(t, c, "a", "function", "load", loadable("a", "x", "f", "g"))
	says(t, c, "b", "function", "load", loadable("b", "x", "h"))
	for _, name := range []string{"a", "b"} {
		r, err := c.do("function", "info", name)
		must(t, err)
		var all []library.Usage
		must(t, json.Unmarshal([]byte(r.text), &all))
		if len(all) != 1 || all[0].Name != name || len(all[0].Of) != len(all[0].Functions) {
			t.Errorf("of %s it tells %+v", name, all)
		}
	}
}

func TestLongAnswersKeepTheirPlaceInAPipeline(t *testing.T) {
	c := dialRaw(t, startOstro(t, redis.Config{}))
	says(t, c, "m", "function", "load", loadable("m", "x", "f"))
	var commands [][]string
	for range 3 {
		commands = append(commands, []string{"PING", "one"}, []string{"FUNCTION", "LIST", "LIBRARYNAME", "nothing"}, []string{"PING", "two"}, []string{"FUNCTION", "INFO", "nothing"})
	}
	for i, r := range converseAll(t, c, commands) {
		if want := []string{"$3\r\none\r\n", "*0\r\n", "$3\r\ntwo\r\n", "-ERR Library not found\r\n"}[i%4]; r != want {
			t.Errorf("answer %d is %q, want %q", i, r, want)
		}
	}
}

func TestATenantsFunctionsAreItsOwnAndTheOperators(t *testing.T) {
	addr, operator := startWithTenants(t, store.Options{}, "anna password anna", "mallory password mallory")
	anna, mallory := as(t, addr, "anna"), as(t, addr, "mallory")
	says(t, anna, "vault", "function", "load", loadable("vault", "SECRET", "peek"))
	says(t, operator, "tools", "function", "load", loadable("tools", "SECRET", "count"))
	for _, args := range [][]string{
		{"function", "list", "withcode"},
		{"function", "list", "libraryname", "*"},
		{"function", "info"},
		{"function", "info", "vault"},
		{"function", "logs", "vault"},
		{"function", "logs", "tools"},
		{"function", "dump"},
		{"function", "stats"},
		{"function", "kill"},
		{"function", "delete", "vault"},
		{"function", "delete", "tools"},
		{"tenant", "function", "anna", "list", "withcode"},
		{"tenant", "function", "anna", "delete", "vault"},
		{"tenant", "function", "default", "list"},
		{"function", "flush"},
	} {
		r, err := mallory.do(args...)
		if err != nil || strings.Contains(r.raw, "SECRET") || strings.Contains(r.raw, "vault") || strings.Contains(r.raw, "tools") {
			t.Errorf("%q answers %q, %v", args, r.raw, err)
		}
	}
	says(t, mallory, "vault", "function", "load", "replace", loadable("vault", "mine", "peek"))
	whose := func(c *rawClient, args ...string) string {
		t.Helper()
		r, err := c.do(append(args, "list", "withcode")...)
		must(t, err)
		return r.raw
	}
	for _, got := range []string{whose(anna, "function"), whose(operator, "tenant", "function", "anna")} {
		if !strings.Contains(got, "SECRET") || !strings.Contains(got, "peek") || strings.Contains(got, "count") {
			t.Errorf("anna has %q", got)
		}
	}
	if got := whose(operator, "function"); !strings.Contains(got, "count") || strings.Contains(got, "peek") {
		t.Errorf("the operator has %q", got)
	}
	says(t, operator, "ERR there is no tenant nobody", "tenant", "function", "nobody", "list")
	says(t, operator, "ERR unknown subcommand 'steal'", "tenant", "function", "anna", "steal")
	says(t, operator, "extra", "tenant", "function", "anna", "load", loadable("extra", "x", "more"))
	says(t, anna, "OK", "function", "delete", "extra")
	says(t, operator, "OK", "tenant", "delete", "anna")
	says(t, operator, "OK", "tenant", "create", "anna", "password", "anna")
	if got := whose(as(t, addr, "anna"), "function"); got != "*0\r\n" {
		t.Errorf("another tenant of the same name has %q", got)
	}
}

func TestLogsAndUsageAreToldAsJSON(t *testing.T) {
	st, err := store.Open(store.Options{})
	must(t, err)
	t.Cleanup(func() { _ = st.Close() })
	functions := newFunctions(t, newTenants(t, st))
	c := dialRaw(t, startOstro(t, redis.Config{Functions: functions}))
	says(t, c, "m", "function", "load", loadable("m", "x", "f"))
	f := functions.Shelf(nil).Find([]byte("f"))
	for i := range 5 {
		f.Log(i%4, fmt.Append(nil, "line ", i))
	}
	f.Note(0, nil, nil, 1000)
	ask := func(v any, args ...string) {
		t.Helper()
		r, err := c.do(args...)
		must(t, err)
		must(t, json.Unmarshal([]byte(r.text), v))
	}
	var lines library.Lines
	ask(&lines, "function", "logs", "m", "after", "2", "level", "Warning")
	if len(lines.Lines) != 2 || lines.Last != 5 || lines.Lines[0].Text != "line 2" || lines.Lines[1].Level != "error" {
		t.Errorf("%+v", lines)
	}
	var usage []library.Usage
	ask(&usage, "function", "info", "m")
	if len(usage) != 1 || usage[0].Counts.Calls != 1 || usage[0].Of["f"].Time != 1000 || usage[0].Version != 1 || usage[0].Tenant != tenant.Operator {
		t.Errorf("%+v", usage)
	}
	converse(t, c, [][2]string{
		{"FUNCTION LOGS m LEVEL loud", "-ERR levels are debug, info, warning and error"},
		{"FUNCTION LOGS m AFTER x", "-ERR value is not an integer or out of range"},
		{"FUNCTION LOGS m AFTER", "-ERR syntax error"},
	}...)
	run := f.Enter()
	r, err := c.do("function", "stats")
	must(t, err)
	if !strings.Contains(r.raw, "duration_ms") {
		t.Errorf("%q", r.raw)
	}
	says(t, c, "OK", "function", "kill")
	if run.Killed() == nil {
		t.Error("it goes on")
	}
	run.Leave()
}

func TestATenantRestoresFunctionsOneAtATime(t *testing.T) {
	st, err := store.Open(store.Options{})
	must(t, err)
	tenants := newTenants(t, st)
	functions := newFunctions(t, tenants)
	addr := startOn(t, st, redis.Config{RequirePass: operatorPassword, Tenants: tenants, Functions: functions})
	operator := as(t, addr, tenant.Operator)
	says(t, operator, "OK", "tenant", "create", "anna", "password", "anna")
	anna := as(t, addr, "anna")
	says(t, anna, "m", "function", "load", loadable("m", "x", "f"))
	dump := mustDo(t, anna, "function", "dump").text

	shelf := functions.Shelf(tenants.Account("anna"))
	if !shelf.Restore() { // As another client does.
		t.Fatal("somebody restores already")
	}
	says(t, anna, "TRYAGAIN another client restores functions", "function", "restore", dump, "replace")
	says(t, operator, "OK", "tenant", "function", "anna", "restore", dump, "replace")
	shelf.Restored()
	for range 2 {
		says(t, anna, "ERR payload version or checksum are wrong", "function", "restore", "x")
		says(t, anna, "ERR", "function", "restore", dump)
		says(t, anna, "OK", "function", "restore", dump, "replace")
	}
}
