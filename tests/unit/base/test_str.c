#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/str.h"

static void a_buffer_grows_and_ends_with_nul(void **state)
{
	_cleanup_strbuf_ struct strbuf b = STRBUF_INIT;
	_cleanup_free_ char *taken = NULL;

	(void)state;
	assert_string_equal(strbuf_str(&b), "");
	for (int i = 0; i < 1000; i++)
		strbuf_printf(&b, "%d,", i % 10);
	assert_int_equal(b.len, 2000);
	assert_int_equal(strlen(b.s), 2000);
	strbuf_done(&b);
	strbuf_puts(&b, "ab");
	strbuf_putc(&b, 'c');
	strbuf_add(&b, "\0d", 2);
	assert_int_equal(b.len, 5);
	assert_memory_equal(b.s, "abc\0d", 6);
	taken = strbuf_steal(&b);
	assert_string_equal(taken, "abc");
	assert_int_equal(b.len, 0);
	assert_string_equal(strbuf_str(&b), "");
}

static void stealing_an_empty_buffer_gives_an_empty_string(void **state)
{
	struct strbuf b = STRBUF_INIT;
	_cleanup_free_ char *s = strbuf_steal(&b);

	(void)state;
	assert_string_equal(s, "");
}

static void printf_fits_whatever_room_is_left(void **state)
{
	char word[400];

	(void)state;
	memset(word, 'x', sizeof(word));
	for (int len = 0; len < (int)sizeof(word); len++) {
		_cleanup_strbuf_ struct strbuf b = STRBUF_INIT;

		strbuf_puts(&b, "<");
		strbuf_printf(&b, "%.*s>", len, word);
		assert_int_equal(b.len, len + 2);
		assert_int_equal(strlen(b.s), len + 2);
		assert_int_equal(b.s[len + 1], '>');
	}
}

static void writes_ints_to_the_limit(void **state)
{
	_cleanup_strbuf_ struct strbuf b = STRBUF_INIT;

	(void)state;
	strbuf_put_int(&b, 0);
	strbuf_putc(&b, ' ');
	strbuf_put_int(&b, -10);
	strbuf_putc(&b, ' ');
	strbuf_put_int(&b, INT64_MAX);
	strbuf_putc(&b, ' ');
	strbuf_put_int(&b, INT64_MIN);
	assert_string_equal(b.s, "0 -10 9223372036854775807 -9223372036854775808");
}

static void numbers_are_read_whole_or_not_at_all(void **state)
{
	static const struct {
		const char *text;
		int base;
		uint64_t max, value;
		int r;
	} rows[] = {
		{ "0", 10, 10, 0, 0 },
		{ "10", 10, 10, 10, 0 },
		{ "11", 10, 10, 0, -EINVAL },
		{ "ff", 16, 255, 255, 0 },
		{ "0xFF", 16, 255, 255, 0 },
		{ "18446744073709551615", 10, UINT64_MAX, UINT64_MAX, 0 },
		{ "18446744073709551616", 10, UINT64_MAX, 0, -EINVAL },
		{ "", 10, 10, 0, -EINVAL },
		{ " 1", 10, 10, 0, -EINVAL },
		{ "1 ", 10, 10, 0, -EINVAL },
		{ "1\n", 10, 10, 0, -EINVAL },
		{ "+1", 10, 10, 0, -EINVAL },
		{ "-1", 10, UINT64_MAX, 0, -EINVAL },
		{ "1x", 10, 10, 0, -EINVAL },
		{ "x", 10, 10, 0, -EINVAL },
		{ "0x1", 10, 10, 0, -EINVAL },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		uint64_t v = 77;

		assert_int_equal(str_to_u64(rows[i].text, rows[i].base, rows[i].max, &v),
				 rows[i].r);
		assert_true(v == (rows[i].r ? 77 : rows[i].value));
	}
}

static void ints_may_be_negative_to_the_limit(void **state)
{
	static const char *const bad[] = { "",		 "-",		"--1", "+1", "- 1",
					   "2147483648", "-2147483649", "1.0", "1 " };
	int v = 7;

	(void)state;
	assert_int_equal(str_to_int("-1", &v), 0);
	assert_int_equal(v, -1);
	assert_int_equal(str_to_int("2147483647", &v), 0);
	assert_int_equal(v, INT_MAX);
	assert_int_equal(str_to_int("-2147483648", &v), 0);
	assert_int_equal(v, INT_MIN);
	v = 7;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_equal(str_to_int(bad[i], &v), -EINVAL);
	assert_int_equal(v, 7);
}

static void compares_with_null(void **state)
{
	(void)state;
	assert_true(str_eq(NULL, NULL));
	assert_false(str_eq("", NULL));
	assert_false(str_eq(NULL, ""));
	assert_true(str_eq("a", "a"));
	assert_false(str_eq("a", "A"));
	assert_true(str_starts("abc", "ab"));
	assert_true(str_starts("abc", ""));
	assert_false(str_starts("ab", "abc"));
}

static void trims_both_ends(void **state)
{
	char text[] = " \t a b\r\n", blank[] = " \n", none[] = "x";

	(void)state;
	assert_string_equal(str_trim(text), "a b");
	assert_string_equal(str_trim(blank), "");
	assert_string_equal(str_trim(none), "x");
}

static void knows_utf8(void **state)
{
	static const struct {
		const char *text;
		bool valid;
	} rows[] = {
		{ "", true },
		{ "plain", true },
		{ "\xc3\xa9", true },
		{ "\xe2\x82\xac", true },
		{ "\xf0\x9f\x98\x80", true },
		{ "\xf4\x8f\xbf\xbf", true },
		{ "\x80", false }, /* continuation alone */
		{ "\xc3", false }, /* cut */
		{ "\xe2\x82", false },
		{ "\xc0\x80", false }, /* overlong */
		{ "\xe0\x9f\xbf", false },
		{ "\xf0\x8f\xbf\xbf", false },
		{ "\xed\xa0\x80", false },     /* surrogate */
		{ "\xf4\x90\x80\x80", false }, /* above U+10FFFF */
		{ "\xff", false },
		{ "a\xc3(", false },
		{ "sixteen letters\xc3\xa9", true },
		{ "sixteen letters\xc3", false }, /* across and behind a word of eight */
		{ "eight ..\xa9", false },
		{ "seven .\xa9 more behind", false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		assert_int_equal(str_utf8_valid(rows[i].text, strlen(rows[i].text)), rows[i].valid);
	assert_true(str_utf8_valid("a\0b", 3));
}

static void trims_only_an_incomplete_end(void **state)
{
	static const char *const rows[][2] = {
		{ "", "" },
		{ "abc", "abc" },
		{ "a\xc3\xa9", "a\xc3\xa9" },
		{ "a\xc3", "a" },
		{ "a\xe2\x82", "a" },
		{ "a\xe2\x82\xac", "a\xe2\x82\xac" },
		{ "a\xf0\x9f\x98", "a" },
		{ "\xf0", "" },
		{ "a\x80\x80", "a\x80\x80" }, /* never was a character */
		{ "\x80\x80\x80\x80\x80", "\x80\x80\x80\x80\x80" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char text[16];

		strcpy(text, rows[i][0]);
		str_utf8_trim(text);
		assert_string_equal(text, rows[i][1]);
	}
}

static void wraps_between_words_by_characters(void **state)
{
	static const struct {
		const char *label, *text, *want;
	} rows[] = {
		{ "", "", "\n" },
		{ "", "one two", "one two\n" },
		{ "", "one two three", "one two\nthree\n" },
		{ "a: ", "one two three", "a: one two\n   three\n" },
		{ "", "1234567890", "1234567890\n" },
		{ "", "12345678901 2", "12345678901\n2\n" }, /* no word is broken */
		{ "", "one   two", "one two\n" },
		{ "", "\xc2\xb7\xc2\xb7\xc2\xb7 \xe2\x80\xa6\xe2\x80\xa6 123",
		  "\xc2\xb7\xc2\xb7\xc2\xb7 \xe2\x80\xa6\xe2\x80\xa6 123\n" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		_cleanup_strbuf_ struct strbuf out = STRBUF_INIT;

		strbuf_put_wrapped(&out, rows[i].label, rows[i].text, 10);
		assert_string_equal(strbuf_str(&out), rows[i].want);
	}
}

static void shows_no_control_and_nothing_hidden(void **state)
{
	static const char *const rows[][3] = {
		{ "mlx5_0 \xc3\xa9 \xe2\x80\xa6 \xf0\x9f\x98\x80", "",
		  "mlx5_0 \xc3\xa9 \xe2\x80\xa6 \xf0\x9f\x98\x80" },
		{ "a\x1b]0;x\a\x7f", "", "a?]0;x??" },
		{ "a\n\tb\r", "", "a??b?" },
		{ "a\n\tb\r", "\n\t", "a\n\tb?" },
		{ "a\xc2\x9b"
		  "31m\xc2\x80\xc2\xa0",
		  "", "a??31m??\xc2\xa0" }, /* C1, and the blank behind them */
		{ "a\x9b"
		  "31m",
		  "", "a?31m" }, /* no UTF-8: what an 8-bit terminal takes for C1 */
		{ "\xe2\x80\xae"
		  "gpj\xe2\x81\xa6\xd8\x9c",
		  "", "???gpj?????" }, /* order turned around */
		{ "\xe2\x80\x8b\xef\xbb\xbf\xe2\x80\xa8", "",
		  "?????????" }, /* not seen; another line */
		{ "\xf3\xa0\x80\x81", "", "????" },
		{ "\xe2\x80", "", "??" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char text[64];

		strcpy(text, rows[i][0]);
		str_printable(text, strlen(text), rows[i][1]);
		assert_string_equal(text, rows[i][2]);
	}
}

static void shows_every_byte_alike_wherever_it_stands(void **state)
{
	(void)state;
	for (int c = 1; c < 256; c++) {
		char alone[] = { (char)c, '\0' };

		str_printable(alone, 1, "");
		for (size_t at = 0; at < 20; at++) {
			char text[] = "0123456789 abcdef ~}", want[sizeof(text)];

			strcpy(want, text);
			text[at] = (char)c;
			want[at] = *alone;
			str_printable(text, strlen(text), "");
			assert_string_equal(text, want);
		}
	}
}

static void the_next_line_is_behind_the_line_feed(void **state)
{
	const char *text = "a\n\nb";

	(void)state;
	text = str_next_line(text);
	assert_string_equal(text, "\nb");
	text = str_next_line(text);
	assert_string_equal(text, "b");
	assert_null(str_next_line(text));
	assert_null(str_next_line(NULL));
	assert_string_equal(str_next_line("a\n"), "");
}

/* They are in names of slots, in ids of Events and in ledgers on disk. */
static void sums_are_the_same_for_ever(void **state)
{
	(void)state;
	assert_true(str_hash("") == UINT64_C(0xcbf29ce484222325));
	assert_true(str_hash("rdma/vf") == UINT64_C(0xed21d785b44c9326));
	assert_true(str_checksum("rdma/vf", 7) == UINT64_C(0xed21d785b44c9326));
	assert_true(str_checksum("0123456789abcdefg", 17) == UINT64_C(0x387c37b6acd45ccd));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_next_line_is_behind_the_line_feed),
		cmocka_unit_test(a_buffer_grows_and_ends_with_nul),
		cmocka_unit_test(stealing_an_empty_buffer_gives_an_empty_string),
		cmocka_unit_test(printf_fits_whatever_room_is_left),
		cmocka_unit_test(writes_ints_to_the_limit),
		cmocka_unit_test(numbers_are_read_whole_or_not_at_all),
		cmocka_unit_test(ints_may_be_negative_to_the_limit),
		cmocka_unit_test(compares_with_null),
		cmocka_unit_test(sums_are_the_same_for_ever),
		cmocka_unit_test(trims_both_ends),
		cmocka_unit_test(knows_utf8),
		cmocka_unit_test(trims_only_an_incomplete_end),
		cmocka_unit_test(wraps_between_words_by_characters),
		cmocka_unit_test(shows_no_control_and_nothing_hidden),
		cmocka_unit_test(shows_every_byte_alike_wherever_it_stands),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
