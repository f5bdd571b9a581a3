#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/event.h"
#include "base/log.h"
#include "base/str.h"

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

static void a_message_that_comes_all_the_time_is_left_out_for_a_while(void **state)
{
	(void)state;
	log_limit(3);
	for (int i = 0; i < 100; i++)
		log_info("a", "the container starts pod=%d", i);
	assert_int_equal(got.calls, 4);
	assert_int_equal(got.level, LOG_LEVEL_WARN);
	assert_string_equal(
		got.line,
		"log: lines of one message come too often; the next ones are left out for up to a minute text=\"the container starts\"");
	log_info("a", "another message pod=%d", 1);
	assert_int_equal(got.calls, 5);
	for (int i = 0; i < 10; i++)
		log_debug("a", "of debug pod=%d", i);
	assert_int_equal(got.calls, 15);
	log_limit(0);
	for (int i = 0; i < 10; i++)
		log_info("a", "the container starts pod=%d", i);
	assert_int_equal(got.calls, 25);
}

static void lines_are_counted_from_the_first_one(void **state)
{
	struct log_rate rate = { 0 }, other = { 0 };

	(void)state;
	assert_int_equal(log_rate_count(&rate), 1);
	assert_int_equal(log_rate_count(&rate), 2);
	assert_int_equal(log_rate_count(&other), 1);
	rate.since_ms -= 60000; /* a minute passes */
	assert_int_equal(log_rate_count(&rate), 1);
	assert_int_equal(log_rate_count(&rate), 2);
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

static void what_varies_follows_as_pairs(void **state)
{
	(void)state;
	log_warn("kubelet", "VF is free again vf=%s pod=%s/%s devices=%zu n=%u of=%d ms=%.1f",
		 "0000:18:00.1", "default", "web-0", (size_t)8, 7U, -1, 2.26);
	assert_string_equal(
		got.line,
		"kubelet: VF is free again vf=0000:18:00.1 pod=default/web-0 devices=8 n=7 of=-1 ms=2.3");
	log_info("a", "starts in folder=%.*s decision=%llu size=%ld%%", 3, "abcdef", 12ULL, 5L);
	assert_string_equal(got.line, "a: starts in folder=abc decision=12 size=5%");
	log_info("a", "a = b, --cdi=on READY=1 path=x");
	assert_string_equal(got.line, "a: a = b, --cdi=on READY=1 path=x");
	errno = ENOENT;
	log_info("a", "cannot remove path=%s error=%m", "/x");
	assert_string_equal(got.line,
			    "a: cannot remove path=/x error=\"No such file or directory\"");
}

static void a_pair_without_a_value_is_left_out(void **state)
{
	const char *volatile none = NULL;

	(void)state;
	log_info("a", "b uid=%s pod=%s vf=%s", none, "x", "");
	assert_string_equal(got.line, "a: b pod=x");
}

static void a_value_makes_no_pair_and_no_line_of_its_own(void **state)
{
	(void)state;
	log_info("a", "b pod=%s vf=%s", "x vf=1 \"y\" \\", "a=b");
	assert_string_equal(got.line, "a: b pod=\"x vf=1 \\\"y\\\" \\\\\" vf=\"a=b\"");
	log_info("a", "b pod=%s", "x\x1fvf=1\n");
	assert_string_equal(got.line, "a: b pod=\"x?vf=1?\"");
	log_info("a", "%s", "a sentence with key=value in it");
	assert_string_equal(got.line, "a: a sentence with key=value in it");
}

__attribute__((format(printf, 3, 4))) static void compose(char *ret, size_t size, const char *fmt,
							  ...)
{
	va_list ap;

	va_start(ap, fmt);
	event_compose(ret, size, fmt, ap);
	va_end(ap);
}

static void an_event_can_be_said_elsewhere(void **state)
{
	_cleanup_strbuf_ struct strbuf text = { 0 };
	char event[EVENT_SIZE];

	(void)state;
	compose(event, sizeof(event), "VF is free again vf=%s reason=%s", "0000:18:00.1",
		"its pod is gone");
	event_extend(event, sizeof(event), " resource=%s", "rdma/vf");
	log_event(LOG_LEVEL_INFO, "ledger", event);
	assert_string_equal(
		got.line,
		"ledger: VF is free again vf=0000:18:00.1 reason=\"its pod is gone\" resource=rdma/vf");
	event_text(&text, event);
	assert_string_equal(text.s, got.line + strlen("ledger: "));
}

static void an_event_that_is_cut_keeps_its_form(void **state)
{
	char event[16];

	(void)state;
	for (size_t size = 1; size <= sizeof(event); size++) {
		compose(event, size, "ab pod=%s vf=%s", "d/\xc3\xa4", "1");
		assert_true(strlen(event) < size);
		log_event(LOG_LEVEL_INFO, "a", event);
		assert_int_equal(strncmp(got.line, "a: ab pod=d/\xc3\xa4 vf=1", strlen(got.line)),
				 0);
	}
}

/* What log_warn() and its like write to standard error, read back. */
static void lines_of_json_are_objects(void **state)
{
	char text[512] = "";
	int ends[2], saved;
	ssize_t n;

	(void)state;
	assert_int_equal(pipe(ends), 0);
	saved = dup(STDERR_FILENO);
	dup2(ends[1], STDERR_FILENO);
	log_setup(LOG_LEVEL_INFO, NULL, NULL);
	log_set_format(LOG_FORMAT_JSON);
	log_warn("kubelet", "Allocate refused pod=%s/%s error=%s", "a", "b", "say \"x=1\"");
	log_set_format(LOG_FORMAT_TEXT);
	dup2(saved, STDERR_FILENO);
	close(saved);
	close(ends[1]);
	n = read(ends[0], text, sizeof(text) - 1);
	close(ends[0]);
	assert_true(n > 0);
	assert_int_equal(strncmp(text, "{\"time\":\"2", 10), 0);
	assert_string_equal(
		strstr(text, "Z\",") + 3,
		"\"level\":\"warning\",\"subsystem\":\"kubelet\",\"message\":\"Allocate refused\",\"pod\":\"a/b\",\"error\":\"say \\\"x=1\\\"\"}\n");
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
		cmocka_unit_test_setup(a_message_that_comes_all_the_time_is_left_out_for_a_while,
				       forget),
		cmocka_unit_test(lines_are_counted_from_the_first_one),
		cmocka_unit_test_setup(an_event_is_one_line, forget),
		cmocka_unit_test_setup(a_long_line_is_cut, forget),
		cmocka_unit_test_setup(what_varies_follows_as_pairs, forget),
		cmocka_unit_test_setup(a_pair_without_a_value_is_left_out, forget),
		cmocka_unit_test_setup(a_value_makes_no_pair_and_no_line_of_its_own, forget),
		cmocka_unit_test_setup(an_event_can_be_said_elsewhere, forget),
		cmocka_unit_test_setup(an_event_that_is_cut_keeps_its_form, forget),
		cmocka_unit_test_setup(lines_of_json_are_objects, forget),
		cmocka_unit_test_setup(without_a_sink_lines_go_to_standard_error, forget),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
