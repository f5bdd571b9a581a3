/* The VFs of a container, as they are now and in the order that lines up across nodes. */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/str.h"
#include "config/config.h"
#include "hw/inventory.h"
#include "hw/vfstate.h"
#include "pool/node.h"
#include "render/render-internal.h"

static const struct hw_rdma *grant_rdma(const struct grant *grant, const struct grant_dev *dev)
{
	const struct hw_inventory *inv = grant->node->inv;
	size_t first = !dev->rdma || dev->dev->rdma < 0 ? inv->n_rdma : (size_t)dev->dev->rdma;

	for (size_t i = first; i < inv->n_rdma && inv->rdma[i].pci == dev->dev->pci; i++) {
		if (!strcmp(inv->rdma[i].name, dev->rdma))
			return &inv->rdma[i];
	}
	return NULL; /* renamed since the snapshot */
}

static const struct hw_port *grant_hw_port(const struct grant *grant, const struct grant_dev *dev)
{
	const struct hw_rdma *rdma = grant_rdma(grant, dev);

	if (!rdma || !rdma->n_ports)
		return NULL;
	for (size_t i = 0; i < rdma->n_ports; i++) {
		if (str_eq(rdma->ports[i].state, "ACTIVE"))
			return &rdma->ports[i];
	}
	return &rdma->ports[0];
}

int grant_port(const struct grant *grant, const struct grant_dev *dev)
{
	const struct hw_port *port = grant_hw_port(grant, dev);

	if (dev->state && dev->state->rdma && dev->state->port > 0)
		return dev->state->port;
	return port ? port->number : 1;
}

enum hw_link grant_link(const struct grant *grant, const struct grant_dev *dev)
{
	const struct hw_port *port = grant_hw_port(grant, dev);

	if (dev->state && dev->state->link != HW_LINK_UNKNOWN)
		return dev->state->link;
	return port ? port->link : HW_LINK_UNKNOWN;
}

void put_hca(struct strbuf *b, const struct grant *grant, const struct grant_dev *dev)
{
	strbuf_puts(b, dev->rdma);
	strbuf_putc(b, ':');
	strbuf_put_int(b, grant_port(grant, dev));
}

static const char *rdma_node(const char *name, struct arena *arena)
{
	static const char dir[] = "/dev/infiniband/";
	size_t len = strlen(name) + 1;
	char *path = arena_alloc(arena, sizeof(dir) - 1 + len);

	memcpy(path, dir, sizeof(dir) - 1);
	memcpy(path + sizeof(dir) - 1, name, len);
	return path;
}

const char *verbs_node(const struct grant_dev *dev, struct arena *arena)
{
	return rdma_node(dev->uverbs, arena);
}

const char *umad_node(const char *umad, struct arena *arena)
{
	return rdma_node(umad, arena);
}

/* --- as they are now --- */

static const struct grant_dev *devs_now(const struct grant *grant, struct arena *arena)
{
	struct grant_dev *devs = arena_array(arena, grant->n_devs, sizeof(*devs));

	for (size_t i = 0; i < grant->n_devs; i++) {
		const struct vf_state *state = grant->devs[i].state;

		devs[i] = grant->devs[i];
		if (state && state->rdma)
			devs[i].rdma = state->rdma;
		if (state && state->uverbs)
			devs[i].uverbs = state->uverbs;
	}
	return devs;
}

/* Its place in the configuration; pools that are not of this node come last, as they were given. */
static size_t rank_of(const struct grant *grant)
{
	for (size_t i = 0; i < grant->node->n_pools; i++) {
		if (&grant->node->pools[i] == grant->pool)
			return i;
	}
	return grant->node->n_pools;
}

struct grant *grants_now(const struct grant *grants, size_t n, struct arena *arena)
{
	struct grant *now = arena_array(arena, n, sizeof(*now));

	for (size_t i = 0; i < n; i++) {
		size_t k = i;

		for (; k > 0 && rank_of(&now[k - 1]) > rank_of(&grants[i]); k--)
			now[k] = now[k - 1];
		now[k] = grants[i];
		now[k].devs = devs_now(&grants[i], arena);
	}
	return now;
}

/* --- rails --- */

static struct rail rail_of(const struct grant *grant, const struct grant_dev *dev)
{
	const struct hw_inventory *inv = grant->node->inv;
	struct rail rail = { .grant = grant, .dev = dev };

	if (dev->dev->pci >= 0) {
		const struct hw_pci *f = &inv->pci[dev->dev->pci];

		rail.vf = f->bdf;
		rail.pf = f->physfn >= 0 ? inv->pci[f->physfn].bdf : f->bdf;
	} else if (bdf_parse(dev->dev->id, &rail.vf) == 0) {
		rail.pf = rail.vf;
	}
	for (size_t i = 0; i < grant->n_pairs; i++) {
		const struct choose_pair *p = &grant->pairs[i];
		struct bdf gpu = inv->pci[p->gpu].bdf;

		if (strcmp(grant->pool->devs[p->dev].id, dev->dev->id) != 0 ||
		    (rail.has_gpu && bdf_cmp(rail.gpu, gpu) <= 0))
			continue;
		rail.gpu = gpu;
		rail.has_gpu = true;
	}
	return rail;
}

int rail_cmp(const void *a, const void *b)
{
	const struct rail *x = a, *y = b;
	int r = x->has_gpu && y->has_gpu ? bdf_cmp(x->gpu, y->gpu) : y->has_gpu - x->has_gpu;

	if (r == 0)
		r = bdf_cmp(x->pf, y->pf);
	return r ? r : bdf_cmp(x->vf, y->vf);
}

size_t all_rails(const struct grant *grants, size_t n, struct arena *arena, struct rail **ret)
{
	size_t max = 0, count = 0;
	struct rail *rails;

	for (size_t i = 0; i < n; i++)
		max += grants[i].n_devs;
	rails = arena_array(arena, max, sizeof(*rails));
	for (size_t i = 0; i < n; i++) {
		for (size_t k = 0; k < grants[i].n_devs; k++)
			rails[count++] = rail_of(&grants[i], &grants[i].devs[k]);
	}
	qsort(rails, count, sizeof(*rails), rail_cmp);
	*ret = rails;
	return count;
}

static bool takes_part(const struct pool_config *cfg, unsigned profiles)
{
	return cfg->is_rdma && (profiles == ALL_PROFILES || (cfg->profiles & profiles));
}

size_t grant_rails(const struct grant *grants, size_t n, unsigned profiles, struct arena *arena,
		   const struct rail **ret)
{
	struct rail *rails = NULL;
	size_t all = 0, count = 0;

	/* Most pools have one profile of many: a profile that no pool has is not worth sorting. */
	for (size_t i = 0; i < n && !all; i++) {
		if (takes_part(grants[i].pool->cfg, profiles))
			all = all_rails(grants, n, arena, &rails);
	}
	for (size_t i = 0; i < all; i++) {
		if (count && rails[count - 1].grant != rails[i].grant &&
		    str_eq(rails[count - 1].dev->rdma, rails[i].dev->rdma))
			continue; /* several resources share it */
		if (rails[i].dev->rdma &&
		    pool_dev_is_rdma(rails[i].grant->pool, rails[i].dev->dev) &&
		    takes_part(rails[i].grant->pool->cfg, profiles))
			rails[count++] = rails[i];
	}
	*ret = rails;
	return count;
}
