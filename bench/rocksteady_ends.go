package bench

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ostrodb/ostro/bench/workload"
	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/engine/store"
)

// endsAlone is how fast some threads can do their part of a migration when nobody else does anything: Figure 2.15
// of the dissertation.
type endsAlone struct {
	RecordBytes int     `json:"record_bytes"` // key and value
	Records     int     `json:"records"`
	Threads     int     `json:"threads"`
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

// measureEnds fills a store in memory, pulls it all, and replays it into another, with one thread and with one for each core.
func measureEnds(ctx context.Context, size int) ([]endsAlone, error) {
	if size <= workload.Text30.Len() {
		return nil, fmt.Errorf("--alone %d: keys alone have %d bytes", size, workload.Text30.Len())
	}
	records := endsBytes / size
	source, err := store.Open(store.Options{Cluster: true})
	if err != nil {
		return nil, err
	}
	defer source.CloseUnsaved()
	if err := fillStore(source, records, size-workload.Text30.Len()); err != nil {
		return nil, err
	}
	pulls, got, err := pullAll(source, wholeSpace, true)
	if err != nil {
		return nil, err
	}
	if got != records {
		return nil, fmt.Errorf("%d of %d records were pulled", got, records)
	}
	var all []endsAlone
	for _, threads := range slices.Compact([]int{1, runtime.NumCPU()}) {
		a := endsAlone{RecordBytes: size, Records: records, Threads: threads}
		if a.Pull, err = timePulls(source, a); err != nil {
			return nil, err
		}
		if a.Replay, err = timeReplay(ctx, pulls, a); err != nil {
			return nil, err
		}
		all = append(all, a)
	}
	return all, nil
}

// together has so many goroutines do something, and is how long that took.
func together(n int, do func(i int) error) (time.Duration, error) {
	errs := make([]error, n)
	var all sync.WaitGroup
	began := time.Now()
	for i := range n {
		all.Go(func() { errs[i] = do(i) })
	}
	all.Wait()
	return time.Since(began), errors.Join(errs...)
}

// timePulls is in megabytes a second. Nothing of what is pulled is kept: the wire has it.
func timePulls(source *store.Store, a endsAlone) (float64, error) {
	var records atomic.Int64
	parts := partsOf(wholeSpace, a.Threads)
	took, err := together(a.Threads, func(i int) error {
		_, n, err := pullAll(source, parts[i], false)
		records.Add(int64(n))
		return err
	})
	if err == nil && records.Load() != int64(a.Records) {
		err = fmt.Errorf("%d of %d records were pulled", records.Load(), a.Records)
	}
	return float64(a.Records*a.RecordBytes) / 1e6 / took.Seconds(), err
}

// partsOf cuts a range into so many alike.
func partsOf(r store.Range, n int) (parts []store.Range) {
	step := (r.Last-r.First)/record.Place(n) + 1
	for first := r.First; len(parts) < n-1; first += step {
		parts = append(parts, store.Range{First: first, Last: first + step - 1})
	}
	return append(parts, store.Range{First: r.First + record.Place(n-1)*step, Last: r.Last})
}

// timeReplay is in megabytes a second, into a store that is new.
func timeReplay(ctx context.Context, pulls [][]byte, a endsAlone) (float64, error) {
	target, err := store.Open(store.Options{Cluster: true})
	if err != nil {
		return 0, err
	}
	defer target.CloseUnsaved()
	arrival, err := target.Arrive(store.ArriveOptions{Ranges: []store.Range{wholeSpace}, Ceiling: 1 << 40, Puller: nobody{}})
	if err != nil {
		return 0, err
	}
	defer arrival.End()
	took, err := together(a.Threads, func(i int) error {
		w, err := arrival.NewWorker()
		for ; err == nil && i < len(pulls); i += a.Threads {
			err = w.Import(ctx, pulls[i])
		}
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("replay: %w", err)
	}
	if got := target.Metrics().Keys; got != int64(a.Records) {
		return 0, fmt.Errorf("%d of %d records were replayed", got, a.Records)
	}
	return float64(a.Records*a.RecordBytes) / 1e6 / took.Seconds(), nil
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

// pullAll reads a range as its targets do, and copies what they would get into a buffer, as the wire does. If all is to be kept
// there are many: memory that was never used before costs more than the pull, so that is not timed.
func pullAll(st *store.Store, r store.Range, keep bool) (pulls [][]byte, records int, err error) {
	ss, err := st.NewSession()
	if err != nil {
		return nil, 0, err
	}
	defer ss.Close()
	buf := make([]byte, 0, pullBytes+4096)
	for cursor := (store.PullCursor{}); ; {
		buf = buf[:0]
		ss.Begin()
		next, status := ss.Pull(r, cursor, pullBytes, func(entry []byte) {
			buf = append(buf, entry...)
			records++
		})
		ss.End()
		if status != store.OK {
			return nil, 0, fmt.Errorf("pull: %v", status)
		}
		if keep {
			pulls = append(pulls, slices.Clone(buf))
		}
		if cursor = next; cursor == (store.PullCursor{}) {
			return pulls, records, nil
		}
	}
}

// endsPaper is what Figure 2.15 says of records of 128 B, with all cores of a server.
var endsPaper = map[int][2]string{128: {"5,700", "3,000"}}

func endsTable(all []endsAlone) table {
	t := table{
		title: "The two ends alone (Figure 2.15; the paper's servers have 12 workers)",
		names: 2,
		head:  []string{"record", "threads", "records", "pull MB/s", "paper", "replay MB/s", "paper", "pull/replay", "paper"},
	}
	for _, a := range all {
		pull, replay, ratio := "-", "-", "-"
		if p, known := endsPaper[a.RecordBytes]; known && a.Threads > 1 {
			pull, replay, ratio = p[0], p[1], "1.8x to 2.4x"
		}
		t.add(fmt.Sprintf("%d B", a.RecordBytes), fmt.Sprint(a.Threads), grouped(int64(a.Records)), decimals(a.Pull, 0), pull, decimals(a.Replay, 0), replay, times(a.Pull/a.Replay), ratio)
	}
	return t
}
