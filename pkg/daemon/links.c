#include "daemon/links.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "config/config.h"
#include "devstate/devstate.h"
#include "hw/inventory.h"
#include "pool/link.h"
#include "pool/node.h"

/* A PF of a pool. Pools may have limits of their own, so each judges for itself. */
struct entry {
	char *resource;
	char pf[BDF_STRLEN];
	struct link_history history;
	char *degraded; /* a clause; NULL: it is well */
	bool unhealthy;
	bool seen; /* by the check under way */
};

struct links {
	const struct sysroot *root;
	struct entry **v;
	size_t n, cap;
	struct node_link *degraded;
	size_t n_degraded;
};

struct links *links_new(const struct sysroot *root)
{
	struct links *l = xcalloc(1, sizeof(*l));

	l->root = root;
	return l;
}

static struct entry *entry_of(struct links *l, const char *resource, const char *pf)
{
	struct entry *e;

	for (size_t i = 0; i < l->n; i++) {
		if (!strcmp(l->v[i]->pf, pf) && !strcmp(l->v[i]->resource, resource))
			return l->v[i];
	}
	e = xcalloc(1, sizeof(*e));
	e->resource = xstrdup(resource);
	strcpy(e->pf, pf);
	l->v = xgrow(l->v, &l->cap, l->n + 1, sizeof(*l->v));
	l->v[l->n++] = e;
	return e;
}

static struct link_sample sample_of(const struct links *l, const struct hw_inventory *inv, int pf,
				    int64_t now_ms)
{
	struct link_counts counts = devstate_link_counts(l->root, inv, pf);
	int rdma = hw_find_rdma(inv, pf);
	bool up = rdma >= 0 && inv->rdma[rdma].n_ports &&
		  str_eq(inv->rdma[rdma].ports[0].state, "ACTIVE");

	return (struct link_sample) { .at_ms = now_ms,
				      .netdev_downs = counts.netdev_downs,
				      .port_downs = counts.port_downs,
				      .errors = counts.errors,
				      .rate_mbps = up ? inv->rdma[rdma].ports[0].rate_mbps : 0,
				      .link_mts = inv->pci[pf].link_mts,
				      .link_width = inv->pci[pf].link_width };
}

static bool judge(struct entry *e, const struct link_sample *sample,
		  const struct pool_health *limits)
{
	_cleanup_strbuf_ struct strbuf how = STRBUF_INIT;
	unsigned trouble = link_judge(&e->history, sample, limits);
	bool unhealthy = trouble & limits->unhealthy;

	link_say(&e->history, limits, &how);
	if (str_eq(how.s, e->degraded) && unhealthy == e->unhealthy)
		return false;
	if (trouble)
		log_warn("link", "the link of a PF is degraded resource=%s pf=%s reason=%s",
			 e->resource, e->pf, strbuf_str(&how));
	else
		log_info("link", "the link of a PF is not degraded any more resource=%s pf=%s",
			 e->resource, e->pf);
	free(e->degraded);
	e->degraded = trouble ? strbuf_steal(&how) : NULL;
	e->unhealthy = unhealthy;
	return true;
}

static bool check_pool(struct links *l, const struct node *node, const struct pool *pool,
		       int64_t now_ms)
{
	bool changed = false;
	int last = -1;

	for (size_t i = 0; i < pool->n_devs; i++) {
		int pf = hw_pf_of(node->inv, pool->devs[i].pci);
		char address[BDF_STRLEN];
		struct link_sample sample;
		struct entry *e;

		/* Devices are in the order of addresses, so those of a PF mostly follow each other;
		 * a second sample of the same moment says nothing. */
		if (pf < 0 || pf == last)
			continue;
		last = pf;
		e = entry_of(l, pool->cfg->resource, bdf_format(node->inv->pci[pf].bdf, address));
		e->seen = true;
		sample = sample_of(l, node->inv, pf, now_ms);
		changed |= judge(e, &sample, &pool->cfg->health);
	}
	return changed;
}

static void end_entry(struct entry *e)
{
	free(e->resource);
	free(e->degraded);
	free(e);
}

/* What no pool has any more is forgotten. */
static bool forget_unseen(struct links *l)
{
	bool changed = false;
	size_t kept = 0;

	for (size_t i = 0; i < l->n; i++) {
		if (l->v[i]->seen) {
			l->v[i]->seen = false;
			l->v[kept++] = l->v[i];
		} else {
			changed |= l->v[i]->degraded != NULL;
			end_entry(l->v[i]);
		}
	}
	l->n = kept;
	return changed;
}

static void list_degraded(struct links *l)
{
	free(l->degraded);
	l->degraded = xcalloc(l->n, sizeof(*l->degraded));
	l->n_degraded = 0;
	for (size_t i = 0; i < l->n; i++) {
		const struct entry *e = l->v[i];

		if (e->degraded)
			l->degraded[l->n_degraded++] = (struct node_link) {
				.resource = e->resource,
				.pf = e->pf,
				.degraded = e->degraded,
				.unhealthy = e->unhealthy,
			};
	}
}

bool links_check(struct links *l, const struct node *node, int64_t now_ms)
{
	bool changed = false;

	for (size_t i = 0; i < node->n_pools; i++)
		changed |= check_pool(l, node, &node->pools[i], now_ms);
	changed |= forget_unseen(l);
	list_degraded(l);
	return changed;
}

const struct node_link *links_degraded(const struct links *l, size_t *ret_n)
{
	*ret_n = l->n_degraded;
	return l->degraded;
}

void links_free(struct links *l)
{
	if (!l)
		return;
	for (size_t i = 0; i < l->n; i++)
		end_entry(l->v[i]);
	free(l->v);
	free(l->degraded);
	free(l);
}
