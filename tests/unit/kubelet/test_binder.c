/* The binder against a PodResources server of the test's own; it lives on the rpc thread, the test looks from
 * outside. */
#include "unit/kubelet/machine.h"
#include "unit/kubelet/onrpc.h"
#include "unit/kubelet/sight.h"

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"
#include "kubelet/binder-internal.h"
#include "kubelet/keeper-internal.h"
#include "kubelet/podres.h"
#include "kubelet/podspec.h"
#include "kubelet/rundir.h"
#include "kubelet/truth.h"

/* Two NUMA nodes, each with two switches; below each switch two GPUs and a PF with four VFs. */
#define MACHINE "numa:2 switch:2 gpu:2 pf:1 vf:4"
#define ONE_POOL                                                                                             \
	"{\"resourceList\": [{\"resourcePrefix\": \"rdma\", \"resourceName\": \"vf\", \"selectors\": "       \
	"{\"isRdma\": true}, \"railmate\": {\"binding\": \"late\"}}]}"
#define POOL_OF(name, range) POOL_BOUND(name, range, "late")
#define POOL_BOUND(name, range, binding)                                                                     \
	"{\"resourcePrefix\": \"rdma\", \"resourceName\": \"" name "\", \"selectors\": {\"isRdma\": true, "  \
	"\"pfNames\": [\"eth0#" range "\", \"eth5#" range "\", \"eth10#" range "\", \"eth15#" range "\"]}, " \
	"\"railmate\": {\"binding\": \"" binding "\"}}"
#define TWO_POOLS   "{\"resourceList\": [" POOL_OF("a", "0-1") ", " POOL_OF("b", "2-3") "]}"
#define MIXED_POOLS "{\"resourceList\": [" POOL_OF("a", "0-1") ", " POOL_BOUND("e", "2-3", "early") "]}"

#define GPU	   "nvidia.com/gpu"
#define TIMEOUT_MS 2000
#define NOTHING	   ((struct bytes) { NULL, 0 })

static struct machine m;
static struct config *cfg;
static struct arena *a;
static struct keeper *k;
static struct binder *b;
static struct podres *podres;
static struct rpc_server *server;
static char *socket_path, *cdi_dir, *checkpoint;
static struct truth *truth;
static struct rundir *rundir;
static unsigned notes, changes, lists, gets;
static char last_note[640];
static const char *open_device; /* somebody uses it */

/* What PodResources tells. */
static struct pod pods[16];
static struct pod_list all_pods;
static bool silent, hangs;
static struct rpc_call *hung;

/* --- the kubelet --- */

static void on_list(void *ctx, struct rpc_call *call, struct bytes request)
{
	(void)ctx;
	(void)request;
	lists++;
	if (hangs)
		hung = call;
	else if (silent)
		rpc_reply(call, RPC_INTERNAL, "out of order", NOTHING);
	else
		rpc_reply(call, RPC_OK, NULL, msg_encode_pod_list(&all_pods, true, rpc_call_arena(call)));
}

static void on_get(void *ctx, struct rpc_call *call, struct bytes request)
{
	const char *ns, *name;

	(void)ctx;
	gets++;
	assert_int_equal(msg_decode_pod_get_request(request, rpc_call_arena(call), &ns, &name, NULL), 0);
	for (size_t i = 0; i < all_pods.n; i++) {
		if (!str_eq(pods[i].name, name))
			continue;
		rpc_reply(call, RPC_OK, NULL, msg_encode_pod_get_reply(&pods[i], true, rpc_call_arena(call)));
		return;
	}
	rpc_reply(call, RPC_UNKNOWN, "pod x in namespace y not found", NOTHING);
}

/* "resource=id,id resource=id" */
static struct pod_container container(const char *name, const char *holds)
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

static void pod_with(const char *name, const char *holds, const char *side_holds)
{
	struct pod *p = &pods[all_pods.n++];

	*p = (struct pod) { "default", name, arena_array(a, 2, sizeof(*p->containers)), 0 };
	p->containers[p->n_containers++] = container("main", holds);
	if (side_holds)
		p->containers[p->n_containers++] = container("side", side_holds);
	all_pods.v = pods;
}

static void pod(const char *name, const char *holds)
{
	pod_with(name, holds, NULL);
}

static void remove_pod(const char *name)
{
	size_t kept = 0;

	for (size_t i = 0; i < all_pods.n; i++) {
		if (strcmp(pods[i].name, name) != 0)
			pods[kept++] = pods[i];
	}
	all_pods.n = kept;
}

/* GPUs by number, as a list of UUIDs. */
static const char *gpus(int first, int last)
{
	struct strbuf s = STRBUF_INIT;
	const char *text;

	for (int i = first; i <= last; i++)
		strbuf_printf(&s, "%s%s", i > first ? "," : "", m.node->inv->gpu[i].uuid);
	text = arena_strdup(a, strbuf_str(&s));
	strbuf_done(&s);
	return text;
}

static const char *slots(int numa, int first, int last)
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

/* --- the binder --- */

static void on_note(void *ctx, const char *sentence)
{
	(void)ctx;
	notes++;
	snprintf(last_note, sizeof(last_note), "%s", sentence);
}

static void on_change(void *ctx)
{
	(void)ctx;
	changes++;
}

static int users(void *ctx, const char *rdma, unsigned *ret_users)
{
	(void)ctx;
	*ret_users = open_device && str_eq(rdma, open_device);
	return 0;
}

static void make_binder(void)
{
	const struct binder_env env = { .rpc = rpc,
					.root = m.root,
					.podres = podres,
					.keeper = k,
					.cdi_dir = cdi_dir,
					.checkpoint = checkpoint,
					.rundir = rundir,
					.truth = truth,
					.settle_ms = 1,
					.note = on_note,
					.changed = on_change };

	b = binder_new(&env);
	binder_update(b, m.node);
}

static void begin(void *arg)
{
	static const struct rpc_method methods[] = { { .path = PATH_POD_GET, .unary = on_get },
						     { .path = PATH_POD_LIST, .unary = on_list } };

	(void)arg;
	assert_int_equal(rpc_server_open(rpc, socket_path, methods, 2, NULL, &server, NULL), 0);
	podres = podres_open(rpc, socket_path);
	k = keeper_new(rpc, ledger_new(), NULL, users, NULL);
	k->pace.young_ms = 0;
	keeper_update(k, m.node);
	make_binder();
}

static void end(void *arg)
{
	(void)arg;
	binder_free(STEAL(b));
	keeper_free(STEAL(k));
	podres_close(STEAL(podres));
	truth_free(STEAL(truth));
	rundir_free(STEAL(rundir));
	rpc_server_close(STEAL(server), NULL, NULL);
}

static int set_up_with(const char *text)
{
	a = arena_new(0);
	assert_int_equal(config_parse(text, strlen(text), "config", NULL, &cfg, NULL), 0);
	m = machine_open(MACHINE, cfg);
	socket_path = arena_printf(a, "%s/pods.sock", m.dir);
	checkpoint = arena_printf(a, "%s/checkpoint", m.dir);
	cdi_dir = arena_printf(a, "%s/cdi", m.dir);
	notes = changes = lists = gets = 0;
	last_note[0] = '\0';
	open_device = NULL;
	silent = hangs = false;
	all_pods = (struct pod_list) { pods, 0 };
	on_rpc(begin, NULL);
	return 0;
}

static int set_up(void **state)
{
	(void)state;
	return set_up_with(ONE_POOL);
}

static int set_up_mixed_pools(void **state)
{
	(void)state;
	return set_up_with(MIXED_POOLS);
}

static int set_up_two_pools(void **state)
{
	(void)state;
	return set_up_with(TWO_POOLS);
}

static int tear_down(void **state)
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

static void on_bound(void *arg, const struct err *err, const struct bound *v, size_t n)
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
	const struct binder_pod *pod;
	struct outcome *outcome;
};

static void bind_fn(void *arg)
{
	struct wish *w = arg;

	binder_bind(b, &w->ids, w->pod, TIMEOUT_MS, on_bound, w->outcome);
}

static bool is_done(void)
{
	return got.done;
}

static bool other_is_done(void)
{
	return other.done;
}

static struct ids ids_of(const char *list)
{
	struct ids ids = { arena_array(a, 16, sizeof(*ids.v)), 0 };
	char *text = arena_strdup(a, list), *save;

	for (char *id = strtok_r(text, ",", &save); id; id = strtok_r(NULL, ",", &save))
		ids.v[ids.n++] = id;
	return ids;
}

static void bind_pod(const char *list, const struct binder_pod *who)
{
	struct wish w = { ids_of(list), who, &got };

	got = (struct outcome) { 0 };
	on_rpc(bind_fn, &w);
	wait_until(is_done);
	assert_int_equal(got.times, 1);
}

static void bind(const char *list)
{
	bind_pod(list, NULL);
	if (got.code)
		fail_msg("not bound: %s", got.why);
}

static void bind_fails(const char *list, int code, const char *why)
{
	bind_pod(list, NULL);
	assert_int_equal(got.code, code);
	if (!strstr(got.why, why))
		fail_msg("'%s' does not say '%s'", got.why, why);
}

static const struct pool_dev *dev_of(const char *vf)
{
	const struct pool_dev *dev = NULL;

	for (size_t i = 0; !dev && i < m.node->n_pools; i++)
		dev = pool_find(&m.node->pools[i], vf);
	assert_non_null(dev);
	return dev;
}

/* Which of the four PFs a VF belongs to. */
static int pf_of(const char *vf)
{
	int pf = m.node->inv->pci[dev_of(vf)->pci].physfn;

	for (int i = 0; i < 4; i++) {
		if (synth_pf(m.node->inv, (size_t)i) == pf)
			return i;
	}
	return -1;
}

static int count_of_pf(int pf)
{
	int n = 0;

	for (size_t i = 0; i < got.n; i++)
		n += pf_of(got.vf[i]) == pf;
	return n;
}

static const char *spec_path_of(const char *slot)
{
	return arena_printf(a, "%s/railmate.io-vf_%s.json", cdi_dir, slot);
}

static const char *spec(const char *slot)
{
	static char text[16384];
	FILE *f = fopen(spec_path_of(slot), "re");
	size_t n;

	if (!f)
		return NULL;
	n = fread(text, 1, sizeof(text) - 1, f);
	text[n] = '\0';
	fclose(f);
	return text;
}

static void put(const char *path, const char *text)
{
	FILE *f;

	mkdir(cdi_dir, 0755);
	f = fopen(path, "we");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static void allocated_fn(void *arg)
{
	binder_allocated(b, arg);
}

static void allocated(const char *list)
{
	struct ids ids = ids_of(list);

	on_rpc(allocated_fn, &ids);
}

/* Somebody lists pods. */
static void reconcile_fn(void *arg)
{
	(void)arg;
	keeper_sync(k);
	keeper_reconcile(k, m.node, &all_pods, clock_mono_ms() + 10);
	binder_reconcile(b, &all_pods, clock_mono_ms() + 10);
}

/* --- which VFs --- */

static void the_vfs_are_those_beside_the_gpus(void **state)
{
	(void)state;
	pod("p", HOLDS(GPU "=%s rdma/vf=%s", gpus(2, 3), slots(0, 0, 1)));
	bind(slots(0, 0, 1));
	assert_int_equal(got.n, 2);
	assert_string_equal(got.slot[0], "rdma_vf-n0-0");
	assert_string_equal(got.resource[0], "rdma/vf");
	assert_int_equal(count_of_pf(1), 2);
}

static void a_container_is_bound_whole_whichever_slot_asks(void **state)
{
	(void)state;
	pod("p", HOLDS(GPU "=%s rdma/vf=%s", gpus(0, 3), slots(0, 0, 3)));
	bind(slots(0, 2, 2));
	assert_int_equal(got.n, 4);
	assert_int_equal(count_of_pf(0), 2);
	assert_int_equal(count_of_pf(1), 2);
}

static void slots_of_the_wrong_node_give_way_to_the_gpus(void **state)
{
	(void)state;
	pod("p", HOLDS(GPU "=%s rdma/vf=%s", gpus(6, 7), slots(0, 0, 1)));
	bind(slots(0, 0, 1));
	assert_int_equal(count_of_pf(3), 2);
}

static void without_gpus_the_node_of_the_slots_counts(void **state)
{
	(void)state;
	pod("p", HOLDS("rdma/vf=%s", slots(1, 0, 3)));
	bind(slots(1, 0, 3));
	assert_int_equal(count_of_pf(2) + count_of_pf(3), 4);
}

static void a_node_that_has_too_few_left_borrows_from_the_other(void **state)
{
	(void)state;
	pod("p", HOLDS("rdma/vf=%s", slots(1, 0, 7)));
	bind(slots(1, 0, 7));
	pod("q", HOLDS("rdma/vf=%s", slots(1, 8, 8)));
	bind(slots(1, 8, 8));
	assert_int_equal(count_of_pf(0) + count_of_pf(1), 1);
}

static void a_sidecar_without_gpus_serves_those_of_its_pod(void **state)
{
	(void)state;
	pod_with("p", HOLDS(GPU "=%s", gpus(4, 5)), HOLDS("rdma/vf=%s", slots(0, 0, 0)));
	bind(slots(0, 0, 0));
	assert_int_equal(count_of_pf(2), 1);
}

static void replicas_and_indexes_name_gpus_too(void **state)
{
	(void)state;
	pod("p", HOLDS(GPU "=%s::3 rdma/vf=%s", gpus(6, 6), slots(1, 0, 0)));
	bind(slots(1, 0, 0));
	assert_int_equal(count_of_pf(3), 1);
	pod("q", HOLDS(GPU "=2 rdma/vf=%s", slots(0, 0, 0)));
	bind(slots(0, 0, 0));
	assert_int_equal(count_of_pf(1), 1);
}

static const struct ledger_decision *last_decision(void)
{
	const struct ledger *l = keeper_ledger(k);

	return ledger_decision_at(l, ledger_decisions(l) - 1);
}

static void parts_of_gpus_are_not_taken_for_none(void **state)
{
	(void)state;
	pod("p", HOLDS("nvidia.com/mig-1g.5gb=MIG-7 rdma/vf=%s", slots(1, 0, 0)));
	bind(slots(1, 0, 0));
	assert_int_equal(last_decision()->known, LEDGER_GPUS_UNKNOWN);
	assert_string_equal(last_decision()->source,
			    "MIG-7 of nvidia.com/mig-1g.5gb is no GPU that this node tells apart");
	pod("q", HOLDS("nvidia.com/hostdev=x rdma/vf=%s", slots(1, 1, 1)));
	bind(slots(1, 1, 1));
	assert_int_equal(last_decision()->known, LEDGER_GPUS_KNOWN);
	assert_string_equal(last_decision()->source, "the container has no GPUs");
	pod("r", HOLDS(GPU "=%s,GPU-unheard-of rdma/vf=%s", gpus(6, 6), slots(1, 2, 2)));
	bind(slots(1, 2, 2));
	assert_int_equal(count_of_pf(3), 1);
	assert_int_equal(last_decision()->known, LEDGER_GPUS_KNOWN);
	assert_non_null(strstr(last_decision()->source, "GPU-unheard-of"));
}

static void gpus_of_dra_drivers_count(void **state)
{
	struct dynamic gpu = { "gpu.nvidia.com", "node", NULL, { NULL, 0 } };

	(void)state;
	pod("p", HOLDS("rdma/vf=%s", slots(0, 0, 0)));
	gpu.device = arena_printf(a, "gpu-%s", m.node->inv->gpu[7].uuid + strlen("GPU-"));
	pods[0].containers[0].dynamic = &gpu;
	pods[0].containers[0].n_dynamic = 1;
	bind(slots(0, 0, 0));
	assert_int_equal(count_of_pf(3), 1);
}

static void containers_get_different_vfs(void **state)
{
	(void)state;
	pod("p", HOLDS(GPU "=%s rdma/vf=%s", gpus(0, 0), slots(0, 0, 3)));
	pod("q", HOLDS(GPU "=%s rdma/vf=%s", gpus(1, 1), slots(0, 4, 5)));
	bind(slots(0, 0, 3));
	assert_int_equal(count_of_pf(0), 4);
	bind(slots(0, 4, 5));
	assert_int_equal(count_of_pf(1), 2);
}

static void a_vf_in_use_is_passed_over(void **state)
{
	(void)state;
	pod("p", HOLDS(GPU "=%s rdma/vf=%s", gpus(0, 0), slots(0, 0, 0)));
	open_device = m.node->inv->rdma[m.pool->devs[0].rdma].name;
	bind(slots(0, 0, 0));
	assert_int_equal(count_of_pf(0), 1);
	assert_string_equal(got.vf[0], m.pool->devs[1].id);
}

static void several_pools_of_a_container_see_each_other(void **state)
{
	(void)state;
	pod("p", HOLDS(GPU "=%s rdma/a=rdma_a-n0-0 rdma/b=rdma_b-n0-0", gpus(0, 3)));
	bind("rdma_b-n0-0");
	assert_int_equal(got.n, 2);
	assert_string_equal(got.resource[0], "rdma/a");
	assert_string_equal(got.resource[1], "rdma/b");
	assert_int_equal(count_of_pf(0), 1);
	assert_int_equal(count_of_pf(1), 1);
	bind("rdma_a-n0-0");
	assert_int_equal(got.n, 2);
	assert_non_null(strstr(spec("rdma_a-n0-0"), "PCIDEVICE_RDMA_B="));
	assert_non_null(strstr(spec("rdma_b-n0-0"), "PCIDEVICE_RDMA_A="));
}

static void vfs_of_an_early_pool_are_told_to_nccl_too(void **state)
{
	const char *early = "0000:05:00.3"; /* index 2 */
	const struct hw_rdma *r = m.node->inv->rdma;

	(void)state;
	pod("p", HOLDS(GPU "=%s rdma/a=rdma_a-n0-0 rdma/e=%s", gpus(0, 0), early));
	bind("rdma_a-n0-0");
	assert_int_equal(got.n, 1);
	assert_non_null(strstr(spec("rdma_a-n0-0"),
			       HOLDS("\"NCCL_IB_HCA==%s:1,%s:1\"", r[dev_of(got.vf[0])->rdma].name,
				     r[dev_of(early)->rdma].name)));
	assert_null(strstr(spec("rdma_a-n0-0"), "PCIDEVICE_RDMA_E"));
}

/* --- the spec --- */

static void a_spec_gives_what_early_binding_gives(void **state)
{
	const struct pool_dev *first, *second;
	const struct hw_rdma *r;

	(void)state;
	pod("p", HOLDS(GPU "=%s rdma/vf=%s", gpus(0, 1), slots(0, 0, 1)));
	bind(slots(0, 0, 1));
	first = dev_of(got.vf[0]);
	second = dev_of(got.vf[1]);
	r = m.node->inv->rdma;
	for (int i = 0; i < 2; i++) {
		const char *text = spec(got.slot[i]);

		assert_non_null(strstr(text, "\"kind\": \"railmate.io/vf\""));
		assert_non_null(strstr(text, HOLDS("\"name\": \"%s\"", got.slot[i])));
		assert_non_null(strstr(text, HOLDS("\"NCCL_IB_HCA==%s:1,%s:1\"", r[first->rdma].name,
						   r[second->rdma].name)));
		assert_non_null(strstr(text, HOLDS("\"PCIDEVICE_RDMA_VF=%s,%s\"", got.vf[0], got.vf[1])));
		assert_non_null(strstr(text, "\"RAILMATE_RDMA_VF_MAP="));
		assert_non_null(strstr(text, HOLDS("\"RAILMATE_BINDING=%s=%s,%s=%s\"", got.slot[0], got.vf[0],
						   got.slot[1], got.vf[1])));
		assert_non_null(strstr(text, "\"RAILMATE_CONTAINER=default/p/main\""));
	}
	assert_non_null(strstr(spec(got.slot[0]), HOLDS("/dev/infiniband/%s\"", r[first->rdma].uverbs)));
	assert_null(strstr(spec(got.slot[0]), HOLDS("/dev/infiniband/%s\"", r[second->rdma].uverbs)));
}

static size_t count_files(void)
{
	DIR *dir = opendir(cdi_dir);
	size_t n = 0;

	assert_non_null(dir);
	for (struct dirent *e = readdir(dir); e; e = readdir(dir))
		n += strcmp(e->d_name, ".") && strcmp(e->d_name, "..");
	closedir(dir);
	return n;
}

static void nothing_but_specs_is_left_in_the_directory(void **state)
{
	struct stat st;

	(void)state;
	pod("p", HOLDS("rdma/vf=%s", slots(0, 0, 3)));
	bind(slots(0, 0, 3));
	assert_int_equal(count_files(), 4);
	assert_int_equal(stat(spec_path_of("rdma_vf-n0-0"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0644);
}

/* The verbs node got another number when the RDMA device moved into the pod's namespace, where it cannot be
 * seen from. */
static void the_node_is_that_of_now_also_in_another_namespace(void **state)
{
	const char *rdma;

	(void)state;
	pod("p", HOLDS(GPU "=%s rdma/vf=%s", gpus(0, 0), slots(0, 0, 0)));
	bind(slots(0, 0, 0));
	rdma = m.node->inv->rdma[dev_of(got.vf[0])->rdma].name;
	machine_remove(&m, DEV "/infiniband", got.vf[0]);
	machine_remove(&m, DEV "/infiniband_verbs", got.vf[0]);
	machine_file(&m, HOLDS("%s\n", rdma), "sys/class/infiniband_verbs/uverbs77/ibdev");
	bind(slots(0, 0, 0));
	assert_non_null(strstr(spec("rdma_vf-n0-0"), "/dev/infiniband/uverbs77\""));
	assert_non_null(strstr(spec("rdma_vf-n0-0"), HOLDS("NCCL_IB_HCA==%s:1", rdma)));
}

static void a_vf_that_lost_its_rdma_device_is_a_reason_to_wait(void **state)
{
	(void)state;
	pod("p", HOLDS(GPU "=%s rdma/vf=%s", gpus(0, 0), slots(0, 0, 0)));
	machine_remove(&m, DEV "/infiniband", m.pool->devs[0].id);
	machine_remove(&m, DEV "/infiniband_verbs", m.pool->devs[0].id);
	bind_fails(slots(0, 0, 0), EAGAIN, "has no RDMA device");
	assert_null(spec("rdma_vf-n0-0"));
	assert_int_equal(ledger_holds(keeper_ledger(k)), 0);
	assert_int_equal(ledger_decisions(keeper_ledger(k)), 0);
}

/* --- again --- */

static void a_restarted_container_keeps_its_vfs(void **state)
{
	const char *first;

	(void)state;
	pod("p", HOLDS(GPU "=%s rdma/vf=%s", gpus(0, 0), slots(0, 0, 0)));
	bind(slots(0, 0, 0));
	first = got.vf[0];
	open_device = m.node->inv->rdma[dev_of(first)->rdma].name; /* the old process is going still */
	unlink(spec_path_of("rdma_vf-n0-0"));			   /* a reboot */
	bind(slots(0, 0, 0));
	assert_string_equal(got.vf[0], first);
	assert_non_null(spec("rdma_vf-n0-0"));
	assert_int_equal(ledger_decisions(keeper_ledger(k)), 1);
}

static void a_restart_is_known_by_the_ledger_and_needs_no_list(void **state)
{
	unsigned before;

	(void)state;
	pod("p", HOLDS(GPU "=%s rdma/vf=%s", gpus(0, 1), slots(0, 0, 1)));
	bind(slots(0, 0, 1));
	before = lists;
	bind(slots(0, 0, 1));
	assert_int_equal(lists, before);
	assert_int_equal(gets, 2); /* with the question what this kubelet can */
	/* the slots are another pod's now, and nobody told us */
	remove_pod("p");
	pod("q", HOLDS(GPU "=%s rdma/vf=%s", gpus(6, 7), slots(0, 0, 1)));
	bind(slots(0, 0, 1));
	assert_int_equal(lists, before + 1);
	assert_int_equal(count_of_pf(3), 2);
}

static void unbind_driver(void *arg)
{
	struct hw_inventory *inv = synth_inventory(MACHINE);
	struct node *before = m.node;
	struct bdf bdf;

	assert_int_equal(bdf_parse(arg, &bdf), 0);
	inv->pci[hw_find_pci(inv, bdf)].driver = NULL;
	m.node = node_new(inv, cfg, before);
	m.pool = &m.node->pools[0];
	keeper_update(k, m.node);
	binder_update(b, m.node);
	node_unref(before);
}

static void a_dead_vf_is_replaced_when_the_container_restarts(void **state)
{
	const char *dead, *kept;

	(void)state;
	pod("p", HOLDS(GPU "=%s rdma/vf=%s", gpus(0, 1), slots(0, 0, 1)));
	bind(slots(0, 0, 1));
	dead = got.vf[0];
	kept = got.vf[1];
	on_rpc(unbind_driver, (void *)dead);
	bind(slots(0, 0, 1));
	assert_string_not_equal(got.vf[0], dead);
	assert_string_equal(got.vf[1], kept);
	assert_int_equal(count_of_pf(0), 2);
	assert_null(strstr(spec("rdma_vf-n0-1"), dead));
}

/* As a scan saw it while a CNI plugin moved it. */
static void see_half_moved(void *arg)
{
	struct hw_inventory *inv = synth_inventory(MACHINE);
	struct node *before = m.node;
	struct bdf bdf;
	int pci, at;

	assert_int_equal(bdf_parse(arg, &bdf), 0);
	pci = hw_find_pci(inv, bdf);
	at = hw_find_rdma(inv, pci);
	inv->pci[pci].netdev = "net1";
	inv->n_rdma--;
	memmove(&inv->rdma[at], &inv->rdma[at + 1], (inv->n_rdma - (size_t)at) * sizeof(*inv->rdma));
	m.node = node_new(inv, cfg, before);
	m.pool = &m.node->pools[0];
	keeper_update(k, m.node);
	binder_update(b, m.node);
	node_unref(before);
}

static void a_vf_that_was_seen_half_moved_is_not_dead(void **state)
{
	const char *vf;

	(void)state;
	pod("p", HOLDS(GPU "=%s rdma/vf=%s", gpus(0, 0), slots(0, 0, 0)));
	bind(slots(0, 0, 0));
	vf = got.vf[0];
	on_rpc(see_half_moved, (void *)vf);
	assert_false(dev_of(vf)->healthy);
	bind(slots(0, 0, 0)); /* what there is now: it has its RDMA device */
	assert_string_equal(got.vf[0], vf);
	machine_remove(&m, DEV "/infiniband", vf);
	machine_remove(&m, DEV "/infiniband_verbs", vf);
	machine_dir(&m, DEV "/net/net1", vf);
	bind(slots(0, 0, 0)); /* it has a netdev, and no RDMA device: it is */
	assert_string_not_equal(got.vf[0], vf);
}

static void two_askers_are_told_the_same(void **state)
{
	struct wish w = { ids_of(slots(0, 0, 1)), NULL, &got }, v = { ids_of(slots(0, 1, 1)), NULL, &other };

	(void)state;
	pod("p", HOLDS(GPU "=%s rdma/vf=%s", gpus(0, 1), slots(0, 0, 1)));
	got = other = (struct outcome) { 0 };
	on_rpc(bind_fn, &w);
	on_rpc(bind_fn, &v);
	wait_until(is_done);
	wait_until(other_is_done);
	assert_int_equal(got.code | other.code, 0);
	assert_int_equal(got.n, 2);
	assert_int_equal(other.n, 2);
	for (int i = 0; i < 2; i++)
		assert_string_equal(got.vf[i], other.vf[i]);
}

static void the_cni_plugin_and_the_kubelet_agree(void **state)
{
	const struct binder_pod who = { "default", "p", "1234" };
	const char *vf;

	(void)state;
	pod("p", HOLDS(GPU "=%s rdma/vf=%s", gpus(4, 4), slots(0, 0, 0)));
	pod("q", HOLDS(GPU "=%s rdma/vf=%s", gpus(6, 6), slots(0, 1, 1)));
	bind_pod(slots(0, 0, 0), &who);
	assert_int_equal(got.code, 0);
	vf = got.vf[0];
	assert_int_equal(pf_of(vf), 2);
	assert_string_equal(ledger_find(keeper_ledger(k), vf)->owner.uid, "1234");
	bind(slots(0, 0, 0));
	assert_string_equal(got.vf[0], vf);
	assert_string_equal(ledger_find(keeper_ledger(k), vf)->owner.uid, "1234");
	bind_pod(slots(0, 1, 1), &who);
	assert_int_equal(got.code, EAGAIN);
	assert_non_null(strstr(got.why, "no container of pod p"));
}

/* In exclusive mode the RDMA device goes along. */
static void the_cni_plugin_gets_its_second_vf_when_the_first_is_away(void **state)
{
	const struct binder_pod who = { "default", "p", "1234" };
	const char *first, *second;

	(void)state;
	pod("p", HOLDS(GPU "=%s rdma/vf=%s", gpus(4, 5), slots(0, 0, 1)));
	bind_pod(slots(0, 0, 0), &who);
	assert_int_equal(got.code, 0);
	assert_int_equal(got.n, 2);
	first = got.vf[0];
	second = got.vf[1];
	machine_remove(&m, DEV "/infiniband", first);
	machine_remove(&m, DEV "/infiniband_verbs", first);
	bind_pod(slots(0, 1, 1), &who);
	assert_string_equal(got.why, "");
	assert_int_equal(got.code, 0);
	assert_string_equal(got.vf[0], first);
	assert_string_equal(got.vf[1], second);
	unlink(spec_path_of("rdma_vf-n0-1"));
	bind_pod(slots(0, 1, 1), &who); /* it has to be written, and cannot be */
	assert_int_equal(got.code, EAGAIN);
}

static void a_pod_that_is_known_is_asked_for_alone(void **state)
{
	const struct binder_pod who = { "default", "p", "1234" };
	unsigned before;

	(void)state;
	pod("p", HOLDS(GPU "=%s rdma/vf=%s", gpus(4, 4), slots(0, 0, 0)));
	bind(slots(0, 0, 0)); /* what this kubelet can, is known now */
	before = lists;
	bind_pod(slots(0, 0, 0), &who);
	assert_int_equal(got.code, 0);
	assert_int_equal(lists, before);
}

/* --- the kubelet gives slots to others --- */

static void a_pod_that_came_back_under_its_name_is_chosen_for_anew(void **state)
{
	(void)state;
	pod("p", HOLDS(GPU "=%s rdma/vf=%s", gpus(0, 0), slots(0, 0, 0)));
	bind(slots(0, 0, 0));
	assert_int_equal(count_of_pf(0), 1);
	remove_pod("p");
	allocated(slots(0, 0, 0));
	assert_null(spec("rdma_vf-n0-0"));
	pod("p", HOLDS(GPU "=%s rdma/vf=%s", gpus(6, 6), slots(0, 0, 0)));
	bind(slots(0, 0, 0));
	assert_int_equal(count_of_pf(3), 1);
	assert_int_equal(ledger_holds(keeper_ledger(k)), 1);
}

static void vfs_of_a_pod_that_is_gone_are_free_at_once(void **state)
{
	(void)state;
	pod("p", HOLDS(GPU "=%s rdma/vf=%s", gpus(0, 0), slots(0, 0, 3)));
	bind(slots(0, 0, 3));
	remove_pod("p");
	pod("q", HOLDS(GPU "=%s rdma/vf=%s", gpus(0, 0), slots(0, 4, 7)));
	bind(slots(0, 4, 7));
	assert_int_equal(count_of_pf(0), 4);
	assert_null(spec("rdma_vf-n0-0"));
	assert_null(ledger_find_slot(keeper_ledger(k), "rdma_vf-n0-0"));
}

static void new_kubelet(void *arg)
{
	(void)arg;
	podres_reset(podres);
}

/* A kubelet that has just started does not show all its pods yet. */
static void unless_it_is_another_kubelet_that_does_not_show_it(void **state)
{
	const char *vf;

	(void)state;
	pod("p", HOLDS(GPU "=%s rdma/vf=%s", gpus(0, 0), slots(0, 0, 0)));
	bind(slots(0, 0, 0));
	vf = got.vf[0];
	remove_pod("p");
	on_rpc(new_kubelet, NULL);
	pod("q", HOLDS(GPU "=%s rdma/vf=%s", gpus(0, 0), slots(0, 1, 1)));
	bind(slots(0, 1, 1));
	assert_string_not_equal(got.vf[0], vf);
	assert_string_equal(ledger_find(keeper_ledger(k), vf)->owner.pod, "p");
	assert_false(keeper_is_draining(k, vf));
	assert_non_null(spec("rdma_vf-n0-0"));
	pod("p", HOLDS(GPU "=%s rdma/vf=%s", gpus(0, 0), slots(0, 0, 0)));
	bind(slots(0, 0, 0));
	assert_string_equal(got.vf[0], vf);
}

static void but_not_while_somebody_still_has_one_open(void **state)
{
	const char *vf;

	(void)state;
	pod("p", HOLDS(GPU "=%s rdma/vf=%s", gpus(0, 0), slots(0, 0, 0)));
	bind(slots(0, 0, 0));
	vf = got.vf[0];
	open_device = m.node->inv->rdma[dev_of(vf)->rdma].name;
	remove_pod("p");
	allocated(slots(0, 0, 0));
	pod("q", HOLDS(GPU "=%s rdma/vf=%s", gpus(0, 0), slots(0, 0, 0)));
	bind(slots(0, 0, 0));
	assert_string_not_equal(got.vf[0], vf);
	assert_true(keeper_is_draining(k, vf));
}

static void a_slot_given_away_twice_gets_two_vfs(void **state)
{
	const char *first, *second;

	(void)state;
	pod("p", HOLDS(GPU "=%s rdma/vf=%s", gpus(0, 0), slots(0, 0, 0)));
	bind(slots(0, 0, 0));
	first = got.vf[0];
	allocated(slots(0, 0, 0));
	pod("q", HOLDS(GPU "=%s rdma/vf=%s", gpus(1, 1), slots(0, 0, 0)));
	bind(slots(0, 0, 0));
	second = got.vf[0];
	assert_string_not_equal(first, second);
	assert_string_equal(ledger_find(keeper_ledger(k), first)->owner.pod, "p");
	assert_string_equal(ledger_find(keeper_ledger(k), second)->owner.pod, "q");
	assert_non_null(strstr(spec("rdma_vf-n0-0"), "RAILMATE_CONTAINER=default/q/main"));
	/* also after the next look at what pods have */
	on_rpc(reconcile_fn, NULL);
	assert_string_equal(ledger_find(keeper_ledger(k), first)->owner.pod, "p");
	assert_false(keeper_is_draining(k, first));
}

static void which_of_two_restarts_is_told_by_who_is_at_work(void **state)
{
	const char *first, *second;

	(void)state;
	pod("p", HOLDS(GPU "=%s rdma/vf=%s", gpus(0, 0), slots(0, 0, 0)));
	bind(slots(0, 0, 0));
	first = got.vf[0];
	allocated(slots(0, 0, 0));
	pod("q", HOLDS(GPU "=%s rdma/vf=%s", gpus(1, 1), slots(0, 0, 0)));
	bind(slots(0, 0, 0));
	second = got.vf[0];
	bind_fails(slots(0, 0, 0), EAGAIN, "delete one of them");
	open_device = m.node->inv->rdma[dev_of(first)->rdma].name;
	bind(slots(0, 0, 0));
	assert_string_equal(got.vf[0], second);
	open_device = m.node->inv->rdma[dev_of(second)->rdma].name;
	bind(slots(0, 0, 0));
	assert_string_equal(got.vf[0], first);
	assert_string_equal(ledger_find(keeper_ledger(k), first)->owner.pod, "p");
	assert_string_equal(ledger_find(keeper_ledger(k), second)->owner.pod, "q");
	assert_non_null(strstr(spec("rdma_vf-n0-0"), "RAILMATE_CONTAINER=default/p/main"));
	assert_int_equal(ledger_holds(keeper_ledger(k)), 2);
}

/* A source of pod specs that answers a little later. */
static struct {
	struct spec_list list;
	unsigned fetches;
	podspec_done_fn done;
	void *arg;
} source;

static void tell_specs(void *arg)
{
	(void)arg;
	source.done(source.arg, source.list.n ? &source.list : NULL, "nobody knows");
}

static void fetch_specs(void *ctx, unsigned timeout_ms, podspec_done_fn done, void *arg)
{
	(void)ctx;
	assert_true(timeout_ms > 0);
	source.fetches++;
	source.done = done;
	source.arg = arg;
	rpc_after(rpc, 1, tell_specs, NULL);
}

static void of_two_new_pods_the_newest_is_taken(void **state)
{
	static const struct podspec_source specs = { "test", fetch_specs, NULL };
	struct spec_pod v[] = { { .ns = "default", .name = "p", .created = 200 },
				{ .ns = "default", .name = "q", .created = 100 } };

	(void)state;
	source.list = (struct spec_list) { v, 2 };
	source.fetches = 0;
	b->env.specs = &specs;
	pod("q", HOLDS(GPU "=%s rdma/vf=%s", gpus(6, 6), slots(0, 0, 0)));
	pod("p", HOLDS(GPU "=%s rdma/vf=%s", gpus(0, 0), slots(0, 0, 0)));
	bind(slots(0, 0, 0));
	assert_int_equal(source.fetches, 1);
	assert_int_equal(count_of_pf(0), 1);
	assert_string_equal(ledger_find(keeper_ledger(k), got.vf[0])->owner.pod, "p");
	bind(slots(0, 0, 0));
	assert_int_equal(source.fetches, 1);
	assert_int_equal(count_of_pf(3), 1);
	assert_string_equal(ledger_find(keeper_ledger(k), got.vf[0])->owner.pod, "q");
}

static void and_one_of_them_where_nobody_knows(void **state)
{
	static const struct podspec_source specs = { "test", fetch_specs, NULL };

	(void)state;
	source.list = (struct spec_list) { NULL, 0 };
	b->env.specs = &specs;
	pod("q", HOLDS(GPU "=%s rdma/vf=%s", gpus(6, 6), slots(0, 0, 0)));
	pod("p", HOLDS(GPU "=%s rdma/vf=%s", gpus(0, 0), slots(0, 0, 0)));
	bind(slots(0, 0, 0));
	assert_int_equal(got.n, 1);
}

static void an_init_container_leaves_its_vf_to_the_next(void **state)
{
	const char *vf;

	(void)state;
	/* the list shows the app container only; the init container had one slot more */
	pod("p", HOLDS(GPU "=%s rdma/vf=%s", gpus(0, 1), slots(0, 0, 0)));
	bind(slots(0, 0, 1));
	assert_int_equal(got.n, 2);
	vf = got.vf[0];
	bind(slots(0, 0, 0));
	assert_int_equal(got.n, 1);
	assert_string_equal(got.vf[0], vf);
	assert_string_equal(ledger_find(keeper_ledger(k), vf)->owner.container, "main");
}

/* --- init containers that no list shows --- */

#define CHECKPOINT(entries) "{\"Data\": {\"PodDeviceEntries\": [" entries "]}}"
#define ENTRY(uid, container, resource, ids)                                                                 \
	"{\"PodUID\": \"" uid "\", \"ContainerName\": \"" container "\", \"ResourceName\": \"" resource      \
	"\", \"DeviceIDs\": " ids "}"

static void write_checkpoint(const char *text)
{
	machine_file(&m, text, "checkpoint");
}

static void an_init_container_is_found_in_the_checkpoint(void **state)
{
	const struct ledger_hold *hold;
	const char *vf;

	(void)state;
	write_checkpoint(HOLDS(
		CHECKPOINT("%s, %s, %s"), ENTRY("u-1", "other", "rdma/vf", "{\"0\": [\"rdma_vf-n0-5\"]}"),
		ENTRY("u-2", "setup", "rdma/vf", "{\"0\": [\"rdma_vf-n0-0\"], \"1\": [\"rdma_vf-n1-0\"]}"),
		HOLDS(ENTRY("u-2", "setup", GPU, "{\"-1\": [\"%s\"]}"), gpus(2, 2))));
	pod("p", "");
	bind(slots(0, 0, 0));
	assert_int_equal(got.n, 2);
	assert_int_equal(count_of_pf(1), 2);
	vf = got.vf[0];
	hold = ledger_find(keeper_ledger(k), vf);
	assert_string_equal(hold->owner.uid, "u-2");
	assert_string_equal(hold->owner.container, "setup");
	/* it stays its own as long as the kubelet says so, and no longer */
	on_rpc(reconcile_fn, NULL);
	bind(slots(0, 0, 0));
	assert_string_equal(got.vf[0], vf);
	write_checkpoint(CHECKPOINT(""));
	on_rpc(reconcile_fn, NULL);
	assert_int_equal(ledger_holds(keeper_ledger(k)), 0);
	assert_null(spec("rdma_vf-n0-0"));
}

static void a_checkpoint_that_is_not_understood_tells_nothing(void **state)
{
	static const char *const texts[] = {
		"",
		"{",
		"[]",
		"{\"Data\": null}",
		"{\"Data\": {\"PodDeviceEntries\": {}}}",
		CHECKPOINT("null, 7, {}, {\"PodUID\": 1}"),
		CHECKPOINT(ENTRY("u", "c", "rdma/vf", "null")),
		CHECKPOINT(ENTRY("u", "c", "rdma/vf", "{\"0\": null, \"1\": [null, 3]}")),
		CHECKPOINT(ENTRY("u", "c", "rdma/vf", "\"rdma_vf-n0-0\"")),
		CHECKPOINT(ENTRY("u", "c", "rdma/other", "[\"rdma_vf-n0-0\"]")),
		/* two of them: which one starts? */
		CHECKPOINT(ENTRY("u", "c", "rdma/vf", "[\"rdma_vf-n0-0\"]") ", " ENTRY("v", "c", "rdma/vf",
										       "[\"rdma_vf-n0-0\"]")),
	};

	(void)state;
	pod("p", "");
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		write_checkpoint(texts[i]);
		bind_fails(slots(0, 0, 0), EAGAIN, "no container that holds slot rdma_vf-n0-0");
	}
	write_checkpoint(CHECKPOINT(ENTRY("u", "c", "rdma/vf", "[\"rdma_vf-n0-0\"]"))); /* of old */
	bind(slots(0, 0, 0));
}

/* --- what cannot be done --- */

static void what_is_no_slot_is_refused_for_good(void **state)
{
	(void)state;
	pod("p", "rdma/vf=0000:05:00.1");
	bind_fails("0000:05:00.1", ENOENT, "slot '0000:05:00.1' is of no pool of this node that binds late");
}

static void a_slot_that_nobody_has_is_asked_for_again(void **state)
{
	(void)state;
	pod("p", HOLDS("rdma/vf=%s", slots(0, 1, 1)));
	bind_fails(slots(0, 0, 0), EAGAIN, "no container that holds slot rdma_vf-n0-0");
}

static void without_podresources_containers_wait(void **state)
{
	(void)state;
	silent = true;
	bind_fails(slots(0, 0, 0), EAGAIN, "it cannot be told which container starts");
}

static void too_few_vfs_are_named(void **state)
{
	(void)state;
	pod("p", HOLDS("rdma/vf=%s", slots(0, 0, 7)));
	pod("q", HOLDS("rdma/vf=%s", slots(1, 0, 7)));
	pod("r", HOLDS("rdma/vf=%s", slots(1, 8, 8)));
	bind(slots(0, 0, 7));
	bind(slots(1, 0, 7));
	bind_fails(slots(1, 8, 8), EAGAIN, "rdma/vf: 1 more VFs are needed and 0 are free");
}

static bool is_asked(void)
{
	return hung;
}

static void answer_hung(void *arg)
{
	(void)arg;
	rpc_reply(STEAL(hung), RPC_OK, NULL, msg_encode_pod_list(&all_pods, true, a));
}

static void free_binder(void *arg)
{
	(void)arg;
	binder_free(STEAL(b));
}

/* The answer shows the pods of the moment when it was asked for, and comes when another container has been
 * bound. */
static void a_list_that_is_older_than_a_binding_does_not_free_its_vf(void **state)
{
	struct wish w = { ids_of(slots(0, 1, 1)), NULL, &other };
	const char *vf;

	(void)state;
	pod("p", HOLDS(GPU "=%s rdma/vf=%s", gpus(0, 0), slots(0, 0, 0)));
	hangs = true;
	other = (struct outcome) { 0 };
	on_rpc(bind_fn, &w);
	wait_until(is_asked);
	hangs = false;
	bind(slots(0, 0, 0));
	vf = got.vf[0];
	remove_pod("p");
	pod("q", HOLDS(GPU "=%s rdma/vf=%s", gpus(0, 0), slots(0, 1, 1)));
	on_rpc(answer_hung, NULL);
	wait_until(other_is_done);
	assert_int_equal(other.code, 0);
	assert_string_not_equal(other.vf[0], vf);
	assert_string_equal(ledger_find(keeper_ledger(k), vf)->owner.pod, "p");
	assert_false(keeper_is_draining(k, vf));
	assert_non_null(spec("rdma_vf-n0-0"));
}

static void who_waits_when_the_binder_goes_is_told(void **state)
{
	struct wish w = { ids_of(slots(0, 0, 0)), NULL, &got };

	(void)state;
	pod("p", HOLDS("rdma/vf=%s", slots(0, 0, 0)));
	hangs = true;
	got = (struct outcome) { 0 };
	on_rpc(bind_fn, &w);
	wait_until(is_asked);
	on_rpc(free_binder, NULL);
	assert_true(got.done);
	assert_int_equal(got.code, EAGAIN);
	on_rpc(answer_hung, NULL); /* to nobody */
	usleep(20000);
	assert_int_equal(got.times, 1);
}

/* --- the CDI directory --- */

static void a_directory_that_cannot_be_written_is_a_reason_to_wait(void **state)
{
	(void)state;
	put(HOLDS("%s/file", m.dir), "");
	rmdir(cdi_dir);
	assert_int_equal(symlink(HOLDS("%s/file", m.dir), cdi_dir), 0);
	pod("p", HOLDS("rdma/vf=%s", slots(0, 0, 0)));
	bind_fails(slots(0, 0, 0), EAGAIN, cdi_dir);
	assert_int_equal(ledger_holds(keeper_ledger(k)), 0);
	unlink(cdi_dir);
	bind(slots(0, 0, 0));
}

static void a_full_disk_is_a_reason_to_wait(void **state)
{
	struct rlimit before, full = { 0 };

	(void)state;
	pod("p", HOLDS("rdma/vf=%s", slots(0, 0, 0)));
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	full.rlim_max = before.rlim_max;
	signal(SIGXFSZ, SIG_IGN);
	setrlimit(RLIMIT_FSIZE, &full);
	bind_pod(slots(0, 0, 0), NULL);
	setrlimit(RLIMIT_FSIZE, &before);
	assert_int_equal(got.code, EAGAIN);
	assert_non_null(strstr(got.why, "write CDI spec"));
	assert_int_equal(count_files(), 0);
	assert_int_equal(ledger_holds(keeper_ledger(k)), 0);
	bind(slots(0, 0, 0));
}

static void specs_of_others_are_left_alone(void **state)
{
	const char *nvidia = HOLDS("%s/nvidia.json", cdi_dir), *mine = spec_path_of("rdma_vf-n0-0");

	(void)state;
	put(nvidia, "{\"kind\": \"nvidia.com/gpu\"}");
	put(mine, "{\"kind\": \"example.com/nic\"}");
	pod("p", HOLDS("rdma/vf=%s", slots(0, 0, 0)));
	bind_fails(slots(0, 0, 0), EAGAIN, "somebody else's file has its name");
	allocated(slots(0, 0, 0));
	assert_string_equal(spec("rdma_vf-n0-0"), "{\"kind\": \"example.com/nic\"}");
	unlink(mine);
	bind(slots(0, 0, 0));
	assert_int_equal(access(nvidia, F_OK), 0);
}

static void a_folder_in_the_place_of_a_spec_is_named(void **state)
{
	(void)state;
	mkdir(cdi_dir, 0755);
	mkdir(spec_path_of("rdma_vf-n0-0"), 0755);
	pod("p", HOLDS("rdma/vf=%s", slots(0, 0, 0)));
	bind_fails(slots(0, 0, 0), EAGAIN, "something that is no file is in its place");
	rmdir(spec_path_of("rdma_vf-n0-0"));
}

static void a_spec_edited_by_hand_is_told_and_written_anew(void **state)
{
	const char *text;

	(void)state;
	pod("p", HOLDS("rdma/vf=%s", slots(0, 0, 0)));
	bind(slots(0, 0, 0));
	text = arena_strdup(a, spec("rdma_vf-n0-0"));
	put(spec_path_of("rdma_vf-n0-0"), "{\"kind\": \"railmate.io/vf\", \"devices\": []}");
	bind(slots(0, 0, 0));
	assert_int_equal(notes, 1);
	assert_non_null(strstr(last_note, "was changed by somebody else; it is written anew"));
	assert_string_equal(spec("rdma_vf-n0-0"), text);
}

/* --- at the start --- */

static void restart_without_ledger(void *arg)
{
	(void)arg;
	binder_free(b);
	keeper_free(k);
	k = keeper_new(rpc, ledger_new(), NULL, users, NULL);
	k->pace.young_ms = 0;
	keeper_update(k, m.node);
	make_binder();
}

static void restart_with_ledger(void *arg)
{
	(void)arg;
	binder_free(b);
	make_binder();
}

static void a_lost_ledger_is_rebuilt_from_the_specs(void **state)
{
	const char *vf;

	(void)state;
	pod("p", HOLDS(GPU "=%s rdma/vf=%s", gpus(0, 0), slots(0, 0, 1)));
	bind_pod(slots(0, 0, 1), &(struct binder_pod) { "default", "p", "1234" });
	vf = got.vf[1];
	on_rpc(restart_without_ledger, NULL);
	assert_int_equal(ledger_holds(keeper_ledger(k)), 2);
	assert_string_equal(ledger_find(keeper_ledger(k), vf)->slot, "rdma_vf-n0-1");
	assert_string_equal(ledger_find(keeper_ledger(k), vf)->owner.container, "main");
	assert_string_equal(ledger_find(keeper_ledger(k), vf)->owner.pod, "p");
	assert_string_equal(ledger_find(keeper_ledger(k), vf)->owner.uid, "1234");
	bind(slots(0, 0, 1));
	assert_string_equal(got.vf[1], vf);
}

static void drop_hold(void *arg)
{
	ledger_drop(keeper_ledger(k), arg);
}

static void specs_that_the_ledger_contradicts_go(void **state)
{
	const char *text;

	(void)state;
	pod("p", HOLDS(GPU "=%s rdma/vf=%s", gpus(0, 0), slots(0, 0, 0)));
	bind(slots(0, 0, 0));
	text = arena_strdup(a, spec("rdma_vf-n0-0"));
	put(spec_path_of("rdma_vf-n0-5"), text); /* says nothing of its own slot */
	put(HOLDS("%s/.railmate.io-vf_rdma_vf-n0-6.json.tmp", cdi_dir), "{");
	put(spec_path_of("rdma_vf-n0-7"), "{");
	mkdir(HOLDS("%s/folder", cdi_dir), 0755);
	mkdir(spec_path_of("rdma_vf-n1-0"), 0755);
	on_rpc(restart_with_ledger, NULL);
	assert_non_null(spec("rdma_vf-n0-0"));
	assert_int_equal(notes, 2);
	assert_int_equal(count_files(), 5);
	assert_int_equal(access(HOLDS("%s/.railmate.io-vf_rdma_vf-n0-6.json.tmp", cdi_dir), F_OK), -1);
	/* the slot has another VF now, or none: its spec is of the past */
	on_rpc(drop_hold, (void *)got.vf[0]);
	pod("q", HOLDS(GPU "=%s rdma/vf=%s", gpus(0, 0), slots(0, 1, 1)));
	bind(slots(0, 1, 1));
	put(spec_path_of("rdma_vf-n0-0"), text);
	on_rpc(restart_with_ledger, NULL);
	assert_null(spec("rdma_vf-n0-0"));
}

/* --- what the kubelet is told --- */

static struct {
	size_t n, healthy, held;
	bool slot_0, slot_7;
} view;

static void view_fn(void *arg)
{
	struct arena *scratch = arena_new(0);
	struct slot_list l = binder_slots(b, &m.node->pools[0], scratch);

	(void)arg;
	memset(&view, 0, sizeof(view));
	view.n = l.n;
	for (size_t i = 0; i < l.n; i++) {
		view.healthy += l.v[i].healthy;
		view.held += l.v[i].held;
		if (str_eq(l.v[i].id, "rdma_vf-n0-0"))
			view.slot_0 = l.v[i].healthy;
		if (str_eq(l.v[i].id, "rdma_vf-n0-7"))
			view.slot_7 = l.v[i].healthy;
	}
	arena_free(scratch);
}

static bool was_change_told(void)
{
	bool told = changes > 0;

	changes = 0;
	return told;
}

static void slots_follow_what_is_bound_and_promised(void **state)
{
	(void)state;
	on_rpc(view_fn, NULL);
	assert_int_equal(view.n, 16);
	assert_int_equal(view.healthy, 16);
	assert_int_equal(view.held, 0);
	allocated(slots(0, 0, 1));
	wait_until(was_change_told);
	on_rpc(view_fn, NULL);
	assert_int_equal(view.held, 2);
	pod("p", HOLDS(GPU "=%s rdma/vf=%s", gpus(0, 0), slots(0, 0, 1)));
	bind(slots(0, 0, 1));
	wait_until(was_change_told);
	on_rpc(unbind_driver, (void *)got.vf[0]);
	on_rpc(view_fn, NULL);
	assert_int_equal(view.n, 16);
	assert_int_equal(view.held, 2);
	assert_int_equal(view.healthy, 15);
	assert_false(view.slot_0);
	assert_true(view.slot_7);
}

static void age_promises(void *arg)
{
	(void)arg;
	for (size_t i = 0; i < b->n_promises; i++)
		b->promises[i].since_ms -= 60000;
}

static void a_promise_that_came_to_nothing_is_forgotten(void **state)
{
	(void)state;
	allocated(slots(0, 0, 1));
	pod("p", HOLDS("rdma/vf=%s", slots(0, 1, 1)));
	on_rpc(age_promises, NULL);
	on_rpc(reconcile_fn, NULL);
	on_rpc(view_fn, NULL);
	assert_int_equal(view.held, 1);
	remove_pod("p");
	on_rpc(age_promises, NULL);
	on_rpc(reconcile_fn, NULL);
	on_rpc(view_fn, NULL);
	assert_int_equal(view.held, 0);
}

/* One whose answer took a minute and a half. */
static void old_list_fn(void *arg)
{
	(void)arg;
	binder_reconcile(b, &all_pods, clock_mono_ms() - 90000);
}

static void a_promise_is_not_forgotten_by_a_list_that_is_older(void **state)
{
	(void)state;
	allocated(slots(0, 0, 1));
	on_rpc(age_promises, NULL);
	on_rpc(old_list_fn, NULL);
	on_rpc(view_fn, NULL);
	assert_int_equal(view.held, 2);
}

static void what_pods_have_at_the_start_is_promised_to_them(void **state)
{
	(void)state;
	pod("p", HOLDS("rdma/vf=%s", slots(0, 0, 3)));
	on_rpc(reconcile_fn, NULL);
	on_rpc(view_fn, NULL);
	assert_int_equal(view.held, 4);
}

/* --- GPUs of DRA drivers --- */

static void names_of_dra_devices_are_understood(void **state)
{
	struct hw_gpu gpu[] = {
		{ .pci = 1, .vendor = "NVIDIA", .uuid = "GPU-aa-bb", .minor = 3, .card = 9 },
		{ .pci = 2, .vendor = "AMD", .minor = -1, .card = 4 },
		{ .pci = 3, .vendor = "Intel", .minor = -1, .card = 5 },
	};
	struct hw_pci pci[4] = { 0 };
	struct hw_inventory inv = { .pci = pci, .n_pci = 4, .gpu = gpu, .n_gpu = 3 };
	static const struct {
		const char *driver, *device, *cdi;
		int gpu;
	} rows[] = {
		{ "gpu.nvidia.com", "gpu-3", NULL, 1 },
		{ "gpu.nvidia.com", "gpu-3-mig-9-0-4", NULL, 1 },
		{ "gpu.nvidia.com", "gpu-4", NULL, -1 },
		{ "gpu.nvidia.com", "gpu-aa-bb", NULL, 1 },
		{ "gpu.nvidia.com", "GPU-aa-bb", NULL, 1 },
		{ "gpu.nvidia.com", "gpu-0000-01-00-0", NULL, 1 },
		{ "gpu.nvidia.com", "x", "k8s.gpu.nvidia.com/device=gpu-3", 1 },
		{ "gpu.nvidia.com", "x", "k8s.gpu.nvidia.com/claim=0123-gpu-3", 1 },
		{ "gpu.nvidia.com", "x", "nvidia.com/gpu=0", 1 },
		{ "gpu.nvidia.com", "x", "nvidia.com/gpu=GPU-aa-bb", 1 },
		{ "gpu.nvidia.com", "x", "nvidia.com/gpu=all", -1 },
		{ "gpu.nvidia.com", "x", "no equals sign", -1 },
		{ "gpu.amd.com", "gpu-4-132", NULL, 2 },
		{ "gpu.amd.com", "gpu-3-131", NULL, -1 },
		{ "gpu.intel.com", "0000-03-00-0-0x56c0", NULL, 3 },
		{ "gpu.intel.com", "0000-00-00-0-0x56c0", NULL, -1 },
		{ "nic.example.com", "mlx5-0", NULL, -1 },
		{ "", "", "", -1 },
	};

	(void)state;
	for (uint8_t i = 0; i < 4; i++)
		pci[i].bdf.bus = i;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const char *cdi = rows[i].cdi;
		struct dynamic d = { rows[i].driver, "pool", rows[i].device, { &cdi, cdi ? 1 : 0 } };

		if (gpu_of_dynamic(&inv, &d) != rows[i].gpu)
			fail_msg("%s %s %s is GPU %d", rows[i].driver, rows[i].device, cdi ? cdi : "-",
				 gpu_of_dynamic(&inv, &d));
	}
}

/* --- the truth at the start --- */

#define FIXED_GID                                                                                            \
	"{\"resourceList\": [{\"resourcePrefix\": \"rdma\", \"resourceName\": \"vf\", \"selectors\": "       \
	"{\"isRdma\": true}, \"railmate\": {\"binding\": \"late\", \"gid\": \"fixed:3\"}}]}"

static void look_first(void *arg)
{
	const struct truth_env env = { .rpc = rpc, .root = m.dir, .look = fake_look };

	(void)arg;
	truth = truth_new(&env);
	rundir = rundir_new(HOLDS("%s/run", m.dir));
	binder_free(STEAL(b));
	make_binder();
}

static int set_up_truth_with(const char *text)
{
	sight.held = sight.at_gate = sight.fails = false;
	sight.looks = 0;
	sight.gid = 3;
	set_up_with(text);
	on_rpc(look_first, NULL);
	return 0;
}

static int set_up_truth(void **state)
{
	(void)state;
	return set_up_truth_with(ONE_POOL);
}

static int set_up_fixed_gid(void **state)
{
	(void)state;
	return set_up_truth_with(FIXED_GID);
}

static const char *file_of(const char *vf, const char *name)
{
	char *text = arena_alloc(a, 8192);
	FILE *f = fopen(HOLDS("%s/run/vf-%s/%s", m.dir, vf, name), "re");

	if (!f)
		return NULL;
	text[fread(text, 1, 8191, f)] = '\0';
	fclose(f);
	return text;
}

static void a_spec_tells_what_the_vf_is_when_its_container_starts(void **state)
{
	const char *text;

	(void)state;
	pod("p", HOLDS(GPU "=%s rdma/vf=%s", gpus(0, 0), slots(0, 0, 0)));
	bind(slots(0, 0, 0));
	text = spec("rdma_vf-n0-0");
	assert_non_null(strstr(text, "\"NCCL_IB_HCA==moved_"));
	assert_non_null(strstr(text, "/dev/infiniband/uverbs9"));
	assert_non_null(strstr(text, "NCCL_IB_GID_INDEX=3"));
	assert_non_null(strstr(text, HOLDS("\"hostPath\": \"%s/run/vf-%s\"", m.dir, got.vf[0])));
	assert_non_null(strstr(text, "\"containerPath\": \"/run/railmate\""));
	assert_non_null(strstr(file_of(got.vf[0], "nccl.conf"), "NCCL_IB_GID_INDEX=3"));
	assert_non_null(strstr(file_of(got.vf[0], "map.json"), "\"pod\": \"default/p\""));
	assert_int_equal(sight.looks, 1);
	assert_int_equal(notes, 0);
}

static void all_slots_of_a_container_see_one_directory(void **state)
{
	const char *mount;

	(void)state;
	pod("p", HOLDS("rdma/vf=%s,%s", slots(0, 0, 1), slots(1, 0, 0)));
	bind(slots(0, 0, 0));
	assert_int_equal(got.n, 3);
	for (size_t i = 1; i < got.n; i++) {
		if (ledger_vf_cmp(got.vf[i], got.vf[0]) < 0)
			got.vf[0] = got.vf[i];
	}
	mount = HOLDS("%s/run/vf-%s\"", m.dir, got.vf[0]);
	assert_non_null(strstr(spec("rdma_vf-n0-0"), mount));
	assert_non_null(strstr(spec("rdma_vf-n0-1"), mount));
	assert_non_null(strstr(spec("rdma_vf-n1-0"), mount));
}

static void a_cni_plugin_asks_before_there_is_anything_to_see(void **state)
{
	const struct binder_pod who = { "default", "p", "uid" };

	(void)state;
	pod("p", HOLDS("rdma/vf=%s", slots(0, 0, 0)));
	bind_pod(slots(0, 0, 0), &who);
	assert_int_equal(got.code, 0);
	assert_int_equal(sight.looks, 0);
	assert_null(strstr(spec("rdma_vf-n0-0"), "moved_"));
	bind(slots(0, 0, 0)); /* the kubelet: the truth at the start wins */
	assert_int_equal(sight.looks, 1);
	assert_non_null(strstr(spec("rdma_vf-n0-0"), "moved_"));
}

static void what_cannot_be_known_stops_nobody_and_is_told_once(void **state)
{
	(void)state;
	sight.fails = true;
	pod("p", HOLDS("rdma/vf=%s", slots(0, 0, 0)));
	pod("q", HOLDS("rdma/vf=%s", slots(0, 1, 1)));
	bind(slots(0, 0, 0));
	bind(slots(0, 1, 1));
	assert_int_equal(notes, 1);
	assert_non_null(strstr(last_note, "the kernel is silent"));
	assert_non_null(strstr(spec("rdma_vf-n0-1"),
			       HOLDS("NCCL_IB_HCA==%s:1", m.node->inv->rdma[dev_of(got.vf[0])->rdma].name)));
	assert_non_null(strstr(file_of(got.vf[0], "map.json"), "the kernel is silent"));
}

static void a_fixed_gid_that_is_not_there_is_a_reason_to_wait(void **state)
{
	(void)state;
	sight.gid = 5;
	pod("p", HOLDS("rdma/vf=%s", slots(0, 0, 0)));
	bind_fails(slots(0, 0, 0), EAGAIN, "3");
	assert_null(spec("rdma_vf-n0-0"));
	assert_int_equal(ledger_holds(keeper_ledger(k)), 0);
	sight.gid = 3;
	bind(slots(0, 0, 0));
	assert_non_null(strstr(spec("rdma_vf-n0-0"), "NCCL_IB_GID_INDEX=3"));
}

static void hold_the_look(const char *list)
{
	static struct wish w;

	sight.held = true;
	w = (struct wish) { ids_of(list), NULL, &got };
	got = (struct outcome) { 0 };
	on_rpc(bind_fn, &w);
	wait_for_look();
}

static void a_pod_that_goes_while_its_vf_is_looked_at_is_not_bound(void **state)
{
	(void)state;
	pod("p", HOLDS("rdma/vf=%s", slots(0, 0, 0)));
	hold_the_look(slots(0, 0, 0));
	assert_int_equal(ledger_holds(keeper_ledger(k)), 1); /* nobody else gets it meanwhile */
	remove_pod("p");
	pod("q", HOLDS("rdma/vf=%s", slots(0, 1, 1)));
	k->pace.apart_ms = 0;
	on_rpc(reconcile_fn, NULL);
	on_rpc(reconcile_fn, NULL);
	assert_int_equal(ledger_holds(keeper_ledger(k)), 0);
	let_look();
	wait_until(is_done);
	assert_int_equal(got.code, EAGAIN);
	assert_non_null(strstr(got.why, "slot rdma_vf-n0-0 was taken from pod default/p"));
	assert_null(spec("rdma_vf-n0-0"));
}

static void what_another_asker_was_told_is_not_undone(void **state)
{
	const struct binder_pod who = { "default", "p", "" };
	struct wish w = { ids_of(slots(0, 0, 0)), &who, &other };

	(void)state;
	sight.gid = 5;
	pod("p", HOLDS("rdma/vf=%s", slots(0, 0, 0)));
	hold_the_look(slots(0, 0, 0));
	other = (struct outcome) { 0 };
	on_rpc(bind_fn, &w);
	wait_until(other_is_done);
	assert_int_equal(other.code, 0);
	let_look();
	wait_until(is_done);
	assert_int_equal(got.code, EAGAIN);
	assert_string_equal(ledger_find_slot(keeper_ledger(k), "rdma_vf-n0-0")->vf, other.vf[0]);
}

static void a_binder_that_ends_while_it_looks_has_answered(void **state)
{
	(void)state;
	pod("p", HOLDS("rdma/vf=%s", slots(0, 0, 0)));
	hold_the_look(slots(0, 0, 0));
	on_rpc(free_binder, NULL);
	assert_true(got.done);
	assert_int_equal(got.code, EAGAIN);
	let_look();
	on_rpc(end, NULL);
	assert_int_equal(got.times, 1);
	on_rpc(begin, NULL); /* for the end of the test */
}

static void a_run_directory_that_cannot_be_had_stops_nobody(void **state)
{
	(void)state;
	put(HOLDS("%s/run", m.dir), "");
	pod("p", HOLDS("rdma/vf=%s", slots(0, 0, 0)));
	bind(slots(0, 0, 0));
	assert_int_equal(notes, 1);
	assert_non_null(strstr(last_note, "starts without /run/railmate"));
	assert_null(strstr(spec("rdma_vf-n0-0"), "/run/railmate"));
	assert_non_null(strstr(spec("rdma_vf-n0-0"), "NCCL_IB_GID_INDEX=3"));
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		T(the_vfs_are_those_beside_the_gpus),
		T(a_container_is_bound_whole_whichever_slot_asks),
		T(slots_of_the_wrong_node_give_way_to_the_gpus),
		T(without_gpus_the_node_of_the_slots_counts),
		T(a_node_that_has_too_few_left_borrows_from_the_other),
		T(a_sidecar_without_gpus_serves_those_of_its_pod),
		T(replicas_and_indexes_name_gpus_too),
		T(parts_of_gpus_are_not_taken_for_none),
		T(gpus_of_dra_drivers_count),
		T(containers_get_different_vfs),
		T(a_vf_in_use_is_passed_over),
		cmocka_unit_test_setup_teardown(several_pools_of_a_container_see_each_other, set_up_two_pools,
						tear_down),
#define TRUTH(f) cmocka_unit_test_setup_teardown(f, set_up_truth, tear_down)
		TRUTH(a_spec_tells_what_the_vf_is_when_its_container_starts),
		TRUTH(all_slots_of_a_container_see_one_directory),
		TRUTH(a_cni_plugin_asks_before_there_is_anything_to_see),
		TRUTH(what_cannot_be_known_stops_nobody_and_is_told_once),
		TRUTH(a_pod_that_goes_while_its_vf_is_looked_at_is_not_bound),
		TRUTH(a_binder_that_ends_while_it_looks_has_answered),
		TRUTH(a_run_directory_that_cannot_be_had_stops_nobody),
		cmocka_unit_test_setup_teardown(a_fixed_gid_that_is_not_there_is_a_reason_to_wait,
						set_up_fixed_gid, tear_down),
		cmocka_unit_test_setup_teardown(what_another_asker_was_told_is_not_undone, set_up_fixed_gid,
						tear_down),
		cmocka_unit_test_setup_teardown(vfs_of_an_early_pool_are_told_to_nccl_too, set_up_mixed_pools,
						tear_down),
		T(a_spec_gives_what_early_binding_gives),
		T(nothing_but_specs_is_left_in_the_directory),
		T(the_node_is_that_of_now_also_in_another_namespace),
		T(a_vf_that_lost_its_rdma_device_is_a_reason_to_wait),
		T(a_restarted_container_keeps_its_vfs),
		T(a_restart_is_known_by_the_ledger_and_needs_no_list),
		T(a_dead_vf_is_replaced_when_the_container_restarts),
		T(a_vf_that_was_seen_half_moved_is_not_dead),
		T(two_askers_are_told_the_same),
		T(the_cni_plugin_and_the_kubelet_agree),
		T(the_cni_plugin_gets_its_second_vf_when_the_first_is_away),
		T(a_pod_that_is_known_is_asked_for_alone),
		T(a_pod_that_came_back_under_its_name_is_chosen_for_anew),
		T(vfs_of_a_pod_that_is_gone_are_free_at_once),
		T(unless_it_is_another_kubelet_that_does_not_show_it),
		T(a_list_that_is_older_than_a_binding_does_not_free_its_vf),
		T(but_not_while_somebody_still_has_one_open),
		T(a_slot_given_away_twice_gets_two_vfs),
		T(which_of_two_restarts_is_told_by_who_is_at_work),
		T(of_two_new_pods_the_newest_is_taken),
		T(and_one_of_them_where_nobody_knows),
		T(an_init_container_leaves_its_vf_to_the_next),
		T(an_init_container_is_found_in_the_checkpoint),
		T(a_checkpoint_that_is_not_understood_tells_nothing),
		T(what_is_no_slot_is_refused_for_good),
		T(a_slot_that_nobody_has_is_asked_for_again),
		T(without_podresources_containers_wait),
		T(too_few_vfs_are_named),
		T(who_waits_when_the_binder_goes_is_told),
		T(a_directory_that_cannot_be_written_is_a_reason_to_wait),
		T(a_full_disk_is_a_reason_to_wait),
		T(specs_of_others_are_left_alone),
		T(a_folder_in_the_place_of_a_spec_is_named),
		T(a_spec_edited_by_hand_is_told_and_written_anew),
		T(a_lost_ledger_is_rebuilt_from_the_specs),
		T(specs_that_the_ledger_contradicts_go),
		T(slots_follow_what_is_bound_and_promised),
		T(a_promise_that_came_to_nothing_is_forgotten),
		T(a_promise_is_not_forgotten_by_a_list_that_is_older),
		T(what_pods_have_at_the_start_is_promised_to_them),
		cmocka_unit_test(names_of_dra_devices_are_understood),
	};

	return cmocka_run_group_tests(tests, start_rpc, stop_rpc);
}
