/*
 * NCCL's variables but those about GIDs. Source of every rule: NCCL 2.30
 * src/transport/net_ib/init.cc and src/graph, as collected in docs/design/nccl.md §1.
 */
#include <string.h>

#include "base/arena.h"
#include "base/list.h"
#include "base/str.h"
#include "config/config.h"
#include "hw/inventory.h"
#include "hw/vfstate.h"
#include "pool/node.h"
#include "render/render-internal.h"
#include "topo/rails.h"
#include "topo/topo.h"

static const struct pool_config *cfg_of(const struct rail *rail)
{
	return rail->grant->pool->cfg;
}

/*
 * "=dev:port:rail:plane,…": '=' asks for whole names (without it mlx5_1 also takes mlx5_10), the
 * port is explicit. An empty list would match every HCA of the node, so it is never written.
 */
static void put_hcas(const struct rail *rails, size_t n, struct env_set *set, struct notes *notes)
{
	_cleanup_strbuf_ struct strbuf b = STRBUF_INIT;
	struct topo_rail at[HCAS_MAX] = { 0 };
	size_t listed = n < HCAS_MAX ? n : HCAS_MAX;
	bool planes;

	for (size_t i = 0; i < listed; i++)
		at[i] = pool_nccl_rail(rails[i].grant->pool, rails[i].grant->node->rails,
				       rails[i].dev->dev->pci);
	planes = pool_planes_fit(at, listed);
	for (size_t i = 0; i < listed; i++) {
		strbuf_putc(&b, i ? ',' : '=');
		put_hca(&b, rails[i].grant, rails[i].dev);
		/* As far as they are known. */
		if (at[i].rail >= 0)
			strbuf_printf(&b, ":%d", at[i].rail);
		if (at[i].rail >= 0 && at[i].plane >= 0 && planes)
			strbuf_printf(&b, ":%d", at[i].plane);
	}
	if (!planes)
		add_note(
			notes,
			arena_printf(
				set->arena,
				"the VFs are on more than %d planes, with which NCCL would not start: NCCL_IB_HCA has their rails only",
				POOL_NCCL_PLANES_MAX));
	if (n)
		env_put(set, "NCCL_IB_HCA", arena_strdup(set->arena, strbuf_str(&b)));
	if (n > HCAS_MAX)
		add_note(notes,
			 arena_printf(set->arena,
				      "NCCL takes %d devices at most: %zu of %zu VFs are left out",
				      HCAS_MAX, n - HCAS_MAX, n));
}

/* It skips them silently. */
static void note_ports(const struct rail *rails, size_t n, struct env_set *set, struct notes *notes)
{
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;
	struct few few = { .text = &text };
	const char *names;

	for (size_t i = 0; i < n; i++) {
		const struct vf_state *state = rails[i].dev->state;

		if (state && state->port_state && strcmp(state->port_state, "ACTIVE") != 0)
			few_add(&few, arena_printf(set->arena, "port %d of %s (VF %s) is %s",
						   grant_port(rails[i].grant, rails[i].dev),
						   rails[i].dev->rdma, rails[i].dev->dev->id,
						   state->port_state));
	}
	names = few_end(&few);
	if (few.n)
		add_note(notes, arena_printf(set->arena, "%s: NCCL leaves %s out", names,
					     few.n > 1 ? "them" : "it"));
}

/* Appends "A and B"; false: the VF has its wire for itself, or was named before. */
static bool put_sharers(const struct rail *rails, size_t n, size_t first, struct strbuf *out)
{
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;
	struct few few = { .text = &text };
	const char *names;

	for (size_t i = 0; i < n; i++) {
		if (bdf_cmp(rails[i].pf, rails[first].pf) ||
		    grant_port(rails[i].grant, rails[i].dev) !=
			    grant_port(rails[first].grant, rails[first].dev))
			continue;
		if (i < first)
			return false;
		few_add(&few, rails[i].dev->dev->id);
	}
	names = few_end(&few);
	if (few.n > 1)
		strbuf_printf(out, "%s%s", out->len ? "; " : "", names);
	return few.n > 1;
}

/* Cards: slots of PCIe, in which each port may be a function. */
static size_t cards_of(const struct rail *rails, size_t n)
{
	size_t count = 0;

	for (size_t i = 0; i < n; i++) {
		size_t k = 0;

		while (k < i &&
		       (rails[k].pf.domain != rails[i].pf.domain ||
			rails[k].pf.bus != rails[i].pf.bus || rails[k].pf.dev != rails[i].pf.dev))
			k++;
		count += k == i;
	}
	return count;
}

/*
 * Two functions on one port of a PF share its rate; NCCL would merge them into one device of twice
 * the rate. Ports of one card it would merge as well, so that GPUs that were given one each would
 * both have the pair. Since 2.24 NCCL's core requests the merge, and its first releases failed when
 * the transport refused it because of NCCL_IB_MERGE_NICS: so the core gets its own variable, too.
 */
static void put_merge_nics(const struct rail *rails, size_t n, bool several_gpus,
			   struct env_set *set, struct notes *notes)
{
	_cleanup_strbuf_ struct strbuf wires = STRBUF_INIT;
	size_t count = 0;

	for (size_t i = 0; i < n; i++) {
		if (put_sharers(rails, n, i, &wires))
			count++;
	}
	if (!count && !(several_gpus && cards_of(rails, n) < n))
		return;
	env_put(set, "NCCL_IB_MERGE_NICS", "0");
	env_put(set, "NCCL_NET_MERGE_LEVEL", "LOC");
	if (!count)
		return;
	add_note(
		notes,
		arena_printf(
			set->arena,
			"VFs %s share one port of their PF%s: NCCL takes each VF for a link of the full rate",
			strbuf_str(&wires), count > 1 ? " each time" : ""));
}

/* --- distances, as NCCL sees them (docs/design/nccl.md §3.1) --- */

/* All GPUs that VFs were chosen for, each once. */
static size_t gpus_of(const struct grant *grants, size_t n, struct arena *arena, int **ret)
{
	size_t count = 0;
	int *gpus;

	for (size_t i = 0; i < n; i++)
		count += grants[i].n_pairs;
	gpus = arena_array(arena, count, sizeof(*gpus));
	count = 0;
	for (size_t i = 0; i < n; i++) {
		for (size_t k = 0; k < grants[i].n_pairs; k++)
			gpus[count++] = grants[i].pairs[k].gpu;
	}
	*ret = gpus;
	return list_unique_int(gpus, count);
}

/* NCCL has no class between its PHB and SYS. */
static int nccl_rank(const struct rail *rail, int gpu)
{
	enum topo_class class =
		pool_between(rail->grant->pool, rail->grant->node->topo, gpu, rail->dev->dev->pci)
			.class;

	return topo_rank(class == TOPO_NODE ? TOPO_PHB : class);
}

/* One that NCCL takes for this GPU before the VF; it asks for bandwidth first. */
static bool is_beaten(const struct rail *rails, size_t n, size_t at, int gpu)
{
	int rate = grant_rate(rails[at].grant, rails[at].dev);

	for (size_t i = 0; i < n; i++) {
		if (rails[i].dev->dev->pci >= 0 &&
		    nccl_rank(&rails[i], gpu) < nccl_rank(&rails[at], gpu) &&
		    grant_rate(rails[i].grant, rails[i].dev) >= rate)
			return true;
	}
	return false;
}

/* Of each GPU it uses the nearest VFs, however many farther ones there are. */
static void note_unused(const struct grant *grants, size_t n_grants, const struct rail *rails,
			size_t n, struct arena *arena, struct notes *notes)
{
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;
	struct few few = { .text = &text };
	int *gpus;
	size_t n_gpus = gpus_of(grants, n_grants, arena, &gpus);
	const char *names;

	for (size_t i = 0; i < n && n_gpus; i++) {
		size_t k = 0;

		while (rails[i].dev->dev->pci >= 0 && k < n_gpus && is_beaten(rails, n, i, gpus[k]))
			k++;
		if (k == n_gpus)
			few_add(&few, rails[i].dev->dev->id);
	}
	names = few_end(&few);
	if (few.n)
		add_note(
			notes,
			arena_printf(
				arena,
				"VF%s %s %s farther from every GPU of the container than another of its VFs: NCCL does not use %s",
				few.n > 1 ? "s" : "", names, few.n > 1 ? "are" : "is",
				few.n > 1 ? "them" : "it"));
}

/* More than two GPUs a VF, and some of them far from every one: more VFs would have mended it. */
static void note_few(const struct grant *grants, size_t n_grants, const struct rail *rails,
		     size_t n, struct arena *arena, struct notes *notes)
{
	int *gpus;
	size_t n_gpus = gpus_of(grants, n_grants, arena, &gpus), far = 0;

	for (size_t k = 0; k < n_gpus; k++) {
		size_t i = 0;

		while (i < n && (rails[i].dev->dev->pci < 0 ||
				 nccl_rank(&rails[i], gpus[k]) >= topo_rank(TOPO_PHB)))
			i++;
		far += i == n;
	}
	if (!n || !far || n_gpus <= 2 * n)
		return;
	add_note(
		notes,
		arena_printf(
			arena,
			"%zu GPUs share %zu VF%s, and %zu of them %s far from %s: with a VF for each GPU, or for two, more of them have a near one",
			n_gpus, n, n > 1 ? "s" : "", far, far > 1 ? "are" : "is",
			n > 1 ? "all" : "it"));
}

/* --- partitions --- */

static int pkey_index(const struct vf_state *state, int pkey)
{
	for (size_t i = 0; i < state->n_pkeys; i++) {
		if (state->pkeys[i] == pkey)
			return (int)i;
	}
	return -1;
}

/* Where NCCL has to look on this VF: at 0, its default, if the pool names no P_Key; -1: not there,
 * or not known. */
static int pkey_of(const struct rail *rail, struct arena *arena, struct notes *notes)
{
	const struct vf_state *state = rail->dev->state;
	int pkey = cfg_of(rail)->pkey, index;

	if (pkey <= 0)
		return 0;
	index = state ? pkey_index(state, pkey) : -1;
	if (state && index < 0)
		add_note(
			notes,
			arena_printf(
				arena,
				"P_Key 0x%04x of the pool %s is not in the table of %s (VF %s)%s: NCCL_IB_PKEY is left out",
				(unsigned)pkey, cfg_of(rail)->resource, rail->dev->rdma,
				rail->dev->dev->id,
				pkey_index(state, pkey ^ 0x8000) >= 0
					? ", only with the other membership (bit 0x8000)"
					: ""));
	return index;
}

/* NCCL takes an index, and the same for all. */
static void put_pkey(const struct rail *rails, size_t n, struct env_set *set, struct notes *notes)
{
	int common = -1;
	bool asked = false;

	for (size_t i = 0; i < n; i++) {
		int index;

		if (grant_link(rails[i].grant, rails[i].dev) != HW_LINK_IB)
			continue;
		index = pkey_of(&rails[i], set->arena, notes);
		if (index < 0)
			return;
		if (common >= 0 && index != common) {
			add_note(
				notes,
				"the P_Key has not the same index on all VFs: NCCL_IB_PKEY is left out");
			return;
		}
		common = index;
		asked |= cfg_of(&rails[i])->pkey > 0;
	}
	if (asked)
		env_put(set, "NCCL_IB_PKEY", arena_printf(set->arena, "%d", common));
}

void render_nccl_env(const struct grant *grants, size_t n, struct env_set *set, struct notes *notes)
{
	const struct rail *rails;
	int *gpus;
	size_t n_rails = grant_rails(grants, n, PROFILES_NCCL, set->arena, &rails);

	put_hcas(rails, n_rails, set, notes);
	note_ports(rails, n_rails, set, notes);
	/* NCCL takes a VF to be at its PF's place by rewriting its address; where that hits
	 * something else, it should not. */
	for (size_t i = 0; i < n_rails; i++) {
		int pci = rails[i].dev->dev->pci;

		if (pci >= 0 && !topo_vf_merges(rails[i].grant->node->inv, pci))
			env_put(set, "NCCL_IB_MERGE_VFS", "0");
	}
	put_merge_nics(rails, n_rails, gpus_of(grants, n, set->arena, &gpus) > 1, set, notes);
	note_unused(grants, n, rails, n_rails, set->arena, notes);
	note_few(grants, n, rails, n_rails, set->arena, notes);
	put_pkey(rails, n_rails, set, notes);
}
