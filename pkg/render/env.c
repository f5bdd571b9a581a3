/* PCIDEVICE_* as the peer sets it, and our own facts under RAILMATE_*. */
#include <string.h>

#include "base/arena.h"
#include "base/json.h"
#include "base/str.h"
#include "config/config.h"
#include "hw/inventory.h"
#include "hw/vfstate.h"
#include "pool/node.h"
#include "render/profiles-internal.h"
#include "render/render-internal.h"
#include "topo/rails.h"

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
	(void)grant;
	strbuf_puts(b, dev->dev->id);
}

static void put_numa(struct strbuf *b, const struct grant *grant, const struct grant_dev *dev)
{
	(void)grant;
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
	json_key(j, "rdma");
	json_begin_object(j);
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
	json_key(j, vfio ? "vfio" : "uio");
	json_begin_object(j);
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

		json_key(&j, dev->dev->id);
		json_begin_object(&j);
		if (e) {
			json_key(&j, "extra");
			json_begin_object(&j);
			for (; e; e = next_extra(cfg, dev->dev->id, e->key))
				json_kv_string(&j, e->key, e->value);
			json_end_object(&j);
		}
		json_key(&j, "generic");
		json_begin_object(&j);
		json_kv_string(&j, "deviceID", dev->dev->id);
		json_end_object(&j);
		if (dev->rdma && pool_dev_is_rdma(grant->pool, dev->dev))
			put_rdma(&j, grant, dev, arena);
		put_user(&j, dev->user, false);
		put_user(&j, dev->user, true);
		if (dev->dev->vhost_net && grant->node->inv->has_vhost_net) {
			json_key(&j, "vhost");
			json_begin_object(&j);
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
