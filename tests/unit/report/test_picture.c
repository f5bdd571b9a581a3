/* When the page's picture is made anew, and what is shown meanwhile. */
#include <pthread.h>
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
#include <uv.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "load/configfiles.h"
#include "report/picture.h"

static const struct config_files no_files = { .dir = "/nowhere" };

struct lab {
	uv_loop_t loop;
	uv_async_t looked;
	char dir[64], program[96], runs[96];
	struct picture *picture;
	struct arena *arena;
	unsigned made;

	uint64_t state; /* of the look */
	const char *text, *failure;
};

static void on_made(void *ctx)
{
	struct lab *lab = ctx;

	lab->made++;
}

static void on_looked(uv_async_t *looked)
{
	uv_stop(looked->loop);
}

static int set_up(void **state)
{
	struct lab *lab = xcalloc(1, sizeof(*lab));
	const struct picture_env env = { .loop = &lab->loop,
					 .machine = { "/machine", &no_files },
					 .control_socket = "/a.sock",
					 .program = lab->program,
					 .made = on_made,
					 .ctx = lab };

	uv_loop_init(&lab->loop);
	uv_async_init(&lab->loop, &lab->looked, on_looked);
	strcpy(lab->dir, "/tmp/railmate-picture-XXXXXX");
	assert_non_null(mkdtemp(lab->dir));
	snprintf(lab->program, sizeof(lab->program), "%s/railmatectl", lab->dir);
	snprintf(lab->runs, sizeof(lab->runs), "%s/runs", lab->dir);
	lab->arena = arena_new(4096);
	lab->picture = picture_new(&env);
	*state = lab;
	return 0;
}

static int tear_down(void **state)
{
	struct lab *lab = *state;

	picture_close(lab->picture);
	uv_close((uv_handle_t *)&lab->looked, NULL);
	uv_run(&lab->loop, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(&lab->loop), 0);
	picture_free(lab->picture);
	arena_free(lab->arena);
	unlink(lab->program);
	unlink(lab->runs);
	assert_int_equal(rmdir(lab->dir), 0);
	free(lab);
	return 0;
}

static void write_script(struct lab *lab, const char *script)
{
	FILE *file = fopen(lab->program, "w");

	assert_non_null(file);
	fprintf(file, "#!/bin/sh\necho run >> %s\n%s\n", lab->runs, script);
	fclose(file);
	assert_int_equal(chmod(lab->program, 0755), 0);
}

static void *look_at_it(void *arg)
{
	struct lab *lab = arg;

	lab->text = picture_show(lab->picture, lab->state, lab->arena, &lab->failure);
	uv_async_send(&lab->looked);
	return NULL;
}

/* As the page's thread does. */
static void look(struct lab *lab, uint64_t at)
{
	pthread_t thread;

	lab->state = at;
	assert_int_equal(pthread_create(&thread, NULL, look_at_it, lab), 0);
	uv_run(&lab->loop, UV_RUN_DEFAULT);
	pthread_join(thread, NULL);
}

/* The page asks every few seconds. An answer may be older than the last run's end. */
static void look_until(struct lab *lab, uint64_t at, const char *text, const char *failure)
{
	int64_t end_ms = clock_mono_ms() + 20000;

	do
		look(lab, at);
	while ((!str_eq(lab->text, text) || !str_eq(lab->failure, failure)) &&
	       clock_mono_ms() < end_ms);
	if (text)
		assert_string_equal(lab->text, text);
	if (failure)
		assert_string_equal(lab->failure, failure);
	assert_true(str_eq(lab->text, text) && str_eq(lab->failure, failure));
}

static unsigned count_runs(const struct lab *lab)
{
	struct stat st;

	return stat(lab->runs, &st) < 0 ? 0 : (unsigned)(st.st_size / 4);
}

static void it_is_made_once_for_what_is_known(void **state)
{
	struct lab *lab = *state;
	int64_t began_ms = clock_mono_ms();

	write_script(lab, "echo \"<svg $*>\"");
	look_until(lab, 7,
		   "<svg topo --svg --control-socket /a.sock --state-dir none --root /machine>\n",
		   NULL);
	assert_int_equal(count_runs(lab), 1);
	write_script(lab, "echo '<svg 2>'");
	look(lab, 8); /* too early for another one */
	assert_true(str_starts(lab->text, "<svg topo"));
	look_until(lab, 8, "<svg 2>\n", NULL);
	assert_int_equal(count_runs(lab), 2);
	assert_true(clock_mono_ms() - began_ms >= 1000);
}

static void a_failure_is_shown_and_it_is_tried_again(void **state)
{
	struct lab *lab = *state;

	write_script(lab, "echo no such machine >&2; exit 1");
	look_until(lab, 7, NULL, "railmatectl topo ended with status 1: no such machine");
	write_script(lab, "echo fine");
	look_until(lab, 7, NULL, "railmatectl topo printed no picture");
	write_script(lab, "kill -SEGV $$");
	look_until(lab, 7, NULL, "railmatectl topo was ended by signal 11");
	write_script(lab, "echo '<svg >'");
	look_until(lab, 7, "<svg >\n", NULL);
}

static void a_page_does_not_wait_long_for_it(void **state)
{
	struct lab *lab = *state;

	write_script(lab, "exec sleep 60");
	look(lab, 7);
	assert_null(lab->text);
	assert_null(lab->failure); /* it is being made */
	assert_int_equal(lab->made, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(it_is_made_once_for_what_is_known, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_failure_is_shown_and_it_is_tried_again, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_page_does_not_wait_long_for_it, set_up,
						tear_down),
	};

	return cmocka_run_group_tests_name("picture", tests, NULL, NULL);
}
