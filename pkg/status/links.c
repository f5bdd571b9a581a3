/* The links of a node: the ports of the PFs that its pools have devices of. The one judgement of
 * links, for the status document and the page. */
#include <stdlib.h>

#include "base/arena.h"
#include "base/list.h"
#include "base/str.h"
#include "hw/inventory.h"
#include "ledger/ledger.h"
#include "pool/node.h"
#include "status/status-internal.h"

static const char *rate_text(int mbps, struct arena *a)
{
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;

	hw_put_rate(mbps, &text);
	return arena_strdup(a, strbuf_str(&text));
}

/* The highest rate of a port of this kind of NIC. */
static int usual_rate(const struct hw_inventory *inv, const struct status_link *v, size_t n,
		      const struct hw_pci *kind)
{
	int most = 0;

	for (size_t i = 0; i < n; i++) {
		const struct hw_pci *f = v[i].port ? &inv->pci[v[i].pf->pci] : NULL;

		if (f && f->vendor == kind->vendor && f->device == kind->device &&
		    v[i].port->rate_mbps > most)
			most = v[i].port->rate_mbps;
	}
	return most;
}

/*
 * The rule of the health of VFs (pool/pool.c): an ACTIVE RDMA port is a link in any state of the
 * interface, and a port that is DOWN below a carrier may be closed by the operator. Where the
 * carrier is not known, a port that is not ACTIVE is down if no other port of the PF is up.
 */
static void judge(const struct hw_inventory *inv, struct status_link *v, size_t n,
		  struct status_link *l, struct arena *a)
{
	const struct hw_pci *f = l->pf->pci < 0 ? NULL : &inv->pci[l->pf->pci];
	const char *state = l->port ? l->port->state : NULL;
	bool other_up = false;

	if (l->pf->missing) {
		l->down = true;
		l->wrong = l->pf->missing;
		return;
	}
	if (str_eq(state, "ACTIVE")) {
		int usual = usual_rate(inv, v, n, f);

		if (l->port->rate_mbps && l->port->rate_mbps < usual)
			l->wrong =
				arena_printf(a, "runs at %s, others of its kind at %s",
					     rate_text(l->port->rate_mbps, a), rate_text(usual, a));
		return;
	}
	for (size_t i = 0; i < l->pf->n_ports; i++)
		other_up |= l->pf->ports[i].up == 1;
	l->down = l->up == 0 || (state && f->carrier < 0 && !other_up);
	if (l->down)
		l->wrong =
			state ? arena_printf(a, "is down, its RDMA port is %s", state) : "is down";
}

/* Of the first pool whose limits the link exceeds. */
static const struct node_link *find_degraded(const struct node *node, const char *pf, int port)
{
	for (size_t i = 0; i < node->n_links; i++) {
		if (str_eq(node->links[i].pf, pf) && node->links[i].port == (port ? port : 1))
			return &node->links[i];
	}
	return NULL;
}

/* PFs that are gone from the bus come last. */
static int by_pci(const void *x, const void *y)
{
	const struct status_link *a = x, *b = y;
	unsigned m = (unsigned)a->pf->pci, n = (unsigned)b->pf->pci;

	return m == n ? a->number - b->number : m < n ? -1 : 1;
}

size_t status_links(const struct node *node, struct arena *a, struct status_link **ret)
{
	struct status_link *v;
	size_t n = 0, most = 0;

	for (size_t i = 0; i < node->n_pfs; i++)
		most += node->pfs[i].n_ports;
	v = arena_array(a, most, sizeof(*v));
	for (size_t i = 0; i < node->n_pfs; i++) {
		const struct node_pf *pf = &node->pfs[i];
		int rdma = pf->missing ? -1 : hw_find_rdma(node->inv, pf->pci);

		for (size_t k = 0; pf->wanted && k < pf->n_ports; k++) {
			const struct hw_rdma *r = rdma < 0 ? NULL : &node->inv->rdma[rdma];

			v[n++] = (struct status_link) {
				.pf = pf,
				.port = r && k < r->n_ports ? &r->ports[k] : NULL,
				.number = pf->ports[k].number,
				.up = pf->ports[k].up,
				.degraded = find_degraded(node, pf->address, pf->ports[k].number)
			};
		}
	}
	for (size_t i = 0; i < n; i++)
		judge(node->inv, v, n, &v[i], a);
	if (n)
		qsort(v, n, sizeof(*v), by_pci);
	*ret = v;
	return n;
}

size_t status_pods_of(const struct status_facts *f, const char *pf, struct arena *a,
		      const char *const **ret)
{
	size_t n_holds = f->ledger ? ledger_holds(f->ledger) : 0, n = 0;
	const char **v = arena_array(a, n_holds, sizeof(*v));

	for (size_t i = 0; i < n_holds; i++) {
		const struct ledger_hold *h = ledger_hold_at(f->ledger, i);
		const struct pool *pool = node_pool(f->node, h->resource);
		const struct pool_dev *dev = pool ? pool_find(pool, h->vf) : NULL;
		const char *pod = h->owner.pod && *h->owner.pod
					  ? arena_printf(a, "%s/%s", h->owner.ns, h->owner.pod)
					  : NULL;

		if (pod && dev && dev->pf && str_eq(dev->pf->address, pf) && !list_has(v, n, pod))
			v[n++] = pod;
	}
	*ret = v;
	return n;
}
