#include "discover/discover.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/mem.h"
#include "discover/scan-internal.h"

#define MISC	     "sys/class/misc"
#define VIRTUAL_MISC "sys/devices/virtual/misc"

static void *into_arena(struct arena *arena, void *table, size_t n, size_t size)
{
	void *copy = arena_copy(arena, table, n * size);

	free(table);
	return copy;
}

static bool has_misc(const struct scan *s, const char *node, const char *class)
{
	return sysroot_exists(s->root, "dev/%s", node) ||
	       sysroot_exists(s->root, MISC "/%s", class);
}

static struct hw_inventory *finish(struct scan *s)
{
	struct hw_inventory *inv = arena_alloc(s->arena, sizeof(*inv));

	inv->arena = s->arena;
	inv->cpu = scan_cpu(s);
	inv->hypervisor = scan_hypervisor(s);
	/*
	 * A misc device. A tree without any (a running kernel always has some) was captured without
	 * them; then it is taken to be there, as the module is wherever RDMA is used.
	 */
	inv->has_rdma_cm = sysroot_exists(s->root, MISC "/rdma_cm") ||
			   sysroot_exists(s->root, VIRTUAL_MISC "/rdma_cm") ||
			   (s->n_rdma && !sysroot_exists(s->root, MISC) &&
			    !sysroot_exists(s->root, VIRTUAL_MISC));
	/* A captured machine shows no devices: then they are taken to be there. */
	inv->has_vhost_net =
		(!sysroot_is_live(s->root) && !sysroot_exists(s->root, "dev")) ||
		(has_misc(s, "vhost-net", "vhost-net") && has_misc(s, "net/tun", "tun"));
	inv->n_pci = s->n_pci;
	inv->n_rdma = s->n_rdma;
	inv->n_gpu = s->n_gpu;
	inv->n_card = s->n_card;
	inv->n_neighbor = s->n_neighbor;
	inv->n_numa = s->n_numa;
	inv->n_notes = s->n_notes;
	inv->pci = into_arena(s->arena, s->pci, s->n_pci, sizeof(*s->pci));
	inv->rdma = into_arena(s->arena, s->rdma, s->n_rdma, sizeof(*s->rdma));
	inv->gpu = into_arena(s->arena, s->gpu, s->n_gpu, sizeof(*s->gpu));
	inv->card = into_arena(s->arena, s->card, s->n_card, sizeof(*s->card));
	inv->neighbor = into_arena(s->arena, s->neighbor, s->n_neighbor, sizeof(*s->neighbor));
	inv->numa = into_arena(s->arena, s->numa, s->n_numa, sizeof(*s->numa));
	inv->notes = into_arena(s->arena, s->notes, s->n_notes, sizeof(*s->notes));
	classes_done(s);
	free(s->place);
	free(s->vf);
	return inv;
}

int discover_host(const struct sysroot *root, const struct gpu_match *gpus, size_t n_gpus,
		  const struct hw_inventory *before, struct hw_inventory **ret, struct err *err)
{
	_cleanup_close_ int top = sysroot_openat(root, O_RDONLY | O_DIRECTORY, ".");
	struct scan s = {
		.root = root,
		.gpus = gpus ? gpus : gpu_match_default,
		.n_gpus = gpus ? n_gpus : gpu_match_default_n,
	};
	struct hw_inventory *inv;
	int r;

	if (top < 0)
		return err_set(err, -top, "root directory '%s': %s", sysroot_path(root),
			       strerror(-top));
	s.arena = arena_new(8 * 1024);
	scan_numa(&s);
	scan_classes(&s);
	r = scan_pci(&s, err);
	scan_cards_begin(&s, before);
	scan_class_rdma(&s);
	scan_missing_bridges(&s);
	scan_place(&s);
	scan_neighbors(&s, before);
	scan_rates(&s);
	scan_default_route(&s);
	scan_cards(&s, before);
	inv = finish(&s);
	scan_gpu_parts(root, inv);
	if (r < 0)
		hw_inventory_free(inv);
	else
		*ret = inv;
	return r;
}
