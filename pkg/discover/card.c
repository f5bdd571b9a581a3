/*
 * Data Direct: a NIC whose transfers with GPUs are done by a PCI function elsewhere in the tree.
 * Their VPD has the pairs; reading one takes long (vpdread.c), so it is done on machines that have
 * such functions, of those and of the NICs that may have one, and once. Facts: rdma-core,
 * kernel-boot/rdma_topo; drivers/infiniband/hw/mlx5/data_direct.c.
 */
#include <string.h>

#include "base/arena.h"
#include "base/mem.h"
#include "discover/scan-internal.h"

static const uint16_t nics_with_data_direct[] = { 0x1023, 0x1025 }; /* ConnectX-8, ConnectX-9 */

bool discover_reads_vpd(const struct hw_pci *f)
{
	if (hw_is_data_direct(f))
		return true;
	if (f->vendor != 0x15b3 || f->is_vf || !hw_is_nic(f))
		return false;
	for (size_t i = 0; i < ARRAY_LEN(nics_with_data_direct); i++) {
		if (f->device == nics_with_data_direct[i])
			return true;
	}
	return false;
}

static const char *text_or_null(struct scan *s, const char *text)
{
	return *text ? arena_strdup(s->arena, text) : NULL;
}

static bool is_known(const struct hw_card *card)
{
	return card->board || card->vuid;
}

/* Taken to be the same function: at the same address, with the same ids. */
static const struct hw_card *find_before(const struct hw_inventory *before, const struct hw_pci *f)
{
	for (size_t i = 0; before && i < before->n_card; i++) {
		const struct hw_pci *was = &before->pci[before->card[i].pci];

		if (!bdf_cmp(was->bdf, f->bdf) && was->vendor == f->vendor &&
		    was->device == f->device)
			return &before->card[i];
	}
	return NULL;
}

static void take_read(struct scan *s, const struct vpd_read *read, struct hw_card *ret)
{
	ret->name = text_or_null(s, read->vpd.name);
	ret->serial = text_or_null(s, read->vpd.serial);
	ret->board = text_or_null(s, read->vpd.board);
	ret->vuid = text_or_null(s, read->vpd.vuid);
	ret->problem = text_or_null(s, read->err.msg);
}

static void add_card(struct scan *s, int pci, const struct hw_card *known,
		     const struct vpd_read *read)
{
	struct hw_card card = { .pci = pci, .direct = -1 };
	char addr[BDF_STRLEN];

	if (known) {
		card.name = arena_strdup(s->arena, known->name);
		card.serial = arena_strdup(s->arena, known->serial);
		card.board = arena_strdup(s->arena, known->board);
		card.vuid = arena_strdup(s->arena, known->vuid);
		card.problem = arena_strdup(s->arena, known->problem);
	} else {
		take_read(s, read, &card);
	}
	if (card.problem)
		scan_note(
			s, "%s: %s; %s", bdf_format(s->pci[pci].bdf, addr), card.problem,
			is_known(&card)
				? "what can be read of V3 and VU is used"
				: "its part in Data Direct is not known until railmated is restarted");
	s->card = xgrow(s->card, &s->cap_card, s->n_card + 1, sizeof(*s->card));
	s->card[s->n_card++] = card;
}

static bool is_equal(const char *a, const char *b)
{
	return a && b && !strcmp(a, b);
}

/* How many data direct functions have the card's V3, or else its VU; *ret: the last of them. */
static size_t count_matches(const struct scan *s, const struct hw_card *card, bool by_vuid,
			    int *ret)
{
	size_t n = 0;

	for (size_t i = 0; i < s->n_card; i++) {
		const struct hw_card *other = &s->card[i];

		if (!hw_is_data_direct(&s->pci[other->pci]) ||
		    !(by_vuid ? is_equal(card->vuid, other->vuid)
			      : is_equal(card->board, other->board)))
			continue;
		*ret = other->pci;
		n++;
	}
	return n;
}

/* rdma_topo compares V3; where it does not single one out, VU may. */
static void find_direct(struct scan *s, struct hw_card *card)
{
	char addr[BDF_STRLEN];
	int found = -1;
	size_t boards = count_matches(s, card, false, &found);
	size_t n = boards == 1 ? 1 : count_matches(s, card, true, &found);

	if (n == 1) {
		card->direct = found;
		return;
	}
	bdf_format(s->pci[card->pci].bdf, addr);
	if (n || boards)
		scan_note(
			s,
			"%s: %zu data direct functions are of its board (V3, VU); none is taken for its own",
			addr, boards ? boards : n);
	else
		scan_note(
			s,
			"%s: no data direct function is of its board (V3, VU); taken to be where its PCI function is",
			addr);
}

void scan_cards_begin(struct scan *s, const struct hw_inventory *before)
{
	_cleanup_free_ struct bdf *list = xcalloc(s->n_pci + 1, sizeof(*list));
	size_t n = 0;

	for (size_t i = 0; i < s->n_pci && !s->any_direct; i++)
		s->any_direct = hw_is_data_direct(&s->pci[i]);
	for (size_t i = 0; s->any_direct && i < s->n_pci; i++) {
		if (discover_reads_vpd(&s->pci[i]) && !find_before(before, &s->pci[i]))
			list[n++] = s->pci[i].bdf;
	}
	if (n)
		s->vpd = scan_vpd_start(s->root, list, n);
}

void scan_cards(struct scan *s, const struct hw_inventory *before)
{
	size_t n = 0, next = 0;
	const struct vpd_read *read = s->vpd ? scan_vpd_join(s->vpd, &n) : NULL;

	/* Both are sorted by address, and bridges alone were added since. */
	for (size_t i = 0; s->any_direct && i < s->n_pci; i++) {
		const struct hw_card *known;

		if (!discover_reads_vpd(&s->pci[i]))
			continue;
		known = find_before(before, &s->pci[i]);
		if (known)
			add_card(s, (int)i, known, NULL);
		else if (next < n && !bdf_cmp(read[next].bdf, s->pci[i].bdf))
			add_card(s, (int)i, NULL, &read[next++]);
	}
	scan_vpd_free(s->vpd);
	for (size_t i = 0; i < s->n_card; i++) {
		if (is_known(&s->card[i]) && !hw_is_data_direct(&s->pci[s->card[i].pci]))
			find_direct(s, &s->card[i]);
	}
}
