/* A borrowed run of bytes. */
#ifndef RAILMATE_BASE_BYTES_H
#define RAILMATE_BASE_BYTES_H

#include <stddef.h>
#include <stdint.h>

struct bytes {
	const uint8_t *data;
	size_t len;
};

#endif
