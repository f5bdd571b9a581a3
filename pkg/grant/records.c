#include "grant/records.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/mem.h"
#include "document/document.h"
#include "grant/grant-internal.h"
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
	    !grant_claims_of_map(map, &claims, a))
		return;
	for (size_t i = 0; i < claims.n; i++) {
		const struct holds_claim c = { .vf = claims.v[i].vf,
					       .resource = claims.v[i].resource,
					       .slot = claims.v[i].slot,
					       .owner = claims.owner,
					       .number = claims.v[i].number,
					       .source = path };

		holds_event(tracker_holds(s->env.tracker),
			    &(struct holds_event) { .kind = HOLDS_CLAIMED, .claim = &c },
			    tracker_now());
	}
}

static void read_all(void *arg)
{
	struct records *s = arg;
	bool complete = !s->env.claim || s->env.claim(s->env.specs);

	if (s->env.rundir)
		complete &= grant_rundir_each(s->env.rundir, RENDER_MAP_NAME, claim, s);
	holds_event(tracker_holds(s->env.tracker),
		    &(struct holds_event) { .kind = HOLDS_CLAIMS_READ, .complete = complete },
		    tracker_now());
	tracker_save(s->env.tracker, NULL, NULL);
	s->timer = complete ? NULL
			    : rpc_after(s->env.rpc, s->env.retry_ms ? s->env.retry_ms : RETRY_MS,
					read_all, s);
}

/* --- unneeded records --- */

static bool needs(void *ctx, const char *vf)
{
	const struct records *s = ctx;

	return holds_needs_record(tracker_holds(s->env.tracker), vf, NULL);
}

void grant_records_sweep(struct records *s)
{
	if (s->env.rundir)
		grant_rundir_sweep(s->env.rundir, needs, s);
	if (s->env.tidy)
		s->env.tidy(s->env.specs);
}

struct records *grant_records_open(const struct records_env *env)
{
	struct records *s = xcalloc(1, sizeof(*s));

	s->env = *env;
	read_all(s);
	return s;
}

void grant_records_close(struct records *s)
{
	if (!s)
		return;
	rpc_timer_cancel(STEAL(s->timer));
	free(s);
}
