/* railmatectl status: from railmated's answer, its ledger and the machine to numbers. */
#include <string.h>

#include "align/align.h"
#include "base/arena.h"
#include "base/str.h"
#include "document/document.h"
#include "holds/holds.h"
#include "hw/inventory.h"
#include "ledger/ledger.h"
#include "pool/node.h"
#include "pools.h"
#include "railmatectl.h"
#include "status.h"
#include "topo/rails.h"
#include "topo/topo.h"

const char *const status_ranks[STATUS_RANKS] = { "PIX", "PXB", "PHB", "NODE", "SYS" };

static int find(const struct hw_inventory *inv, const char *address)
{
	struct bdf bdf;

	return bdf_parse(address, &bdf) < 0 ? -1 : hw_find_pci(inv, bdf);
}

/* --- pools --- */

static const struct item *list_of(const struct item *object, const char *key)
{
	static const struct item none = { .type = ITEM_LIST };
	const struct item *list = object ? item_get(object, key) : NULL;

	return list && list->type == ITEM_LIST ? list : &none;
}

void status_read_pools(struct status *s, const struct item *answer)
{
	const struct item *pools = list_of(answer, "pools");

	s->pools = arena_array(s->arena, pools->n_kids, sizeof(*s->pools));
	s->n_pools = pools->n_kids;
	s->conditions = list_of(answer, "conditions");
	s->n_unknown_slots = list_of(answer, "unknown_slots")->n_kids;
	for (size_t i = 0; i < pools->n_kids; i++) {
		const struct item *vfs = list_of(&pools->kids[i], "vfs");
		struct pool_status *pool = &s->pools[i];

		pool->item = &pools->kids[i];
		pool->resource = item_string(&pools->kids[i], "resource");
		pool->binding = item_string(&pools->kids[i], "binding");
		pool->vfs = vfs->n_kids;
		for (size_t k = 0; k < vfs->n_kids; k++) {
			const char *state = item_string(&vfs->kids[k], "state");

			if (!str_eq(state, holds_state_names[HOLDS_IS_UNHEALTHY]))
				continue;
			if (!pool->unhealthy++)
				pool->why = item_string(&vfs->kids[k], "why");
		}
	}
}

/* --- links --- */

/* A NIC of a pool; when railmated does not answer, one that has VFs or is one. */
static bool is_wanted(const struct hw_inventory *inv, int pci, const struct item *answer)
{
	const struct item *pools = list_of(answer, "pools");
	char name[BDF_STRLEN];

	if (!hw_is_nic(&inv->pci[pci]) || !hw_is_own_nic(inv, pci))
		return false;
	bdf_format(inv->pci[pci].bdf, name);
	for (size_t i = 0; i < pools->n_kids; i++) {
		const struct item *vfs = list_of(&pools->kids[i], "vfs");

		for (size_t k = 0; k < vfs->n_kids; k++) {
			if (str_eq(item_string(&vfs->kids[k], "pf"), name))
				return true;
		}
	}
	for (size_t i = 0; !answer && i < inv->n_pci; i++) {
		if (inv->pci[i].physfn == pci)
			return true;
	}
	return !answer && hw_is_nic_vf(inv, pci);
}

/* By railmated, which knows the names of the configuration; else as they are counted. */
static void find_rail(const struct status *s, struct status_link *l, const struct item *answer)
{
	const struct item *rails = answer ? item_get(answer, "rails") : NULL;
	char name[BDF_STRLEN];

	if (!rails) {
		struct topo_rail at = topo_rails_of(s->machine->node->rails, l->pci);

		l->rail = at.rail;
		l->plane = at.plane;
		return;
	}
	bdf_format(s->machine->node->inv->pci[l->pci].bdf, name);
	rails = list_of(answer, "rails");
	for (size_t i = 0; i < rails->n_kids; i++) {
		if (!str_eq(item_string(&rails->kids[i], "pf"), name))
			continue;
		l->rail = (int)item_number(&rails->kids[i], "rail", -1);
		l->plane = (int)item_number(&rails->kids[i], "plane", -1);
	}
}

static const struct hw_port *port_of(const struct hw_inventory *inv, const struct status_link *l)
{
	return l->port < 0 ? NULL : &inv->rdma[l->rdma].ports[l->port];
}

static const char *rate_text(int mbps, struct arena *a)
{
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;

	hw_put_rate(mbps, &text);
	return arena_strdup(a, strbuf_str(&text));
}

/* As pool/health.c judges: an ACTIVE RDMA port is a link in any state of the interface, and a port
 * that is DOWN below a carrier may be closed by the operator. */
static void judge_link(struct status *s, struct status_link *l)
{
	const struct hw_inventory *inv = s->machine->node->inv;
	const struct hw_pci *f = &inv->pci[l->pci];
	const struct hw_port *port = port_of(inv, l);
	const char *state = port && port->state ? port->state : NULL;
	int carrier = f->carrier, usual = 0; /* the highest rate of a port of this kind of NIC */

	for (size_t i = 0; i < s->n_links; i++) {
		const struct hw_pci *other = &inv->pci[s->links[i].pci];
		const struct hw_port *its = port_of(inv, &s->links[i]);

		if (other->vendor == f->vendor && other->device == f->device && its &&
		    its->rate_mbps > usual)
			usual = its->rate_mbps;
	}
	if (str_eq(state, "ACTIVE")) {
		if (port->rate_mbps && port->rate_mbps < usual)
			l->wrong = arena_printf(s->arena, "runs at %s, others of its kind at %s",
						rate_text(port->rate_mbps, s->arena),
						rate_text(usual, s->arena));
		return;
	}
	l->down = carrier == 0 || (state && carrier < 0);
	if (l->down)
		l->wrong = state ? arena_printf(s->arena, "is down, its RDMA port is %s", state)
				 : "is down";
}

/* By the limits of the first pool that calls it so. */
static void find_degraded(const struct status *s, struct status_link *l, const struct item *answer)
{
	const struct hw_inventory *inv = s->machine->node->inv;
	const struct hw_port *port = port_of(inv, l);
	const struct item *pools = list_of(answer, "pools");
	char name[BDF_STRLEN];

	bdf_format(inv->pci[l->pci].bdf, name);
	for (size_t i = 0; i < pools->n_kids; i++) {
		const struct item *list = list_of(&pools->kids[i], "degraded");

		for (size_t k = 0; k < list->n_kids && !l->degraded; k++) {
			const struct item *d = &list->kids[k];

			if (!str_eq(item_string(d, "pf"), name) ||
			    item_number(d, "port", 1) != (port ? port->number : 1))
				continue;
			l->degraded = item_string(d, "why");
			l->reasons = list_of(d, "reasons");
		}
	}
	if (l->degraded)
		l->n_pods = pools_pods_of(answer, name, s->arena, &l->pods);
}

/* One that is on the bus has no driver; all others this machine does not show. */
static void add_missing(struct status *s, const struct item *missing, const struct item *answer)
{
	const char *pf = item_string(missing, "pf");
	int pci = pf ? find(s->machine->node->inv, pf) : -1;
	struct status_link *l = NULL;

	if (!pf)
		return;
	for (size_t i = 0; pci >= 0 && !l && i < s->n_links; i++)
		l = s->links[i].pci == pci ? &s->links[i] : NULL;
	if (!l) {
		l = &s->links[s->n_links++];
		*l = (struct status_link) {
			.pci = -1, .rdma = -1, .port = -1, .rail = -1, .plane = -1
		};
	}
	l->missing = missing;
	l->down = true;
	l->wrong = item_string(missing, "why");
	l->n_pods = pools_pods_of(answer, pf, s->arena, &l->pods);
}

void status_read_links(struct status *s, const struct item *answer)
{
	const struct hw_inventory *inv = s->machine->node->inv;
	const struct item *missing = list_of(answer, "missing");
	size_t most = inv->n_pci + missing->n_kids;

	for (size_t i = 0; i < inv->n_rdma; i++)
		most += inv->rdma[i].n_ports;
	s->links = arena_array(s->arena, most, sizeof(*s->links));
	for (size_t i = 0; i < inv->n_pci; i++) {
		struct status_link link = {
			.pci = (int)i, .rdma = hw_find_rdma(inv, (int)i), .rail = -1, .plane = -1
		};
		size_t n = link.rdma < 0 ? 0 : inv->rdma[link.rdma].n_ports;

		if (!is_wanted(inv, (int)i, answer))
			continue;
		find_rail(s, &link, answer);
		for (size_t k = 0; k < (n ? n : 1); k++) {
			link.port = n ? (int)k : -1;
			s->links[s->n_links++] = link;
		}
	}
	for (size_t i = 0; i < s->n_links; i++) {
		judge_link(s, &s->links[i]);
		find_degraded(s, &s->links[i], answer);
	}
	for (size_t i = 0; i < missing->n_kids; i++)
		add_missing(s, &missing->kids[i], answer);
	for (size_t i = 0; i < s->n_links; i++)
		s->n_down += s->links[i].down;
}

/* --- placement --- */

struct gpus {
	const char *const *v;
	size_t n;
};

/* The pairs as railmated counts them (align/align.h): each GPU and each VF has one at least. */
static void count_pairs(struct status *s, struct gpus gpus, const char *const *vfs, size_t n)
{
	const struct node *node = s->machine->node;
	struct align_vf *v = arena_array(s->arena, n, sizeof(*v));
	uint8_t *ranks = arena_array(s->arena, gpus.n * n, sizeof(*ranks));
	int *all = arena_array(s->arena, n, sizeof(*all));
	struct align_in in = {
		.vfs = v, .n_vfs = n, .n_places = n, .n_gpus = gpus.n, .gpu_rank = ranks, .want = n
	};
	struct align_out out;

	for (size_t i = 0; i < n; i++) {
		v[i] = (struct align_vf) { .place = (int)i, .index = -1 };
		all[i] = (int)i;
		for (size_t g = 0; g < gpus.n; g++) {
			int gpu = find(node->inv, gpus.v[g]), vf = find(node->inv, vfs[i]);

			ranks[g * n + i] = STATUS_RANKS - 1;
			if (gpu >= 0 && vf >= 0)
				ranks[g * n + i] =
					(uint8_t)topo_rank(topo_between(node->topo, gpu, vf).class);
		}
	}
	out = align_assign(&in, all, n, s->arena);
	for (size_t i = 0; i < out.n_pairs; i++)
		s->placement.pairs[out.pairs[i].rank]++;
}

void status_read_placement(struct status *s, const struct ledger *ledger)
{
	size_t paired = 0;

	s->placement.known = true;
	for (size_t i = 0; i < ledger_decisions(ledger); i++) {
		const struct ledger_decision *d = ledger_decision_at(ledger, i);
		const char **held = arena_array(s->arena, d->n_chosen, sizeof(*held));
		struct gpus gpus = { NULL, 0 };
		size_t n = 0;

		/* Those that the container really has. Late binding chooses when it knows them. */
		if (d->checked)
			gpus = (struct gpus) { d->real_gpus, d->n_real_gpus };
		else if (d->late && d->known == LEDGER_GPUS_KNOWN)
			gpus = (struct gpus) { d->gpus, d->n_gpus };
		if (!gpus.n)
			continue;
		s->placement.checked++;
		s->placement.best += !d->checked || d->real_cost <= d->best_cost;
		for (size_t k = 0; k < d->n_chosen; k++) {
			const struct ledger_hold *h = ledger_find(ledger, d->chosen[k]);

			if (h && h->decision == d->number && !h->draining)
				held[n++] = d->chosen[k];
		}
		if (n)
			count_pairs(s, gpus, held, n);
		paired += n;
	}
	for (size_t i = 0; i < ledger_holds(ledger); i++)
		s->placement.unknown += !ledger_hold_at(ledger, i)->draining;
	s->placement.unknown -= paired < s->placement.unknown ? paired : s->placement.unknown;
}
