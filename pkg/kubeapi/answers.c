/*
 * What the API server answers, read as it comes: a sieve for lists, and the pods and ResourceClaims
 * in them. transfer.c pushes; what is kept is in the arena of the answer.
 */
#include <curl/curl.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "document/document.h"
#include "kubeapi/kubeapi.h"
#include "kubeapi/transfer-internal.h"
#include "kubemsg/podspec.h"

/* Of a pod's spec, without all that is not read: the tree of it takes fifty times as much. */
#define PODS_MEMBER_MAX 32768
/* A claim has 32 results at most; one is asked for at a time. */
#define DRACLAIMS_MEMBER_MAX 65536

#define LIST_KEY     "items"
#define METADATA_KEY "metadata"

/* How many brackets are open within the answer, within its items, within an element. */
enum { IN_ANSWER = 1, IN_ITEMS, IN_ELEMENT };

void kubeapi_sieve_init(struct sieve *s, const struct sieve_reader *reader)
{
	*s = (struct sieve) { .reader = reader, .where = SIEVE_BEFORE };
}

void kubeapi_sieve_done(struct sieve *s)
{
	strbuf_done(&s->text);
	strbuf_done(&s->metadata);
}

static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static int malformed(struct err *err)
{
	return err_set(err, EBADMSG, "is not JSON");
}

static struct sieve_level *top(struct sieve *s)
{
	return &s->levels[s->n_levels - 1];
}

/* --- kept text --- */

static void put(struct sieve *s, const char *data, size_t len)
{
	if (!s->member || s->overflowed)
		return;
	s->overflowed = s->text.len + len > s->reader->member_max;
	if (!s->overflowed)
		strbuf_add(&s->text, data, len);
}

static void begin_member(struct sieve *s, const char *key)
{
	s->member = key;
	s->overflowed = false;
	s->text.len = 0;
}

static int end_member(struct sieve *s, struct err *err)
{
	const char *key = s->member, *text = s->overflowed ? NULL : strbuf_str(&s->text);

	s->member = NULL;
	s->overflowed = false;
	if (text && !strcmp(text, "null")) /* as if it was not there */
		return 0;
	return s->reader->member(s->reader->arg, key, text, text ? s->text.len : 0, err);
}

/* A member of the answer itself. */
static int end_of_answers(struct sieve *s, struct err *err)
{
	const char *key = STEAL(s->member);

	if (!strcmp(key, METADATA_KEY)) {
		s->metadata.len = 0;
		if (!s->overflowed)
			strbuf_add(&s->metadata, s->text.s, s->text.len);
	} else if (s->overflowed || strcmp(strbuf_str(&s->text), "null") != 0) {
		return err_set(err, EBADMSG, "holds %s that are not a list", LIST_KEY);
	}
	return 0;
}

/* --- values --- */

/* The value is complete, and is one of the innermost open bracket. */
static int end_value(struct sieve *s, struct err *err)
{
	s->where = SIEVE_COMMA;
	if (s->n_levels == IN_ITEMS)
		return s->reader->end(s->reader->arg, err);
	if (s->n_levels == IN_ELEMENT && s->member)
		return end_member(s, err);
	return s->n_levels == IN_ANSWER && s->member ? end_of_answers(s, err) : 0;
}

/* How much of data belongs to a string; its end clears s->in_string. */
static size_t run_of_string(struct sieve *s, const char *data, size_t len)
{
	size_t i = 0;

	if (s->escaped && len) {
		s->escaped = false;
		i++;
	}
	while (i < len && s->in_string) {
		char c = data[i++];

		if (c == '"') {
			s->in_string = false;
		} else if (c == '\\') {
			s->escaped = i == len;
			i += i < len;
		}
	}
	return i;
}

/* How much of data belongs to the value of which all stays, or nothing; *ended: it is complete. */
static size_t run_of_whole(struct sieve *s, const char *data, size_t len, bool *ended)
{
	size_t i = 0;

	*ended = false;
	while (i < len && !*ended) {
		char c = data[i];

		if (s->in_string) {
			i += run_of_string(s, data + i, len - i);
			*ended = !s->in_string && !s->depth;
			continue;
		}
		i++;
		if (c == '"') {
			s->in_string = true;
		} else if (c == '{' || c == '[') {
			s->overflowed |= ++s->depth + s->n_levels > SIEVE_DEPTH_MAX && s->kept;
		} else if ((c == '}' || c == ']') && s->depth) {
			*ended = !--s->depth;
		} else if (!s->depth && (is_space(c) || strchr(",}]", c))) {
			*ended = true; /* a number or a word: it ended before this character (or a
					  NUL) */
			i--;
		}
	}
	return i;
}

static int in_whole(struct sieve *s, const char *data, size_t len, size_t *ret, struct err *err)
{
	bool ended;

	*ret = run_of_whole(s, data, len, &ended);
	if (s->kept)
		put(s, data, *ret);
	return ended ? end_value(s, err) : 0;
}

static void open_level(struct sieve *s, char c, const struct keep *inside)
{
	put(s, &c, 1);
	s->levels[s->n_levels++] = (struct sieve_level) { inside, c == '[', false };
	s->where = c == '[' ? SIEVE_FIRST_VALUE : SIEVE_FIRST_KEY;
}

/* The first character of a value; *used: it is done with. */
static int begin_value(struct sieve *s, char c, bool *used, struct err *err)
{
	bool opens = c == '{' || c == '[';

	if (strchr(",}]:", c)) /* or NUL */
		return malformed(err);
	if (s->n_levels == IN_ITEMS && c != '{')
		return err_set(err, EBADMSG, "holds an element of %s that is not an object",
			       LIST_KEY);
	if (top(s)->is_list) {
		s->kept = true;
		s->inside = top(s)->keep;
		if (top(s)->has_one)
			put(s, ",", 1);
		top(s)->has_one = true;
	}
	if (s->n_levels == IN_ANSWER && s->kept && !s->inside)
		begin_member(s, METADATA_KEY);
	else if (s->n_levels == IN_ANSWER && s->kept && c != '[')
		begin_member(s, LIST_KEY); /* null, or an error */
	else if (opens && s->kept && s->inside && s->n_levels < SIEVE_DEPTH_MAX && !s->overflowed) {
		open_level(s, c, s->inside);
		return 0;
	}
	*used = false;
	s->where = SIEVE_IN_WHOLE;
	s->depth = 0;
	s->in_string = s->escaped = false;
	return 0;
}

/* --- keys and the text between --- */

static bool is_key(const struct sieve *s, const char *key)
{
	return s->key_len == strlen(key) && !memcmp(s->key, key, s->key_len);
}

static int found_key_of_answer(struct sieve *s, struct err *err)
{
	bool is_list = is_key(s, LIST_KEY);

	s->kept = is_list || is_key(s, METADATA_KEY);
	s->inside = is_list ? s->reader->keep : NULL;
	if (is_list && s->has_items)
		return err_set(err, EBADMSG, "holds %s twice", LIST_KEY);
	s->has_items |= is_list;
	return 0;
}

static int found_key(struct sieve *s, struct err *err)
{
	const struct keep *k = top(s)->keep;

	s->where = SIEVE_COLON;
	if (s->n_levels == IN_ANSWER)
		return found_key_of_answer(s, err);
	while (k->key && !is_key(s, k->key))
		k++;
	s->kept = k->key;
	s->inside = k->inside;
	if (!s->kept)
		return 0;
	if (s->n_levels == IN_ELEMENT) {
		begin_member(s, k->key);
		return 0;
	}
	put(s, ",", top(s)->has_one);
	put(s, "\"", 1);
	put(s, k->key, s->key_len);
	put(s, "\":", 2);
	top(s)->has_one = true;
	return 0;
}

static int in_key(struct sieve *s, char c, struct err *err)
{
	if (c == '"' && !s->escaped)
		return found_key(s, err);
	s->escaped = c == '\\' && !s->escaped;
	if (s->key_len < sizeof(s->key))
		s->key[s->key_len++] = c;
	return 0;
}

static int begin_key(struct sieve *s, char c, struct err *err)
{
	if (c != '"')
		return malformed(err);
	s->where = SIEVE_IN_KEY;
	s->key_len = 0;
	s->escaped = false;
	return 0;
}

static int close_level(struct sieve *s, char c, struct err *err)
{
	if (c != (top(s)->is_list ? ']' : '}'))
		return malformed(err);
	if (s->n_levels > IN_ELEMENT)
		put(s, &c, 1);
	if (--s->n_levels)
		return end_value(s, err);
	s->where = SIEVE_AFTER;
	return 0;
}

static int begin_answer(struct sieve *s, char c, struct err *err)
{
	if (c != '{')
		return malformed(err);
	open_level(s, c, NULL);
	return 0;
}

/* One character outside of whole values; *used: it is done with. */
static int mark(struct sieve *s, char c, bool *used, struct err *err)
{
	*used = true;
	if (s->where == SIEVE_IN_KEY)
		return in_key(s, c, err);
	if (is_space(c))
		return 0;
	switch (s->where) {
	case SIEVE_BEFORE:
		return begin_answer(s, c, err);
	case SIEVE_FIRST_KEY:
		return c == '}' ? close_level(s, c, err) : begin_key(s, c, err);
	case SIEVE_KEY:
		return begin_key(s, c, err);
	case SIEVE_COLON:
		s->where = SIEVE_VALUE;
		return c == ':' ? 0 : malformed(err);
	case SIEVE_FIRST_VALUE:
		return c == ']' ? close_level(s, c, err) : begin_value(s, c, used, err);
	case SIEVE_VALUE:
		return begin_value(s, c, used, err);
	case SIEVE_COMMA:
		if (c != ',')
			return close_level(s, c, err);
		s->where = top(s)->is_list ? SIEVE_VALUE : SIEVE_KEY;
		return 0;
	default: /* SIEVE_AFTER */
		return malformed(err);
	}
}

int kubeapi_sieve_push(struct sieve *s, const char *data, size_t len, struct err *err)
{
	while (len) {
		size_t n = 1;
		int r;

		if (s->where == SIEVE_IN_WHOLE) {
			r = in_whole(s, data, len, &n, err);
		} else {
			bool used;

			r = mark(s, *data, &used, err);
			n = used;
		}
		if (r < 0)
			return r;
		data += n;
		len -= n;
	}
	return 0;
}

int kubeapi_sieve_end(struct sieve *s, struct err *err)
{
	if (s->where == SIEVE_BEFORE)
		return err_set(err, EBADMSG, "is empty");
	if (s->where != SIEVE_AFTER)
		return err_set(err, EBADMSG, "ends in the middle");
	if (!s->has_items)
		return err_set(err, EBADMSG, "holds no %s: it is not a list of pods", LIST_KEY);
	return 0;
}

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

static int add_device(struct draclaims *c, const struct item *result, struct err *err)
{
	const char *request = item_string(result, "request"),
		   *driver = item_string(result, "driver"), *pool = item_string(result, "pool"),
		   *device = item_string(result, "device");

	if (!request || !driver || !pool || !device)
		return err_set(err, EBADMSG,
			       "a result of the claim lacks its request, driver, pool or device");
	if (arena_used(c->arena) > DRACLAIMS_KEPT_MAX)
		return err_set(err, EFBIG, "the results take more than %zu bytes",
			       DRACLAIMS_KEPT_MAX);
	c->v = xgrow(c->v, &c->cap, c->n + 1, sizeof(*c->v));
	c->v[c->n++] = (struct draclaim_device) { arena_strdup(c->arena, request),
						  arena_strdup(c->arena, driver),
						  arena_strdup(c->arena, pool),
						  arena_strdup(c->arena, device) };
	return 0;
}

static int read_results(struct draclaims *c, const struct item *status, struct err *err)
{
	const struct item *results =
		item_get(item_get(item_get(status, "allocation"), "devices"), "results");
	int r = 0;

	if (results && results->type != ITEM_LIST && results->type != ITEM_NULL)
		return err_set(err, EBADMSG, "the results of the claim are not a list");
	for (size_t i = 0; r == 0 && results && i < results->n_kids; i++)
		r = add_device(c, &results->kids[i], err);
	return r;
}

/* All that is looked at. */
static const struct keep keep_result[] = { { "request", NULL },
					   { "driver", NULL },
					   { "pool", NULL },
					   { "device", NULL },
					   { NULL, NULL } };

static const struct keep keep_devices[] = { { "results", keep_result }, { NULL, NULL } };

static const struct keep keep_allocation[] = { { "devices", keep_devices }, { NULL, NULL } };

static const struct keep keep_claim_status[] = { { "allocation", keep_allocation },
						 { NULL, NULL } };

static const struct keep keep_claim_object[] = { { "status", keep_claim_status }, { NULL, NULL } };

static int on_status(void *arg, const char *key, const char *text, size_t len, struct err *err)
{
	_cleanup_arena_ struct arena *scratch = arena_new(4096);
	const struct item *status;
	int r;

	if (!text)
		return err_set(err, EFBIG, "the claim's %s takes more than %u bytes", key,
			       DRACLAIMS_MEMBER_MAX);
	r = document_parse(text, len, "the claim", scratch, &status, err);
	return r < 0 ? r : read_results(arg, status, err);
}

static int on_claim_end(void *arg, struct err *err)
{
	struct draclaims *c = arg;

	(void)err;
	c->n_claims++;
	return 0;
}

void kubeapi_draclaims_init(struct draclaims *c, struct arena *arena)
{
	*c = (struct draclaims) { .arena = arena,
				  .reader = { .keep = keep_claim_object,
					      .member_max = DRACLAIMS_MEMBER_MAX,
					      .member = on_status,
					      .end = on_claim_end,
					      .arg = c } };
}

void kubeapi_draclaims_done(struct draclaims *c)
{
	free(c->v);
	*c = (struct draclaims) { 0 };
}
