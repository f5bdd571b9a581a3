#include "topo/hints.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "hw/inventory.h"
#include "topo/topo-internal.h"

__attribute__((format(printf, 2, 3))) static void note(struct topo *t, const char *fmt, ...)
{
	char *text = NULL;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		abort();
	va_end(ap);
	t->notes = xgrow(t->notes, &t->cap_notes, t->n_notes + 1, sizeof(*t->notes));
	t->notes[t->n_notes++] = text;
}

static void place_in_group(struct topo *t, struct bdf bdf, int group, bool gpu)
{
	const struct topo_hints *h = t->hints;
	int pci = hw_find_pci(t->inv, bdf), numa = h->groups[group].numa;
	char address[BDF_STRLEN];
	struct spot *spot;

	bdf_format(bdf, address);
	if (pci < 0) {
		note(t, "%s: %s is not on this machine", h->source, address);
		return;
	}
	if (gpu ? hw_find_gpu(t->inv, pci) < 0 : !hw_is_nic(&t->inv->pci[pci])) {
		note(t, "%s: %s is not a %s", h->source, address, gpu ? "GPU" : "NIC");
		return;
	}
	spot = &t->spots[t->spots[pci].place];
	if (spot->group >= 0 && spot->group != group) {
		note(t, "%s: %s is in one group and its PF in another; the first counts", h->source,
		     address);
		return;
	}
	spot->group = group;
	if (numa >= 0)
		spot->numa = numa;
}

void apply_hints(struct topo *t, const struct topo_hints *hints)
{
	if (hints && !t->flattened) {
		note(t, "%s: not used: this machine does not hide its PCIe switches",
		     hints->source);
		return;
	}
	t->hints = hints ? hints : t->flattened ? topo_shape(t->inv) : NULL;
	for (size_t i = 0; t->hints && i < t->hints->n_groups; i++) {
		const struct topo_group *g = &t->hints->groups[i];

		for (size_t k = 0; k < g->n_gpus; k++)
			place_in_group(t, g->gpus[k], (int)i, true);
		for (size_t k = 0; k < g->n_nics; k++)
			place_in_group(t, g->nics[k], (int)i, false);
	}
}

const struct topo_hints *topo_hints_used(const struct topo *t)
{
	return t->hints;
}

int topo_group_of(const struct topo *t, int pci)
{
	assert(pci >= 0 && (size_t)pci < t->inv->n_pci);
	return t->spots[t->spots[pci].place].group;
}

int topo_numa(const struct topo *t, int pci)
{
	return t->spots[pci].numa;
}

bool topo_one_node(const struct topo *t)
{
	return t->one_node;
}

const char *const *topo_notes(const struct topo *t, size_t *ret_n)
{
	*ret_n = t->n_notes;
	return (const char *const *)t->notes;
}
