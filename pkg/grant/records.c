/*
 * The records of grants outside the ledger, CDI specs and map.json: the claims that they hold, and
 * their reading at the start. latebind writes specs, rundir.c has the directories.
 */
#include "grant/records.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/mem.h"
#include "base/str.h"
#include "document/document.h"
#include "grant/grant-internal.h"
#include "hw/bdf.h"
#include "pool/slots.h"
#include "render/render.h"
#include "rpc/rpc.h"
#include "tracker/tracker.h"

/* --- claims --- */

#define ENV_BINDING   "RAILMATE_BINDING"
#define ENV_CONTAINER "RAILMATE_CONTAINER"
#define ENV_UID	      "RAILMATE_POD_UID"
#define ENV_DECISION  "RAILMATE_DECISION"

static bool is_vf(const char *s)
{
	struct bdf bdf;

	return s && bdf_parse(s, &bdf) == 0;
}

/* --- CDI specs --- */

struct edits grant_claims_to_spec(const struct claims *r, struct arena *a)
{
	_cleanup_strbuf_ struct strbuf binding = STRBUF_INIT, numbers = STRBUF_INIT;
	struct edits e = { .envs = arena_array(a, 4, sizeof(*e.envs)) };

	for (size_t i = 0; i < r->n; i++) {
		strbuf_printf(&binding, "%s%s=%s", i ? "," : "", r->v[i].slot, r->v[i].vf);
		strbuf_printf(&numbers, "%s%llu", i ? "," : "", (unsigned long long)r->v[i].number);
	}
	e.envs[e.n_envs++] = (struct kv) { ENV_BINDING, arena_strdup(a, strbuf_str(&binding)) };
	e.envs[e.n_envs++] = (struct kv) { ENV_DECISION, arena_strdup(a, strbuf_str(&numbers)) };
	e.envs[e.n_envs++] =
		(struct kv) { ENV_CONTAINER, arena_printf(a, "%s/%s/%s", r->owner.ns, r->owner.pod,
							  r->owner.container) };
	if (*r->owner.uid)
		e.envs[e.n_envs++] = (struct kv) { ENV_UID, r->owner.uid };
	return e;
}

/* "slot=vf,slot=vf" and "number,number" */
static void read_binding(const char *binding, const char *numbers, struct claims *ret,
			 struct arena *a)
{
	size_t max = 1;

	for (const char *c = binding; *c; c++)
		max += *c == ',';
	ret->v = arena_array(a, max, sizeof(*ret->v));
	for (const char *s = binding; *s; s += strspn(s, ",")) {
		size_t n = strcspn(s, ","), slot = strcspn(s, "=");
		struct claimed_vf *v = &ret->v[ret->n];

		if (slot < n) {
			v->slot = arena_printf(a, "%.*s", (int)slot, s);
			v->vf = arena_printf(a, "%.*s", (int)(n - slot - 1), s + slot + 1);
			v->number = strtoull(numbers, NULL, 10);
			ret->n += is_vf(v->vf);
		}
		numbers += strcspn(numbers, ",");
		numbers += strspn(numbers, ",");
		s += n;
	}
}

static const char *value_of(const struct item *env, const char *key)
{
	size_t len = strlen(key);

	for (size_t i = 0; env && env->type == ITEM_LIST && i < env->n_kids; i++) {
		const char *s = env->kids[i].string;

		if (s && !strncmp(s, key, len) && s[len] == '=')
			return s + len + 1;
	}
	return NULL;
}

bool grant_claims_of_spec(const struct item *spec, struct claims *ret, struct arena *a)
{
	const struct item *env = item_get(item_get(spec, "containerEdits"), "env");
	const char *binding = value_of(env, ENV_BINDING), *numbers = value_of(env, ENV_DECISION),
		   *container = value_of(env, ENV_CONTAINER), *uid = value_of(env, ENV_UID), *pod,
		   *name;

	if (!binding || !numbers || !container)
		return false;
	*ret = (struct claims) { .owner = { "", "", uid ? uid : "", "", NULL } };
	pod = strchr(container, '/');
	name = pod ? strchr(pod + 1, '/') : NULL;
	if (!name || !name[1])
		return false;
	ret->owner.ns = arena_printf(a, "%.*s", (int)(pod - container), container);
	ret->owner.pod = arena_printf(a, "%.*s", (int)(name - pod - 1), pod + 1);
	ret->owner.container = name + 1;
	read_binding(binding, numbers, ret, a);
	return ret->n > 0;
}

/* --- map.json --- */

/* A container that has not started yet has a map without a pod and a UID; one that PodResources
 * does not show, an ordinary init container, has no more than a UID. */
bool grant_claims_of_map(const struct item *map, struct claims *ret, struct arena *a)
{
	const struct item *list = item_get(map, "gpus");
	const char *pod = item_string(map, "pod"), *slash = pod ? strchr(pod, '/') : NULL;
	const char *uid = item_string(map, "uid"), *container = item_string(map, "container");
	bool is_named = slash && slash[1];

	*ret = (struct claims) { .owner = { "", "", uid ? uid : "", container ? container : "",
					    NULL } };
	if (!(is_named || (uid && *uid)) || !list || list->type != ITEM_LIST)
		return false;
	if (is_named) {
		ret->owner.ns = arena_printf(a, "%.*s", (int)(slash - pod), pod);
		ret->owner.pod = slash + 1;
	}
	ret->v = arena_array(a, list->n_kids, sizeof(*ret->v));
	for (size_t i = 0; i < list->n_kids; i++) {
		const struct item *e = &list->kids[i], *number = item_get(e, "decision");
		struct claimed_vf v = { item_string(e, "vf"), item_string(e, "resource"),
					item_string(e, "slot"), 0 };

		if (number && number->whole && number->number > 0)
			v.number = (uint64_t)number->number;
		if (is_vf(v.vf) && v.resource)
			ret->v[ret->n++] = v;
	}
	return ret->n > 0;
}

/* --- their reading --- */

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
		const char *slot = claims.v[i].slot;
		struct holds_claim c = { .vf = claims.v[i].vf,
					 .resource = claims.v[i].resource,
					 .slot = slot,
					 .owner = claims.owner,
					 .number = claims.v[i].number,
					 .source = path };

		c.owner.claim = slot ? pool_slot_claim(slot, a) : NULL;
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
