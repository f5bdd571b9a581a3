/* A link that was lost: its PF is looked at, and nothing else. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/str.h"
#include "discover/discover.h"
#include "hw/bdf.h"
#include "hw/inventory.h"
#include "support/fixture.h"
#include "sysroot/sysroot.h"

#define DIR "sys/devices/pci0000:00/"
#define NIC(addr, device, netdev, rdma)                                                            \
	"l sys/bus/pci/devices/" addr " -> ../../../devices/pci0000:00/" addr "\n"                 \
	"f " DIR addr "/vendor = 0x15b3\\n\n"                                                      \
	"f " DIR addr "/device = " device "\\n\n"                                                  \
	"f " DIR addr "/class = 0x020000\\n\n"                                                     \
	"l " DIR addr "/driver -> ../../../bus/pci/drivers/mlx5_core\n"                            \
	"f " DIR addr "/net/" netdev "/carrier = 1\\n\n"                                           \
	"f " DIR addr "/net/" netdev "/type = 1\\n\n"                                              \
	"f " DIR addr "/infiniband/" rdma "/ports/1/state = 4: ACTIVE\\n\n"                        \
	"f " DIR addr "/infiniband/" rdma "/ports/1/phys_state = 5: LinkUp\\n\n"                   \
	"f " DIR addr "/infiniband/" rdma "/ports/1/link_layer = Ethernet\\n\n"                    \
	"l sys/class/net/" netdev " -> ../../devices/pci0000:00/" addr "/net/" netdev "\n"         \
	"l sys/class/infiniband/" rdma " -> ../../devices/pci0000:00/" addr "/infiniband/" rdma    \
	"\n"
#define PF0 "0000:00:01.0"
#define PF1 "0000:00:02.0"

static struct sysroot *root;
static struct hw_inventory *before;
static int pf0, pf1;

static int find(const char *address)
{
	struct bdf bdf;

	assert_int_equal(bdf_parse(address, &bdf), 0);
	return hw_find_pci(before, bdf);
}

static int set_up(void **state)
{
	(void)state;
	root = fixture_text(NIC(PF0, "0x1021", "ib0", "mlx5_0")
				    NIC(PF1, "0x1021", "ib1", "mlx5_1"));
	before = fixture_discover(root);
	pf0 = find(PF0);
	pf1 = find(PF1);
	assert_int_equal(before->pci[pf0].carrier, 1);
	assert_string_equal(before->rdma[hw_find_rdma(before, pf1)].ports[0].state, "ACTIVE");
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	hw_inventory_free(before);
	fixture_close(root);
	return 0;
}

static void put(const char *path, const char *text)
{
	_cleanup_free_ char *full = xasprintf("%s/%s", sysroot_path(root), path);
	_cleanup_close_ int fd = open(full, O_WRONLY | O_TRUNC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

static void rename_away(const char *path)
{
	_cleanup_free_ char *from = xasprintf("%s/%s", sysroot_path(root), path);
	_cleanup_free_ char *to = xasprintf("%s.away", from);

	assert_int_equal(rename(from, to), 0);
}

static void a_lost_link_is_seen_and_the_rest_stays(void **state)
{
	struct hw_inventory *now;
	const struct hw_port *port;

	(void)state;
	put(DIR PF1 "/net/ib1/carrier", "0\n");
	put(DIR PF1 "/infiniband/mlx5_1/ports/1/state", "1: DOWN\n");
	now = discover_links_again(root, before, &pf1, 1);
	assert_non_null(now);
	port = &now->rdma[hw_find_rdma(now, pf1)].ports[0];
	assert_int_equal(now->pci[pf1].carrier, 0);
	assert_string_equal(port->state, "DOWN");
	assert_string_equal(port->phys_state, "LinkUp");
	assert_int_equal(now->pci[pf0].carrier, 1);
	assert_string_equal(now->rdma[hw_find_rdma(now, pf0)].ports[0].state, "ACTIVE");
	assert_int_equal(before->pci[pf1].carrier, 1);
	assert_string_equal(before->rdma[hw_find_rdma(before, pf1)].ports[0].state, "ACTIVE");
	hw_inventory_free(now);
}

/* What it does not need is not there any more. */
static void nothing_but_the_link_is_read(void **state)
{
	struct hw_inventory *now;

	(void)state;
	put(DIR PF1 "/net/ib1/carrier", "0\n");
	rename_away("sys/bus");
	rename_away(DIR PF0);
	rename_away(DIR PF1 "/vendor");
	rename_away("sys/class/net/ib0");
	rename_away("sys/class/infiniband/mlx5_0");
	now = discover_links_again(root, before, &pf1, 1);
	assert_non_null(now);
	assert_int_equal(now->pci[pf1].carrier, 0);
	now->pci[pf1].carrier = 1;
	assert_true(hw_inventory_same(now, before));
	hw_inventory_free(now);
}

static void it_outlives_what_it_was_made_of(void **state)
{
	struct hw_inventory *now = discover_links_again(root, before, &pf0, 1), *again;

	(void)state;
	assert_non_null(now);
	hw_inventory_free(before);
	before = now;
	again = fixture_discover(root);
	assert_true(hw_inventory_same(now, again));
	hw_inventory_free(again);
}

static void an_interface_that_is_gone_takes_a_scan(void **state)
{
	(void)state;
	rename_away("sys/class/net/ib1");
	assert_null(discover_links_again(root, before, &pf1, 1));
}

#define ON_MACHINE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_MACHINE(a_lost_link_is_seen_and_the_rest_stays),
		ON_MACHINE(nothing_but_the_link_is_read),
		ON_MACHINE(it_outlives_what_it_was_made_of),
		ON_MACHINE(an_interface_that_is_gone_takes_a_scan),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
