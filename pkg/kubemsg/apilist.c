/*
 * Lists of the API server: four bytes, then a runtime.Unknown, whose raw is the list. Field numbers
 * are those of k8s.io/apimachinery/pkg/runtime/generated.proto and …/apis/meta/v1/generated.proto;
 * all lists have their metadata and their items in the same fields. kubeapi pushes what arrives.
 */
#include "kubemsg/apilist.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"
#include "kubemsg/messages-internal.h"
#include "resourceclaim.pb-c.h"

enum { UNKNOWN_RAW = 2 };
enum { LIST_METADATA = 1, LIST_ITEM = 2 };
enum { METADATA_CONTINUE = 3 };
enum { STATUS_MESSAGE = 3 };

static const uint8_t magic[] = { 'k', '8', 's', '\0' };

/*
 * Of a claim, without all that is not read. It has 32 results at most, with 32 capacities each, and
 * 256 users (k8s.io/api/resource/v1/types.go).
 */
#define CLAIM_BYTES_MAX ((size_t)256 << 10)

static int malformed(struct err *err)
{
	return err_set(err, EBADMSG, "is not Kubernetes' protobuf");
}

static struct bytes pending(const struct api_list *l)
{
	return (struct bytes) { (const uint8_t *)l->pending.s, l->pending.len };
}

static int take_part(struct api_list *l, uint32_t tag, struct bytes part, struct err *err)
{
	struct bytes token;

	if (tag == LIST_METADATA && kubemsg_next(&part, METADATA_CONTINUE, &token) && token.len) {
		free(l->more);
		l->more = xasprintf("%.*s", (int)token.len, (const char *)token.data);
	}
	if (tag != LIST_ITEM)
		return 0;
	if (l->object(l->arg, part, err) < 0)
		return err_wrap(err, "items[%zu]", l->n);
	l->n++;
	return 0;
}

/* 1: a field was taken, and *in is behind it; 0: more of it has to come. */
static int take_next(struct api_list *l, struct bytes *in, struct err *err)
{
	struct bytes rest = *in, field;
	uint64_t key, len;

	if (l->where == API_LIST_BEFORE) {
		if (in->len < sizeof(magic))
			return 0;
		if (memcmp(in->data, magic, sizeof(magic)) != 0)
			return malformed(err);
		*in = (struct bytes) { in->data + sizeof(magic), in->len - sizeof(magic) };
		l->where = API_LIST_ENVELOPE;
		return 1;
	}
	if (l->where == API_LIST_INSIDE && !l->left)
		l->where = API_LIST_ENVELOPE;
	/* All fields of both messages have a length. */
	if (!kubemsg_varint(&rest, 5, &key) || !kubemsg_varint(&rest, 5, &len))
		return in->len < 10 ? 0 : malformed(err);
	if ((key & 7) != KUBEMSG_WIRE_LENGTH)
		return malformed(err);
	if (l->where == API_LIST_ENVELOPE && key >> 3 == UNKNOWN_RAW) {
		*in = rest;
		l->left = (size_t)len;
		l->where = API_LIST_INSIDE;
		l->has_list = true;
		return 1;
	}
	if (len > API_LIST_OBJECT_MAX)
		return err_set(err, EFBIG, "items[%zu] takes more than %zu MiB", l->n,
			       API_LIST_OBJECT_MAX >> 20);
	field = (struct bytes) { rest.data, (size_t)len };
	len += in->len - rest.len;
	if (l->where == API_LIST_INSIDE && len > l->left)
		return malformed(err);
	if (len > in->len)
		return 0;
	*in = (struct bytes) { in->data + len, in->len - (size_t)len };
	if (l->where == API_LIST_ENVELOPE)
		return 1;
	l->left -= (size_t)len;
	return take_part(l, (uint32_t)(key >> 3), field, err) < 0 ? -err->code : 1;
}

void kubemsg_list_begin(struct api_list *l, api_list_fn object, void *arg)
{
	*l = (struct api_list) { .object = object, .arg = arg };
}

int kubemsg_list_push(struct api_list *l, const char *data, size_t len, struct err *err)
{
	struct bytes in;
	int r;

	strbuf_add(&l->pending, data, len);
	in = pending(l);
	while ((r = take_next(l, &in, err)) > 0)
		;
	memmove(l->pending.s, in.data, in.len);
	l->pending.len = in.len;
	return r;
}

int kubemsg_list_end(const struct api_list *l, struct err *err)
{
	if (l->where == API_LIST_BEFORE && !l->pending.len)
		return err_set(err, EBADMSG, "is empty");
	if (l->pending.len || l->left)
		return err_set(err, EBADMSG, "ends in the middle");
	return l->has_list ? 0 : err_set(err, EBADMSG, "holds no list");
}

void kubemsg_list_done(struct api_list *l)
{
	strbuf_done(&l->pending);
	free(STEAL(l->more));
}

static const char *or_none(const char *s)
{
	return *s ? s : NULL;
}

static int result_from(const Resourceclaim__Result *r, struct draclaim_device *d, struct err *err)
{
	if (!*r->request || !*r->driver || !*r->pool || !*r->device)
		return err_set(err, EBADMSG,
			       "a result of the claim lacks its request, driver, pool or device");
	*d = (struct draclaim_device) { .request = r->request,
					.driver = r->driver,
					.pool = r->pool,
					.device = r->device,
					.share = or_none(r->share_id),
					.admin = r->admin_access };
	for (size_t i = 0; i < r->n_consumed_capacity; i++) {
		const Resourceclaim__Result__ConsumedCapacityEntry *e = r->consumed_capacity[i];

		if (!strcmp(e->key, "vfs") &&
		    kubemsg_podspec_count(e->value ? e->value->string : "", &d->vfs) < 0)
			return err_set(err, EBADMSG,
				       "the capacity vfs of request %s is not a whole number",
				       r->request);
	}
	return 0;
}

static void users_from(const Resourceclaim__Status *m, struct draclaim *claim, struct arena *a)
{
	struct draclaim_user *v = arena_array(a, m->n_reserved_for, sizeof(*v));

	claim->users = v;
	for (size_t i = 0; i < m->n_reserved_for; i++) {
		const Resourceclaim__Consumer *c = m->reserved_for[i];

		if (!*c->api_group && !strcmp(c->resource, "pods"))
			v[claim->n_users++] = (struct draclaim_user) { c->name, c->uid };
	}
}

/* The result points into the message. */
static int claim_from(const Resourceclaim__ResourceClaim *m, struct draclaim *ret, struct arena *a,
		      struct err *err)
{
	const Resourceclaim__Allocation *allocation = m->status ? m->status->allocation : NULL;
	const Resourceclaim__Devices *devices = allocation ? allocation->devices : NULL;
	struct draclaim_device *v = arena_array(a, devices ? devices->n_results : 0, sizeof(*v));
	int r = 0;

	*ret = (struct draclaim) { .name = m->metadata ? m->metadata->name : "",
				   .uid = m->metadata ? m->metadata->uid : "",
				   .deleted = m->metadata && m->metadata->deletion_timestamp,
				   .v = v };
	for (; devices && ret->n < devices->n_results && r == 0; ret->n++)
		r = result_from(devices->results[ret->n], &v[ret->n], err);
	if (m->status)
		users_from(m->status, ret, a);
	return r;
}

int kubemsg_list_claim(void *arg, struct bytes object, struct err *err)
{
	_cleanup_arena_ struct arena *scratch = arena_new(4096);
	const Resourceclaim__ResourceClaim *m = kubemsg_unpack_known(
		&resourceclaim__resource_claim__descriptor, object, CLAIM_BYTES_MAX, scratch, err);
	struct api_claim *ret = arg;
	struct draclaim claim;

	if (!m)
		return -err->code;
	if (ret->found)
		return err_set(err, EBADMSG, "is a second claim of that name");
	if (claim_from(m, &claim, scratch, err) < 0)
		return -err->code;
	ret->found = true;
	ret->claim = kubemsg_draclaim_copy(&claim, ret->arena);
	return 0;
}

bool kubemsg_enveloped(struct bytes body, struct bytes *ret)
{
	if (body.len < sizeof(magic) || memcmp(body.data, magic, sizeof(magic)) != 0)
		return false;
	body.data += sizeof(magic);
	body.len -= sizeof(magic);
	return kubemsg_next(&body, UNKNOWN_RAW, ret);
}

int kubemsg_pod(struct bytes body, struct spec_pods *pods, struct err *err)
{
	struct bytes object;

	if (!kubemsg_enveloped(body, &object))
		return err_set(err, EBADMSG, "is not Kubernetes' protobuf");
	return kubemsg_list_pod(pods, object, err);
}

const char *kubemsg_refusal(struct bytes body, struct arena *a)
{
	struct bytes status, message;

	if (!kubemsg_enveloped(body, &status) || !kubemsg_next(&status, STATUS_MESSAGE, &message))
		return NULL;
	return arena_printf(a, "%.*s", (int)message.len, (const char *)message.data);
}
