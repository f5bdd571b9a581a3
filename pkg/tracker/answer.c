/* An answer of PodResources → events for holds. */
#include "tracker/tracker-internal.h"

#include <string.h>

#include "base/arena.h"
#include "hw/bdf.h"
#include "kubeclient/podres.h"
#include "kubemsg/messages.h"
#include "pool/node.h"
#include "pool/slots.h"

/* The answer of the kubelet while it is made into an event of holds. */
struct conversion {
	const struct tracker *k;
	struct holds_answer *answer;
	struct holds_seen *seen;
};

/* Those of the pools, and those of holds whose pool is no longer configured. */
static bool is_ours(const struct tracker *k, const char *resource)
{
	const struct ledger *l = tracker_ledger(k);

	if (node_pool(k->node, resource))
		return true;
	for (size_t i = 0; i < ledger_holds(l); i++) {
		if (!strcmp(ledger_hold_at(l, i)->resource, resource))
			return true;
	}
	return false;
}

/* An id of a pool that bound otherwise before is a VF, or a slot, all the same. */
static void add_container(struct conversion *t, const struct pod *pod,
			  const struct pod_container *c)
{
	struct bdf bdf;
	unsigned number;
	int numa;

	for (size_t i = 0; i < c->n_held; i++) {
		const struct held *held = &c->held[i];

		if (!is_ours(t->k, held->resource))
			continue;
		for (size_t n = 0; n < held->ids.n; n++) {
			const char *id = held->ids.v[n];
			bool slot = pool_slot_parse(held->resource, id, &numa, &number);

			if (slot || bdf_parse(id, &bdf) == 0)
				t->seen[t->answer->n_seen++] =
					(struct holds_seen) { .resource = held->resource,
							      .id = id,
							      .slot = slot,
							      .ns = pod->ns,
							      .pod = pod->name,
							      .container = c->name };
		}
	}
}

size_t tracker_count_ids(const struct pod_list *pods)
{
	size_t n = 0;

	for (size_t p = 0; p < pods->n; p++) {
		for (size_t c = 0; c < pods->v[p].n_containers; c++) {
			for (size_t h = 0; h < pods->v[p].containers[c].n_held; h++)
				n += pods->v[p].containers[c].held[h].ids.n;
		}
	}
	return n;
}

static struct holds_pod pod_of(const struct pod *pod, struct arena *a)
{
	const char **names = arena_array(a, pod->n_containers, sizeof(*names));

	for (size_t i = 0; i < pod->n_containers; i++)
		names[i] = pod->containers[i].name;
	return (struct holds_pod) { pod->ns, pod->name, names, pod->n_containers };
}

void tracker_hear(void *tracker, const struct pods_said *said)
{
	_cleanup_arena_ struct arena *a = arena_new(8192);
	struct tracker *k = tracker;
	const struct pod_list *pods = said->pods;
	struct holds_pod *v = arena_array(a, pods->n, sizeof(*v));
	struct holds_answer answer = {
		.asked_ms = said->asked_ms, .all = said->all, .ns = said->ns, .pod = said->name
	};
	struct conversion t = { .k = k, .answer = &answer };
	const struct holds_entry *entries;
	size_t n_holds, n;

	if (!k->node)
		return;
	t.seen = arena_array(a, tracker_count_ids(pods), sizeof(*t.seen));
	for (size_t p = 0; p < pods->n; p++) {
		v[p] = pod_of(&pods->v[p], a);
		for (size_t c = 0; c < pods->v[p].n_containers; c++)
			add_container(&t, &pods->v[p], &pods->v[p].containers[c]);
	}
	answer.pods = v;
	answer.n_pods = pods->n;
	answer.seen = t.seen;
	if (k->podres) {
		answer.epoch = said->kubelet;
		answer.active_only = kubeclient_podres_state(k->podres).support == PODRES_GET;
		holds_event(k->holds,
			    &(struct holds_event) {
				    .kind = HOLDS_KUBELET,
				    .epoch = kubeclient_podres_state(k->podres).kubelet },
			    tracker_now());
	}
	n_holds = ledger_holds(tracker_ledger(k));
	holds_event(k->holds, &(struct holds_event) { .kind = HOLDS_ANSWERED, .answer = &answer },
		    tracker_now());
	/* Without a UID a hold could be freed by the name of its pod alone. */
	if (ledger_holds(tracker_ledger(k)) > n_holds) {
		n = tracker_checkpoint(k, &entries);
		holds_event(k->holds,
			    &(struct holds_event) {
				    .kind = HOLDS_CHECKPOINT, .entries = entries, .n = n },
			    tracker_now());
	}
	tracker_note_change(k);
}
