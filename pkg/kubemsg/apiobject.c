#include "kubemsg/apiobject.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "kubemsg/apilist.h"
#include "kubemsg/messages-internal.h"
#include "objectmeta.pb-c.h"

/* Names and annotations of one: the API server takes 256 KiB of the latter. */
#define OBJECT_BYTES_MAX (320u << 10)

struct reading {
	struct arena *arena;
	const char *annotation;
	struct api_object *v; /* heap */
	size_t n, cap;
};

static int read_object(void *arg, struct bytes in, struct err *err)
{
	struct reading *r = arg;
	_cleanup_arena_ struct arena *scratch = arena_new(4096);
	const Objectmeta__Object *m = kubemsg_unpack_known(&objectmeta__object__descriptor, in,
							   OBJECT_BYTES_MAX, scratch, err);
	const Objectmeta__Meta *meta = m ? m->metadata : NULL;
	struct api_object o = { 0 };

	if (!m)
		return -err->code;
	if (!meta || !*meta->name || !*meta->uid || !*meta->resource_version)
		return err_set(err, EBADMSG, "lacks its name, uid or resourceVersion");
	for (size_t i = 0; i < meta->n_annotations; i++) {
		if (str_eq(meta->annotations[i]->key, r->annotation))
			o.mark = arena_strdup(r->arena, meta->annotations[i]->value);
	}
	o.name = arena_strdup(r->arena, meta->name);
	o.uid = arena_strdup(r->arena, meta->uid);
	o.version = arena_strdup(r->arena, meta->resource_version);
	o.generation = meta->generation;
	r->v = xgrow(r->v, &r->cap, r->n + 1, sizeof(*r->v));
	r->v[r->n++] = o;
	return 0;
}

int kubemsg_object(struct bytes body, const char *annotation, struct arena *a,
		   struct api_object *ret, struct err *err)
{
	struct reading r = { .arena = a, .annotation = annotation };
	struct bytes object;
	int e;

	if (!kubemsg_enveloped(body, &object))
		return err_set(err, EBADMSG, "is not Kubernetes' protobuf");
	e = read_object(&r, object, err);
	if (e == 0)
		*ret = r.v[0];
	free(r.v);
	return e;
}

int kubemsg_objects(struct bytes body, const char *annotation, struct arena *a,
		    struct api_objects *ret, struct err *err)
{
	struct reading r = { .arena = a, .annotation = annotation };
	struct api_list list;
	int e;

	kubemsg_list_begin(&list, read_object, &r);
	e = kubemsg_list_push(&list, (const char *)body.data, body.len, err);
	if (e == 0)
		e = kubemsg_list_end(&list, err);
	kubemsg_list_done(&list);
	if (e == 0)
		*ret = (struct api_objects) { r.n ? arena_copy(a, r.v, r.n * sizeof(*r.v)) : NULL,
					      r.n };
	free(r.v);
	return e;
}
