/* The kubelet's checkpoint: the UID of the pod that has an id. PodResources does not have it. */
#include "tracker/tracker-internal.h"

#include <string.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/mem.h"
#include "kubeclient/checkpoint.h"
#include "kubemsg/messages.h"
#include "rpc/rpc.h"

#define ARENA_BYTES (64u << 10)

void tracker_follow(struct tracker *k, const char *checkpoint, tracker_runs_fn runs, void *ctx)
{
	k->checkpoint = checkpoint;
	k->runs = runs;
	k->runs_ctx = ctx;
	tracker_uids_later(k);
}

static void add_pod(struct tracker *k, const struct pod *pod)
{
	for (size_t c = 0; c < pod->n_containers; c++) {
		for (size_t h = 0; h < pod->containers[c].n_held; h++) {
			const struct held *held = &pod->containers[c].held[h];

			for (size_t i = 0; i < held->ids.n; i++)
				k->entries[k->n_entries++] =
					(struct holds_entry) { .uid = pod->name,
							       .container = pod->containers[c].name,
							       .resource = held->resource,
							       .id = held->ids.v[i] };
		}
	}
}

static bool is_as_before(struct tracker *k, const struct stat *st)
{
	return k->entries_arena && k->entries_ino == st->st_ino &&
	       k->entries_mtime.tv_sec == st->st_mtim.tv_sec &&
	       k->entries_mtime.tv_nsec == st->st_mtim.tv_nsec;
}

size_t tracker_checkpoint(struct tracker *k, const struct holds_entry **ret)
{
	struct stat st = { 0 };
	struct pod_list pods;

	*ret = NULL;
	if (!k->checkpoint || stat(k->checkpoint, &st) < 0)
		return 0;
	if (!is_as_before(k, &st)) {
		tracker_checkpoint_done(k);
		k->entries_arena = arena_new(ARENA_BYTES);
		k->entries_ino = st.st_ino;
		k->entries_mtime = st.st_mtim;
		pods = checkpoint_pods(k->checkpoint, k->entries_arena);
		k->entries = arena_array(k->entries_arena, tracker_count_ids(&pods),
					 sizeof(*k->entries));
		for (size_t p = 0; p < pods.n; p++)
			add_pod(k, &pods.v[p]);
	}
	*ret = k->entries;
	return k->n_entries;
}

/* An idle daemon keeps no copy of it. */
void tracker_checkpoint_done(struct tracker *k)
{
	arena_free(STEAL(k->entries_arena));
	k->entries = NULL;
	k->n_entries = 0;
}

/* --- holds that lack a UID --- */

static bool lacks_uid(const struct ledger_hold *hold)
{
	return !*hold->owner.uid && !hold->draining;
}

/* Reading the checkpoint takes longer than an answer to the kubelet: not while one pod is admitted
 * after the other, but they may never pause. */
static bool is_too_busy(const struct tracker *k)
{
	int64_t now = clock_mono_ms();

	return now - k->busy_ms < k->pace.uids_ms &&
	       now - k->uids_since_ms < k->pace.uids_latest_ms;
}

static void fill(void *arg)
{
	struct tracker *k = arg;
	const struct holds_entry *v;
	size_t n;

	k->uids = is_too_busy(k) ? rpc_after(k->rpc, k->pace.uids_ms, fill, k) : NULL;
	if (k->uids)
		return;
	n = tracker_checkpoint(k, &v);
	holds_checkpoint(k->holds, v, n, tracker_now());
	tracker_checkpoint_done(k);
	k->uids_filled = ledger_generation(tracker_ledger(k));
	tracker_save(k, NULL, NULL);
}

/* The kubelet writes its checkpoint when the container has got all that it asks for. What it does
 * not know after a change of ours is asked again after the next. */
void tracker_uids_later(struct tracker *k)
{
	const struct ledger *l = tracker_ledger(k);

	if (!k->checkpoint || k->uids || k->uids_filled == ledger_generation(l))
		return;
	for (size_t i = 0; i < ledger_holds(l); i++) {
		if (!lacks_uid(ledger_hold_at(l, i)))
			continue;
		k->uids = rpc_after(k->rpc, k->pace.uids_ms, fill, k);
		k->uids_since_ms = clock_mono_ms();
		return;
	}
}
