#include "kubeapi/draclaims-internal.h"

#include <errno.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "document/document.h"
#include "kubeapi/prune-internal.h"

void kubeapi_draclaims_init(struct draclaims *c, struct arena *arena)
{
	*c = (struct draclaims) { .arena = arena };
}

void kubeapi_draclaims_done(struct draclaims *c)
{
	free(c->v);
	*c = (struct draclaims) { 0 };
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

/* All that is looked at. */
static const struct keep keep_devices[] = { { "results", NULL }, { NULL, NULL } };
static const struct keep keep_allocation[] = { { "devices", keep_devices }, { NULL, NULL } };
static const struct keep keep_status[] = { { "allocation", keep_allocation }, { NULL, NULL } };
static const struct keep keep_claim[] = { { "status", keep_status }, { NULL, NULL } };

int kubeapi_draclaims_add(struct draclaims *c, const char *text, size_t len, struct err *err)
{
	_cleanup_strbuf_ struct strbuf small = STRBUF_INIT;
	_cleanup_arena_ struct arena *scratch = arena_new(4096);
	bool pruned = kubeapi_prune(text, len, keep_claim,
				    &small); /* else let the parser say what is wrong */
	const struct item *top, *results;
	int r = document_parse(pruned ? small.s : text, pruned ? small.len : len, "the claim",
			       scratch, &top, err);

	if (r < 0)
		return r;
	results = item_get(item_get(item_get(item_get(top, "status"), "allocation"), "devices"),
			   "results");
	if (results && results->type != ITEM_LIST && results->type != ITEM_NULL)
		return err_set(err, EBADMSG, "the results of the claim are not a list");
	for (size_t i = 0; r == 0 && results && i < results->n_kids; i++)
		r = add_device(c, &results->kids[i], err);
	c->n_claims += r == 0;
	return r;
}
