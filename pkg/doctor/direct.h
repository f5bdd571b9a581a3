/*
 * What libmlx5 says of Data Direct: the facts of the check data-direct. libibverbs and libmlx5 are
 * the machine's own, of whatever version it has, and are loaded only where a NIC may have a data
 * direct function. One thread; the libraries stay loaded.
 */
#ifndef RAILMATE_DOCTOR_DIRECT_H
#define RAILMATE_DOCTOR_DIRECT_H

#include <stddef.h>

#include "hw/bdf.h"

struct arena;
struct hw_inventory;

enum doctor_direct_answer {
	DOCTOR_DIRECT_UNKNOWN, /* why: a clause */
	DOCTOR_DIRECT_NONE,
	DOCTOR_DIRECT_FOUND, /* bdf */
};

struct doctor_direct_nic {
	int pci; /* of a PF whose VPD was read */
	enum doctor_direct_answer answer;
	struct bdf bdf;
	const char *why;
};

struct doctor_direct {
	const struct doctor_direct_nic *nic;
	size_t n;
};

#define DOCTOR_LIBIBVERBS "libibverbs.so.1"
#define DOCTOR_LIBMLX5	  "libmlx5.so.1"

/* NULL: no NIC may have a data direct function, or these libraries are not there, or too old. */
const struct doctor_direct *doctor_ask_libmlx5(const struct hw_inventory *inv,
					       const char *libibverbs, const char *libmlx5,
					       struct arena *arena);

#endif
