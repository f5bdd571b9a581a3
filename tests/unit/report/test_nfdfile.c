/* What node-feature-discovery is told of a node. */
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
#include "config/config.h"
#include "load/load.h"
#include "pool/node.h"
#include "report/nfdfile.h"
#include "support/fixture.h"

static struct node *node_of(const char *machine, const char *text)
{
	_cleanup_free_ char *path = xasprintf("%s/%s/host.tree", FIXTURES, machine);
	struct sysroot *root = fixture_open(path);
	struct config *cfg = NULL;
	struct node *node = NULL;

	if (text)
		assert_int_equal(config_parse(text, strlen(text), "c", "rdma", &cfg, NULL, NULL),
				 0);
	else
		cfg = config_default();
	assert_int_equal(load_node(root, cfg, NULL, &node, NULL), 0);
	config_free(cfg);
	fixture_close(root);
	return node;
}

static void check(const char *machine, const char *text, const char *expected)
{
	char path[] = "/tmp/railmate-nfd-XXXXXX";
	_cleanup_free_ char *lines = NULL;
	struct node *node = node_of(machine, text);
	int fd = mkstemp(path);
	size_t len;

	assert_true(fd >= 0);
	close(fd);
	nfdfile_keep(path, node, STATUS_FOUND_WARN);
	if (expected)
		assert_int_equal(load_file(path, 4096, &lines, &len, NULL), 0);
	else
		assert_int_equal(access(path, F_OK), -1);
	assert_string_equal(expected ? lines : "", expected ? expected : "");
	unlink(path);
	node_unref(node);
}

static void machines_are_described(void **state)
{
	(void)state;
	check("hgx-h100", NULL,
	      "railmate.nics=8\nrailmate.rails=8\nrailmate.gbps=400\nrailmate.fabric=infiniband\n"
	      "railmate.affinity=PIX\nrailmate.driver=mlx5_core\nrailmate.doctor=warn\n"
	      "railmate.pool.rdma_vf=true\n");
	check("odd-empty", NULL, NULL); /* no file */
}

static void pools_have_a_label_each_unless_they_are_empty(void **state)
{
	(void)state;
	check("hgx-h100",
	      "{\"resourceList\": [{\"resourceName\": \"a\", \"selectors\": {\"pfNames\": [\"ibp24s0\"]}},\n"
	      "{\"resourceName\": \"none\", \"selectors\": {\"pfNames\": [\"eth77\"]}},\n"
	      "{\"resourceName\": \"b\", \"selectors\": {\"pfNames\": [\"ibp154s0\"]}}]}",
	      "railmate.nics=2\nrailmate.rails=2\nrailmate.gbps=400\nrailmate.fabric=infiniband\n"
	      "railmate.affinity=NODE\nrailmate.driver=mlx5_core\nrailmate.doctor=warn\n"
	      "railmate.pool.rdma_a=true\n"
	      "railmate.pool.rdma_b=true\n");
}

static void the_file_follows_the_node_and_goes_when_there_is_nothing(void **state)
{
	char dir[] = "/tmp/railmate-nfd-XXXXXX", path[64];
	struct node *node = node_of("hgx-h100", NULL), *empty = node_of("odd-empty", NULL);
	struct stat first, second;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/railmate", dir);
	nfdfile_keep(path, node, STATUS_FOUND_PASS);
	assert_int_equal(stat(path, &first), 0);
	assert_int_equal(first.st_mode & 0777, 0644);
	nfdfile_keep(path, node, STATUS_FOUND_PASS);
	assert_int_equal(stat(path, &second), 0);
	assert_int_equal(first.st_ino, second.st_ino); /* it was right already */
	nfdfile_keep(path, empty, STATUS_FOUND_PASS);
	assert_true(stat(path, &first) < 0);
	nfdfile_keep(path, empty, STATUS_FOUND_PASS);
	nfdfile_keep(NULL, node, STATUS_FOUND_PASS);
	assert_int_equal(rmdir(dir), 0); /* and nothing else was left in it */
	node_unref(node);
	node_unref(empty);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(machines_are_described),
		cmocka_unit_test(pools_have_a_label_each_unless_they_are_empty),
		cmocka_unit_test(the_file_follows_the_node_and_goes_when_there_is_nothing),
	};

	return cmocka_run_group_tests_name("nfdfile", tests, NULL, NULL);
}
