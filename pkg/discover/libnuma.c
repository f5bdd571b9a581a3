/* libnuma reads the running kernel only and takes no root: good for a second opinion on the live
 * machine. */
#include <numa.h>

#include "base/str.h"
#include "discover/discover.h"
#include "sysroot/sysroot.h"

void discover_check_numa(const struct sysroot *root, const struct hw_inventory *inv,
			 struct strbuf *out)
{
	bool differs = false;
	int nodes;

	if (!sysroot_is_live(root) || !inv->n_numa)
		return;
	if (numa_available() < 0) {
		if (inv->n_numa > 1)
			strbuf_printf(out, "libnuma finds no NUMA support, sysfs shows %zu nodes",
				      inv->n_numa);
		return;
	}
	nodes = numa_num_configured_nodes();
	if (nodes != (int)inv->n_numa) {
		strbuf_printf(out, "libnuma counts %d NUMA nodes, sysfs shows %zu", nodes,
			      inv->n_numa);
		return;
	}
	for (size_t i = 0; i < inv->n_numa && !differs; i++) {
		const struct hw_numa *a = &inv->numa[i];

		for (size_t k = 0; a->distance && k < inv->n_numa && !differs; k++) {
			int theirs = numa_distance(a->id, inv->numa[k].id);

			differs = theirs != a->distance[k];
			if (differs)
				strbuf_printf(
					out,
					"libnuma says %d for the distance of NUMA nodes %d and %d, sysfs says %d",
					theirs, a->id, inv->numa[k].id, a->distance[k]);
		}
	}
}
