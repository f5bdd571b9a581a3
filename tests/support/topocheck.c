#include "support/topocheck.h"

#include <assert.h>

#include "hw/inventory.h"
#include "topo/topo.h"

/* All pairs are looked at up to this many functions, beyond it a regular sample. */
#define CHECK_ALL 400

void topo_check(const struct topo *t, const struct hw_inventory *inv)
{
	int n = (int)inv->n_pci, step = 1 + n / CHECK_ALL;

	for (int a = 0; a < n; a += step) {
		int place = topo_place(t, a);

		assert(topo_place(t, place) == place);
		for (int b = 0; b < n; b += step) {
			struct topo_path ab = topo_between(t, a, b), ba = topo_between(t, b, a);

			assert(ab.class == ba.class && ab.bridges == ba.bridges &&
			       ab.direct == ba.direct);
			assert((ab.class == TOPO_SELF) == (a == b));
			assert((ab.bridges >= 1) == (ab.class == TOPO_PIX || ab.class == TOPO_PXB));
			assert(ab.class != TOPO_PIX || ab.bridges == 1);
			assert(ab.class != TOPO_PXB || ab.bridges > 1);

			/* A VF is where its PF is. */
			if (place == a || b == a || b == place)
				continue;
			ba = topo_between(t, place, b);
			assert(ab.class == ba.class && ab.bridges == ba.bridges &&
			       ab.direct == ba.direct);
		}
	}
}
