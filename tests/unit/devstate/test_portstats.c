/* Which ports are counted, and what of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/str.h"
#include "devstate/devstate.h"
#include "hw/inventory.h"
#include "hw/portstats.h"
#include "support/fixture.h"
#include "support/testarena.h"
#include "sysroot/sysroot.h"

#define DIR "sys/devices/pci0000:00/"
#define NIC(addr, netdev, vfs)                                                                     \
	"l sys/bus/pci/devices/" addr " -> ../../../devices/pci0000:00/" addr "\n"                 \
	"f " DIR addr "/vendor = 0x8086\\n\n"                                                      \
	"f " DIR addr "/device = 0x1592\\n\n"                                                      \
	"f " DIR addr "/class = 0x020000\\n\n"                                                     \
	"f " DIR addr "/sriov_totalvfs = 8\\n\n"                                                   \
	"f " DIR addr "/sriov_numvfs = " vfs "\\n\n"                                               \
	"l " DIR addr "/driver -> ../../../bus/pci/drivers/ice\n"                                  \
	"f " DIR addr "/net/" netdev "/carrier = 1\\n\n"                                           \
	"f " DIR addr "/net/" netdev "/carrier_changes = 5\\n\n"                                   \
	"l sys/class/net/" netdev " -> ../../devices/pci0000:00/" addr "/net/" netdev "\n"

/* Another one that has no VFs is the node's own business. */
static void a_pf_with_vfs_is_counted_without_an_rdma_device(void **state)
{
	struct sysroot *root =
		fixture_text(NIC("0000:00:01.0", "ens1", "2") NIC("0000:00:02.0", "ens2", "0"));
	struct hw_inventory *inv = fixture_discover(root);
	struct hw_port_stats *v;
	char address[BDF_STRLEN];
	size_t n;

	(void)state;
	v = devstate_port_stats(root, inv, arena, &n);
	assert_int_equal(n, 1);
	assert_string_equal(bdf_format(inv->pci[v[0].pci].bdf, address), "0000:00:01.0");
	assert_int_equal(v[0].rdma, -1);
	assert_int_equal(v[0].port, 1);
	assert_int_equal(v[0].carrier_changes, 5);
	hw_inventory_free(inv);
	fixture_close(root);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_pf_with_vfs_is_counted_without_an_rdma_device,
						arena_set_up, arena_tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
