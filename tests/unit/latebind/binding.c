#include "unit/latebind/binding.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include "support/nodes.h"

#define POOL_OF(name, range) POOL_BOUND(name, range, "late")
#define POOL_BOUND(name, range, binding)                                                           \
	"{\"resourcePrefix\": \"rdma\", \"resourceName\": \"" name                                 \
	"\", \"selectors\": {\"isRdma\": true, \"pfNames\": [\"eth0#" range "\", \"eth5#" range    \
	"\", \"eth10#" range "\", \"eth15#" range "\"]}, \"railmate\": {\"binding\": \"" binding   \
	"\"}}"
#define TWO_POOLS "{\"resourceList\": [" POOL_OF("a", "0-1") ", " POOL_OF("b", "2-3") "]}"
#define MIXED_POOLS                                                                                \
	"{\"resourceList\": [" POOL_OF("a", "0-1") ", " POOL_BOUND("e", "2-3", "early") "]}"

#define TIMEOUT_MS 30000 /* a busy machine takes its time */
#define NOTHING	   ((struct bytes) { NULL, 0 })

struct machine machine;
struct tracker *tracker;
struct latebind *latebind;
struct podres *podres;
struct rpc_server *server;
char *cdi_dir, *checkpoint;
struct vfprobe *vfprobe;
const char *rundir, *probe;
unsigned restore_ms;

static struct config *cfg;
static struct records *records;
static char *socket_path;

unsigned notes, changes;
char last_note[EVENT_SIZE];
const char *open_device;
const char *running;

struct pod pods[16];
struct pod_list all_pods;
unsigned lists, gets;
bool silent, hangs;
struct rpc_call *hung;

struct outcome got, other;

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
		rpc_reply(call, RPC_OK, NULL,
			  peer_encode_pod_list(&all_pods, true, rpc_call_arena(call)));
}

static void on_get(void *ctx, struct rpc_call *call, struct bytes request)
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

struct pod_container container(const char *name, const char *holds)
{
	struct pod_container c = { .name = name, .held = arena_array(arena, 4, sizeof(*c.held)) };
	char *text = arena_strdup(arena, holds), *words, *ids;

	for (char *w = strtok_r(text, " ", &words); w; w = strtok_r(NULL, " ", &words)) {
		struct held *h = &c.held[c.n_held++];
		char *equals = strchr(w, '=');

		*equals = '\0';
		h->resource = w;
		h->ids.v = arena_array(arena, 16, sizeof(*h->ids.v));
		for (char *id = strtok_r(equals + 1, ",", &ids); id; id = strtok_r(NULL, ",", &ids))
			h->ids.v[h->ids.n++] = id;
	}
	return c;
}

void pod_with(const char *name, const char *holds, const char *side_holds)
{
	struct pod *p = &pods[all_pods.n++];

	*p = (struct pod) { "default", name, arena_array(arena, 2, sizeof(*p->containers)), 0 };
	p->containers[p->n_containers++] = container("main", holds);
	if (side_holds)
		p->containers[p->n_containers++] = container("side", side_holds);
	all_pods.v = pods;
}

void pod(const char *name, const char *holds)
{
	pod_with(name, holds, NULL);
}

void remove_pod(const char *name)
{
	size_t kept = 0;

	for (size_t i = 0; i < all_pods.n; i++) {
		if (strcmp(pods[i].name, name) != 0)
			pods[kept++] = pods[i];
	}
	all_pods.n = kept;
}

const char *gpus(int first, int last)
{
	struct strbuf s = STRBUF_INIT;
	const char *text;

	for (int i = first; i <= last; i++)
		strbuf_printf(&s, "%s%s", i > first ? "," : "", machine.node->inv->gpu[i].uuid);
	text = arena_strdup(arena, strbuf_str(&s));
	strbuf_done(&s);
	return text;
}

const char *slots(int numa, int first, int last)
{
	struct strbuf s = STRBUF_INIT;
	const char *text;

	for (int i = first; i <= last; i++)
		strbuf_printf(&s, "%srdma_vf-n%d-%d", i > first ? "," : "", numa, i);
	text = arena_strdup(arena, strbuf_str(&s));
	strbuf_done(&s);
	return text;
}

/* --- late binding --- */

static void on_note(void *ctx, const char *event)
{
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;

	(void)ctx;
	event_text(&text, event);
	notes++;
	snprintf(last_note, sizeof(last_note), "%s", text.s);
}

static void on_change(void *ctx)
{
	(void)ctx;
	changes++;
}

static int users(void *ctx, const char *rdma, tracker_user_fn seen, void *arg)
{
	(void)ctx;
	for (size_t i = 0; i < machine.node->inv->n_rdma; i++) {
		const char *name = machine.node->inv->rdma[i].name;

		if (!rdma || str_eq(name, rdma))
			seen(arg, name, open_device && str_eq(name, open_device));
	}
	return 0;
}

static int runs(void *ctx, const char *uid)
{
	(void)ctx;
	return running && strstr(running, uid);
}

void show_cgroups(void *arg)
{
	(void)arg;
	tracker_follow(tracker, NULL, NULL, runs, NULL);
}

static bool claim_specs(void *ctx)
{
	return latebind_claim(ctx);
}

static void tidy_specs(void *ctx)
{
	latebind_tidy(ctx);
}

void make_latebind(void)
{
	const struct latebind_env env = { .rpc = rpc,
					  .root = machine.root,
					  .podres = podres,
					  .tracker = tracker,
					  .cdi_dir = cdi_dir,
					  .checkpoint = checkpoint,
					  .rundir = rundir,
					  .probe = probe,
					  .vfprobe = vfprobe,
					  .settle_ms = 1,
					  .restore_ms = restore_ms,
					  .note = on_note };

	latebind = latebind_new(&env);
	latebind_update(latebind, machine.node);
	records = grant_records_open(&(struct records_env) { rpc, tracker, rundir, claim_specs,
							     tidy_specs, latebind, 5 });
}

void end_latebind(void)
{
	grant_records_close(STEAL(records));
	latebind_free(STEAL(latebind));
}

void make_tracker(struct ledger *ledger)
{
	static const struct holds_pace pace = { .mature_ms = 600000, .store_ms = 3000 };

	tracker = tracker_new(
		&(struct tracker_env) { .rpc = rpc,
					.holds = holds_new(ledger, &pace, tracker_now()),
					.root = machine.root,
					.users = users,
					.changed = on_change });
	tracker->pace.round_ms = tracker->pace.apart_ms = 600000;
	tracker_update(tracker, machine.node);
	tracker_follow(tracker, podres, checkpoint, NULL, NULL);
}

void open_server(void)
{
	static const struct rpc_method methods[] = { { .path = PATH_POD_GET, .unary = on_get },
						     { .path = PATH_POD_LIST, .unary = on_list } };

	assert_int_equal(rpc_server_open(rpc, socket_path, methods, 2, NULL, &server, NULL), 0);
}

void begin_all(void *arg)
{
	(void)arg;
	open_server();
	podres = kubeclient_podres_open(rpc, socket_path);
	make_tracker(ledger_new());
	make_latebind();
}

void end_all(void *arg)
{
	(void)arg;
	end_latebind();
	tracker_free(STEAL(tracker));
	kubeclient_podres_close(STEAL(podres));
	grant_probe_free(STEAL(vfprobe));
	rundir = probe = NULL;
	rpc_server_close(STEAL(server), NULL, NULL);
}

int set_up_with(const char *text)
{
	arena_set_up(NULL);
	assert_int_equal(config_parse(text, strlen(text), "config", NULL, &cfg, NULL, NULL), 0);
	machine = fake_machine_open(MACHINE, cfg);
	socket_path = arena_printf(arena, "%s/pods.sock", machine.dir);
	checkpoint = arena_printf(arena, "%s/checkpoint", machine.dir);
	cdi_dir = arena_printf(arena, "%s/cdi", machine.dir);
	notes = changes = lists = gets = 0;
	last_note[0] = '\0';
	open_device = running = NULL;
	restore_ms = 0;
	silent = hangs = false;
	all_pods = (struct pod_list) { pods, 0 };
	on_rpc(begin_all, NULL);
	return 0;
}

int set_up(void **state)
{
	(void)state;
	return set_up_with(ONE_POOL);
}

int set_up_mixed_pools(void **state)
{
	(void)state;
	return set_up_with(MIXED_POOLS);
}

int set_up_two_pools(void **state)
{
	(void)state;
	return set_up_with(TWO_POOLS);
}

int tear_down(void **state)
{
	(void)state;
	on_rpc(end_all, NULL);
	fake_machine_close(&machine);
	config_free(cfg);
	arena_tear_down(NULL);
	return 0;
}

/* --- binding --- */

static void on_bound(void *arg, const struct err *err, const struct bound *v, size_t n)
{
	struct outcome *o = arg;

	o->done = true;
	o->times++;
	o->code = err ? err->code : 0;
	snprintf(o->why, sizeof(o->why), "%s", err ? err->msg : "");
	o->n = n;
	for (size_t i = 0; i < n; i++) {
		o->slot[i] = arena_strdup(arena, v[i].slot);
		o->vf[i] = arena_strdup(arena, v[i].vf);
		o->resource[i] = arena_strdup(arena, v[i].resource);
	}
}

void bind_fn(void *wish)
{
	struct wish *w = wish;

	latebind_bind(latebind, &w->ids, w->pod, TIMEOUT_MS, on_bound, w->outcome);
}

void prepare_fn(void *claim)
{
	latebind_prepare(latebind, claim, TIMEOUT_MS, on_bound, &got);
}

bool is_done(void)
{
	return got.done;
}

bool other_is_done(void)
{
	return other.done;
}

struct ids ids_of(const char *list)
{
	struct ids ids = { arena_array(arena, 16, sizeof(*ids.v)), 0 };
	char *text = arena_strdup(arena, list), *save;

	for (char *id = strtok_r(text, ",", &save); id; id = strtok_r(NULL, ",", &save))
		ids.v[ids.n++] = id;
	return ids;
}

void bind_pod(const char *list, const struct pod_ref *who)
{
	struct wish w = { ids_of(list), who, &got };

	got = (struct outcome) { 0 };
	on_rpc(bind_fn, &w);
	wait_until(is_done);
	assert_int_equal(got.times, 1);
}

void bind_slots(const char *list)
{
	bind_pod(list, NULL);
	if (got.code)
		fail_msg("not bound: %s", got.why);
}

void bind_fails(const char *list, int code, const char *why)
{
	bind_pod(list, NULL);
	assert_int_equal(got.code, code);
	if (!strstr(got.why, why))
		fail_msg("'%s' does not say '%s'", got.why, why);
}

const struct pool_dev *dev_of(const char *vf)
{
	const struct pool_dev *dev = NULL;

	for (size_t i = 0; !dev && i < machine.node->n_pools; i++)
		dev = pool_find(&machine.node->pools[i], vf);
	assert_non_null(dev);
	return dev;
}

int pf_of(const char *vf)
{
	int pf = machine.node->inv->pci[dev_of(vf)->pci].physfn;

	for (int i = 0; i < 4; i++) {
		if (synth_pf(machine.node->inv, (size_t)i) == pf)
			return i;
	}
	return -1;
}

int count_of_pf(int pf)
{
	int n = 0;

	for (size_t i = 0; i < got.n; i++)
		n += pf_of(got.vf[i]) == pf;
	return n;
}

const char *spec_path_of(const char *slot)
{
	return arena_printf(arena, "%s/railmate.io-vf_%s.json", cdi_dir, slot);
}

const char *text_of_file(const char *path)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	char *text = arena_alloc(arena, 32768);
	ssize_t n = fd >= 0 ? read(fd, text, 32767) : -1;

	return n >= 0 ? text : NULL;
}

const char *spec(const char *slot)
{
	const char *name = arena_printf(arena, "\"name\": \"%s\"", slot), *found = NULL, *text;
	DIR *dir = opendir(cdi_dir);

	for (struct dirent *e = dir ? readdir(dir) : NULL; e; e = readdir(dir)) {
		text = strstr(e->d_name, "railmate.io-vf_")
			       ? text_of_file(arena_printf(arena, "%s/%s", cdi_dir, e->d_name))
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

static void allocated_fn(void *arg)
{
	latebind_allocated(latebind, arg);
}

void allocated(const char *list)
{
	struct ids ids = ids_of(list);

	on_rpc(allocated_fn, &ids);
}

/* Somebody lists pods: what was bound before is told of by that. */
static void list_fn(void *arg)
{
	(void)arg;
	tracker_hear(tracker,
		     &(struct pods_said) { .all = true,
					   .pods = &all_pods,
					   .asked_ms = clock_mono_ms(),
					   .kubelet = kubeclient_podres_state(podres).kubelet });
}

void list_pods(void)
{
	usleep(2000);
	on_rpc(list_fn, NULL);
	usleep(2000);
}

void sweep_fn(void *arg)
{
	(void)arg;
	grant_records_sweep(records);
}

const struct ledger_hold *hold_of(const char *vf)
{
	return ledger_find(ledger_now(tracker_ledger(tracker)), vf);
}

size_t n_holds(void)
{
	return ledger_holds(ledger_now(tracker_ledger(tracker)));
}

void move_to(struct hw_inventory *inv)
{
	struct node *before = machine.node;

	machine.node = node_new(inv, cfg, before);
	machine.pool = &machine.node->pools[0];
	tracker_update(tracker, machine.node);
	latebind_update(latebind, machine.node);
	node_unref(before);
}

void unbind_driver(void *arg)
{
	struct hw_inventory *inv = synth_inventory(MACHINE);
	struct bdf bdf;

	assert_int_equal(bdf_parse(arg, &bdf), 0);
	inv->pci[hw_find_pci(inv, bdf)].driver = NULL;
	move_to(inv);
}

void free_latebind(void *arg)
{
	(void)arg;
	end_latebind();
}
