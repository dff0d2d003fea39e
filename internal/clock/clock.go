// Package clock reads a clock that never goes back, and does not stand still while the process is stopped or the machine
// sleeps, as Go's own does in the latter case. It does stand still while a hypervisor has the whole machine paused.
package clock
