/* A reliable connection over memory that is registered: made, and driven. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <arpa/inet.h>

#include "base/clock.h"
#include "base/mem.h"
#include "report.h"
#include "told.h"
#include "wire-internal.h"

#define SEND_DEPTH    64
#define RECEIVE_DEPTH 128
#define READS_MAX     16 /* outstanding at a time, as NCCL's */
#define SMALL	      8	 /* bytes of a message whose time is measured */
#define SMALL_MAX     1000
#define STALL_NS      INT64_C(5000000000) /* without any completion */
#define NAP_AFTER_NS  200000
#define NAP_NS	      20000
#define A_RECEIVE     (UINT64_C(1) << 63)

/* rdma-core 53, and a flag of it. */
struct ibv_mr *mlx5dv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length,
				    uint64_t iova, int fd, int access, int mlx5_access)
	__attribute__((weak));
#define DATA_DIRECT 1

struct wire {
	struct wire_device *device;
	struct wire_memory *memory;
	struct ibv_mr *mr;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	uint64_t base; /* of the memory, as the other side names it */
	int gid_index;
	uint16_t pkey_index;
	uint32_t psn;
	unsigned send_depth, receive_depth;
	struct wire_address peer;
	uint64_t posted, done;	     /* of the sending side */
	uint64_t receives, received; /* posted; come */
	bool failed;
};

const char *wire_op_name(enum wire_op op)
{
	static const char *const names[] = { "write", "read", "send" };

	return names[op];
}

/* --- creation --- */

static struct ibv_mr *register_memory(struct wire *w)
{
	const struct wire_memory *m = w->memory;
	struct ibv_pd *pd = w->device->pd;
	int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
		     IBV_ACCESS_RELAXED_ORDERING;

	w->base = m->address ? (uintptr_t)m->address : m->dmabuf_offset;
	if (m->dmabuf_fd < 0)
		return ibv_reg_mr(pd, m->address, m->size, (unsigned)access);
	if (!m->data_direct)
		return ibv_reg_dmabuf_mr(pd, m->dmabuf_offset, m->size, w->base, m->dmabuf_fd,
					 access);
	if (mlx5dv_reg_dmabuf_mr)
		return mlx5dv_reg_dmabuf_mr(pd, m->dmabuf_offset, m->size, w->base, m->dmabuf_fd,
					    access, DATA_DIRECT);
	errno = EOPNOTSUPP;
	return NULL;
}

/* Of a GPU's memory it is a note: there may be another way. */
static void report_register(const struct wire *w, int error, struct report *r)
{
	const struct wire_memory *m = w->memory;
	const char *id = "peer-memory";

	if (!m->way && m->dmabuf_fd < 0) {
		wire_report_memory(w->device, "ibv_reg_mr", m->size, error, r);
		return;
	}
	if (m->dmabuf_fd >= 0)
		id = m->data_direct ? "data-direct" : "dmabuf";
	report_finding(r, OUTCOME_GOOD, id, w->device->on,
		       "memory of GPU %s cannot be registered by %s: %s", m->name, m->way,
		       strerror(error));
}

int wire_memory_check(struct wire_device *d, struct wire_memory *m, struct report *r)
{
	struct wire w = { .device = d, .memory = m };
	int error = 0;

	w.mr = register_memory(&w);
	if (w.mr) {
		ibv_dereg_mr(w.mr);
	} else {
		error = -errno;
		report_register(&w, -error, r);
	}
	return error;
}

static unsigned least(unsigned a, int b)
{
	return b > 0 && (unsigned)b < a ? (unsigned)b : a;
}

static int make_queues(struct wire *w, struct report *r)
{
	struct wire_device *d = w->device;
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC, .sq_sig_all = 1 };
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = (uint8_t)d->vf->port,
		.pkey_index = w->pkey_index,
		.qp_access_flags =
			IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
	};
	int error;

	w->send_depth = least(SEND_DEPTH, d->limits.max_qp_wr);
	w->receive_depth = least(RECEIVE_DEPTH, d->limits.max_qp_wr);
	w->cq = ibv_create_cq(d->context, (int)(w->send_depth + w->receive_depth), NULL, NULL, 0);
	if (!w->cq) {
		error = errno;
		wire_report_memory(d, "ibv_create_cq", 0, error, r);
		return -error;
	}
	init.send_cq = init.recv_cq = w->cq;
	init.cap.max_send_wr = w->send_depth;
	init.cap.max_recv_wr = w->receive_depth;
	init.cap.max_send_sge = init.cap.max_recv_sge = 1;
	w->qp = ibv_create_qp(d->pd, &init);
	if (!w->qp) {
		error = errno;
		wire_report_memory(d, "ibv_create_qp", 0, error, r);
		return -error;
	}
	error = ibv_modify_qp(w->qp, &attr,
			      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	if (error)
		report_finding(r, OUTCOME_BROKEN, "verbs-refused", d->on,
			       "the queue pair to INIT, with P_Key index %u: %s", w->pkey_index,
			       strerror(error));
	return -error;
}

int wire_create(struct wire_device *d, struct wire_memory *m, const struct wire_options *o,
		struct report *r, struct wire **ret)
{
	struct wire *w = xcalloc(1, sizeof(*w));
	int error = 0;

	w->device = d;
	w->memory = m;
	w->gid_index = o->gid_index >= 0 ? o->gid_index : d->gid_index;
	w->pkey_index = (uint16_t)o->pkey_index;
	if (getrandom(&w->psn, sizeof(w->psn), 0) != sizeof(w->psn))
		w->psn = (uint32_t)clock_mono_ns();
	w->psn &= 0xffffff;
	if (!wire_gid_at(d, w->gid_index)) {
		report_finding(r, OUTCOME_BROKEN, "gid-index", d->on,
			       "GID index %d was asked for, and the port's table has nothing there",
			       w->gid_index);
		error = -EADDRNOTAVAIL;
	}
	if (!error) {
		w->mr = register_memory(w);
		if (!w->mr) {
			error = -errno;
			report_register(w, -error, r);
		}
	}
	if (!error)
		error = make_queues(w, r);
	if (error) {
		wire_destroy(w);
		return error;
	}
	*ret = w;
	return 0;
}

void wire_destroy(struct wire *w)
{
	if (!w)
		return;
	if (w->qp)
		ibv_destroy_qp(w->qp);
	if (w->cq)
		ibv_destroy_cq(w->cq);
	if (w->mr)
		ibv_dereg_mr(w->mr);
	free(w);
}

void wire_address_of(const struct wire *w, struct wire_address *ret)
{
	*ret = (struct wire_address) {
		.qpn = w->qp->qp_num,
		.psn = w->psn,
		.rkey = w->mr->rkey,
		.address = w->base,
		.size = w->memory->size,
		.lid = w->device->port.lid,
		.link_layer = w->device->port.link_layer,
		.mtu = (uint8_t)w->device->port.active_mtu,
	};
	memcpy(ret->gid, wire_gid_at(w->device, w->gid_index)->gid.raw, 16);
}

/* --- connection --- */

static void compare_mtu(struct wire_device *d, unsigned mtu, struct report *r)
{
	if (d->mtu_noted || mtu == d->port.active_mtu)
		return;
	d->mtu_noted = true;
	report_finding(r, OUTCOME_SLOW, "mtu-mismatch", d->on,
		       "the MTU of the port is %d, and that of its peer %d",
		       wire_mtu_bytes(d->port.active_mtu), wire_mtu_bytes(mtu));
}

static struct ibv_ah_attr path_to(const struct wire *w, const struct wire_address *peer)
{
	const struct wire_device *d = w->device;
	struct ibv_ah_attr ah = { .port_num = (uint8_t)d->vf->port, .dlid = peer->lid };
	const struct ibv_gid_entry *own = wire_gid_at(d, w->gid_index);

	/* within a subnet of InfiniBand the LID is enough, but for ports that share one */
	ah.is_global = d->port.link_layer == IBV_LINK_LAYER_ETHERNET ||
		       (d->port.flags & IBV_QPF_GRH_REQUIRED) ||
		       memcmp(own->gid.raw, peer->gid, 8) != 0;
	memcpy(ah.grh.dgid.raw, peer->gid, 16);
	ah.grh.sgid_index = (uint8_t)w->gid_index;
	ah.grh.hop_limit = 64;
	return ah;
}

static void report_rtr(const struct wire *w, const struct wire_address *peer, int error,
		       struct report *r)
{
	bool no_route = error == ENETUNREACH || error == EHOSTUNREACH || error == ETIMEDOUT;
	char own[GID_TEXT], other[GID_TEXT];

	report_finding(r, OUTCOME_BROKEN, no_route ? "no-route" : "rtr", w->device->on,
		       "from GID %s (index %d) to %s, the queue pair does not become RTR: %s",
		       wire_gid_text(wire_gid_at(w->device, w->gid_index)->gid.raw, own),
		       w->gid_index, wire_gid_text(peer->gid, other), strerror(error));
}

int wire_connect(struct wire *w, const struct wire_address *peer, struct report *r)
{
	struct wire_device *d = w->device;
	struct ibv_qp_attr rtr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = least(d->port.active_mtu, peer->mtu),
		.dest_qp_num = peer->qpn,
		.rq_psn = peer->psn,
		.max_dest_rd_atomic = (uint8_t)least(READS_MAX, d->limits.max_qp_rd_atom),
		.min_rnr_timer = 24, /* 41 ms */
		.ah_attr = path_to(w, peer),
	};
	struct ibv_qp_attr rts = {
		.qp_state = IBV_QPS_RTS,
		.timeout = 14,	/* 67 ms */
		.retry_cnt = 6, /* soft RDMA takes 7 as for ever */
		.rnr_retry = 6, /* 7 would be for ever */
		.sq_psn = w->psn,
		.max_rd_atomic = (uint8_t)least(READS_MAX, d->limits.max_qp_init_rd_atom),
	};
	int error;

	if (peer->link_layer != d->port.link_layer) {
		report_finding(r, OUTCOME_BROKEN, "link-layer", d->on,
			       "one side of the connection is InfiniBand, the other Ethernet");
		return -EPROTO;
	}
	compare_mtu(d, peer->mtu, r);
	error = ibv_modify_qp(w->qp, &rtr,
			      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				      IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				      IBV_QP_MIN_RNR_TIMER);
	if (error) {
		report_rtr(w, peer, error, r);
		return -error;
	}
	error = ibv_modify_qp(w->qp, &rts,
			      IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				      IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
	if (error) {
		report_finding(r, OUTCOME_BROKEN, "verbs-refused", d->on,
			       "the queue pair to RTS: %s", strerror(error));
		return -error;
	}
	w->peer = *peer;
	return 0;
}

/* --- work --- */

static const char *id_of_status(enum ibv_wc_status status, bool small_passed)
{
	switch (status) {
	case IBV_WC_RETRY_EXC_ERR:
		return small_passed ? "mtu-path" : "retry-exceeded";
	case IBV_WC_RNR_RETRY_EXC_ERR:
		return "rnr";
	case IBV_WC_LOC_PROT_ERR:
		return "local-protection";
	case IBV_WC_LOC_LEN_ERR:
		return "local-length";
	case IBV_WC_LOC_QP_OP_ERR:
		return "local-operation";
	case IBV_WC_REM_ACCESS_ERR:
		return "remote-access";
	case IBV_WC_REM_INV_REQ_ERR:
		return "remote-request";
	case IBV_WC_REM_OP_ERR:
		return "remote-operation";
	case IBV_WC_WR_FLUSH_ERR:
		return "flushed";
	default:
		return "cqe";
	}
}

/* One run over some connections. */
struct drive {
	struct wire *const *senders,
		*const *receivers; /* receivers: NULL where they are elsewhere */
	size_t n;
	const struct wire_run *run;
	struct report *report;
	bool small_passed;
	int64_t progress_ns; /* the last completion of any */
};

static int fail(const struct drive *dr, struct wire *w, const struct ibv_wc *wc)
{
	char gid[GID_TEXT];

	w->failed = true;
	report_finding(dr->report, OUTCOME_BROKEN, id_of_status(wc->status, dr->small_passed),
		       w->device->on, "%s of %zu bytes to GID %s: %s (CQE status %d, vendor 0x%x)",
		       wire_op_name(dr->run->op), dr->small_passed ? dr->run->message : SMALL,
		       wire_gid_text(w->peer.gid, gid), ibv_wc_status_str(wc->status), wc->status,
		       wc->vendor_err);
	return -EIO;
}

static size_t slots_of(const struct wire *w, size_t message)
{
	uint64_t size = w->memory->size < w->peer.size ? w->memory->size : w->peer.size;

	return (size_t)(size / message);
}

/* A refusal of the queue itself: the library's limits are wrong, or the device is gone. */
static int refused(const struct drive *dr, struct wire *w, const char *verb, int error)
{
	w->failed = true;
	report_finding(dr->report, OUTCOME_BROKEN, "verbs-refused", w->device->on, "%s: %s", verb,
		       strerror(error));
	return -error;
}

static int post_send(const struct drive *dr, struct wire *w, size_t bytes)
{
	static const enum ibv_wr_opcode opcodes[] = { IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ,
						      IBV_WR_SEND };
	size_t at = (size_t)(w->posted % slots_of(w, dr->run->message)) * dr->run->message;
	struct ibv_sge sge = { w->base + at, (uint32_t)bytes, w->mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = opcodes[dr->run->op] };
	struct ibv_send_wr *bad;
	int error;

	wr.wr.rdma.remote_addr = w->peer.address + at;
	wr.wr.rdma.rkey = w->peer.rkey;
	error = ibv_post_send(w->qp, &wr, &bad);
	if (error)
		return refused(dr, w, "ibv_post_send", error);
	w->posted++;
	return 0;
}

static int post_receive(const struct drive *dr, struct wire *w)
{
	size_t at = (size_t)(w->receives % slots_of(w, dr->run->message)) * dr->run->message;
	struct ibv_sge sge = { w->base + at, (uint32_t)dr->run->message, w->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = A_RECEIVE, .sg_list = &sge, .num_sge = 1 };
	struct ibv_recv_wr *bad;
	int error = ibv_post_recv(w->qp, &wr, &bad);

	if (error)
		return refused(dr, w, "ibv_post_recv", error);
	w->receives++;
	return 0;
}

/* Takes completions; the first bad one that is not a flush is the reason. Number of sends that are
 * done, or a negative errno. */
static int take(struct drive *dr, struct wire *w)
{
	struct ibv_wc wc[16];
	int n = ibv_poll_cq(w->cq, ARRAY_LEN(wc), wc), sends = 0;

	if (n < 0)
		return refused(dr, w, "ibv_poll_cq", EIO);
	if (n > 0)
		dr->progress_ns = clock_mono_ns();
	for (int i = 0; i < n; i++) {
		if (wc[i].status != IBV_WC_SUCCESS)
			return w->failed ? -EIO : fail(dr, w, &wc[i]);
		if (wc[i].wr_id == A_RECEIVE)
			w->received++;
		else
			sends++;
	}
	w->done += (unsigned)sends;
	return sends;
}

static int serve(struct drive *dr, struct wire *w)
{
	int n = take(dr, w);

	while (n >= 0 && w->receives - w->received < w->receive_depth) {
		n = post_receive(dr, w);
		if (n < 0)
			return n;
	}
	return n < 0 ? n : 0;
}

static int stalled(const struct drive *dr, struct wire *w)
{
	w->failed = true;
	report_finding(dr->report, OUTCOME_BROKEN, "stalled", w->device->on,
		       "%s: no completion in %d s, neither good nor bad", wire_op_name(dr->run->op),
		       (int)(STALL_NS / 1000000000));
	return -ETIMEDOUT;
}

/* Nanoseconds without a completion. No hardware is silent for so long that a nap costs anything; a
 * soft device needs the processor, too. */
static int64_t idle(const struct drive *dr)
{
	int64_t ns = clock_mono_ns() - dr->progress_ns;

	if (ns > NAP_AFTER_NS)
		nanosleep(&(struct timespec) { .tv_nsec = NAP_NS }, NULL);
	return ns;
}

/* One message at a time until its completion. */
static int small_once(struct drive *dr, size_t i, int64_t *ret_ns)
{
	struct wire *w = dr->senders[i];
	int64_t began;
	int n = 0;

	if (dr->receivers && dr->run->op == WIRE_SEND)
		n = serve(dr, dr->receivers[i]);
	began = dr->progress_ns = clock_mono_ns();
	if (n >= 0)
		n = post_send(dr, w, dr->run->message < SMALL ? dr->run->message : SMALL);
	while (n >= 0) {
		n = take(dr, w);
		if (n > 0)
			break;
		if (n == 0 && idle(dr) > STALL_NS)
			return stalled(dr, w);
	}
	*ret_ns = clock_mono_ns() - began;
	return n < 0 ? n : 0;
}

static int by_size(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

/* The first message is not counted: it finds paths, caches and pages cold. */
static int small_messages(struct drive *dr, size_t i, double *ret_usec)
{
	int64_t ns[SMALL_MAX], first, until;
	size_t n = 0;
	int error = small_once(dr, i, &first);

	*ret_usec = NAN;
	if (error || !dr->run->latency)
		return error;
	until = clock_mono_ns() + (int64_t)(dr->run->seconds * 1e9 / 4);
	while (n < SMALL_MAX && (n < 8 || clock_mono_ns() < until)) {
		error = small_once(dr, i, &ns[n++]);
		if (error)
			return error;
	}
	qsort(ns, n, sizeof(*ns), by_size);
	*ret_usec = (double)ns[n / 2] / 1e3 / (dr->run->op == WIRE_READ ? 1 : 2);
	return 0;
}

/* A sender in the bandwidth part. */
struct flow {
	uint64_t first, counted; /* completions before it; when time was up */
	int64_t last_ns;	 /* time of the last one that counts */
	unsigned window;	 /* messages in flight */
	bool done;
};

/* What leaves the queue within a twentieth of the run, so that slow links are not waited for. */
static unsigned window_of(const struct drive *dr, const struct wire *w, const struct flow *f,
			  int64_t passed_ns)
{
	double share = dr->run->seconds * 1e9 / 20 / (double)(passed_ns > 0 ? passed_ns : 1);
	double messages = (double)(w->done - f->first) * share;

	if (messages < 4)
		return least(4, (int)w->send_depth);
	return messages < w->send_depth ? (unsigned)messages : w->send_depth;
}

static bool room(const struct drive *dr, size_t i, const struct flow *f)
{
	const struct wire *w = dr->senders[i];

	if (w->posted - w->done >= f->window)
		return false;
	return dr->run->op != WIRE_SEND || !dr->receivers || w->posted < dr->receivers[i]->receives;
}

/* One turn of a flow. */
static int turn(struct drive *dr, size_t i, struct flow *f, int64_t began_ns, int64_t until_ns)
{
	struct wire *w = dr->senders[i];
	bool sends = dr->receivers && dr->run->op == WIRE_SEND;
	int n = sends ? serve(dr, dr->receivers[i]) : 0, taken;
	int64_t now;
	bool more;

	if (n < 0)
		w->failed = true;
	taken = n < 0 ? n : take(dr, w);
	if (taken < 0)
		return taken;
	now = clock_mono_ns();
	more = now < until_ns || w->posted - f->first < slots_of(w, dr->run->message);
	if (taken > 0) {
		if (now < until_ns || !f->counted) {
			f->counted = w->done - f->first;
			f->last_ns = now;
		}
		f->window = window_of(dr, w, f, now - began_ns);
	}
	while (more && room(dr, i, f)) {
		n = post_send(dr, w, dr->run->message);
		if (n < 0)
			return n;
	}
	f->done = !more && w->posted == w->done;
	return 0;
}

static void bandwidth(struct drive *dr, struct wire_result *results)
{
	_cleanup_free_ struct flow *flows = xcalloc(dr->n, sizeof(*flows));
	int64_t began = clock_mono_ns(), until = began + (int64_t)(dr->run->seconds * 1e9);
	size_t left = dr->n;

	dr->progress_ns = began;
	for (size_t i = 0; i < dr->n; i++) {
		flows[i].first = dr->senders[i]->done;
		flows[i].window = 2;
		flows[i].done = results[i].status != 0;
	}
	while (left) {
		bool late = idle(dr) > STALL_NS;

		left = 0;
		for (size_t i = 0; i < dr->n; i++) {
			int n = flows[i].done ? 0 : turn(dr, i, &flows[i], began, until);

			if (n >= 0 && !flows[i].done && late)
				n = stalled(dr, dr->senders[i]);
			if (n < 0) {
				results[i].status = n;
				flows[i].done = true;
			}
			left += !flows[i].done;
		}
	}
	for (size_t i = 0; i < dr->n; i++) {
		const struct flow *f = &flows[i];

		if (!results[i].status)
			results[i].gbps = (double)(f->counted * dr->run->message) * 8 /
					  (double)(f->last_ns - began);
	}
}

static int drive(struct drive *dr, struct wire_result *results)
{
	int first = 0;

	for (size_t i = 0; i < dr->n; i++) {
		results[i] = (struct wire_result) { NAN, NAN, 0 };
		if (!dr->run->message || !slots_of(dr->senders[i], dr->run->message))
			results[i].status = -EMSGSIZE;
		else
			results[i].status = small_messages(dr, i, &results[i].usec);
	}
	dr->small_passed = true;
	bandwidth(dr, results);
	for (size_t i = 0; i < dr->n && !first; i++)
		first = results[i].status;
	return first;
}

int wire_drive(struct wire *const *wires, size_t n, const struct wire_run *run, struct report *r,
	       struct wire_result *results)
{
	struct drive dr = { .senders = wires, .n = n, .run = run, .report = r };

	return drive(&dr, results);
}

int wire_serve_receives(struct wire *const *wires, size_t n, size_t message, bool (*stop)(void *),
			void *arg, struct report *r)
{
	const struct wire_run run = { .op = WIRE_SEND, .message = message };
	struct drive dr = { .senders = wires, .n = n, .run = &run, .report = r };

	for (size_t i = 0; i < n; i++) {
		if (!message || !slots_of(wires[i], message))
			return -EMSGSIZE;
	}
	do {
		for (size_t i = 0; i < n; i++) {
			int error = serve(&dr, wires[i]);

			if (error)
				return error;
		}
		idle(&dr);
	} while (!stop(arg));
	return 0;
}

/* --- both ends here --- */

struct ends {
	struct wire *from, *to;
};

static int make_ends(const struct wire_pairing *p, struct report *r, struct ends *ret)
{
	const struct wire_options options = { .gid_index = -1 };
	struct wire_address from, to;
	int error = wire_create(p->from, p->from_memory, &options, r, &ret->from);

	if (!error)
		error = wire_create(p->to, p->to_memory, &options, r, &ret->to);
	if (error)
		return error;
	wire_address_of(ret->from, &from);
	wire_address_of(ret->to, &to);
	error = wire_connect(ret->from, &to, r);
	return error ? error : wire_connect(ret->to, &from, r);
}

/* Which of the two has the bytes at first; they come to the other one. */
static struct wire_memory *source_of(const struct wire_pairing *p, enum wire_op op, bool far)
{
	return (op == WIRE_READ) != far ? p->to_memory : p->from_memory;
}

/* -ECANCELED: the trouble is of the tool, and not of the transfer. */
static int cannot(const struct wire_pairing *p, const char *what, const struct wire_memory *m,
		  int error, struct report *r)
{
	report_finding(r, OUTCOME_NOT_MEASURED, "memory-copy", p->from->on,
		       "%s memory cannot be %s: %s", m->name, what, strerror(-error));
	return -ECANCELED;
}

static int fill(const struct wire_pairing *p, enum wire_op op, uint64_t seed, struct report *r)
{
	struct wire_memory *near = source_of(p, op, false), *far = source_of(p, op, true);
	int error = near->fill(near, seed);

	if (!error)
		error = far->fill(far, ~seed);
	return error ? cannot(p, "filled", near, error, r) : 0;
}

static int verify(const struct wire_pairing *p, enum wire_op op, uint64_t seed, struct report *r)
{
	struct wire_memory *far = source_of(p, op, true);
	int error = far->verify(far, seed);

	if (error == -EILSEQ)
		report_finding(r, OUTCOME_BROKEN, "bytes-differ", p->from->on,
			       "%s to %s: the bytes that came are not those that were sent%s",
			       wire_op_name(op), p->to->on,
			       wire_memory_difference(far, seed, r->arena));
	else if (error)
		return cannot(p, "compared", far, error, r);
	return error;
}

int wire_local(const struct wire_pairing *pairings, size_t n, const struct wire_run *run,
	       struct report *r, struct wire_result *results)
{
	_cleanup_free_ struct ends *ends = xcalloc(n, sizeof(*ends));
	_cleanup_free_ struct wire **from = xcalloc(n, sizeof(struct wire *));
	_cleanup_free_ struct wire **to = xcalloc(n, sizeof(struct wire *));
	struct drive dr = { .senders = from, .receivers = to, .n = n, .run = run, .report = r };
	uint64_t seed = (uint64_t)clock_mono_ns();
	bool driven;
	int error = 0;

	for (size_t i = 0; i < n; i++)
		results[i] = (struct wire_result) { NAN, NAN, -ECANCELED };
	for (size_t i = 0; i < n && !error; i++) {
		error = fill(&pairings[i], run->op, seed + (i << 32), r);
		if (!error)
			error = make_ends(&pairings[i], r, &ends[i]);
		from[i] = ends[i].from;
		to[i] = ends[i].to;
		results[i].status = error;
	}
	driven = !error;
	for (size_t i = 0; i < n && !driven; i++)
		results[i].status = results[i].status ? results[i].status : -ECANCELED;
	if (driven)
		error = drive(&dr, results);
	/* an acknowledgement may overtake the bytes on their way into memory; the end of a region
	 * does not */
	for (size_t i = 0; i < n; i++) {
		wire_destroy(ends[i].from);
		wire_destroy(ends[i].to);
	}
	for (size_t i = 0; i < n && driven; i++) {
		if (!results[i].status)
			results[i].status = verify(&pairings[i], run->op, seed + (i << 32), r);
		if (!error)
			error = results[i].status;
	}
	return error;
}
