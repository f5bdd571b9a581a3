/*
 * The files of containers of pools that bind early. Allocate makes the directory, and only that
 * before its reply; a timer fills the directory from the facts of Allocate; PreStartContainer
 * writes the facts of the start. A directory that cannot be made, or a file that cannot be written,
 * does not fail the call.
 */
#include "plugin/plugin-internal.h"

#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"
#include "grant/grant.h"
#include "plugin/record-internal.h"
#include "pool/node.h"
#include "render/topofile.h"
#include "tracker/tracker.h"

/* After the next call of an admission, and long before the container starts. */
#define FILL_MS	     20
#define FILL_NEXT_MS 1

/* --- Allocate --- */

/* How many mounts. */
static size_t make(struct plugin *p, const struct grant *grant, struct arena *a,
		   struct bindmount ret[GRANT_MOUNTS])
{
	struct pool_vfs vfs = {
		grant->pool, { arena_array(a, grant->n_devs, sizeof(*vfs.vfs.v)), grant->n_devs }
	};
	const struct grant_container c = { .pool_vfs = &vfs, .n_pool_vfs = 1 };
	struct err err = { 0 };
	int r;

	if (!p->env->rundir || !grant->n_devs)
		return 0;
	for (size_t i = 0; i < grant->n_devs; i++)
		vfs.vfs.v[i] = grant->devs[i].dev->id;
	r = grant_make_directory(p->env->rundir, p->env->probe, &c, a, ret, &err);
	if (r < 0)
		plugin_warn(p, WARN_FILES, "containers start without /run/railmate error=%s",
			    err.msg);
	else if (r)
		plugin_warn_reset(p, WARN_FILES);
	return r > 0 ? (size_t)r : 0;
}

/* topofile_name() renders a whole file: once a node. */
void plugin_files_update(struct plugin *p)
{
	const struct pool *pool = plugin_pool(p);

	p->topology = pool && !plugin_is_late(p) ? topofile_name(p->node, pool->cfg) : NULL;
}

int plugin_files_allocate(struct plugin *p, struct grant *grant, struct arena *a, struct edits *ret,
			  struct err *err)
{
	struct bindmount made[GRANT_MOUNTS];
	size_t n_made = make(p, grant, a, made);
	int r;

	grant->files = n_made > 0;
	if (grant->files) {
		grant->conf_only = render_needs_conf_only(grant->node);
		if (p->topology && grant_rundir_has(p->env->rundir, p->topology))
			grant->topo_file = arena_printf(a, RENDER_DIR "/%s", p->topology);
	}
	r = render_grant(grant, a, ret, err);
	if (r < 0)
		return r;
	ret->mounts = arena_copy(a, made, n_made * sizeof(*made));
	ret->n_mounts = n_made;
	return 0;
}

/*
 * Is the directory of a grant to be filled? Not while another container may still have the VFs: its
 * files stay until PreStartContainer has decided. Not after PreStartContainer, nor when the VFs
 * were given again.
 */
static bool waits(const struct plugin *p, const struct given *g)
{
	const struct record *r = &g->record;
	const struct ledger_hold *hold =
		r->n_devs && r->decision ? ledger_find(plugin_ledger(p), r->devs[0]->id) : NULL;

	return g->grant.files && hold && hold->pending &&
	       holds_is_of(tracker_holds(p->env->tracker), hold->vf, r->decision);
}

static void fill(struct plugin *p, const struct given *g)
{
	_cleanup_arena_ struct arena *a = arena_new(16 * 1024);
	const struct record *r = &g->record;
	struct ids vfs = { arena_array(a, r->n_devs, sizeof(*vfs.v)), r->n_devs };
	struct pool_vfs pool_vfs = { g->grant.pool, vfs };
	const struct grant_container container = { .gpus = g->gpus,
						   .pool_vfs = &pool_vfs,
						   .n_pool_vfs = 1 };
	struct contents_in in = { .node = r->node,
				  .root = p->env->root,
				  .ledger = plugin_ledger(p),
				  .rundir = p->env->rundir,
				  .container = &container,
				  .probed = g->grant.devs,
				  .n_probed = g->grant.n_devs,
				  .why = "the container has not started yet" };
	struct contents c;
	struct err err = { 0 };

	for (size_t i = 0; i < r->n_devs; i++)
		vfs.v[i] = r->devs[i]->id;
	if (grant_render(&in, a, &c, &err) < 0 ||
	    grant_write(p->env->rundir, &container, &c, &err) < 0)
		plugin_warn(p, WARN_FILES, "the files of a container are not complete error=%s",
			    err.msg);
}

/* Takes grants that have no directory to fill off the list. */
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

/* One Allocate at a time: calls run in between. */
static void fill_next(void *arg)
{
	struct plugin *p = arg;

	p->given_timer = NULL;
	forget_given(p);
	if (!TAILQ_EMPTY(&p->given))
		fill_first(p);
	if (!TAILQ_EMPTY(&p->given))
		p->given_timer = rpc_after(p->env->endpoint.rpc, FILL_NEXT_MS, fill_next, p);
}

void plugin_files_later(struct plugin *p, struct grants *grants)
{
	TAILQ_INSERT_TAIL(&p->given, grants, link);
	forget_given(p);
	if (!p->given_timer && !TAILQ_EMPTY(&p->given))
		p->given_timer = rpc_after(p->env->endpoint.rpc, FILL_MS, fill_next, p);
}

void plugin_files_done(struct plugin *p)
{
	rpc_timer_cancel(STEAL(p->given_timer));
	forget_given(p);
	while (!TAILQ_EMPTY(&p->given))
		fill_first(p);
}

/* --- PreStartContainer --- */

/* A detail that could not be read or written is logged and does not stop the container; a demand of
 * the configuration that cannot be met does. */
int plugin_files_start(struct plugin *p, const struct contents_in *in, struct arena *a,
		       struct err *err)
{
	const char *pod = in->container->owner.pod ? in->container->owner.pod : "not known";
	struct err unwritten = { 0 };
	struct contents c;
	int r = grant_render(in, a, &c, err);

	if (r < 0)
		return r;
	if (c.doubt)
		plugin_warn(
			p, WARN_PROBE,
			"the container starts, but some details of its VFs could not be read pod=%s reason=%s",
			pod, c.doubt);
	else
		plugin_warn_reset(p, WARN_PROBE);
	if (in->rundir && grant_write(p->env->rundir, in->container, &c, &unwritten) < 0)
		plugin_warn(p, WARN_FILES,
			    "the container starts with files that are not complete pod=%s error=%s",
			    pod, unwritten.msg);
	return 0;
}
