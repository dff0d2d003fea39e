package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ostrodb/ostro/bench/workload"
	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/store"
)

// endsAlone is how fast one thread can do its part of a migration when nobody else does anything: Figure 2.15
// of the dissertation.
type endsAlone struct {
	RecordBytes int     `json:"record_bytes"` // key and value
	Records     int     `json:"records"`
	Pull        float64 `json:"pull_mb_per_second"`
	Replay      float64 `json:"replay_mb_per_second"`
}

// endsBytes is how much is pulled and replayed.
const endsBytes = 128 << 20

// pullBytes is what one pull brings, as in a migration.
const pullBytes = 20 << 10

// nobody is a Puller of an arrival that nobody reads from.
type nobody struct{}

func (nobody) Want(_ []store.ArrivingKey, done func(error)) { done(errors.New("nobody asks")) }

var wholeSpace = store.Range{First: view.Whole.First, Last: view.Whole.Last}

// measureEnds fills a store in memory, pulls it all, and replays it into another.
func measureEnds(ctx context.Context, size int) (endsAlone, error) {
	if size <= workload.Text30.Len() {
		return endsAlone{}, fmt.Errorf("--alone %d: keys alone have %d bytes", size, workload.Text30.Len())
	}
	a := endsAlone{RecordBytes: size, Records: endsBytes / size}
	source, err := store.Open(store.Options{Cluster: true})
	if err != nil {
		return a, err
	}
	defer source.CloseUnsaved()
	if err := fillStore(source, a.Records, size-workload.Text30.Len()); err != nil {
		return a, err
	}
	began := time.Now()
	pulls, records, err := pullAll(source)
	if err != nil {
		return a, err
	}
	a.Pull = float64(endsBytes) / 1e6 / time.Since(began).Seconds()
	if records != a.Records {
		return a, fmt.Errorf("%d of %d records were pulled", records, a.Records)
	}
	target, err := store.Open(store.Options{Cluster: true})
	if err != nil {
		return a, err
	}
	defer target.CloseUnsaved()
	began = time.Now()
	if err := replayAll(ctx, target, pulls); err != nil {
		return a, err
	}
	a.Replay = float64(endsBytes) / 1e6 / time.Since(began).Seconds()
	if got := target.Metrics().Keys; got != int64(a.Records) {
		return a, fmt.Errorf("%d of %d records were replayed", got, a.Records)
	}
	return a, nil
}

// fillBatch is how many records are written before the session lets others through.
const fillBatch = 1000

func fillStore(st *store.Store, records, value int) error {
	ss, err := st.NewSession()
	if err != nil {
		return err
	}
	defer ss.Close()
	key, v := make([]byte, workload.Text30.Len()), make([]byte, value)
	workload.Text30.Put(key, 0)
	for id := 0; id < records; {
		ss.Begin()
		for range fillBatch {
			if id == records {
				break
			}
			workload.Text30.Patch(key, uint64(id))
			k := ss.Key(0, key)
			if status := ss.Put(&k, store.Write{Value: v}, nil); status != store.OK {
				ss.End()
				return fmt.Errorf("fill a store: %v", status)
			}
			id++
		}
		ss.Seal()
		ss.End()
	}
	return nil
}

// pullAll reads a store as its targets do, and copies what they would get into buffers, as the wire does.
func pullAll(st *store.Store) (pulls [][]byte, records int, err error) {
	ss, err := st.NewSession()
	if err != nil {
		return nil, 0, err
	}
	defer ss.Close()
	for cursor := (store.PullCursor{}); ; {
		buf := make([]byte, 0, pullBytes+4096)
		ss.Begin()
		next, status := ss.Pull(wholeSpace, cursor, pullBytes, func(entry []byte) {
			buf = append(buf, entry...)
			records++
		})
		ss.End()
		if status != store.OK {
			return nil, 0, fmt.Errorf("pull: %v", status)
		}
		pulls = append(pulls, buf)
		if cursor = next; cursor == (store.PullCursor{}) {
			return pulls, records, nil
		}
	}
}

// replayAll imports what pulls brought as into places that are served.
func replayAll(ctx context.Context, st *store.Store, pulls [][]byte) error {
	a, err := st.Arrive(store.ArriveOptions{Ranges: []store.Range{wholeSpace}, Ceiling: 1 << 40, Puller: nobody{}})
	if err != nil {
		return err
	}
	defer a.End()
	w, err := a.NewWorker()
	if err != nil {
		return err
	}
	for _, b := range pulls {
		if err := w.Import(ctx, b); err != nil {
			return fmt.Errorf("replay: %w", err)
		}
	}
	return nil
}

func endsTable(all []endsAlone) table {
	t := table{
		title: "The two ends alone, one thread each",
		names: 1,
		head:  []string{"record", "records", "pull MB/s", "replay MB/s"},
	}
	for _, a := range all {
		t.add(fmt.Sprintf("%d B", a.RecordBytes), grouped(int64(a.Records)), decimals(a.Pull, 0), decimals(a.Replay, 0))
	}
	return t
}
