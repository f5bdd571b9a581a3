/* room: hw */
/* Any bytes as vital product data: read as far as they can be, and one sentence; what is read may
 * be printed. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/err.h"
#include "hw/vpd.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_value(const char *value)
{
	size_t n = strnlen(value, VPD_VALUE_MAX);

	assert(n < VPD_VALUE_MAX);
	for (size_t i = 0; i < n; i++)
		assert(value[i] >= 0x20 && value[i] <= 0x7e);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct err err = { 0 };
	struct vpd vpd;

	vpd_parse(data, size, &vpd, &err);
	assert(!err.code == !*err.msg && !strchr(err.msg, '\n'));
	check_value(vpd.name);
	check_value(vpd.part);
	check_value(vpd.serial);
	check_value(vpd.board);
	check_value(vpd.vuid);
	return 0;
}
