/* Is the file better than NCCL's own detection (docs/design/nccl.md §2.5), and which version does a
 * container get? */
#include <stdio.h>

#include "base/arena.h"
#include "base/mem.h"
#include "base/str.h"
#include "config/config.h"
#include "hw/inventory.h"
#include "pool/node.h"
#include "render/topofile-internal.h"
#include "render/topofile.h"
#include "topo/hints.h"
#include "topo/topo.h"

/* Functions that share a reason. */
struct reason {
	size_t n;
	struct bdf first;
};

static void count(struct reason *r, const struct hw_pci *f)
{
	if (!r->n++)
		r->first = f->bdf;
}

/* "0000:12:00.1 and 3 more <rest>" */
static void put_functions(struct strbuf *why, const struct reason *r, const char *one,
			  const char *many)
{
	char address[BDF_STRLEN];

	if (!r->n)
		return;
	strbuf_printf(why, "%s%s", why->len ? "; " : "", bdf_format(r->first, address));
	if (r->n > 1)
		strbuf_printf(why, " and %zu more", r->n - 1);
	strbuf_printf(why, " %s", r->n > 1 ? many : one);
}

struct reasons {
	struct reason elsewhere, limited, path;
	struct reason known, above,
		unknown; /* NUMA nodes: by the function itself, by a bridge above, by neither */
};

/* NCCL reads the numa_node of the upstream port of the uppermost switch, else of the function. */
static void judge_node(const struct hw_inventory *inv, const struct topo *topo, int pci,
		       struct reasons *r)
{
	const struct hw_pci *top = &inv->pci[pci];
	int up = top->parent;

	if (topo_place(topo, pci) != pci || topo_group_of(topo, pci) >= 0)
		return;
	for (int n = 0; up >= 0 && inv->pci[up].parent >= 0 && n < 64; n++) {
		top = &inv->pci[up];
		up = top->parent;
	}
	if (top->numa_above)
		count(&r->above, &inv->pci[pci]);
	else
		count(top->numa < 0 ? &r->unknown : &r->known, &inv->pci[pci]);
}

static void judge(const struct hw_inventory *inv, const struct topo *topo, int pci,
		  struct reasons *r)
{
	const struct hw_pci *f = &inv->pci[pci];
	struct bdf merged = topo_nccl_address(f->bdf, true),
		   place = inv->pci[topo_place(topo, pci)].bdf;

	judge_node(inv, topo, pci, r);
	if (!f->has_root)
		count(&r->path, f);
	if (hw_find_gpu(inv, pci) >= 0)
		return;
	/* NCCL with its default looks for a VF in its PF's slot, or so it thinks. */
	place.fn = 0;
	if (hw_is_nic_vf(inv, pci) && (bdf_cmp(merged, place) || hw_find_pci(inv, merged) < 0))
		count(&r->elsewhere, f);
	if (f->rate_mbps)
		count(&r->limited, f);
}

bool topofile_needed(const struct topofile_in *in, struct strbuf *why)
{
	const struct hw_inventory *inv = in->inv;
	const struct topo *topo = in->topo;
	const struct topo_hints *hints = topo_hints_used(topo);
	_cleanup_free_ bool *nics = topofile_nics(in);
	struct reasons r = { 0 };
	size_t before = why->len;

	if (hints)
		strbuf_printf(
			why,
			"%sthis virtual machine hides its PCIe switches, and %s describes them",
			why->len ? "; " : "", hints->source);
	for (int i = 0; i < (int)inv->n_pci; i++) {
		if (nics[i] || hw_find_gpu(inv, i) >= 0)
			judge(inv, topo, i, &r);
	}
	put_functions(why, &r.elsewhere, "is a VF that NCCL does not look for at its PF",
		      "are VFs that NCCL does not look for at their PFs");
	put_functions(why, &r.limited, "has a rate limit, which NCCL does not see",
		      "have a rate limit, which NCCL does not see");
	/* Without a second node it is wrong only to give some functions' node and not others'. */
	if (!topo_one_node(topo) || r.known.n)
		put_functions(why, r.above.n || !topo_one_node(topo) ? &r.above : &r.unknown,
			      "has no NUMA node by the firmware",
			      "have no NUMA node by the firmware");
	put_functions(why, &r.path, "has no way to a root complex in sysfs",
		      "have no way to a root complex in sysfs");
	if (why->len > before)
		return true;
	strbuf_printf(
		why, "%s%s", why->len ? "; " : "",
		topo_flattened_vm(topo)
			? "this virtual machine hides its PCIe switches, and no topology hints describe them"
			: "NCCL finds everything of this node by itself");
	return false;
}

int topofile_wanted(const struct node *node, const struct pool_config *pool)
{
	const struct topofile_in in = topofile_in(node, 0);
	const struct hw_inventory *inv = node->inv;
	_cleanup_strbuf_ struct strbuf why = STRBUF_INIT;
	bool only_amd = inv->n_gpu > 0;

	if (!(pool->profiles & (PROFILE_NCCL | PROFILE_RCCL)) ||
	    pool->topology_file == TOPOLOGY_FILE_NEVER)
		return 0;
	if (pool->topology_file == TOPOLOGY_FILE_AUTO && !topofile_needed(&in, &why))
		return 0;
	for (size_t i = 0; i < inv->n_gpu; i++)
		only_amd &= str_eq(inv->gpu[i].vendor, "AMD");
	return !(pool->profiles & PROFILE_NCCL) || only_amd ? 2 : 1;
}

const char *topofile_name(const struct node *node, const struct pool_config *pool)
{
	_cleanup_arena_ struct arena *arena = NULL;
	const struct topofile_in in = topofile_in(node, topofile_wanted(node, pool));
	struct topofile_out out;

	if (!in.version)
		return NULL;
	arena = arena_new(64 * 1024);
	if (topofile_render(&in, arena, &out, NULL) < 0)
		return NULL;
	return in.version == 2 ? TOPOFILE_RCCL : TOPOFILE_NCCL;
}
