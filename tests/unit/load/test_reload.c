/* What changes in the directory of the configuration is found by itself: nobody sends a signal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uv.h>

#include <cmocka.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "config/config.h"
#include "load/configfiles.h"
#include "load/reload.h"
#include "support/fixture.h"

#define PATIENCE_MS 60000

static char *dir;
static uv_loop_t loop;
static uv_timer_t patience;
static struct reload *reload;
static struct config_files files;
static char adopted[64]; /* the first pool of the newest configuration */

static const char *path_of(const char *name)
{
	static char path[256];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

static void put(const char *name, const char *pool)
{
	FILE *f = fopen(path_of(name), "we");

	assert_non_null(f);
	fprintf(f, "{\"resourceList\": [{\"resourceName\": \"%s\"}]}", pool);
	assert_int_equal(fclose(f), 0);
}

static void on_config(void *arg, struct config *cfg)
{
	(void)arg;
	snprintf(adopted, sizeof(adopted), "%s", cfg->pools[0].resource);
	config_free(cfg);
	reload_adopted(reload);
}

static void on_impatient(uv_timer_t *timer)
{
	(void)timer;
	fail_msg("%s is in use", adopted);
}

static void await_pool(const char *resource)
{
	uv_timer_start(&patience, on_impatient, PATIENCE_MS, 0);
	while (!str_eq(adopted, resource))
		uv_run(&loop, UV_RUN_ONCE);
	uv_timer_stop(&patience);
}

static void await_refusal(void)
{
	uv_timer_start(&patience, on_impatient, PATIENCE_MS, 0);
	while (!reload_state(reload)->error)
		uv_run(&loop, UV_RUN_ONCE);
	uv_timer_stop(&patience);
}

static void begin(void)
{
	_cleanup_strbuf_ struct strbuf also = STRBUF_INIT;
	struct config_text text = { 0 };
	struct config *cfg = NULL;

	configfiles_read(&files, &text);
	assert_int_equal(configfiles_parse(&files, &text, &cfg, &also, NULL), 0);
	reload = reload_new(&loop, &files, &text, cfg, on_config, NULL);
	config_free(cfg);
}

static int set_up(void **state)
{
	(void)state;
	log_setup(LOG_LEVEL_ERROR, NULL, NULL);
	dir = fixture_folder();
	files = (struct config_files) { .dir = dir, .node = "node-7", .prefix = "rdma" };
	adopted[0] = '\0';
	uv_loop_init(&loop);
	uv_timer_init(&loop, &patience);
	return 0;
}

static void close_handle(uv_handle_t *handle, void *arg)
{
	(void)arg;
	uv_close(handle, NULL);
}

static int tear_down(void **state)
{
	(void)state;
	uv_walk(&loop, close_handle, NULL);
	uv_run(&loop, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(&loop), 0);
	reload_free(reload);
	fixture_remove_tree(dir);
	free(dir);
	log_setup(LOG_LEVEL_INFO, NULL, NULL);
	return 0;
}

/* As sriov-network-operator writes them, when it has seen the node. */
static void the_nodes_own_file_takes_over_when_it_comes(void **state)
{
	(void)state;
	put("config.json", "all");
	begin();
	put("node-7", "own");
	await_pool("rdma/own");
	put("node-7", "other");
	await_pool("rdma/other");
	unlink(path_of("node-7"));
	await_pool("rdma/all");
	assert_int_equal(reload_state(reload)->generation, 4);
}

/* A ConfigMap as the kubelet's atomic writer changes it: the names in its directory stay. */
static void the_data_of_a_configmap_are_swapped(void **state)
{
	_cleanup_free_ char *next = xasprintf("%s/..data_tmp", dir);

	(void)state;
	mkdir(path_of("..1"), 0755);
	put("..1/config.json", "first");
	assert_int_equal(symlink("..1", path_of("..data")), 0);
	assert_int_equal(symlink("..data/config.json", path_of("config.json")), 0);
	begin();
	mkdir(path_of("..2"), 0755);
	put("..2/config.json", "second");
	assert_int_equal(symlink("..2", next), 0);
	assert_int_equal(rename(next, path_of("..data")), 0);
	await_pool("rdma/second");
	assert_int_equal(reload_state(reload)->generation, 2);
}

static void what_is_wrong_is_refused_until_it_is_mended(void **state)
{
	(void)state;
	put("config.json", "first");
	begin();
	put("node-7", "no name\\\"");
	await_refusal();
	assert_string_equal(adopted, "");
	assert_int_equal(reload_state(reload)->generation, 1);
	put("node-7", "own");
	await_pool("rdma/own");
	assert_null(reload_state(reload)->error);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
		TEST(the_nodes_own_file_takes_over_when_it_comes),
		TEST(the_data_of_a_configmap_are_swapped),
		TEST(what_is_wrong_is_refused_until_it_is_mended),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
