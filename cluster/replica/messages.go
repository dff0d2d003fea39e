package replica

import (
	"encoding/binary"
	"math"

	"github.com/ostrodb/ostro/cluster/peer"
	"github.com/ostrodb/ostro/cluster/view"
	"github.com/ostrodb/ostro/engine/record"
	"github.com/ostrodb/ostro/fabric"
)

// What nodes call backups for. All but survey, fetch and health are a primary's calls
// about its own log: the first node that calls for a log is the only one that may,
// and none may once the log is retired.
const (
	MethodConnect = "replica.connect" // ConnectRequest → ConnectAnswer
	MethodOpen    = "replica.open"    // OpenRequest → OpenAnswer
	MethodAppend  = "replica.append"  // AppendHead, bytes → nothing; in order
	MethodClose   = "replica.close"   // CloseRequest → nothing
	MethodRaise   = "replica.raise"   // RaiseRequest → nothing
	MethodPut     = "replica.put"     // PutRequest, bytes → nothing
	MethodRoster  = "replica.roster"  // RosterRequest → nothing
	MethodForget  = "replica.forget"  // ForgetRequest → nothing
	MethodSurvey  = "replica.survey"  // SurveyRequest → SurveyAnswer, runs of batches
	MethodFetch   = "replica.fetch"   // FetchRequest → stream of FetchPart, entries; FetchAnswer
	MethodHealth  = "replica.health"  // HealthRequest → HealthAnswer
)

// Why a backup says no. errors.Is finds them in what a call returned.
var (
	// ErrFull says that the backup has no free buffer, no disk, or as many unflushed
	// buffers as it can save when the power fails. Ask another one.
	ErrFull = peer.NewCode("full", "the backup has no room")
	// ErrRetired says that the log was taken over. Its primary must serve nothing any more.
	ErrRetired = peer.NewCode("retired", "the log is retired: others have taken it over")
	// ErrStale says that the request is older than what the backup knows: a lower
	// replica version, or a segment that is no longer in the roster.
	ErrStale = peer.NewCode("stale", "the request is of an earlier state of the log")
	// ErrForeign says that the log is another node's.
	ErrForeign = peer.NewCode("foreign", "the log is another node's")
	// ErrNotFound says that the backup has no such replica, or none that is open.
	ErrNotFound = peer.NewCode("not-found", "the backup has no such replica")
	// ErrClosed says that the replica is closed already.
	ErrClosed = peer.NewCode("closed", "the replica is closed")
	// ErrCorrupt says that the bytes are not those that were meant: put a new copy.
	ErrCorrupt = peer.NewCode("corrupt", "the replica is corrupt")
	// ErrInvalid says that the request makes no sense.
	ErrInvalid = peer.NewCode("invalid", "the request makes no sense")
)

// Roster is the list of all segments that are part of a log. The primary numbers
// its rosters; a backup keeps the one of the highest number, on disk before it
// answers. Recovery trusts the highest that it finds.
type Roster struct {
	Number uint64 `json:"number"`
	// Version is the log's replica version. An open replica of a lower one is
	// stale, and dropped: so a primary raises all that count before it sends
	// a roster of the new version.
	Version uint64 `json:"version"`
	// Safe is the watermark when the roster was made.
	Safe     record.BatchID `json:"safe"`
	Segments Runs           `json:"segments"`
	// Opening are those of Segments that may not be open at all their backups
	// yet, or, if they are being adopted, not copied there. Of those that are opened no byte of them was written when Safe was taken, so all their batches are
	// beyond it: one that is nowhere to be found never counted.
	Opening Runs `json:"opening,omitempty"`
}

// ConnectRequest makes queue pairs, one for each of the primary's. Those that were made
// for the log before are closed first: when the answer is there nothing lands
// through them any more. Open replicas stay, and their keys work through the
// new queue pairs.
type ConnectRequest struct {
	Log       record.LogID      `json:"log"`
	Endpoints []fabric.Endpoint `json:"endpoints,omitempty"` // none: this log is replicated by Append
}

// ConnectAnswer has the other ends, in the same order. They are connected.
type ConnectAnswer struct {
	Endpoints    []fabric.Endpoint `json:"endpoints,omitempty"`
	SegmentBytes uint32            `json:"segmentBytes"` // of the backup's buffers
}

// OpenRequest gives a segment a zeroed buffer.
//
// A replica that is open already is kept with what it has (a prefix of the segment, so the
// primary can write all of it again), gets the version, if it is not
// lower than its own, and a new key; the old one is revoked. So a request can be repeated, and
// a primary can go on with the replicas of a backup that was restarted.
type OpenRequest struct {
	Log     record.LogID     `json:"log"`
	Segment record.SegmentID `json:"segment"`
	Version uint64           `json:"version"`
	// Bytes is the size of the segment; the buffer has room for it.
	Bytes uint32 `json:"bytes"`
	// Creating says that the replica replaces another one of a segment that is in use: it
	// does not count before Raise, unless it is one that counts already.
	Creating bool   `json:"creating,omitempty"`
	Roster   Roster `json:"roster"` // Segment is in it
	// Number is higher than those of all requests of the log to open or discard that were sent before.
	Number uint64 `json:"number,omitempty"`
}

// OpenAnswer says where to write. The replica, and the roster, outlive kill -9
// of the backup from here on.
type OpenAnswer struct {
	Region fabric.RegionInfo `json:"region"` // zero if the log is not connected; offset 0 is the segment's first byte
	Handle uint64            `json:"handle"` // for Append; ends as the key does
	End    uint32            `json:"end"`    // what is whole of it already, up to a seal; 0 in a fresh buffer
}

// AppendHead is the binary head of Append, for `replication: rpc`. The bytes are in the replica's
// memory when the answer comes. Appends of a connection are taken in order.
type AppendHead struct {
	Handle uint64
	Offset uint32
}

// AppendHeadBytes is the length of an encoded AppendHead.
const AppendHeadBytes = 12

// Encode returns the bytes of the head.
func (h AppendHead) Encode() peer.Raw {
	b := binary.LittleEndian.AppendUint64(make([]byte, 0, AppendHeadBytes), h.Handle)
	return binary.LittleEndian.AppendUint32(b, h.Offset)
}

// CloseRequest says that the segment has its closing seal. The backup answers
// once it has scanned the replica and found exactly this, else ErrCorrupt: then put a copy.
// The key ends. Flushing comes later: a closed replica in memory is as safe as an open one.
// It can be repeated.
type CloseRequest struct {
	Log     record.LogID     `json:"log"`
	Segment record.SegmentID `json:"segment"`
	Closing
}

// Closing is what is known of a closed segment.
type Closing struct {
	End   uint32         `json:"end"`   // behind the closing seal
	Batch record.BatchID `json:"batch"` // of the closing seal
	Sum   uint32         `json:"sum"`   // CRC-32C of all bytes up to End; see Sum
}

// RaiseRequest gives open replicas a higher version and makes those that were
// Creating count. All of Segments are open here, or nothing is changed and the
// answer is ErrNotFound. It can be repeated.
type RaiseRequest struct {
	Log      record.LogID       `json:"log"`
	Version  uint64             `json:"version"`
	Segments []record.SegmentID `json:"segments"`
}

// PutRequest stores a copy of a closed segment, whose bytes up to End are the bulk, or lie in Share. It is on
// disk and verified when the answer comes, or nothing of it counts. It
// replaces whatever replica of the segment there is. It can be repeated.
type PutRequest struct {
	Log     record.LogID     `json:"log"`
	Segment record.SegmentID `json:"segment"`
	Closing
	// Checked says that the primary has checked all entries, and that they end so: a copy that has the sum is as good.
	Checked bool `json:"checked,omitzero"`
	// Patient says that nobody waits for the copy: what it has is safe elsewhere.
	Patient bool `json:"patient,omitzero"`
	// Share is memory of the primary with the bytes. A backup that cannot map it says ErrInvalid.
	Share  *fabric.Share `json:"share,omitempty"`
	Roster Roster        `json:"roster"` // Segment is in it
}

// RosterRequest stores a roster and drops all replicas that it makes stale. An
// older one than is known does nothing, and is no error.
type RosterRequest struct {
	Log    record.LogID `json:"log"`
	Roster Roster       `json:"roster"`
}

// ForgetRequest drops all that the backup has of a log; that a log is retired is
// remembered.
type ForgetRequest struct {
	Log record.LogID `json:"log"`
}

// SurveyRequest asks what there is of a log.
type SurveyRequest struct {
	Log record.LogID `json:"log"`
	// Fence retires the log first: its queue pairs are closed, its keys revoked, its
	// primary's calls refused from now on, also after a restart. What the answer says
	// then never changes but by loss.
	Fence bool `json:"fence,omitempty"`
	// Batches asks for the batches beyond the safe one, too, and for the last of the others.
	Batches bool `json:"batches,omitempty"`
}

// SurveyAnswer is what a backup has of a log. A backup that never heard of it
// answers with no replicas and roster 0.
type SurveyAnswer struct {
	Retired bool `json:"retired,omitempty"`
	// Directory is the backup's ID, 0 if its disk is too full to have one. A backup of an earlier version does not say.
	Directory *uint64 `json:"directory,omitempty"`

	Roster   Roster        `json:"roster"`
	Replicas []ReplicaInfo `json:"replicas"`
}

// State is where a replica is in its life.
type State string

// States of replicas.
const (
	StateCreating State = "creating" // open, but does not count yet
	StateOpen     State = "open"
	StateClosed   State = "closed"
)

// ReplicaInfo is what a backup knows of a replica: by a scan of its bytes while it is open.
type ReplicaInfo struct {
	Segment record.SegmentID `json:"segment"`
	Version uint64           `json:"version,omitempty"`
	State   State            `json:"state"`
	// Sealed tells that the closing seal is there, whether it was closed or not.
	Sealed  bool           `json:"sealed,omitempty"`
	Corrupt bool           `json:"corrupt,omitempty"`
	End     uint32         `json:"end"`
	Batch   record.BatchID `json:"batch,omitempty"` // the last one up to End
	Sum     uint32         `json:"sum,omitempty"`   // CRC-32C up to End, of closed ones
	// TornBytes lie beyond End: a batch that did not arrive whole.
	TornBytes uint32 `json:"tornBytes,omitempty"`
	OnDisk    bool   `json:"onDisk,omitempty"` // in a file of its own; else in a buffer
	// RunBytes is how many bytes of the answer's bulk are this replica's batches
	// beyond its backup's safe one, and the last that is not; see DecodeRuns.
	RunBytes uint32 `json:"runBytes,omitempty"`
}

// AllBatches is the cut that cuts nothing.
const AllBatches = record.BatchID(math.MaxUint64)

// FetchRequest asks for the entries of a segment whose place lies in Ranges, up to the
// batch Cut; or for the bytes of the segment.
type FetchRequest struct {
	Log     record.LogID     `json:"log"`
	Segment record.SegmentID `json:"segment"`
	Cut     record.BatchID   `json:"cut"`
	Ranges  view.Ranges      `json:"ranges,omitempty"`
	Floors  []view.Floor     `json:"floors,omitempty"`
	Whole   bool             `json:"whole,omitempty"`
}

// FetchPart comes with whole entries, one behind the other: no seals, voids or segment
// headers. Of a whole segment it comes with its next bytes.
type FetchPart struct {
	Entries int `json:"entries,omitempty"`
}

// FetchAnswer ends a stream and says what must have come.
type FetchAnswer struct {
	Entries uint64         `json:"entries"`
	Bytes   uint64         `json:"bytes"`
	End     uint32         `json:"end"`   // how far the segment was read
	Batch   record.BatchID `json:"batch"` // the last batch that was read
	Closed  bool           `json:"closed,omitempty"`
}

// HealthRequest asks a backup how it is, and the replicas of a log with it.
type HealthRequest struct {
	Log record.LogID `json:"log"`
}

// HealthAnswer tells the primary what it should put anew, and how much room there is.
type HealthAnswer struct {
	Corrupt  []record.SegmentID `json:"corrupt,omitempty"`
	Replicas int                `json:"replicas"` // of the log
	Open     int                `json:"open"`     // of them
	Free     int                `json:"free"`     // buffers that can be opened now
	Full     bool               `json:"full,omitempty"`
}
