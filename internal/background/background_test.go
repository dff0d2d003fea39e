package background

import (
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// now is the niceness of the calling goroutine's thread.
func now(t *testing.T) int {
	n, err := unix.Getpriority(unix.PRIO_PROCESS, unix.Gettid())
	if err != nil {
		t.Error(err)
	}
	return 20 - n // The system call reports 20 less the niceness.
}

// below is what a thread has that is nicer than usual by n.
func below(n int) int { return min(int(usual)+n, nicest) }

func TestAQuietGoroutineRunsAtLowPriorityAndLeavesOthersAlone(t *testing.T) {
	before := now(t)
	quiet := make(chan int)
	go func() {
		Quiet()
		quiet <- now(t)
	}()
	if got := <-quiet; got != below(niceness) {
		t.Errorf("niceness %d, want %d", got, below(niceness))
	}
	if got := now(t); got != before {
		t.Errorf("the caller's thread became nice, too: %d", got)
	}
}

func TestWhatIsDoneHumblyGoesAfterAllOthers(t *testing.T) {
	var got, last int
	InTurnHumbly(func(func()) { got = now(t) })
	Waiting(func() { last = now(t) })
	if got != below(humility) || last != below(niceness) || humility <= max(niceness, patience, modesty) {
		t.Errorf("niceness %d, then %d; that of others is %d, %d and %d", got, last, niceness, patience, modesty)
	}
}

func TestADiligentGoroutineGoesAfterOthersAndMoreSoAtItsBeginning(t *testing.T) {
	var first, still, then int
	apart(func() {}, func() {
		var d Diligence
		d.Piece()
		first = now(t)
		d.Piece()
		still = now(t)
		d.began = d.began.Add(-headStart)
		d.Piece()
		then = now(t)
	})
	begins := diligence
	if mayRaise() {
		begins = modesty
	}
	if first != below(begins) || still != first || then != below(diligence) {
		t.Errorf("niceness %d, %d and then %d; usual is %d", first, still, then, usual)
	}
	if diligence <= 0 || modesty <= diligence || niceness <= modesty {
		t.Errorf("niceness %d at first, then %d; what is quiet has %d", modesty, diligence, niceness)
	}
}

func TestWhatAQuietGoroutineDoesAloudRunsAtUsualPriority(t *testing.T) {
	aloud := make(chan int)
	go func() {
		Quiet()
		for range 100 {
			Aloud(func() { aloud <- now(t) })
		}
		close(aloud)
	}()
	for got := range aloud {
		if got != int(usual) {
			t.Fatalf("niceness %d, want %d", got, usual)
		}
	}
}

func TestWhatIsDoneQuietlyIsDoneAtLowPriorityAndOver(t *testing.T) {
	var got int
	Quietly(func() { got = now(t) })
	if got != below(patience) {
		t.Errorf("niceness %d, want %d", got, below(patience))
	}
}

// mayHasten tells whether this process has the right to raise the priority of a thread.
func mayHasten() bool {
	may := make(chan bool)
	go func() {
		runtime.LockOSThread() // And with the goroutine the thread ends.
		may <- unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), int(hasty())) == nil
	}()
	return <-may
}

func TestAPromptGoroutineWantsLessTimeThanOthersAndGoesBeforeThem(t *testing.T) {
	look := func() *unix.SchedAttr {
		attr, err := unix.SchedGetAttr(0, 0)
		if err != nil {
			t.Error(err)
			return &unix.SchedAttr{}
		}
		return attr
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	usual, prompt, eased := look(), &unix.SchedAttr{}, &unix.SchedAttr{}
	Promptly(func() {
		prompt = look()
		Ease()
		eased = look()
	})
	if usual.Runtime == 0 {
		t.Skip("this kernel knows of no slices: it is of before 6.12")
	}
	wanted := usual.Nice
	if mayHasten() {
		wanted = hasty()
	}
	if prompt.Runtime != uint64(moment) || prompt.Runtime >= usual.Runtime || prompt.Nice != wanted || prompt.Policy != usual.Policy {
		t.Errorf("slice %d, niceness %d, policy %d; usual are %d, %d and %d", prompt.Runtime, prompt.Nice, prompt.Policy, usual.Runtime, usual.Nice, usual.Policy)
	}
	if eased.Runtime != uint64(moment) || eased.Nice != usual.Nice || eased.Policy != usual.Policy {
		t.Errorf("then slice %d, niceness %d, policy %d", eased.Runtime, eased.Nice, eased.Policy)
	}
	if now := look(); *now != *usual {
		t.Errorf("the caller's thread is %+v, and was %+v", *now, *usual)
	}
}
