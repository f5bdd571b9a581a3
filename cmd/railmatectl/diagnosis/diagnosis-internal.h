/* The parts of a diagnosis that text.c, json.c and manifest.c read. */
#ifndef RAILMATE_DIAGNOSIS_DIAGNOSIS_INTERNAL_H
#define RAILMATE_DIAGNOSIS_DIAGNOSIS_INTERNAL_H

#include "diagnosis/diagnosis.h"

struct diagnosis {
	struct arena *arena;
	const struct diagnosis_check *running;
	const struct diagnosis_check **ran;
	size_t n_ran, cap_ran;
	struct diagnosis_finding *findings;
	size_t n, cap;
	size_t first; /* finding of the running check */
};

#endif
