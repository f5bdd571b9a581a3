/*
 * Devices, connections and completions of a verbs library that is made here: what its answers and
 * its errors become.
 */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <arpa/inet.h>
#include <infiniband/verbs.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/mem.h"
#include "found.h"
#include "railmate-probe/told.h"
#include "railmate-probe/wire.h"

/* --- the library --- */

#undef ibv_get_device_list
#undef ibv_query_port
#undef ibv_reg_mr

#define QPS	 8
#define RECEIVES 256

struct queue {
	struct ibv_cq cq;
	struct ibv_wc wc[RECEIVES];
	int n;
};

struct pair {
	struct ibv_qp qp;
	uint32_t peer;
	struct ibv_sge receives[RECEIVES];
	unsigned posted, used;
};

static struct {
	struct ibv_device device;
	struct ibv_context context;
	struct ibv_pd pd;
	struct ibv_mr mr;
	struct queue queues[QPS];
	struct pair pairs[QPS];
	int n_queues, n_pairs, n_regions;
	struct ibv_port_attr port;
	struct ibv_device_attr limits;
	struct ibv_gid_entry gids[8];
	int n_gids;
	uint16_t pkeys[4];
	int open_error, register_error, rtr_error;
	enum ibv_wc_status status; /* of messages of `failing` bytes and more */
	uint32_t failing;
	bool corrupt;
	struct ibv_qp_attr rtr;
} lab;

/* What the providers that are linked into the program would be. */
#define PROVIDER(name) ".globl verbs_provider_" #name "\nverbs_provider_" #name ":\n"
__asm__(".pushsection .data\n" PROVIDER(bnxt_re) PROVIDER(efa) PROVIDER(erdma) PROVIDER(hns)
		PROVIDER(ionic) PROVIDER(none) PROVIDER(irdma) PROVIDER(mana) PROVIDER(mlx4)
			PROVIDER(mlx5) PROVIDER(qedr) PROVIDER(rxe)
				PROVIDER(siw) ".quad 0\n.popsection");

void ibv_static_providers(void *unused, ...);
void ibv_static_providers(void *unused, ...)
{
	(void)unused;
}

struct ibv_device **ibv_get_device_list(int *n)
{
	static struct ibv_device *list[2];

	(void)n;
	list[0] = &lab.device;
	return list;
}

void ibv_free_device_list(struct ibv_device **list)
{
	(void)list;
}

const char *ibv_get_device_name(struct ibv_device *d)
{
	return d->name;
}

struct ibv_context *ibv_open_device(struct ibv_device *d)
{
	(void)d;
	errno = lab.open_error;
	return lab.open_error ? NULL : &lab.context;
}

int ibv_close_device(struct ibv_context *c)
{
	(void)c;
	return 0;
}

int ibv_query_device(struct ibv_context *c, struct ibv_device_attr *ret)
{
	(void)c;
	*ret = lab.limits;
	return 0;
}

int ibv_query_port(struct ibv_context *c, uint8_t port, struct _compat_ibv_port_attr *ret)
{
	(void)c;
	(void)port;
	memcpy((void *)ret, &lab.port, offsetof(struct ibv_port_attr, port_cap_flags2));
	return 0;
}

int ibv_query_pkey(struct ibv_context *c, uint8_t port, int index, __be16 *ret)
{
	(void)c;
	(void)port;
	*ret = htons(lab.pkeys[index]);
	return 0;
}

ssize_t _ibv_query_gid_table(struct ibv_context *c, struct ibv_gid_entry *ret, size_t max,
			     uint32_t flags, size_t size)
{
	(void)c;
	(void)flags;
	assert_int_equal(size, sizeof(*ret));
	assert_true((size_t)lab.n_gids <= max);
	memcpy(ret, lab.gids, (size_t)lab.n_gids * sizeof(*ret));
	return lab.n_gids;
}

const char *ibv_port_state_str(enum ibv_port_state s)
{
	return s == IBV_PORT_DOWN ? "PORT_DOWN" : "PORT_INIT";
}

const char *ibv_wc_status_str(enum ibv_wc_status s)
{
	return s == IBV_WC_RETRY_EXC_ERR ? "transport retry counter exceeded" : "another";
}

struct ibv_pd *ibv_alloc_pd(struct ibv_context *c)
{
	(void)c;
	return &lab.pd;
}

int ibv_dealloc_pd(struct ibv_pd *pd)
{
	(void)pd;
	return 0;
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *address, size_t n, uint64_t iova,
				unsigned access)
{
	(void)pd;
	(void)address;
	(void)n;
	(void)iova;
	assert_true(access & IBV_ACCESS_RELAXED_ORDERING);
	errno = lab.register_error;
	lab.n_regions += !lab.register_error;
	return lab.register_error ? NULL : &lab.mr;
}

struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *address, size_t n, int access)
{
	return ibv_reg_mr_iova2(pd, address, n, (uintptr_t)address, (unsigned)access);
}

struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t n, uint64_t iova,
				 int fd, int access)
{
	(void)fd;
	(void)offset;
	return ibv_reg_mr_iova2(pd, NULL, n, iova, (unsigned)access);
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
	(void)mr;
	lab.n_regions--;
	return 0;
}

struct ibv_cq *ibv_create_cq(struct ibv_context *c, int n, void *arg,
			     struct ibv_comp_channel *channel, int vector)
{
	struct queue *q = &lab.queues[lab.n_queues++ % QPS];

	(void)arg;
	(void)channel;
	(void)vector;
	assert_true(n <= RECEIVES);
	*q = (struct queue) { .cq = { .context = c } };
	return &q->cq;
}

int ibv_destroy_cq(struct ibv_cq *cq)
{
	(void)cq;
	return 0;
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
	struct pair *p = &lab.pairs[lab.n_pairs % QPS];

	(void)pd;
	assert_int_equal(init->qp_type, IBV_QPT_RC);
	*p = (struct pair) { .qp = { .context = &lab.context,
				     .send_cq = init->send_cq,
				     .qp_num = (uint32_t)(lab.n_pairs++ % QPS) } };
	return &p->qp;
}

int ibv_destroy_qp(struct ibv_qp *qp)
{
	(void)qp;
	return 0;
}

int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	(void)mask;
	if (attr->qp_state != IBV_QPS_RTR)
		return 0;
	lab.rtr = *attr;
	((struct pair *)qp)->peer = attr->dest_qp_num;
	return lab.rtr_error;
}

static void complete(struct ibv_cq *cq, uint64_t id, enum ibv_wc_status status)
{
	struct queue *q = (struct queue *)cq;

	assert_true(q->n < RECEIVES);
	q->wc[q->n++] = (struct ibv_wc) { .wr_id = id, .status = status, .vendor_err = 0x81 };
}

static int poll_queue(struct ibv_cq *cq, int max, struct ibv_wc *ret)
{
	struct queue *q = (struct queue *)cq;
	int n = q->n < max ? q->n : max;

	memcpy(ret, q->wc, (size_t)n * sizeof(*ret));
	memmove(q->wc, q->wc + n, (size_t)(q->n - n) * sizeof(*ret));
	q->n -= n;
	return n;
}

/* Done when it is posted; both ends are in this process. */
static int send_now(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct pair *peer = &lab.pairs[((struct pair *)qp)->peer];
	void *near = (void *)(uintptr_t)wr->sg_list->addr;
	void *far = (void *)(uintptr_t)wr->wr.rdma.remote_addr;
	size_t n = wr->sg_list->length;

	(void)bad;
	if (lab.status && n >= lab.failing) {
		complete(qp->send_cq, wr->wr_id, lab.status);
		return 0;
	}
	if (wr->opcode == IBV_WR_SEND) {
		assert_true(peer->used < peer->posted);
		far = (void *)(uintptr_t)peer->receives[peer->used++ % RECEIVES].addr;
		complete(peer->qp.send_cq, UINT64_C(1) << 63, IBV_WC_SUCCESS);
	}
	if (wr->opcode == IBV_WR_RDMA_READ)
		memcpy(near, far, n);
	else
		memcpy(far, near, n);
	if (lab.corrupt && n > 8)
		((char *)(wr->opcode == IBV_WR_RDMA_READ ? near : far))[n - 1] ^= 1;
	complete(qp->send_cq, wr->wr_id, IBV_WC_SUCCESS);
	return 0;
}

static int receive_later(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct pair *p = (struct pair *)qp;

	(void)bad;
	p->receives[p->posted++ % RECEIVES] = *wr->sg_list;
	return 0;
}

/* --- the set-up --- */

static const union ibv_gid v4 = { .raw = { [10] = 0xff, [11] = 0xff, 10, 0, 0, 1 } };
static const union ibv_gid global = { .raw = { 0xfd, [15] = 1 } };
static const union ibv_gid link_local = { .raw = { 0xfe, 0x80, [15] = 1 } };

static struct told told;
static struct told_vf vf;
static struct report report;

static void add_gid(uint32_t index, uint32_t type, union ibv_gid gid)
{
	lab.gids[lab.n_gids++] = (struct ibv_gid_entry) {
		.gid = gid, .gid_index = index, .port_num = 1, .gid_type = type
	};
}

static int set_up(void **state)
{
	(void)state;
	memset(&lab, 0, sizeof(lab));
	strcpy(lab.device.name, "made_0");
	lab.context.device = &lab.device;
	lab.context.ops.poll_cq = poll_queue;
	lab.context.ops.post_send = send_now;
	lab.context.ops.post_recv = receive_later;
	lab.pd.context = &lab.context;
	lab.limits = (struct ibv_device_attr) { .max_qp = 100,
						.max_cq = 100,
						.max_mr = 100,
						.max_qp_wr = 1024,
						.max_qp_rd_atom = 16,
						.max_qp_init_rd_atom = 16,
						.phys_port_cnt = 1 };
	lab.port = (struct ibv_port_attr) { .state = IBV_PORT_ACTIVE,
					    .phys_state = 5,
					    .max_mtu = IBV_MTU_4096,
					    .active_mtu = IBV_MTU_4096,
					    .gid_tbl_len = 8,
					    .pkey_tbl_len = 1,
					    .active_width = 2,
					    .active_speed = 128,
					    .link_layer = IBV_LINK_LAYER_ETHERNET };
	lab.pkeys[0] = 0xffff;
	add_gid(3, IBV_GID_TYPE_ROCE_V2, v4);
	vf = (struct told_vf) {
		.bdf = "0000:01:00.1", .hca = "made_0", .port = 1, .gid_index = 3, .mbps = -1
	};
	told = (struct told) { .vfs = &vf, .n_vfs = 1, .nccl_gid_index = -1 };
	report = found_report(arena_new(4096), &told);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	assert_int_equal(lab.n_regions, 0);
	arena_free(report.arena);
	return 0;
}

static int open_and_close(double *ret_gbps)
{
	struct wire_device *d = NULL;
	int error = wire_open(&vf, &report, &d);

	if (!error && ret_gbps)
		*ret_gbps = wire_port_gbps(d);
	wire_close(d);
	return error;
}

static int local(enum wire_op op, struct wire_result *ret)
{
	const struct wire_run run = {
		.op = op, .message = 4096, .seconds = 0.002, .latency = true
	};
	struct wire_device *d;
	struct wire_memory near, far;
	int error;

	assert_int_equal(wire_open(&vf, &report, &d), 0);
	assert_int_equal(wire_memory_host(1 << 16, &near), 0);
	assert_int_equal(wire_memory_host(1 << 16, &far), 0);
	error = wire_local(&(struct wire_pairing) { d, d, &near, &far }, 1, &run, &report, ret);
	wire_memory_free(&near);
	wire_memory_free(&far);
	wire_close(d);
	return error;
}

/* --- the device --- */

static void rate_of_a_port_without_its_headers(void **state)
{
	static const struct {
		uint8_t width, speed, layer, mtu;
		double gbps;
	} rows[] = {
		{ 2, 128, IBV_LINK_LAYER_ETHERNET, IBV_MTU_4096, 400.0 * 4096 / 4178 },
		{ 2, 128, IBV_LINK_LAYER_ETHERNET, IBV_MTU_1024, 400.0 * 1024 / 1106 },
		{ 2, 4, IBV_LINK_LAYER_ETHERNET, IBV_MTU_4096, 40.0 * 4096 / 4178 },
		{ 2, 4, IBV_LINK_LAYER_INFINIBAND, IBV_MTU_4096, 32.0 * 4096 / 4122 },
		{ 2, 32, IBV_LINK_LAYER_INFINIBAND, IBV_MTU_4096, 100.0 * 4096 / 4122 },
		{ 16, 64, IBV_LINK_LAYER_ETHERNET, IBV_MTU_4096, 100.0 * 4096 / 4178 },
		{ 0, 128, IBV_LINK_LAYER_ETHERNET, IBV_MTU_4096, NAN },
		{ 2, 3, IBV_LINK_LAYER_ETHERNET, IBV_MTU_4096, NAN },
		{ 2, 128, IBV_LINK_LAYER_ETHERNET, 0, NAN },
	};

	(void)state;
	add_gid(0, IBV_GID_TYPE_IB, link_local);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		double gbps;

		lab.port.active_width = rows[i].width;
		lab.port.active_speed = rows[i].speed;
		lab.port.link_layer = rows[i].layer;
		lab.port.active_mtu = rows[i].mtu;
		assert_int_equal(open_and_close(&gbps), 0);
		assert_true(isnan(gbps) == isnan(rows[i].gbps));
		assert_true(isnan(gbps) || fabs(gbps - rows[i].gbps) < 0.01);
		if (isnan(gbps))
			found_assert(&report, OUTCOME_NOT_MEASURED, "no-rate", "is not known");
		else
			found_assert_none(&report, NULL);
	}
}

static void device_that_is_not_here_or_refuses(void **state)
{
	(void)state;
	lab.open_error = EPERM;
	assert_int_equal(open_and_close(NULL), -EPERM);
	found_assert(&report, OUTCOME_BROKEN, "uverbs-open", "Operation not permitted");
	strcpy(lab.device.name, "another");
	assert_int_equal(open_and_close(NULL), -ENODEV);
}

static void what_the_container_s_checks_said_is_not_said_again(void **state)
{
	(void)state;
	report_finding(&report, OUTCOME_BROKEN, "uverbs-absent", "made_0", "said");
	lab.open_error = ENOENT;
	assert_int_equal(open_and_close(NULL), -ENOENT);
	assert_int_equal(report.n_findings, 1);
	vf.hca = "made_"; /* is no prefix of a name */
	assert_int_equal(open_and_close(NULL), -ENODEV);
	assert_int_equal(report.n_findings, 2);
}

static void port_against_what_was_told(void **state)
{
	(void)state;
	lab.port.active_mtu = IBV_MTU_512;
	vf.mbps = 800000;
	assert_int_equal(open_and_close(NULL), 0);
	found_assert(&report, OUTCOME_SLOW, "mtu-small", "512");
	found_assert(&report, OUTCOME_SLOW, "port-slow", "400 Gb/s, and map.json says 800");
	lab.port.state = IBV_PORT_DOWN;
	lab.port.phys_state = 3;
	assert_int_equal(open_and_close(NULL), -ENETDOWN);
	found_assert(&report, OUTCOME_BROKEN, "port-down", "physically disabled");
	lab.port.state = IBV_PORT_INIT;
	assert_int_equal(open_and_close(NULL), -ENETDOWN);
	found_assert(&report, OUTCOME_BROKEN, "port-init", "PORT_INIT");
	vf.port = 2;
	assert_int_equal(open_and_close(NULL), -ENODEV);
	found_assert(&report, OUTCOME_BROKEN, "port-absent", "port 2");
}

static void pkeys_and_limits(void **state)
{
	(void)state;
	lab.pkeys[0] = 0x7fff;
	lab.limits.max_mr = 3;
	assert_int_equal(open_and_close(NULL), 0);
	found_assert(&report, OUTCOME_SLOW, "pkey-limited", "limited member");
	found_assert(&report, OUTCOME_BROKEN, "device-limits", "3 memory regions");
	lab.pkeys[0] = 0;
	assert_int_equal(open_and_close(NULL), 0);
	found_assert(&report, OUTCOME_BROKEN, "pkey-none", "none of the 1 P_Keys");
}

static void gid_that_nccl_would_take(void **state)
{
	struct wire_result result;

	(void)state;
	vf.gid_index = -1;
	lab.n_gids = 0;
	add_gid(0, IBV_GID_TYPE_ROCE_V1, link_local);
	add_gid(1, IBV_GID_TYPE_ROCE_V2, link_local);
	assert_int_equal(local(WIRE_WRITE, &result), 0);
	assert_int_equal(lab.rtr.ah_attr.grh.sgid_index, 1);
	found_assert(&report, OUTCOME_SLOW, "gid-link-local", "index 1, is link-local");
	add_gid(2, IBV_GID_TYPE_ROCE_V1, global);
	add_gid(5, IBV_GID_TYPE_ROCE_V2, global);
	local(WIRE_WRITE, &result);
	assert_int_equal(lab.rtr.ah_attr.grh.sgid_index, 5);
	add_gid(6, IBV_GID_TYPE_ROCE_V1, v4);
	add_gid(7, IBV_GID_TYPE_ROCE_V2, v4);
	local(WIRE_WRITE, &result);
	assert_int_equal(lab.rtr.ah_attr.grh.sgid_index, 7);
	vf.gid_index = 2;
	local(WIRE_WRITE, &result);
	assert_int_equal(lab.rtr.ah_attr.grh.sgid_index, 2);
	told.nccl_gid_index = 5;
	local(WIRE_WRITE, &result);
	assert_int_equal(lab.rtr.ah_attr.grh.sgid_index, 5);
	assert_int_equal(report.n_findings, 1);
}

static void no_gid(void **state)
{
	(void)state;
	lab.n_gids = 0;
	add_gid(0, IBV_GID_TYPE_ROCE_V2, link_local);
	assert_int_equal(open_and_close(NULL), -EADDRNOTAVAIL);
	found_assert(&report, OUTCOME_BROKEN, "gid-gone", "(3)");
	lab.n_gids = 0;
	vf.gid_index = -1;
	report.n_findings = 0;
	assert_int_equal(open_and_close(NULL), -EADDRNOTAVAIL);
	found_assert(&report, OUTCOME_BROKEN, "gid-none", "0 are not empty");
}

/* --- connections --- */

static void bytes_move_and_are_compared(void **state)
{
	(void)state;
	for (enum wire_op op = 0; op < WIRE_OP_MAX; op++) {
		struct wire_result result;

		lab.corrupt = false;
		assert_int_equal(local(op, &result), 0);
		assert_int_equal(result.status, 0);
		assert_true(result.gbps > 0 && result.usec > 0);
		report.n_findings = 0;
		lab.corrupt = true;
		assert_int_equal(local(op, &result), -EILSEQ);
		found_assert(&report, OUTCOME_BROKEN, "bytes-differ", wire_op_name(op));
		found_assert(&report, OUTCOME_BROKEN, "bytes-differ",
			     "16 of 65536, the first at offset 4095");
	}
}

static int refuse_copy(struct wire_memory *m, uint64_t seed)
{
	(void)m, (void)seed;
	return -EIO;
}

/* Of a GPU: neither the transfer nor its bytes are at fault. */
static void memory_that_cannot_be_copied_is_not_measured(void **state)
{
	const struct wire_run run = { .message = 4096, .seconds = 0.002 };
	struct wire_memory near, far;
	struct wire_result result;
	struct wire_device *d;

	(void)state;
	assert_int_equal(wire_open(&vf, &report, &d), 0);
	assert_int_equal(wire_memory_host(1 << 16, &near), 0);
	assert_int_equal(wire_memory_host(1 << 16, &far), 0);
	far.verify = refuse_copy;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(wire_local(&(struct wire_pairing) { d, d, &near, &far }, 1, &run,
					    &report, &result),
				 -ECANCELED);
		assert_int_equal(result.status, -ECANCELED);
		found_assert(&report, OUTCOME_NOT_MEASURED, "memory-copy",
			     i ? "cannot be filled: Input/output" : "cannot be compared: Input");
		near.fill = refuse_copy;
	}
	assert_int_equal(report_outcome(&report), OUTCOME_NOT_MEASURED);
	wire_memory_free(&near);
	wire_memory_free(&far);
	wire_close(d);
}

static void memory_that_may_not_be_locked(void **state)
{
	struct wire_result result;

	(void)state;
	lab.register_error = EFAULT;
	assert_int_equal(local(WIRE_WRITE, &result), -EFAULT);
	found_assert(&report, OUTCOME_BROKEN, "verbs-refused", "ibv_reg_mr of 64 KiB: Bad address");
}

static void memory_of_a_gpu_that_a_device_refuses_is_a_note(void **state)
{
	static const struct {
		int fd;
		bool direct;
		const char *id;
	} rows[] = { { 1, false, "dmabuf" },
		     { 1, true, "data-direct" },
		     { -1, false, "peer-memory" } };
	struct wire_device *d;

	(void)state;
	lab.register_error = EOPNOTSUPP;
	assert_int_equal(wire_open(&vf, &report, &d), 0);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct wire_memory m = { .size = 4096,
					 .dmabuf_fd = rows[i].fd,
					 .data_direct = rows[i].direct,
					 .name = "0000:02:00.0",
					 .way = "a way" };

		assert_int_equal(wire_memory_check(d, &m, &report), -EOPNOTSUPP);
		found_assert(&report, OUTCOME_GOOD, rows[i].id,
			     "by a way: Operation not supported");
	}
	wire_close(d);
}

static void way_to_the_peer(void **state)
{
	static const struct {
		int error;
		const char *id;
	} rows[] = { { ENETUNREACH, "no-route" },
		     { EHOSTUNREACH, "no-route" },
		     { ETIMEDOUT, "no-route" },
		     { EINVAL, "rtr" } };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct wire_result result;

		lab.rtr_error = rows[i].error;
		assert_int_equal(local(WIRE_WRITE, &result), -rows[i].error);
		found_assert(&report, OUTCOME_BROKEN, rows[i].id, strerror(rows[i].error));
		found_assert(&report, OUTCOME_BROKEN, rows[i].id, "GID ::ffff:10.0.0.1 (index 3)");
	}
}

static void other_end_of_another_kind(void **state)
{
	struct wire_memory m;
	struct wire_address peer;
	struct wire_device *d;
	struct wire *w;

	(void)state;
	assert_int_equal(wire_open(&vf, &report, &d), 0);
	assert_int_equal(wire_memory_host(4096, &m), 0);
	assert_int_equal(wire_create(d, &m, &(struct wire_options) { .gid_index = 4 }, &report, &w),
			 -EADDRNOTAVAIL);
	found_assert(&report, OUTCOME_BROKEN, "gid-index", "GID index 4");
	assert_int_equal(
		wire_create(d, &m, &(struct wire_options) { .gid_index = -1 }, &report, &w), 0);
	wire_address_of(w, &peer);
	peer.mtu = IBV_MTU_1024;
	assert_int_equal(wire_connect(w, &peer, &report), 0);
	assert_int_equal(lab.rtr.path_mtu, IBV_MTU_1024);
	found_assert(&report, OUTCOME_SLOW, "mtu-mismatch", "is 4096, and that of its peer 1024");
	peer.link_layer = IBV_LINK_LAYER_INFINIBAND;
	assert_int_equal(wire_connect(w, &peer, &report), -EPROTO);
	found_assert(&report, OUTCOME_BROKEN, "link-layer", "InfiniBand");
	wire_destroy(w);
	wire_memory_free(&m);
	wire_close(d);
}

static void each_status_has_its_sentence(void **state)
{
	static const struct {
		enum ibv_wc_status status;
		uint32_t failing;
		const char *id, *what;
	} rows[] = {
		{ IBV_WC_RETRY_EXC_ERR, 0, "retry-exceeded",
		  "write of 8 bytes to GID ::ffff:10.0.0.1: transport retry counter exceeded "
		  "(CQE status 12, vendor 0x81)" },
		{ IBV_WC_RETRY_EXC_ERR, 4096, "mtu-path", "write of 4096 bytes" },
		{ IBV_WC_RNR_RETRY_EXC_ERR, 0, "rnr", "status 13" },
		{ IBV_WC_LOC_PROT_ERR, 0, "local-protection", "status 4" },
		{ IBV_WC_LOC_LEN_ERR, 0, "local-length", "status 1" },
		{ IBV_WC_LOC_QP_OP_ERR, 0, "local-operation", "status 2" },
		{ IBV_WC_REM_ACCESS_ERR, 4096, "remote-access", "status 10" },
		{ IBV_WC_REM_INV_REQ_ERR, 0, "remote-request", "status 9" },
		{ IBV_WC_REM_OP_ERR, 0, "remote-operation", "status 11" },
		{ IBV_WC_WR_FLUSH_ERR, 0, "flushed", "status 5" },
		{ IBV_WC_FATAL_ERR, 0, "cqe", "status 19" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct wire_result result;

		report.n_findings = 0;
		lab.status = rows[i].status;
		lab.failing = rows[i].failing;
		assert_int_equal(local(WIRE_WRITE, &result), -EIO);
		assert_true(isnan(result.gbps));
		found_assert(&report, OUTCOME_BROKEN, rows[i].id, rows[i].what);
		assert_int_equal(report.n_findings, 1);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(rate_of_a_port_without_its_headers),
		TEST(device_that_is_not_here_or_refuses),
		TEST(what_the_container_s_checks_said_is_not_said_again),
		TEST(port_against_what_was_told),
		TEST(pkeys_and_limits),
		TEST(gid_that_nccl_would_take),
		TEST(no_gid),
		TEST(bytes_move_and_are_compared),
		TEST(memory_that_cannot_be_copied_is_not_measured),
		TEST(memory_that_may_not_be_locked),
		TEST(memory_of_a_gpu_that_a_device_refuses_is_a_note),
		TEST(way_to_the_peer),
		TEST(other_end_of_another_kind),
		TEST(each_status_has_its_sentence),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
