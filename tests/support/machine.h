/* A synthetic machine with a sysfs below a temporary folder, as far as Allocate looks at it. */
#ifndef RAILMATE_TESTS_SUPPORT_MACHINE_H
#define RAILMATE_TESTS_SUPPORT_MACHINE_H

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <setjmp.h>

#include <cmocka.h>

#include "base/mem.h"
#include "config/config.h"
#include "hw/inventory.h"
#include "pool/node.h"
#include "support/fixture.h"
#include "support/synth.h"
#include "sysroot/sysroot.h"

#define DEV "sys/bus/pci/devices/%s"

struct machine {
	char *dir; /* the root, and room for sockets and files beside sys */
	struct sysroot *root;
	struct node *node;
	const struct pool *pool;
};

void machine_dir(const struct machine *m, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void machine_file(const struct machine *m, const char *text, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void machine_link(const struct machine *m, const char *target, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void machine_remove(const struct machine *m, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void machine_put_rdma(const struct machine *m, const char *bdf, const char *rdma,
		      const char *uverbs);
void machine_fill(const struct machine *m, const struct hw_inventory *inv);
struct machine fake_machine_open(const char *line, const struct config *cfg);
void fake_machine_close(struct machine *m);

#endif
