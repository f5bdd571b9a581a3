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
#include "discover/sysroot.h"
#include "hw/inventory.h"
#include "pool/node.h"
#include "support/fixture.h"
#include "support/synth.h"

struct machine {
	char *dir; /* the root, and room for sockets and files beside sys */
	struct sysroot *root;
	struct node *node;
	const struct pool *pool;
};

__attribute__((format(printf, 2, 0))) static inline char *machine_path(const struct machine *m,
								       const char *fmt, va_list ap)
{
	char rest[256];

	vsnprintf(rest, sizeof(rest), fmt, ap);
	return xasprintf("%s/%s", m->dir, rest);
}

static inline void make_parents(char *path)
{
	for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(path, 0755) < 0)
			assert_int_equal(errno, EEXIST);
		*slash = '/';
	}
}

__attribute__((format(printf, 2, 3))) static inline void machine_dir(const struct machine *m,
								     const char *fmt, ...)
{
	_cleanup_free_ char *path = NULL;
	va_list ap;

	va_start(ap, fmt);
	path = machine_path(m, fmt, ap);
	va_end(ap);
	make_parents(path);
	if (mkdir(path, 0755) < 0)
		assert_int_equal(errno, EEXIST);
}

__attribute__((format(printf, 3, 4))) static inline void
machine_file(const struct machine *m, const char *text, const char *fmt, ...)
{
	_cleanup_free_ char *path = NULL;
	va_list ap;
	FILE *f;

	va_start(ap, fmt);
	path = machine_path(m, fmt, ap);
	va_end(ap);
	make_parents(path);
	f = fopen(path, "we");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

__attribute__((format(printf, 3, 4))) static inline void
machine_link(const struct machine *m, const char *target, const char *fmt, ...)
{
	_cleanup_free_ char *path = NULL;
	va_list ap;

	va_start(ap, fmt);
	path = machine_path(m, fmt, ap);
	va_end(ap);
	make_parents(path);
	unlink(path);
	assert_int_equal(symlink(target, path), 0);
}

__attribute__((format(printf, 2, 3))) static inline void machine_remove(const struct machine *m,
									const char *fmt, ...)
{
	_cleanup_free_ char *path = NULL;
	struct stat st;
	va_list ap;

	va_start(ap, fmt);
	path = machine_path(m, fmt, ap);
	va_end(ap);
	assert_int_equal(lstat(path, &st), 0);
	if (S_ISDIR(st.st_mode))
		fixture_remove_tree(path);
	else
		unlink(path);
}

#define DEV "sys/bus/pci/devices/%s"

static inline void machine_put_rdma(const struct machine *m, const char *bdf, const char *rdma,
				    const char *uverbs)
{
	_cleanup_free_ char *line = xasprintf("%s\n", rdma);

	machine_dir(m, DEV "/infiniband/%s", bdf, rdma);
	machine_file(m, line, DEV "/infiniband_verbs/%s/ibdev", bdf, uverbs);
}

static inline void machine_fill(const struct machine *m, const struct hw_inventory *inv)
{
	char bdf[BDF_STRLEN];

	for (size_t i = 0; i < inv->n_rdma; i++) {
		const struct hw_pci *f = &inv->pci[inv->rdma[i].pci];

		machine_put_rdma(m, bdf_format(f->bdf, bdf), inv->rdma[i].name,
				 inv->rdma[i].uverbs);
		machine_link(m, "../../../../bus/pci/drivers/mlx5_core", DEV "/driver", bdf);
	}
}

static inline struct machine machine_open(const char *line, const struct config *cfg)
{
	struct hw_inventory *inv = synth_inventory(line);
	struct machine m = { .dir = fixture_folder() };

	machine_fill(&m, inv);
	assert_int_equal(sysroot_open(m.dir, &m.root, NULL), 0);
	m.node = node_new(inv, cfg, NULL);
	m.pool = &m.node->pools[0];
	return m;
}

static inline void machine_close(struct machine *m)
{
	node_unref(m->node);
	sysroot_close(m->root);
	fixture_remove_tree(m->dir);
	free(m->dir);
}

#endif
