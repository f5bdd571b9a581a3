/*
 * A machine, a kubelet and a clock as plain values, so that a test of the room holds reads as a
 * story. A pod is written "web-0", or "web-0#u1" with its UID, or "web-0#u1/init" with a container
 * other than main; "#u1" is known by its UID alone; "" is a container whose pod is not known. What
 * holds asks for (looks) is answered from the values here as soon as something happens.
 */
#ifndef RAILMATE_TESTS_UNIT_HOLDS_WORLD_H
#define RAILMATE_TESTS_UNIT_HOLDS_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/mem.h"
#include "base/str.h"
#include "holds/holds.h"
#include "ledger/ledger.h"

#define RES "rdma/vf"
#define V0  "0000:18:00.1"
#define V1  "0000:18:00.2"
#define V2  "0000:29:00.1"
#define V3  "0000:29:00.2"
#define S0  "rdma_vf-n0-0"
#define S1  "rdma_vf-n0-1"

static struct {
	struct holds *h;
	struct arena *a;
	struct holds_now now;
	uint64_t epoch;
	bool active_only;     /* the kubelet shows active pods only */
	const char *runs[64]; /* UIDs of pods whose cgroup has processes */
	size_t n_runs;
	bool cgroups_unreadable, cgroups_off;
	const char *open, *away, *unreadable; /* the VF that is so; NULL: none */
	const char *why;		      /* of the last refusal */
	unsigned said, bad, relists;
	char last[640];
} w;

/* --- time --- */

static inline void pass(int64_t ms)
{
	w.now.mono_ms += ms;
	w.now.wall_ms += ms;
}

/* --- who --- */

static inline struct ledger_owner who(const char *text)
{
	struct ledger_owner o = { "", "", "", "" };
	char *copy = arena_strdup(w.a, text), *slash = strchr(copy, '/'), *hash;

	if (!*text)
		return o;
	if (*text == '#') /* an init container, as the checkpoint knows it */
		return (struct ledger_owner) { "", "", copy + 1, "setup" };
	if (slash)
		*slash = '\0';
	hash = strchr(copy, '#');
	if (hash)
		*hash = '\0';
	return (struct ledger_owner) { "default", copy, hash ? hash + 1 : "",
				       slash ? slash + 1 : "main" };
}

/* --- the machine --- */

static inline bool runs(const char *uid)
{
	for (size_t i = 0; i < w.n_runs; i++) {
		if (!strcmp(w.runs[i], uid))
			return true;
	}
	return false;
}

static inline enum holds_cgroup cgroup_of(const char *uid)
{
	if (w.cgroups_off)
		return HOLDS_CGROUP_OFF;
	if (!uid || !*uid || w.cgroups_unreadable)
		return HOLDS_CGROUP_UNKNOWN;
	return runs(uid) ? HOLDS_CGROUP_RUNS : HOLDS_CGROUP_EMPTY;
}

static inline struct holds_facts facts_of(const char *vf)
{
	struct holds_facts f = { .uid = arena_strdup(w.a, holds_uid_of(w.h, vf)) };

	f.unreadable =
		w.unreadable && !strcmp(w.unreadable, vf) ? "the PCI bus could not be read" : NULL;
	f.open = w.open && !strcmp(w.open, vf) ? "its RDMA device is open (1 context)" : NULL;
	f.away = w.away && !strcmp(w.away, vf)
			 ? "its RDMA device is in a container's network namespace"
			 : NULL;
	f.cgroup = cgroup_of(f.uid);
	return f;
}

static inline void look_at(const char *vf)
{
	struct holds_facts f = facts_of(vf);

	holds_looked(w.h, vf, &f, w.now);
}

/* What follows from what has happened. */
static inline void settle(void)
{
	struct holds_action action;

	while (holds_next(w.h, &action)) {
		if (action.kind == HOLDS_LOOK) {
			look_at(action.text);
		} else if (action.kind == HOLDS_SAY) {
			w.said++;
			w.bad += action.bad;
			snprintf(w.last, sizeof(w.last), "%s", action.text);
		} else {
			w.relists++;
		}
	}
}

static inline void look_at_unknown(void)
{
	const struct ledger_owner *owner;
	const char *slot;

	for (size_t i = 0; (slot = holds_unknown(w.h, i, &owner)); i++)
		holds_unknown_looked(w.h, slot, cgroup_of(owner->uid));
}

/* The timer of a second or so. */
static inline void tick(void)
{
	for (size_t i = ledger_holds(holds_ledger(w.h)); i-- > 0;) {
		if (holds_wants_look(w.h, i, w.now))
			look_at(arena_strdup(w.a, ledger_hold_at(holds_ledger(w.h), i)->vf));
	}
	look_at_unknown();
	settle();
}

/* The pod's containers run; they end. */
static inline void run_pod(const char *pod)
{
	w.runs[w.n_runs++] = who(pod).uid;
}

static inline void end_pod(const char *pod)
{
	const char *uid = who(pod).uid;

	for (size_t i = w.n_runs; i-- > 0;) {
		if (!strcmp(w.runs[i], uid))
			w.runs[i] = w.runs[--w.n_runs];
	}
}

/* --- the start and the end of the daemon --- */

static inline void start_daemon(struct ledger *ledger)
{
	w.h = holds_new(ledger, &holds_default_pace, w.now);
	holds_kubelet(w.h, w.epoch, w.now);
}

static inline void begin_world(struct ledger *ledger)
{
	memset(&w, 0, sizeof(w));
	w.a = arena_new(16384);
	w.now = (struct holds_now) { .mono_ms = 1000000, .wall_ms = 1700000000000 };
	w.epoch = 1;
	start_daemon(ledger);
}

static inline struct ledger *copy_of_ledger(void)
{
	struct strbuf text = STRBUF_INIT;
	struct ledger *copy = NULL;

	ledger_write(holds_ledger(w.h), &text);
	assert_int_equal(ledger_read(text.s, text.len, "ledger", &copy, NULL), 0);
	strbuf_done(&text);
	return copy;
}

/* The daemon ends and starts; what is on disk is taken. Records are still to be read. */
static inline void restart(struct ledger *on_disk)
{
	holds_free(w.h);
	pass(2000);
	start_daemon(on_disk);
}

static inline void records_read(void)
{
	holds_claims_read(w.h, true, w.now);
	settle();
}

static inline int set_up(void **state)
{
	(void)state;
	begin_world(ledger_new());
	records_read();
	return 0;
}

static inline int tear_down(void **state)
{
	(void)state;
	holds_free(w.h);
	arena_free(w.a);
	return 0;
}

/* A record of another kind: a CDI spec (slot) or a map.json (slot NULL). */
static inline void claim(const char *pod, const char *slot, const char *vf, uint64_t number)
{
	const struct holds_claim c = { .vf = vf,
				       .resource = RES,
				       .slot = slot,
				       .owner = who(pod),
				       .number = number,
				       .source = slot ? "CDI spec" : "map.json" };

	holds_claimed(w.h, &c, w.now);
}

/* --- what the kubelet says --- */

struct says {
	const char *pod; /* "web-0", "web-0/init" */
	const char *id;	 /* NULL: the pod is there, and has none */
};

static inline struct holds_pod pod_of(const char *text)
{
	struct ledger_owner o = who(text);
	const char **containers = arena_array(w.a, 1, sizeof(*containers));

	containers[0] = o.container;
	return (struct holds_pod) { o.ns, o.pod, containers, 1 };
}

static inline bool is_slot(const char *id)
{
	return strncmp(id, "0000:", 5) != 0;
}

/* The answer of a kubelet to a question of that time. */
static inline void answer(const char *get, int64_t asked_ms, uint64_t epoch,
			  const struct says *says, size_t n)
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
	holds_answered(w.h, &said, w.now);
	settle();
}

#define SAYS(...)                                                                                  \
	(const struct says[]) { __VA_ARGS__ }, ARRAY_LEN(((const struct says[]) { __VA_ARGS__ }))

/* A List of now, in which nothing is young. */
#define kubelet_lists(...)	  (pass(2000), answer(NULL, w.now.mono_ms, w.epoch, SAYS(__VA_ARGS__)))
#define kubelet_lists_nothing()	  (pass(2000), answer(NULL, w.now.mono_ms, w.epoch, NULL, 0))
#define kubelet_gets(pod, ...)	  (pass(2000), answer(pod, w.now.mono_ms, w.epoch, SAYS(__VA_ARGS__)))
#define kubelet_gets_nothing(pod) (pass(2000), answer(pod, w.now.mono_ms, w.epoch, NULL, 0))

static inline void new_kubelet(void)
{
	w.epoch++;
	holds_kubelet(w.h, w.epoch, w.now);
	settle();
}

/* Its checkpoint: the pod with this UID has the id. */
static inline void checkpoint(const char *uid, const char *id)
{
	const struct holds_entry e = { uid, "main", RES, id };

	holds_checkpoint(w.h, &e, 1, w.now);
	settle();
}

/* --- early binding --- */

static inline struct holds_vf vf_of(const char *vf)
{
	struct holds_facts *f = arena_alloc(w.a, sizeof(*f));

	*f = facts_of(vf);
	return (struct holds_vf) { vf, RES, NULL, f };
}

static inline uint64_t decide(const char *pod, const char *vf)
{
	const struct ledger_decision d = { .at_ms = w.now.wall_ms,
					   .resource = RES,
					   .owner = who(pod),
					   .asked = 1,
					   .chosen = &vf,
					   .n_chosen = 1 };

	return holds_decide(w.h, &d);
}

/* Allocate; returns the decision. */
static inline uint64_t allocate(const char *pod, const char *vf)
{
	struct ledger_owner o = who(pod);
	struct holds_vf v = vf_of(vf);
	uint64_t number = decide(pod, vf);

	holds_allocated(w.h, &v, 1, &o, number, w.now);
	settle();
	return number;
}

/* PreStartContainer: may it start? w.why if not. */
static inline bool starts_by(const char *pod, const char *vf, uint64_t decision, bool moves)
{
	struct ledger_owner o = who(pod);
	struct holds_vf v = vf_of(vf);
	bool yes;

	w.why = "";
	yes = holds_start(w.h, &v, 1, &o, decision, moves, w.now, w.a, &w.why);
	settle();
	return yes;
}

static inline bool starts(const char *pod, const char *vf)
{
	return starts_by(pod, vf, 0, false);
}

/* Allocate, sandbox, PreStartContainer, and the container runs. */
static inline void begin_pod(const char *pod, const char *vf)
{
	uint64_t number = allocate(pod, vf);

	run_pod(pod);
	assert_true(starts_by(pod, vf, number, false));
	tick();
}

/* --- late binding --- */

static inline void promise(const char *slot)
{
	holds_promised(w.h, &slot, 1, w.now);
	settle();
}

static inline bool may_give(const char *vf)
{
	struct holds_facts f = facts_of(vf);
	bool yes;

	w.why = "";
	yes = holds_may_give(w.h, vf, RES, &f, w.now, w.a, &w.why);
	settle();
	return yes;
}

/* It is bound, and may come to nothing yet. */
static inline uint64_t bind_slot(const char *pod, const char *slot, const char *vf)
{
	struct ledger_owner o = who(pod);
	uint64_t number = decide(pod, vf);
	struct holds_vf v;

	assert_true(may_give(vf));
	v = vf_of(vf);
	holds_bind(w.h, slot, &v, &o, number, w.now);
	settle();
	return number;
}

static inline uint64_t begin_late(const char *pod, const char *slot, const char *vf)
{
	uint64_t number;

	promise(slot);
	run_pod(pod);
	number = bind_slot(pod, slot, vf);
	holds_confirm(w.h, slot, w.now);
	tick();
	return number;
}

static inline const char *slot_starts(const char *pod, const char *slot, bool usable)
{
	struct ledger_owner o = who(pod);
	const char *vf = holds_slot_start(w.h, slot, &o, usable, w.now);

	vf = vf ? arena_strdup(w.a, vf) : NULL;
	settle();
	return vf;
}

/* --- what is so now --- */

static inline const struct ledger_hold *hold_of(const char *vf)
{
	return ledger_find(holds_ledger(w.h), vf);
}

static inline bool is_held_by(const char *vf, const char *pod)
{
	const struct ledger_hold *hold = hold_of(vf);
	struct ledger_owner o = who(pod);

	return hold && !strcmp(hold->owner.pod, o.pod) &&
	       (!*o.uid || !strcmp(hold->owner.uid, o.uid));
}

static inline bool is_draining(const char *vf)
{
	return hold_of(vf) && hold_of(vf)->draining;
}

static inline bool says(const char *part)
{
	return strstr(w.last, part) != NULL;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

#endif
