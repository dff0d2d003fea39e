package nic

import "fmt"

func (e *Engine) dial(q *qp) error { return fmt.Errorf("nic: no way to %q", q.want.Addr) }
