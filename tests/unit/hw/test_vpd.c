/* Vital product data: what is read of a card, and which bytes are none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "hw/vpd.h"

#define BYTES(text) (const uint8_t *)(text), sizeof(text) - 1

static void expect_whole(const uint8_t *data, size_t n, struct vpd *ret)
{
	struct err err = { 0 };

	vpd_parse(data, n, ret, &err);
	assert_string_equal(err.msg, "");
}

static void a_card_is_read(void **state)
{
	static const char card[] = "\x82\x0c\x00NVIDIA CX-8 "
				   "\x90\x27\x00"
				   "PN\x03"
				   "900"
				   "SN\x02"
				   "42"
				   "V3\x04"
				   "7ec1"
				   "VU\x06"
				   "MT24\0\0"
				   "RV\x03\xff\0\0"
				   "EC\x00"
				   "\x91\x04\x00YA\x01\xff"
				   "\x78 what follows";
	struct vpd vpd;

	(void)state;
	expect_whole(BYTES(card), &vpd);
	assert_string_equal(vpd.name, "NVIDIA CX-8");
	assert_string_equal(vpd.part, "900");
	assert_string_equal(vpd.serial, "42");
	assert_string_equal(vpd.board, "7ec1");
	assert_string_equal(vpd.vuid, "MT24");
}

static void what_a_card_does_not_say_is_empty(void **state)
{
	struct vpd vpd;

	(void)state;
	expect_whole(BYTES("\x79z"), &vpd);
	assert_string_equal(vpd.name, "");
	assert_string_equal(vpd.board, "");
	/* other small resources are passed over, of two keywords the first counts */
	expect_whole(BYTES("\x0a..\x90\x08\x00V3\x01"
			   "aV3\x01"
			   "b\x78"),
		     &vpd);
	assert_string_equal(vpd.board, "a");
}

static void the_end_tag_may_be_missing(void **state)
{
	struct vpd vpd = { .name = "before" };

	(void)state;
	expect_whole(BYTES("\x82\x01\x00x\x90\x04\x00V3\x01"
			   "a"),
		     &vpd);
	assert_string_equal(vpd.name, "x");
	assert_string_equal(vpd.board, "a");
	/* as where the EEPROM behind it was never written */
	expect_whole(BYTES("\x90\x04\x00V3\x01"
			   "b\0\0\0\0"),
		     &vpd);
	assert_string_equal(vpd.board, "b");
	expect_whole(BYTES(""), &vpd);
	assert_string_equal(vpd.board, "");
}

/* What stands before the damage, or beside it, is read: board and vuid of the rows. */
static void what_is_wrong_is_said_and_the_rest_read(void **state)
{
	static const struct {
		struct {
			const uint8_t *data;
			size_t n;
		} text;
		const char *sentence, *board, *vuid;
	} rows[] = {
		{ { BYTES("\x82") }, "the tag at byte 0 is cut short", "", "" },
		{ { BYTES("\x82\x01") }, "the tag at byte 0 is cut short", "", "" },
		{ { BYTES("\x82\x02\x00x") },
		  "the tag at byte 0 claims 2 bytes, and 1 are there",
		  "",
		  "" },
		{ { BYTES("\x82\x01\x00x\x0a") },
		  "the tag at byte 4 claims 2 bytes, and 0 are there",
		  "",
		  "" },
		{ { BYTES("\xff\xff\xff\xff") },
		  "the tag at byte 0 claims 65535 bytes, and 1 are there",
		  "",
		  "" },
		{ { BYTES("\x82\x01\x00\xc3\x90\x04\x00V3\x01"
			  "a\x78") },
		  "its identifier string is not printable ASCII",
		  "a",
		  "" },
		{ { BYTES("\x90\x04\x00V3\x01"
			  "a\x91\x10\x00YA") },
		  "the tag at byte 7 claims 16 bytes, and 2 are there",
		  "a",
		  "" },
		{ { BYTES("\x90\x02\x00V3\x78") }, "the keyword at byte 3 is cut short", "", "" },
		{ { BYTES("\x90\x06\x00V3\x01"
			  "aVU\x78") },
		  "the keyword at byte 7 is cut short",
		  "a",
		  "" },
		{ { BYTES("\x90\x20\x00VU\x01"
			  "x") },
		  "the tag at byte 0 claims 32 bytes, and 4 are there",
		  "",
		  "x" },
		{ { BYTES("\x90\x04\x00V3\x02"
			  "a\x78") },
		  "the keyword at byte 3 claims 2 bytes, and 1 are there",
		  "",
		  "" },
		{ { BYTES("\x90\x08\x00V3\x01"
			  "\x1bVU\x01"
			  "x\x78") },
		  "its V3 is not printable ASCII",
		  "",
		  "x" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct vpd vpd = { .board = "before" };
		struct err err = { 0 };

		vpd_parse(rows[i].text.data, rows[i].text.n, &vpd, &err);
		assert_string_equal(err.msg, rows[i].sentence);
		assert_string_equal(vpd.board, rows[i].board);
		assert_string_equal(vpd.vuid, rows[i].vuid);
	}
}

static void a_name_that_is_too_long_is_said(void **state)
{
	uint8_t data[3 + 256 + 1] = { 0x82, 0x00, 0x01 };
	struct err err = { 0 };
	struct vpd vpd;

	(void)state;
	memset(data + 3, 'x', 256);
	data[sizeof(data) - 1] = 0x78;
	vpd_parse(data, sizeof(data), &vpd, &err);
	assert_string_equal(err.msg, "its identifier string has 256 characters");
}

static void an_excerpt_is_read_as_the_card(void **state)
{
	const struct vpd card = { .name = "x", .serial = "42", .board = "7ec1", .vuid = "MT24" };
	_cleanup_strbuf_ struct strbuf bytes = STRBUF_INIT;
	struct vpd again;

	(void)state;
	vpd_excerpt(&card, &bytes);
	expect_whole((const uint8_t *)bytes.s, bytes.len, &again);
	assert_string_equal(again.board, "7ec1");
	assert_string_equal(again.vuid, "MT24");
	assert_string_equal(again.serial, "");
	assert_string_equal(again.name, "x");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_card_is_read),
		cmocka_unit_test(what_a_card_does_not_say_is_empty),
		cmocka_unit_test(the_end_tag_may_be_missing),
		cmocka_unit_test(what_is_wrong_is_said_and_the_rest_read),
		cmocka_unit_test(a_name_that_is_too_long_is_said),
		cmocka_unit_test(an_excerpt_is_read_as_the_card),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
