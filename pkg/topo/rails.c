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
	bool named;
	int n_by_gpus;
	char **notes;
	size_t n_notes;
};

/* --- the operator's names --- */

/* By its address, its interface or its RDMA device. */
static int find_named(const struct hw_inventory *inv, const char *name)
{
	char bdf[BDF_STRLEN];

	for (int i = 0; i < (int)inv->n_pci; i++) {
		bool is_named = str_eq(name, bdf_format(inv->pci[i].bdf, bdf)) ||
				str_eq(name, inv->pci[i].netdev);

		for (size_t k = 0; k < inv->n_rdma; k++)
			is_named |= inv->rdma[k].pci == i && str_eq(name, inv->rdma[k].name);
		if (is_named && hw_is_own_nic(inv, i))
			return i;
	}
	return -1;
}

/* --- the order of NICs --- */

struct card;
struct nic {
	int pci;
	const struct hw_neighbor *leaf; /* NULL: not known */
	struct card *card;
	bool near; /* to some GPU, and none is nearer to that */
};

/* By switch and port there, numbers in names as numbers; by address where that is not known. */
static int by_leaf(const void *a, const void *b)
{
	const struct nic *x = a, *y = b;
	int c = 0;

	if (!x->leaf != !y->leaf)
		return x->leaf ? -1 : 1;
	if (x->leaf)
		c = strverscmp(x->leaf->name, y->leaf->name);
	if (x->leaf && !c)
		c = strverscmp(x->leaf->port, y->leaf->port);
	return c ? c : x->pci - y->pci;
}

static void sort_nics(struct nic *nics, size_t n)
{
	if (n > 1)
		qsort(nics, n, sizeof(*nics), by_leaf);
}

/* --- the order of the GPUs --- */

struct card {
	int n_gpus;  /* GPUs to which one of its NICs is nearest */
	int n_ports; /* NICs that are nearest to some GPU */
	int last_gpu;
	int rail, n_numbered;
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

static void find_nics(const struct topo *t, struct nics *nics)
{
	bool *has_rdma = xcalloc(t->inv->n_pci + 1, sizeof(*has_rdma));

	for (size_t i = 0; i < t->inv->n_rdma; i++)
		if (t->inv->rdma[i].pci >= 0)
			has_rdma[topo_place(t, t->inv->rdma[i].pci)] = true;
	nics->v = xcalloc(t->inv->n_pci + 1, sizeof(*nics->v));
	nics->cards = xcalloc(t->inv->n_pci + 1, sizeof(*nics->cards));
	for (int i = 0; i < (int)t->inv->n_pci; i++) {
		struct bdf mine = t->inv->pci[i].bdf;
		const char *board = board_of(t->inv, i);
		struct card *card = NULL;

		if (!has_rdma[i] || !hw_is_own_nic(t->inv, i))
			continue;
		for (size_t k = nics->n; !card && k-- > 0;) {
			struct bdf other = t->inv->pci[nics->v[k].pci].bdf;

			other.fn = mine.fn;
			if (bdf_cmp(mine, other) == 0 ||
			    (board && str_eq(board, board_of(t->inv, nics->v[k].pci))))
				card = nics->v[k].card;
			else if (!board)
				break; /* they come in the order of addresses */
		}
		if (!card)
			card = &nics->cards[nics->n_cards++];
		card->rail = card->last_gpu = -1;
		nics->v[nics->n++] = (struct nic) { i, hw_find_neighbor(t->inv, i), card, false };
	}
	sort_nics(nics->v, nics->n);
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
	r->n_by_gpus = next;
	for (size_t i = 0; i < nics.n; i++) {
		struct card *card = nics.v[i].card;

		if (nics.v[i].near)
			r->of[nics.v[i].pci].rail = card->rail + card->n_numbered++ *
									 rails_of_card(card) /
									 card->n_ports;
		else if (nics.v[i].leaf)
			r->of[nics.v[i].pci].rail = next++;
	}
	free(order);
	free(nics.cards);
	free(nics.v);
}

/* --- planes --- */

static void set_planes(struct topo_rails *r)
{
	const struct hw_inventory *inv = r->t->inv;
	struct topo_rail *said = xcalloc(inv->n_pci + 1, sizeof(*said)), at;
	int *nics = xcalloc(TOPO_RAIL_MAX + 1, sizeof(*nics));
	int *next = xcalloc(TOPO_RAIL_MAX + 1, sizeof(*next));
	struct nic *on = xcalloc(inv->n_pci + 1, sizeof(*on));
	size_t n_said = 0, n_on = 0;
	bool taken;

	for (int i = 0; i < (int)inv->n_pci; i++) {
		if (r->of[i].rail >= 0 && r->of[i].rail <= TOPO_RAIL_MAX) {
			nics[r->of[i].rail]++;
			on[n_on++] = (struct nic) { .pci = i, .leaf = hw_find_neighbor(inv, i) };
		}
		if (r->of[i].plane >= 0)
			said[n_said++] = r->of[i];
	}
	sort_nics(on, n_on);
	for (size_t i = 0; i < n_on; i++) {
		at = r->of[on[i].pci];
		if (at.plane >= 0 || nics[at.rail] == 1)
			continue;
		do {
			at.plane = next[at.rail]++;
			taken = false;
			for (size_t k = 0; k < n_said; k++)
				taken |= said[k].rail == at.rail && said[k].plane == at.plane;
		} while (taken);
		r->of[on[i].pci] = at;
	}
	free(on);
	free(next);
	free(nics);
	free(said);
}

struct topo_rails *topo_rails_new(const struct topo *t, const struct topo_rail_name *names,
				  size_t n)
{
	struct topo_rails *r = xcalloc(1, sizeof(*r));

	r->t = t;
	r->of = xcalloc(t->inv->n_pci + 1, sizeof(*r->of));
	for (size_t i = 0; i < t->inv->n_pci; i++)
		r->of[i] = (struct topo_rail) { -1, -1 };
	r->named = n > 0;
	if (r->named)
		r->notes = xcalloc(n, sizeof(*r->notes));
	else
		set_by_gpus(r);
	for (size_t i = 0; i < n; i++) {
		int nic = find_named(t->inv, names[i].nic);

		if (nic >= 0)
			r->of[nic] =
				(struct topo_rail) { names[i].rail,
						     names[i].has_plane ? names[i].plane : -1 };
		else
			r->notes[r->n_notes++] =
				xasprintf("rails: %s is not a NIC of this node", names[i].nic);
	}
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

bool topo_rails_are_named(const struct topo_rails *r)
{
	return r && r->named;
}

int topo_rails_by_gpus(const struct topo_rails *r)
{
	return r->n_by_gpus;
}

const char *const *topo_rails_notes(const struct topo_rails *r, size_t *ret_n)
{
	*ret_n = r->n_notes;
	return (const char *const *)r->notes;
}
