/*
 * Pods that the kubelet has forgotten and whose containers live on (deleted by force, static pods: reference
 * kubelet.md §1.4). With the host's network and nothing open, only the pod's cgroup tells; its name needs the
 * UID, which PodResources does not have and the kubelet's checkpoint has as long as the pod is there.
 */
#include "kubelet/keeper-internal.h"

#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "kubelet/checkpoint.h"
#include "kubelet/keeper.h"
#include "kubelet/messages.h"
#include "rpc/rpc.h"

void keeper_follow(struct keeper *k, const char *checkpoint, keeper_runs_fn runs, void *ctx)
{
	k->checkpoint = checkpoint;
	k->runs = runs;
	k->runs_ctx = ctx;
	keeper_uids_later(k);
}

bool keeper_pod_runs(const struct keeper *k, const struct ledger_hold *hold)
{
	return k->runs && hold->cgroup_uid && k->runs(k->runs_ctx, hold->cgroup_uid);
}

static bool has_id(const struct pod *pod, const char *resource, const char *id)
{
	for (size_t i = 0; i < pod->n_containers; i++) {
		for (size_t h = 0; h < pod->containers[i].n_held; h++) {
			const struct held *held = &pod->containers[i].held[h];

			for (size_t k = 0; !strcmp(held->resource, resource) && k < held->ids.n; k++) {
				if (!strcmp(held->ids.v[k], id))
					return true;
			}
		}
	}
	return false;
}

/* Two pods with one device are the kubelet's mistake: nothing tells which of them this is. */
static const char *uid_of(const struct pod_list *pods, const struct ledger_hold *hold)
{
	const char *id = hold->slot ? hold->slot : hold->vf, *uid = NULL;

	for (size_t i = 0; i < pods->n; i++) {
		if (!has_id(&pods->v[i], hold->resource, id))
			continue;
		if (uid)
			return NULL;
		uid = pods->v[i].name;
	}
	return uid;
}

static bool lacks_uid(const struct ledger_hold *hold)
{
	return !hold->cgroup_uid && !hold->draining;
}

static bool fill_uids(struct keeper *k)
{
	_cleanup_arena_ struct arena *a = arena_new(4096);
	struct pod_list pods = checkpoint_pods(k->checkpoint, a);
	bool filled = false;

	for (size_t i = 0; i < ledger_holds(k->ledger); i++) {
		struct ledger_hold hold = *ledger_hold_at(k->ledger, i);

		if (!lacks_uid(&hold))
			continue;
		hold.cgroup_uid = uid_of(&pods, &hold);
		if (!hold.cgroup_uid)
			continue;
		ledger_put(k->ledger, &hold);
		filled = true;
	}
	return filled;
}

/* Reading the checkpoint takes longer than an answer to the kubelet: not while one pod is admitted after the
 * other, but they may never pause. */
static bool is_too_busy(const struct keeper *k)
{
	int64_t now = clock_mono_ms();

	return now - k->busy_ms < k->pace.uids_ms && now - k->uids_since_ms < k->pace.uids_latest_ms;
}

static void fill(void *arg)
{
	struct keeper *k = arg;

	k->uids = is_too_busy(k) ? rpc_after(k->rpc, k->pace.uids_ms, fill, k) : NULL;
	if (!k->uids && fill_uids(k))
		keeper_save(k, NULL, NULL);
}

/* The kubelet writes its checkpoint when the container has got all that it asks for. */
void keeper_uids_later(struct keeper *k)
{
	for (size_t i = 0; k->runs && !k->uids && i < ledger_holds(k->ledger); i++) {
		if (!lacks_uid(ledger_hold_at(k->ledger, i)))
			continue;
		k->uids = rpc_after(k->rpc, k->pace.uids_ms, fill, k);
		k->uids_since_ms = clock_mono_ms();
	}
}
