#include "topo/rails.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "hw/inventory.h"
#include "topo/topo-internal.h"

struct topo_rails {
	const struct topo *t;
	struct topo_rail *of; /* by PCI index; set for places only */
	char **notes;
	size_t n_notes;
};

/* --- the operator's names --- */

static bool is_named(const struct hw_inventory *inv, int pci, const char *name)
{
	char bdf[BDF_STRLEN];

	if (str_eq(name, bdf_format(inv->pci[pci].bdf, bdf)) || str_eq(name, inv->pci[pci].netdev))
		return true;
	for (size_t i = 0; i < inv->n_rdma; i++)
		if (inv->rdma[i].pci == pci && str_eq(name, inv->rdma[i].name))
			return true;
	return false;
}

static int find_named(const struct hw_inventory *inv, const char *name)
{
	for (int i = 0; i < (int)inv->n_pci; i++)
		if (hw_is_own_nic(inv, i) && is_named(inv, i, name))
			return i;
	return -1;
}

static void set_named(struct topo_rails *r, const struct topo_rail_name *names, size_t n)
{
	r->notes = xcalloc(n, sizeof(*r->notes));
	for (size_t i = 0; i < n; i++) {
		int nic = find_named(r->t->inv, names[i].nic);

		if (nic >= 0)
			r->of[nic].rail = names[i].rail;
		else
			r->notes[r->n_notes++] =
				xasprintf("rails: %s is no NIC of this node", names[i].nic);
	}
}

/* --- the order of the GPUs --- */

struct card {
	int n_gpus;  /* GPUs to which one of its NICs is nearest */
	int n_ports; /* NICs that are nearest to some GPU */
	int last_gpu;
	int rail, n_numbered;
};

struct nic {
	int pci;
	struct card *card;
	bool near; /* to some GPU, and none is nearer to that */
};

struct nics {
	struct nic *v;
	size_t n;
	struct card *cards;
	size_t n_cards;
};

/* Of VPD, where it was read (machines with Data Direct). */
static const char *board_of(const struct hw_inventory *inv, int pci)
{
	for (size_t i = 0; i < inv->n_card; i++)
		if (inv->card[i].pci == pci)
			return inv->card[i].board;
	return NULL;
}

static struct card *card_of(const struct hw_inventory *inv, struct nics *nics, int pci)
{
	struct bdf mine = inv->pci[pci].bdf;
	const char *board = board_of(inv, pci);

	for (size_t i = nics->n; i-- > 0;) {
		struct bdf other = inv->pci[nics->v[i].pci].bdf;

		other.fn = mine.fn;
		if (bdf_cmp(mine, other) == 0 ||
		    (board && str_eq(board, board_of(inv, nics->v[i].pci))))
			return nics->v[i].card;
		if (!board)
			break; /* they come in the order of addresses */
	}
	return &nics->cards[nics->n_cards++];
}

static void find_nics(const struct topo *t, struct nics *nics)
{
	bool *has_rdma = xcalloc(t->inv->n_pci + 1, sizeof(*has_rdma));

	for (size_t i = 0; i < t->inv->n_rdma; i++)
		if (t->inv->rdma[i].pci >= 0)
			has_rdma[topo_place(t, t->inv->rdma[i].pci)] = true;
	nics->v = xcalloc(t->inv->n_pci + 1, sizeof(*nics->v));
	nics->cards = xcalloc(t->inv->n_pci + 1, sizeof(*nics->cards));
	for (int i = 0; i < (int)t->inv->n_pci; i++)
		if (has_rdma[i] && hw_is_own_nic(t->inv, i)) {
			struct card *card = card_of(t->inv, nics, i);

			card->rail = card->last_gpu = -1;
			nics->v[nics->n++] = (struct nic) { i, card, false };
		}
	free(has_rdma);
}

/* The cards that are nearest to the GPU get the next numbers; how many, is known when every GPU was
 * looked at. */
static void note_nearest(const struct topo *t, struct nics *nics, int g, struct card **order,
			 size_t *n_order)
{
	enum topo_class best = TOPO_CLASS_MAX, *class = xcalloc(nics->n + 1, sizeof(*class));

	for (size_t i = 0; i < nics->n; i++) {
		class[i] = topo_between(t, t->inv->gpu[g].pci, nics->v[i].pci).class;
		best = class[i] < best ? class[i] : best;
	}
	for (size_t i = 0; i < nics->n; i++) {
		struct nic *nic = &nics->v[i];

		if (class[i] != best)
			continue;
		if (nic->card->last_gpu < 0)
			order[(*n_order)++] = nic->card;
		nic->card->n_gpus += nic->card->last_gpu != g;
		nic->card->last_gpu = g;
		nic->card->n_ports += !nic->near;
		nic->near = true;
	}
	free(class);
}

static int rails_of_card(const struct card *card)
{
	return card->n_ports < card->n_gpus ? card->n_ports : card->n_gpus;
}

static void set_by_gpus(struct topo_rails *r)
{
	struct nics nics = { 0 };
	struct card **order;
	size_t n_order = 0;
	int next = 0;

	find_nics(r->t, &nics);
	order = xcalloc(nics.n_cards + 1, sizeof(struct card *));
	for (size_t g = 0; g < r->t->inv->n_gpu; g++)
		note_nearest(r->t, &nics, (int)g, order, &n_order);
	for (size_t i = 0; i < n_order; i++) {
		order[i]->rail = next;
		next += rails_of_card(order[i]);
	}
	for (size_t i = 0; i < nics.n; i++) {
		struct card *card = nics.v[i].card;

		if (nics.v[i].near)
			r->of[nics.v[i].pci].rail = card->rail + card->n_numbered++ *
									 rails_of_card(card) /
									 card->n_ports;
	}
	free(order);
	free(nics.cards);
	free(nics.v);
}

/* --- planes --- */

static void set_planes(struct topo_rails *r)
{
	const struct hw_inventory *inv = r->t->inv;
	int *count = xcalloc(TOPO_RAIL_MAX + 1, sizeof(*count));

	for (size_t i = 0; i < inv->n_pci; i++)
		if (r->of[i].rail >= 0 && r->of[i].rail <= TOPO_RAIL_MAX)
			r->of[i].plane = count[r->of[i].rail]++;
	for (size_t i = 0; i < inv->n_pci; i++)
		if (r->of[i].plane == 0 && count[r->of[i].rail] == 1)
			r->of[i].plane = -1;
	free(count);
}

struct topo_rails *topo_rails_new(const struct topo *t, const struct topo_rail_name *names,
				  size_t n)
{
	struct topo_rails *r = xcalloc(1, sizeof(*r));

	r->t = t;
	r->of = xcalloc(t->inv->n_pci + 1, sizeof(*r->of));
	for (size_t i = 0; i < t->inv->n_pci; i++)
		r->of[i] = (struct topo_rail) { -1, -1 };
	if (n > 0)
		set_named(r, names, n);
	else
		set_by_gpus(r);
	set_planes(r);
	return r;
}

void topo_rails_free(struct topo_rails *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < r->n_notes; i++)
		free(r->notes[i]);
	free(r->notes);
	free(r->of);
	free(r);
}

struct topo_rail topo_rails_of(const struct topo_rails *r, int pci)
{
	return !r || pci < 0 ? (struct topo_rail) { -1, -1 } : r->of[topo_place(r->t, pci)];
}

const char *const *topo_rails_notes(const struct topo_rails *r, size_t *ret_n)
{
	*ret_n = r->n_notes;
	return (const char *const *)r->notes;
}
