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
#include "daemon/topofile-internal.h"
#include "hw/inventory.h"
#include "pool/node.h"
#include "support/fixture.h"
#include "support/nodes.h"
#include "support/synth.h"

static struct strbuf lines;

static void remember(void *arg, enum log_level level, const char *line)
{
	(void)arg;
	(void)level;
	strbuf_printf(&lines, "%s\n", line);
}

static bool said(const char *words)
{
	bool ret = strstr(strbuf_str(&lines), words) != NULL;

	strbuf_done(&lines);
	lines = (struct strbuf)STRBUF_INIT;
	return ret;
}

static int setup(void **state)
{
	*state = fixture_folder();
	log_setup(LOG_LEVEL_DEBUG, remember, NULL);
	return 0;
}

static int teardown(void **state)
{
	log_setup(LOG_LEVEL_INFO, NULL, NULL);
	fixture_remove_tree(*state);
	free(*state);
	strbuf_done(&lines);
	lines = (struct strbuf)STRBUF_INIT;
	return 0;
}

static struct node *node_that_wants(const char *line, enum topology_file want, unsigned profiles,
				    struct config **cfg)
{
	struct pool_config *pool;

	*cfg = config_default();
	pool = (struct pool_config *)(*cfg)->pools; /* of the arena, not constant there */
	pool->topology_file = want;
	pool->profiles = profiles;
	return node_new(synth_inventory(line), *cfg, NULL);
}

#define MACHINE "numa:2 switch:1 gpu:1 pf:1 vf:2"

static void keep(const char *dir, const char *line, enum topology_file want, unsigned profiles)
{
	struct config *cfg;
	struct node *node = node_that_wants(line, want, profiles, &cfg);

	topofile_keep(dir, node);
	node_unref(node);
	config_free(cfg);
}

static bool is_there(const char *dir, const char *name, struct stat *st)
{
	_cleanup_free_ char *path = xasprintf("%s/%s", dir, name);

	return stat(path, st) == 0;
}

static void the_file_comes_and_goes_with_the_wish(void **state)
{
	_cleanup_free_ char *dir = xasprintf("%s/run", (char *)*state);
	struct stat st;

	keep(dir, MACHINE, TOPOLOGY_FILE_AUTO, PROFILE_NCCL);
	assert_false(is_there(dir, "", &st)); /* nothing is made for nothing */
	keep(dir, MACHINE, TOPOLOGY_FILE_ALWAYS, PROFILE_NCCL);
	assert_true(is_there(dir, "topology.xml", &st));
	assert_int_equal(st.st_mode & 07777, 0644);
	assert_false(is_there(dir, "topology-rccl.xml", &st));
	assert_false(is_there(dir, "topology.xml.tmp", &st));
	keep(dir, MACHINE, TOPOLOGY_FILE_ALWAYS, PROFILE_RCCL);
	assert_true(is_there(dir, "topology-rccl.xml", &st));
	assert_false(is_there(dir, "topology.xml", &st));
	assert_true(said("the topology file is not needed any more path="));
	keep(dir, MACHINE, TOPOLOGY_FILE_NEVER, PROFILE_NCCL);
	assert_false(is_there(dir, "topology-rccl.xml", &st));
}

static void the_same_node_leaves_the_file_alone(void **state)
{
	struct stat before, after;

	keep(*state, MACHINE, TOPOLOGY_FILE_ALWAYS, PROFILE_NCCL);
	assert_true(is_there(*state, "topology.xml", &before));
	keep(*state, MACHINE, TOPOLOGY_FILE_ALWAYS, PROFILE_NCCL);
	assert_true(is_there(*state, "topology.xml", &after));
	assert_int_equal(before.st_ino, after.st_ino);
	keep(*state, "numa:2 switch:1 gpu:2 pf:1 vf:2", TOPOLOGY_FILE_ALWAYS, PROFILE_NCCL);
	assert_true(is_there(*state, "topology.xml", &after));
	assert_int_not_equal(
		before.st_ino,
		after.st_ino); /* renamed over it: who had it open or linked keeps it whole */
}

static void a_node_that_cannot_be_told_takes_the_old_file_away(void **state)
{
	struct stat st;

	keep(*state, MACHINE, TOPOLOGY_FILE_ALWAYS, PROFILE_NCCL);
	keep(*state, "numa:2 root:4 switch:8 gpu:2 pf:2 vf:1", TOPOLOGY_FILE_ALWAYS, PROFILE_NCCL);
	assert_false(is_there(*state, "topology.xml", &st));
	assert_true(said("too many GPUs, switches and NICs"));
}

static void a_folder_that_cannot_be_written_is_said(void **state)
{
	_cleanup_free_ char *file = xasprintf("%s/file", (char *)*state);
	_cleanup_close_ int fd = open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	keep(file, MACHINE, TOPOLOGY_FILE_ALWAYS, PROFILE_NCCL);
	assert_true(said("file/topology.xml"));
	keep(NULL, MACHINE, TOPOLOGY_FILE_ALWAYS, PROFILE_NCCL); /* no run directory: nothing */
	assert_false(said("topology"));
}

static void a_pool_without_devices_wants_nothing(void **state)
{
	struct stat st;

	keep(*state, "numa:1 switch:1 gpu:1 pf:1", TOPOLOGY_FILE_ALWAYS, PROFILE_NCCL);
	assert_false(is_there(*state, "topology.xml", &st));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_file_comes_and_goes_with_the_wish, setup,
						teardown),
		cmocka_unit_test_setup_teardown(the_same_node_leaves_the_file_alone, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_node_that_cannot_be_told_takes_the_old_file_away,
						setup, teardown),
		cmocka_unit_test_setup_teardown(a_folder_that_cannot_be_written_is_said, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_pool_without_devices_wants_nothing, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
