/*
 * The variables that NCCL reads, for all VFs of a container: which devices, which GID, what their
 * ports need; and the same as a file, nccl.conf. render.c asks.
 */
#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/list.h"
#include "base/str.h"
#include "config/config.h"
#include "hw/inventory.h"
#include "hw/vfstate.h"
#include "pool/node.h"
#include "render/render-internal.h"
#include "topo/rails.h"
#include "topo/topo.h"

/* NCCL's variables about GIDs: the rule of gid.c for the VFs of a container, as far as their
 * tables are known. */

static const struct pool_config *cfg_of(const struct rail *rail)
{
	return rail->grant->pool->cfg;
}

bool gids_known(const struct rail *rail)
{
	const struct vf_state *state = rail->dev->state;

	if (state)
		return state->seen != VF_SEEN_NOTHING && (state->n_gids || state->gid_table_len);
	return cfg_of(rail)->network == NETWORK_HOST;
}

static bool has_address(const struct vf_state *state, const struct gid_entry *gid)
{
	for (size_t i = 0; i < state->n_addrs; i++) {
		const struct ip_addr *a = &state->addrs[i];

		if (!memcmp(a->addr, gid->gid, sizeof(gid->gid)) &&
		    (!a->netdev || !gid->ndev[0] || !strcmp(a->netdev, gid->ndev)))
			return true;
	}
	return false;
}

/* Upper devices (VLAN, macvlan) may have been moved to the namespaces of others, and all their GIDs
 * are in this table. */
static const bool *which_are_here(const struct vf_state *state, const char *netns,
				  struct arena *arena)
{
	bool elsewhere = netns && state->seen != VF_SEEN_OUTSIDE && !str_eq(state->netns, netns);
	bool *here;

	if (!state->addrs_known && !elsewhere)
		return NULL;
	here = arena_array(arena, state->n_gids, sizeof(*here));
	for (size_t i = 0; i < state->n_gids; i++)
		here[i] = !elsewhere && has_address(state, &state->gids[i]);
	return here;
}

static struct gid_want want_of(const struct pool_config *cfg)
{
	return (struct gid_want) { .family = cfg->gid_family,
				   .roce_version = cfg->roce_version == 1 ? 1 : 2,
				   .range = cfg->gid_range ? cfg->gid_range_addr : NULL,
				   .range_bits = cfg->gid_range_bits };
}

struct gid_vf gid_vf_of(const struct rail *rails, size_t n, size_t at, struct arena *arena)
{
	const struct rail *rail = &rails[at];
	const struct vf_state *state = rail->dev->state;
	const char *netns = NULL;
	int pci = rail->dev->dev->pci;
	struct gid_vf vf = { .id = rail->dev->dev->id,
			     .rdma = rail->dev->rdma,
			     .driver = pci >= 0 ? rail->grant->node->inv->pci[pci].driver : NULL,
			     .want = want_of(cfg_of(rail)),
			     .gids = rail->dev->gids,
			     .n_gids = rail->dev->n_gids };

	if (!state)
		return vf;
	/* The network namespace of the container is where its VFs' interfaces were moved to. */
	for (size_t i = n; i-- > 0;) {
		const struct vf_state *other = rails[i].dev->state;

		if (other && other->seen == VF_SEEN_POD)
			netns = other->netns;
	}
	vf.gids = state->gids;
	vf.n_gids = state->n_gids;
	vf.table_len = state->gid_table_len;
	vf.here = which_are_here(state, netns, arena);
	return vf;
}

/* --- the operator's settings --- */

/* Family, version and range as they are configured: right for any table that has such a GID at all.
 * The first pool of the configuration counts; grants_now() put them in that order. */
static void take_words(const struct rail *rails, size_t n, struct arena *arena,
		       struct gid_decision *ret, struct notes *notes)
{
	const struct rail *first = &rails[0];
	const struct pool_config *cfg;
	struct gid_want want;

	for (size_t i = 1; i < n; i++)
		first = rails[i].grant < first->grant ? &rails[i] : first;
	cfg = cfg_of(first);
	for (size_t i = 0; i < n; i++) {
		const struct pool_config *other = cfg_of(&rails[i]);

		if (cfg->gid_family == other->gid_family &&
		    cfg->roce_version == other->roce_version &&
		    str_eq(cfg->gid_range, other->gid_range))
			continue;
		add_note(
			notes,
			arena_printf(
				arena,
				"the pools %s and %s want different GIDs (gidFamily, gidRange, roceVersion): the settings of %s are used",
				cfg->resource, other->resource, cfg->resource));
	}
	want = want_of(cfg);
	ret->set = true;
	ret->env = (struct gid_env) { .index = -1,
				      .family = want.family == GID_FAMILY_IPV6 ? GID_FAMILY_IPV6
									       : GID_FAMILY_IPV4,
				      .roce_version = want.roce_version };
	if (want.range)
		gid_set_range(&ret->env, want.range, want.range_bits);
}

/* --- known facts --- */

/* Whether the container shares the host's network is not known here; if not, no address of this VF
 * is one of its. */
static void note_left_behind(const struct rail *rails, size_t n, struct arena *arena,
			     struct notes *notes)
{
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;
	struct few few = { .text = &text };
	const char *names;

	for (size_t i = 0; i < n; i++) {
		const struct vf_state *state = rails[i].dev->state;

		if (state && state->seen == VF_SEEN_HOST &&
		    cfg_of(&rails[i])->network == NETWORK_POD)
			few_add(&few, rails[i].dev->dev->id);
	}
	names = few_end(&few);
	if (few.n)
		add_note(
			notes,
			arena_printf(
				arena,
				"the network interface%s of VF%s %s %s still the host's: over RoCE only a container on the host's network can use %s",
				few.n > 1 ? "s" : "", few.n > 1 ? "s" : "", names,
				few.n > 1 ? "are" : "is", few.n > 1 ? "them" : "it"));
}

/* False: some tables cannot be relied on, which is noted where it is news. */
static bool all_known(const struct rail *rails, size_t n, struct arena *arena, struct notes *notes)
{
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;
	struct few few = { .text = &text };
	const char *names;
	bool known = true;

	for (size_t i = 0; i < n; i++) {
		if (gids_known(&rails[i]))
			continue;
		known = false;
		if (rails[i].dev->state)
			few_add(&few, rails[i].dev->dev->id);
	}
	names = few_end(&few);
	if (few.n)
		add_note(notes,
			 arena_printf(arena,
				      "the GIDs of VF%s %s are not known: NCCL chooses by itself",
				      few.n > 1 ? "s" : "", names));
	return known;
}

static bool all_ethernet(const struct rail *rails, size_t n, struct arena *arena,
			 struct notes *notes)
{
	size_t ethernet = 0, unknown = 0;

	for (size_t i = 0; i < n; i++) {
		enum hw_link link = grant_link(rails[i].grant, rails[i].dev);

		ethernet += link == HW_LINK_ETHERNET;
		unknown += link == HW_LINK_UNKNOWN;
	}
	if (unknown)
		add_note(
			notes,
			arena_printf(
				arena,
				"the link layer of %zu of %zu VFs is not known: no GID is chosen for NCCL",
				unknown, n));
	else if (ethernet && ethernet < n)
		add_note(
			notes,
			"some VFs are on InfiniBand, where NCCL takes no GID index, and some on RoCE: no GID is chosen for NCCL");
	return n && ethernet == n;
}

/* All rails have the GID at one index that NCCL takes by env. */
static int index_of_all(const struct gid_vf *vfs, size_t n, const struct gid_env *env)
{
	int index = -1;

	for (size_t i = 0; i < n; i++) {
		int picked = gid_nccl_picks(&vfs[i], env);
		const struct gid_entry *g = gid_at(&vfs[i], picked);

		if (!g || !gid_is_candidate(&vfs[i], g) || (i && picked != index))
			return -1;
		index = picked;
	}
	return index;
}

/* Right on every VF, and still the peer's may be of the other network. */
static void note_networks(const struct gid_vf *vfs, size_t n, const struct gid_env *env,
			  struct arena *arena, struct notes *notes)
{
	size_t a, b;

	if (!gid_networks_differ(vfs, n, env, &a, &b))
		return;
	add_note(
		notes,
		arena_printf(
			arena,
			"NCCL takes %s on VF %s and %s on VF %s, which are of different networks, though both VFs have addresses of either: gidRange in the pool chooses one",
			gid_format(gid_at(&vfs[a], gid_nccl_picks(&vfs[a], env))->gid, arena),
			vfs[a].id,
			gid_format(gid_at(&vfs[b], gid_nccl_picks(&vfs[b], env))->gid, arena),
			vfs[b].id));
}

static void decide_auto(const struct rail *rails, size_t n, struct arena *arena,
			struct gid_decision *ret, struct notes *notes)
{
	struct gid_vf *vfs = arena_array(arena, n, sizeof(*vfs));
	const char *why;

	if (!all_known(rails, n, arena, notes)) {
		take_words(rails, n, arena, ret, notes);
		return;
	}
	for (size_t i = 0; i < n; i++)
		vfs[i] = gid_vf_of(rails, n, i, arena);
	if (gid_auto(vfs, n, arena, &ret->env, &why)) {
		ret->set = true;
		ret->index = index_of_all(vfs, n, &ret->env);
		note_networks(vfs, n, &ret->env, arena, notes);
		return;
	}
	add_note(notes, why);
	take_words(rails, n, arena, ret, notes);
}

/* --- fixed --- */

static bool is_fixed(const struct rail *rail)
{
	return cfg_of(rail)->gid == GID_FIXED;
}

/* NULL: none is against it. */
static const struct rail *against(const struct rail *rails, size_t n, int index,
				  struct arena *arena)
{
	for (size_t i = 0; i < n; i++) {
		struct gid_vf vf;
		const struct gid_entry *g;

		if (is_fixed(&rails[i]) ? cfg_of(&rails[i])->gid_index == index
					: !gids_known(&rails[i]))
			continue;
		vf = gid_vf_of(rails, n, i, arena);
		g = gid_at(&vf, index);
		if (is_fixed(&rails[i]) || !g || !gid_is_candidate(&vf, g))
			return &rails[i];
	}
	return NULL;
}

/* The VFs whose tables refute it are reported by gid_check_fixed(); a VF of another pool is only in
 * the way. */
static int decide_fixed(const struct rail *rails, size_t n, const struct rail *fixed,
			struct arena *arena, struct gid_decision *ret, struct notes *notes,
			struct err *err)
{
	struct gid_vf *vfs = arena_array(arena, n, sizeof(*vfs));
	const struct pool_config *cfg = NULL;
	size_t count = 0;
	int index = cfg_of(fixed)->gid_index, r = 0;
	const struct rail *other = against(rails, n, index, arena);

	if (other && cfg_of(other) != cfg_of(fixed)) {
		add_note(
			notes,
			arena_printf(
				arena,
				"gid is fixed:%d in the pool %s, which is not right for VF %s of the pool %s: no GID is chosen for NCCL",
				index, cfg_of(fixed)->resource, other->dev->dev->id,
				cfg_of(other)->resource));
		return 0;
	}
	for (size_t i = 0; i < n; i++) {
		if (!is_fixed(&rails[i]) || !gids_known(&rails[i]))
			continue;
		cfg = cfg_of(&rails[i]);
		vfs[count++] = gid_vf_of(rails, n, i, arena);
	}
	if (cfg)
		r = gid_check_fixed(vfs, count, cfg->gid_index, cfg->resource, err);
	if (r < 0)
		return r;
	ret->set = true;
	ret->env = (struct gid_env) { .index = index };
	ret->index = index;
	return 0;
}

/* --- */

/* The setting is one for all rails of a container: with "off" for one of them it is off for all. */
static bool any_off(const struct rail *rails, size_t n, struct arena *arena, struct notes *notes)
{
	const struct pool_config *off = NULL, *on = NULL;

	for (size_t i = 0; i < n; i++) {
		if (cfg_of(&rails[i])->gid == GID_OFF)
			off = cfg_of(&rails[i]);
		else
			on = cfg_of(&rails[i]);
	}
	if (off && on)
		add_note(
			notes,
			arena_printf(
				arena,
				"gid is off in the pool %s: no GID is chosen for NCCL, for those of the pool %s neither",
				off->resource, on->resource));
	return off != NULL;
}

int decide_gids(const struct rail *rails, size_t n, struct arena *arena, struct gid_decision *ret,
		struct notes *notes, struct err *err)
{
	struct gid_decision decision = { .index = -1 };
	const struct rail *fixed = NULL;
	int r = 0;

	for (size_t i = n; i-- > 0;) {
		const struct rail *rail = &rails[i];

		if (!is_fixed(rail))
			continue;
		fixed = rail;
		/* Only when a container starts: before, pools on InfiniBand ran with it, and it
		 * does no harm. */
		if (rail->dev->state && grant_link(rail->grant, rail->dev) == HW_LINK_IB)
			r = err_set(
				err, EINVAL,
				"gid is fixed:%d in the pool %s, but %s of VF %s is an InfiniBand port, where NCCL takes no GID index: leave gid out",
				cfg_of(rail)->gid_index, cfg_of(rail)->resource, rail->dev->rdma,
				rail->dev->dev->id);
	}
	if (r == 0 && !any_off(rails, n, arena, notes) && all_ethernet(rails, n, arena, notes)) {
		note_left_behind(rails, n, arena, notes);
		if (fixed)
			r = decide_fixed(rails, n, fixed, arena, &decision, notes, err);
		else
			decide_auto(rails, n, arena, &decision, notes);
	}
	if (r == 0)
		*ret = decision;
	return r;
}

void put_gid_env(const struct gid_decision *decision, struct env_set *set)
{
	const struct gid_env *env = &decision->env;

	if (!decision->set)
		return;
	if (env->index >= 0) {
		env_put(set, "NCCL_IB_GID_INDEX", arena_printf(set->arena, "%d", env->index));
		return;
	}
	if (env->family == GID_FAMILY_IPV6)
		env_put(set, "NCCL_IB_ADDR_FAMILY", "AF_INET6");
	if (env->roce_version != 2)
		env_put(set, "NCCL_IB_ROCE_VERSION_NUM", "1");
	if (env->range_bits)
		env_put(set, "NCCL_IB_ADDR_RANGE",
			gid_format_range(env->range, env->range_bits, set->arena));
}

/*
 * nccl.conf in the words of NCCL's own reader (src/misc/param.cc): "NAME=value" up to the end of
 * the line, no quotes, no blanks around '=', '#' in the first column begins a comment (of old
 * versions: a line without '='), and 1023 characters of a value are read, the rest is dropped
 * silently. Variables that the environment has already stay.
 */

#define VALUE_MAX 1023

/* The part of a value that can be read: all, or whole entries of a list of devices. */
static void put_line(struct strbuf *b, const struct kv *kv)
{
	size_t len = strlen(kv->value);
	bool list = !strcmp(kv->key, "NCCL_IB_HCA");

	if (strcspn(kv->value, "\r\n") < len || (len > VALUE_MAX && !list))
		len = 0;
	if (len > VALUE_MAX) {
		for (len = VALUE_MAX; len > 0 && kv->value[len] != ',';)
			len--;
	}
	if (!len && *kv->value) {
		strbuf_printf(b, "# %s is left out: NCCL could not read its value here.\n",
			      kv->key);
		return;
	}
	strbuf_printf(b, "%s=%.*s\n", kv->key, (int)len, kv->value);
}

const char *render_nccl_conf(const struct edits *env, struct arena *arena)
{
	_cleanup_strbuf_ struct strbuf b = STRBUF_INIT;

	strbuf_puts(
		&b,
		"# Written by railmate when the container started, for its VFs. Variables of the environment win.\n");
	for (size_t i = 0; i < env->n_envs; i++) {
		const char *key = env->envs[i].key;

		if ((str_starts(key, "NCCL_") || str_starts(key, "RCCL_")) &&
		    strcmp(key, "NCCL_CONF_FILE") != 0)
			put_line(&b, &env->envs[i]);
	}
	return arena_strdup(arena, strbuf_str(&b));
}

/*
 * NCCL's variables but those about GIDs. Source of every rule: NCCL 2.30
 * src/transport/net_ib/init.cc and src/graph, as collected in docs/design/nccl.md §1.
 */

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
