package replica_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/ostrodb/ostro/cluster/peer"
	"github.com/ostrodb/ostro/cluster/replica"
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/fabric"
	"github.com/ostrodb/ostro/internal/await"
)

var methods = []string{
	replica.MethodConnect, replica.MethodOpen, replica.MethodAppend, replica.MethodClose, replica.MethodRaise, replica.MethodPut,
	replica.MethodRoster, replica.MethodForget, replica.MethodSurvey, replica.MethodFetch, replica.MethodHealth,
}

func TestNonsenseIsRefusedAndChangesNothing(t *testing.T) {
	s := newScene(t, 1)
	x := closedText(logID, 5, 10)
	check(t, s.put("b1", x, roster(3, 9, 5)))
	huge := replica.Runs{{0, 1<<64 - 1}}
	for name, c := range map[string]struct {
		method string
		head   any
	}{
		"a roster of everything":     {replica.MethodRoster, replica.RosterRequest{Log: logID, Roster: replica.Roster{Number: 9, Segments: huge}}},
		"opening everything":         {replica.MethodRoster, replica.RosterRequest{Log: logID, Roster: replica.Roster{Number: 9, Opening: huge}}},
		"a roster out of order":      {replica.MethodRoster, replica.RosterRequest{Log: logID, Roster: replica.Roster{Number: 9, Segments: replica.Runs{{5, 5}, {1, 2}}}}},
		"a roster without a number":  {replica.MethodRoster, replica.RosterRequest{Log: logID}},
		"a small segment":            {replica.MethodOpen, replica.OpenRequest{Log: logID, Segment: 6, Version: 1, Bytes: 8, Roster: roster(4, 0, 5, 6)}},
		"a segment in no roster":     {replica.MethodOpen, replica.OpenRequest{Log: logID, Segment: 6, Version: 1, Bytes: segmentBytes, Roster: roster(4, 0, 5)}},
		"an old version":             {replica.MethodOpen, replica.OpenRequest{Log: logID, Segment: 6, Bytes: segmentBytes, Roster: roster(4, 0, 5, 6)}},
		"too many queue pairs":       {replica.MethodConnect, replica.ConnectRequest{Log: logID, Endpoints: make([]fabric.Endpoint, 65)}},
		"a close of nothing":         {replica.MethodClose, replica.CloseRequest{Log: logID, Segment: 77}},
		"a close of something else":  {replica.MethodClose, replica.CloseRequest{Log: logID, Segment: 5}},
		"a raise of a closed one":    {replica.MethodRaise, replica.RaiseRequest{Log: logID, Version: 9, Segments: []record.SegmentID{5}}},
		"a fetch of nothing":         {replica.MethodFetch, replica.FetchRequest{Log: logID, Segment: 77}},
		"a fetch of an unknown log":  {replica.MethodFetch, replica.FetchRequest{Log: 1, Segment: 5}},
		"an append without a handle": {replica.MethodAppend, replica.AppendHead{}.Encode()},
		"half a head":                {replica.MethodAppend, peer.Raw("half")},
		"a put of nothing":           {replica.MethodPut, replica.PutRequest{Log: logID, Segment: 5, Roster: roster(4, 0, 5)}},
		"a string for a log":         {replica.MethodSurvey, map[string]string{"log": "abc"}},
		"a range that is none":       {replica.MethodFetch, json.RawMessage(`{"log":2748,"segment":5,"ranges":["zz"]}`)},
		"no JSON":                    {replica.MethodSurvey, peer.Raw("{{{")},
		"nothing at all":             {replica.MethodOpen, nil},
	} {
		var said *peer.Error
		if err := s.call("b1", c.method, c.head, nil, nil); !errors.As(err, &said) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if a := s.survey("b1", false); len(a.Replicas) != 1 || a.Roster.Number != 3 || a.Replicas[0].Corrupt {
		t.Fatalf("got %+v", a)
	}
	if m := s.hosts["b1"].Metrics(); m.BuffersBusy != 0 {
		t.Fatalf("%d buffers are in use", m.BuffersBusy)
	}
}

func TestAForgedKeyCostsTheConnectionAndNothingElse(t *testing.T) {
	s := newScene(t, 1)
	x := newText(logID, 5).batch(10, 3, false)
	a := s.fill(s.connect("b1", logID), x, x.end, roster(1, 9, 5))
	other := record.LogID(0xdef)
	q := openRequest(5, roster(1, 9, 5))
	q.Log = other
	l := s.connect("b1", other)
	theirs := must(s.open("b1", q))(t)
	for name, at := range map[string]fabric.Target{
		"a key of another log": a.Region.At(0),
		"beyond the end":       theirs.Region.At(segmentBytes - 2),
		"no key":               {Key: theirs.Region.Key + 1, Addr: theirs.Region.Base},
	} {
		if st := l.write(at, []byte("hello")); st == fabric.OK {
			t.Errorf("%s was written to", name)
		}
		l = s.connect("b1", other)
	}
	if got := s.one("b1"); got.End != uint32(x.end) || got.TornBytes != 0 {
		t.Fatalf("got %+v", got)
	}
}

func FuzzABackupTakesAnyRequestForWhatItIs(f *testing.F) {
	f.Add(byte(1), []byte(`{"log":1,"segment":2,"version":1,"bytes":65536,"roster":{"number":1,"segments":[[2,2]]}}`), []byte("x"))
	f.Add(byte(8), []byte(`{"log":1,"fence":true}`), []byte(nil))
	f.Add(byte(9), []byte(`{"log":1,"segment":2,"cut":7,"ranges":["0000000000000000-ffffffffffffffff"]}`), []byte(nil))
	b, err := replica.OpenBackup(replica.BackupOptions{Dir: f.TempDir(), SegmentBytes: segmentBytes, FlushRate: 1 << 30, ScrubRate: -1})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = b.Close() })
	answer := replica.Answerers(b)
	f.Fuzz(func(t *testing.T, which byte, head, bulk []byte) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		answer[methods[int(which)%len(methods)]](ctx, replica.NewCall("fuzz", head, bulk))
	})
}

func TestTheScrubberFindsByItselfWhatHasChanged(t *testing.T) {
	s := newScene(t, 1, func(o *replica.BackupOptions) { o.ScrubRate = 1 << 30 })
	h := s.hosts["b1"]
	check(t, s.put("b1", closedText(logID, 5, 10), roster(1, 9, 5)))
	h.stop()
	damage(t, h, 5)
	h.start()
	await.True(t, "health tells", func() bool { return len(s.health("b1").Corrupt) == 1 })
}

func TestABackupMeasuresItsDiskIfItIsNotTold(t *testing.T) {
	s := newScene(t, 1, func(o *replica.BackupOptions) { o.FlushRate = 0 })
	must(s.open("b1", openRequest(5, roster(1, 9, 5))))(t)
	for _, name := range files(t, s.hosts["b1"].dir) {
		if strings.Contains(name, "probe") {
			t.Errorf("%s was left behind", name)
		}
	}
}
