/* The links as JSON: facts that a restart of railmated would forget. */
#include "daemon/linksfile-internal.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "config/config.h"
#include "document/document.h"

static void write_flaps(const struct link_history *h, struct json *j)
{
	json_key(j, "flaps_ms");
	json_begin_array(j);
	for (size_t i = 0; i < h->n_flaps; i++)
		json_put_int(j, h->flap_ms[i]);
	json_end_array(j);
}

static void write_entry(const struct link_entry *e, struct json *j)
{
	const struct link_history *h = &e->history;

	json_begin_object(j);
	json_kv_string(j, "resource", e->resource);
	json_kv_string(j, "pf", e->pf);
	json_kv_int(j, "port", e->port);
	json_kv_string(j, "degraded", e->degraded);
	json_kv_bool(j, "unhealthy", e->unhealthy);
	json_kv_int(j, "trouble", h->trouble);
	json_kv_int(j, "since_ms", e->since_ms);
	json_kv_int(j, "rate_mbps", h->best_rate_mbps);
	json_kv_int(j, "pcie_mts", h->best_mts);
	json_kv_int(j, "pcie_width", h->best_width);
	json_kv_int(j, "netdev_downs", h->last.netdev_downs);
	json_kv_int(j, "port_downs", h->last.port_downs);
	write_flaps(h, j);
	json_end_object(j);
}

void links_write(const struct link_entry *const *v, size_t n, const char *boot, struct strbuf *out)
{
	struct json j;

	json_init(&j, out, 1);
	json_begin_object(&j);
	json_kv_string(&j, "boot", boot);
	json_key(&j, "links");
	json_begin_array(&j);
	for (size_t i = 0; i < n; i++)
		write_entry(v[i], &j);
	json_end_array(&j);
	json_end_object(&j);
	strbuf_putc(out, '\n');
}

static bool read_count(const struct item *o, const char *key, int64_t min, int64_t max,
		       int64_t *ret)
{
	const struct item *i = item_get(o, key);

	if (!i || i->type != ITEM_NUMBER || !i->whole || i->number < min || i->number > max)
		return false;
	*ret = i->number;
	return true;
}

static bool read_flaps(const struct item *o, int64_t now_ms, struct link_history *h)
{
	const struct item *list = item_get(o, "flaps_ms");

	if (!list || list->type != ITEM_LIST || list->n_kids > LINK_FLAPS_KEPT)
		return false;
	for (size_t i = 0; i < list->n_kids; i++) {
		const struct item *at = &list->kids[i];

		if (at->type != ITEM_NUMBER || !at->whole || at->number < 0 || at->number > now_ms)
			return false;
		h->flap_ms[h->n_flaps++] = at->number;
	}
	h->next_flap = h->n_flaps % LINK_FLAPS_KEPT;
	return true;
}

static bool read_history(const struct item *o, int64_t now_ms, struct link_history *h)
{
	int64_t trouble, rate, mts, width, netdev, port;

	if (!read_count(o, "trouble", 0, (1 << LINK_TROUBLES) - 1, &trouble) ||
	    !read_count(o, "rate_mbps", 0, INT_MAX, &rate) ||
	    !read_count(o, "pcie_mts", 0, INT_MAX, &mts) ||
	    !read_count(o, "pcie_width", 0, INT_MAX, &width) ||
	    !read_count(o, "netdev_downs", -1, INT64_MAX, &netdev) ||
	    !read_count(o, "port_downs", -1, INT64_MAX, &port) || !read_flaps(o, now_ms, h))
		return false;
	h->begun = true;
	h->trouble = (unsigned)trouble;
	h->best_rate_mbps = (int)rate;
	h->best_mts = (int)mts;
	h->best_width = (int)width;
	/* How often it went down meanwhile is counted; how fast errors came cannot be known. */
	h->last = (struct link_sample) { .at_ms = now_ms - LINK_SAMPLE_MS,
					 .netdev_downs = netdev,
					 .port_downs = port,
					 .errors = -1 };
	h->errors_then = -1;
	h->errors_since_ms = now_ms;
	return true;
}

static struct link_entry *read_entry(const struct item *o, int64_t now_ms)
{
	const char *resource = item_string(o, "resource"), *pf = item_string(o, "pf"),
		   *degraded = item_string(o, "degraded");
	const struct item *unhealthy = item_get(o, "unhealthy");
	struct link_entry *e = xcalloc(1, sizeof(*e));
	int64_t port;
	struct bdf bdf;

	if (!resource || !pf || bdf_parse(pf, &bdf) < 0 || !unhealthy ||
	    unhealthy->type != ITEM_BOOL || !read_count(o, "port", 1, INT_MAX, &port) ||
	    !read_count(o, "since_ms", 0, INT64_MAX, &e->since_ms) ||
	    !read_history(o, now_ms, &e->history) || !degraded != !e->history.trouble) {
		free(e);
		return NULL;
	}
	e->resource = xstrdup(resource);
	bdf_format(bdf, e->pf);
	e->port = (int)port;
	e->degraded = degraded ? xstrdup(degraded) : NULL;
	e->unhealthy = unhealthy->boolean;
	return e;
}

int links_read(const char *text, size_t len, const char *path, const char *boot, int64_t now_ms,
	       struct link_entry ***ret, size_t *ret_n, struct err *err)
{
	_cleanup_arena_ struct arena *a = arena_new(8192);
	const struct item *top, *list;
	struct link_entry **v;
	size_t n = 0;
	int r = document_parse(text, len, path, a, &top, err);

	if (r < 0)
		return r;
	list = item_get(top, "links");
	if (!item_string(top, "boot") || !list || list->type != ITEM_LIST)
		return err_set(err, EBADMSG, "%s has no links", path);
	if (strcmp(item_string(top, "boot"), boot) != 0)
		return 0;
	v = xcalloc(list->n_kids, sizeof(struct link_entry *));
	for (size_t i = 0; i < list->n_kids; i++) {
		v[n] = read_entry(&list->kids[i], now_ms);
		if (v[n++])
			continue;
		while (--n)
			links_free_entry(v[n - 1]);
		free(v);
		return err_set(err, EBADMSG, "%s:%d: this is not a link", path, list->kids[i].line);
	}
	*ret = v;
	*ret_n = n;
	return 0;
}
