#include "kubeapi/pods-internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "document/document.h"
#include "kubeapi/prune-internal.h"

/* One pod being read: its tree is in the scratch arena, what stays goes into the other. */
struct reading {
	struct arena *keep, *scratch;
	const char *name; /* "items[3]" */
};

void kubeapi_pods_init(struct pods *p, struct arena *arena)
{
	*p = (struct pods) { .arena = arena };
}

void kubeapi_pods_done(struct pods *p)
{
	free(p->v);
	*p = (struct pods) { 0 };
}

static int wrong(const struct reading *r, const struct item *in, const char *key, const char *what,
		 struct err *err)
{
	const char *path = item_path(in, r->scratch);

	return err_set(err, EBADMSG, "%s: %s%s%s is not %s", r->name, path, *path ? "." : "", key,
		       what);
}

/* A member that is a string; "" when it may be absent and is. */
static int text(const struct reading *r, const struct item *object, const char *key, bool required,
		const char **ret, struct err *err)
{
	const struct item *item = item_get(object, key);

	if ((!item || item->type == ITEM_NULL) && !required)
		*ret = "";
	else if (item && item->type == ITEM_STRING && (*item->string || !required))
		*ret = arena_strdup(r->keep, item->string);
	else
		return wrong(r, object, key, "a string", err);
	return 0;
}

/* A list that may be absent. */
static int list(const struct reading *r, const struct item *object, const char *key,
		const struct item **ret, size_t *ret_n, struct err *err)
{
	const struct item *item = item_get(object, key);

	*ret = NULL;
	*ret_n = 0;
	if (!item || item->type == ITEM_NULL)
		return 0;
	if (item->type != ITEM_LIST)
		return wrong(r, object, key, "a list", err);
	*ret = item->kids;
	*ret_n = item->n_kids;
	return 0;
}

static size_t kids_of(const struct item *list)
{
	return list && list->type == ITEM_LIST ? list->n_kids : 0;
}

/* What the scheduler made of limits that DRA drivers serve: {"resourceClaimName",
 * "requestMappings"}; NULL: nothing. */
static const struct item *extended_of(const struct item *pod)
{
	return item_get(item_get(pod, "status"), "extendedResourceClaimStatus");
}

/* The scheduler has made a claim of the container's limit: no device plugin is asked for it. */
static bool is_by_dra(const struct item *pod, const char *container, const char *resource)
{
	const struct item *mappings = item_get(extended_of(pod), "requestMappings");

	for (size_t i = 0; i < kids_of(mappings); i++) {
		if (str_eq(item_string(&mappings->kids[i], "containerName"), container) &&
		    str_eq(item_string(&mappings->kids[i], "resourceName"), resource))
			return true;
	}
	return false;
}

static int read_limits(const struct reading *r, const struct item *pod, const struct item *limits,
		       struct spec_container *c, struct err *err)
{
	struct spec_limit *v;
	size_t n = 0;

	if (!limits || limits->type != ITEM_OBJECT)
		return 0;
	v = arena_array(r->keep, limits->n_kids, sizeof(*v));
	for (size_t i = 0; i < limits->n_kids; i++) {
		const struct item *limit = &limits->kids[i];
		int64_t count;

		if (!kubemsg_podspec_is_extended(limit->key) || is_by_dra(pod, c->name, limit->key))
			continue;
		if (limit->type != ITEM_STRING || kubemsg_podspec_count(limit->string, &count) < 0)
			count = limit->whole ? limit->number : -1;
		if (count < 0)
			return wrong(r, limits, document_shown(limit->key, r->scratch),
				     "a whole number", err);
		v[n] = (struct spec_limit) { arena_strdup(r->keep, limit->key), count };
		n += count > 0;
	}
	c->limits = v;
	c->n_limits = n;
	return 0;
}

/* Of the list `in`, the element that is called so; NULL: none. */
static const struct item *named(const struct item *in, const char *name)
{
	for (size_t i = 0; in && name && in->type == ITEM_LIST && i < in->n_kids; i++) {
		if (str_eq(item_string(&in->kids[i], "name"), name))
			return &in->kids[i];
	}
	return NULL;
}

static void add_claim(const struct reading *r, const char *claim, const char *request,
		      struct spec_container *c, struct spec_claim *v)
{
	if (claim)
		v[c->n_claims++] = (struct spec_claim) { arena_strdup(r->keep, claim),
							 arena_strdup(r->keep, request) };
}

/* Its own claims, and what the scheduler made of its limits. */
static void read_claims(const struct reading *r, const struct item *pod, const struct item *in,
			struct spec_container *c)
{
	const struct item *claims = item_get(item_get(in, "resources"), "claims");
	const struct item *own = item_get(item_get(pod, "spec"), "resourceClaims");
	const struct item *made = item_get(item_get(pod, "status"), "resourceClaimStatuses");
	const struct item *extended = extended_of(pod);
	const struct item *mappings = item_get(extended, "requestMappings");
	size_t n = kids_of(claims), n_mappings = kids_of(mappings);
	struct spec_claim *v = arena_array(r->keep, n + n_mappings, sizeof(*v));

	c->claims = v;
	for (size_t i = 0; i < n; i++) {
		const char *name = item_string(&claims->kids[i], "name");
		const char *claim = item_string(named(own, name), "resourceClaimName");

		if (!claim) /* made of a template */
			claim = item_string(named(made, name), "resourceClaimName");
		add_claim(r, claim, item_string(&claims->kids[i], "request"), c, v);
	}
	for (size_t i = 0; i < n_mappings; i++) {
		if (str_eq(item_string(&mappings->kids[i], "containerName"), c->name))
			add_claim(r, item_string(extended, "resourceClaimName"),
				  item_string(&mappings->kids[i], "requestName"), c, v);
	}
}

static int read_containers(const struct reading *r, const struct item *top, struct spec_pod *pod,
			   struct err *err)
{
	const struct item *spec = item_get(top, "spec"), *init, *app;
	struct spec_container *v;
	size_t n_init, n_app;
	int e;

	e = list(r, spec, "initContainers", &init, &n_init, err);
	e = e < 0 ? e : list(r, spec, "containers", &app, &n_app, err);
	if (e < 0)
		return e;
	v = arena_array(r->keep, n_init + n_app, sizeof(*v));
	for (size_t i = 0; i < n_init + n_app; i++) {
		const struct item *in = i < n_init ? &init[i] : &app[i - n_init];

		e = text(r, in, "name", true, &v[i].name, err);
		if (e < 0)
			return e;
		v[i].kind = kubemsg_podspec_kind(i < n_init, item_string(in, "restartPolicy"));
		read_claims(r, top, in, &v[i]);
		e = read_limits(r, top, item_get(item_get(in, "resources"), "limits"), &v[i], err);
		if (e < 0)
			return e;
	}
	pod->containers = v;
	pod->n_containers = n_init + n_app;
	return 0;
}

static int read_pod(const struct reading *r, const struct item *top, struct spec_pod *pod,
		    struct err *err)
{
	const struct item *meta = item_get(top, "metadata"), *spec = item_get(top, "spec"),
			  *deleted;
	const char *created, *end;
	struct tm tm = { 0 };
	int e;

	if (!meta || meta->type != ITEM_OBJECT)
		return wrong(r, top, "metadata", "an object", err);
	if (!spec || spec->type != ITEM_OBJECT)
		return wrong(r, top, "spec", "an object", err);
	e = text(r, meta, "name", true, &pod->name, err);
	e = e < 0 ? e : text(r, meta, "namespace", true, &pod->ns, err);
	e = e < 0 ? e : text(r, meta, "uid", false, &pod->uid, err);
	if (e < 0)
		return e;
	pod->over = kubemsg_podspec_is_over(item_string(item_get(top, "status"), "phase"));
	deleted = item_get(meta, "deletionTimestamp");
	pod->deleted = deleted && deleted->type != ITEM_NULL;
	created = item_string(meta, "creationTimestamp"); /* UTC, as Kubernetes writes it */
	end = created ? strptime(created, "%Y-%m-%dT%H:%M:%SZ", &tm) : NULL;
	pod->created = end && !*end ? (int64_t)timegm(&tm) : 0;
	return read_containers(r, top, pod, err);
}

/* All that read_pod() looks at. */
static const struct keep keep_resources[] = { { "limits", NULL },
					      { "claims", NULL },
					      { NULL, NULL } };
static const struct keep keep_container[] = {
	{ "name", NULL }, { "restartPolicy", NULL }, { "resources", keep_resources }, { NULL, NULL }
};
static const struct keep keep_metadata[] = { { "name", NULL },
					     { "namespace", NULL },
					     { "uid", NULL },
					     { "creationTimestamp", NULL },
					     { "deletionTimestamp", NULL },
					     { NULL, NULL } };
static const struct keep keep_spec[] = { { "containers", keep_container },
					 { "initContainers", keep_container },
					 { "resourceClaims", NULL },
					 { NULL, NULL } };
static const struct keep keep_status[] = { { "phase", NULL },
					   { "resourceClaimStatuses", NULL },
					   { "extendedResourceClaimStatus", NULL },
					   { NULL, NULL } };
static const struct keep keep_pod[] = { { "metadata", keep_metadata },
					{ "spec", keep_spec },
					{ "status", keep_status },
					{ NULL, NULL } };

/* An array that grows is there twice for a moment. */
static size_t kept_with_one_more(const struct pods *p)
{
	size_t places = p->n < p->cap ? p->cap : 3 * p->cap;

	return arena_used(p->arena) + places * sizeof(*p->v);
}

int kubeapi_pods_add(struct pods *p, const char *pod_text, size_t len, struct err *err)
{
	_cleanup_strbuf_ struct strbuf small = STRBUF_INIT;
	_cleanup_arena_ struct arena *scratch = arena_new(4096);
	char name[40];
	struct reading r = { p->arena, scratch, name };
	struct spec_pod pod = { 0 };
	const struct item *top;
	int e;

	snprintf(name, sizeof(name), "items[%zu]", p->n);
	if (kubeapi_prune(pod_text, len, keep_pod,
			  &small)) /* else let the parser say what is wrong */
		e = document_parse(small.s, small.len, name, scratch, &top, err);
	else
		e = document_parse(pod_text, len, name, scratch, &top, err);
	e = e < 0 ? e : read_pod(&r, top, &pod, err);
	if (e < 0)
		return e;
	if (kept_with_one_more(p) > PODS_KEPT_MAX)
		return err_set(err, EFBIG,
			       "%s: the pods' limits and names take more than %zu bytes", name,
			       PODS_KEPT_MAX);
	p->v = xgrow(p->v, &p->cap, p->n + 1, sizeof(*p->v));
	p->v[p->n++] = pod;
	return 0;
}
