/* What a scan reads only where a pool asks for it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "config/config.h"
#include "load/load.h"
#include "pool/node.h"
#include "support/fixture.h"

#define VF "sys/bus/pci/devices/0000:3b:00."
#define FN(n, index)                                                                               \
	"f " VF n "/vendor = 0x15b3\nf " VF n "/device = 0x101e\nf " VF n                          \
	"/class = 0x020000\nf " VF n "/acpi_index = " index "\nl " VF n                            \
	"/physfn -> ../0000:3a:00.0\nl " VF n "/driver -> ../drivers/mlx5_core\n"

/* How many of two VFs, whose ACPI indexes are 7 and damaged, a pool with such a selector has. */
static size_t devices_of(const char *selector)
{
	struct sysroot *root = fixture_text(FN("1", "7\\n") FN("2", "seven\\n"));
	char text[256];
	struct config *cfg = NULL;
	struct node *node = NULL;
	size_t n;

	snprintf(text, sizeof(text),
		 "{\"resourceList\": [{\"resourceName\": \"vf\", \"selectors\": {%s}}]}", selector);
	assert_int_equal(config_parse(text, strlen(text), "c", NULL, &cfg, NULL, NULL), 0);
	assert_int_equal(load_node(root, cfg, NULL, &node, NULL), 0);
	n = node->pools[0].n_devs;
	node_unref(node);
	config_free(cfg);
	fixture_close(root);
	return n;
}

static void acpi_indexes_are_read_for_a_pool_that_selects_by_them(void **state)
{
	(void)state;
	assert_int_equal(devices_of("\"acpiIndexes\": [\"7\"]"), 1);
	assert_int_equal(devices_of("\"acpiIndexes\": [\"8\"]"), 0);
	assert_int_equal(devices_of("\"vendors\": [\"15b3\"]"), 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(acpi_indexes_are_read_for_a_pool_that_selects_by_them),
	};

	return cmocka_run_group_tests_name("load", tests, NULL, NULL);
}
