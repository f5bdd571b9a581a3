/*
 * Which holders are still there? The kubelet does not report that a pod has gone: it is asked, pod
 * by pod, a few times a second at most (its limit is shared by all clients of the node). Get has no
 * side effect; a List has one (docs/design/kubelet.md §2.2), so it is the last resort.
 */
#include "tracker/tracker-internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/pending.h"
#include "kubeclient/podres.h"
#include "kubemsg/messages.h"
#include "pool/node.h"
#include "rpc/rpc.h"
#include "tracker/tracker.h"

#define ANSWER_MS   1000
#define TICK_MIN_MS 50

static void tick(void *arg);

/* Of holds, and behind them of slots whose VF is not known; NULL: there are no more. */
static const struct ledger_owner *owner_at(const struct tracker *k, size_t i)
{
	size_t n = ledger_holds(tracker_ledger(k));
	const struct ledger_owner *owner = NULL;

	if (i < n)
		return &ledger_hold_at(tracker_ledger(k), i)->owner;
	holds_unknown(k->holds, i - n, &owner);
	return owner;
}

static void tick_in(struct tracker *k, unsigned ms)
{
	if (!k->tick && !k->asked && k->podres &&
	    (owner_at(k, 0) || !holds_status(k->holds).settled))
		k->tick = rpc_after(k->env.rpc, ms, tick, k);
}

void tracker_watch_wake(struct tracker *k)
{
	tick_in(k, k->pace.round_ms);
}

void tracker_watch(struct tracker *k, struct podres *podres)
{
	k->podres = podres;
	kubeclient_podres_subscribe(podres, tracker_hear, k);
	holds_event(k->holds, &(struct holds_event) { .kind = HOLDS_BLIND, .blind = false },
		    tracker_now());
	tick_in(k, k->pace.round_ms);
}

/* --- whose turn is it? --- */

static int owner_cmp(const struct ledger_owner *o, const char *ns, const char *name)
{
	int order = strcmp(o->ns, ns);

	return order ? order : strcmp(o->pod, name);
}

/* The first pod behind that one, in the order of names; NULL: it was the last. */
static const struct ledger_owner *next_owner(const struct tracker *k, const char *ns,
					     const char *name)
{
	const struct ledger_owner *best = NULL, *o;

	for (size_t i = 0; (o = owner_at(k, i)); i++) {
		if (*o->pod && owner_cmp(o, ns, name) > 0 &&
		    (!best || owner_cmp(o, best->ns, best->pod) < 0))
			best = o;
	}
	return best;
}

static int by_owner(const void *a, const void *b)
{
	const struct ledger_owner *x = *(const struct ledger_owner *const *)a;
	const struct ledger_owner *y = *(const struct ledger_owner *const *)b;

	return owner_cmp(x, y->ns, y->pod);
}

/* All holders are asked about within round_ms, however many they are; sooner while one was missing
 * in the last answer and has to be missing in a second one. */
static unsigned pause_of(struct tracker *k)
{
	size_t n = ledger_holds(tracker_ledger(k));
	uint64_t generation = ledger_generation(tracker_ledger(k));
	unsigned round = k->pace.round_ms, ms;

	if (!k->n_pods || k->counted != generation) {
		_cleanup_free_ const struct ledger_owner **all = xcalloc(n, sizeof(*all));

		k->counted = generation;
		k->n_pods = 0;
		for (size_t i = 0; i < n; i++)
			all[i] = &ledger_hold_at(tracker_ledger(k), i)->owner;
		qsort(all, n, sizeof(*all), by_owner);
		for (size_t i = 0; i < n; i++)
			k->n_pods += i == 0 || by_owner(&all[i - 1], &all[i]) != 0;
	}
	if (holds_status(k->holds).misses_some && k->pace.apart_ms < round)
		round = k->pace.apart_ms;
	ms = k->n_pods ? round / (unsigned)k->n_pods : round;
	return ms > TICK_MIN_MS ? ms : TICK_MIN_MS;
}

/* --- asking --- */

/* tracker_hear() has passed the answer on to holds already. */
static void answered(void *arg, enum podres_result result, const struct pod_list *pods,
		     const char *why)
{
	struct tracker *k = pending_end(arg);

	if (!k)
		return;
	tick_in(k, pause_of(k));
	tracker_uids_later(k);
}

/* Has one no pod's name? Get needs one. */
static bool has_nameless(const struct tracker *k)
{
	const struct ledger_owner *o;
	size_t i = 0;

	while ((o = owner_at(k, i)) && *o->pod)
		i++;
	return o;
}

/* A slot without a VF has no owner whose pod a Get could name: is its container there still? */
static bool has_promised(const struct tracker *k)
{
	_cleanup_arena_ struct arena *a = arena_new(1024);
	struct holds_slots slots = holds_slots(k->holds, a);
	size_t i = 0;

	while (i < slots.n_uses && slots.uses[i].vf)
		i++;
	return i < slots.n_uses;
}

static bool may_list(const struct tracker *k)
{
	int64_t now = clock_mono_ms();

	if (!holds_status(k->holds).settled)
		return now - k->listed_ms >= k->pace.round_ms;
	return now - k->listed_ms >= k->pace.list_ms && now - k->busy_ms >= k->pace.quiet_ms;
}

static bool ask_next(struct tracker *k)
{
	const struct ledger_owner *pod = NULL;

	if (k->cursor)
		pod = next_owner(k, k->cursor, k->cursor + strlen(k->cursor) + 1);
	if (!pod)
		pod = next_owner(k, "", "");
	if (!pod)
		return false;
	free(k->cursor);
	k->cursor = xasprintf("%s%c%s", pod->ns, '\0', pod->pod);
	kubeclient_podres_ask(k->podres,
			      &(struct podres_question) { .kind = PODRES_ASK_GET,
							  .ns = pod->ns,
							  .name = pod->pod,
							  .timeout_ms = ANSWER_MS },
			      answered, pending_new(k, &k->asked));
	return true;
}

static void tick(void *arg)
{
	struct tracker *k = arg;
	enum podres_support support = kubeclient_podres_state(k->podres).support;
	bool asked = false;

	k->tick = NULL;
	holds_event(
		k->holds,
		&(struct holds_event) { .kind = HOLDS_BLIND, .blind = support == PODRES_NOTHING },
		tracker_now());
	if (k->node && support != PODRES_NOTHING && may_list(k) &&
	    (support == PODRES_LIST || has_nameless(k) || has_promised(k) ||
	     !holds_status(k->holds).settled)) {
		k->listed_ms = clock_mono_ms();
		kubeclient_podres_ask(k->podres,
				      &(struct podres_question) { .kind = PODRES_ASK_LIST_QUIETLY,
								  .timeout_ms = ANSWER_MS },
				      answered, pending_new(k, &k->asked));
		asked = true;
	} else if (k->node && (support == PODRES_GET || support == PODRES_UNKNOWN)) {
		asked = ask_next(k);
	}
	if (!asked)
		tick_in(k, pause_of(k));
}

void tracker_watch_done(struct tracker *k)
{
	rpc_timer_cancel(STEAL(k->tick));
	pending_cancel(&k->asked);
	if (k->podres)
		kubeclient_podres_subscribe(k->podres, NULL, k);
	free(STEAL(k->cursor));
}
