/*
 * The files of containers of pools that bind early. Allocate makes the directory, which is all that
 * the kubelet has to wait for; a moment after the reply it is filled with what is known by then;
 * PreStartContainer writes what is true when the container starts. A directory that cannot be made,
 * or a file that cannot be written, does not fail the call.
 */
#include "plugin/plugin-internal.h"

#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "grant/contents.h"
#include "plugin/record.h"
#include "pool/node.h"
#include "render/topofile.h"
#include "tracker/tracker.h"

/* Long before the container starts, and not between an answer and the next call. */
#define FILL_MS	     20
#define FILL_NEXT_MS 1

/* --- Allocate --- */

static const char *lowest_of(const struct grant *grant)
{
	return grant->n_devs ? grant->devs[0].dev->id
			     : NULL; /* they are in the order of addresses */
}

static bool make(struct plugin *p, const struct grant *grant)
{
	struct err err = { 0 };

	if (!p->env->rundir || !grant->n_devs || !contents_has_files(grant->pool))
		return false;
	if (rundir_make(p->env->rundir, lowest_of(grant), &err) < 0) {
		plugin_warn(p, WARN_FILES, "containers start without /run/railmate error=%s",
			    err.msg);
		return false;
	}
	plugin_warn_reset(p, WARN_FILES);
	return true;
}

/* To find out means to look at the whole node. */
void plugin_files_update(struct plugin *p)
{
	const struct pool *pool = plugin_pool(p);

	p->topology = pool && !plugin_is_late(p) ? topofile_name(p->node, pool->cfg) : NULL;
}

int plugin_files_allocate(struct plugin *p, struct grant *grant, struct arena *a, struct edits *ret,
			  struct err *err)
{
	struct bindmount *mount;
	int r;

	grant->files = make(p, grant);
	if (grant->files) {
		grant->conf_only = render_needs_conf_only(grant->node);
		if (p->topology && rundir_has(p->env->rundir, p->topology))
			grant->topo_file = arena_printf(a, RENDER_DIR "/%s", p->topology);
	}
	r = render_grant(grant, a, ret, err);
	if (r < 0 || !grant->files)
		return r;
	mount = arena_array(a, ret->n_mounts + 1, sizeof(*mount));
	for (size_t i = 0; i < ret->n_mounts; i++)
		mount[i] = ret->mounts[i];
	mount[ret->n_mounts++] = contents_mount(p->env->rundir, lowest_of(grant), a);
	ret->mounts = mount;
	return 0;
}

static struct ids vfs_of(const struct record *r, struct arena *a)
{
	struct ids vfs = { arena_array(a, r->n_devs, sizeof(*vfs.v)), r->n_devs };

	for (size_t i = 0; i < r->n_devs; i++)
		vfs.v[i] = r->devs[i]->id;
	return vfs;
}

/*
 * Does its directory wait for what Allocate knows? Not if another container may still have the VFs:
 * then its files stay until PreStartContainer has decided. Not if that has come already, or the VFs
 * were given again.
 */
static bool waits(const struct plugin *p, const struct given *g)
{
	const struct record *r = &g->record;
	const struct ledger_hold *hold =
		r->n_devs && r->decision ? ledger_find(plugin_ledger(p), r->devs[0]->id) : NULL;

	return hold && hold->pending && hold->decision == r->decision && p->env->rundir &&
	       contents_has_files(g->grant.pool);
}

static void fill(struct plugin *p, const struct given *g)
{
	_cleanup_arena_ struct arena *a = arena_new(16 * 1024);
	struct share share = { g->grant.pool, vfs_of(&g->record, a) };
	struct contents_in in = { .node = g->record.node,
				  .root = p->env->root,
				  .ledger = plugin_ledger(p),
				  .rundir = p->env->rundir,
				  .gpus = g->gpus,
				  .n_gpus = g->n_gpus,
				  .shares = &share,
				  .n_shares = 1,
				  .looked = g->grant.devs,
				  .n_looked = g->grant.n_devs,
				  .why = "the container has not started yet" };
	struct contents c;
	struct err err = { 0 };

	if (contents_render(&in, a, &c, &err) < 0 ||
	    contents_write(p->env->rundir, &share, 1, &c, &err) < 0)
		plugin_warn(p, WARN_FILES, "the files of a container are not complete error=%s",
			    err.msg);
}

/* Takes all that no directory waits for any more off the list. */
static void forget_given(struct plugin *p)
{
	struct grants *g, *next;

	for (g = TAILQ_FIRST(&p->given); g; g = next) {
		size_t n = 0;

		next = TAILQ_NEXT(g, link);
		while (n < g->n && !waits(p, &g->v[n]))
			n++;
		if (n < g->n)
			continue;
		TAILQ_REMOVE(&p->given, g, link);
		plugin_grants_free(g);
	}
}

static void fill_first(struct plugin *p)
{
	struct grants *g = TAILQ_FIRST(&p->given);

	for (size_t i = 0; i < g->n; i++) {
		if (waits(p, &g->v[i]))
			fill(p, &g->v[i]);
	}
	TAILQ_REMOVE(&p->given, g, link);
	plugin_grants_free(g);
}

/* One Allocate at a time: calls come in between. */
static void fill_next(void *arg)
{
	struct plugin *p = arg;

	p->given_timer = NULL;
	forget_given(p);
	if (!TAILQ_EMPTY(&p->given))
		fill_first(p);
	if (!TAILQ_EMPTY(&p->given))
		p->given_timer = rpc_after(p->env->rpc, FILL_NEXT_MS, fill_next, p);
}

void plugin_files_later(struct plugin *p, struct grants *grants)
{
	TAILQ_INSERT_TAIL(&p->given, grants, link);
	forget_given(p);
	if (!p->given_timer && !TAILQ_EMPTY(&p->given))
		p->given_timer = rpc_after(p->env->rpc, FILL_MS, fill_next, p);
}

void plugin_files_done(struct plugin *p)
{
	rpc_timer_cancel(STEAL(p->given_timer));
	forget_given(p);
	while (!TAILQ_EMPTY(&p->given))
		fill_first(p);
}

/* --- PreStartContainer --- */

/* What could not be found out or written is logged and does not stop the container; what the
 * operator's configuration demands and cannot be had does. */
int plugin_files_start(struct plugin *p, const struct contents_in *in, struct arena *a,
		       struct err *err)
{
	const char *pod = in->owner.pod ? in->owner.pod : "not known";
	struct err unwritten = { 0 };
	struct contents c;
	int r = contents_render(in, a, &c, err);

	if (r < 0)
		return r;
	if (c.doubt)
		plugin_warn(
			p, WARN_TRUTH,
			"the container starts, and not all is known of its VFs pod=%s reason=%s",
			pod, c.doubt);
	else
		plugin_warn_reset(p, WARN_TRUTH);
	if (in->rundir &&
	    contents_write(p->env->rundir, in->shares, in->n_shares, &c, &unwritten) < 0)
		plugin_warn(p, WARN_FILES,
			    "the container starts with files that are not complete pod=%s error=%s",
			    pod, unwritten.msg);
	return 0;
}
