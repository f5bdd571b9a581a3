/* The kernel's counters of the ports of NICs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "devstate/devstate.h"
#include "hw/inventory.h"
#include "hw/portstats.h"
#include "netlink/netlink.h"
#include "sysroot/sysroot.h"

#define COUNTERS_MAX 128 /* of a folder; drivers have some 60 */
#define NAME_SIZE    64

/* One folder under way. */
struct folder {
	const struct sysroot *root;
	char path[256];
	struct arena *arena;
	struct hw_counter *v;
	size_t n;
};

/* lifespan is the time that the driver keeps a reading, and no counter. */
static int add_counter(void *arg, const char *name)
{
	struct folder *d = arg;
	uint64_t value;

	if (!strcmp(name, "lifespan") || strlen(name) >= NAME_SIZE ||
	    sysroot_read_u64(d->root, 10, &value, "%s/%s", d->path, name) < 0)
		return 0;
	d->v[d->n++] = (struct hw_counter) { arena_strdup(d->arena, name), value };
	return d->n == COUNTERS_MAX;
}

static int by_name(const void *x, const void *y)
{
	const struct hw_counter *a = x, *b = y;

	return strcmp(a->name, b->name);
}

static struct hw_counter *read_folder(const struct sysroot *root, const char *rdma, int port,
				      const char *name, struct arena *arena, size_t *ret_n)
{
	struct hw_counter found[COUNTERS_MAX];
	struct folder d = { .root = root, .arena = arena, .v = found };

	snprintf(d.path, sizeof(d.path), "sys/class/infiniband/%s/ports/%d/%s", rdma, port, name);
	sysroot_each(root, d.path, add_counter, &d);
	if (d.n)
		qsort(d.v, d.n, sizeof(*d.v), by_name);
	*ret_n = d.n;
	return arena_copy(arena, found, d.n * sizeof(*found));
}

static bool is_counted(const struct hw_inventory *inv, const struct hw_rdma *rdma)
{
	return rdma->pci >= 0 && hw_is_own_nic(inv, rdma->pci);
}

/* A PF that has VFs and no RDMA device: its driver has none, or the module of it is not loaded. */
static bool is_plain(const struct hw_inventory *inv, int pci)
{
	const struct hw_pci *f = &inv->pci[pci];

	return hw_is_pf(f) && f->sriov_num > 0 && f->netdev && hw_find_rdma(inv, pci) < 0;
}

static void read_netdev(const struct sysroot *root, const char *netdev, struct arena *arena,
			struct hw_port_stats *s)
{
	struct hw_pauses pauses;
	uint64_t changes;

	if (sysroot_read_u64(root, 10, &changes, "sys/class/net/%s/carrier_changes", netdev) == 0)
		s->carrier_changes = (int64_t)changes;
	if (sysroot_is_live(root) && netlink_pauses(netdev, &pauses, NULL) == 0)
		s->pauses = arena_copy(arena, &pauses, sizeof(pauses));
}

struct hw_port_stats *devstate_port_stats(const struct sysroot *root,
					  const struct hw_inventory *inv, struct arena *arena,
					  size_t *ret_n)
{
	struct hw_port_stats *v;
	size_t n = 0;

	for (size_t i = 0; i < inv->n_rdma; i++)
		n += is_counted(inv, &inv->rdma[i]) ? inv->rdma[i].n_ports : 0;
	for (size_t i = 0; i < inv->n_pci; i++)
		n += is_plain(inv, (int)i);
	v = arena_array(arena, n, sizeof(*v));
	*ret_n = 0;
	for (size_t i = 0; i < inv->n_rdma; i++) {
		const struct hw_rdma *rdma = &inv->rdma[i];

		for (size_t k = 0; is_counted(inv, rdma) && k < rdma->n_ports; k++) {
			struct hw_port_stats *s = &v[(*ret_n)++];
			int port = rdma->ports[k].number;

			*s = (struct hw_port_stats) { .pci = rdma->pci,
						      .rdma = (int)i,
						      .port = port,
						      .carrier_changes = -1 };
			s->standard = read_folder(root, rdma->name, port, "counters", arena,
						  &s->n_standard);
			s->driver = read_folder(root, rdma->name, port, "hw_counters", arena,
						&s->n_driver);
			/* The name of an interface is known of the first port only. */
			if (rdma->netdev && port == 1)
				read_netdev(root, rdma->netdev, arena, s);
		}
	}
	for (size_t i = 0; i < inv->n_pci; i++) {
		struct hw_port_stats *s;

		if (!is_plain(inv, (int)i))
			continue;
		s = &v[(*ret_n)++];
		*s = (struct hw_port_stats) {
			.pci = (int)i, .rdma = -1, .port = 1, .carrier_changes = -1
		};
		read_netdev(root, inv->pci[i].netdev, arena, s);
	}
	return v;
}
