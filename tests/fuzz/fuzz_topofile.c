/* room: topofile */
/* Any bytes as a topology file: taken, or one sentence; and what is taken has none of what NCCL's
 * parser cannot take. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/err.h"
#include "base/str.h"
#include "topofile/topofile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_taken(const char *text, size_t size, int version)
{
	struct err err = { 0 };

	for (size_t i = 0; i < size; i++)
		assert(text[i] == '\n' || (text[i] >= ' ' && text[i] < 0x7f && text[i] != '&'));
	assert(memchr(text, '<', size) && topofile_check(text, size, 3 - version, &err) < 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;

	for (int version = 1; version <= 2; version++) {
		struct err err = { 0 };

		if (topofile_check(text, size, version, &err) == 0)
			check_taken(text, size, version);
		else
			assert(err.code && str_starts(err.msg, "line ") &&
			       str_utf8_valid(err.msg, strlen(err.msg)));
	}
	return 0;
}
