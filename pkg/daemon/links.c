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

/* A port of a PF of a pool. Pools may have limits of their own, so each judges for itself. */
struct entry {
	char *resource;
	char pf[BDF_STRLEN];
	int port; /* from 1; 1 also while the PF has no RDMA device */
	struct link_history history;
	char *degraded;	  /* a clause; NULL: it is well */
	int64_t since_ms; /* Unix time */
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

static struct entry *entry_of(struct links *l, const char *resource, const char *pf, int port)
{
	struct entry *e;

	for (size_t i = 0; i < l->n; i++) {
		if (l->v[i]->port == port && !strcmp(l->v[i]->pf, pf) &&
		    !strcmp(l->v[i]->resource, resource))
			return l->v[i];
	}
	e = xcalloc(1, sizeof(*e));
	e->resource = xstrdup(resource);
	strcpy(e->pf, pf);
	e->port = port;
	l->v = xgrow(l->v, &l->cap, l->n + 1, sizeof(*l->v));
	l->v[l->n++] = e;
	return e;
}

/* port NULL: the PF has no RDMA device. */
static struct link_sample sample_of(const struct links *l, const struct hw_inventory *inv, int pf,
				    const struct hw_port *port, int64_t now_ms)
{
	size_t at = port ? (size_t)(port - inv->rdma[hw_find_rdma(inv, pf)].ports) : 0;
	struct link_counts counts = devstate_link_counts(l->root, inv, pf, at);
	bool up = port && str_eq(port->state, "ACTIVE");
	struct hw_pcie most = hw_pcie_best(inv, pf);

	return (struct link_sample) { .at_ms = now_ms,
				      .netdev_downs = counts.netdev_downs,
				      .port_downs = counts.port_downs,
				      .errors = counts.errors,
				      .rate_mbps = up ? port->rate_mbps : 0,
				      .link_mts = inv->pci[pf].link_mts,
				      .link_width = inv->pci[pf].link_width,
				      .most_mts = most.mts,
				      .most_width = most.width };
}

/* n_ports: of the PF; a clause names the port where there are several. */
static bool judge(struct entry *e, const struct link_sample *sample,
		  const struct pool_health *limits, size_t n_ports, int64_t wall_ms)
{
	_cleanup_strbuf_ struct strbuf what = STRBUF_INIT, how = STRBUF_INIT;
	unsigned trouble = link_judge(&e->history, sample, limits);
	bool unhealthy = trouble & limits->unhealthy;

	if (trouble && n_ports > 1)
		strbuf_printf(&how, "at port %d ", e->port);
	link_say(&e->history, limits, &what);
	strbuf_puts(&how, strbuf_str(&what));
	if (str_eq(trouble ? how.s : NULL, e->degraded) && unhealthy == e->unhealthy)
		return false;
	if (trouble)
		log_warn("link", "the link of a PF is degraded resource=%s pf=%s reason=%s",
			 e->resource, e->pf, strbuf_str(&how));
	else
		log_info("link", "the link of a PF is not degraded any more resource=%s pf=%s",
			 e->resource, e->pf);
	if (!e->degraded)
		e->since_ms = wall_ms;
	free(e->degraded);
	e->degraded = trouble ? strbuf_steal(&how) : NULL;
	e->unhealthy = unhealthy;
	return true;
}

/* Every port of it, for the VFs of any of them may be the pool's. */
static bool check_pf(struct links *l, const struct node *node, const struct pool *pool, int pf,
		     int64_t now_ms, int64_t wall_ms)
{
	int rdma = hw_find_rdma(node->inv, pf);
	size_t n = rdma < 0 ? 0 : node->inv->rdma[rdma].n_ports;
	char address[BDF_STRLEN];
	bool changed = false;

	bdf_format(node->inv->pci[pf].bdf, address);
	for (size_t i = 0; i < (n ? n : 1); i++) {
		const struct hw_port *port = n ? &node->inv->rdma[rdma].ports[i] : NULL;
		struct link_sample sample = sample_of(l, node->inv, pf, port, now_ms);
		struct entry *e =
			entry_of(l, pool->cfg->resource, address, port ? port->number : 1);

		e->seen = true;
		changed |= judge(e, &sample, &pool->cfg->health, n, wall_ms);
	}
	return changed;
}

static bool check_pool(struct links *l, const struct node *node, const struct pool *pool,
		       int64_t now_ms, int64_t wall_ms)
{
	bool changed = false;
	int last = -1;

	for (size_t i = 0; i < pool->n_devs; i++) {
		int pf = hw_pf_of(node->inv, pool->devs[i].pci);

		/* Devices are in the order of addresses, so those of a PF mostly follow each other;
		 * a second sample of the same moment says nothing. */
		if (pf < 0 || pf == last)
			continue;
		last = pf;
		changed |= check_pf(l, node, pool, pf, now_ms, wall_ms);
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
				.port = e->port,
				.trouble = e->history.trouble,
				.since_ms = e->since_ms,
			};
	}
}

bool links_check(struct links *l, const struct node *node, int64_t now_ms, int64_t wall_ms)
{
	bool changed = false;

	for (size_t i = 0; i < node->n_pools; i++)
		changed |= check_pool(l, node, &node->pools[i], now_ms, wall_ms);
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
