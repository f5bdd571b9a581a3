/* Do the cables agree with the order of the GPUs? */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "doctor/doctor-internal.h"
#include "hw/inventory.h"
#include "topo/rails.h"

static const struct diagnosis_advice swapped = {
	"NCCL connects rail n of a node with rail n of the others: where the cables of one node are swapped, that traffic goes over the spine, and on a fabric without one it fails.",
	{ "Compare with railmatectl topo of a node that works: put the cables right where this node alone says it; where all nodes say it, the fabric counts otherwise: name the rails in the configuration ('rails')." },
};

struct end {
	int pci;
	struct topo_rail at;
	const struct hw_neighbor *leaf;
};

/* Planes are networks of their own. */
static int by_plane_and_rail(const void *a, const void *b)
{
	const struct end *x = a, *y = b;

	if (x->at.plane != y->at.plane)
		return x->at.plane < y->at.plane ? -1 : 1;
	return x->at.rail != y->at.rail ? x->at.rail - y->at.rail : x->pci - y->pci;
}

static size_t find_ends(const struct facts *f, const struct topo_rails *rails, struct end *ret)
{
	size_t n = 0;

	for (size_t i = 0; i < f->inv->n_neighbor; i++) {
		struct end end = { .pci = f->inv->neighbor[i].pci, .leaf = &f->inv->neighbor[i] };

		end.at = topo_rails_of(rails, end.pci);
		if (end.at.rail >= 0 && end.at.rail < topo_rails_by_gpus(rails))
			ret[n++] = end;
	}
	if (n > 1)
		qsort(ret, n, sizeof(*ret), by_plane_and_rail);
	return n;
}

static void compare(const struct facts *f, const struct topo_rails *rails, struct diagnosis *r)
{
	_cleanup_free_ struct end *ends = xcalloc(f->inv->n_neighbor + 1, sizeof(*ends));
	size_t n = find_ends(f, rails, ends);

	for (size_t i = 1; i < n; i++) {
		const struct end *low = &ends[i - 1], *high = &ends[i];

		if (low->at.plane == high->at.plane &&
		    strverscmp(low->leaf->name, high->leaf->name) > 0)
			diagnosis_add(
				r, DIAGNOSIS_WARN, &swapped, facts_address(f, high->pci),
				"%s is on rail %d by the order of the GPUs, and its switch %s comes before %s, that of rail %d.",
				facts_nic_name(f, high->pci), high->at.rail, high->leaf->name,
				low->leaf->name, low->at.rail);
	}
	if (n > 1)
		diagnosis_fine(r, "The switches of %zu NICs are in the order of their rails.", n);
}

static void run_rails(const struct facts *f, struct diagnosis *r)
{
	struct topo_rails *counted = f->rails ? NULL : topo_rails_new(f->topo, NULL, 0);

	compare(f, f->rails ? f->rails : counted, r);
	topo_rails_free(counted);
}

const struct diagnosis_check doctor_rail_checks[] = {
	{ "rails", "rails by GPUs and by switches",
	  "Where the node writes down what LLDP says (/run/railmate/lldp.json): are the names of the switches, in their natural order, in the order of the rails that the GPUs give? WARN: a higher rail is on a switch whose name comes first. Not applicable where fewer than two switches are known, or where the configuration names the rails.",
	  .run = run_rails },
};
const size_t doctor_rail_checks_n = ARRAY_LEN(doctor_rail_checks);
