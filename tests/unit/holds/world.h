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
#include "base/event.h"
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

/* All of it. */
extern struct world {
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
	char last[EVENT_SIZE];
} w;

/* --- time --- */

void pass(int64_t ms);

/* --- who --- */

struct ledger_owner who(const char *text);

/* --- the machine --- */

bool runs(const char *uid);
struct holds_facts facts_of(const char *vf);
/* What the VF of a pool that selects it and calls it healthy is. */
struct holds_verdict judge(const char *vf);
/* What follows from what has happened. */
void settle(void);
/* The timer of a second or so. */
void tick(void);
/* The pod's containers run; they end. */
void run_pod(const char *pod);
void end_pod(const char *pod);

/* --- the start and the end of the daemon --- */

struct ledger *copy_of_ledger(void);
/* The daemon ends and starts; what is on disk is taken. Records are still to be read. */
void restart(struct ledger *on_disk);
void records_read(void);
int set_up(void **state);
int tear_down(void **state);
/* A record of another kind: a CDI spec (slot) or a map.json (slot NULL). */
void claim(const char *pod, const char *slot, const char *vf, uint64_t number);

/* --- what the kubelet says --- */

struct says {
	const char *pod; /* "web-0", "web-0/init" */
	const char *id;	 /* NULL: the pod is there, and has none */
};

/* The answer of a kubelet to a question of that time. */
void answer(const char *get, int64_t asked_ms, uint64_t epoch, const struct says *says, size_t n);

#define SAYS(...)                                                                                  \
	(const struct says[]) { __VA_ARGS__ }, ARRAY_LEN(((const struct says[]) { __VA_ARGS__ }))

/* A List of now, in which nothing is young. */
#define kubelet_lists(...)	  (pass(2000), answer(NULL, w.now.mono_ms, w.epoch, SAYS(__VA_ARGS__)))
#define kubelet_lists_nothing()	  (pass(2000), answer(NULL, w.now.mono_ms, w.epoch, NULL, 0))
#define kubelet_gets(pod, ...)	  (pass(2000), answer(pod, w.now.mono_ms, w.epoch, SAYS(__VA_ARGS__)))
#define kubelet_gets_nothing(pod) (pass(2000), answer(pod, w.now.mono_ms, w.epoch, NULL, 0))

void new_kubelet(void);
/* Its checkpoint: the pod with this UID has the id. */
void checkpoint(const char *uid, const char *id);

/* --- early binding --- */

struct holds_vf vf_of(const char *vf);
/* Allocate; returns the decision. */
uint64_t decide(const char *pod, const char *vf); /* what Allocate writes down first */
uint64_t allocate(const char *pod, const char *vf);
/* PreStartContainer: may it start? w.why if not. */
bool starts_by(const char *pod, const char *vf, uint64_t decision, bool moves);
bool starts(const char *pod, const char *vf);
/* Allocate, sandbox, PreStartContainer, and the container runs. */
void begin_pod(const char *pod, const char *vf);

/* --- late binding --- */

void promise(const char *slot);
bool may_give(const char *vf);
/* It is bound, and may come to nothing yet. */
uint64_t bind_slot(const char *pod, const char *slot, const char *vf);
uint64_t begin_late(const char *pod, const char *slot, const char *vf);
const char *slot_starts(const char *pod, const char *slot, bool usable);

/* --- what is so now --- */

const struct ledger_hold *hold_of(const char *vf);
bool is_held_by(const char *vf, const char *pod);
bool is_draining(const char *vf);
bool says(const char *part);

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

#endif
