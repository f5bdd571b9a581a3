#include "support/machine.h"

#include "support/nodes.h"

__attribute__((format(printf, 2, 0))) static char *machine_path(const struct machine *m,
								const char *fmt, va_list ap)
{
	char rest[256];

	vsnprintf(rest, sizeof(rest), fmt, ap);
	return xasprintf("%s/%s", m->dir, rest);
}

static void make_parents(char *path)
{
	for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(path, 0755) < 0)
			assert_int_equal(errno, EEXIST);
		*slash = '/';
	}
}

void machine_dir(const struct machine *m, const char *fmt, ...)
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

void machine_file(const struct machine *m, const char *text, const char *fmt, ...)
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

void machine_link(const struct machine *m, const char *target, const char *fmt, ...)
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

void machine_remove(const struct machine *m, const char *fmt, ...)
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

void machine_put_rdma(const struct machine *m, const char *bdf, const char *rdma,
		      const char *uverbs)
{
	_cleanup_free_ char *line = xasprintf("%s\n", rdma);

	machine_dir(m, DEV "/infiniband/%s", bdf, rdma);
	machine_file(m, line, DEV "/infiniband_verbs/%s/ibdev", bdf, uverbs);
}

void machine_fill(const struct machine *m, const struct hw_inventory *inv)
{
	char bdf[BDF_STRLEN];

	for (size_t i = 0; i < inv->n_rdma; i++) {
		const struct hw_pci *f = &inv->pci[inv->rdma[i].pci];

		machine_put_rdma(m, bdf_format(f->bdf, bdf), inv->rdma[i].name,
				 inv->rdma[i].uverbs);
		machine_link(m, "../../../../bus/pci/drivers/mlx5_core", DEV "/driver", bdf);
	}
}

struct machine fake_machine_open(const char *line, const struct config *cfg)
{
	struct hw_inventory *inv = synth_inventory(line);
	struct machine m = { .dir = fixture_folder() };

	machine_fill(&m, inv);
	assert_int_equal(sysroot_open(m.dir, &m.root, NULL), 0);
	m.node = node_new(inv, cfg, NULL);
	m.pool = &m.node->pools[0];
	return m;
}

void fake_machine_close(struct machine *m)
{
	node_unref(m->node);
	sysroot_close(m->root);
	fixture_remove_tree(m->dir);
	free(m->dir);
}
