/*
 * The files about what a container gets: device information for Multus, CDI specs, map.json and
 * cufile.json. Each is text; who writes it where is the caller's.
 */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/json.h"
#include "base/list.h"
#include "base/str.h"
#include "config/config.h"
#include "hw/inventory.h"
#include "hw/vfstate.h"
#include "pool/node.h"
#include "render/cdi.h"
#include "render/render-internal.h"
#include "render/render.h"
#include "topo/rails.h"
#include "topo/topo.h"

/* Edits as JSON, for people and scripts. */

void render_json_devices(const struct edits *edits, struct json *j)
{
	for (size_t i = 0; i < edits->n_devs; i++) {
		json_begin_object(j);
		json_kv_string(j, "host", edits->devs[i].host);
		json_kv_string(j, "container", edits->devs[i].container);
		json_kv_string(j, "permissions", edits->devs[i].permissions);
		json_end_object(j);
	}
}

void render_json_mounts(const struct edits *edits, struct json *j)
{
	for (size_t i = 0; i < edits->n_mounts; i++) {
		json_begin_object(j);
		json_kv_string(j, "host", edits->mounts[i].host);
		json_kv_string(j, "container", edits->mounts[i].container);
		json_kv_bool(j, "read_only", edits->mounts[i].read_only);
		json_end_object(j);
	}
}

/*
 * NPWG device-info files, spec 1.1.0, as sriov-network-device-plugin writes them; `pf-pci-address`
 * is the spec's own field. `railmate` is not: the spec has no place for more than it names, and
 * forbids none. Multus reads the file into a structure of the spec's fields
 * (network-attachment-definition-client, pkg/utils), so it is for programs that read the file
 * itself.
 */

const char *render_devinfo_name(const struct pool *pool, const struct pool_dev *dev,
				struct arena *arena)
{
	char *name = arena_printf(arena, "%s-%s-device.json", pool->cfg->resource, dev->id);

	for (char *p = name; *p; p++) {
		if (*p == '/')
			*p = '-';
	}
	return name;
}

const char *render_devinfo(const struct node *node, const struct pool *pool,
			   const struct pool_dev *dev, struct arena *arena)
{
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT, names = STRBUF_INIT;
	const struct hw_inventory *inv = node->inv;
	struct topo_rail at = topo_rails_of(node->rails, dev->pci);
	char buf[BDF_STRLEN];
	struct json j;

	json_init(&j, &text, 0);
	json_begin_object(&j);
	json_kv_string(&j, "type", "pci");
	json_kv_string(&j, "version", "1.1.0");
	json_kv_object(&j, "pci");
	json_kv_string(&j, "pci-address", dev->id);
	if (dev->pci >= 0 && inv->pci[dev->pci].physfn >= 0)
		json_kv_string(&j, "pf-pci-address",
			       bdf_format(inv->pci[inv->pci[dev->pci].physfn].bdf, buf));
	/* "mlx5_4" or, for a function with several devices, "mlx5_4,mlx5_5" */
	if (pool_dev_is_rdma(pool, dev) && dev->pci >= 0 && dev->rdma >= 0) {
		for (size_t i = (size_t)dev->rdma; i < inv->n_rdma && inv->rdma[i].pci == dev->pci;
		     i++)
			strbuf_printf(&names, "%s%s", names.len ? "," : "", inv->rdma[i].name);
	}
	if (names.len)
		json_kv_string(&j, "rdma-device", strbuf_str(&names));
	json_end_object(&j);
	if (at.rail >= 0) {
		json_kv_object(&j, "railmate");
		json_kv_int(&j, "rail", at.rail);
		if (at.plane >= 0)
			json_kv_int(&j, "plane", at.plane);
		json_end_object(&j);
	}
	json_end_object(&j);
	return arena_strdup(arena, strbuf_str(&text));
}

#define FILE_PREFIX "railmate.io-vf_"
#define FILE_SUFFIX ".json"

const char *cdi_device(const char *slot, struct arena *arena)
{
	return arena_printf(arena, CDI_KIND "=%s", slot);
}

const char *cdi_file_name(const char *slot, struct arena *arena)
{
	return arena_printf(arena, FILE_PREFIX "%s" FILE_SUFFIX, slot);
}

const char *cdi_slot_of_file(const char *name, struct arena *arena)
{
	size_t len = strlen(name), prefix = strlen(FILE_PREFIX), suffix = strlen(FILE_SUFFIX);

	if (len <= prefix + suffix || !str_starts(name, FILE_PREFIX) ||
	    strcmp(name + len - suffix, FILE_SUFFIX) != 0)
		return NULL;
	return arena_printf(arena, "%.*s", (int)(len - prefix - suffix), name + prefix);
}

struct edits cdi_join(const struct edits *v, size_t n, struct arena *arena)
{
	struct env_set set = { .arena = arena };

	for (size_t i = 0; i < n; i++)
		env_put_all(&set, &v[i]);
	return (struct edits) { .envs = set.v, .n_envs = set.n };
}

/* --- the text --- */

/* Type and numbers are left to the runtime, which looks at the node when it makes the container. */
static void put_nodes(struct json *j, const struct edits *edits)
{
	json_kv_array(j, "deviceNodes");
	for (size_t i = 0; i < edits->n_devs; i++) {
		const struct devnode *d = &edits->devs[i];

		json_begin_object(j);
		json_kv_string(j, "path", d->container);
		if (strcmp(d->host, d->container) != 0)
			json_kv_string(j, "hostPath", d->host);
		json_kv_string(j, "permissions", d->permissions);
		json_end_object(j);
	}
	json_end_array(j);
}

/* The runtime ends a hook that takes longer, and the container with it. */
#define HOOK_SECONDS 10

static void put_mounts(struct json *j, const struct edits *edits)
{
	json_kv_array(j, "mounts");
	for (size_t i = 0; i < edits->n_mounts; i++) {
		const struct bindmount *m = &edits->mounts[i];

		json_begin_object(j);
		json_kv_string(j, "hostPath", m->host);
		json_kv_string(j, "containerPath", m->container);
		json_kv_array(j, "options");
		json_put_string(j, m->read_only ? "ro" : "rw");
		json_put_string(j, "nosuid");
		json_put_string(j, "nodev");
		json_put_string(j, "bind");
		json_end_array(j);
		json_end_object(j);
	}
	json_end_array(j);
}

static void put_hook(struct json *j, const char *const *words)
{
	json_kv_array(j, "hooks");
	json_begin_object(j);
	json_kv_string(j, "hookName", "createRuntime");
	json_kv_string(j, "path", words[0]);
	json_kv_array(j, "args");
	for (; *words; words++)
		json_put_string(j, *words);
	json_end_array(j);
	json_kv_int(j, "timeout", HOOK_SECONDS);
	json_end_object(j);
	json_end_array(j);
}

static void put_edits(struct json *j, const struct edits *edits)
{
	_cleanup_strbuf_ struct strbuf b = STRBUF_INIT;

	json_kv_object(j, "containerEdits");
	if (edits->n_envs) {
		json_kv_array(j, "env");
		for (size_t i = 0; i < edits->n_envs; i++) {
			b.len = 0;
			strbuf_printf(&b, "%s=%s", edits->envs[i].key, edits->envs[i].value);
			json_put_string(j, strbuf_str(&b));
		}
		json_end_array(j);
	}
	if (edits->n_devs)
		put_nodes(j, edits);
	if (edits->n_mounts)
		put_mounts(j, edits);
	if (edits->hook)
		put_hook(j, edits->hook);
	json_end_object(j);
}

const char *render_cdi(const struct edits *common, const struct cdi_entry *v, size_t n,
		       struct arena *arena)
{
	const struct edits repeated = { .envs = common->envs, .n_envs = common->n_envs };
	_cleanup_strbuf_ struct strbuf b = STRBUF_INIT;
	struct json j;

	json_init(&j, &b, 1);
	json_begin_object(&j);
	json_kv_string(&j, "cdiVersion", CDI_VERSION);
	json_kv_string(&j, "kind", CDI_KIND);
	put_edits(&j, common);
	json_kv_array(&j, "devices");
	/* A device without edits is refused by runtimes: one that has no nodes repeats the
	 * variables. */
	for (size_t i = 0; i < n; i++) {
		json_begin_object(&j);
		json_kv_string(&j, "name", v[i].slot);
		put_edits(&j, v[i].edits.n_devs ? &v[i].edits : &repeated);
		json_end_object(&j);
	}
	json_end_array(&j);
	json_end_object(&j);
	strbuf_putc(&b, '\n');
	return arena_strdup(arena, strbuf_str(&b));
}

/* map.json and cufile.json: the VFs of a container, for programs in it and for people. */

#define MAP_VERSION 1

/* The rails that NCCL uses, and the settings of their GIDs that it got. */
struct gids {
	const struct rail *rails;
	size_t n;
	struct gid_decision decision;
	struct arena *arena;
};

/* The GID that NCCL takes on this VF; NULL: not known, or none. */
static const struct gid_entry *taken(const struct gids *gids, const struct grant_dev *dev)
{
	for (size_t i = 0; i < gids->n; i++) {
		const struct rail *rail = &gids->rails[i];
		struct gid_vf vf;

		if (rail->dev != dev || !gids_known(rail) ||
		    grant_link(rail->grant, dev) != HW_LINK_ETHERNET)
			continue;
		vf = gid_vf_of(gids->rails, gids->n, i, gids->arena);
		return gid_at(&vf, gid_nccl_picks(&vf, &gids->decision.env));
	}
	return NULL;
}

/* --- map.json --- */

static int port_rate(const struct hw_inventory *inv, int pci, int port)
{
	int rdma = pci >= 0 ? hw_find_rdma(inv, pci) : -1;

	for (size_t i = 0; rdma >= 0 && i < inv->rdma[rdma].n_ports; i++) {
		if (inv->rdma[rdma].ports[i].number == port)
			return inv->rdma[rdma].ports[i].rate_mbps;
	}
	return 0;
}

int grant_rate(const struct grant *grant, const struct grant_dev *dev)
{
	const struct hw_inventory *inv = grant->node->inv;
	int pci = dev->dev->pci, port = grant_port(grant, dev), rate = port_rate(inv, pci, port);
	int limit = pci >= 0 ? inv->pci[pci].rate_mbps : 0;

	if (!rate && pci >= 0)
		rate = port_rate(inv, inv->pci[pci].physfn, port);
	return limit && (!rate || limit < rate) ? limit : rate;
}

struct element {
	struct rail rail;		/* of a VF without RDMA too */
	const struct choose_pair *pair; /* NULL: no GPU is known to use it */
};

static void put_element(struct json *j, const struct element *e, const struct gids *gids)
{
	const struct grant *grant = e->rail.grant;
	const struct grant_dev *dev = e->rail.dev;
	const struct vf_state *state = dev->state;
	const struct gid_entry *gid = taken(gids, dev);
	struct topo_rail at = topo_rails_of(grant->node->rails, dev->dev->pci);
	char buf[BDF_STRLEN];

	json_begin_object(j);
	json_kv_string(j, "gpu", e->pair ? bdf_format(e->rail.gpu, buf) : NULL);
	json_kv_string(j, "vf", dev->dev->id);
	json_kv_string(j, "hca", dev->rdma);
	json_kv_int_if(j, "port", dev->rdma ? grant_port(grant, dev) : 0, dev->rdma);
	json_kv_string(j, "netdev", state ? state->netdev : NULL);
	json_kv_string(j, "path", e->pair ? topo_class_name(e->pair->path.class) : NULL);
	put_data_direct(j, grant, e->pair);
	json_key(j, "gid");
	if (gid) {
		json_begin_object(j);
		json_kv_int(j, "index", gid->index);
		json_kv_string(j, "address", gid_format(gid->gid, gids->arena));
		json_kv_string(j, "type", gid->type[0] ? gid->type : NULL);
		json_end_object(j);
	} else {
		json_put_null(j);
	}
	json_kv_int_if(j, "numa", dev->dev->numa, dev->dev->numa >= 0);
	json_kv_int_if(j, "rail", at.rail, at.rail >= 0);
	json_kv_int_if(j, "plane", at.plane, at.plane >= 0);
	json_kv_int_if(j, "mbps", dev->rdma ? grant_rate(grant, dev) : 0,
		       dev->rdma && grant_rate(grant, dev) > 0);
	json_kv_string(j, "resource", grant->pool->cfg->resource);
	if (dev->slot)
		json_kv_string(j, "slot", dev->slot);
	if (dev->decision)
		json_kv_int(j, "decision", (int64_t)dev->decision);
	json_end_object(j);
}

/* One a pair of GPU and VF, in rail order; one a VF that has no pair. */
static size_t elements_of(const struct grant *grants, size_t n, struct arena *arena,
			  struct element **ret)
{
	struct rail *rails;
	size_t n_rails = all_rails(grants, n, arena, &rails), max = n_rails, count = 0;
	struct element *v;

	for (size_t i = 0; i < n; i++)
		max += grants[i].n_pairs;
	v = arena_array(arena, max, sizeof(*v));
	for (size_t i = 0; i < n_rails; i++) {
		const struct grant *grant = rails[i].grant;

		v[count] = (struct element) { .rail = rails[i] };
		if (!rails[i].has_gpu) {
			count++;
			continue;
		}
		for (size_t k = 0; k < grant->n_pairs; k++) {
			const struct choose_pair *p = &grant->pairs[k];

			if (strcmp(grant->pool->devs[p->dev].id, rails[i].dev->dev->id) != 0)
				continue;
			v[count] = (struct element) { .rail = rails[i], .pair = p };
			v[count++].rail.gpu = grant->node->inv->pci[p->gpu].bdf;
		}
	}
	*ret = v;
	return count;
}

static int element_cmp(const void *a, const void *b)
{
	return rail_cmp(&((const struct element *)a)->rail, &((const struct element *)b)->rail);
}

static void put_gpus(struct json *j, const struct container *c, struct arena *arena)
{
	const struct grant *now = grants_now(c->grants, c->n, arena);
	struct gids gids = { .arena = arena };
	struct element *v;
	size_t count = elements_of(now, c->n, arena, &v);

	gids.n = grant_rails(now, c->n, PROFILES_NCCL, arena, &gids.rails);
	if (decide_gids(gids.rails, gids.n, arena, &gids.decision, NULL, NULL) < 0 ||
	    !gids.decision.set)
		gids.decision.env = (struct gid_env) { .index = -1,
						       .family = GID_FAMILY_IPV4,
						       .roce_version = 2 };
	qsort(v, count, sizeof(*v), element_cmp);
	json_kv_array(j, "gpus");
	for (size_t i = 0; i < count; i++)
		put_element(j, &v[i], &gids);
	json_end_array(j);
}

const char *render_map(const struct container *c, struct arena *arena)
{
	_cleanup_strbuf_ struct strbuf b = STRBUF_INIT;
	struct json j;
	bool late = false;

	for (size_t i = 0; i < c->n; i++)
		late |= c->grants[i].pool->cfg->binding == BINDING_LATE;
	json_init(&j, &b, 1);
	json_begin_object(&j);
	json_kv_int(&j, "version", MAP_VERSION);
	json_kv_string(&j, "pod",
		       c->ns && c->pod ? arena_printf(arena, "%s/%s", c->ns, c->pod) : NULL);
	if (c->uid && *c->uid)
		json_kv_string(&j, "uid", c->uid);
	json_kv_string(&j, "container", c->name);
	json_kv_string(&j, "binding", late ? "late" : "early");
	put_gpus(&j, c, arena);
	json_kv_strings(&j, "notes", c->notes, c->n_notes);
	json_end_object(&j);
	strbuf_putc(&b, '\n');
	return arena_strdup(arena, strbuf_str(&b));
}

/* --- cufile.json --- */

/* Every IPv4 address that the VF's interfaces have in the container, once: RoCE v1 and v2 have an
 * entry each. */
static void put_addresses(struct json *j, const struct rail *rails, size_t n, struct arena *arena)
{
	size_t count = 0, max = 0;
	char **list;

	for (size_t i = 0; i < n; i++)
		max += rails[i].dev->state ? rails[i].dev->state->n_gids : rails[i].dev->n_gids;
	list = arena_array(arena, max, sizeof(*list));
	for (size_t i = 0; i < n; i++) {
		struct gid_vf vf = gid_vf_of(rails, n, i, arena);

		for (size_t k = 0; rails[i].grant->pool->cfg->cufile && k < vf.n_gids; k++) {
			char *address = arena_strdup(arena, gid_format(vf.gids[k].gid, arena));

			if (!gid_is_ipv4(vf.gids[k].gid) || (vf.here && !vf.here[k]) ||
			    list_has((const char *const *)list, count, address))
				continue;
			list[count++] = address;
			json_put_string(j, address);
		}
	}
}

static void put_members(struct json *j, const struct policy_env *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		json_key(j, v[i].name);
		json_put_raw(j, v[i].value, strlen(v[i].value));
	}
}

/* The rest of the file is that of the first pool that has some. */
const char *render_cufile(const struct container *c, struct arena *arena)
{
	_cleanup_strbuf_ struct strbuf b = STRBUF_INIT;
	const struct rail *rails;
	struct json j;
	const struct grant *now = grants_now(c->grants, c->n, arena);
	const struct pool_config *base = NULL;
	size_t n;

	for (size_t i = 0; i < c->n; i++) {
		const struct pool_config *cfg = now[i].pool->cfg;

		if (cfg->cufile && cfg->is_rdma &&
		    (!base || !(base->n_cufile_base || base->n_cufile_properties)))
			base = cfg;
	}
	if (!base)
		return NULL;
	n = grant_rails(now, c->n, ALL_PROFILES, arena, &rails);
	json_init(&j, &b, 1);
	json_begin_object(&j);
	put_members(&j, base->cufile_base, base->n_cufile_base);
	json_kv_object(&j, "properties");
	put_members(&j, base->cufile_properties, base->n_cufile_properties);
	json_kv_array(&j, "rdma_dev_addr_list");
	put_addresses(&j, rails, n, arena);
	json_end_array(&j);
	json_end_object(&j);
	json_end_object(&j);
	strbuf_putc(&b, '\n');
	return arena_strdup(arena, strbuf_str(&b));
}
