/* The struct of a root, for the files of this room and tests. */
#ifndef RAILMATE_SYSROOT_SYSROOT_INTERNAL_H
#define RAILMATE_SYSROOT_SYSROOT_INTERNAL_H

#include "sysroot/sysroot.h"

struct sysroot {
	int fd;
	char *path;
	bool live;
	bool has_openat2; /* tests clear it to take the fallback */
};

#endif
