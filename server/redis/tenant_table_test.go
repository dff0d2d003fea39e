package redis_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/server/redis"
)

// whatTenantsSee has, for every command, how a tenant uses it. Each line is run by a tenant that is alone on its server, and by one
// whose server others use, too: it must be answered alike. Lines that begin with ! are the operator's: NOPERM.
var whatTenantsSee = map[string][]string{
	"get": {"get k1", "get SECRETKEY-anna-1"}, "set": {"set mine v", "set mine v nx get"}, "setnx": {"setnx k2 v"}, "setex": {"setex e 100 v"},
	"psetex": {"psetex e 100000 v"}, "getset": {"getset k3 v"}, "getdel": {"getdel k4"}, "getex": {"getex k5 ex 100"},
	"mget": {"mget k1 k2 k6 SECRETKEY-anna-1"}, "mset": {"mset m1 v m2 v"}, "msetnx": {"msetnx k7 v k8 v"}, "append": {"append k9 x"}, "strlen": {"strlen k10"},
	"setrange": {"setrange k10 1 x"}, "getrange": {"getrange k11 0 -1"}, "substr": {"substr k11 0 -1"}, "incr": {"incr n"}, "decr": {"decr n"},
	"incrby": {"incrby n 5"}, "decrby": {"decrby n 5"}, "incrbyfloat": {"incrbyfloat f 1.5"}, "lcs": {"lcs k12 k13", "lcs k12 k13 idx"},
	"setbit": {"setbit k14 1 1"}, "getbit": {"getbit k15 1"}, "bitcount": {"bitcount k16"}, "bitpos": {"bitpos k16 1"}, "bitop": {"bitop or x k17 k18"},
	"bitfield": {"bitfield k17 get u8 0"}, "bitfield_ro": {"bitfield_ro k18 get u8 0"},

	"del": {"del k19 SECRETKEY-anna-2"}, "unlink": {"unlink k18 SECRETKEY-anna-2"}, "exists": {"exists k1 k2 SECRETKEY-anna-1"}, "touch": {"touch k1 SECRETKEY-anna-1"},
	"expire": {"expire k1 100"}, "pexpire": {"pexpire k1 100000"}, "expireat": {"expireat k1 9999999999"}, "pexpireat": {"pexpireat k1 9999999999999"},
	"ttl": {"ttl k2"}, "pttl": {"pttl k2"}, "expiretime": {"expiretime k1 "}, "pexpiretime": {"pexpiretime k2"}, "persist": {"persist k1"}, "type": {"type k1"},
	"rename": {"rename k1 mine"}, "renamenx": {"renamenx k1 mine"}, "copy": {"copy k1 c", "copy mine c db 1", "copy mine c db 2"}, "move": {"move c 1", "move c 2"},
	"migrate": {"!migrate h 1 k 0 1"}, "randomkey": {"randomkey", "select 1", "randomkey", "select 0"}, "keys": {"keys *", "keys k*", "keys SECRET*"},
	"scan": {"scan 0 match SECRET*", "scan 0 match nothing count 1000", "scan 12345 count 1000"}, "wait": {"wait 0 0"},
	"object|encoding": {"object encoding k1"}, "object|freq": {"object freq k1"}, "object|idletime": {"object idletime k1"}, "object|refcount": {"object refcount k1"}, "object|help": {"object help"},

	"multi": {"multi", "get k2", "discard"}, "exec": {"multi", "get k2", "dbsize", "exec"}, "discard": {"multi", "discard"}, "watch": {"watch k1"}, "unwatch": {"unwatch"},
	"ping": {"ping"}, "echo": {"echo x"}, "select": {"select 1", "dbsize", "select 2", "select 65536", "select 0"}, "auth": {"auth anna wrong", "auth nobody wrong"},
	"hello": {"hello 2 auth anna wrong", "hello 2 auth nobody wrong"}, "quit": nil, "reset": nil,
	"client|id": {"client id"}, "client|info": {"client info"}, "client|list": {"!client list"}, "client|kill": {"!client kill id 1"}, "client|setname": {"client setname me"},
	"client|getname": {"client getname"}, "client|setinfo": {"client setinfo lib-name x"}, "client|reply": {"client reply on"}, "client|no-evict": {"!client no-evict on"},
	"client|no-touch": {"client no-touch on"}, "client|unblock": {"!client unblock 1"}, "client|pause": {"!client pause 1"}, "client|unpause": {"!client unpause"},
	"client|getredir": {"client getredir"}, "client|trackinginfo": {"client trackinginfo"}, "client|tracking": {"client tracking off"}, "client|help": {"client help"},

	"fcall": {"fcall put 1 k1 v", "fcall list 0", "fcall list 0 SECRET", "fcall look 1 SECRETKEY-anna-1", "fcall secret 0"}, "fcall_ro": {"fcall_ro look 1 k1", "fcall_ro list 0 k"},
	"function|load": {"function load nothing"}, "function|delete": {"function delete secrets"}, "function|flush": {"function flush"}, "function|list": {"function list"},
	"function|info": {"function info", "function info secrets"}, "function|logs": {"function logs secrets"}, "function|stats": {"function stats"}, "function|kill": {"function kill"},
	"function|dump": {"function dump"}, "function|restore": {"function restore x"}, "function|help": {"function help"},

	"cluster|info": {"cluster info"}, "cluster|nodes": {"cluster nodes"}, "cluster|slots": {"cluster slots"}, "cluster|shards": {"cluster shards"}, "cluster|myid": {"cluster myid"},
	"cluster|keyslot": {"cluster keyslot k"}, "cluster|countkeysinslot": {"cluster countkeysinslot 1"}, "cluster|getkeysinslot": {"cluster getkeysinslot 1 10"},
	"cluster|links": {"!cluster links"}, "cluster|replicas": {"!cluster replicas x"}, "cluster|slaves": {"!cluster slaves x"}, "cluster|count-failure-reports": {"!cluster count-failure-reports x"},
	"cluster|meet": {"!cluster meet h 1"}, "cluster|forget": {"!cluster forget x"}, "cluster|replicate": {"!cluster replicate x"}, "cluster|failover": {"!cluster failover"},
	"cluster|addslots": {"!cluster addslots 1"}, "cluster|addslotsrange": {"!cluster addslotsrange 1 2"}, "cluster|delslots": {"!cluster delslots 1"},
	"cluster|delslotsrange": {"!cluster delslotsrange 1 2"}, "cluster|flushslots": {"!cluster flushslots"}, "cluster|setslot": {"!cluster setslot 1 stable"},
	"cluster|reset": {"!cluster reset"}, "cluster|saveconfig": {"!cluster saveconfig"}, "cluster|set-config-epoch": {"!cluster set-config-epoch 1"},
	"cluster|bumpepoch": {"!cluster bumpepoch"}, "cluster|forwarded": {"!cluster forwarded"}, "cluster|help": {"cluster help"},
	"asking": {"asking"}, "readonly": {"readonly"}, "readwrite": {"readwrite"},

	"dbsize": {"dbsize"}, "flushdb": {"select 1", "set x y", "flushdb", "dbsize", "select 0"}, "flushall": {"flushall", "dbsize"}, "swapdb": {"set x y", "swapdb 0 1", "dbsize", "swapdb 0 2"},
	"info": {"info", "info everything", "info keyspace", "info clients", "info memory"}, "command": {"command count"}, "command|count": {"command count"}, "command|info": {"command info get"},
	"command|docs": {"command docs get"}, "command|list": {"command list"}, "command|getkeys": {"command getkeys get k"}, "command|getkeysandflags": {"command getkeysandflags get k"}, "command|help": {"command help"},
	"memory|usage": {"memory usage k1", "memory usage SECRETKEY-anna-1"}, "memory|stats": {"!memory stats"}, "memory|doctor": {"!memory doctor"}, "memory|purge": {"!memory purge"},
	"memory|malloc-stats": {"!memory malloc-stats"}, "memory|help": {"memory help"},
	"config|get": {"!config get *"}, "config|set": {"!config set timeout 1"}, "config|resetstat": {"!config resetstat"}, "config|rewrite": {"!config rewrite"}, "config|help": {"config help"},
	"slowlog|get": {"!slowlog get"}, "slowlog|len": {"!slowlog len"}, "slowlog|reset": {"!slowlog reset"}, "slowlog|help": {"slowlog help"},
	"latency|latest": {"!latency latest"}, "latency|history": {"!latency history x"}, "latency|reset": {"!latency reset"}, "latency|doctor": {"!latency doctor"}, "latency|help": {"latency help"},
	"tenant|create": {"!tenant create x password x"}, "tenant|set": {"!tenant set anna operations 1"}, "tenant|delete": {"!tenant delete anna"}, "tenant|list": {"!tenant list"},
	"tenant|function": {"!tenant function anna list", "!tenant function anna logs secrets", "!tenant function anna info"}, "tenant|help": {"tenant help"},
	"time": {"time"}, "role": {"role"}, "replicaof": {"!replicaof no one"}, "slaveof": {"!slaveof no one"}, "save": {"!save"}, "bgsave": {"!bgsave"}, "lastsave": {"!lastsave"}, "shutdown": {"!shutdown"},
}

// differs are commands whose answers are of the connection or of the time, and may differ.
var differs = map[string]string{
	"client|id": "of the connection", "client|info": "of the connection", "time": "of the time", "pttl": "of the time", "hello": "of the connection",
	"scan": "cursors are places in what all share",
}

var times = regexp.MustCompile(`installed":"[^"]*"`)

// timeless is a reply without times, and without its length, which is theirs, too.
func timeless(raw string) string {
	if !times.MatchString(raw) {
		return raw
	}
	_, raw, _ = strings.Cut(raw, "\r\n")
	return times.ReplaceAllString(raw, "")
}

// strangers are who shares a server with the tenant under test: they have keys of the same names, more databases, modules, logs, and are at work.
func strangers(t *testing.T, addr string, operator *rawClient) {
	t.Helper()
	module, err := os.ReadFile("../call/testdata/calls.wasm")
	if err != nil {
		t.Fatal(err)
	}
	says(t, operator, "OK", strings.Fields("tenant create anna password anna databases 4")...)
	anna := as(t, addr, "anna")
	says(t, anna, "secrets", "function", "load", "#!wasm name=secrets\n"+string(module))
	w := wall{databases: 2, owners: map[string]*rawClient{"anna": anna, "operator": operator}}
	w.build(t)
	for i := range 2000 {
		says(t, anna, "OK", "set", fmt.Sprint("SECRETKEY-more-", i), "SECRET")
	}
	says(t, anna, "", "fcall", "put", "1", "k1", "SECRET")
}

func TestATenantIsAnsweredAsIfItWereAlone(t *testing.T) {
	for _, name := range redis.CommandNames() {
		if _, has := whatTenantsSee[name]; !has {
			t.Errorf("%s is not in the table: say what a tenant sees of it", name)
		}
	}
	module, err := os.ReadFile("../call/testdata/calls.wasm")
	if err != nil {
		t.Fatal(err)
	}
	var clients [2]*rawClient
	for i := range clients {
		addr := startOstroOn(t, store.Options{}, redis.Config{RequirePass: operatorPassword})
		operator := as(t, addr, "default")
		says(t, operator, "OK", strings.Fields("tenant create mallory password mallory databases 2")...)
		if i == 1 {
			strangers(t, addr, operator)
		}
		clients[i] = as(t, addr, "mallory")
	}
	for _, name := range redis.CommandNames() {
		for _, c := range clients {
			beginAnew(t, c, string(module))
		}
		for _, line := range whatTenantsSee[name] {
			asOperator := strings.HasPrefix(line, "!")
			args := strings.Fields(strings.TrimPrefix(line, "!"))
			var told [2]string
			for i, c := range clients {
				r, err := c.do(args...)
				if err != nil {
					t.Fatalf("%s: %v", line, err)
				}
				told[i] = timeless(r.raw)
			}
			switch {
			case asOperator != strings.HasPrefix(told[1], "-NOPERM"):
				t.Errorf("%s answers %.100q", line, told[1])
			case strings.Contains(told[1], "SECRET") && !strings.Contains(line, "SECRET"):
				t.Errorf("%s shows another's: %.200q", line, told[1])
			case differs[name] == "" && told[0] != told[1]:
				t.Errorf("%s answers a tenant that is alone\n%.300q\nand one that is not\n%.300q", line, told[0], told[1])
			}
		}
	}
}

// beginAnew gives the tenant the same data again.
func beginAnew(t *testing.T, c *rawClient, module string) {
	t.Helper()
	says(t, c, "OK", "select", "0")
	says(t, c, "OK", "flushall")
	says(t, c, "OK", "set", "k1", "v1")
	says(t, c, "mine", "function", "load", "replace", "#!wasm name=mine\n"+module)
}
