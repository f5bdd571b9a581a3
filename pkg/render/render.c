#include "render/render.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "config/config.h"
#include "hw/inventory.h"
#include "pool/node.h"
#include "render/render-internal.h"

#define ENV_MAX 16
#define RDMA_CM "/dev/infiniband/rdma_cm"

void add_env(struct edits *edits, const char *key, const char *value)
{
	edits->envs[edits->n_envs++] = (struct kv) { key, value };
}

const char *render_env_name(const char *prefix, const char *resource, const char *suffix, struct arena *arena)
{
	char *name = arena_printf(arena, "%s_%s%s%s", prefix, resource, suffix[0] ? "_" : "", suffix);

	for (char *p = name; *p; p++) {
		if (*p == '.' || *p == '/')
			*p = '_';
		else
			*p = (char)toupper((unsigned char)*p);
	}
	return name;
}

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

	return port ? port->number : 1;
}

enum hw_link grant_link(const struct grant *grant, const struct grant_dev *dev)
{
	const struct hw_port *port = grant_hw_port(grant, dev);

	return port ? port->link : HW_LINK_UNKNOWN;
}

void put_hca(struct strbuf *b, const struct grant *grant, const struct grant_dev *dev)
{
	strbuf_puts(b, dev->rdma);
	strbuf_putc(b, ':');
	strbuf_put_int(b, grant_port(grant, dev));
}

const char *verbs_node(const struct grant_dev *dev, struct arena *arena)
{
	static const char dir[] = "/dev/infiniband/";
	size_t len = strlen(dev->uverbs) + 1;
	char *path = arena_alloc(arena, sizeof(dir) - 1 + len);

	memcpy(path, dir, sizeof(dir) - 1);
	memcpy(path + sizeof(dir) - 1, dev->uverbs, len);
	return path;
}

/* The kernel's own device names are plain words; one that is not would change the meaning of a list or a
 * path. */
static bool plain_name(const char *s)
{
	if (!*s || *s == '.' || strlen(s) > 63)
		return false;
	for (; *s; s++) {
		if (!isalnum((unsigned char)*s) && !strchr("_-.", *s))
			return false;
	}
	return true;
}

static int check_names(const struct grant *grant, struct err *err)
{
	for (size_t i = 0; i < grant->n_devs; i++) {
		const struct grant_dev *d = &grant->devs[i];

		if ((d->rdma && !plain_name(d->rdma)) || (d->uverbs && !plain_name(d->uverbs)))
			return err_set(
				err, EIO,
				"VF %s: the kernel gives its RDMA device a name that cannot be passed on",
				d->dev->id);
	}
	return 0;
}

static void add_node(struct edits *edits, const char *path)
{
	for (size_t i = 0; i < edits->n_devs; i++) {
		if (!strcmp(edits->devs[i].host, path))
			return;
	}
	edits->devs[edits->n_devs++] = (struct devnode) { path, path, "rw" };
}

/* /dev/infiniband/uverbsN of each VF, then rdma_cm; never umad or issm: they allow MAD sending (nccl.md
 * §1.2). */
static void render_nodes(const struct grant *grant, struct arena *arena, struct edits *edits)
{
	edits->devs = arena_array(arena, grant->n_devs + 1, sizeof(*edits->devs));
	for (size_t i = 0; i < grant->n_devs; i++) {
		if (grant->devs[i].uverbs)
			add_node(edits, verbs_node(&grant->devs[i], arena));
	}
	if (edits->n_devs && grant->node->inv->has_rdma_cm)
		add_node(edits, RDMA_CM);
}

static void sort_envs(struct edits *edits)
{
	for (size_t i = 1; i < edits->n_envs; i++) {
		struct kv kv = edits->envs[i];
		size_t k = i;

		for (; k > 0 && strcmp(edits->envs[k - 1].key, kv.key) > 0; k--)
			edits->envs[k] = edits->envs[k - 1];
		edits->envs[k] = kv;
	}
}

int render_grant(const struct grant *grant, struct arena *arena, struct edits *ret, struct err *err)
{
	struct edits edits = { .envs = arena_array(arena, ENV_MAX, sizeof(struct kv)) };
	int r;

	r = check_names(grant, err);
	if (r < 0)
		return r;
	render_peer_env(grant, arena, &edits);
	render_fact_env(grant, arena, &edits);
	if (grant->pool->cfg->is_rdma) {
		r = render_nccl_env(grant, arena, &edits, err);
		if (r < 0)
			return r;
		render_nodes(grant, arena, &edits);
	}
	sort_envs(&edits);
	*ret = edits;
	return 0;
}
