/* The kubelet's checkpoint: the UID of the pod that has an id. PodResources does not have it. */
#include "tracker/tracker-internal.h"

#include <sys/stat.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/mem.h"
#include "kubeclient/checkpoint.h"
#include "kubemsg/messages.h"
#include "rpc/rpc.h"

#define ARENA_BYTES (64u << 10)

void tracker_follow(struct tracker *k, struct podres *podres, const char *checkpoint,
		    tracker_runs_fn runs, void *ctx)
{
	if (podres)
		tracker_watch(k, podres);
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

/* A container runs with a VF, and the UID of its pod is not known. */
static bool lacks_uid(const struct tracker *k)
{
	const struct ledger *l = tracker_ledger(k);

	for (size_t i = 0; i < ledger_holds(l); i++) {
		const struct ledger_hold *hold = ledger_hold_at(l, i);

		if (!hold->pending && !hold->draining && !*hold->owner.uid)
			return true;
	}
	return false;
}

/* The pod of a container that started so long ago has a cgroup. */
#define CGROUP_SHOWS_MS 60000

static bool lacks_cgroups(const struct tracker *k)
{
	const struct ledger *l = tracker_ledger(k);

	for (size_t i = 0; k->runs && !k->cgroups_found && i < ledger_holds(l); i++) {
		const struct ledger_hold *hold = ledger_hold_at(l, i);

		if (!hold->pending && !hold->draining && *hold->owner.uid &&
		    clock_wall_ms() - hold->since_ms > CGROUP_SHOWS_MS)
			return true;
	}
	return false;
}

const char *tracker_unseen(struct tracker *k, struct arena *a)
{
	if (lacks_cgroups(k))
		return "no cgroup of a pod was found by its UID: a pod that lives on after it was deleted is not noticed (--cgroup-dir)";
	if (k->told_checkpoint)
		return arena_printf(a, "the kubelet's checkpoint cannot be read: %s",
				    k->entries_err.msg);
	return NULL;
}

/* Before the first container of the node there is none. */
static void tell_unreadable(struct tracker *k)
{
	if (!k->entries_err.code)
		k->told_checkpoint = false;
	if (!k->entries_err.code || k->told_checkpoint || !lacks_uid(k))
		return;
	k->told_checkpoint = true;
	tracker_say(
		k, true,
		"the checkpoint of the kubelet cannot be read: UIDs of pods are not known error=%s",
		k->entries_err.msg);
}

size_t tracker_checkpoint(struct tracker *k, const struct holds_entry **ret)
{
	struct stat st = { 0 };
	struct pod_list pods;

	*ret = NULL;
	if (!k->checkpoint)
		return 0;
	if (stat(k->checkpoint, &st) < 0) {
		err_sys(&k->entries_err, "%s", k->checkpoint);
		tracker_checkpoint_done(k);
		tell_unreadable(k);
		return 0;
	}
	if (!k->entries_arena || k->entries_ino != st.st_ino ||
	    k->entries_mtime.tv_sec != st.st_mtim.tv_sec ||
	    k->entries_mtime.tv_nsec != st.st_mtim.tv_nsec) {
		tracker_checkpoint_done(k);
		k->entries_arena = arena_new(ARENA_BYTES);
		k->entries_ino = st.st_ino;
		k->entries_mtime = st.st_mtim;
		k->entries_err.code = 0;
		pods = kubeclient_checkpoint(k->checkpoint, k->entries_arena, &k->entries_err);
		k->entries = arena_array(k->entries_arena, tracker_count_ids(&pods),
					 sizeof(*k->entries));
		for (size_t p = 0; p < pods.n; p++)
			add_pod(k, &pods.v[p]);
	}
	tell_unreadable(k);
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

/* Reading the checkpoint takes longer than an answer to the kubelet: not while one pod is admitted
 * after the other, but they may never pause. */
static void fill(void *arg)
{
	struct tracker *k = arg;
	const struct holds_entry *v;
	int64_t now = clock_mono_ms();
	bool busy = now - k->busy_ms < k->pace.uids_ms &&
		    now - k->uids_since_ms < k->pace.uids_latest_ms;
	size_t n;

	k->uids = busy ? rpc_after(k->env.rpc, k->pace.uids_ms, fill, k) : NULL;
	if (k->uids)
		return;
	n = tracker_checkpoint(k, &v);
	holds_event(k->holds,
		    &(struct holds_event) { .kind = HOLDS_CHECKPOINT, .entries = v, .n = n },
		    tracker_now());
	tracker_checkpoint_done(k);
	k->uids_filled = ledger_generation(tracker_ledger(k));
	tracker_note_change(k);
}

/* The kubelet writes its checkpoint when the container has got all that it asks for. A UID that is
 * missing after a change of ours is asked for again after the next. */
void tracker_uids_later(struct tracker *k)
{
	const struct ledger *l = tracker_ledger(k);
	const struct ledger_owner *owner;
	bool lacks = false;

	if (!k->checkpoint || k->uids)
		return;
	for (size_t i = 0; k->uids_filled != ledger_generation(l) && i < ledger_holds(l); i++)
		lacks |= !*ledger_hold_at(l, i)->owner.uid && !ledger_hold_at(l, i)->draining;
	/* The ledger does not change with these: once a round. */
	for (size_t i = 0; clock_mono_ms() - k->uids_since_ms >= (int64_t)k->pace.round_ms &&
			   holds_unknown(k->holds, i, &owner);
	     i++)
		lacks |= !*owner->uid;
	if (!lacks)
		return;
	k->uids = rpc_after(k->env.rpc, k->pace.uids_ms, fill, k);
	k->uids_since_ms = clock_mono_ms();
}
