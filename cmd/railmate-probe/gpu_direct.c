/* Memory of a GPU that an RDMA device reaches: the first way that the GPU's library offers and the
 * device registers. */
#include <errno.h>

#include "base/arena.h"
#include "gpu.h"
#include "report.h"
#include "wire.h"

int gpu_direct(struct gpu *g, const char *gpu, struct wire_device *d, const char *hca, size_t size,
	       unsigned *way, struct report *r, struct wire_memory *ret)
{
	const char *on = arena_printf(r->arena, "%s with %s", gpu, hca);
	int error;

	for (*way = 0;; ++*way) {
		error = gpu_memory(g, size, *way, r, ret);
		if (error || wire_memory_check(d, ret, r) == 0)
			break;
	}
	if (!error)
		report_finding(r, OUTCOME_GOOD, "gpu-direct", on,
			       "the device reaches the GPU's memory by %s", ret->way);
	else if (error == -ENOTSUP)
		report_finding(r, OUTCOME_BROKEN, "gpu-not-direct", on,
			       "no way is left to give memory of the GPU to the device");
	return error;
}
