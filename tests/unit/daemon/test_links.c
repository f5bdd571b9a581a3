/* The links of the PFs of pools over time, from the files of a machine. */
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

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "config/config.h"
#include "daemon/links.h"
#include "hw/inventory.h"
#include "pool/node.h"
#include "support/fixture.h"
#include "sysroot/sysroot.h"

#define PF  "0000:3b:00.0"
#define DIR "sys/devices/pci0000:3a/0000:3a:00.0/"
#define FUNCTION(addr)                                                                             \
	"l sys/bus/pci/devices/" addr " -> ../../../devices/pci0000:3a/0000:3a:00.0/" addr "\n"    \
	"f " DIR addr "/vendor = 0x15b3\\n\n"                                                      \
	"f " DIR addr "/device = 0x1021\\n\n"                                                      \
	"f " DIR addr "/class = 0x020700\\n\n"                                                     \
	"l " DIR addr "/driver -> ../../../../bus/pci/drivers/mlx5_core\n"
#define RDMA(addr, name)                                                                           \
	"l sys/class/infiniband/" name " -> ../../devices/pci0000:3a/0000:3a:00.0/" addr           \
	"/infiniband/" name "\n"
#define PORT(addr, name, n)                                                                        \
	"f " DIR addr "/infiniband/" name "/ports/" n "/state = 4: ACTIVE\\n\n"                    \
	"f " DIR addr "/infiniband/" name "/ports/" n "/rate = 400 Gb/sec (4X NDR)\\n\n"           \
	"f " DIR addr "/infiniband/" name "/ports/" n "/counters/link_downed = 0\\n\n"             \
	"f " DIR addr "/infiniband/" name "/ports/" n "/counters/symbol_error = 0\\n\n"

/* The port above the card, and the card: x16 both. */
#define LANES(dir)                                                                                 \
	"f " dir "/max_link_width = 16\\n\n"                                                       \
	"f " dir "/max_link_speed = 32.0 GT/s PCIe\\n\n"
#define SLOT                                                                                       \
	"l sys/bus/pci/devices/0000:3a:00.0 -> ../../../devices/pci0000:3a/0000:3a:00.0\n"         \
	"f sys/devices/pci0000:3a/0000:3a:00.0/vendor = 0x1000\\n\n"                               \
	"f sys/devices/pci0000:3a/0000:3a:00.0/device = 0xc030\\n\n"                               \
	"f sys/devices/pci0000:3a/0000:3a:00.0/class = 0x060400\\n\n" LANES(                       \
		"sys/devices/pci0000:3a/0000:3a:00.0")                                             \
		LANES(DIR PF) "f " DIR PF "/current_link_width = 16\\n\n"                          \
			      "f " DIR PF "/current_link_speed = 32.0 GT/s PCIe\\n\n"

/* One function with two ports, as ConnectX-3 and some InfiniBand cards are, and a VF. */
static const char tree[] =
	FUNCTION(PF) RDMA(PF, "mlx5_0") PORT(PF, "mlx5_0", "1") PORT(PF, "mlx5_0", "2") SLOT
	"f " DIR PF "/sriov_totalvfs = 1\\n\n"
	"f " DIR PF "/sriov_numvfs = 1\\n\n" FUNCTION("0000:3b:00.1") RDMA("0000:3b:00.1", "mlx5_1")
		PORT("0000:3b:00.1", "mlx5_1", "1") "l " DIR "0000:3b:00.1/physfn -> ../" PF "\n"
						    "l " DIR PF "/virtfn0 -> ../0000:3b:00.1\n";

static struct sysroot *root;
static struct config *cfg;
static struct node *node;
static struct links *links;

static void scan(void)
{
	node_unref(node);
	node = node_new(fixture_discover(root), cfg, NULL);
	assert_int_equal(node->pools[0].n_devs, 1);
}

static int set_up(void **state)
{
	(void)state;
	log_setup(LOG_LEVEL_ERROR, NULL, NULL);
	root = fixture_text(tree);
	cfg = config_default();
	node = NULL;
	scan();
	links = links_new(root);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	links_free(links);
	node_unref(node);
	config_free(cfg);
	fixture_close(root);
	log_setup(LOG_LEVEL_INFO, NULL, NULL);
	return 0;
}

static void put(const char *path, const char *text)
{
	_cleanup_free_ char *full = xasprintf("%s/%s", sysroot_path(root), path);
	_cleanup_close_ int fd = open(full, O_WRONLY | O_TRUNC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

static bool check(int at_s)
{
	return links_check(links, node, at_s * INT64_C(1000), at_s * INT64_C(1000) + 7);
}

static const struct node_link *only_link(void)
{
	const struct node_link *v;
	size_t n;

	v = links_degraded(links, &n);
	assert_int_equal(n, 1);
	return v;
}

/* The VFs of a PF may be behind any of its ports. */
static void each_port_of_a_pf_is_judged_and_named(void **state)
{
	const struct node_link *l;

	(void)state;
	assert_false(check(1));
	put("sys/class/infiniband/mlx5_0/ports/2/counters/link_downed", "3\n");
	assert_true(check(31));
	l = only_link();
	assert_string_equal(l->pf, PF);
	assert_int_equal(l->port, 2);
	assert_int_equal(l->trouble, LINK_FLAPS);
	assert_int_equal(l->since_ms, 31007);
	assert_string_equal(l->degraded,
			    "at port 2 goes down too often: at least 3 times in 600 s");
	assert_false(check(61));
	assert_int_equal(only_link()->since_ms, 31007);
}

/* Narrow before we looked first: both ends could do more. What is wrong with the card is wrong with
 * both ports. */
static void a_link_that_was_narrow_from_the_start_is_degraded(void **state)
{
	const struct node_link *v;
	size_t n;

	(void)state;
	put(DIR PF "/current_link_width", "8\n");
	scan();
	assert_false(check(1));
	assert_true(check(31));
	v = links_degraded(links, &n);
	assert_int_equal(n, 2);
	assert_int_equal(v[0].trouble, LINK_SLOW);
	assert_string_equal(v[0].degraded, "at port 1 is slower than it could be: PCIe x8 of x16");
}

/* A slot with fewer lanes stays what it is. */
static void a_link_as_wide_as_its_slot_is_well(void **state)
{
	(void)state;
	put(DIR PF "/current_link_width", "8\n");
	put(DIR "max_link_width", "8\n");
	scan();
	assert_false(check(1));
	assert_false(check(31));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
		TEST(each_port_of_a_pf_is_judged_and_named),
		TEST(a_link_that_was_narrow_from_the_start_is_degraded),
		TEST(a_link_as_wide_as_its_slot_is_well),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
