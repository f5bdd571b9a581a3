#ifndef RAILMATE_HW_GPUMATCH_H
#define RAILMATE_HW_GPUMATCH_H

#include <stdint.h>

/* One row of the table by which GPUs are known; tables end by n. A class is the upper 16 bits
 * (0x0302). */
struct gpu_match {
	uint16_t vendor;
	uint16_t class_hi;
	const char *name; /* "NVIDIA" */
};

#endif
