/* The changes of a container for its devices: in the answer to Allocate and in a CDI spec. */
#ifndef RAILMATE_HW_EDITS_H
#define RAILMATE_HW_EDITS_H

#include <stdbool.h>
#include <stddef.h>

struct kv {
	const char *key, *value;
};
struct devnode {
	const char *host, *container, *permissions;
};
struct bindmount {
	const char *host, *container;
	bool read_only;
};

struct edits {
	struct kv *envs;
	size_t n_envs; /* sorted by key */
	struct devnode *devs;
	size_t n_devs;
	struct bindmount *mounts;
	size_t n_mounts;
	const char **cdi;
	size_t n_cdi; /* names of CDI devices, "vendor/class=name" */
	/* A program of the host that the runtime executes when the container is made (OCI's
	 * createRuntime), and its words, NULL at the end; NULL: none. CDI only */
	const char *const *hook;
};

#endif
