//go:build verbs

package verbs

// #cgo LDFLAGS: -libverbs
// #include "shim.h"
import "C"

import (
	"fmt"
	"syscall"

	"github.com/ostrodb/ostro/fabric"
)

// failed turns what libibverbs returns into an error.
func failed(act string, code C.int) error {
	if code == 0 {
		return nil
	}
	return fmt.Errorf("verbs: %s: %w", act, syscall.Errno(max(code, -code)))
}

// ending is how the hardware ended a request.
type ending struct {
	id     uint64
	status uint32
	bytes  uint32
	imm    uint32
	hasImm bool
	qp     uint32
}

func pollOne(cq *C.struct_ibv_cq) (ending, bool) {
	var e C.struct_end
	if C.poll_one(cq, &e) != 1 {
		return ending{}, false
	}
	return ending{uint64(e.id), uint32(e.status), uint32(e.bytes), uint32(e.imm), e.has_imm != 0, uint32(e.qp)}, true
}

// statuses translates those of the hardware; what is missing is PeerLost.
var statuses = map[uint32]fabric.Status{
	C.IBV_WC_SUCCESS:           fabric.OK,
	C.IBV_WC_LOC_LEN_ERR:       fabric.TooLong,
	C.IBV_WC_LOC_QP_OP_ERR:     fabric.BadRequest,
	C.IBV_WC_LOC_PROT_ERR:      fabric.LocalAccess,
	C.IBV_WC_LOC_ACCESS_ERR:    fabric.LocalAccess,
	C.IBV_WC_WR_FLUSH_ERR:      fabric.Flushed,
	C.IBV_WC_REM_INV_REQ_ERR:   fabric.RemoteInvalid,
	C.IBV_WC_REM_ACCESS_ERR:    fabric.RemoteAccess,
	C.IBV_WC_REM_OP_ERR:        fabric.RemoteInvalid,
	C.IBV_WC_RNR_RETRY_EXC_ERR: fabric.NotReady,
}

func translate(op fabric.Op, status uint32) fabric.Status {
	s, known := statuses[status]
	switch {
	case !known:
		return fabric.PeerLost
	case op == fabric.OpRecv && s == fabric.BadRequest:
		return fabric.LocalAccess
	case s == fabric.RemoteInvalid && op == fabric.OpSend && status == C.IBV_WC_REM_INV_REQ_ERR:
		return fabric.TooLong // All that is wrong with a SEND for its peer.
	}
	return s
}

// opcodes of the hardware. NOP is a WRITE of no bytes, FLUSH a READ.
var opcodes = map[fabric.Op]C.int{
	fabric.OpNop: C.IBV_WR_RDMA_WRITE, fabric.OpWrite: C.IBV_WR_RDMA_WRITE, fabric.OpWriteImm: C.IBV_WR_RDMA_WRITE_WITH_IMM,
	fabric.OpRead: C.IBV_WR_RDMA_READ, fabric.OpFlush: C.IBV_WR_RDMA_READ, fabric.OpSend: C.IBV_WR_SEND,
	fabric.OpCAS: C.IBV_WR_ATOMIC_CMP_AND_SWP, fabric.OpAdd: C.IBV_WR_ATOMIC_FETCH_AND_ADD,
}
