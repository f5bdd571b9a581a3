/*
 * Variables: sets of them with sentences beside, those of sriov-network-device-plugin and our own
 * facts for one grant, and those that libraries beside NCCL read. render.c and nccl.c ask.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "config/config.h"
#include "hw/driver.h"
#include "hw/inventory.h"
#include "hw/vfstate.h"
#include "pool/node.h"
#include "render/render-internal.h"
#include "topo/rails.h"

/* Where it is, or would be. */
static size_t place_of(const struct env_set *set, const char *key, bool *ret_found)
{
	size_t i = 0;

	while (i < set->n && strcmp(set->v[i].key, key) < 0)
		i++;
	*ret_found = i < set->n && !strcmp(set->v[i].key, key);
	return i;
}

const char *env_get(const struct env_set *set, const char *key)
{
	bool found;
	size_t at = place_of(set, key, &found);

	return found ? set->v[at].value : NULL;
}

bool env_put(struct env_set *set, const char *key, const char *value)
{
	bool found;
	size_t at = place_of(set, key, &found);

	if (found)
		return false;
	if (set->n == set->room) {
		size_t room = set->room ? 2 * set->room : 16;
		struct kv *v = arena_array(set->arena, room, sizeof(*v));

		if (set->n)
			memcpy(v, set->v, set->n * sizeof(*v));
		set->v = v;
		set->room = room;
	}
	memmove(&set->v[at + 1], &set->v[at], (set->n++ - at) * sizeof(*set->v));
	set->v[at] = (struct kv) { key, value };
	return true;
}

void env_put_all(struct env_set *set, const struct edits *edits)
{
	for (size_t i = 0; i < edits->n_envs; i++)
		env_put(set, edits->envs[i].key, edits->envs[i].value);
}

/* Appends to edits->envs; room for `max` entries was made by the caller. */
static void add_env(struct edits *edits, const char *key, const char *value)
{
	edits->envs[edits->n_envs++] = (struct kv) { key, value };
}

void add_note(struct notes *notes, const char *sentence)
{
	if (!notes)
		return;
	for (size_t i = 0; i < notes->n; i++) {
		if (!strcmp(notes->v[i], sentence))
			return;
	}
	if (notes->n == notes->room) {
		const char **v = arena_array(notes->arena, 2 * notes->room + 8, sizeof(*v));

		if (notes->n)
			memcpy(v, notes->v, notes->n * sizeof(*v));
		notes->v = v;
		notes->room = 2 * notes->room + 8;
	}
	notes->v[notes->n++] = sentence;
}

#define FEW_MAX 4

void few_add(struct few *few, const char *name)
{
	if (few->n++ < FEW_MAX) {
		if (few->last)
			strbuf_printf(few->text, "%s%s", few->n > 2 ? ", " : "", few->last);
		few->last = name;
	}
}

const char *few_end(struct few *few)
{
	if (few->n > FEW_MAX)
		strbuf_printf(few->text, ", %s and %zu more", few->last, few->n - FEW_MAX);
	else if (few->last)
		strbuf_printf(few->text, "%s%s", few->n > 1 ? " and " : "", few->last);
	few->last = NULL;
	return strbuf_str(few->text);
}

/* PCIDEVICE_* as the peer sets it, and our own facts under RAILMATE_*. */

/* One value per VF, joined by commas. */
static const char *joined(const struct grant *grant, struct arena *arena,
			  void (*put)(struct strbuf *, const struct grant *,
				      const struct grant_dev *))
{
	_cleanup_strbuf_ struct strbuf b = STRBUF_INIT;

	for (size_t i = 0; i < grant->n_devs; i++) {
		if (i)
			strbuf_putc(&b, ',');
		put(&b, grant, &grant->devs[i]);
	}
	return arena_strdup(arena, strbuf_str(&b));
}

static void put_id(struct strbuf *b, const struct grant *grant, const struct grant_dev *dev)
{
	strbuf_puts(b, dev->dev->id);
}

static void put_numa(struct strbuf *b, const struct grant *grant, const struct grant_dev *dev)
{
	strbuf_put_int(b, dev->dev->numa);
}

/* additionalInfo: does this entry hold for the device? Its own keys override those of "*". */
static bool extra_applies(const struct pool_config *cfg, const struct extra_info *e, const char *id)
{
	if (!strcmp(e->device, id))
		return true;
	if (strcmp(e->device, "*"))
		return false;
	for (size_t i = 0; i < cfg->n_extra; i++) {
		if (!strcmp(cfg->extra[i].device, id) && !strcmp(cfg->extra[i].key, e->key))
			return false;
	}
	return true;
}

/* The entry with the smallest key behind `after` (NULL: the first); NULL at the end. */
static const struct extra_info *next_extra(const struct pool_config *cfg, const char *id,
					   const char *after)
{
	const struct extra_info *best = NULL;

	for (size_t i = 0; i < cfg->n_extra; i++) {
		const struct extra_info *e = &cfg->extra[i];

		if ((!after || strcmp(e->key, after) > 0) &&
		    (!best || strcmp(e->key, best->key) < 0) && extra_applies(cfg, e, id))
			best = e;
	}
	return best;
}

static void put_rdma(struct json *j, const struct grant *grant, const struct grant_dev *dev,
		     struct arena *arena)
{
	json_kv_object(j, "rdma");
	if (grant->node->inv->has_rdma_cm && render_wants_rdma_cm(grant->pool->cfg))
		json_kv_string(j, "rdma_cm", "/dev/infiniband/rdma_cm");
	json_kv_string(j, "rdma_dev", dev->rdma);
	if (dev->n_umads)
		json_kv_string(j, "umad", umad_node(dev->umads[dev->n_umads - 1], arena));
	if (dev->uverbs)
		json_kv_string(j, "uverbs", verbs_node(dev, arena));
	json_end_object(j);
}

/* The facts that a user-space driver needs: the peer's providers `uio` and `vfio`. */
static void put_user(struct json *j, const struct user_io *user, bool vfio)
{
	if (!user || user->vfio != vfio)
		return;
	json_kv_object(j, vfio ? "vfio" : "uio");
	if (user->node[0])
		json_kv_string(j, vfio ? "dev-mount" : "mount", user->node);
	if (vfio)
		json_kv_string(j, "mount", VFIO_NODE);
	json_end_object(j);
}

/* Compact JSON with sorted keys, as Go's encoding/json writes the peer's maps. */
static const char *info(const struct grant *grant, struct arena *arena)
{
	_cleanup_strbuf_ struct strbuf b = STRBUF_INIT;
	const struct pool_config *cfg = grant->pool->cfg;
	struct json j;

	json_init(&j, &b, 0);
	json_begin_object(&j);
	for (size_t i = 0; i < grant->n_devs; i++) {
		const struct grant_dev *dev = &grant->devs[i];
		const struct extra_info *e = next_extra(cfg, dev->dev->id, NULL);

		json_kv_object(&j, dev->dev->id);
		if (e) {
			json_kv_object(&j, "extra");
			for (; e; e = next_extra(cfg, dev->dev->id, e->key))
				json_kv_string(&j, e->key, e->value);
			json_end_object(&j);
		}
		json_kv_object(&j, "generic");
		json_kv_string(&j, "deviceID", dev->dev->id);
		json_end_object(&j);
		if (dev->rdma && pool_dev_is_rdma(grant->pool, dev->dev))
			put_rdma(&j, grant, dev, arena);
		put_user(&j, dev->user, false);
		put_user(&j, dev->user, true);
		if (dev->dev->vhost_net && grant->node->inv->has_vhost_net) {
			json_kv_object(&j, "vhost");
			json_kv_string(&j, "net-mount", VHOST_NET_NODE);
			json_kv_string(&j, "tun-mount", TUN_NODE);
			json_end_object(&j);
		}
		json_end_object(&j);
	}
	json_end_object(&j);
	return arena_strdup(arena, strbuf_str(&b));
}

void render_peer_env(const struct grant *grant, struct arena *arena, struct edits *edits)
{
	const char *resource = grant->pool->cfg->resource;

	add_env(edits, render_env_name("PCIDEVICE", resource, "", arena),
		joined(grant, arena, put_id));
	add_env(edits, render_env_name("PCIDEVICE", resource, "INFO", arena), info(grant, arena));
}

void put_data_direct(struct json *j, const struct grant *grant, const struct choose_pair *pair)
{
	const struct node *node = grant->node;
	char buf[BDF_STRLEN];
	int direct;

	if (!pair || !pair->path.direct)
		return;
	direct = topo_direct(node->topo, grant->pool->devs[pair->dev].pci);
	json_kv_string(j, "data_direct", bdf_format(node->inv->pci[direct].bdf, buf));
}

static bool has_pair(const struct grant *grant, const struct pool_dev *dev)
{
	for (size_t i = 0; i < grant->n_pairs; i++) {
		if (str_eq(grant->pool->devs[grant->pairs[i].dev].id, dev->id))
			return true;
	}
	return false;
}

/* Which GPU goes with which VF, as compact JSON: the container's GPUs as the kubelet had given them
 * at Allocate. */
static const char *map(const struct grant *grant, struct arena *arena)
{
	_cleanup_strbuf_ struct strbuf b = STRBUF_INIT;
	char buf[BDF_STRLEN];
	struct json j;

	json_init(&j, &b, 0);
	json_begin_array(&j);
	for (size_t i = 0; i < grant->n_pairs; i++) {
		const struct choose_pair *p = &grant->pairs[i];

		json_begin_object(&j);
		json_kv_string(&j, "gpu", bdf_format(grant->node->inv->pci[p->gpu].bdf, buf));
		json_kv_string(&j, "vf", grant->pool->devs[p->dev].id);
		json_kv_string(&j, "class", topo_class_name(p->path.class));
		put_data_direct(&j, grant, p);
		json_end_object(&j);
	}
	/* As in map.json: VFs for GPUs that are not known, beside some that are. */
	for (size_t i = 0; i < grant->n_devs; i++) {
		if (has_pair(grant, grant->devs[i].dev))
			continue;
		json_begin_object(&j);
		json_kv_string(&j, "gpu", NULL);
		json_kv_string(&j, "vf", grant->devs[i].dev->id);
		json_end_object(&j);
	}
	json_end_array(&j);
	return arena_strdup(arena, strbuf_str(&b));
}

/* Unlike the peer's variables, ours are always readable by a shell: '-' becomes '_' too. */
static const char *fact_name(const struct grant *grant, const char *suffix, struct arena *arena)
{
	char *name = arena_strdup(
		arena, render_env_name("RAILMATE", grant->pool->cfg->resource, suffix, arena));

	for (char *p = name; *p; p++) {
		if (*p == '-')
			*p = '_';
	}
	return name;
}

static void put_rail(struct strbuf *b, const struct grant *grant, const struct grant_dev *dev)
{
	strbuf_put_int(b, topo_rails_of(grant->node->rails, dev->dev->pci).rail);
}

void render_fact_env(const struct grant *grant, struct arena *arena, struct edits *edits)
{
	bool rails = false, rdma = true;

	for (size_t i = 0; i < grant->n_devs; i++) {
		const struct grant_dev *dev = &grant->devs[i];

		rails |= topo_rails_of(grant->node->rails, dev->dev->pci).rail >= 0;
		rdma &= dev->rdma && pool_dev_is_rdma(grant->pool, dev->dev);
	}
	add_env(edits, fact_name(grant, "VFS", arena), joined(grant, arena, put_id));
	add_env(edits, fact_name(grant, "NUMA", arena), joined(grant, arena, put_numa));
	if (rails)
		add_env(edits, fact_name(grant, "RAILS", arena), joined(grant, arena, put_rail));
	if (rdma)
		add_env(edits, fact_name(grant, "HCAS", arena), joined(grant, arena, put_hca));
	if (grant->n_pairs)
		add_env(edits, fact_name(grant, "MAP", arena), map(grant, arena));
}

/*
 * By which variables each library gets its devices. Sources, beside docs/design/nccl.md §5.1:
 * NCCL's env.rst (NCCL_IB_PKEY_VALUE), libfabric pull request 12262 (lists in FI_VERBS_DEVICE_NAME
 * since 2026; before, one name or prefix), UCX uct_ib_iface_config_table (PKEY without the
 * membership bit), NVSHMEM nvshmemt_check_hca_prefix().
 */

#define PKEY_PARTITION 0x7fff /* without the bit for full membership */

/* The VFs of the pools that have one of these profiles, in rail order. */
struct hcas {
	const struct grant *grants;
	size_t n_grants;
	unsigned profiles;
	int gid_index;
	const struct rail *v;
	size_t n;
	struct arena *arena;
};

static bool takes_part(const struct hcas *h, const struct grant *grant)
{
	return grant->pool->cfg->is_rdma && (grant->pool->cfg->profiles & h->profiles);
}

static const char *names(const struct hcas *h)
{
	_cleanup_strbuf_ struct strbuf b = STRBUF_INIT;

	for (size_t i = 0; i < h->n; i++)
		strbuf_printf(&b, "%s%s", i ? "," : "", h->v[i].dev->rdma);
	return arena_strdup(h->arena, strbuf_str(&b));
}

/* How many characters all names begin with. */
static size_t common_length(const struct hcas *h)
{
	const char *first = h->v[0].dev->rdma;
	size_t len = strlen(first);

	for (size_t i = 1; i < h->n; i++) {
		size_t same = 0;

		while (same < len && first[same] == h->v[i].dev->rdma[same])
			same++;
		len = same;
	}
	return len;
}

static void add_index(const struct hcas *h, const char *name, struct edits *ret)
{
	if (h->gid_index >= 0)
		add_env(ret, name, arena_printf(h->arena, "%d", h->gid_index));
}

static const char *interfaces(const struct grant *grant)
{
	const struct pool_config *cfg = grant->pool->cfg;

	return cfg->profiles & PROFILE_NIXL ? NULL : cfg->ucx_devices;
}

/* With the operator's interfaces of each pool, unless an earlier pool has the same. */
static void put_devices(const struct hcas *h, struct edits *ret)
{
	_cleanup_strbuf_ struct strbuf b = STRBUF_INIT;

	for (size_t i = 0; i < h->n; i++) {
		if (i)
			strbuf_putc(&b, ',');
		put_hca(&b, h->v[i].grant, h->v[i].dev);
	}
	for (size_t i = 0; i < h->n_grants; i++) {
		const char *more = interfaces(&h->grants[i]);
		size_t k = 0;

		while (k < i &&
		       !(takes_part(h, &h->grants[k]) && str_eq(interfaces(&h->grants[k]), more)))
			k++;
		if (more && k == i && takes_part(h, &h->grants[i]))
			strbuf_printf(&b, ",%s", more);
	}
	add_env(ret, "UCX_NET_DEVICES", arena_strdup(h->arena, strbuf_str(&b)));
}

/* One partition for all, on InfiniBand; -1 if there is none. */
static int common_pkey(const struct hcas *h)
{
	int pkey = h->v[0].grant->pool->cfg->pkey;

	for (size_t i = 0; i < h->n; i++) {
		if (h->v[i].grant->pool->cfg->pkey != pkey ||
		    grant_link(h->v[i].grant, h->v[i].dev) != HW_LINK_IB)
			return -1;
	}
	return pkey;
}

/* NCCL 2.31 and newer finds the place in each port's table itself, wherever the subnet manager put
 * it. */
static void put_nccl(const struct hcas *h, struct edits *ret)
{
	int pkey = common_pkey(h);

	if (pkey > 0)
		add_env(ret, "NCCL_IB_PKEY_VALUE",
			arena_printf(h->arena, "0x%04x", (unsigned)pkey));
}

static void put_ucx(const struct hcas *h, struct edits *ret)
{
	int pkey = common_pkey(h);

	put_devices(h, ret);
	if (pkey > 0)
		add_env(ret, "UCX_IB_PKEY",
			arena_printf(h->arena, "0x%04x", (unsigned)pkey & PKEY_PARTITION));
}

/* The pools have the same GID settings, and all VFs have RoCE's. */
static bool one_kind_of_gid(const struct hcas *h)
{
	const struct pool_config *a = h->v[0].grant->pool->cfg;

	for (size_t i = 0; i < h->n; i++) {
		const struct pool_config *b = h->v[i].grant->pool->cfg;

		if (a->gid_family != b->gid_family || a->roce_version != b->roce_version ||
		    !str_eq(a->gid_range, b->gid_range) ||
		    grant_link(h->v[i].grant, h->v[i].dev) != HW_LINK_ETHERNET)
			return false;
	}
	return true;
}

/*
 * The prefix is a filter on names. Letters only: the same on every node, and a part of a name is
 * enough. Which GPU uses which VF NVSHMEM finds out itself, and only the VFs of the container can
 * be opened: NVSHMEM_HCA_LIST would replace its topology by a plain round robin. It chooses GIDs as
 * NCCL does, and gets the operator's settings.
 */
static void put_nvshmem(const struct hcas *h, struct edits *ret)
{
	const struct pool_config *cfg = h->v[0].grant->pool->cfg;
	const char *first = h->v[0].dev->rdma;
	const struct hw_driver *driver = hw_driver_of_rdma(first);
	size_t len = common_length(h), letters = 0;

	while (letters < len && !isdigit((unsigned char)first[letters]))
		letters++;
	if (letters && !(driver && driver->quirks & HW_QUIRK_NVSHMEM_DEFAULT))
		add_env(ret, "NVSHMEM_HCA_PREFIX",
			arena_printf(h->arena, "%.*s", (int)letters, first));
	if (!one_kind_of_gid(h))
		return;
	if (cfg->gid_family == GID_FAMILY_IPV6)
		add_env(ret, "NVSHMEM_IB_ADDR_FAMILY", "AF_INET6");
	if (cfg->gid_range)
		add_env(ret, "NVSHMEM_IB_ADDR_RANGE", cfg->gid_range);
	if (cfg->roce_version == 1)
		add_env(ret, "NVSHMEM_IB_ROCE_VERSION_NUM", "1");
}

/* A GPU and a VF it may use. */
struct reach {
	struct bdf gpu;
	struct topo_path path;
	size_t vf; /* of the rails */
};

static int reach_cmp(const void *a, const void *b)
{
	const struct reach *x = a, *y = b;
	int r = bdf_cmp(x->gpu, y->gpu);

	return r ? r : (x->vf > y->vf) - (x->vf < y->vf);
}

/* By GPU, then in rail order. */
static struct reach *reaches(const struct hcas *h, size_t *ret_n)
{
	struct reach *out;
	size_t max = 0;

	*ret_n = 0;
	for (size_t i = 0; i < h->n_grants; i++)
		max += h->grants[i].n_pairs;
	out = arena_array(h->arena, max, sizeof(*out));
	for (size_t i = 0; i < h->n_grants; i++) {
		const struct grant *grant = &h->grants[i];

		for (size_t k = 0; k < grant->n_pairs; k++) {
			const struct choose_pair *p = &grant->pairs[k];
			const char *id = grant->pool->devs[p->dev].id;
			size_t vf = 0;

			while (vf < h->n && !str_eq(h->v[vf].dev->dev->id, id))
				vf++;
			if (vf < h->n)
				out[(*ret_n)++] =
					(struct reach) { grant->node->inv->pci[p->gpu].bdf, p->path,
							 vf };
		}
	}
	qsort(out, *ret_n, sizeof(*out), reach_cmp);
	return out;
}

/* The i-th name is the device of the i-th GPU: one a GPU, in the order of the GPUs. That is the
 * nearest, of those as near the one used by the fewest GPUs. */
static const char *names_by_gpu(const struct hcas *h)
{
	_cleanup_strbuf_ struct strbuf b = STRBUF_INIT;
	size_t *used = arena_array(h->arena, h->n, sizeof(*used)), n, i = 0;
	const struct reach *all = reaches(h, &n);

	if (!n)
		return names(h);
	while (i < n) {
		const struct reach *best = &all[i], *first = best;

		for (; i < n && bdf_cmp(first->gpu, all[i].gpu) == 0; i++) {
			int x = topo_rank(all[i].path.class), y = topo_rank(best->path.class);

			if (x != y ? x < y : used[all[i].vf] < used[best->vf])
				best = &all[i];
		}
		used[best->vf]++;
		strbuf_printf(&b, "%s%s", b.len ? "," : "", h->v[best->vf].dev->rdma);
	}
	return arena_strdup(h->arena, strbuf_str(&b));
}

static void put_mscclpp(const struct hcas *h, struct edits *ret)
{
	add_env(ret, "MSCCLPP_HCA_DEVICES", names_by_gpu(h));
	add_index(h, "MSCCLPP_IB_GID_INDEX", ret);
}

/* A common prefix of all names is understood by every libfabric; a list is not, and an old one
 * would find no device. */
static void put_ofi(const struct hcas *h, struct edits *ret)
{
	size_t len = common_length(h);

	if (len)
		add_env(ret, "FI_VERBS_DEVICE_NAME",
			arena_printf(h->arena, "%.*s", (int)len, h->v[0].dev->rdma));
	add_index(h, "FI_VERBS_GID_IDX", ret);
}

static void put_oneccl(const struct hcas *h, struct edits *ret)
{
	add_env(ret, "CCL_MNIC", "local");
	add_env(ret, "CCL_MNIC_NAME", names(h));
}

void render_profile_env(const struct grant *grants, size_t n, int gid_index, struct arena *arena,
			struct edits *ret)
{
	static const struct {
		unsigned profiles;
		void (*put)(const struct hcas *h, struct edits *ret);
	} rows[] = {
		{ PROFILES_NCCL, put_nccl },
		{ PROFILE_UCX, put_ucx },
		{ PROFILE_NVSHMEM, put_nvshmem },
		{ PROFILE_MSCCLPP, put_mscclpp },
		{ PROFILE_OFI | PROFILE_ONECCL, put_ofi },
		{ PROFILE_ONECCL, put_oneccl },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct hcas h = { .grants = grants,
				  .n_grants = n,
				  .profiles = rows[i].profiles,
				  .gid_index = gid_index,
				  .arena = arena };

		h.n = grant_rails(grants, n, h.profiles, arena, &h.v);
		if (h.n)
			rows[i].put(&h, ret);
	}
}

bool render_wants_rdma_cm(const struct pool_config *cfg)
{
	unsigned by_cm = PROFILE_UCX | PROFILE_OFI | PROFILE_ONECCL;

	return !cfg->profiles_named || !cfg->profiles || (cfg->profiles & by_cm);
}
