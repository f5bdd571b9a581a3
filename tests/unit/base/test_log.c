#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"

static struct {
	enum log_level level;
	char line[2048];
	int calls;
} got;

static void remember(void *arg, enum log_level level, const char *line)
{
	assert_ptr_equal(arg, &got);
	got.level = level;
	snprintf(got.line, sizeof(got.line), "%s", line);
	got.calls++;
}

static int forget(void **state)
{
	(void)state;
	memset(&got, 0, sizeof(got));
	log_setup(LOG_LEVEL_DEBUG, remember, &got);
	return 0;
}

static void a_line_names_its_subsystem(void **state)
{
	(void)state;
	log_warn("pool", "%s: %d VFs", "rdma/vf", 3);
	assert_int_equal(got.level, LOG_LEVEL_WARN);
	assert_string_equal(got.line, "pool: rdma/vf: 3 VFs");
	log_error("a", "b");
	assert_int_equal(got.level, LOG_LEVEL_ERROR);
	log_info("a", "b");
	assert_int_equal(got.level, LOG_LEVEL_INFO);
	log_debug("a", "b");
	assert_int_equal(got.level, LOG_LEVEL_DEBUG);
	assert_int_equal(got.calls, 4);
}

static void lines_above_the_level_are_dropped(void **state)
{
	(void)state;
	log_setup(LOG_LEVEL_WARN, remember, &got);
	log_info("a", "b");
	log_debug("a", "b");
	assert_int_equal(got.calls, 0);
	log_warn("a", "b");
	log_error("a", "b");
	assert_int_equal(got.calls, 2);
}

static void an_event_is_one_line(void **state)
{
	(void)state;
	log_info("a", "name 'x\nerror daemon: forged\x1b[31m'");
	assert_string_equal(got.line, "a: name 'x?error daemon: forged?[31m'");
	log_info("a", "\xc2\x9b"
		      "31m \x9b"
		      "31m \xe2\x80\xae.");
	assert_string_equal(got.line, "a: ??31m ?31m ???.");
}

static void a_long_line_is_cut(void **state)
{
	char text[4000];

	(void)state;
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	log_info("a", "%s", text);
	assert_int_equal(got.calls, 1);
	assert_true(strlen(got.line) > 1000 && strlen(got.line) < 1100);
}

static void without_a_sink_lines_go_to_standard_error(void **state)
{
	char text[256] = "";
	int ends[2], saved;
	ssize_t n;

	(void)state;
	assert_int_equal(pipe(ends), 0);
	saved = dup(STDERR_FILENO);
	dup2(ends[1], STDERR_FILENO);
	log_setup(LOG_LEVEL_INFO, NULL, NULL);
	log_warn("daemon", "hello");
	dup2(saved, STDERR_FILENO);
	close(saved);
	close(ends[1]);
	n = read(ends[0], text, sizeof(text) - 1);
	close(ends[0]);
	assert_true(n > 0);
	assert_non_null(strstr(text, "Z warning daemon: hello\n"));
	assert_true(strchr(text, 'T') == text + strlen("2026-01-01"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_line_names_its_subsystem, forget),
		cmocka_unit_test_setup(lines_above_the_level_are_dropped, forget),
		cmocka_unit_test_setup(an_event_is_one_line, forget),
		cmocka_unit_test_setup(a_long_line_is_cut, forget),
		cmocka_unit_test_setup(without_a_sink_lines_go_to_standard_error, forget),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
