/*
 * Two railmate-probes: the server is a child process, and a fake takes the place of verbs, whose
 * connections and memory both processes share. What comes of foreign, late and dying peers, and of
 * runs that fail.
 */
#include <errno.h>
#include <math.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "railmate-probe/exchange-internal.h"
#include "railmate-probe/gpu.h"
#include "railmate-probe/told.h"

#define TOKEN	"s3cret-s3cret"
#define HOST	"127.0.0.1"
#define QPS	512
#define SHARED	((size_t)512 << 20) /* of which few pages are touched */
#define STEP_MS 3000

/* --- the fabric: of both processes --- */

static struct fabric {
	struct {
		uint8_t gid[16], peer_gid[16];
		int pkey, rail;
	} qps[QPS];
	int n;	      /* of qps */
	size_t used;  /* of memory */
	bool spoof;   /* a foreign GID and another P_Key make no difference */
	bool corrupt; /* bytes change on the way */
	bool no_copy; /* they cannot be compared */
	bool no_gpu_library;
	const char *no_gpu; /* an RDMA device that takes no memory of GPUs */
	bool apart;	    /* rails are networks of their own */
	bool one_way;	    /* of a foreign GID the bytes arrive, and no acknowledgement */
	bool no_receives;   /* a send found none posted */
	bool receives;
	bool die;	  /* the server ends while it connects */
	const char *down; /* an RDMA device that connects to nothing */
	int other_pkey;	  /* index; -ENOENT */
	char memory[] __attribute__((aligned(4096)));
} * fabric;

struct wire_device {
	const struct told_vf *vf;
};

struct wire {
	struct wire_device *device;
	struct wire_memory *memory;
	int qpn, pkey;
	struct wire_address peer;
};

static bool is_server;
static struct wire *wires_here[QPS];

const char *wire_op_name(enum wire_op op)
{
	static const char *const names[] = { "write", "read", "send" };

	return names[op];
}

static int fill(struct wire_memory *m, uint64_t seed)
{
	memset(m->address, (int)(seed * 31 % 251), m->size);
	return 0;
}

static int verify(struct wire_memory *m, uint64_t seed)
{
	const unsigned char *p = m->address;

	if (fabric->no_copy)
		return -EIO;
	for (int i = 0; i < QPS && is_server; i++) {
		if (wires_here[i] && wires_here[i]->memory == m)
			return -EBUSY; /* bytes may be under way */
	}
	return p[0] == seed * 31 % 251 && p[m->size - 1] == p[0] ? 0 : -EILSEQ;
}

int wire_memory_host(size_t size, struct wire_memory *ret)
{
	size_t at = __atomic_fetch_add(&fabric->used, size, __ATOMIC_SEQ_CST);

	assert_true(at + size <= SHARED);
	*ret = (struct wire_memory) { .address = fabric->memory + at,
				      .size = size,
				      .dmabuf_fd = -1,
				      .name = "host",
				      .fill = fill,
				      .verify = verify };
	return 0;
}

int gpu_open(const struct sysroot *root, const char *bdf, struct report *r, struct gpu **ret)
{
	(void)root;
	if (fabric->no_gpu_library) {
		r->no_gpu_library = true;
		report_finding(r, OUTCOME_NOT_MEASURED, "gpu-library", bdf, "no library");
		return -ENOSYS;
	}
	*ret = (struct gpu *)(uintptr_t)bdf;
	return 0;
}

void gpu_close(struct gpu *g)
{
	(void)g;
}

/* No device takes the first way. */
int gpu_memory(struct gpu *g, size_t size, unsigned way, struct report *r, struct wire_memory *ret)
{
	static const char *const ways[] = { "dmabuf", "peer memory" };

	(void)r;
	if (way == ARRAY_LEN(ways))
		return -ENOTSUP;
	wire_memory_host(size, ret);
	ret->name = (const char *)g;
	ret->way = ways[way];
	return 0;
}

void wire_memory_free(struct wire_memory *m)
{
	m->address = NULL;
}

int wire_open(const struct told_vf *vf, struct report *r, struct wire_device **ret)
{
	if (str_starts(vf->hca, "broken")) {
		report_finding(r, OUTCOME_BROKEN, "port-down", vf->hca, "the port is Down");
		return -ENETDOWN;
	}
	*ret = xcalloc(1, sizeof(**ret));
	(*ret)->vf = vf;
	return 0;
}

void wire_close(struct wire_device *d)
{
	free(d);
}

double wire_port_gbps(const struct wire_device *d)
{
	return d->vf->mbps > 0 ? (double)d->vf->mbps / 1000 : (double)NAN;
}

int wire_other_pkey(const struct wire_device *d)
{
	(void)d;
	return fabric->other_pkey;
}

int wire_memory_check(struct wire_device *d, struct wire_memory *m, struct report *r)
{
	return str_eq(m->way, "dmabuf") || (m->way && str_eq(d->vf->hca, fabric->no_gpu))
		       ? -EOPNOTSUPP
		       : 0;
}

int wire_create(struct wire_device *d, struct wire_memory *m, const struct wire_options *o,
		struct report *r, struct wire **ret)
{
	struct wire *w;

	if (wire_memory_check(d, m, r) < 0)
		return -EOPNOTSUPP;
	w = xcalloc(1, sizeof(*w));
	*w = (struct wire) { .device = d, .memory = m, .pkey = o->pkey_index };
	w->qpn = 1 + __atomic_fetch_add(&fabric->n, 1, __ATOMIC_SEQ_CST);
	assert_true(w->qpn < QPS);
	wires_here[w->qpn] = w;
	fabric->qps[w->qpn].pkey = o->pkey_index;
	fabric->qps[w->qpn].rail = 100 * d->vf->rail + d->vf->plane;
	memcpy(fabric->qps[w->qpn].gid, d->vf->bdf, 12);
	fabric->qps[w->qpn].gid[15] = is_server;
	*ret = w;
	return 0;
}

void wire_destroy(struct wire *w)
{
	if (w)
		wires_here[w->qpn] = NULL;
	free(w);
}

void wire_address_of(const struct wire *w, struct wire_address *ret)
{
	*ret = (struct wire_address) { .qpn = (uint32_t)w->qpn,
				       .address = (uintptr_t)w->memory->address,
				       .size = w->memory->size,
				       .link_layer = 2,
				       .mtu = 3 };
	memcpy(ret->gid, fabric->qps[w->qpn].gid, 16);
}

int wire_connect(struct wire *w, const struct wire_address *peer, struct report *r)
{
	if (is_server && fabric->die)
		_exit(77);
	if (str_eq(w->device->vf->hca, fabric->down)) {
		report_finding(r, OUTCOME_BROKEN, "no-route", w->device->vf->hca, "no route");
		return -ENETUNREACH;
	}
	w->peer = *peer;
	memcpy(fabric->qps[w->qpn].peer_gid, peer->gid, 16);
	return 0;
}

static bool passes(const struct wire *w)
{
	uint32_t to = w->peer.qpn;

	if (fabric->apart && fabric->qps[to].rail != fabric->qps[w->qpn].rail)
		return false;
	return fabric->spoof ||
	       (fabric->qps[to].pkey == w->pkey &&
		memcmp(fabric->qps[to].peer_gid, fabric->qps[w->qpn].gid, 16) == 0);
}

static void carry(const struct wire *w, enum wire_op op)
{
	char *own = w->memory->address;
	char *other = (char *)(uintptr_t)w->peer.address; /* the same in both processes */

	memcpy(op == WIRE_READ ? own : other, op == WIRE_READ ? other : own, w->memory->size);
	if (fabric->corrupt)
		(op == WIRE_READ ? own : other)[0] ^= 1;
	if (op == WIRE_SEND && !__atomic_load_n(&fabric->receives, __ATOMIC_SEQ_CST))
		fabric->no_receives = true;
}

int wire_drive(struct wire *const *wires, size_t n, const struct wire_run *run, struct report *r,
	       struct wire_result *results)
{
	for (size_t i = 0; i < n; i++) {
		bool good = passes(wires[i]);

		results[i] = (struct wire_result) { good ? 90 : (double)NAN,
						    run->latency ? 2.5 : NAN, good ? 0 : -EIO };
		if (good || fabric->one_way)
			carry(wires[i], run->op);
		if (!good)
			report_finding(r, OUTCOME_BROKEN, "retry-exceeded",
				       wires[i]->device->vf->hca, "retry exceeded");
	}
	return 0;
}

int wire_serve_receives(struct wire *const *wires, size_t n, size_t message, bool (*stop)(void *),
			void *arg, struct report *r)
{
	(void)r;
	assert_true(n && wires[0]->memory->size % message == 0);
	__atomic_store_n(&fabric->receives, true, __ATOMIC_SEQ_CST);
	while (!stop(arg))
		usleep(500);
	__atomic_store_n(&fabric->receives, false, __ATOMIC_SEQ_CST);
	return 0;
}

/* --- two sides --- */

static struct told_vf here[] = {
	{ .bdf = "0000:01:00.1",
	  .hca = "mlx5_0",
	  .port = 1,
	  .rail = 0,
	  .plane = -1,
	  .gid = "fd00::1",
	  .mbps = 100000 },
	{ .bdf = "0000:02:00.1",
	  .hca = "mlx5_1",
	  .port = 1,
	  .rail = 1,
	  .plane = -1,
	  .gid = "fd00:0:0:1::1",
	  .mbps = 100000 },
};
/* The other node has them the other way round. */
static struct told_vf there[] = {
	{ .bdf = "0000:03:00.1",
	  .hca = "mlx5_8",
	  .port = 1,
	  .rail = 1,
	  .plane = -1,
	  .gid = "fd00:0:0:1::2",
	  .mbps = 400000 },
	{ .bdf = "0000:04:00.1",
	  .hca = "mlx5_9",
	  .port = 1,
	  .rail = 0,
	  .plane = -1,
	  .gid = "fd00::2",
	  .mbps = 80000 },
};

struct both {
	struct arena *a;
	struct report report; /* the client's */
	struct told told[2];
	struct peer_options options[2];
	char root[2][64];
	pid_t server;
	int told_by; /* the server's standard error */
};

static int free_port(void)
{
	struct sockaddr_in6 at;
	int fd = exchange_listen(0, NULL);

	assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &(socklen_t) { sizeof(at) }), 0);
	close(fd);
	return ntohs(at.sin6_port); /* at the same place in IPv4's */
}

/* A machine by the id of its boot. */
static void make_root(char *path, const char *id)
{
	static const char *const folders[] = { "", "/proc", "/proc/sys", "/proc/sys/kernel",
					       "/proc/sys/kernel/random" };
	_cleanup_free_ char *file = NULL;
	FILE *f;

	strcpy(path, "/tmp/railmate-peer-XXXXXX");
	assert_non_null(mkdtemp(path));
	for (size_t i = 1; i < ARRAY_LEN(folders); i++) {
		_cleanup_free_ char *folder = xasprintf("%s%s", path, folders[i]);

		assert_int_equal(mkdir(folder, 0755), 0);
	}
	file = xasprintf("%s/proc/sys/kernel/random/boot_id", path);
	f = fopen(file, "we");
	assert_non_null(f);
	fprintf(f, "%s\n", id);
	fclose(f);
}

static int open_both(void **state)
{
	struct both *b = xcalloc(1, sizeof(*b));
	int port = free_port();

	fabric = mmap(NULL, sizeof(*fabric) + SHARED, PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	assert_true(fabric != MAP_FAILED);
	fabric->other_pkey = -ENOENT;
	b->a = arena_new(1 << 16);
	b->told[0] = (struct told) { .pod = "pod-here", .vfs = here, .n_vfs = 2 };
	b->told[1] = (struct told) { .pod = "pod-there", .vfs = there, .n_vfs = 2 };
	make_root(b->root[0], "machine-1");
	make_root(b->root[1], "machine-2");
	for (int i = 0; i < 2; i++)
		b->options[i] = (struct peer_options) { .port = port,
							.token = TOKEN,
							.once = true,
							.seconds = 30,
							.wait_s = 20,
							.step_ms = STEP_MS,
							.root = b->root[i] };
	b->options[0].host = HOST;
	b->report = (struct report) { .arena = b->a, .quiet = true, .slow = 0.8, .broken = 0.5 };
	b->server = b->told_by = -1;
	*state = b;
	return 0;
}

static int close_both(void **state)
{
	struct both *b = *state;

	if (b->server > 0) {
		kill(b->server, SIGKILL);
		waitpid(b->server, NULL, 0);
	}
	for (int i = 0; i < 2; i++) {
		_cleanup_free_ char *command = xasprintf("rm -r %s", b->root[i]);

		assert_int_equal(system(command), 0);
	}
	closep(&b->told_by);
	munmap(fabric, sizeof(*fabric) + SHARED);
	arena_free(b->a);
	free(b);
	return 0;
}

static void start_server(struct both *b)
{
	struct report r = { .quiet = true };
	int out[2];

	assert_int_equal(pipe(out), 0);
	b->server = fork();
	assert_true(b->server >= 0);
	b->told_by = out[0];
	if (b->server) {
		close(out[1]);
		return;
	}
	is_server = true;
	dup2(out[1], STDERR_FILENO);
	r.arena = arena_new(1 << 16);
	peer_serve(&b->told[1], &b->options[1], &r);
	for (size_t i = 0; i < r.n_findings; i++)
		fprintf(stderr, "found %s: %s\n", r.findings[i].sentence->id, r.findings[i].what);
	_exit((int)report_exit(&r));
}

/* The exit status of the server, which has ended by itself. */
static int ended(struct both *b)
{
	int status;

	assert_int_equal(waitpid(b->server, &status, 0), b->server);
	b->server = -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* What it wrote to standard error; it has ended. */
static char *said(struct both *b)
{
	char *text = arena_alloc(b->a, 4096);

	assert_true(read(b->told_by, text, 4095) >= 0);
	return text;
}

static int ask(struct both *b)
{
	return peer_run(&b->told[0], &b->options[0], &b->report);
}

static const struct finding *found(const struct both *b, const char *id)
{
	for (size_t i = 0; i < b->report.n_findings; i++) {
		if (str_eq(b->report.findings[i].sentence->id, id))
			return &b->report.findings[i];
	}
	fail_msg("no finding %s", id);
	return NULL;
}

static const struct measure *measured(const struct both *b, const char *from, const char *to,
				      const char *op, bool together)
{
	for (size_t i = 0; i < b->report.n_measures; i++) {
		const struct measure *m = &b->report.measures[i];

		if (str_eq(m->from, from) && str_eq(m->to, to) && str_eq(m->op, op) &&
		    m->together == together)
			return m;
	}
	fail_msg("no %s from %s to %s", op, from, to);
	return NULL;
}

/* --- runs --- */

static void rails_are_paired_by_their_number(void **state)
{
	struct both *b = *state;
	const struct measure *m;

	start_server(b);
	assert_int_equal(ask(b), 0);
	assert_int_equal(ended(b), 0);
	assert_int_equal(b->report.n_findings, 0);
	assert_int_equal(b->report.n_measures, 2 * 3 + 2);
	for (size_t i = 0; i < b->report.n_measures; i++) {
		assert_true(b->report.measures[i].verified);
		assert_int_equal(b->report.measures[i].path, PATH_SAME_RAIL);
		assert_int_equal(b->report.measures[i].outcome, OUTCOME_GOOD);
	}
	m = measured(b, "mlx5_0", "pod-there/mlx5_9", "read", false);
	assert_true(m->usec > 2 && m->gbps > 89);
	m = measured(b, "mlx5_1", "pod-there/mlx5_8", "write", true);
	assert_true(isnan(m->usec));
	assert_false(fabric->no_receives);
}

static void the_narrower_side_is_expected(void **state)
{
	struct both *b = *state;
	const struct measure *m;

	start_server(b);
	assert_int_equal(ask(b), 0);
	m = measured(b, "mlx5_0", "pod-there/mlx5_9", "write", false);
	assert_true(m->expect_gbps > 79 && m->expect_gbps < 81);
	assert_non_null(strstr(m->limit, "of pod-there"));
	m = measured(b, "mlx5_1", "pod-there/mlx5_8", "write", false);
	assert_true(m->expect_gbps > 99 && m->expect_gbps < 101);
}

static void without_rails_the_order_counts_and_is_said(void **state)
{
	struct both *b = *state;

	here[1].rail = -1;
	start_server(b);
	assert_int_equal(ask(b), 0);
	here[1].rail = 1;
	assert_int_equal(found(b, "rails-unknown")->outcome, OUTCOME_GOOD);
	measured(b, "mlx5_0", "pod-there/mlx5_8", "write", false);
	assert_int_equal(measured(b, "mlx5_1", "pod-there/mlx5_9", "write", false)->path,
			 PATH_OTHER_SUBNET);
}

static void a_rail_that_the_peer_has_not_is_not_measured(void **state)
{
	struct both *b = *state;

	b->told[1].n_vfs = 1;
	start_server(b);
	assert_int_equal(ask(b), 0);
	assert_int_equal(b->report.n_measures, 3);
	assert_string_equal(found(b, "rail-absent")->on, "mlx5_0");
	assert_int_equal(report_outcome(&b->report), OUTCOME_NOT_MEASURED);
}

static void two_containers_of_a_machine_are_told_apart_from_two_nodes(void **state)
{
	struct both *b = *state;

	b->options[1].root = b->root[0];
	start_server(b);
	assert_int_equal(ask(b), 0);
	assert_int_equal(b->report.measures[0].path, PATH_SAME_HOST);
}

static void other_rails_are_measured_on_request(void **state)
{
	struct both *b = *state;

	b->options[0].crossed = true;
	start_server(b);
	assert_int_equal(ask(b), 0);
	assert_int_equal(b->report.n_measures, 2 * 3 + 2 + 2);
	assert_int_equal(measured(b, "mlx5_0", "pod-there/mlx5_8", "write", false)->path,
			 PATH_OTHER_SUBNET);
}

static void bytes_that_changed_are_broken(void **state)
{
	struct both *b = *state;

	fabric->corrupt = true;
	start_server(b);
	assert_int_equal(ask(b), 0);
	assert_int_equal(found(b, "bytes-differ")->outcome, OUTCOME_BROKEN);
	for (size_t i = 0; i < b->report.n_measures; i++) {
		assert_false(b->report.measures[i].verified);
		assert_int_equal(b->report.measures[i].outcome, OUTCOME_BROKEN);
	}
}

static void bytes_that_cannot_be_compared_are_not_broken(void **state)
{
	struct both *b = *state;

	fabric->no_copy = true;
	start_server(b);
	assert_int_equal(ask(b), 0);
	assert_int_equal(found(b, "memory-copy")->outcome, OUTCOME_NOT_MEASURED);
	for (size_t i = 0; i < b->report.n_measures; i++) {
		assert_false(b->report.measures[i].verified);
		assert_int_equal(b->report.measures[i].outcome, OUTCOME_NOT_MEASURED);
	}
	assert_int_equal(report_exit(&b->report), PROBE_EXIT_NOT_MEASURED);
}

static void what_fails_at_the_peer_is_reported_here(void **state)
{
	struct both *b = *state;
	const struct finding *f;

	fabric->down = "mlx5_8";
	start_server(b);
	assert_int_equal(ask(b), 0);
	assert_int_equal(ended(b), 1);
	f = found(b, "no-route");
	assert_string_equal(f->on, "pod-there mlx5_8");
	assert_int_equal(measured(b, "mlx5_1", "pod-there/mlx5_8", "write", false)->outcome,
			 OUTCOME_BROKEN);
	assert_int_equal(measured(b, "mlx5_0", "pod-there/mlx5_9", "write", false)->outcome,
			 OUTCOME_GOOD);
}

static void what_fails_here_does_not_end_the_plan(void **state)
{
	struct both *b = *state;

	fabric->down = "mlx5_0";
	start_server(b);
	assert_int_equal(ask(b), 0);
	assert_int_equal(measured(b, "mlx5_0", "pod-there/mlx5_9", "write", false)->outcome,
			 OUTCOME_BROKEN);
	assert_int_equal(measured(b, "mlx5_1", "pod-there/mlx5_8", "send", false)->outcome,
			 OUTCOME_GOOD);
	/* Not tried again, nor with all at once: the other one would be alone. */
	assert_int_equal(b->report.n_measures, 1 + 3);
}

static void a_fault_that_is_known_is_one_the_next_time_too(void **state)
{
	struct both *b = *state;

	b->options[1].once = false;
	fabric->down = "mlx5_8";
	start_server(b);
	assert_int_equal(ask(b), 0);
	assert_int_equal(ask(b), 0);
	assert_int_equal(b->report.n_findings, 1);
	for (size_t i = 0; i < b->report.n_measures; i++) {
		const struct measure *m = &b->report.measures[i];

		assert_int_equal(m->outcome,
				 str_eq(m->from, "mlx5_1") ? OUTCOME_BROKEN : OUTCOME_GOOD);
	}
}

static void rails_that_are_networks_of_their_own_are_a_note(void **state)
{
	struct both *b = *state;

	b->options[0].crossed = true;
	fabric->apart = true;
	start_server(b);
	assert_int_equal(ask(b), 0);
	assert_int_equal(b->report.n_measures, 2 * 3 + 2);
	assert_non_null(strstr(
		found(b, "rails-apart")->what,
		"rail 0 does not reach rail 1, or its plane, at pod-there/mlx5_8: retry exceeded"));
	assert_int_equal(report_outcome(&b->report), OUTCOME_GOOD);
}

/* Of one rail, and nothing that has to be mended; but where nothing else is, nothing was proven. */
static void planes_that_are_networks_of_their_own_are_a_note(void **state)
{
	struct both *b = *state;

	here[0].plane = 0;
	there[1].plane = 1;
	fabric->apart = true;
	b->options[1].once = false;
	start_server(b);
	assert_int_equal(ask(b), 0);
	assert_int_equal(b->report.n_measures, 3); /* of the other rail, and not all at once */
	assert_int_equal(b->report.n_findings, 1);
	assert_string_equal(found(b, "rails-apart")->on, "mlx5_0");
	assert_int_equal(report_outcome(&b->report), OUTCOME_GOOD);
	b->report.n_measures = b->report.n_findings = 0;
	b->told[0].n_vfs = 1;
	assert_int_equal(ask(b), 0);
	here[0].plane = there[1].plane = -1;
	assert_non_null(found(b, "rails-apart"));
	assert_int_equal(found(b, "no-pair")->outcome, OUTCOME_NOT_MEASURED);
	assert_int_equal(report_exit(&b->report), PROBE_EXIT_NOT_MEASURED);
}

static void what_has_no_time_is_not_measured(void **state)
{
	struct both *b = *state;

	b->options[0].seconds = 1e-9;
	start_server(b);
	assert_int_equal(ask(b), 0);
	assert_int_equal(b->report.n_measures, 0);
	assert_string_equal(found(b, "out-of-time")->what,
			    "7 transfers were not tried: the time was over");
	assert_int_equal(report_exit(&b->report), PROBE_EXIT_NOT_MEASURED);
}

static void a_device_that_does_not_open_is_a_finding_of_its_side(void **state)
{
	struct both *b = *state;

	there[0].hca = "broken_8";
	start_server(b);
	assert_int_equal(ask(b), 0);
	there[0].hca = "mlx5_8";
	assert_string_equal(found(b, "port-down")->on, "pod-there broken_8");
	assert_string_equal(found(b, "rail-absent")->on, "mlx5_1");
}

/* --- memory of GPUs --- */

static struct told_gpu gpus[] = { { "0000:a1:00.0" }, { "0000:a2:00.0" } };
static struct told_pair gpu_pairs[] = { { 0, 0 }, { 1, 1 } };

static void give_gpus(struct both *b)
{
	for (int i = 0; i < 2; i++) {
		b->told[i].gpus = gpus;
		b->told[i].pairs = gpu_pairs;
		b->told[i].n_gpus = b->told[i].n_pairs = 2;
	}
	b->options[0].gpu = true;
}

static void bytes_go_from_gpu_to_gpu_by_the_way_that_works(void **state)
{
	struct both *b = *state;
	const struct measure *m;

	give_gpus(b);
	start_server(b);
	assert_int_equal(ask(b), 0);
	assert_int_equal(b->report.n_measures, 2 * 3 + 2);
	m = measured(b, "mlx5_0", "pod-there/mlx5_9", "read", false);
	assert_string_equal(m->from_memory, "0000:a1:00.0");
	assert_string_equal(m->to_memory, "0000:a2:00.0");
	assert_string_equal(m->memory_way, "peer memory");
	assert_true(m->verified);
	/* One registration a VF, for all runs of it: few of the memory that a GPU gives. */
	assert_true(fabric->used <= 2 * 2 * 2 * ((size_t)1 << 20));
}

static void a_device_that_takes_no_gpu_memory_is_broken(void **state)
{
	struct both *b = *state;

	give_gpus(b);
	fabric->no_gpu = "mlx5_9";
	start_server(b);
	assert_int_equal(ask(b), 0);
	assert_string_equal(found(b, "gpu-not-direct")->on, "pod-there 0000:a2:00.0 with mlx5_9");
	assert_int_equal(measured(b, "mlx5_0", "pod-there/mlx5_9", "write", false)->outcome,
			 OUTCOME_BROKEN);
	assert_int_equal(measured(b, "mlx5_1", "pod-there/mlx5_8", "send", false)->outcome,
			 OUTCOME_GOOD);
}

static void without_a_gpu_library_it_is_said(void **state)
{
	struct both *b = *state;

	give_gpus(b);
	fabric->no_gpu_library = true;
	start_server(b);
	assert_int_equal(ask(b), 0);
	assert_int_equal(report_exit(&b->report), PROBE_EXIT_NO_GPU_LIBRARY);
}

/* --- isolation --- */

static void what_is_isolated_fails_as_it_has_to(void **state)
{
	struct both *b = *state;

	b->options[0].isolation = true;
	fabric->other_pkey = 1;
	start_server(b);
	assert_int_equal(ask(b), 0);
	assert_int_equal(ended(b), 0);
	assert_int_equal(b->report.n_findings, 2);
	assert_int_equal(found(b, "isolation")->outcome, OUTCOME_GOOD);
	assert_int_equal(report_outcome(&b->report), OUTCOME_GOOD);
}

static void a_transfer_that_has_to_fail_and_works_is_broken(void **state)
{
	struct both *b = *state;

	b->options[0].isolation = true;
	fabric->other_pkey = 1;
	fabric->spoof = true;
	start_server(b);
	assert_int_equal(ask(b), 0);
	assert_int_equal(b->report.n_findings, 2);
	assert_non_null(strstr(b->report.findings[0].what, "with another P_Key works"));
	assert_non_null(strstr(b->report.findings[1].what, "with a foreign GID works"));
	assert_int_equal(found(b, "isolation")->outcome, OUTCOME_BROKEN);
}

static void bytes_without_an_acknowledgement_are_neither(void **state)
{
	struct both *b = *state;

	b->options[0].isolation = true;
	fabric->one_way = true;
	start_server(b);
	assert_int_equal(ask(b), 0);
	assert_int_equal(found(b, "isolation-untried")->outcome, OUTCOME_NOT_MEASURED);
	assert_int_equal(found(b, "isolation")->outcome, OUTCOME_NOT_MEASURED);
}

static void isolation_that_cannot_be_tried_is_no_pass(void **state)
{
	struct both *b = *state;

	b->options[0].isolation = true;
	b->told[0].n_vfs = 1;
	start_server(b);
	assert_int_equal(ask(b), 0);
	assert_int_equal(b->report.n_findings, 2);
	assert_non_null(strstr(b->report.findings[0].what, "that of one partition only"));
	assert_non_null(strstr(b->report.findings[1].what, "has one VF only"));
	assert_int_equal(report_exit(&b->report), PROBE_EXIT_NOT_MEASURED);
}

/* --- peers that are none --- */

static void connect_to(struct both *b, struct exchange *x)
{
	for (int i = 0; i < 200; i++) {
		if (exchange_connect(HOST, b->options[0].port, STEP_MS, x, NULL) == 0)
			return;
		usleep(20000);
	}
	fail_msg("nobody listens");
}

static struct exchange_message answer(struct both *b, struct exchange *x, const char *words)
{
	struct exchange_message m;
	struct err err = { 0 };

	if (words)
		assert_int_equal(send(x->fd, words, strlen(words), MSG_NOSIGNAL), strlen(words));
	if (exchange_receive(x, ~0u, 0, b->a, &m, &err) < 0)
		fail_msg("%s: %s", words, err.msg);
	return m;
}

#define HELLO                                                                                      \
	"{\"type\":\"hello\",\"version\":1,\"token\":\"" TOKEN                                     \
	"\",\"node\":\"n\",\"host\":null,\"vfs\":[],\"findings\":[]}\n"

static void strangers_take_nothing_down(void **state)
{
	static const struct {
		const char *words, *id;
	} strangers[] = {
		{ "GET / HTTP/1.1\r\n\r\n", "peer-foreign" },
		{ "{\"type\":\"bye\"}\n", "peer-foreign" },
		{ "{\"type\":\"hello\",\"version\":1,\"token\":\"other-secret\",\"node\":\"n\",\"host\":null,"
		  "\"vfs\":[],\"findings\":[]}\n",
		  "peer-token" },
		{ "{\"type\":\"hello\",\"version\":1,\"token\":null,\"node\":\"n\",\"host\":null,\"vfs\":[],"
		  "\"findings\":[]}\n",
		  "peer-token" },
		{ "{\"type\":\"hello\",\"version\":2,\"token\":\"other-secret\"}\n", "peer-token" },
		{ "{\"type\":\"hello\",\"version\":2,\"token\":\"" TOKEN "\"}\n", "peer-version" },
	};
	struct both *b = *state;
	struct exchange x;
	const char *text;

	start_server(b);
	for (size_t i = 0; i < ARRAY_LEN(strangers); i++) {
		struct exchange_message m;

		connect_to(b, &x);
		m = answer(b, &x, strangers[i].words);
		assert_int_equal(m.type, EXCHANGE_REFUSED);
		assert_string_equal(m.findings->id, strangers[i].id);
		exchange_end(&x);
	}
	connect_to(b, &x);
	exchange_end(&x); /* gone without a word */
	assert_int_equal(ask(b), 0);
	assert_int_equal(ended(b), 0);
	text = said(b);
	assert_non_null(strstr(text, "it was refused: its message is malformed: it is not JSON\n"));
	assert_non_null(strstr(text, "it was refused: its token is another one\n"));
	assert_non_null(strstr(text, "speaks version 2 of the exchange, not 1\n"));
	assert_non_null(strstr(text, "the connection was closed\n"));
}

static void half_a_line_and_silence_ends_after_its_time(void **state)
{
	struct both *b = *state;
	struct exchange x;

	b->options[1].step_ms = 300;
	start_server(b);
	connect_to(b, &x);
	assert_int_equal(send(x.fd, "{\"type\":", 8, 0), 8);
	assert_int_equal(ask(b), 0); /* after a time of being busy */
	exchange_end(&x);
	assert_int_equal(ended(b), 0);
	assert_non_null(strstr(said(b), "no more than half a message came in time\n"));
}

static void a_second_client_is_told_that_somebody_is_served(void **state)
{
	struct both *b = *state;
	struct exchange first;

	start_server(b);
	connect_to(b, &first);
	assert_int_equal(answer(b, &first, HELLO).type, EXCHANGE_HELLO);
	b->options[0].wait_s = 1;
	assert_int_equal(ask(b), -EAGAIN);
	assert_string_equal(found(b, "peer-busy")->on, HOST);
	assert_int_equal(report_exit(&b->report), PROBE_EXIT_NOT_MEASURED);
	exchange_end(&first);
	assert_int_equal(ended(b), PROBE_EXIT_NOT_MEASURED);
	assert_non_null(strstr(said(b), "found peer-died: the connection was closed\n"));
}

static void a_server_goes_on_after_a_client(void **state)
{
	struct both *b = *state;

	b->options[1].once = false;
	start_server(b);
	assert_int_equal(ask(b), 0);
	assert_int_equal(ask(b), 0);
	assert_int_equal(b->report.n_measures, 16);
}

static void only_devices_of_the_container_are_used(void **state)
{
	struct both *b = *state;
	struct exchange x;
	struct exchange_end ends[2];
	struct exchange_message m = { .type = EXCHANGE_RUN,
				      .size = WIRE_MEMORY_MAX,
				      .message = 8,
				      .ends = ends,
				      .n_ends = 2 };

	for (size_t i = 0; i < ARRAY_LEN(ends); i++)
		ends[i] = (struct exchange_end) {
			"a",
			"mlx5_8",
			{ .qpn = 1, .size = WIRE_MEMORY_MAX, .link_layer = 2, .mtu = 1 },
			"host",
			NAN,
			NULL,
			0
		};
	start_server(b);
	connect_to(b, &x);
	answer(b, &x, HELLO);
	assert_int_equal(exchange_send(&x, &m, NULL), 0);
	m = answer(b, &x, NULL);
	assert_int_equal(m.type, EXCHANGE_TROUBLE);
	assert_non_null(strstr(m.findings->what, "asks for 2 connections of 67108864 bytes each"));
	ends[0].to = "mlx5_0";
	m = (struct exchange_message) {
		.type = EXCHANGE_RUN, .size = 8, .message = 8, .ends = ends, .n_ends = 1
	};
	assert_int_equal(exchange_send(&x, &m, NULL), 0);
	m = answer(b, &x, NULL);
	assert_int_equal(m.type, EXCHANGE_TROUBLE);
	assert_string_equal(m.findings->on, "mlx5_0");
	ends[0].to = "mlx5_8";
	m = (struct exchange_message) {
		.type = EXCHANGE_RUN, .size = 8, .message = 8, .ends = ends, .n_ends = 1
	};
	assert_int_equal(exchange_send(&x, &m, NULL), 0);
	assert_int_equal(answer(b, &x, NULL).type, EXCHANGE_READY);
	exchange_end(&x);
}

/* --- servers that are none --- */

/* One that says these words to each who comes, from a child. */
static void serve_words(struct both *b, const char *words)
{
	int listener = exchange_listen(b->options[0].port, NULL);
	struct exchange x;

	assert_true(listener >= 0);
	b->server = fork();
	while (!b->server && exchange_accept(listener, 0, STEP_MS, &x) == 0) {
		send(x.fd, words, strlen(words), MSG_NOSIGNAL);
		if (words[0])
			usleep(300000);
		exchange_end(&x);
	}
	close(listener);
}

static void a_server_that_is_another_program_is_said(void **state)
{
	struct both *b = *state;

	serve_words(b, "SSH-2.0-OpenSSH_9.2\r\n");
	assert_int_equal(ask(b), -EBADMSG);
	assert_non_null(strstr(found(b, "peer-foreign")->what, "is malformed: it is not JSON"));
}

static void a_server_of_another_version_is_said(void **state)
{
	struct both *b = *state;

	serve_words(b, "{\"type\":\"hello\",\"version\":9,\"token\":null}\n");
	assert_int_equal(ask(b), -EPROTO);
	assert_non_null(strstr(found(b, "peer-version")->what, "version 9 of the exchange, not 1"));
}

static void a_refusal_that_has_no_word_here_is_one_all_the_same(void **state)
{
	struct both *b = *state;

	serve_words(b, "{\"type\":\"refused\",\"findings\":[]}\n");
	assert_int_equal(ask(b), -EACCES);
	assert_non_null(strstr(found(b, "peer-trouble")->what, "it does not say why"));
	assert_int_equal(report_exit(&b->report), PROBE_EXIT_NOT_MEASURED);
}

static void another_token_is_said_to_the_client(void **state)
{
	struct both *b = *state;

	b->options[0].token = "other-secret";
	start_server(b);
	assert_int_equal(ask(b), -EACCES);
	assert_string_equal(found(b, "peer-token")->what,
			    "it refuses this client: its token is another one");
	b->options[0].token = TOKEN;
	assert_int_equal(ask(b), 0);
}

static void a_peer_that_dies_is_said(void **state)
{
	struct both *b = *state;

	fabric->die = true;
	start_server(b);
	assert_int_equal(ask(b), -EPIPE);
	assert_int_equal(ended(b), 77);
	assert_string_equal(found(b, "peer-died")->on, "pod-there");
	assert_int_equal(report_exit(&b->report), PROBE_EXIT_NOT_MEASURED);
}

static void where_nobody_serves_it_is_said_after_the_wait(void **state)
{
	struct both *b = *state;

	b->options[0].wait_s = 1;
	assert_int_equal(ask(b), -EAGAIN);
	assert_non_null(strstr(found(b, "peer-refused")->what, "Connection refused, for 1 s"));
}

static void nothing_starts_without_a_token(void **state)
{
	struct both *b = *state;

	b->options[0].token = "";
	b->options[1].token = "short";
	assert_int_equal(ask(b), -EINVAL);
	assert_int_equal(found(b, "token")->outcome, OUTCOME_NOT_MEASURED);
	start_server(b);
	assert_int_equal(ended(b), PROBE_EXIT_NOT_MEASURED);
	assert_non_null(strstr(said(b), "found token: the token is of 5 characters"));
}

static void a_server_without_a_client_ends_after_its_wait(void **state)
{
	struct both *b = *state;

	b->options[1].wait_s = 1;
	start_server(b);
	assert_int_equal(ended(b), PROBE_EXIT_NOT_MEASURED);
	assert_non_null(
		strstr(said(b), "found no-client: no peer with the token came to TCP port"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_both, close_both)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(rails_are_paired_by_their_number),
		TEST(the_narrower_side_is_expected),
		TEST(without_rails_the_order_counts_and_is_said),
		TEST(a_rail_that_the_peer_has_not_is_not_measured),
		TEST(two_containers_of_a_machine_are_told_apart_from_two_nodes),
		TEST(other_rails_are_measured_on_request),
		TEST(bytes_that_changed_are_broken),
		TEST(bytes_that_cannot_be_compared_are_not_broken),
		TEST(what_fails_at_the_peer_is_reported_here),
		TEST(what_fails_here_does_not_end_the_plan),
		TEST(a_fault_that_is_known_is_one_the_next_time_too),
		TEST(rails_that_are_networks_of_their_own_are_a_note),
		TEST(planes_that_are_networks_of_their_own_are_a_note),
		TEST(what_has_no_time_is_not_measured),
		TEST(a_device_that_does_not_open_is_a_finding_of_its_side),
		TEST(bytes_go_from_gpu_to_gpu_by_the_way_that_works),
		TEST(a_device_that_takes_no_gpu_memory_is_broken),
		TEST(without_a_gpu_library_it_is_said),
		TEST(what_is_isolated_fails_as_it_has_to),
		TEST(a_transfer_that_has_to_fail_and_works_is_broken),
		TEST(bytes_without_an_acknowledgement_are_neither),
		TEST(isolation_that_cannot_be_tried_is_no_pass),
		TEST(strangers_take_nothing_down),
		TEST(half_a_line_and_silence_ends_after_its_time),
		TEST(a_second_client_is_told_that_somebody_is_served),
		TEST(a_server_goes_on_after_a_client),
		TEST(only_devices_of_the_container_are_used),
		TEST(a_server_that_is_another_program_is_said),
		TEST(a_server_of_another_version_is_said),
		TEST(a_refusal_that_has_no_word_here_is_one_all_the_same),
		TEST(another_token_is_said_to_the_client),
		TEST(a_peer_that_dies_is_said),
		TEST(where_nobody_serves_it_is_said_after_the_wait),
		TEST(nothing_starts_without_a_token),
		TEST(a_server_without_a_client_ends_after_its_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
