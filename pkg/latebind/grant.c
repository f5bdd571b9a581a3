/* Bound VFs → the grant of the container, as with early binding, for all its pools together. */
#include "latebind/latebind-internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "choice/choice.h"
#include "config/config.h"
#include "grant/contents.h"
#include "pool/node.h"
#include "render/cdi.h"
#include "tracker/tracker.h"

/* --- the container's VFs --- */

/* Late pools as they are bound here; early ones as the kubelet lists them. */
void latebind_note_pool_vfs(struct request *r, const struct target *t)
{
	struct pool_vfs *held = NULL;
	size_t n_held = 0;

	if (t->container)
		n_held = grant_held_vfs(r->node, tracker_ledger(r->b->env.tracker), t->container,
					r->arena, &held);
	r->c.pool_vfs = arena_array(r->arena, r->n_bindings + n_held, sizeof(*r->c.pool_vfs));
	for (size_t i = 0; i < r->n_bindings; i++) {
		const struct pool *pool = r->bindings[i].pool;
		struct pool_vfs *vfs = r->c.pool_vfs;

		while (vfs < r->c.pool_vfs + r->c.n_pool_vfs && vfs->pool != pool)
			vfs++;
		if (vfs == r->c.pool_vfs + r->c.n_pool_vfs) {
			vfs->pool = pool;
			vfs->vfs.v = arena_array(r->arena, r->n_bindings, sizeof(*vfs->vfs.v));
			r->c.n_pool_vfs++;
		}
		vfs->vfs.v[vfs->vfs.n++] = r->bindings[i].dev->id;
	}
	for (size_t i = 0; i < n_held; i++) {
		if (held[i].pool->cfg->binding != BINDING_LATE)
			r->c.pool_vfs[r->c.n_pool_vfs++] = held[i];
	}
}

/* --- files --- */

/* --- specs --- */

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

	for (size_t i = 0; result == 0 && i < r->n_bindings; i++) {
		const struct binding_slot *slot = &r->bindings[i];

		v[i].slot = slot->id;
		result = grant_nodes(in, slot->pool, slot->dev->id, r->arena, &v[i].edits, err);
	}
	if (result < 0 || !r->n_bindings)
		return result;
	qsort(v, r->n_bindings, sizeof(*v), by_slot);
	for (size_t i = 0; i < r->n_bindings; i++)
		slots.v[i] = v[i].slot;
	/* The edits that the container has once, for any device that the runtime takes first. */
	common = (struct edits) { .envs = env->envs,
				  .n_envs = env->n_envs,
				  .mounts = &r->mount,
				  .n_mounts = in->rundir ? 1 : 0 };
	result = latebind_spec_write(r->b, &slots, render_cdi(&common, v, r->n_bindings, r->arena),
				     &written, err);
	r->written |= written;
	return result;
}

/* The spec's claim: the pod that has it. */
static struct edits record_of(const struct request *r, const struct ledger *l)
{
	struct claims claims = { .owner = r->c.owner,
				 .v = arena_array(r->arena, r->n_bindings, sizeof(*claims.v)) };

	claims.owner.container = r->c.owner.container ? r->c.owner.container : "";
	claims.owner.uid = r->c.owner.uid ? r->c.owner.uid : "";
	for (size_t i = 0; i < r->n_bindings; i++) {
		const char *vf = r->bindings[i].dev->id;
		const struct ledger_hold *hold = ledger_find(l, vf);

		claims.v[claims.n++] = (struct claimed_vf) { .vf = vf,
							     .slot = r->bindings[i].id,
							     .number = hold ? hold->decision : 0 };
	}
	return grant_claims_to_spec(&claims, r->arena);
}

static int write_all(struct request *r, const struct contents_in *in, struct err *err)
{
	struct latebind *b = r->b;
	struct edits parts[2], env;
	struct err warning = { 0 };
	struct contents c;
	int result = grant_render(in, r->arena, &c, err);

	if (result < 0)
		return result;
	if (in->rundir && grant_write(b->env.rundir, &r->c, &c, &warning) < 0)
		latebind_say(
			b,
			"the container starts with files that are not complete pod=%s/%s container=%s error=%s",
			r->c.owner.ns, r->c.owner.pod, r->c.owner.container, warning.msg);
	parts[0] = c.env;
	parts[1] = record_of(r, in->ledger);
	env = cdi_join(parts, 2, r->arena);
	result = write_spec(r, in, &env, err);
	if (result < 0 || !c.doubt || (!in->states && !in->why) || log_rate_count(&b->doubted) > 1)
		return result;
	latebind_say(
		b,
		"the container starts, but some details of its VFs could not be read pod=%s/%s container=%s reason=%s",
		r->c.owner.ns, r->c.owner.pod, r->c.owner.container, c.doubt);
	return 0;
}

int latebind_render(struct request *r, const struct vf_state *states, size_t n, const char *why,
		    struct err *err)
{
	struct contents_in in = { .node = r->node,
				  .root = r->b->env.root,
				  .ledger = tracker_ledger(r->b->env.tracker),
				  .container = &r->c,
				  .states = states,
				  .n_states = states ? n : 0,
				  .why = why,
				  .cdi = true };
	struct err warning = { 0 };
	int made = r->b->env.rundir ? grant_make_directory(r->b->env.rundir, &r->c, r->arena,
							   &r->mount, &warning)
				    : 0;

	/* Without its directory a container starts too. */
	if (made < 0)
		latebind_say(
			r->b,
			"the container starts without /run/railmate pod=%s/%s container=%s error=%s",
			r->c.owner.ns, r->c.owner.pod, r->c.owner.container, warning.msg);
	else if (made)
		in.rundir = r->b->env.rundir;
	if (write_all(r, &in, err) == 0)
		return 0;
	/* The kubelet tries again, whatever it was. */
	return err_set(err, EAGAIN, "%s", arena_strdup(r->arena, err->msg));
}
