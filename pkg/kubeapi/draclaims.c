#include "kubeapi/draclaims-internal.h"

#include <errno.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"
#include "document/document.h"

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
static const struct keep keep_status[] = { { "allocation", keep_allocation }, { NULL, NULL } };
static const struct keep keep_claim[] = { { "status", keep_status }, { NULL, NULL } };

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

static int on_end(void *arg, struct err *err)
{
	struct draclaims *c = arg;

	(void)err;
	c->n_claims++;
	return 0;
}

void kubeapi_draclaims_init(struct draclaims *c, struct arena *arena)
{
	*c = (struct draclaims) { .arena = arena,
				  .reader = { .keep = keep_claim,
					      .member_max = DRACLAIMS_MEMBER_MAX,
					      .member = on_status,
					      .end = on_end,
					      .arg = c } };
}

void kubeapi_draclaims_done(struct draclaims *c)
{
	free(c->v);
	*c = (struct draclaims) { 0 };
}
