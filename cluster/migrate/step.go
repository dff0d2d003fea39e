package migrate

import "context"

// Step is a named point of a migration, as its target goes through it.
type Step string

// The steps, in their order.
const (
	AfterSample    Step = "after-sample"
	BeforeTransfer Step = "before-transfer"
	AfterTransfer  Step = "after-transfer" // etcd says that the ranges are the target's; nobody serves them
	Yielded        Step = "yielded"        // the source does not, and the target may
	Pulling        Step = "pulling"        // the first records have come
	Pulled         Step = "pulled"         // all have, or are known of
	Settling       Step = "settling"       // the target carries all load; cold records may be still to come
	Adopted        Step = "adopted"        // side segments have all their copies
	Completed      Step = "completed"
)

// Steps are all of them.
var Steps = []Step{AfterSample, BeforeTransfer, AfterTransfer, Yielded, Pulling, Pulled, Settling, Adopted, Completed}

// halt stops a migration at a step for good, for tests that kill nodes there.
type halt struct{ at Step }

// here returns at once, unless it is where the migration is to halt; then it returns when ctx has ended.
func (h halt) here(ctx context.Context, s Step, tell func(Step)) error {
	if h.at == s && s != "" {
		tell(s)
		<-ctx.Done()
	}
	return ctx.Err()
}
