package admin

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/ostrodb/ostro/engine/store"
	"github.com/ostrodb/ostro/server/call"
	"github.com/ostrodb/ostro/server/redis"
	"github.com/ostrodb/ostro/server/session"
)

// node is a Node whose state the test sets.
type node struct {
	phase  Phase
	health error
	store  *store.Metrics
	redis  *redis.Metrics
	native *session.Metrics
	calls  call.Metrics
}

func (n *node) Phase() Phase  { return n.phase }
func (n *node) Health() error { return n.health }
func (n *node) Facts() []Fact { return []Fact{{"keys", "<7>"}} }
func (n *node) Store() (m store.Metrics, ok bool) {
	if n.store != nil {
		m = *n.store
	}
	return m, n.store != nil
}

func (n *node) Redis() (m redis.Metrics, ok bool) {
	if n.redis != nil {
		m = *n.redis
	}
	return m, n.redis != nil
}

func (n *node) Native() (m session.Metrics, ok bool) {
	if n.native != nil {
		m = *n.native
	}
	return m, n.native != nil
}

func (n *node) Calls() (call.Metrics, bool) { return n.calls, n.redis != nil }

func get(n Node, path string) (int, string) {
	w := httptest.NewRecorder()
	Handler("1.2.3", n).ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	return w.Code, w.Body.String()
}

func TestProfilesDoNotShowTheCommandLine(t *testing.T) {
	if code, body := get(&node{}, "/debug/pprof/"); code != 200 {
		t.Errorf("profiles: %d %s", code, body)
	}
	if code, body := get(&node{}, "/debug/pprof/cmdline"); code != 404 {
		t.Errorf("flags may have passwords, and are shown: %d %q", code, body)
	}
}

func TestReadinessFollowsThePhaseAndHealthDoesNot(t *testing.T) {
	recovering := &node{phase: Phase{Name: "recovering", Progress: store.Progress{Stage: "replay", Done: 3, Total: 9, Unit: "segments"}}}
	if code, body := get(recovering, "/readyz"); code != 503 || !strings.Contains(body, "replay 3 of 9 segments") {
		t.Errorf("while recovering: readyz %d %s", code, body)
	}
	if code, _ := get(recovering, "/healthz"); code != 200 {
		t.Errorf("while recovering: healthz %d", code)
	}
	serving := &node{phase: Phase{Name: "serving", Ready: true}}
	if code, _ := get(serving, "/readyz"); code != 200 {
		t.Errorf("while serving: readyz %d", code)
	}
	serving.health = errors.New("disk failed")
	for _, path := range []string{"/readyz", "/healthz"} {
		if code, body := get(serving, path); code != 503 || !strings.Contains(body, "disk failed") {
			t.Errorf("with a failed disk: %s %d %s", path, code, body)
		}
	}
}

func TestTheStatusPageShowsFactsEscaped(t *testing.T) {
	code, body := get(&node{phase: Phase{Name: "serving"}}, "/")
	if code != 200 || !strings.Contains(body, "&lt;7&gt;") || !strings.Contains(body, "1.2.3") {
		t.Fatalf("%d %s", code, body)
	}
	if code, _ := get(&node{}, "/nowhere"); code != 404 {
		t.Fatalf("an unknown page gave %d", code)
	}
}

func TestMetricsAreThereBeforeAndAfterRecovery(t *testing.T) {
	if code, body := get(&node{phase: Phase{Name: "recovering"}}, "/metrics"); code != 200 || !strings.Contains(body, "ostro_ready 0") {
		t.Fatalf("before: %d", code)
	}
	n := &node{phase: Phase{Ready: true}, store: &store.Metrics{Keys: 42}, redis: &redis.Metrics{Commands: 7, Loops: make([]redis.LoopMetrics, 2)}, native: &session.Metrics{Operations: 9}, calls: call.Metrics{Conflicts: 5}}
	_, body := get(n, "/metrics")
	for _, want := range []string{"ostro_keys 42", "ostro_commands_total 7", "ostro_native_operations_total 9", "ostro_call_conflicts_total 5", `ostro_loop_clients{loop="1"} 0`, "go_goroutines", "ostro_ready 1"} {
		if !strings.Contains(body, want) {
			t.Errorf("missing %s", want)
		}
	}
}

func TestMetricsKeepToPrometheusConventions(t *testing.T) {
	n := &node{store: &store.Metrics{}, redis: &redis.Metrics{Loops: make([]redis.LoopMetrics, 1)}, native: &session.Metrics{}}
	problems, err := testutil.CollectAndLint(newCollector("x", n))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

// TestEveryNumberIsExported sets one field at a time and looks for a sample
// that shows it, so that a field added to Metrics cannot be forgotten here.
func TestEveryNumberIsExported(t *testing.T) {
	everyNumber(t, storeMetrics)
	everyNumber(t, redisMetrics)
	everyNumber(t, nativeMetrics)
}

func everyNumber[M any](t *testing.T, metrics []metric[M]) {
	t.Helper()
	shape := reflect.TypeFor[M]()
	for i := range shape.NumField() {
		if shape.Field(i).Type.Kind() != reflect.Int64 {
			continue
		}
		var m M
		reflect.ValueOf(&m).Elem().Field(i).SetInt(77)
		if !shows(metrics, &m) {
			t.Errorf("%s.%s has no metric", shape, shape.Field(i).Name)
		}
	}
}

func shows[M any](metrics []metric[M], m *M) bool {
	for _, x := range metrics {
		if x.read(m) == 77 {
			return true
		}
	}
	return false
}

var _ prometheus.Collector = (*collector)(nil)
