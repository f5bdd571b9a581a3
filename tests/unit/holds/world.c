#include "unit/holds/world.h"

struct world w;

/* --- time --- */

void pass(int64_t ms)
{
	w.now.mono_ms += ms;
	w.now.wall_ms += ms;
}

/* --- who --- */

struct ledger_owner who(const char *text)
{
	struct ledger_owner o = { "", "", "", "", "" };
	char *copy = arena_strdup(w.a, text), *slash = strchr(copy, '/'), *hash;

	if (!*text)
		return o;
	if (*text == '#') /* an init container, as the checkpoint knows it */
		return (struct ledger_owner) { "", "", copy + 1, "setup", "" };
	if (slash)
		*slash = '\0';
	hash = strchr(copy, '#');
	if (hash)
		*hash = '\0';
	return (struct ledger_owner) { "default", copy, hash ? hash + 1 : "",
				       slash ? slash + 1 : "main", "" };
}

/* --- the machine --- */

bool runs(const char *uid)
{
	for (size_t i = 0; i < w.n_runs; i++) {
		if (!strcmp(w.runs[i], uid))
			return true;
	}
	return false;
}

static enum holds_cgroup cgroup_of(const char *uid)
{
	if (w.cgroups_off)
		return HOLDS_CGROUP_OFF;
	if (!uid || !*uid || w.cgroups_unreadable)
		return HOLDS_CGROUP_UNKNOWN;
	return runs(uid) ? HOLDS_CGROUP_RUNS : HOLDS_CGROUP_EMPTY;
}

struct holds_verdict judge(const char *vf)
{
	struct holds_facts facts = facts_of(vf);

	return holds_judge(w.h, &(struct holds_view) { .vf = vf, .resource = RES, .facts = &facts },
			   w.a);
}

struct holds_facts facts_of(const char *vf)
{
	struct holds_facts f = { .uid = arena_strdup(w.a,
						     hold_of(vf) ? hold_of(vf)->owner.uid : "") };

	f.unreadable =
		w.unreadable && !strcmp(w.unreadable, vf) ? "the PCI bus could not be read" : NULL;
	f.open = w.open && !strcmp(w.open, vf) ? "its RDMA device is open (1 context)" : NULL;
	f.away = w.away && !strcmp(w.away, vf)
			 ? "its RDMA device is in a container's network namespace"
			 : NULL;
	f.cgroup = cgroup_of(f.uid);
	return f;
}

static void probe_vf(const char *vf)
{
	struct holds_facts f = facts_of(vf);

	holds_event(w.h, &(struct holds_event) { .kind = HOLDS_PROBED, .vf = vf, .facts = &f },
		    w.now);
}

static void hear(const char *event)
{
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;

	event_text(&text, event);
	snprintf(w.last, sizeof(w.last), "%s", text.s);
}

void settle(void)
{
	struct holds_action action;

	while (holds_next(w.h, &action)) {
		if (action.kind == HOLDS_PROBE) {
			probe_vf(action.text);
		} else if (action.kind == HOLDS_SAY) {
			w.said++;
			w.bad += action.bad;
			hear(action.text);
		} else {
			w.relists++;
		}
	}
}

static void look_at_unknown(void)
{
	const struct ledger_owner *owner;
	const char *slot;

	for (size_t i = 0; (slot = holds_unknown(w.h, i, &owner)); i++)
		holds_event(w.h,
			    &(struct holds_event) { .kind = HOLDS_SLOT_PROBED,
						    .slot = slot,
						    .cgroup = cgroup_of(owner->uid) },
			    w.now);
}

void tick(void)
{
	for (size_t i = ledger_holds(holds_ledger(w.h)); i-- > 0;) {
		if (holds_wants_probe(w.h, i, w.now))
			probe_vf(arena_strdup(w.a, ledger_hold_at(holds_ledger(w.h), i)->vf));
	}
	look_at_unknown();
	settle();
}

void run_pod(const char *pod)
{
	w.runs[w.n_runs++] = who(pod).uid;
}

void end_pod(const char *pod)
{
	const char *uid = who(pod).uid;

	for (size_t i = w.n_runs; i-- > 0;) {
		if (!strcmp(w.runs[i], uid))
			w.runs[i] = w.runs[--w.n_runs];
	}
}

/* --- the start and the end of the daemon --- */

static void start_daemon(struct ledger *ledger)
{
	w.h = holds_new(ledger, &holds_default_pace, w.now);
	holds_event(w.h, &(struct holds_event) { .kind = HOLDS_KUBELET, .epoch = w.epoch }, w.now);
}

static void begin_world(struct ledger *ledger)
{
	memset(&w, 0, sizeof(w));
	w.a = arena_new(16384);
	w.now = (struct holds_now) { .mono_ms = 1000000, .wall_ms = 1700000000000 };
	w.epoch = 1;
	start_daemon(ledger);
}

struct ledger *copy_of_ledger(void)
{
	struct strbuf text = STRBUF_INIT;
	struct ledger *copy = NULL;

	ledger_write(holds_ledger(w.h), &text);
	assert_int_equal(ledger_read(text.s, text.len, "ledger", &copy, NULL), 0);
	strbuf_done(&text);
	return copy;
}

void restart(struct ledger *on_disk)
{
	holds_free(w.h);
	pass(2000);
	start_daemon(on_disk);
}

void records_read(void)
{
	holds_event(w.h, &(struct holds_event) { .kind = HOLDS_CLAIMS_READ, .complete = true },
		    w.now);
	settle();
}

int set_up(void **state)
{
	(void)state;
	begin_world(ledger_new());
	records_read();
	return 0;
}

int tear_down(void **state)
{
	(void)state;
	holds_free(w.h);
	arena_free(w.a);
	return 0;
}

void claim(const char *pod, const char *slot, const char *vf, uint64_t number)
{
	const struct holds_claim c = { .vf = vf,
				       .resource = RES,
				       .slot = slot,
				       .owner = who(pod),
				       .number = number,
				       .source = slot ? "CDI spec" : "map.json" };

	holds_event(w.h, &(struct holds_event) { .kind = HOLDS_CLAIMED, .claim = &c }, w.now);
}

/* --- what the kubelet says --- */

static struct holds_pod pod_of(const char *text)
{
	struct ledger_owner o = who(text);
	const char **containers = arena_array(w.a, 1, sizeof(*containers));

	containers[0] = o.container;
	return (struct holds_pod) { o.ns, o.pod, containers, 1 };
}

static bool is_slot(const char *id)
{
	return strncmp(id, "0000:", 5) != 0;
}

void answer(const char *get, int64_t asked_ms, uint64_t epoch, const struct says *says, size_t n)
{
	struct holds_pod *pods = arena_array(w.a, n, sizeof(*pods));
	struct holds_seen *seen = arena_array(w.a, n, sizeof(*seen));
	struct holds_answer said = { .epoch = epoch,
				     .asked_ms = asked_ms,
				     .all = !get,
				     .ns = get ? "default" : NULL,
				     .pod = get,
				     .active_only = w.active_only,
				     .pods = pods,
				     .n_pods = n,
				     .seen = seen };

	for (size_t i = 0; i < n; i++) {
		struct ledger_owner o = who(says[i].pod);

		pods[i] = pod_of(says[i].pod);
		if (says[i].id)
			seen[said.n_seen++] =
				(struct holds_seen) { RES,   says[i].id,  o.ns,
						      o.pod, o.container, is_slot(says[i].id) };
	}
	holds_event(w.h, &(struct holds_event) { .kind = HOLDS_ANSWERED, .answer = &said }, w.now);
	settle();
}

void new_kubelet(void)
{
	w.epoch++;
	holds_event(w.h, &(struct holds_event) { .kind = HOLDS_KUBELET, .epoch = w.epoch }, w.now);
	settle();
}

void checkpoint(const char *uid, const char *id)
{
	const struct holds_entry e = { uid, "main", RES, id };

	holds_event(w.h, &(struct holds_event) { .kind = HOLDS_CHECKPOINT, .entries = &e, .n = 1 },
		    w.now);
	settle();
}

/* --- early binding --- */

struct holds_vf vf_of(const char *vf)
{
	struct holds_facts *f = arena_alloc(w.a, sizeof(*f));

	*f = facts_of(vf);
	return (struct holds_vf) { vf, RES, NULL, f };
}

uint64_t decide(const char *pod, const char *vf)
{
	const struct ledger_decision d = { .at_ms = w.now.wall_ms,
					   .resource = RES,
					   .owner = who(pod),
					   .asked = 1,
					   .chosen = &vf,
					   .n_chosen = 1 };

	return holds_decide(w.h, &d);
}

uint64_t allocate(const char *pod, const char *vf)
{
	struct ledger_owner o = who(pod);
	struct holds_vf v = vf_of(vf);
	uint64_t number = decide(pod, vf);

	holds_event(w.h,
		    &(struct holds_event) { .kind = HOLDS_ALLOCATED,
					    .given = &v,
					    .n = 1,
					    .owner = &o,
					    .number = number },
		    w.now);
	settle();
	return number;
}

bool starts_by(const char *pod, const char *vf, uint64_t decision, bool moves)
{
	struct ledger_owner o = who(pod);
	struct holds_vf v = vf_of(vf);
	bool yes;

	w.why = "";
	yes = holds_start(w.h, &v, 1, &o, decision, moves, w.now, w.a, &w.why);
	settle();
	return yes;
}

bool starts(const char *pod, const char *vf)
{
	return starts_by(pod, vf, 0, false);
}

void begin_pod(const char *pod, const char *vf)
{
	uint64_t number = allocate(pod, vf);

	run_pod(pod);
	assert_true(starts_by(pod, vf, number, false));
	tick();
}

/* --- late binding --- */

void promise(const char *slot)
{
	holds_event(w.h, &(struct holds_event) { .kind = HOLDS_PROMISED, .slots = &slot, .n = 1 },
		    w.now);
	settle();
}

bool may_give(const char *vf)
{
	struct holds_facts f = facts_of(vf);
	bool yes;

	w.why = "";
	yes = holds_may_give(w.h, vf, RES, &f, w.now, w.a, &w.why);
	settle();
	return yes;
}

uint64_t bind_slot(const char *pod, const char *slot, const char *vf)
{
	struct ledger_owner o = who(pod);
	uint64_t number = decide(pod, vf);
	struct holds_vf v;

	assert_true(may_give(vf));
	v = vf_of(vf);
	holds_event(w.h,
		    &(struct holds_event) { .kind = HOLDS_BOUND,
					    .slot = slot,
					    .given = &v,
					    .owner = &o,
					    .number = number },
		    w.now);
	settle();
	return number;
}

uint64_t begin_late(const char *pod, const char *slot, const char *vf)
{
	uint64_t number;

	promise(slot);
	run_pod(pod);
	number = bind_slot(pod, slot, vf);
	holds_event(w.h, &(struct holds_event) { .kind = HOLDS_CONFIRMED, .slot = slot }, w.now);
	tick();
	return number;
}

const char *slot_starts(const char *pod, const char *slot, bool usable)
{
	struct ledger_owner o = who(pod);
	const char *vf = holds_slot_start(w.h, slot, &o, usable, w.now);

	vf = vf ? arena_strdup(w.a, vf) : NULL;
	settle();
	return vf;
}

/* --- what is so now --- */

const struct ledger_hold *hold_of(const char *vf)
{
	return ledger_find(holds_ledger(w.h), vf);
}

bool is_held_by(const char *vf, const char *pod)
{
	const struct ledger_hold *hold = hold_of(vf);
	struct ledger_owner o = who(pod);

	return hold && !strcmp(hold->owner.pod, o.pod) &&
	       (!*o.uid || !strcmp(hold->owner.uid, o.uid));
}

bool is_draining(const char *vf)
{
	return hold_of(vf) && hold_of(vf)->draining;
}

bool says(const char *part)
{
	return strstr(w.last, part) != NULL;
}
