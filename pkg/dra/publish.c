#include "dra/publish.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "document/document.h"
#include "dra/slices.h"
#include "kubemsg/apiobject.h"
#include "rpc/rpc.h"

#define SLICES	     "/apis/resource.k8s.io/v1/resourceslices"
#define ANSWER_MS    10000
#define PAUSE_MS     1000 /* after a failure; doubled each time */
#define PAUSE_MAX_MS 30000
#define GAP_MS	     1000   /* between rounds that write: a link that flaps costs no more */
#define LOOK_MS	     600000 /* what somebody else did to our slices is seen so late */
#define AT_ONCE_MAX  3	    /* conflicts in a row, without a pause */

enum {
	HTTP_BAD_REQUEST = 400,
	HTTP_FORBIDDEN = 403,
	HTTP_NOT_FOUND = 404,
	HTTP_CONFLICT = 409,
	HTTP_INVALID = 422,
};

/* After publish_look(). */
static const unsigned looks_ms[] = { 10000, 40000 };

/* What stands on a slice that we wrote. */
struct mark {
	size_t index, count;
	uint64_t generation;
	int64_t object; /* the generation of the object: another one, and somebody changed it */
	uint64_t sum;
};

/* A slice that is there. */
struct there {
	struct api_object object;
	struct mark mark;
};

struct publish {
	struct publish_env env;
	char *driver, *node;
	struct arena *arena; /* of wanted */
	struct slices wanted;
	bool set;   /* something is wanted */
	bool again; /* that changed since the round began */
	bool asked; /* for the version of the API server */
	bool taints;

	/* of a round */
	bool busy;
	struct arena *round;
	struct there **at; /* wanted.n: the slice with this index; NULL: none */
	struct there **strays;
	size_t n_strays, next_stray, next;
	uint64_t generation;
	const char *uid;
	bool created;

	struct rpc_timer *timer; /* until the next round */
	int64_t not_before_ms;	 /* for one that writes */
	unsigned failures, at_once, looks;
	bool refused; /* the same again would be */
	bool done, wrote;
	char *why; /* of the last failure; NULL: there was none */
	bool closed;
};

/* --- marks --- */

static bool read_mark(const char *text, struct mark *ret)
{
	int end = 0;

	return text &&
	       sscanf(text, "%zu/%zu %" SCNu64 " %" SCNd64 " %" SCNx64 "%n", &ret->index,
		      &ret->count, &ret->generation, &ret->object, &ret->sum, &end) == 5 &&
	       !text[end] && ret->generation < INT64_MAX;
}

/* Is it what is wanted, but for its generation? */
static bool is_written(const struct publish *p, const struct there *t)
{
	return t && t->mark.count == p->wanted.n && t->mark.index < p->wanted.n &&
	       t->mark.sum == p->wanted.v[t->mark.index].sum &&
	       t->mark.object == t->object.generation;
}

/* --- rounds --- */

static void begin_round(struct publish *p);
static void next_step(struct publish *p);

static void on_timer(void *arg)
{
	struct publish *p = arg;

	p->timer = NULL; /* gone */
	begin_round(p);
}

static void wait(struct publish *p, unsigned ms)
{
	rpc_timer_cancel(STEAL(p->timer));
	p->timer = rpc_after(p->env.rpc, ms, on_timer, p);
}

/* Between three quarters of it and itself: nodes that lost their API server together come back one
 * by one. */
static unsigned jittered(unsigned ms)
{
	return ms - (unsigned)((uint64_t)clock_mono_ns() / 1000 % (ms / 4 + 1));
}

static void publish_free(struct publish *p)
{
	arena_free(p->arena);
	arena_free(p->round);
	free(p->driver);
	free(p->node);
	free(p->why);
	free(p);
}

static void end_round(struct publish *p)
{
	p->busy = false;
	arena_free(STEAL(p->round));
	p->n_strays = p->next_stray = p->next = 0;
	p->uid = NULL;
	p->created = false;
}

static void fail(struct publish *p, long status, const char *why)
{
	unsigned first = p->env.pause_ms ? p->env.pause_ms : PAUSE_MS, ms = first;

	end_round(p);
	if (!str_eq(p->why, why)) {
		if (!p->failures)
			log_warn("dra", "ResourceSlices cannot be kept error=%s", why);
		free(p->why);
		p->why = xstrdup(why);
	}
	for (unsigned i = 0; i < p->failures && ms < PAUSE_MAX_MS; i++)
		ms *= 2;
	p->failures++;
	p->at_once = 0;
	p->refused = status == HTTP_BAD_REQUEST || status == HTTP_INVALID;
	ms = ms < PAUSE_MAX_MS ? ms : PAUSE_MAX_MS;
	wait(p, jittered(p->refused ? LOOK_MS : ms));
}

/* Somebody else was faster: what is there now? */
static void fail_step(struct publish *p, long status, const char *why)
{
	if ((status != HTTP_CONFLICT && status != HTTP_NOT_FOUND) || p->at_once == AT_ONCE_MAX) {
		fail(p, status, why);
		return;
	}
	p->at_once++;
	end_round(p);
	begin_round(p);
}

static size_t count_devices(const struct slices *s)
{
	size_t n = 0;

	for (size_t i = 0; i < s->n; i++)
		n += s->v[i].n;
	return n;
}

/* libcurl sends a request again when a connection that was open ends without an answer: what was
 * created may be there twice. */
static void succeed(struct publish *p)
{
	bool created = p->created;

	end_round(p);
	if (created) {
		begin_round(p);
		return;
	}
	if (p->wrote)
		log_info("dra", "ResourceSlices were written devices=%zu generation=%" PRIu64,
			 count_devices(&p->wanted), p->generation);
	else if (p->failures)
		log_info("dra", "ResourceSlices are kept again");
	p->wrote = false;
	free(STEAL(p->why));
	p->failures = p->at_once = 0;
	p->refused = false;
	p->done = true;
	if (p->looks)
		wait(p, looks_ms[ARRAY_LEN(looks_ms) - p->looks--]);
	else
		wait(p, jittered(LOOK_MS / 3 * 4));
}

static void begin_soon(struct publish *p)
{
	int64_t ms = p->not_before_ms - clock_mono_ms();

	wait(p, ms > 0 ? (unsigned)ms : 0);
}

/* False: the answer is of no use any more. */
static bool go_on(struct publish *p)
{
	if (p->closed) {
		publish_free(p);
		return false;
	}
	if (p->again) {
		end_round(p);
		begin_soon(p);
		return false;
	}
	return true;
}

/* --- one request --- */

static void ask(struct publish *p, const char *method, const char *path, const char *accept,
		const struct strbuf *body, api_done_fn done)
{
	p->wrote |= strcmp(method, "GET") != 0;
	p->env.ask(p->env.ctx,
		   &(struct api_request) { .method = method,
					   .path = path,
					   .accept = accept,
					   .type = "application/json",
					   .body = body ? strbuf_str(body) : NULL,
					   .timeout_ms = ANSWER_MS },
		   done, p);
}

static void on_deleted(void *arg, long status, struct bytes body, const char *why)
{
	struct publish *p = arg;

	(void)body;
	if (!go_on(p))
		return;
	if (why && status != HTTP_NOT_FOUND) {
		fail_step(p, status, why);
		return;
	}
	p->next_stray++;
	next_step(p);
}

/* Only what the list showed: the API server compares. */
static void delete_stray(struct publish *p)
{
	const struct api_object *o = &p->strays[p->next_stray]->object;
	_cleanup_free_ char *path = xasprintf(SLICES "/%s", o->name);
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;
	struct json j;

	json_init(&j, &text, 0);
	json_begin_object(&j);
	json_kv_string(&j, "apiVersion", "v1");
	json_kv_string(&j, "kind", "DeleteOptions");
	json_kv_object(&j, "preconditions");
	json_kv_string(&j, "uid", o->uid);
	json_kv_string(&j, "resourceVersion", o->version);
	json_end_object(&j);
	json_end_object(&j);
	ask(p, "DELETE", path, API_OBJECT_TYPE, &text, on_deleted);
}

static void on_node(void *arg, long status, struct bytes body, const char *why)
{
	struct publish *p = arg;
	struct api_object node;
	struct err err = { 0 };

	if (!go_on(p))
		return;
	if (!why && kubemsg_object(body, NULL, p->round, &node, &err) < 0) {
		err_wrap(&err, "the answer about the node");
		why = err.msg;
	}
	if (why) {
		fail(p, status, why);
		return;
	}
	p->uid = node.uid;
	next_step(p);
}

/* The owner of slices: they go with it. A node that was made anew has another uid. */
static void ask_for_node(struct publish *p)
{
	_cleanup_free_ char *path = xasprintf("/api/v1/nodes/%s", p->node);

	ask(p, "GET", path, API_OBJECT_TYPE, NULL, on_node);
}

static void on_written(void *arg, long status, struct bytes body, const char *why)
{
	struct publish *p = arg;

	(void)body;
	if (!go_on(p))
		return;
	if (why) {
		fail_step(p, status, why);
		return;
	}
	p->next++;
	next_step(p);
}

static void write_slice(struct publish *p)
{
	const struct there *t = p->at[p->next];
	const struct slice *slice = &p->wanted.v[p->next];
	/* Each of our writes changes the spec, at least its pool's generation. */
	int64_t object = t ? t->object.generation + 1 : 1;
	_cleanup_free_ char *mark = xasprintf("%zu/%zu %" PRIu64 " %" PRId64 " %" PRIx64, p->next,
					      p->wanted.n, p->generation, object, slice->sum);
	_cleanup_free_ char *path = xasprintf(SLICES "%s%s", t ? "/" : "", t ? t->object.name : "");
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;

	slices_write(&(struct slice_object) { .slice = slice,
					      .driver = p->driver,
					      .node_name = p->node,
					      .node_uid = p->uid,
					      .generation = p->generation,
					      .index = p->next,
					      .count = p->wanted.n,
					      .name = t ? t->object.name : NULL,
					      .version = t ? t->object.version : NULL,
					      .mark = mark },
		     &text);
	p->created |= !t;
	ask(p, t ? "PUT" : "POST", path, API_OBJECT_TYPE, &text, on_written);
}

/* Slices too many go first: the devices in them are not ours any more. */
static void next_step(struct publish *p)
{
	while (p->next < p->wanted.n && is_written(p, p->at[p->next]) &&
	       p->at[p->next]->mark.generation == p->generation)
		p->next++;
	if (p->next_stray < p->n_strays)
		delete_stray(p);
	else if (p->next == p->wanted.n)
		succeed(p);
	else if (!p->uid)
		ask_for_node(p);
	else
		write_slice(p);
}

/* --- what is there --- */

static bool is_newer(const struct there *t, const struct there *than)
{
	return !than || t->mark.generation > than->mark.generation;
}

static void take(struct publish *p, const struct api_objects *list)
{
	struct there *v = arena_array(p->round, list->n, sizeof(*v));

	p->at = arena_array(p->round, p->wanted.n, sizeof(*p->at));
	p->strays = arena_array(p->round, list->n, sizeof(*p->strays));
	p->generation = 0;
	for (size_t i = 0; i < list->n; i++) {
		struct there *t = &v[i], *stray = t;

		t->object = list->v[i];
		if (read_mark(t->object.mark, &t->mark)) {
			if (t->mark.generation > p->generation)
				p->generation = t->mark.generation;
			if (t->mark.index < p->wanted.n && is_newer(t, p->at[t->mark.index])) {
				stray = p->at[t->mark.index];
				p->at[t->mark.index] = t;
			}
		}
		if (stray)
			p->strays[p->n_strays++] = stray;
	}
}

static bool is_other(const struct publish *p, const struct there *t)
{
	return t && t->mark.generation == p->generation && !is_written(p, t);
}

/* The newest generation that is there, if all that is there of it is what is wanted: a round that
 * did not come to its end goes on. Else the next one. */
static void choose_generation(struct publish *p)
{
	bool other = !p->generation;

	for (size_t i = 0; i < p->wanted.n; i++)
		other |= is_other(p, p->at[i]);
	for (size_t i = 0; i < p->n_strays; i++)
		other |= is_other(p, p->strays[i]);
	p->generation += other;
}

static void on_list(void *arg, long status, struct bytes body, const char *why)
{
	struct publish *p = arg;
	struct api_objects list = { 0 };
	struct err err = { 0 };

	if (!go_on(p))
		return;
	if (!why && kubemsg_objects(body, SLICES_MARK, p->round, &list, &err) < 0) {
		err_wrap(&err, "the list of ResourceSlices");
		why = err.msg;
	}
	if (why) {
		fail(p, status, why);
		return;
	}
	take(p, &list);
	choose_generation(p);
	next_step(p);
	if (p->busy) /* it writes */
		p->not_before_ms = clock_mono_ms() + GAP_MS;
}

/* Device taints are there from 1.36 on (beta), and dropped without a word before. */
static bool has_taints(struct bytes version)
{
	_cleanup_arena_ struct arena *a = arena_new(0);
	const struct item *item;

	if (document_parse((const char *)version.data, version.len, "version", a, &item, NULL) < 0)
		return false;
	return atoi(item_string(item, "minor") ? item_string(item, "minor") : "") >= 36;
}

static void ask_for_list(struct publish *p)
{
	_cleanup_free_ char *path =
		xasprintf(SLICES "?fieldSelector=spec.nodeName%%3D%s%%2Cspec.driver%%3D%s", p->node,
			  p->driver);

	ask(p, "GET", path, API_OBJECTS_TYPE, NULL, on_list);
}

/* Without an answer slices have no taints, and the next round asks again. */
static void on_version(void *arg, long status, struct bytes body, const char *why)
{
	struct publish *p = arg;

	if (!go_on(p))
		return;
	p->asked = !why || status == HTTP_FORBIDDEN || status == HTTP_NOT_FOUND;
	p->taints = !why && has_taints(body);
	if (p->taints && p->env.changed)
		p->env.changed(p->env.arg);
	p->again = false; /* nothing is known yet of what is there */
	ask_for_list(p);
}

static void begin_round(struct publish *p)
{
	rpc_timer_cancel(STEAL(p->timer));
	p->again = p->done = false;
	p->busy = true;
	p->round = arena_new(0);
	if (p->asked)
		ask_for_list(p);
	else
		ask(p, "GET", "/version", "application/json", NULL, on_version);
}

/* --- from outside --- */

struct publish *publish_open(const struct publish_env *env)
{
	struct publish *p = xcalloc(1, sizeof(*p));

	p->env = *env;
	p->driver = xstrdup(env->driver);
	p->node = xstrdup(env->node_name);
	return p;
}

static bool is_same(const struct slices *a, const struct slices *b)
{
	bool same = a->n == b->n;

	for (size_t i = 0; i < a->n && same; i++)
		same = !strcmp(a->v[i].devices, b->v[i].devices);
	return same;
}

void publish_set(struct publish *p, const struct slices_in *in)
{
	struct arena *arena = arena_new(0);
	struct slices wanted = in ? slices_plan(in, arena) : (struct slices) { 0 };

	if (p->set && is_same(&wanted, &p->wanted)) {
		arena_free(arena);
		return;
	}
	arena_free(p->arena);
	p->arena = arena;
	p->wanted = wanted;
	p->set = true;
	p->done = false;
	if (p->busy)
		p->again = true;
	else if (!p->failures || p->refused) /* else the pause goes on */
		begin_soon(p);
}

void publish_look(struct publish *p)
{
	p->looks = ARRAY_LEN(looks_ms);
	if (p->set && !p->busy)
		wait(p, 0);
}

bool publish_has_taints(const struct publish *p)
{
	return p->taints;
}

bool publish_is_done(const struct publish *p)
{
	return p->done;
}

void publish_say(const struct publish *p, struct strbuf *out)
{
	if (p->why)
		strbuf_printf(out, "ResourceSlices are not kept: %s", p->why);
	else if (!p->done)
		strbuf_puts(out, p->set ? "ResourceSlices are being written"
					: "no ResourceSlice is wanted yet");
	else if (!p->wanted.n)
		strbuf_puts(out, "no ResourceSlice: nothing is offered");
	else
		strbuf_printf(out, "%zu ResourceSlice%s, generation %" PRIu64, p->wanted.n,
			      p->wanted.n > 1 ? "s" : "", p->generation);
}

void publish_close(struct publish *p)
{
	if (!p)
		return;
	rpc_timer_cancel(STEAL(p->timer));
	if (p->busy)
		p->closed = true; /* the answer frees it */
	else
		publish_free(p);
}
