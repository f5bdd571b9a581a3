#include "pool/empty.h"

#include <stdio.h>
#include <strings.h>

#include "base/str.h"
#include "config/config.h"
#include "hw/inventory.h"
#include "pool/node.h"

bool pool_is_meant_for(const struct hw_inventory *inv)
{
	bool cards = false;

	for (size_t i = 0; i < inv->n_rdma; i++) {
		int pci = inv->rdma[i].pci;

		if (pci >= 0 && hw_is_nic_vf(inv, pci))
			return true;
		cards |= pci >= 0 && hw_is_nic(&inv->pci[pci]) && hw_is_pf(&inv->pci[pci]);
	}
	return cards && inv->n_gpu;
}

static bool has_devices(const struct pool *pools, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (pools[i].n_devs)
			return true;
	}
	return false;
}

bool pool_is_idle(const struct node *node)
{
	return !has_devices(node->pools, node->n_pools) &&
	       !has_devices(node->shared, node->n_shared) && !pool_is_meant_for(node->inv);
}

/* "A: x, y." */
struct enumeration {
	struct strbuf *out;
	const char *title;
	bool begun;
};

static void enumerate(struct enumeration *e, const char *name)
{
	if (e->begun)
		strbuf_printf(e->out, ", %s", name);
	else
		strbuf_printf(e->out, " %s: %s", e->title, name);
	e->begun = true;
}

static void end_enumeration(const struct enumeration *e)
{
	if (e->begun)
		strbuf_putc(e->out, '.');
}

static void say_if_missing(const struct hw_inventory *inv, const char *name, struct enumeration *e)
{
	struct bdf bdf;

	for (size_t i = 0; i < inv->n_pci; i++) {
		if (inv->pci[i].netdev && !strcasecmp(inv->pci[i].netdev, name))
			return;
	}
	if (bdf_parse(name, &bdf) < 0 || hw_find_pci(inv, bdf) < 0)
		enumerate(e, name);
}

void pool_say_empty(const struct node *node, const struct pool *pool, struct strbuf *out)
{
	struct enumeration missing = { .out = out, .title = "Not here" };
	struct enumeration cards = { .out = out, .title = "Network cards here" };
	char text[BDF_STRLEN + 64], address[BDF_STRLEN];
	const struct hw_inventory *inv = node->inv;
	int alone = 0;

	strbuf_printf(out,
		      "%s has no device on this node, so pods that ask for it cannot run here.",
		      pool->cfg->resource);
	for (size_t i = 0; i < pool->cfg->n_selectors; i++) {
		const struct selector *s = &pool->cfg->selectors[i];

		for (size_t k = 0; k < s->n_pf_names; k++)
			say_if_missing(node->inv, s->pf_names[k].name, &missing);
		for (size_t k = 0; k < s->n_root_devices; k++)
			say_if_missing(node->inv, s->root_devices[k].name, &missing);
		for (size_t k = 0; k < s->n_if_names; k++)
			say_if_missing(node->inv, s->if_names[k], &missing);
	}
	end_enumeration(&missing);
	for (size_t i = 0; i < inv->n_pci; i++) {
		const struct hw_pci *fn = &inv->pci[i];
		char vfs[16];

		if (!hw_is_nic(fn))
			continue;
		alone += hw_is_nic_vf(inv, (int)i) && fn->physfn < 0;
		if (!hw_is_pf(fn) || (!fn->sriov_num && hw_find_rdma(inv, (int)i) < 0))
			continue;
		snprintf(vfs, sizeof(vfs), "%d", fn->sriov_num);
		snprintf(text, sizeof(text), "%s (%s VF%s)",
			 fn->netdev ? fn->netdev : bdf_format(fn->bdf, address),
			 fn->sriov_num ? vfs : "no", fn->sriov_num == 1 ? "" : "s");
		enumerate(&cards, text);
	}
	snprintf(text, sizeof(text), "%d VF%s whose PF is not to be seen", alone,
		 alone == 1 ? "" : "s");
	if (alone)
		enumerate(&cards, text);
	end_enumeration(&cards);
}
