package background

import (
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

func TestAQuietGoroutineRunsAtLowPriorityAndLeavesOthersAlone(t *testing.T) {
	usual, _ := unix.Getpriority(unix.PRIO_PROCESS, unix.Gettid())
	quiet := make(chan int)
	go func() {
		Quiet()
		n, _ := unix.Getpriority(unix.PRIO_PROCESS, unix.Gettid())
		quiet <- 20 - n // The system call reports 20 less the niceness.
	}()
	if got := <-quiet; got < niceness {
		t.Errorf("niceness %d, want %d", got, niceness)
	}
	if n, _ := unix.Getpriority(unix.PRIO_PROCESS, unix.Gettid()); n != usual {
		t.Errorf("the caller's thread became nice, too: %d", 20-n)
	}
}

func TestWhatIsDoneHumblyGoesAfterAllOthers(t *testing.T) {
	var got, last int
	look := func() int {
		n, _ := unix.Getpriority(unix.PRIO_PROCESS, unix.Gettid())
		return 20 - n
	}
	InTurnHumbly(func(func()) { got = look() })
	Waiting(func() { last = look() })
	if got < humility || last < niceness || last >= humility || humility <= max(niceness, patience, modesty) {
		t.Errorf("niceness %d, then %d; that of others is %d, %d and %d", got, last, niceness, patience, modesty)
	}
}

func TestAModestGoroutineGoesBeforeQuietOnesAndAfterOthers(t *testing.T) {
	usual, _ := unix.Getpriority(unix.PRIO_PROCESS, unix.Gettid())
	modest := make(chan int)
	go func() {
		Modest()
		n, _ := unix.Getpriority(unix.PRIO_PROCESS, unix.Gettid())
		modest <- 20 - n
	}()
	if got := <-modest; got < 20-usual || got < modesty || got >= max(niceness, 21-usual) {
		t.Errorf("niceness %d; usual is %d, quiet %d", got, 20-usual, niceness)
	}
}

func TestWhatAQuietGoroutineDoesAloudRunsAtUsualPriority(t *testing.T) {
	usual, _ := unix.Getpriority(unix.PRIO_PROCESS, unix.Gettid())
	aloud := make(chan int)
	go func() {
		Quiet()
		for range 100 {
			Aloud(func() {
				n, _ := unix.Getpriority(unix.PRIO_PROCESS, unix.Gettid())
				aloud <- n
			})
		}
		close(aloud)
	}()
	for got := range aloud {
		if got != usual {
			t.Fatalf("priority %d, want %d", got, usual)
		}
	}
}

func TestWhatIsDoneQuietlyIsDoneAtLowPriorityAndOver(t *testing.T) {
	var got int
	Quietly(func() {
		n, _ := unix.Getpriority(unix.PRIO_PROCESS, unix.Gettid())
		got = 20 - n
	})
	if got < patience {
		t.Errorf("niceness %d, want %d", got, patience)
	}
}

func TestAPromptGoroutineWantsLessTimeThanOthersAndHasTheirPriority(t *testing.T) {
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
	usual, prompt := look(), &unix.SchedAttr{}
	Promptly(func() { prompt = look() })
	if usual.Runtime == 0 {
		t.Skip("this kernel knows of no slices: it is of before 6.12")
	}
	if prompt.Runtime != uint64(moment) || prompt.Runtime >= usual.Runtime || prompt.Nice != usual.Nice || prompt.Policy != usual.Policy {
		t.Errorf("slice %d, niceness %d, policy %d; usual are %d, %d and %d", prompt.Runtime, prompt.Nice, prompt.Policy, usual.Runtime, usual.Nice, usual.Policy)
	}
	if now := look(); *now != *usual {
		t.Errorf("the caller's thread is %+v, and was %+v", *now, *usual)
	}
}
