#include "unit/tracker/tracking.h"

struct config *cfg;
struct node *node;
struct sysroot *root;
struct tracker *tracker;
const char *vf[N_VFS];
char *folder;

unsigned changes, notes, bad_notes;
char last_note[EVENT_SIZE];

const char *open_device;
unsigned open_users;
unsigned host_users;
const char *running;
int runs_error;
unsigned store_ms;

static void on_note(void *ctx, bool bad, const char *event)
{
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;

	(void)ctx;
	event_text(&text, event);
	notes++;
	bad_notes += bad;
	snprintf(last_note, sizeof(last_note), "%s", text.s);
}

static void on_change(void *ctx)
{
	(void)ctx;
	changes++;
}

int users(void *ctx, const char *rdma, tracker_user_fn seen, void *arg)
{
	const struct hw_inventory *inv = tracker_node(tracker)->inv;

	(void)ctx;
	if (!open_device)
		return -ENOTSUP;
	for (size_t i = 0; i < inv->n_rdma; i++) {
		const char *name = inv->rdma[i].name;

		if (!rdma || str_eq(name, rdma))
			seen(arg, name, host_users + (str_eq(name, open_device) ? open_users : 0));
	}
	return 0;
}

int runs(void *ctx, const char *uid)
{
	(void)ctx;
	return runs_error ? runs_error : str_eq(uid, running);
}

/* --- the machine: N_VFS VFs that have netdevs --- */

struct hw_inventory *inventory(void)
{
	struct hw_inventory *inv = synth_inventory("switch:2 gpu:1 pf:1 vf:3");

	for (size_t i = 0; i < N_VFS; i++) {
		struct hw_pci *fn = &inv->pci[synth_vf(inv, i)];
		char text[BDF_STRLEN];

		fn->netdev = arena_printf(inv->arena, "vf%zu", i);
		vf[i] = arena_strdup(arena, bdf_format(fn->bdf, text));
	}
	return inv;
}

struct hw_pci *fn_of(struct hw_inventory *inv, size_t i)
{
	return &inv->pci[synth_vf(inv, i)];
}

void set_node(struct hw_inventory *inv)
{
	struct node *before = node;

	node = node_new(inv, cfg, before);
	node_unref(before);
	tracker_update(tracker, node);
}

const char *rdma_of(size_t i)
{
	const struct pool_dev *dev = pool_find(&node->pools[0], vf[i]);

	assert_true(dev && dev->rdma >= 0);
	return arena_strdup(arena, node->inv->rdma[dev->rdma].name);
}

void take_rdma_away(struct hw_inventory *inv, size_t i)
{
	int at = hw_find_rdma(inv, synth_vf(inv, i));

	assert_true(at >= 0);
	inv->n_rdma--;
	memmove(&inv->rdma[at], &inv->rdma[at + 1],
		(inv->n_rdma - (size_t)at) * sizeof(*inv->rdma));
	fn_of(inv, i)->netdev = NULL;
}

void make_tracker(struct ledger *ledger, struct ledger_file *file)
{
	const struct holds_pace pace = { .apart_ms = 1, .mature_ms = 600000, .store_ms = store_ms };

	tracker = tracker_new(
		&(struct tracker_env) { .rpc = rpc,
					.holds = holds_new(ledger, &pace, tracker_now()),
					.file = file,
					.root = root,
					.users = users,
					.note = on_note,
					.changed = on_change });
	tracker->pace.retry_ms = 20;
	tracker->pace.drain_ms = 5;
	tracker->pace.late_ms = 20;
	tracker->pace.round_ms = 20;
	tracker->pace.apart_ms = 1;
	tracker->pace.list_ms = 30;
	tracker->pace.quiet_ms = 1;
	tracker->pace.uids_ms = 1;
	holds_event(tracker->holds,
		    &(struct holds_event) { .kind = HOLDS_CLAIMS_READ, .complete = true },
		    tracker_now());
	set_node(inventory());
}

static void begin_tracker(void *arg)
{
	(void)arg;
	make_tracker(ledger_new(), NULL);
}

void end_tracker(void *arg)
{
	(void)arg;
	tracker_free(tracker);
	tracker = NULL;
}

int set_up(void **state)
{
	arena_set_up(state);
	cfg = config_default();
	folder = fixture_folder();
	assert_int_equal(sysroot_open(folder, &root, NULL), 0);
	changes = notes = bad_notes = open_users = host_users = 0;
	last_note[0] = '\0';
	open_device = running = NULL;
	runs_error = 0;
	store_ms = 60000; /* the disk may be busy */
	on_rpc(begin_tracker, NULL);
	return 0;
}

int tear_down(void **state)
{
	(void)state;
	on_rpc(end_tracker, NULL);
	node = node_unref(node);
	sysroot_close(root);
	config_free(cfg);
	arena_tear_down(state);
	fixture_remove_tree(folder);
	free(folder);
	return 0;
}

/* --- what the kubelet says and does --- */

struct pod_list list_of(const struct says *says, size_t n)
{
	struct pod_list list = { arena_array(arena, n, sizeof(*list.v)), n };

	for (size_t i = 0; i < n; i++) {
		struct held *held = arena_alloc(arena, sizeof(*held));
		struct pod_container *c = arena_alloc(arena, sizeof(*c));
		const char **ids = arena_array(arena, 1, sizeof(*ids));

		ids[0] = says[i].id;
		*held = (struct held) { "rdma/vf", { ids, 1 } };
		*c = (struct pod_container) { .name = "main", .held = held, .n_held = 1 };
		list.v[i] = (struct pod) { "default", says[i].pod, c, 1 };
	}
	return list;
}

void told(struct pod_list list)
{
	usleep(2000);
	tracker_hear(tracker, &(struct pods_said) {
				      .all = true, .pods = &list, .asked_ms = clock_mono_ms() });
	usleep(2000);
}

const struct ledger_hold *hold_of(size_t i)
{
	return ledger_find(ledger_now(tracker_ledger(tracker)), vf[i]);
}

bool is_draining(size_t i)
{
	return hold_of(i) && hold_of(i)->draining;
}

struct holds_facts facts_of(size_t i)
{
	return tracker_facts(tracker, vf[i], arena);
}

void give(size_t i, const char *pod, const char *uid)
{
	const struct ledger_owner o = { pod ? "default" : "", pod ? pod : "", uid ? uid : "",
					pod ? "main" : "", NULL };
	struct holds_facts facts = facts_of(i);
	const struct holds_vf v = { vf[i], "rdma/vf", NULL, &facts };
	const struct ledger_decision d = { .resource = "rdma/vf", .owner = o, .asked = 1 };
	uint64_t number = holds_decide(tracker->holds, &d);
	const char *why;

	holds_event(tracker->holds,
		    &(struct holds_event) { .kind = HOLDS_ALLOCATED,
					    .given = &v,
					    .n = 1,
					    .owner = &o,
					    .number = number },
		    tracker_now());
	assert_true(
		holds_start(tracker->holds, &v, 1, &o, number, false, tracker_now(), arena, &why));
	tracker_save(tracker, NULL, NULL);
}
