#include "kubeapi/pods-internal.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "document/document.h"

static int wrong(const struct pods *p, const char *member, const struct item *in, const char *key,
		 const char *what, struct err *err)
{
	const char *path = item_path(in, p->scratch);

	return err_set(err, EBADMSG, "%s%s%s.%s is not %s", member,
		       *path && *path != '[' ? "." : "", path, key, what);
}

/* A member that is a string; "" when it may be absent and is. */
static int text(const struct pods *p, const char *member, const struct item *object,
		const char *key, bool required, const char **ret, struct err *err)
{
	const struct item *item = item_get(object, key);

	if ((!item || item->type == ITEM_NULL) && !required)
		*ret = "";
	else if (item && item->type == ITEM_STRING && (*item->string || !required))
		*ret = item->string;
	else
		return wrong(p, member, object, key, "a string", err);
	return 0;
}

/* A list that may be absent. */
static int list(const struct pods *p, const struct item *object, const char *key,
		const struct item **ret, size_t *ret_n, struct err *err)
{
	const struct item *item = item_get(object, key);

	*ret = NULL;
	*ret_n = 0;
	if (!item || item->type == ITEM_NULL)
		return 0;
	if (item->type != ITEM_LIST)
		return wrong(p, "spec", object, key, "a list", err);
	*ret = item->kids;
	*ret_n = item->n_kids;
	return 0;
}

static size_t kids_of(const struct item *list)
{
	return list && list->type == ITEM_LIST ? list->n_kids : 0;
}

/* The claim that the scheduler made of limits that DRA drivers serve: {"resourceClaimName",
 * "requestMappings"}; NULL: none. */
static const struct item *extended_of(const struct pods *p)
{
	return item_get(p->status, "extendedResourceClaimStatus");
}

/* The scheduler has made a claim of the container's limit: no device plugin is asked for it. */
static bool is_by_dra(const struct pods *p, const char *container, const char *resource)
{
	const struct item *mappings = item_get(extended_of(p), "requestMappings");

	for (size_t i = 0; i < kids_of(mappings); i++) {
		if (str_eq(item_string(&mappings->kids[i], "containerName"), container) &&
		    str_eq(item_string(&mappings->kids[i], "resourceName"), resource))
			return true;
	}
	return false;
}

static int too_many(const char *what, struct err *err)
{
	return err_set(err, EFBIG, "it has more %s than are read of one pod", what);
}

static int read_limits(const struct pods *p, const struct item *limits, struct spec_container *c,
		       size_t *parts, struct err *err)
{
	struct spec_limit *v;
	size_t n = 0;

	if (!limits || limits->type != ITEM_OBJECT)
		return 0;
	v = arena_array(p->scratch, limits->n_kids, sizeof(*v));
	for (size_t i = 0; i < limits->n_kids; i++) {
		const struct item *limit = &limits->kids[i];
		int64_t count;

		if (!kubemsg_podspec_is_extended(limit->key))
			continue;
		if (limit->type != ITEM_STRING || kubemsg_podspec_count(limit->string, &count) < 0)
			count = limit->whole ? limit->number : -1;
		if (count < 0)
			return wrong(p, "spec", limits, document_shown(limit->key, p->scratch),
				     "a whole number", err);
		if (!count)
			continue;
		if (++*parts > SPEC_PARTS_MAX)
			return too_many("limits and claims", err);
		if (!is_by_dra(p, c->name, limit->key))
			v[n++] = (struct spec_limit) { limit->key, count };
	}
	c->limits = v;
	c->n_limits = n;
	return 0;
}

/* Of the list `in`, the element that is called so; NULL: none. */
static const struct item *named(const struct item *in, const char *name)
{
	for (size_t i = 0; name && i < kids_of(in); i++) {
		if (str_eq(item_string(&in->kids[i], "name"), name))
			return &in->kids[i];
	}
	return NULL;
}

static void add_claim(const char *claim, const char *request, struct spec_container *c,
		      struct spec_claim *v)
{
	if (claim)
		v[c->n_claims++] = (struct spec_claim) { claim, request };
}

/* Its own claims, and those that the scheduler made of its limits. */
static int read_claims(const struct pods *p, const struct item *in, struct spec_container *c,
		       size_t *parts, struct err *err)
{
	const struct item *claims = item_get(item_get(in, "resources"), "claims");
	const struct item *own = item_get(p->spec, "resourceClaims");
	const struct item *made = item_get(p->status, "resourceClaimStatuses");
	const struct item *extended = extended_of(p);
	const struct item *mappings = item_get(extended, "requestMappings");
	size_t n = kids_of(claims), n_mappings = kids_of(mappings);
	struct spec_claim *v;

	if (n > SPEC_PARTS_MAX || (*parts += n) > SPEC_PARTS_MAX)
		return too_many("limits and claims", err);
	v = arena_array(p->scratch, n + n_mappings, sizeof(*v));
	c->claims = v;
	for (size_t i = 0; i < n; i++) {
		const char *name = item_string(&claims->kids[i], "name");
		const char *claim = item_string(named(own, name), "resourceClaimName");

		if (!claim) /* made of a template */
			claim = item_string(named(made, name), "resourceClaimName");
		add_claim(claim, item_string(&claims->kids[i], "request"), c, v);
	}
	for (size_t i = 0; i < n_mappings; i++) {
		if (str_eq(item_string(&mappings->kids[i], "containerName"), c->name))
			add_claim(item_string(extended, "resourceClaimName"),
				  item_string(&mappings->kids[i], "requestName"), c, v);
	}
	return 0;
}

/* Names are searched one by one. */
static int check_claims(const struct pods *p, struct err *err)
{
	if (kids_of(item_get(p->spec, "resourceClaims")) > SPEC_CLAIMS_MAX ||
	    kids_of(item_get(p->status, "resourceClaimStatuses")) > SPEC_CLAIMS_MAX ||
	    kids_of(item_get(extended_of(p), "requestMappings")) > SPEC_CLAIMS_MAX)
		return too_many("ResourceClaims", err);
	return 0;
}

static int read_container(const struct pods *p, const struct item *in, bool init,
			  struct spec_container *c, size_t *parts, struct err *err)
{
	int e = text(p, "spec", in, "name", true, &c->name, err);

	c->kind = kubemsg_podspec_kind(init, item_string(in, "restartPolicy"));
	e = e < 0 ? e : read_claims(p, in, c, parts, err);
	return e < 0 ? e
		     : read_limits(p, item_get(item_get(in, "resources"), "limits"), c, parts, err);
}

static int read_containers(const struct pods *p, struct spec_pod *pod, struct err *err)
{
	const struct item *init, *app;
	struct spec_container *v;
	size_t n_init, n_app, parts = 0;
	int e;

	if (!p->spec || p->spec->type != ITEM_OBJECT)
		return err_set(err, EBADMSG, "spec is not an object");
	e = check_claims(p, err);
	e = e < 0 ? e : list(p, p->spec, "initContainers", &init, &n_init, err);
	e = e < 0 ? e : list(p, p->spec, "containers", &app, &n_app, err);
	if (e < 0)
		return e;
	if (n_init + n_app > SPEC_PARTS_MAX)
		return too_many("containers", err);
	v = arena_array(p->scratch, n_init + n_app, sizeof(*v));
	for (size_t i = 0; i < n_init + n_app && e == 0; i++)
		e = read_container(p, i < n_init ? &init[i] : &app[i - n_init], i < n_init, &v[i],
				   &parts, err);
	if (e < 0)
		return e;
	pod->containers = v;
	pod->n_containers = n_init + n_app;
	return 0;
}

static int read_metadata(const struct pods *p, struct spec_pod *pod, struct err *err)
{
	const struct item *meta = p->metadata, *deleted;
	const char *created, *end;
	struct tm tm = { 0 };
	int e;

	if (!meta || meta->type != ITEM_OBJECT)
		return err_set(err, EBADMSG, "metadata is not an object");
	e = text(p, "metadata", meta, "name", true, &pod->name, err);
	e = e < 0 ? e : text(p, "metadata", meta, "namespace", true, &pod->ns, err);
	e = e < 0 ? e : text(p, "metadata", meta, "uid", false, &pod->uid, err);
	if (e < 0)
		return e;
	deleted = item_get(meta, "deletionTimestamp");
	pod->deleted = deleted && deleted->type != ITEM_NULL;
	created = item_string(meta, "creationTimestamp"); /* UTC, as Kubernetes writes it */
	end = created ? strptime(created, "%Y-%m-%dT%H:%M:%SZ", &tm) : NULL;
	pod->created = end && !*end ? (int64_t)timegm(&tm) : 0;
	return 0;
}

static int read_pod(struct pods *p, struct err *err)
{
	struct spec_pod pod = { .unread = p->unread };
	struct err why = { 0 };
	int e = read_metadata(p, &pod, err);

	if (e < 0)
		return e;
	if (kubemsg_podspec_is_over(item_string(p->status, "phase")))
		return 0;
	if (!pod.unread && read_containers(p, &pod, &why) < 0)
		pod.unread = why.msg;
	return kubemsg_podspec_add(&p->list, &pod, err);
}

/* --- the answer's pods, one after the other --- */

/* All that read_pod() looks at. */
static const struct keep keep_named[] = { { "name", NULL }, { "request", NULL }, { NULL, NULL } };
static const struct keep keep_resources[] = { { "limits", NULL },
					      { "claims", keep_named },
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
static const struct keep keep_claim[] = { { "name", NULL },
					  { "resourceClaimName", NULL },
					  { NULL, NULL } };
static const struct keep keep_spec[] = { { "containers", keep_container },
					 { "initContainers", keep_container },
					 { "resourceClaims", keep_claim },
					 { NULL, NULL } };
static const struct keep keep_mapping[] = {
	{ "containerName", NULL }, { "resourceName", NULL }, { "requestName", NULL }, { NULL, NULL }
};
static const struct keep keep_extended[] = { { "resourceClaimName", NULL },
					     { "requestMappings", keep_mapping },
					     { NULL, NULL } };
static const struct keep keep_status[] = { { "phase", NULL },
					   { "resourceClaimStatuses", keep_claim },
					   { "extendedResourceClaimStatus", keep_extended },
					   { NULL, NULL } };
static const struct keep keep_pod[] = { { "metadata", keep_metadata },
					{ "spec", keep_spec },
					{ "status", keep_status },
					{ NULL, NULL } };

static int on_member(void *arg, const char *key, const char *text, size_t len, struct err *err)
{
	struct pods *p = arg;
	const struct item **tree = !strcmp(key, "metadata") ? &p->metadata
				   : !strcmp(key, "spec")   ? &p->spec
							    : &p->status;
	struct err why = { 0 };

	(void)err;
	p->scratch = p->scratch ? p->scratch : arena_new(4096);
	if (*tree)
		err_set(&why, EBADMSG, "%s is there twice", key);
	else if (!text)
		err_set(&why, EFBIG, "%s takes more than %u bytes", key, PODS_MEMBER_MAX);
	else if (*text != '{')
		err_set(&why, EBADMSG, "%s is not an object", key);
	else
		document_parse(text, len, key, p->scratch, tree, &why);
	if (why.code && !p->unread)
		p->unread = arena_strdup(p->scratch, why.msg);
	return 0;
}

static void forget(struct pods *p)
{
	arena_free(p->scratch);
	p->scratch = NULL;
	p->metadata = p->spec = p->status = NULL;
	p->unread = NULL;
}

static int on_end(void *arg, struct err *err)
{
	struct pods *p = arg;
	int e = read_pod(p, err);

	if (e == -EBADMSG && p->unread)
		err_set(err, EBADMSG, "%s", p->unread);
	if (e == -EBADMSG)
		err_wrap(err, "items[%zu]", p->n_read);
	p->n_read++;
	forget(p);
	return e;
}

void kubeapi_pods_init(struct pods *p, struct arena *arena)
{
	*p = (struct pods) { .list = { .arena = arena },
			     .reader = { .keep = keep_pod,
					 .member_max = PODS_MEMBER_MAX,
					 .member = on_member,
					 .end = on_end,
					 .arg = p } };
}

void kubeapi_pods_done(struct pods *p)
{
	kubemsg_podspec_done(&p->list);
	forget(p);
}
