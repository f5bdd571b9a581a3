/* room: kubemsg */
/*
 * Any bytes as a list of pods, cut in two places: pods that hold together, or one sentence;
 * and the same whether it comes in one piece or in three. And as a list of ResourceClaims, as one
 * object and as a list of objects of which the metadata is read.
 */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "kubemsg/apilist.h"
#include "kubemsg/apiobject.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int read_in_pieces(const uint8_t *data, size_t len, size_t first, size_t second,
			  api_list_fn object, void *arg, struct err *err)
{
	const size_t ends[] = { 0, first, second, len };
	struct api_list l;
	int r = 0;

	kubemsg_list_begin(&l, object, arg);
	for (size_t i = 0; i < 3 && r == 0; i++)
		r = kubemsg_list_push(&l, (const char *)data + ends[i], ends[i + 1] - ends[i], err);
	if (r == 0)
		r = kubemsg_list_end(&l, err);
	kubemsg_list_done(&l);
	return r;
}

static void read_claims(const uint8_t *data, size_t len, struct arena *a)
{
	struct api_claim claim = { .arena = a };
	struct err err = { 0 };

	if (read_in_pieces(data, len, len, len, kubemsg_list_claim, &claim, &err) < 0)
		assert(err.code && str_utf8_valid(err.msg, strlen(err.msg)));
	for (size_t i = 0; i < claim.claim.n; i++)
		assert(*claim.claim.v[i].request && *claim.claim.v[i].driver &&
		       *claim.claim.v[i].pool && *claim.claim.v[i].device &&
		       claim.claim.v[i].vfs >= 0);
	for (size_t i = 0; i < claim.claim.n_users; i++)
		assert(claim.claim.users[i].pod && claim.claim.users[i].uid);
}

static void check_objects(struct bytes body, struct arena *a)
{
	struct api_objects list = { 0 };
	struct api_object one;
	struct err err = { 0 };

	if (kubemsg_object(body, "x", a, &one, &err) == 0)
		assert(*one.name && *one.uid && *one.version);
	else
		assert(err.code && str_utf8_valid(err.msg, strlen(err.msg)));
	kubemsg_objects(body, "x", a, &list, &err);
	for (size_t i = 0; i < list.n; i++)
		assert(*list.v[i].name && *list.v[i].uid && *list.v[i].version);
}

static void check_pod(const struct spec_pod *p)
{
	assert(*p->name && *p->ns && p->uid);
	assert(str_utf8_valid(p->name, strlen(p->name)));
	assert(!p->unread || (*p->unread && !p->n_containers && !strchr(p->unread, '\n') &&
			      str_utf8_valid(p->unread, strlen(p->unread))));
	for (size_t i = 0; i < p->n_containers; i++) {
		const struct spec_container *c = &p->containers[i];

		assert(*c->name);
		for (size_t k = 0; k < c->n_limits; k++)
			assert(c->limits[k].count > 0 && strchr(c->limits[k].resource, '/'));
		for (size_t k = 0; k < c->n_claims; k++)
			assert(c->claims[k].claim);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_arena_ struct arena *a = arena_new(1024), *b = arena_new(1024);
	struct spec_pods whole = { .arena = a }, pieces = { .arena = b };
	struct err err = { 0 }, err2 = { 0 };
	int r, r2;

	r = read_in_pieces(data, size, size, size, kubemsg_list_pod, &whole, &err);
	r2 = read_in_pieces(data, size, size / 3, size / 2, kubemsg_list_pod, &pieces, &err2);
	assert(r == r2 && whole.n == pieces.n && !strcmp(err.msg, err2.msg));
	assert((r < 0) == (err.code != 0));
	assert(!strchr(err.msg, '\n') && str_utf8_valid(err.msg, strlen(err.msg)));
	for (size_t i = 0; i < whole.n; i++)
		check_pod(&whole.v[i]);
	kubemsg_podspec_done(&whole);
	kubemsg_podspec_done(&pieces);
	read_claims(data, size, a);
	kubemsg_refusal((struct bytes) { data, size }, a);
	check_objects((struct bytes) { data, size }, a);
	return 0;
}
