package device

import "os"

// FailSystem makes a disk's allocation and sync answer as tests want; nil leaves
// one as it is.
func (d *Disk) FailSystem(reserve func(*os.File, int64) error, datasync func(int) error) {
	if reserve != nil {
		d.reserve = reserve
	}
	if datasync != nil {
		d.datasync = datasync
	}
}

// Touch is what populates a mapping on old kernels.
var Touch = touch
