/* Bound VFs → what the container gets: as early binding gives it, for all pools of the container
 * together. */
#include "latebind/latebind-internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"
#include "choice/slots.h"
#include "config/config.h"
#include "grant/contents.h"
#include "pool/node.h"
#include "render/cdi.h"
#include "tracker/tracker.h"

#define DOUBT_EVERY_MS 60000

/* --- what it has --- */

static struct ids vfs_of_pool(const struct request *r, const struct pool *pool)
{
	struct ids ids = { arena_array(r->arena, r->n_bindings, sizeof(*ids.v)), 0 };

	for (size_t i = 0; i < r->n_bindings; i++) {
		if (r->bindings[i].pool == pool)
			ids.v[ids.n++] = r->bindings[i].dev->id;
	}
	return ids;
}

static bool is_first_of_pool(const struct request *r, size_t at)
{
	for (size_t i = 0; i < at; i++) {
		if (r->bindings[i].pool == r->bindings[at].pool)
			return false;
	}
	return true;
}

/* Late pools as they are bound here; early ones as the kubelet says. */
void latebind_note_shares(struct request *r, const struct target *t)
{
	struct share *held = NULL;
	size_t n_held = 0;

	if (t->container)
		n_held = contents_shares(r->node, tracker_ledger(r->b->env.tracker), t->container,
					 r->arena, &held);
	r->shares = arena_array(r->arena, r->n_bindings + n_held, sizeof(*r->shares));
	for (size_t i = 0; i < r->n_bindings; i++) {
		const struct pool *pool = r->bindings[i].pool;

		if (is_first_of_pool(r, i))
			r->shares[r->n_shares++] = (struct share) { pool, vfs_of_pool(r, pool) };
	}
	for (size_t i = 0; i < n_held; i++) {
		if (held[i].pool->cfg->binding != BINDING_LATE)
			r->shares[r->n_shares++] = held[i];
	}
}

size_t latebind_functions(const struct request *r, struct bdf **ret)
{
	return contents_functions(r->node, r->shares, r->n_shares, r->arena, ret);
}

/* --- files --- */

/* Without its directory a container starts too. */
static void make_directory(struct request *r, struct contents_in *in)
{
	const char *vf = contents_lowest_late(r->shares, r->n_shares);
	struct err err = { 0 };

	if (!r->b->env.rundir || !vf)
		return;
	if (rundir_make(r->b->env.rundir, vf, &err) < 0)
		latebind_say(r->b,
			     "the container starts without /run/railmate"
			     " pod=%s/%s container=%s error=%s",
			     r->owner.ns, r->owner.pod, r->owner.container, err.msg);
	else
		in->rundir = r->b->env.rundir;
}

static void write_files(struct request *r, const struct contents_in *in, const struct contents *c)
{
	struct err err = { 0 };

	if (in->rundir && contents_write(r->b->env.rundir, r->shares, r->n_shares, c, &err) < 0)
		latebind_say(r->b,
			     "the container starts with files that are not complete"
			     " pod=%s/%s container=%s error=%s",
			     r->owner.ns, r->owner.pod, r->owner.container, err.msg);
}

static void tell_doubt(struct request *r, const char *doubt)
{
	struct latebind *b = r->b;
	int64_t now = clock_mono_ms();

	if (!doubt || (b->doubted_ms && now - b->doubted_ms < DOUBT_EVERY_MS))
		return;
	b->doubted_ms = now;
	latebind_say(b,
		     "the container starts, and not all is known of its VFs"
		     " pod=%s/%s container=%s reason=%s",
		     r->owner.ns, r->owner.pod, r->owner.container, doubt);
}

/* --- specs --- */

static int device_of(struct request *r, const struct contents_in *in,
		     const struct binding_slot *slot, struct cdi_entry *ret, struct err *err)
{
	ret->slot = slot->id;
	return contents_nodes(in, slot->pool, slot->dev->id, r->arena, &ret->edits, err);
}

/* What the container has once, whichever of its devices the runtime takes first. */
static struct edits common_edits(struct request *r, const struct contents_in *in,
				 const struct edits *env)
{
	struct edits common = { .envs = env->envs, .n_envs = env->n_envs };

	if (in->rundir) {
		common.mounts = arena_array(r->arena, 1, sizeof(*common.mounts));
		common.mounts[0] = contents_mount(
			in->rundir, contents_lowest_late(r->shares, r->n_shares), r->arena);
		common.n_mounts = 1;
	}
	return common;
}

static int by_slot(const void *x, const void *y)
{
	const struct cdi_entry *a = x, *b = y;

	return strcmp(a->slot, b->slot);
}

static int write_spec(struct request *r, const struct contents_in *in, const struct edits *env,
		      struct err *err)
{
	struct cdi_entry *v = arena_array(r->arena, r->n_bindings, sizeof(*v));
	struct ids slots = { arena_array(r->arena, r->n_bindings, sizeof(*slots.v)),
			     r->n_bindings };
	struct edits common;
	bool written = false;
	int result = 0;

	for (size_t i = 0; result == 0 && i < r->n_bindings; i++)
		result = device_of(r, in, &r->bindings[i], &v[i], err);
	if (result < 0 || !r->n_bindings)
		return result;
	qsort(v, r->n_bindings, sizeof(*v), by_slot);
	for (size_t i = 0; i < r->n_bindings; i++)
		slots.v[i] = v[i].slot;
	common = common_edits(r, in, env);
	result = latebind_spec_write(r->b, &slots, render_cdi(&common, v, r->n_bindings, r->arena),
				     &written, err);
	r->written |= written;
	return result;
}

/* What the spec says of whose it is. */
static struct edits record_of(const struct request *r, const struct ledger *l)
{
	struct claims claims = { .owner = r->owner,
				 .v = arena_array(r->arena, r->n_bindings, sizeof(*claims.v)) };

	claims.owner.container = r->owner.container ? r->owner.container : "";
	claims.owner.uid = r->owner.uid ? r->owner.uid : "";
	for (size_t i = 0; i < r->n_bindings; i++) {
		const char *vf = r->bindings[i].dev->id;
		const struct ledger_hold *hold = ledger_find(l, vf);

		claims.v[claims.n++] = (struct claimed_vf) { .vf = vf,
							     .slot = r->bindings[i].id,
							     .number = hold ? hold->decision : 0 };
	}
	return claims_to_spec(&claims, r->arena);
}

static int write_all(struct request *r, const struct contents_in *in, struct err *err)
{
	struct edits parts[2], env;
	struct contents c;
	int result = contents_render(in, r->arena, &c, err);

	if (result < 0)
		return result;
	write_files(r, in, &c);
	parts[0] = c.env;
	parts[1] = record_of(r, in->ledger);
	env = cdi_join(parts, 2, r->arena);
	result = write_spec(r, in, &env, err);
	if (result == 0)
		tell_doubt(r, in->states || in->why ? c.doubt : NULL);
	return result;
}

int latebind_render(struct request *r, const struct vf_state *states, size_t n, const char *why,
		    struct err *err)
{
	struct contents_in in = { .node = r->node,
				  .root = r->b->env.root,
				  .ledger = tracker_ledger(r->b->env.tracker),
				  .owner = r->owner,
				  .gpus = r->gpus,
				  .n_gpus = r->n_gpus,
				  .shares = r->shares,
				  .n_shares = r->n_shares,
				  .states = states,
				  .n_states = states ? n : 0,
				  .why = why,
				  .cdi = true };

	make_directory(r, &in);
	if (write_all(r, &in, err) == 0)
		return 0;
	/* The kubelet tries again, whatever it was. */
	return err_set(err, EAGAIN, "%s", arena_strdup(r->arena, err->msg));
}
