package background

import "golang.org/x/sys/unix"

// niceness leaves a busy machine's background about a tenth of a core's time:
// with the lowest priority of all it could starve, and serving would have to
// wait for the memory that it frees.
const niceness = 10

// lower makes the current thread nice. A refusal leaves it as it is.
func lower() { _ = unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), niceness) }
