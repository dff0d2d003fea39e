package migrate

// Step is a named point of a migration.
type Step string

// The steps that its target goes through, in their order.
const (
	AfterSample    Step = "after-sample"
	BeforeTransfer Step = "before-transfer"
	AfterTransfer  Step = "after-transfer" // etcd says that the ranges are the target's; nobody serves them
	Yielded        Step = "yielded"        // the source does not, and the target may
	Pulling        Step = "pulling"        // the first records have come
	Pulled         Step = "pulled"         // all have
	Adopted        Step = "adopted"        // side segments have all their copies
	Completed      Step = "completed"
)

// Steps of a target that returns what came.
const (
	Shut     Step = "shut"     // it serves nothing of it any more; etcd does not know
	Returned Step = "returned" // etcd says that the ranges are the source's, who may not have heard
)

// Steps of the source.
const (
	Given     Step = "given"     // etcd says that the ranges are the target's; operations on them may be under way here
	Severed   Step = "severed"   // none is; the target does not know
	Replaying Step = "replaying" // the ranges were returned, and what the target wrote is about to be replayed
	Dropping  Step = "dropping"  // the target has all, and it is about to be dropped here
)

// Steps are those of a target that comes to the end.
var Steps = []Step{AfterSample, BeforeTransfer, AfterTransfer, Yielded, Pulling, Pulled, Adopted, Completed}

// ReturnSteps are those of a migration that is taken back.
var ReturnSteps = []Step{Shut, Returned, Replaying}

// SourceSteps are the source's, of one that is not.
var SourceSteps = []Step{Given, Severed, Dropping}
