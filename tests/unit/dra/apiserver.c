#include "unit/dra/apiserver.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "document/document.h"
#include "dra/slices.h"
#include "kubemsg/apiobject.h"
#include "kubemsg/messages-internal.h"
#include "objectmeta.pb-c.h"
#include "rpc/rpc.h"

#define PATH "/apis/resource.k8s.io/v1/resourceslices"

struct fake_api *fake_api_new(struct rpc *rpc)
{
	struct fake_api *api = xcalloc(1, sizeof(*api));

	api->rpc = rpc;
	api->node_uid = "node-1";
	api->minor = "37+";
	return api;
}

static void end_object(struct fake_object *o)
{
	free(o->name);
	free(o->uid);
	free(o->mark);
	free(o->owner);
}

void fake_api_wipe(void *arg)
{
	struct fake_api *api = arg;

	while (api->n)
		end_object(&api->v[--api->n]);
}

void fake_api_free(struct fake_api *api)
{
	fake_api_wipe(api);
	free(api->v);
	free(api);
}

void fake_api_heal(void *arg)
{
	((struct fake_api *)arg)->script = (struct fake_script) { 0 };
}

static struct fake_object *add(struct fake_api *api)
{
	struct fake_object *o;

	api->v = xgrow(api->v, &api->cap, api->n + 1, sizeof(*api->v));
	o = &api->v[api->n++];
	*o = (struct fake_object) { .version = ++api->clock, .generation = 1 };
	o->name = xasprintf("slice-%d", (int)api->clock);
	o->uid = xasprintf("uid-%d", (int)api->clock);
	return o;
}

void fake_api_add_stray(void *arg)
{
	add(arg)->owner = xstrdup("");
}

void fake_api_change_first(void *arg)
{
	struct fake_api *api = arg;

	api->v[0].version = ++api->clock;
	api->v[0].generation++;
	api->v[0].n_devices = 1;
	api->v[0].is_changed = true;
}

static struct fake_object *find(struct fake_api *api, const char *name)
{
	for (size_t i = 0; i < api->n; i++) {
		if (!strcmp(api->v[i].name, name))
			return &api->v[i];
	}
	return NULL;
}

/* --- answers --- */

struct reply {
	struct fake_api *api;
	api_done_fn done;
	void *arg;
	long status;
	struct strbuf body;
	const char *why;
};

static void put_field(struct strbuf *out, unsigned number, struct bytes b)
{
	size_t left = b.len;

	strbuf_putc(out, (char)(number << 3 | 2));
	for (; left > 0x7f; left >>= 7)
		strbuf_putc(out, (char)(left | 0x80));
	strbuf_putc(out, (char)left);
	strbuf_add(out, (const char *)b.data, b.len);
}

static void put_envelope(struct strbuf *out, struct bytes object)
{
	strbuf_add(out, "k8s", 4);
	put_field(out, 2, object);
}

static struct bytes meta_of(const struct fake_object *o, struct arena *a)
{
	Objectmeta__Object m = OBJECTMETA__OBJECT__INIT;
	Objectmeta__Meta meta = OBJECTMETA__META__INIT;
	Objectmeta__Entry entry = OBJECTMETA__ENTRY__INIT, *entries[] = { &entry };

	entry.key = arena_strdup(a, SLICES_MARK);
	entry.value = o->mark;
	meta.name = o->name;
	meta.uid = o->uid;
	meta.resource_version = arena_printf(a, "%d", (int)o->version);
	meta.generation = o->generation;
	meta.annotations = entries;
	meta.n_annotations = o->mark ? 1 : 0;
	m.metadata = &meta;
	return kubemsg_pack(&m, a);
}

static void put_list(struct fake_api *api, struct strbuf *out, struct arena *a)
{
	struct strbuf list = STRBUF_INIT;

	put_field(&list, 1, (struct bytes) { (const uint8_t *)"", 0 });
	for (size_t i = 0; i < api->n; i++)
		put_field(&list, 2, meta_of(&api->v[i], a));
	put_envelope(out, (struct bytes) { (const uint8_t *)list.s, list.len });
	strbuf_done(&list);
}

/* --- writes --- */

static const struct item *parse(const char *text, struct arena *a)
{
	const struct item *item = NULL;
	struct err err = { 0 };

	if (document_parse(text, strlen(text), "request", a, &item, &err) < 0)
		fail_msg("%s", err.msg);
	return item;
}

static void replace(struct fake_object *o, const struct item *body)
{
	const struct item *metadata = item_get(body, "metadata"), *spec = item_get(body, "spec"),
			  *pool = item_get(spec, "pool");

	free(o->mark);
	free(o->owner);
	o->mark = xstrdup(item_string(item_get(metadata, "annotations"), SLICES_MARK));
	o->owner = xstrdup(item_string(&item_get(metadata, "ownerReferences")->kids[0], "uid"));
	o->pool_generation = item_number(pool, "generation", -1);
	o->count = (size_t)item_number(pool, "resourceSliceCount", -1);
	o->n_devices = item_get(spec, "devices")->n_kids;
	o->is_changed = false;
	assert_in_range(o->n_devices, 1, SLICE_DEVICES_MAX);
}

static bool is_version(const struct fake_object *o, const char *version)
{
	return version && atoi(version) == o->version;
}

static long do_write(struct fake_api *api, const struct api_request *r, struct strbuf *out,
		     struct arena *a)
{
	const struct item *body = parse(r->body, a);
	const char *name = r->path + strlen(PATH) + (r->path[strlen(PATH)] == '/');
	struct fake_object *o = find(api, name);

	assert_string_equal(r->type, "application/json");
	if (!strcmp(r->method, "POST")) {
		assert_string_equal(name, "");
		o = add(api);
		api->created++;
		replace(o, body);
		put_envelope(out, meta_of(o, a));
		return 201;
	}
	if (!o)
		return 404;
	if (!strcmp(r->method, "DELETE")) {
		const struct item *preconditions = item_get(body, "preconditions");

		if (!is_version(o, item_string(preconditions, "resourceVersion")) ||
		    strcmp(item_string(preconditions, "uid"), o->uid) != 0)
			return 409;
		end_object(o);
		*o = api->v[--api->n];
		return 200;
	}
	assert_string_equal(r->method, "PUT");
	if (!is_version(o, item_string(item_get(body, "metadata"), "resourceVersion")))
		return 409;
	replace(o, body);
	o->version = ++api->clock;
	o->generation++;
	put_envelope(out, meta_of(o, a));
	return 200;
}

static long do_request(struct fake_api *api, const struct api_request *r, struct strbuf *out)
{
	_cleanup_arena_ struct arena *a = arena_new(0);
	struct fake_object node = { .name = (char *)"worker-1",
				    .uid = (char *)api->node_uid,
				    .version = 1 };

	if (strcmp(r->method, "GET") != 0)
		return do_write(api, r, out, a);
	if (!strcmp(r->path, "/version")) {
		strbuf_printf(out, "{\"major\":\"1\",\"minor\":\"%s\"}", api->minor);
		return 200;
	}
	if (!strcmp(r->path, "/api/v1/nodes/worker-1")) {
		assert_string_equal(r->accept, API_OBJECT_TYPE);
		put_envelope(out, meta_of(&node, a));
		return 200;
	}
	assert_string_equal(r->accept, API_OBJECTS_TYPE);
	assert_string_equal(
		r->path,
		PATH "?fieldSelector=spec.nodeName%3Dworker-1%2Cspec.driver%3Dvf.railmate.io");
	put_list(api, out, a);
	return 200;
}

/* --- */

static void answer(void *arg)
{
	struct reply *reply = arg;
	const struct bytes body = { (const uint8_t *)strbuf_str(&reply->body), reply->body.len };

	reply->api->open--;
	reply->done(reply->arg, reply->status, body, reply->why);
	strbuf_done(&reply->body);
	free(reply);
}

static enum fake_way way_of(struct fake_api *api, const char *method)
{
	struct fake_script *s = &api->script;

	if (s->way == FAKE_WELL || !s->times || (s->method && strcmp(s->method, method) != 0))
		return FAKE_WELL;
	if (s->from > 0) {
		s->from--;
		return FAKE_WELL;
	}
	s->times--;
	return s->way;
}

static const char *why_of(long status)
{
	switch (status) {
	case 0:
		return "connection lost";
	case 404:
		return "refused: HTTP 404";
	case 409:
		return "refused: HTTP 409";
	case 422:
		return "refused: HTTP 422";
	default:
		return "refused: HTTP 500";
	}
}

void fake_api_ask(void *arg, const struct api_request *r, api_done_fn done, void *done_arg)
{
	struct fake_api *api = arg;
	struct reply *reply = xcalloc(1, sizeof(*reply));
	enum fake_way way = way_of(api, r->method);

	*reply = (struct reply) { .api = api, .done = done, .arg = done_arg };
	api->asked++;
	api->open++;
	assert_int_equal(api->open, 1); /* one after the other */
	api->writes += strcmp(r->method, "GET") != 0;
	/* An object that is not found is gone. */
	if (way != FAKE_REFUSE || (api->script.status == 404 && !strcmp(r->method, "DELETE")))
		reply->status = do_request(api, r, &reply->body);
	if (way == FAKE_TWICE) {
		reply->body.len = 0;
		reply->status = do_request(api, r, &reply->body);
	}
	if (way == FAKE_REFUSE || way == FAKE_LOSE)
		reply->status = api->script.status;
	if (way != FAKE_WELL && way != FAKE_TWICE)
		reply->body.len = 0;
	if (reply->status != 200 && reply->status != 201)
		reply->why = why_of(reply->status);
	rpc_after(api->rpc, 1, answer, reply);
}
