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

static bool is_here(const struct hw_inventory *inv, const char *name)
{
	struct bdf bdf;

	for (size_t i = 0; i < inv->n_pci; i++) {
		if (inv->pci[i].netdev && !strcasecmp(inv->pci[i].netdev, name))
			return true;
	}
	return bdf_parse(name, &bdf) == 0 && hw_find_pci(inv, bdf) >= 0;
}

static void say_if_missing(const struct hw_inventory *inv, const char *name, struct enumeration *e)
{
	if (!is_here(inv, name))
		enumerate(e, name);
}

static void say_missing(const struct hw_inventory *inv, const struct selector *s,
			struct enumeration *e)
{
	for (size_t i = 0; i < s->n_pf_names; i++)
		say_if_missing(inv, s->pf_names[i].name, e);
	for (size_t i = 0; i < s->n_root_devices; i++)
		say_if_missing(inv, s->root_devices[i].name, e);
	for (size_t i = 0; i < s->n_if_names; i++)
		say_if_missing(inv, s->if_names[i], e);
}

static void say_card(const struct hw_pci *fn, struct enumeration *e)
{
	char address[BDF_STRLEN], text[BDF_STRLEN + 64], vfs[16] = "no";

	if (fn->sriov_num)
		snprintf(vfs, sizeof(vfs), "%d", fn->sriov_num);
	snprintf(text, sizeof(text), "%s (%s VF%s)",
		 fn->netdev ? fn->netdev : bdf_format(fn->bdf, address), vfs,
		 fn->sriov_num == 1 ? "" : "s");
	enumerate(e, text);
}

static void say_cards(const struct hw_inventory *inv, struct enumeration *e)
{
	char text[64];
	int alone = 0;

	for (size_t i = 0; i < inv->n_pci; i++) {
		const struct hw_pci *fn = &inv->pci[i];

		if (!hw_is_nic(fn))
			continue;
		alone += hw_is_nic_vf(inv, (int)i) && fn->physfn < 0;
		if (hw_is_pf(fn) && (fn->sriov_num || hw_find_rdma(inv, (int)i) >= 0))
			say_card(fn, e);
	}
	snprintf(text, sizeof(text), "%d VF%s whose PF is not to be seen", alone,
		 alone == 1 ? "" : "s");
	if (alone)
		enumerate(e, text);
}

void pool_say_empty(const struct node *node, const struct pool *pool, struct strbuf *out)
{
	struct enumeration missing = { .out = out, .title = "Not here" };
	struct enumeration cards = { .out = out, .title = "Network cards here" };

	strbuf_printf(out,
		      "%s has no device on this node, so pods that ask for it cannot run here.",
		      pool->cfg->resource);
	for (size_t i = 0; i < pool->cfg->n_selectors; i++)
		say_missing(node->inv, &pool->cfg->selectors[i], &missing);
	end_enumeration(&missing);
	say_cards(node->inv, &cards);
	end_enumeration(&cards);
}
