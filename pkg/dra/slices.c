#include "dra/slices.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/json.h"
#include "base/list.h"
#include "base/mem.h"
#include "base/str.h"
#include "config/config.h"
#include "document/document.h"
#include "hw/inventory.h"
#include "kubemsg/podspec.h"
#include "pool/node.h"
#include "pool/slots.h"
#include "topo/rails.h"
#include "topo/topo.h"

#define OURS "railmate.io/"
#define STANDARD                                                                                   \
	"resource.kubernetes.io/" /* k8s.io/dynamic-resource-allocation/deviceattribute            \
				   */
#define MULTUS "k8s.cni.cncf.io/" /* Multus finds networks of claims by these */
#define SLOT   "-slot-"

/* --- names --- */

/* "-slot-65535", or "-0000ffff-ff-1f-7" */
#define SUFFIX_MAX 17
#define LABEL_MAX  (SLICE_DEVICE_NAME_MAX - SUFFIX_MAX)

/*
 * "rdma/vf" → "rdma-vf". A resource that has more than lower-case letters and digits around its
 * slash is not the only one with its label, so that a hash stands behind it.
 */
static void label_of(const char *resource, char label[LABEL_MAX + 1])
{
	size_t len = strlen(resource);
	bool plain = len <= LABEL_MAX;
	char hash[8];

	for (size_t i = 0; i < len && i < LABEL_MAX; i++) {
		char c = (char)tolower((unsigned char)resource[i]);
		bool kept = islower((unsigned char)c) || isdigit((unsigned char)c);

		plain &= c == '/' || (kept && c == resource[i]);
		label[i] = kept ? c : '-';
	}
	label[len < LABEL_MAX ? len : LABEL_MAX] = '\0';
	if (plain)
		return;
	snprintf(hash, sizeof(hash), "-%06x", (unsigned)(str_hash(resource) & 0xffffff));
	if (len > LABEL_MAX - strlen(hash))
		len = LABEL_MAX - strlen(hash);
	strcpy(label + len, hash);
}

static void name_place(const char *label, const char *place, char name[SLICE_DEVICE_NAME_MAX + 1])
{
	snprintf(name, SLICE_DEVICE_NAME_MAX + 1, "%s-%s", label, place);
	for (char *p = name; *p; p++) {
		if (*p == ':' || *p == '.')
			*p = '-';
	}
}

static bool is_slot(const char *device, const char *label, unsigned *ret_number)
{
	uint64_t k;

	if (!str_starts(device, label) || !str_starts(device + strlen(label), SLOT) ||
	    str_to_u64(device + strlen(label) + strlen(SLOT), 10, SLOT_NUMBER_MAX, &k) < 0)
		return false;
	*ret_number = (unsigned)k;
	return true;
}

bool slices_find(const struct node *node, const char *device, struct slices_device *ret)
{
	char label[LABEL_MAX + 1], name[SLICE_DEVICE_NAME_MAX + 1];

	for (size_t i = 0; i < node->n_pools; i++) {
		const struct pool *pool = &node->pools[i];

		label_of(pool->cfg->resource, label);
		*ret = (struct slices_device) { .pool = pool };
		if (is_slot(device, label, &ret->number))
			return true;
		for (size_t k = 0; k < pool->n_devs; k++) {
			name_place(label, pool_dev_place(&pool->devs[k]), name);
			ret->place = pool_dev_place(&pool->devs[k]);
			if (!strcmp(device, name))
				return true;
		}
	}
	return false;
}

const char *slices_name(const struct slices_device *device, struct arena *a)
{
	char label[LABEL_MAX + 1], name[SLICE_DEVICE_NAME_MAX + 1];

	label_of(device->pool->cfg->resource, label);
	if (!device->place)
		return arena_printf(a, "%s" SLOT "%u", label, device->number);
	name_place(label, device->place, name);
	return arena_strdup(a, name);
}

/* --- attributes --- */

static void put_string(struct json *j, const char *name, const char *value)
{
	if (!value || !*value || strlen(value) > SLICE_ATTRIBUTE_MAX)
		return;
	json_kv_object(j, name);
	json_kv_string(j, "string", value);
	json_end_object(j);
}

static void put_int(struct json *j, const char *name, int value, bool known)
{
	if (!known)
		return;
	json_kv_object(j, name);
	json_kv_int(j, "int", value);
	json_end_object(j);
}

/* Some VFs of a pool: all of a slot's, or those of one place. */
struct group {
	const struct node *node;
	const struct pool *pool;
	const char *place; /* NULL: any */
	/* What they have in common; NULL: they differ, or it is not known */
	const char *driver, *link;
	int mbps;
};

static bool is_in(const struct group *g, const struct pool_dev *dev)
{
	return !dev->left_over && (!g->place || !strcmp(pool_dev_place(dev), g->place));
}

/* The first port of its PF, or its own. */
static const struct hw_port *port_of(const struct node *node, const struct pool_dev *dev)
{
	const struct hw_inventory *inv = node->inv;
	int rdma = hw_find_rdma(inv, dev->pf ? dev->pf->pci : dev->pci);

	return rdma >= 0 && inv->rdma[rdma].n_ports ? &inv->rdma[rdma].ports[0] : NULL;
}

/* False: it is another one than those before. */
static bool share(const char **common, const char *is)
{
	bool same = !*common || !is || !strcmp(*common, is);

	*common = is ? is : *common;
	return same;
}

/* The rate is that of the slowest port that is up, for one that is down has no rate of its own. */
static struct group group_of(const struct node *node, const struct pool *pool, const char *place)
{
	struct group g = { .node = node, .pool = pool, .place = place };
	bool drivers = true, links = true;

	for (size_t i = 0; i < pool->n_devs; i++) {
		const struct pool_dev *dev = &pool->devs[i];
		const struct hw_port *port;

		if (!is_in(&g, dev))
			continue;
		port = port_of(node, dev);
		drivers &= share(&g.driver, dev->pci >= 0 ? node->inv->pci[dev->pci].driver : NULL);
		links &= share(&g.link, port ? hw_link_name(port->link) : NULL);
		if (port && str_eq(port->state, "ACTIVE") && port->rate_mbps &&
		    (!g.mbps || port->rate_mbps < g.mbps))
			g.mbps = port->rate_mbps;
	}
	g.driver = drivers ? g.driver : NULL;
	g.link = links ? g.link : NULL;
	return g;
}

static void put_common(struct json *j, const struct group *g)
{
	put_string(j, OURS "driver", g->driver);
	put_string(j, OURS "link", g->link);
	put_int(j, OURS "gbps", g->mbps / 1000, g->mbps >= 1000);
	if (str_eq(g->link, hw_link_name(HW_LINK_ETHERNET)) &&
	    g->pool->cfg->gid_family != GID_FAMILY_ANY)
		put_string(j, OURS "gidFamily",
			   g->pool->cfg->gid_family == GID_FAMILY_IPV4 ? "ipv4" : "ipv6");
}

/* The upstream port of the switch that the function is at; two that count as one are one. -1: it is
 * at no switch. */
static int switch_of(const struct node *node, int pci)
{
	const struct hw_pci *v = node->inv->pci;
	int port = v[pci].parent, up = port >= 0 ? v[port].parent : -1;

	while (up >= 0 && topo_is_fused(node->topo, up) && v[up].parent >= 0 &&
	       v[v[up].parent].parent >= 0)
		up = v[v[up].parent].parent;
	return up;
}

static void put_root(struct json *j, const char *name, const struct hw_pci *f)
{
	char root[32];

	snprintf(root, sizeof(root), "pci%04x:%02x", f->root_domain, f->root_bus);
	put_string(j, name, f->has_root ? root : NULL);
}

/* Where transfers with GPUs begin: a PF with Data Direct is at its data direct function. */
static void put_place(struct json *j, const struct node *node, int pci)
{
	const struct hw_inventory *inv = node->inv;
	int direct = topo_direct(node->topo, pci), at = direct >= 0 ? direct : pci,
	    above = switch_of(node, at), numa = topo_numa(node->topo, at);
	struct topo_rail rail = topo_rails_of(node->rails, pci);
	char address[BDF_STRLEN];

	put_root(j, STANDARD "pcieRoot", &inv->pci[at]);
	put_string(j, STANDARD "pciBusID", bdf_format(inv->pci[pci].bdf, address));
	put_int(j, STANDARD "numaNode", numa, numa >= 0);
	put_root(j, OURS "complex", &inv->pci[pci]);
	if (above >= 0)
		put_string(j, OURS "pcieSwitch", bdf_format(inv->pci[above].bdf, address));
	put_int(j, OURS "rail", rail.rail, rail.rail >= 0);
	put_int(j, OURS "plane", rail.plane, rail.plane >= 0);
}

/* cni: the VF for railmate-cni, with its pod (latebind_bind()). */
static void put_attributes(struct json *j, const struct group *g, const char *cni, int pci)
{
	json_kv_object(j, "attributes");
	put_string(j, OURS "pool", g->pool->cfg->resource);
	put_common(j, g);
	if (pci >= 0)
		put_place(j, g->node, pci);
	put_string(j, MULTUS "resourceName", g->pool->cfg->resource);
	put_string(j, MULTUS "deviceID", cni);
	json_end_object(j);
}

/* --- devices --- */

struct plan {
	const struct slices_in *in;
	struct arena *arena;
	struct slice *v;
	size_t n, most; /* most: devices of a slice */
	struct strbuf text;
	struct json json;
};

static void end_slice(struct plan *p)
{
	struct slice *s = &p->v[p->n - 1];

	json_end_array(&p->json);
	s->devices = arena_copy(p->arena, strbuf_str(&p->text), p->text.len + 1);
	s->sum = str_checksum(p->text.s, p->text.len);
}

static struct json *begin_device(struct plan *p, const char *name)
{
	if (!p->n || p->v[p->n - 1].n == p->most) {
		if (p->n)
			end_slice(p);
		p->n++;
		p->text.len = 0;
		json_init(&p->json, &p->text, 0);
		json_begin_array(&p->json);
	}
	p->v[p->n - 1].n++;
	json_begin_object(&p->json);
	json_kv_string(&p->json, "name", name);
	return &p->json;
}

static void put_slots(struct plan *p, const struct slices_pool *sp, const char *label)
{
	const struct group g = group_of(p->in->node, sp->pool, NULL);
	char name[SLICE_DEVICE_NAME_MAX + 1];

	for (size_t k = 0; k < sp->n_slots; k++) {
		struct json *j;

		snprintf(name, sizeof(name), "%s" SLOT "%u", label, sp->slots[k]);
		j = begin_device(p, name);
		put_attributes(
			j, &g,
			pool_slot_id(sp->pool->cfg->resource, SLOT_ANY, sp->slots[k], p->arena),
			-1);
		json_end_object(j);
	}
}

/* Whole VFs, one where a request has no number. A step must leave room for two. */
static void put_capacity(struct json *j, size_t n)
{
	json_kv_bool(j, "allowMultipleAllocations", true);
	json_kv_object(j, "capacity");
	json_kv_object(j, "vfs");
	json_key(j, "value");
	json_put_int(j, (int64_t)n);
	json_kv_object(j, "requestPolicy");
	json_kv_int(j, "default", 1);
	json_kv_object(j, "validRange");
	json_kv_int(j, "min", 1);
	json_kv_int(j, "max", (int64_t)n);
	if (n > 1)
		json_kv_int(j, "step", 1);
	json_end_object(j);
	json_end_object(j);
	json_end_object(j);
	json_end_object(j);
}

static const char *const taints[POOL_FAULT_MAX] = {
	[POOL_FAULT_LINK_DOWN] = OURS "link-down",
	[POOL_FAULT_LINK_DEGRADED] = OURS "link-degraded",
};

static void put_taint(struct json *j, const char *key)
{
	if (!key)
		return;
	json_kv_array(j, "taints");
	json_begin_object(j);
	json_kv_string(j, "key", key);
	json_kv_string(j, "effect", "NoSchedule");
	json_end_object(j);
	json_end_array(j);
}

/* How many VFs of the group claims have or may have. */
static size_t count(const struct plan *p, const struct slices_pool *sp, const struct group *g,
		    const char **ret_taint)
{
	size_t n = 0;

	*ret_taint = NULL;
	for (size_t i = 0; i < g->pool->n_devs; i++) {
		const struct pool_dev *dev = &g->pool->devs[i];
		const char *taint = p->in->taints ? taints[dev->fault] : NULL;

		if (!is_in(g, dev) || (!dev->healthy && !taint) ||
		    list_has_sorted(sp->lost, sp->n_lost, dev->id))
			continue;
		*ret_taint = taint ? taint : *ret_taint;
		n++;
	}
	return n;
}

static void put_places(struct plan *p, const struct slices_pool *sp, const char *label)
{
	const struct pool *pool = sp->pool;
	char name[SLICE_DEVICE_NAME_MAX + 1];

	for (size_t i = 0; i < pool->n_devs; i++) {
		const struct pool_dev *dev = &pool->devs[i];
		const char *place = pool_dev_place(dev), *taint;
		struct group g;
		struct json *j;
		size_t n, k = i;

		while (k > 0 && strcmp(pool_dev_place(&pool->devs[k - 1]), place) != 0)
			k--;
		if (k > 0) /* another VF of it was there */
			continue;
		g = group_of(p->in->node, pool, place);
		n = count(p, sp, &g, &taint);
		if (!n)
			continue;
		name_place(label, place, name);
		j = begin_device(p, name);
		put_attributes(j, &g, place, dev->pf ? dev->pf->pci : dev->pci);
		put_capacity(j, n);
		put_taint(j, taint);
		json_end_object(j);
	}
}

struct slices slices_plan(const struct slices_in *in, struct arena *a)
{
	struct plan p = { .in = in, .arena = a, .most = SLICE_DEVICES_MAX };
	char label[LABEL_MAX + 1];
	size_t n = 0;

	for (size_t i = 0; i < in->n; i++) {
		n += in->v[i].exact ? in->v[i].pool->n_devs : in->v[i].n_slots;
		/* Always: a link that goes down shall move no device into another slice. */
		if (in->v[i].exact && in->taints)
			p.most = SLICE_DEVICES_TAINTS_MAX;
	}
	p.v = arena_array(a, n / p.most + 1, sizeof(*p.v));
	for (size_t i = 0; i < in->n; i++) {
		label_of(in->v[i].pool->cfg->resource, label);
		if (in->v[i].exact)
			put_places(&p, &in->v[i], label);
		else
			put_slots(&p, &in->v[i], label);
	}
	if (p.n)
		end_slice(&p);
	strbuf_done(&p.text);
	return (struct slices) { p.v, p.n };
}

/* --- the object --- */

#define PREFIX_MAX 57

static void put_owner(struct json *j, const struct slice_object *o)
{
	json_kv_array(j, "ownerReferences");
	json_begin_object(j);
	json_kv_string(j, "apiVersion", "v1");
	json_kv_string(j, "kind", "Node");
	json_kv_string(j, "name", o->node_name);
	json_kv_string(j, "uid", o->node_uid);
	json_kv_bool(j, "controller", true);
	json_end_object(j);
	json_end_array(j);
}

/* The API server takes 58 characters of it and adds five (k8s.io/apiserver
 * pkg/storage/names/generate.go). */
static void put_prefix(struct json *j, const struct slice_object *o)
{
	_cleanup_free_ char *prefix = xasprintf("%s-%s-", o->node_name, o->driver);
	size_t len = strlen(prefix) - 1;

	len = len < PREFIX_MAX ? len : PREFIX_MAX;
	while (len && !isalnum((unsigned char)prefix[len - 1]))
		len--;
	strcpy(prefix + len, "-");
	json_kv_string(j, "generateName", prefix);
}

static void put_metadata(struct json *j, const struct slice_object *o)
{
	json_kv_object(j, "metadata");
	if (o->name)
		json_kv_string(j, "name", o->name);
	else
		put_prefix(j, o);
	if (o->version)
		json_kv_string(j, "resourceVersion", o->version);
	json_kv_object(j, "annotations");
	json_kv_string(j, SLICES_MARK, o->mark);
	json_end_object(j);
	put_owner(j, o);
	json_end_object(j);
}

void slices_write(const struct slice_object *o, struct strbuf *out)
{
	struct json j;

	json_init(&j, out, 0);
	json_begin_object(&j);
	json_kv_string(&j, "apiVersion", "resource.k8s.io/v1");
	json_kv_string(&j, "kind", "ResourceSlice");
	put_metadata(&j, o);
	json_kv_object(&j, "spec");
	json_kv_string(&j, "driver", o->driver);
	json_kv_string(&j, "nodeName", o->node_name);
	json_kv_object(&j, "pool");
	json_kv_string(&j, "name", o->node_name);
	json_kv_int(&j, "generation", (int64_t)o->generation);
	json_kv_int(&j, "resourceSliceCount", (int64_t)o->count);
	json_end_object(&j);
	json_key(&j, "devices");
	json_put_raw(&j, o->slice->devices, strlen(o->slice->devices));
	json_end_object(&j);
	json_end_object(&j);
}

/* --- slices of others --- */

static const struct item *list_of(const struct item *object, const char *key)
{
	static const struct item none = { .type = ITEM_LIST };
	const struct item *v = item_get(object, key);

	return v && v->type == ITEM_LIST ? v : &none;
}

const char *slices_address(const struct item *list, const struct draclaim_device *d)
{
	const struct item *slices = list_of(list, "items");

	for (size_t i = 0; i < slices->n_kids; i++) {
		const struct item *spec = item_get(&slices->kids[i], "spec");
		const struct item *devices = list_of(spec, "devices");

		if (!str_eq(item_string(spec, "driver"), d->driver) ||
		    !str_eq(item_string(item_get(spec, "pool"), "name"), d->pool))
			continue;
		for (size_t k = 0; k < devices->n_kids; k++) {
			const struct item *attributes = item_get(&devices->kids[k], "attributes");

			if (str_eq(item_string(&devices->kids[k], "name"), d->device))
				return item_string(item_get(attributes, STANDARD "pciBusID"),
						   "string");
		}
	}
	return NULL;
}
