/*
 * A libibverbs as a file: which providers it would load, from where, of which private ABI. All of
 * it stands in the file as text (rdma-core's VERBS_PROVIDER_DIR, VERBS_PROVIDER_SUFFIX,
 * IBV_CONFIG_DIR), for every architecture and C library.
 */
#ifndef RAILMATE_PROBE_LIBRARY_H
#define RAILMATE_PROBE_LIBRARY_H

#include <stddef.h>
#include <sys/types.h>

struct arena;
struct sysroot;

struct library {
	const char *path;
	dev_t dev;
	ino_t ino;
	int abi; /* NN of lib…-rdmavNN.so, which changes with every incompatible release */
	const char *provider_dir, *config_dir; /* NULL: it names none */
};
/* path: absolute. 0 or -errno; -EBADMSG: no libibverbs. */
int library_read(const struct sysroot *root, const char *path, struct arena *a,
		 struct library *ret);
/* All in an image, each file once: `first` (NULL: not known), of the live root those of
 * LD_LIBRARY_PATH and CONDA_PREFIX, then the usual places. Returns how many, at most max. */
size_t library_find_all(const struct sysroot *root, const char *first, struct arena *a,
			struct library *ret, size_t max);

enum provider_state {
	PROVIDER_THERE,
	PROVIDER_ABSENT,
	PROVIDER_OTHER_ABI, /* only of another libibverbs */
	PROVIDER_NOT_NAMED, /* there, but no file in config_dir names it */
};
/* name: "mlx5". where: the file that was looked for, or the one that was found. */
enum provider_state library_provider(const struct sysroot *root, const struct library *l,
				     const char *name, struct arena *a, const char **where);

#endif
