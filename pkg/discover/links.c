#include "discover/links.h"

#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/str.h"
#include "hw/copy.h"
#include "hw/inventory.h"
#include "sysroot/sysroot.h"

/* As the scan takes it: of an interface that is switched off it cannot be read. */
static int read_carrier(const struct sysroot *root, struct hw_pci *pf)
{
	char text[8];
	int n;

	if (!pf->netdev)
		return -ENOENT;
	n = sysroot_read(root, text, sizeof(text), "sys/class/net/%s/carrier", pf->netdev);
	if (n == -EINVAL || n == 0 || (n > 0 && str_eq(text, "0")))
		pf->carrier = 0;
	else if (n > 0 && str_eq(text, "1"))
		pf->carrier = 1;
	else
		return -ENOENT;
	return 0;
}

/* "1: DOWN" */
static void read_port(const struct sysroot *root, struct arena *a, const struct hw_rdma *rdma,
		      struct hw_port *port)
{
	const char *colon;
	char text[64];

	if (sysroot_read(root, text, sizeof(text), "sys/class/infiniband/%s/ports/%d/state",
			 rdma->name, port->number) <= 0)
		return;
	colon = strstr(text, ": ");
	if (colon && colon[2])
		port->state = arena_strdup(a, colon + 2);
}

static void read_ports(const struct sysroot *root, struct hw_inventory *inv, int pf)
{
	for (size_t i = 0; i < inv->n_rdma; i++) {
		struct hw_rdma *r = &inv->rdma[i];
		struct hw_port *ports;

		if (r->pci != pf || !r->n_ports)
			continue;
		ports = arena_copy(inv->arena, r->ports, r->n_ports * sizeof(*ports));
		for (size_t k = 0; k < r->n_ports; k++)
			read_port(root, inv->arena, r, &ports[k]);
		r->ports = ports;
	}
}

struct hw_inventory *discover_links_again(const struct sysroot *root,
					  const struct hw_inventory *before, const int *pfs,
					  size_t n)
{
	struct hw_inventory *inv = hw_inventory_copy(before);

	for (size_t i = 0; i < n; i++) {
		if (read_carrier(root, &inv->pci[pfs[i]]) < 0) {
			hw_inventory_free(inv);
			return NULL;
		}
		read_ports(root, inv, pfs[i]);
	}
	return inv;
}
