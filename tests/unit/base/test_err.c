#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/str.h"

static void set_keeps_code_and_sentence(void **state)
{
	struct err err = { 0 };

	(void)state;
	assert_int_equal(err_set(&err, ENOENT, "%s: no such VF", "0000:3b:00.2"), -ENOENT);
	assert_int_equal(err.code, ENOENT);
	assert_string_equal(err.msg, "0000:3b:00.2: no such VF");
}

static void sys_appends_the_reason_of_errno(void **state)
{
	struct err err = { 0 };

	(void)state;
	errno = EACCES;
	assert_int_equal(err_sys(&err, "open %s", "x"), -EACCES);
	assert_string_equal(err.msg, "open x: Permission denied");
	errno = 0;
	assert_int_equal(err_sys(&err, "odd"), -EIO);
}

static void wrap_puts_context_before(void **state)
{
	struct err err = { 0 };

	(void)state;
	err_set(&err, EINVAL, "inner");
	assert_int_equal(err_wrap(&err, "middle %d", 1), -EINVAL);
	assert_int_equal(err_wrap(&err, "outer"), -EINVAL);
	assert_string_equal(err.msg, "outer: middle 1: inner");
}

static void wrap_of_an_unset_err_is_no_success(void **state)
{
	struct err err = { 0 };

	(void)state;
	assert_int_equal(err_wrap(&err, "scan"), -EIO);
	assert_int_equal(err.code, EIO);
	assert_string_equal(err.msg, "scan: no reason given");
}

static void null_is_allowed(void **state)
{
	(void)state;
	assert_int_equal(err_set(NULL, EBUSY, "x"), -EBUSY);
	errno = ENOSPC;
	assert_int_equal(err_sys(NULL, "x"), -ENOSPC);
	assert_true(err_wrap(NULL, "x") < 0);
}

/* "a" moves the three-byte characters against the end of the buffer. */
static void a_long_sentence_is_cut_between_characters(void **state)
{
	char euros[3 * 200 + 1];
	struct err err;

	(void)state;
	for (size_t i = 0; i < sizeof(euros) - 1; i += 3)
		memcpy(euros + i, "\xe2\x82\xac", 3);
	euros[sizeof(euros) - 1] = '\0';
	for (int shift = 0; shift < 3; shift++) {
		err = (struct err) { 0 };
		err_set(&err, EINVAL, "%.*s%s", shift, "aa", euros);
		assert_true(str_utf8_valid(err.msg, strlen(err.msg)));
		assert_true(strlen(err.msg) > sizeof(err.msg) - 4);
		err_wrap(&err, "b");
		assert_true(str_utf8_valid(err.msg, strlen(err.msg)));
		errno = EIO;
		err_sys(&err, "%.*s%s", shift, "aa", euros);
		assert_true(str_utf8_valid(err.msg, strlen(err.msg)));
	}
}

static void a_sentence_is_printable(void **state)
{
	struct err err = { 0 };

	(void)state;
	err_set(&err, EINVAL, "%s", "a\x1b[2J\n\xc2\x9b.");
	assert_string_equal(err.msg, "a?[2J???.");
	err_wrap(&err, "\a");
	assert_string_equal(err.msg, "?: a?[2J???.");
	errno = EIO;
	err_sys(&err, "\xe2\x80\xae");
	assert_string_equal(err.msg, "???: Input/output error");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(set_keeps_code_and_sentence),
		cmocka_unit_test(sys_appends_the_reason_of_errno),
		cmocka_unit_test(wrap_puts_context_before),
		cmocka_unit_test(wrap_of_an_unset_err_is_no_success),
		cmocka_unit_test(null_is_allowed),
		cmocka_unit_test(a_long_sentence_is_cut_between_characters),
		cmocka_unit_test(a_sentence_is_printable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
