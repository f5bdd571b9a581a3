/*
 * Who is still there? The kubelet tells nobody that a pod has gone: it is asked, pod by pod, a few
 * times a second at most (its limit is shared by all clients of the node). Get has no side effect;
 * a List has one (docs/design/kubelet.md §2.2), so it is the last resort.
 */
#include "tracker/tracker-internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/pending.h"
#include "base/str.h"
#include "kubeclient/podres.h"
#include "kubemsg/messages.h"
#include "pool/node.h"
#include "rpc/rpc.h"
#include "tracker/tracker.h"

#define ANSWER_MS   1000
#define TICK_MIN_MS 50

static void tick(void *arg);

static void tick_in(struct tracker *k, unsigned ms)
{
	if (!k->tick && !k->asked && k->podres &&
	    (ledger_holds(tracker_ledger(k)) || !holds_is_settled(k->holds)))
		k->tick = rpc_after(k->rpc, ms, tick, k);
}

void tracker_watch_wake(struct tracker *k)
{
	tick_in(k, k->pace.look_ms);
}

void tracker_watch(struct tracker *k, struct podres *podres)
{
	k->podres = podres;
	podres_subscribe(podres, tracker_hear, k);
	holds_set_blind(k->holds, false);
	tick_in(k, k->pace.look_ms);
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
	const struct ledger_owner *best = NULL;

	for (size_t i = 0; i < ledger_holds(tracker_ledger(k)); i++) {
		const struct ledger_owner *o = &ledger_hold_at(tracker_ledger(k), i)->owner;

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

static size_t count_pods(const struct tracker *k)
{
	size_t n = ledger_holds(tracker_ledger(k)), pods = 0;
	_cleanup_free_ const struct ledger_owner **all = xcalloc(n, sizeof(*all));

	for (size_t i = 0; i < n; i++)
		all[i] = &ledger_hold_at(tracker_ledger(k), i)->owner;
	qsort(all, n, sizeof(*all), by_owner);
	for (size_t i = 0; i < n; i++)
		pods += i == 0 || by_owner(&all[i - 1], &all[i]) != 0;
	return pods;
}

/* Once around in look_ms, however many have come since the last one; sooner when somebody has to be
 * missed once more. */
static unsigned pause_of(const struct tracker *k)
{
	unsigned round = k->pace.look_ms, ms;
	size_t n = count_pods(k);

	if (holds_misses_some(k->holds) && k->pace.apart_ms < round)
		round = k->pace.apart_ms;
	ms = n ? round / (unsigned)n : round;
	return ms > TICK_MIN_MS ? ms : TICK_MIN_MS;
}

/* --- asking --- */

/* tracker_hear() has been told what the kubelet said. */
static void answered(void *arg, enum podres_result result, const struct pod_list *pods,
		     const char *why)
{
	struct tracker *k = pending_end(arg);

	(void)result;
	(void)pods;
	(void)why;
	if (!k)
		return;
	tick_in(k, pause_of(k));
	tracker_uids_later(k);
}

static void ask_for_all(struct tracker *k)
{
	k->listed_ms = clock_mono_ms();
	podres_list_quietly(k->podres, ANSWER_MS, answered, pending_new(k, &k->asked));
}

/* Nobody's name is on it: Get cannot help. */
static bool has_nameless(const struct tracker *k)
{
	for (size_t i = 0; i < ledger_holds(tracker_ledger(k)); i++) {
		if (!*ledger_hold_at(tracker_ledger(k), i)->owner.pod)
			return true;
	}
	return false;
}

static bool may_list(const struct tracker *k)
{
	int64_t now = clock_mono_ms();

	if (!holds_is_settled(k->holds))
		return now - k->listed_ms >= k->pace.look_ms;
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
	podres_get(k->podres, pod->ns, pod->pod, ANSWER_MS, answered, pending_new(k, &k->asked));
	return true;
}

static void tick(void *arg)
{
	struct tracker *k = arg;
	enum podres_support support = podres_support(k->podres);
	bool asked = false;

	k->tick = NULL;
	holds_set_blind(k->holds, support == PODRES_NOTHING);
	if (k->node && support != PODRES_NOTHING &&
	    (support == PODRES_LIST || has_nameless(k) || !holds_is_settled(k->holds)) &&
	    may_list(k)) {
		ask_for_all(k);
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
		podres_unsubscribe(k->podres, k);
	free(STEAL(k->cursor));
}
