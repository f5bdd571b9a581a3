/*
 * libmlx5's pairs of Data Direct: the facts of the check data-direct. libibverbs and libmlx5 are
 * the machine's own, of whatever version it has, and are loaded only where a NIC may have a data
 * direct function. One thread; the libraries stay loaded.
 */
#ifndef RAILMATE_FACTS_DIRECT_H
#define RAILMATE_FACTS_DIRECT_H

#include <stddef.h>

#include "hw/bdf.h"

enum facts_direct_answer {
	FACTS_DIRECT_UNKNOWN, /* why: a clause */
	FACTS_DIRECT_NONE,
	FACTS_DIRECT_FOUND, /* bdf */
};

struct facts_direct_nic {
	int pci; /* of a PF whose VPD was read */
	enum facts_direct_answer answer;
	struct bdf bdf;
	const char *why;
};

struct facts_direct {
	const struct facts_direct_nic *nic;
	size_t n;
};

#endif
