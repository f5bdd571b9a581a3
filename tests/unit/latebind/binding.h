/*
 * Late binding with holds, a tracker and a PodResources server of the test's own. All of it lives
 * on the rpc thread, the test looks from outside.
 */
#ifndef RAILMATE_TESTS_UNIT_LATEBIND_BINDING_H
#define RAILMATE_TESTS_UNIT_LATEBIND_BINDING_H

#include "support/machine.h"
#include "support/onrpc.h"
#include "support/vfsight.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/event.h"
#include "base/str.h"
#include "grant/records.h"
#include "grant/rundir.h"
#include "grant/vfprobe.h"
#include "holds/holds.h"
#include "kubeclient/podres.h"
#include "kubemsg/podspec.h"
#include "kubepeer/kubepeer.h"
#include "latebind/latebind-internal.h"
#include "tracker/tracker-internal.h"

/* Two NUMA nodes, each with two switches; below each switch two GPUs and a PF with four VFs. */
#define MACHINE "numa:2 switch:2 gpu:2 pf:1 vf:4"
#define ONE_POOL                                                                                       \
	"{\"resourceList\": [{\"resourcePrefix\": \"rdma\", \"resourceName\": \"vf\", \"selectors\": " \
	"{\"isRdma\": true}, \"railmate\": {\"binding\": \"late\"}}]}"
#define POOL_OF(name, range) POOL_BOUND(name, range, "late")
#define POOL_BOUND(name, range, binding)                                                           \
	"{\"resourcePrefix\": \"rdma\", \"resourceName\": \"" name                                 \
	"\", \"selectors\": {\"isRdma\": true, "                                                   \
	"\"pfNames\": [\"eth0#" range "\", \"eth5#" range "\", \"eth10#" range                     \
	"\", \"eth15#" range "\"]}, "                                                              \
	"\"railmate\": {\"binding\": \"" binding "\"}}"
#define TWO_POOLS "{\"resourceList\": [" POOL_OF("a", "0-1") ", " POOL_OF("b", "2-3") "]}"
#define MIXED_POOLS                                                                                \
	"{\"resourceList\": [" POOL_OF("a", "0-1") ", " POOL_BOUND("e", "2-3", "early") "]}"

#define GPU	   "nvidia.com/gpu"
#define TIMEOUT_MS 2000
#define NOTHING	   ((struct bytes) { NULL, 0 })

static struct machine m;
static struct config *cfg;
static struct arena *a;
static struct tracker *k;
static struct latebind *b;
static struct records *records;
static unsigned restore_ms; /* between looks at the specs; 0: seldom */
static struct podres *podres;
static struct rpc_server *server;
static char *socket_path, *cdi_dir, *checkpoint;
static struct vfprobe *vfprobe;
static struct rundir *rundir;
static unsigned notes, changes, lists, gets;
static char last_note[EVENT_SIZE];
static const char *open_device; /* somebody uses it */
static const char *running;	/* UID of the pod whose containers run */

/* What PodResources tells. */
static struct pod pods[16];
static struct pod_list all_pods;
static bool silent, hangs;
static struct rpc_call *hung;

/* --- the kubelet --- */

static inline void on_list(void *ctx, struct rpc_call *call, struct bytes request)
{
	(void)ctx;
	(void)request;
	lists++;
	if (hangs)
		hung = call;
	else if (silent)
		rpc_reply(call, RPC_INTERNAL, "out of order", NOTHING);
	else
		rpc_reply(call, RPC_OK, NULL,
			  peer_encode_pod_list(&all_pods, true, rpc_call_arena(call)));
}

static inline void on_get(void *ctx, struct rpc_call *call, struct bytes request)
{
	const char *ns, *name;

	(void)ctx;
	gets++;
	assert_int_equal(
		peer_decode_pod_get_request(request, rpc_call_arena(call), &ns, &name, NULL), 0);
	for (size_t i = 0; i < all_pods.n; i++) {
		if (!str_eq(pods[i].name, name))
			continue;
		rpc_reply(call, RPC_OK, NULL,
			  peer_encode_pod_get_reply(&pods[i], true, rpc_call_arena(call)));
		return;
	}
	rpc_reply(call, RPC_UNKNOWN, "pod x in namespace y not found", NOTHING);
}

/* "resource=id,id resource=id" */
static inline struct pod_container container(const char *name, const char *holds)
{
	struct pod_container c = { .name = name, .held = arena_array(a, 4, sizeof(*c.held)) };
	char *text = arena_strdup(a, holds), *words, *ids;

	for (char *w = strtok_r(text, " ", &words); w; w = strtok_r(NULL, " ", &words)) {
		struct held *h = &c.held[c.n_held++];
		char *equals = strchr(w, '=');

		*equals = '\0';
		h->resource = w;
		h->ids.v = arena_array(a, 16, sizeof(*h->ids.v));
		for (char *id = strtok_r(equals + 1, ",", &ids); id; id = strtok_r(NULL, ",", &ids))
			h->ids.v[h->ids.n++] = id;
	}
	return c;
}

static inline void pod_with(const char *name, const char *holds, const char *side_holds)
{
	struct pod *p = &pods[all_pods.n++];

	*p = (struct pod) { "default", name, arena_array(a, 2, sizeof(*p->containers)), 0 };
	p->containers[p->n_containers++] = container("main", holds);
	if (side_holds)
		p->containers[p->n_containers++] = container("side", side_holds);
	all_pods.v = pods;
}

static inline void pod(const char *name, const char *holds)
{
	pod_with(name, holds, NULL);
}

static inline void remove_pod(const char *name)
{
	size_t kept = 0;

	for (size_t i = 0; i < all_pods.n; i++) {
		if (strcmp(pods[i].name, name) != 0)
			pods[kept++] = pods[i];
	}
	all_pods.n = kept;
}

/* GPUs by number, as a list of UUIDs. */
static inline const char *gpus(int first, int last)
{
	struct strbuf s = STRBUF_INIT;
	const char *text;

	for (int i = first; i <= last; i++)
		strbuf_printf(&s, "%s%s", i > first ? "," : "", m.node->inv->gpu[i].uuid);
	text = arena_strdup(a, strbuf_str(&s));
	strbuf_done(&s);
	return text;
}

static inline const char *slots(int numa, int first, int last)
{
	struct strbuf s = STRBUF_INIT;
	const char *text;

	for (int i = first; i <= last; i++)
		strbuf_printf(&s, "%srdma_vf-n%d-%d", i > first ? "," : "", numa, i);
	text = arena_strdup(a, strbuf_str(&s));
	strbuf_done(&s);
	return text;
}

#define HOLDS(fmt, ...) arena_printf(a, fmt, __VA_ARGS__)

/* --- late binding --- */

static inline void on_note(void *ctx, const char *event)
{
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;

	(void)ctx;
	event_text(&text, event);
	notes++;
	snprintf(last_note, sizeof(last_note), "%s", text.s);
}

static inline void on_change(void *ctx)
{
	(void)ctx;
	changes++;
}

static inline int users(void *ctx, const char *rdma, unsigned *ret_users)
{
	(void)ctx;
	*ret_users = open_device && str_eq(rdma, open_device);
	return 0;
}

static inline int runs(void *ctx, const char *uid)
{
	(void)ctx;
	return str_eq(uid, running);
}

/* From now on the cgroups of pods are seen. */
static inline void show_cgroups(void *arg)
{
	(void)arg;
	tracker_follow(k, NULL, runs, NULL);
}

static inline bool claim_specs(void *latebind)
{
	return latebind_claim(latebind);
}

static inline void tidy_specs(void *latebind)
{
	latebind_tidy(latebind);
}

static inline void make_latebind(void)
{
	const struct latebind_env env = { .rpc = rpc,
					  .root = m.root,
					  .podres = podres,
					  .tracker = k,
					  .cdi_dir = cdi_dir,
					  .checkpoint = checkpoint,
					  .rundir = rundir,
					  .vfprobe = vfprobe,
					  .settle_ms = 1,
					  .restore_ms = restore_ms,
					  .note = on_note };

	b = latebind_new(&env);
	latebind_update(b, m.node);
	records = records_new(
		&(struct records_env) { rpc, k, rundir, claim_specs, tidy_specs, b, 5 });
	records_read(records);
}

static inline void end_latebind(void)
{
	records_free(STEAL(records));
	latebind_free(STEAL(b));
}

/* The test itself lists pods, when it wants to; nothing is young. ledger is taken; NULL: it was
 * lost. */
static inline void make_tracker(struct ledger *ledger)
{
	static const struct holds_pace pace = { .mature_ms = 600000, .store_ms = 3000 };

	k = tracker_new(rpc, holds_new(ledger, &pace, tracker_now()), NULL, m.root, users, NULL);
	k->pace.look_ms = k->pace.apart_ms = 600000;
	tracker_listen(k, NULL, on_change, NULL);
	tracker_follow(k, checkpoint, NULL, NULL);
	tracker_update(k, m.node);
	tracker_watch(k, podres);
}

static inline void open_server(void)
{
	static const struct rpc_method methods[] = { { .path = PATH_POD_GET, .unary = on_get },
						     { .path = PATH_POD_LIST, .unary = on_list } };

	assert_int_equal(rpc_server_open(rpc, socket_path, methods, 2, NULL, &server, NULL), 0);
}

static inline void begin(void *arg)
{
	(void)arg;
	open_server();
	podres = podres_open(rpc, socket_path);
	make_tracker(ledger_new());
	make_latebind();
}

static inline void end(void *arg)
{
	(void)arg;
	end_latebind();
	tracker_free(STEAL(k));
	podres_close(STEAL(podres));
	vfprobe_free(STEAL(vfprobe));
	rundir_free(STEAL(rundir));
	rpc_server_close(STEAL(server), NULL, NULL);
}

static inline int set_up_with(const char *text)
{
	a = arena_new(0);
	assert_int_equal(config_parse(text, strlen(text), "config", NULL, &cfg, NULL, NULL), 0);
	m = machine_open(MACHINE, cfg);
	socket_path = arena_printf(a, "%s/pods.sock", m.dir);
	checkpoint = arena_printf(a, "%s/checkpoint", m.dir);
	cdi_dir = arena_printf(a, "%s/cdi", m.dir);
	notes = changes = lists = gets = 0;
	last_note[0] = '\0';
	open_device = running = NULL;
	restore_ms = 0;
	silent = hangs = false;
	all_pods = (struct pod_list) { pods, 0 };
	on_rpc(begin, NULL);
	return 0;
}

static inline int set_up(void **state)
{
	(void)state;
	return set_up_with(ONE_POOL);
}

static inline int set_up_mixed_pools(void **state)
{
	(void)state;
	return set_up_with(MIXED_POOLS);
}

static inline int set_up_two_pools(void **state)
{
	(void)state;
	return set_up_with(TWO_POOLS);
}

static inline int tear_down(void **state)
{
	(void)state;
	on_rpc(end, NULL);
	machine_close(&m);
	config_free(cfg);
	arena_free(a);
	return 0;
}

/* --- binding --- */

static struct outcome {
	bool done;
	unsigned times;
	int code;
	char why[480];
	size_t n;
	const char *slot[16], *vf[16], *resource[16];
} got, other;

static inline void on_bound(void *arg, const struct err *err, const struct bound *v, size_t n)
{
	struct outcome *o = arg;

	o->done = true;
	o->times++;
	o->code = err ? err->code : 0;
	snprintf(o->why, sizeof(o->why), "%s", err ? err->msg : "");
	o->n = n;
	for (size_t i = 0; i < n; i++) {
		o->slot[i] = arena_strdup(a, v[i].slot);
		o->vf[i] = arena_strdup(a, v[i].vf);
		o->resource[i] = arena_strdup(a, v[i].resource);
	}
}

struct wish {
	struct ids ids;
	const struct pod_ref *pod;
	struct outcome *outcome;
};

static inline void bind_fn(void *arg)
{
	struct wish *w = arg;

	latebind_bind(b, &w->ids, w->pod, TIMEOUT_MS, on_bound, w->outcome);
}

static inline bool is_done(void)
{
	return got.done;
}

static inline bool other_is_done(void)
{
	return other.done;
}

static inline struct ids ids_of(const char *list)
{
	struct ids ids = { arena_array(a, 16, sizeof(*ids.v)), 0 };
	char *text = arena_strdup(a, list), *save;

	for (char *id = strtok_r(text, ",", &save); id; id = strtok_r(NULL, ",", &save))
		ids.v[ids.n++] = id;
	return ids;
}

static inline void bind_pod(const char *list, const struct pod_ref *who)
{
	struct wish w = { ids_of(list), who, &got };

	got = (struct outcome) { 0 };
	on_rpc(bind_fn, &w);
	wait_until(is_done);
	assert_int_equal(got.times, 1);
}

static inline void bind(const char *list)
{
	bind_pod(list, NULL);
	if (got.code)
		fail_msg("not bound: %s", got.why);
}

static inline void bind_fails(const char *list, int code, const char *why)
{
	bind_pod(list, NULL);
	assert_int_equal(got.code, code);
	if (!strstr(got.why, why))
		fail_msg("'%s' does not say '%s'", got.why, why);
}

static inline const struct pool_dev *dev_of(const char *vf)
{
	const struct pool_dev *dev = NULL;

	for (size_t i = 0; !dev && i < m.node->n_pools; i++)
		dev = pool_find(&m.node->pools[i], vf);
	assert_non_null(dev);
	return dev;
}

/* Which of the four PFs a VF belongs to. */
static inline int pf_of(const char *vf)
{
	int pf = m.node->inv->pci[dev_of(vf)->pci].physfn;

	for (int i = 0; i < 4; i++) {
		if (synth_pf(m.node->inv, (size_t)i) == pf)
			return i;
	}
	return -1;
}

static inline int count_of_pf(int pf)
{
	int n = 0;

	for (size_t i = 0; i < got.n; i++)
		n += pf_of(got.vf[i]) == pf;
	return n;
}

/* Where the spec of a container is whose lowest slot this is. */
static inline const char *spec_path_of(const char *slot)
{
	return arena_printf(a, "%s/railmate.io-vf_%s.json", cdi_dir, slot);
}

static inline const char *read_text(const char *path)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	char *text = arena_alloc(a, 32768);
	ssize_t n = fd >= 0 ? read(fd, text, 32767) : -1;

	return n >= 0 ? text : NULL;
}

/* The spec that has this slot; NULL: none. */
static inline const char *spec(const char *slot)
{
	const char *name = arena_printf(a, "\"name\": \"%s\"", slot), *found = NULL, *text;
	DIR *dir = opendir(cdi_dir);

	for (struct dirent *e = dir ? readdir(dir) : NULL; e; e = readdir(dir)) {
		text = strstr(e->d_name, "railmate.io-vf_")
			       ? read_text(arena_printf(a, "%s/%s", cdi_dir, e->d_name))
			       : NULL;
		if (text && strstr(text, name)) {
			assert_null(found); /* a device in two specs is none */
			found = text;
		}
	}
	if (dir)
		closedir(dir);
	return found;
}

static inline void put(const char *path, const char *text)
{
	FILE *f;

	mkdir(cdi_dir, 0755);
	f = fopen(path, "we");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static inline void allocated_fn(void *arg)
{
	latebind_allocated(b, arg);
}

static inline void allocated(const char *list)
{
	struct ids ids = ids_of(list);

	on_rpc(allocated_fn, &ids);
}

/* Somebody lists pods: what was bound before is told of by that. */
static inline void list_fn(void *arg)
{
	(void)arg;
	tracker_hear(k, &(struct pods_said) { .all = true,
					      .pods = &all_pods,
					      .asked_ms = clock_mono_ms(),
					      .kubelet = podres_kubelet(podres) });
}

static inline void list_pods(void)
{
	usleep(2000);
	on_rpc(list_fn, NULL);
	usleep(2000);
}

static inline void sweep_fn(void *arg)
{
	(void)arg;
	records_sweep(records);
}

static inline const struct ledger_hold *hold_of(const char *vf)
{
	return ledger_find(tracker_ledger(k), vf);
}

static inline bool is_draining(const char *vf)
{
	return hold_of(vf) && hold_of(vf)->draining;
}

static inline size_t n_holds(void)
{
	return ledger_holds(tracker_ledger(k));
}

static inline void move_to(struct hw_inventory *inv)
{
	struct node *before = m.node;

	m.node = node_new(inv, cfg, before);
	m.pool = &m.node->pools[0];
	tracker_update(k, m.node);
	latebind_update(b, m.node);
	node_unref(before);
}

static inline void unbind_driver(void *arg)
{
	struct hw_inventory *inv = synth_inventory(MACHINE);
	struct bdf bdf;

	assert_int_equal(bdf_parse(arg, &bdf), 0);
	inv->pci[hw_find_pci(inv, bdf)].driver = NULL;
	move_to(inv);
}

static inline void free_latebind(void *arg)
{
	(void)arg;
	end_latebind();
}

#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

#endif
