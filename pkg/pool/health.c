/*
 * The health rule. A VF is judged by its PF, never by its own netdev or port: those may be in a
 * container, and look down or absent from here. An unknown state is healthy. An ACTIVE RDMA port is
 * a link in any state of the netdev: on InfiniBand fabrics that use no IPoIB the interface is
 * simply off, and of a function's two ports one is enough. A port that is DOWN while its carrier is
 * up, or unknown, is no verdict either: it may be administratively closed, or wait for its subnet
 * manager, while its VFs serve.
 */
#include "pool/pool-internal.h"

#include "base/arena.h"
#include "base/str.h"
#include "pool/node.h"

void health_judge(const struct health_view *v, struct arena *arena, struct pool_dev *dev)
{
	const char *begin = v->pf_netdev ? " (" : "", *end = v->pf_netdev ? ")" : "";
	const char *netdev = v->pf_netdev ? v->pf_netdev : "";

	dev->fault = POOL_FAULT_NONE;
	dev->reason = NULL;
	if (v->gone) {
		dev->fault = POOL_FAULT_GONE;
		dev->reason = arena_printf(arena, "%s: is gone from the PCI bus", v->id);
	} else if (!v->driver) {
		dev->fault = POOL_FAULT_NO_DRIVER;
		dev->reason = arena_printf(arena, "%s: no driver is bound to it", v->id);
	} else if (v->needs_rdma && !v->has_rdma) {
		dev->fault = POOL_FAULT_NO_RDMA;
		dev->reason = arena_printf(arena, "%s: is bound to %s and has no RDMA device",
					   v->id, v->driver);
	} else if (v->carrier == 0 && !str_eq(v->port_state, "ACTIVE")) {
		dev->fault = POOL_FAULT_LINK_DOWN;
		dev->reason = arena_printf(arena, "%s: the link of its PF %s%s%s%s is down%s%s",
					   v->id, v->pf_address, begin, netdev, end,
					   v->port_state ? ", its RDMA port is " : "",
					   v->port_state ? v->port_state : "");
	} else if (v->degraded) {
		dev->fault = POOL_FAULT_LINK_DEGRADED;
		dev->reason = arena_printf(arena, "%s: the link of its PF %s%s%s%s %s", v->id,
					   v->pf_address, begin, netdev, end, v->degraded);
	} else if (!v->selected) {
		dev->fault = POOL_FAULT_NOT_SELECTED;
		dev->reason =
			arena_printf(arena, "%s: the selectors of %s do not match it any more",
				     v->id, v->resource);
	}
	dev->healthy = !dev->fault;
}

/* --- changes for the worse --- */

int node_port_was_up(const struct node_pf *before, const struct node_pf *now,
		     const struct node_port *port)
{
	if (before->missing)
		return port->was_up;
	for (size_t i = 0; i < before->n_ports; i++) {
		if (before->ports[i].number == port->number ||
		    (before->n_ports == 1 && now->n_ports == 1))
			return before->ports[i].up;
	}
	return -1;
}

static bool lacks_driver(const struct pool_dev *dev)
{
	return dev->fault == POOL_FAULT_NO_DRIVER || dev->fault == POOL_FAULT_NO_RDMA;
}

size_t pool_lost_drivers(const struct pool *before, const struct pool *now,
			 const struct pool_dev **ret_first)
{
	size_t n = 0;

	for (size_t i = 0; i < now->n_devs; i++) {
		const struct pool_dev *dev = &now->devs[i], *old;

		if (!lacks_driver(dev))
			continue;
		old = pool_find(before, dev->id);
		if (old && !lacks_driver(old) && n++ == 0)
			*ret_first = dev;
	}
	return n;
}
