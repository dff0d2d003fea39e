// What libibverbs offers as macros, unions and bit fields, as plain functions.
#include <endian.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <infiniband/verbs.h>

// A completion without unions and bit fields.
struct end { uint64_t id; uint32_t status, bytes, imm, has_imm, qp; };

static inline int port_of(struct ibv_context *c, struct ibv_port_attr *a) { return ibv_query_port(c, 1, a); }

static inline struct ibv_mr *register_memory(struct ibv_pd *pd, void *at, size_t bytes, int access) {
	return ibv_reg_mr(pd, at, bytes, access);
}

static inline struct ibv_qp *create(struct ibv_pd *pd, struct ibv_cq *send, struct ibv_cq *recv, uint32_t sends, uint32_t recvs) {
	struct ibv_qp_init_attr a = {
		.qp_type = IBV_QPT_RC, .send_cq = send, .recv_cq = recv,
		.cap = { .max_send_wr = sends, .max_recv_wr = recvs, .max_send_sge = 4, .max_recv_sge = 4 },
	};
	return ibv_create_qp(pd, &a);
}

static inline int to_init(struct ibv_qp *q, int access) {
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = access };
	return ibv_modify_qp(q, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

// timer 12 asks a sender that found no RECV to come back in 0.64 ms.
static inline int to_rtr(struct ibv_qp *q, int mtu, uint32_t peer, uint32_t psn, void *gid, int index) {
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_RTR, .path_mtu = mtu, .dest_qp_num = peer, .rq_psn = psn, .max_dest_rd_atomic = 16, .min_rnr_timer = 12,
		.ah_attr = { .is_global = 1, .port_num = 1, .grh = { .sgid_index = index, .hop_limit = 64 } },
	};
	memcpy(&a.ah_attr.grh.dgid, gid, 16);
	return ibv_modify_qp(q, &a, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
		IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
}

// retry_cnt 7 would be for ever on some devices.
static inline int to_rts(struct ibv_qp *q, uint32_t psn, int rnr_retry) {
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_RTS, .sq_psn = psn, .timeout = 14, .retry_cnt = 6, .rnr_retry = rnr_retry, .max_rd_atomic = 16 };
	return ibv_modify_qp(q, &a, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC);
}

static inline int to_error(struct ibv_qp *q) {
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_ERR };
	return ibv_modify_qp(q, &a, IBV_QP_STATE);
}

static inline int post_send(struct ibv_qp *q, uint64_t id, int op, int flags, struct ibv_sge *list, int n,
		uint64_t addr, uint32_t key, uint64_t a, uint64_t b, uint32_t imm) {
	struct ibv_send_wr w = { .wr_id = id, .sg_list = list, .num_sge = n, .opcode = op, .send_flags = flags, .imm_data = htobe32(imm) }, *bad;
	if (op == IBV_WR_ATOMIC_CMP_AND_SWP || op == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		w.wr.atomic.remote_addr = addr; w.wr.atomic.rkey = key; w.wr.atomic.compare_add = a; w.wr.atomic.swap = b;
	} else {
		w.wr.rdma.remote_addr = addr; w.wr.rdma.rkey = key;
	}
	return ibv_post_send(q, &w, &bad);
}

static inline int post_recv(struct ibv_qp *q, uint64_t id, struct ibv_sge *list, int n) {
	struct ibv_recv_wr w = { .wr_id = id, .sg_list = list, .num_sge = n }, *bad;
	return ibv_post_recv(q, &w, &bad);
}

static inline int poll_one(struct ibv_cq *c, struct end *e) {
	struct ibv_wc wc;
	int n = ibv_poll_cq(c, 1, &wc);
	if (n == 1) {
		e->id = wc.wr_id; e->status = wc.status; e->bytes = wc.byte_len; e->qp = wc.qp_num;
		e->has_imm = wc.status == IBV_WC_SUCCESS && wc.wc_flags & IBV_WC_WITH_IMM;
		e->imm = e->has_imm ? be32toh(wc.imm_data) : 0;
	}
	return n;
}
