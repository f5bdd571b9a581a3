/* room: kubeapi */
/*
 * Any bytes as a list of pods, cut in two places: pods that hold together, or one sentence;
 * and the same whether it comes in one piece or in three. And as a list of ResourceClaims.
 */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "kubeapi/transfer-internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int read_in_pieces(const char *text, size_t len, size_t first, size_t second,
			  const struct sieve_reader *reader, struct err *err)
{
	const size_t ends[] = { 0, first, second, len };
	struct sieve s;
	int r = 0;

	kubeapi_sieve_init(&s, reader);
	for (size_t i = 0; i < 3 && r == 0; i++)
		r = kubeapi_sieve_push(&s, text + ends[i], ends[i + 1] - ends[i], err);
	if (r == 0)
		r = kubeapi_sieve_end(&s, err);
	kubeapi_sieve_done(&s);
	return r;
}

static void read_claims(const char *text, size_t len, struct arena *a)
{
	struct err err = { 0 };
	struct draclaims claims;

	kubeapi_draclaims_init(&claims, a);
	if (read_in_pieces(text, len, len, len, &claims.reader, &err) < 0)
		assert(err.code && str_utf8_valid(err.msg, strlen(err.msg)));
	for (size_t i = 0; i < claims.n; i++)
		assert(claims.v[i].request && claims.v[i].driver && claims.v[i].pool &&
		       claims.v[i].device);
	kubeapi_draclaims_done(&claims);
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
	_cleanup_arena_ struct arena *a = arena_new(1024);
	const char *text = (const char *)data;
	struct pods whole, pieces;
	struct err err = { 0 }, err2 = { 0 };
	int r, r2;

	kubeapi_pods_init(&whole, a);
	kubeapi_pods_init(&pieces, a);
	r = read_in_pieces(text, size, size, size, &whole.reader, &err);
	r2 = read_in_pieces(text, size, size / 3, size / 2, &pieces.reader, &err2);
	assert(r == r2 && whole.list.n == pieces.list.n && !strcmp(err.msg, err2.msg));
	assert((r < 0) == (err.code != 0));
	assert(!strchr(err.msg, '\n') && str_utf8_valid(err.msg, strlen(err.msg)));
	for (size_t i = 0; i < whole.list.n; i++)
		check_pod(&whole.list.v[i]);
	kubeapi_pods_done(&whole);
	kubeapi_pods_done(&pieces);
	read_claims(text, size, a);
	return 0;
}
