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
#include "daemon/links-internal.h"
#include "hw/inventory.h"
#include "load/load.h"
#include "pool/node.h"
#include "support/fixture.h"
#include "support/nodes.h"
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
	"f proc/sys/kernel/random/boot_id = 1f0c9a3e-53a5-4b0f-8b61-0d3f6c7f3b11\\n\n"
	"f " DIR PF "/sriov_totalvfs = 1\\n\n"
	"f " DIR PF "/sriov_numvfs = 1\\n\n" FUNCTION("0000:3b:00.1") RDMA("0000:3b:00.1", "mlx5_1")
		PORT("0000:3b:00.1", "mlx5_1", "1") "l " DIR "0000:3b:00.1/physfn -> ../" PF "\n"
						    "l " DIR PF "/virtfn0 -> ../0000:3b:00.1\n";

static struct sysroot *root;
static struct config *cfg;
static struct node *node;
static struct links *links;
static char *dir;

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
	dir = fixture_folder();
	links = links_new(root, dir, 0);
	links_keep(links);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	links_free(links);
	fixture_remove_tree(dir);
	free(dir);
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

#define DOWNED(n) "sys/class/infiniband/mlx5_0/ports/" n "/counters/link_downed"
#define RATE(n)	  "sys/class/infiniband/mlx5_0/ports/" n "/rate"

static void restart(int at_s)
{
	links_free(links);
	links = links_new(root, dir, at_s * INT64_C(1000));
	links_keep(links);
}

static void assert_well(void)
{
	size_t n;

	links_degraded(links, &n);
	assert_int_equal(n, 0);
}

/* Before anything was looked at: the first node tells the kubelet of unhealthy VFs already. */
static void a_restart_knows_which_links_are_degraded_and_since_when(void **state)
{
	(void)state;
	check(1);
	put(DOWNED("2"), "3\n");
	assert_true(check(31));
	restart(40);
	assert_int_equal(only_link()->port, 2);
	assert_int_equal(only_link()->trouble, LINK_FLAPS);
	assert_int_equal(only_link()->since_ms, 31007);
	assert_string_equal(only_link()->degraded,
			    "at port 2 goes down too often: at least 3 times in 600 s");
	assert_false(check(40));
	assert_int_equal(only_link()->since_ms, 31007);
	assert_false(check(630));
	assert_true(check(632)); /* as if there had been no restart */
	assert_well();
	restart(640);
	assert_well();
}

static void what_happened_before_and_during_a_restart_counts(void **state)
{
	(void)state;
	check(1);
	put(DOWNED("1"), "2\n");
	assert_false(check(31));
	restart(40);
	put(DOWNED("1"), "3\n");
	assert_true(check(41));
	assert_int_equal(only_link()->trouble, LINK_FLAPS);
}

static void a_restart_knows_how_fast_a_link_was(void **state)
{
	(void)state;
	check(1);
	put(RATE("1"), "100 Gb/sec (4X EDR)\n");
	scan();
	restart(10);
	assert_false(check(11));
	assert_true(check(41));
	assert_string_equal(only_link()->degraded,
			    "at port 1 is slower than it was: 100 of 400 Gb/s");
}

static void errors_last_for_their_window_after_a_restart(void **state)
{
	(void)state;
	check(1);
	put("sys/class/infiniband/mlx5_0/ports/1/counters/symbol_error", "900\n");
	assert_true(check(31));
	restart(1000);
	assert_false(check(1000));
	assert_int_equal(only_link()->trouble, LINK_ERRORS);
	assert_false(check(1599));
	assert_true(check(1601));
	assert_well();
}

/* Counters and times began anew. */
static void another_start_of_the_machine_knows_nothing(void **state)
{
	(void)state;
	check(1);
	put(DOWNED("1"), "3\n");
	check(31);
	put("proc/sys/kernel/random/boot_id", "7e1a\n");
	restart(40);
	assert_well();
	assert_false(check(41));
	assert_well();
}

static unsigned warnings;

static void count_warnings(void *arg, enum log_level level, const char *line)
{
	(void)arg;
	warnings += level <= LOG_LEVEL_WARN && strstr(line, "links cannot be read") != NULL;
}

static char *links_file(void)
{
	return xasprintf("%s/links.json", dir);
}

static void write_links(const char *text)
{
	_cleanup_free_ char *path = links_file();
	_cleanup_close_ int fd = open(path, O_WRONLY | O_TRUNC | O_CREAT | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

static void a_file_that_is_damaged_is_said_once_and_written_anew(void **state)
{
	static const char *const wrong[] = {
		"",
		"[",
		"7",
		"{}",
		"{\"boot\":\"1f0c9a3e-53a5-4b0f-8b61-0d3f6c7f3b11\"}",
		"{\"boot\":\"1f0c9a3e-53a5-4b0f-8b61-0d3f6c7f3b11\",\"links\":[7]}",
		"{\"boot\":\"1f0c9a3e-53a5-4b0f-8b61-0d3f6c7f3b11\",\"links\":[{\"resource\":\"r\"}]}",
	};

	(void)state;
	log_setup(LOG_LEVEL_WARN, count_warnings, NULL);
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		write_links(wrong[i]);
		warnings = 0;
		restart(40);
		assert_int_equal(warnings, 1);
		assert_well();
		check(41);
		warnings = 0;
		restart(50);
		assert_int_equal(warnings, 0);
	}
}

/* A member that is missing or wrong spoils all of it: half a record is worse than none. */
static void every_member_of_a_link_has_to_be_right(void **state)
{
	static const char *const keys[] = {
		"resource",  "\"pf\"",	 "\"port\"",   "unhealthy",    "trouble",    "since_ms",
		"rate_mbps", "pcie_mts", "pcie_width", "netdev_downs", "port_downs", "flaps_ms"
	};
	_cleanup_free_ char *path = links_file(), *text = NULL;
	size_t len;

	(void)state;
	check(1);
	assert_int_equal(load_file(path, 1 << 20, &text, &len, NULL), 0);
	log_setup(LOG_LEVEL_WARN, count_warnings, NULL);
	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		_cleanup_free_ char *spoilt = xstrdup(text);
		char *at = strstr(spoilt, keys[i]);

		assert_non_null(at);
		at[1] = 'X';
		write_links(spoilt);
		warnings = 0;
		restart(40);
		assert_int_equal(warnings, 1);
	}
}

static void who_waits_for_another_railmated_writes_nothing(void **state)
{
	_cleanup_free_ char *path = links_file();

	(void)state;
	links_free(links);
	links = links_new(root, dir, 0);
	check(1);
	assert_int_equal(access(path, F_OK), -1);
	links_keep(links);
	check(31);
	assert_int_equal(access(path, F_OK), 0);
}

/* As at the first start on a node: no container has had a file yet. */
static void a_directory_that_is_not_there_is_made(void **state)
{
	_cleanup_free_ char *path = links_file();

	(void)state;
	assert_int_equal(rmdir(dir), 0);
	check(1);
	assert_int_equal(access(path, F_OK), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
		TEST(each_port_of_a_pf_is_judged_and_named),
		TEST(a_link_that_was_narrow_from_the_start_is_degraded),
		TEST(a_link_as_wide_as_its_slot_is_well),
		TEST(a_restart_knows_which_links_are_degraded_and_since_when),
		TEST(what_happened_before_and_during_a_restart_counts),
		TEST(a_restart_knows_how_fast_a_link_was),
		TEST(errors_last_for_their_window_after_a_restart),
		TEST(another_start_of_the_machine_knows_nothing),
		TEST(a_file_that_is_damaged_is_said_once_and_written_anew),
		TEST(every_member_of_a_link_has_to_be_right),
		TEST(who_waits_for_another_railmated_writes_nothing),
		TEST(a_directory_that_is_not_there_is_made),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
