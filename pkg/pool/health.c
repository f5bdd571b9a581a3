/*
 * The health rule. A VF is judged by its PF, never by its own netdev or port: those may be in a
 * container, and look down or absent from here. What is unknown is healthy. An ACTIVE RDMA port is
 * a link whatever the netdev says: on InfiniBand fabrics that use no IPoIB the interface is simply
 * off. A port that is DOWN while its carrier is up, or unknown, is no verdict either: it may be
 * administratively closed, or wait for its subnet manager, while its VFs serve.
 */
#include "pool/pool-internal.h"

#include "base/arena.h"
#include "base/str.h"

static const char *link_down(const struct health_view *v, struct arena *arena)
{
	const char *netdev = v->pf_netdev ? arena_printf(arena, " (%s)", v->pf_netdev) : "";
	const char *port =
		v->port_state ? arena_printf(arena, ", its RDMA port is %s", v->port_state) : "";

	return arena_printf(arena, "%s: the link of its PF %s%s is down%s", v->id, v->pf_address,
			    netdev, port);
}

const char *health_fault(const struct health_view *v, struct arena *arena)
{
	if (v->gone)
		return arena_printf(arena, "%s: is gone from the PCI bus", v->id);
	if (!v->driver)
		return arena_printf(arena, "%s: no driver is bound to it", v->id);
	if (v->needs_rdma && !v->has_rdma)
		return arena_printf(arena, "%s: is bound to %s and has no RDMA device", v->id,
				    v->driver);
	if (v->carrier == 0 && !str_eq(v->port_state, "ACTIVE"))
		return link_down(v, arena);
	if (!v->selected)
		return arena_printf(arena, "%s: the selectors of %s do not match it any more",
				    v->id, v->resource);
	return NULL;
}
