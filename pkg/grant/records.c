#include "grant/records.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/mem.h"
#include "base/str.h"
#include "document/document.h"
#include "grant/claims.h"
#include "grant/rundir.h"
#include "render/render.h"
#include "rpc/rpc.h"
#include "tracker/tracker.h"

#define RETRY_MS 1000

struct records {
	struct records_env env;
	struct rpc_timer *timer;
};

/* --- map.json --- */

static void claim(void *ctx, const char *path, const char *text)
{
	_cleanup_arena_ struct arena *a = arena_new(8192);
	struct records *s = ctx;
	const struct item *map;
	struct claims claims;

	if (document_parse(text, strlen(text), path, a, &map, NULL) < 0 ||
	    !claims_of_map(map, &claims, a))
		return;
	for (size_t i = 0; i < claims.n; i++) {
		const struct holds_claim c = { .vf = claims.v[i].vf,
					       .resource = claims.v[i].resource,
					       .slot = claims.v[i].slot,
					       .owner = claims.owner,
					       .number = claims.v[i].number,
					       .source = path };

		holds_claimed(tracker_holds(s->env.tracker), &c, tracker_now());
	}
}

static void read_again(void *arg)
{
	struct records *s = arg;

	s->timer = NULL;
	records_read(s);
}

void records_read(struct records *s)
{
	bool complete = !s->env.claim || s->env.claim(s->env.specs);

	if (s->env.rundir)
		complete &= rundir_each(s->env.rundir, RENDER_MAP_NAME, claim, s);
	holds_claims_read(tracker_holds(s->env.tracker), complete, tracker_now());
	tracker_save(s->env.tracker, NULL, NULL);
	if (!complete)
		s->timer = rpc_after(s->env.rpc, s->env.retry_ms ? s->env.retry_ms : RETRY_MS,
				     read_again, s);
}

/* --- what is no longer needed --- */

static bool needs(void *ctx, const char *vf)
{
	const struct records *s = ctx;

	return holds_needs_dir(tracker_holds(s->env.tracker), vf);
}

void records_sweep(struct records *s)
{
	if (s->env.rundir)
		rundir_sweep(s->env.rundir, needs, s);
	if (s->env.tidy)
		s->env.tidy(s->env.specs);
}

struct records *records_new(const struct records_env *env)
{
	struct records *s = xcalloc(1, sizeof(*s));

	s->env = *env;
	return s;
}

void records_free(struct records *s)
{
	if (!s)
		return;
	rpc_timer_cancel(STEAL(s->timer));
	free(s);
}
