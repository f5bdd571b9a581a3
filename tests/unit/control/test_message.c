/* What railmated's socket may be asked and what it answers: both ways of every message, and texts
 * that are none. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "control/control.h"

static int read_request(const char *text, struct arena *a, struct control_request *ret,
			struct err *err)
{
	return control_read_request(text, strlen(text), a, ret, err);
}

static void a_request_arrives_as_it_was_sent(void **state)
{
	const struct control_request sent = { CONTROL_BIND, "rvf-vf-n0-1", "team \"a\"",
					      "p",	    "u-1",	   NULL };
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;
	_cleanup_arena_ struct arena *a = arena_new(0);
	struct control_request got;

	(void)state;
	control_write_request(&sent, &text);
	assert_ptr_equal(strchr(text.s, '\n'), text.s + text.len - 1);
	assert_int_equal(control_read_request(text.s, text.len - 1, a, &got, NULL), 0);
	assert_int_equal(got.op, CONTROL_BIND);
	assert_string_equal(got.slot, sent.slot);
	assert_string_equal(got.ns, sent.ns);
	assert_string_equal(got.pod, "p");
	assert_string_equal(got.uid, "u-1");
}

static void whose_a_vf_is_is_asked_with_the_vf_and_the_pod(void **state)
{
	const struct control_request sent = {
		CONTROL_WHOSE, NULL, "team", "p", "", "0000:18:00.1"
	};
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;
	_cleanup_arena_ struct arena *a = arena_new(0);
	struct control_request got;

	(void)state;
	control_write_request(&sent, &text);
	assert_int_equal(control_read_request(text.s, text.len - 1, a, &got, NULL), 0);
	assert_int_equal(got.op, CONTROL_WHOSE);
	assert_string_equal(got.vf, sent.vf);
	assert_string_equal(got.pod, "p");
}

static void a_pod_that_is_not_known_is_empty(void **state)
{
	_cleanup_arena_ struct arena *a = arena_new(0);
	struct control_request got;

	(void)state;
	assert_int_equal(
		read_request("{\"op\": \"bind\", \"slot\": \"s\", \"pod\": null, \"new\": [1]}", a,
			     &got, NULL),
		0);
	assert_string_equal(got.ns, "");
	assert_string_equal(got.pod, "");
	assert_string_equal(got.uid, "");
}

static void what_is_no_request_is_refused_with_a_sentence(void **state)
{
	static const struct {
		const char *text;
		int code;
		const char *word;
	} bad[] = {
		{ "", -EINVAL, "empty" },
		{ "GET / HTTP/1.1", -EINVAL, "not JSON" },
		{ "[]", -EINVAL, "\"op\"" },
		{ "{\"op\": 7}", -EINVAL, "\"op\"" },
		{ "{\"op\": \"dance\"}", -ENOSYS, "dance" },
		{ "{\"op\": \"bind\"}", -EINVAL, "\"slot\"" },
		{ "{\"op\": \"bind\", \"slot\": \"\"}", -EINVAL, "\"slot\"" },
		{ "{\"op\": \"whose\", \"pod\": \"p\"}", -EINVAL, "\"vf\"" },
		{ "{\"op\": \"bind\", \"slot\": \"a\\u0000b\"}", -EINVAL, "NUL" },
	};
	_cleanup_arena_ struct arena *a = arena_new(0);
	struct control_request got;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct err err = { 0 };

		assert_int_equal(read_request(bad[i].text, a, &got, &err), bad[i].code);
		assert_non_null(strstr(err.msg, bad[i].word));
	}
}

static void bindings_arrive_as_they_were_told(void **state)
{
	const struct control_bound bound[] = {
		{ "s-0", "rdma/vf", "0000:18:00.1", "mlx5_4", "0000:18:00.0", 3, 0, NULL },
		{ "s-1", "rdma/vf", "0000:40:00.1", NULL, NULL, 0, -1, "0b1a6e2c" }
	};
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;
	_cleanup_arena_ struct arena *a = arena_new(0);
	struct control_reply got;

	(void)state;
	control_write_reply(&(struct control_reply) { .bound = bound, .n_bound = 2 }, &text);
	assert_int_equal(control_read_reply(text.s, text.len, a, &got, NULL), 0);
	assert_int_equal(got.n_bound, 2);
	assert_string_equal(got.bound[1].slot, "s-1");
	assert_string_equal(got.bound[1].vf, "0000:40:00.1");
	assert_string_equal(got.bound[0].rdma, "mlx5_4");
	assert_string_equal(got.bound[0].pf, "0000:18:00.0");
	assert_null(got.bound[1].rdma);
	assert_null(got.bound[1].pf);
	assert_int_equal(got.bound[0].rail, 3);
	assert_int_equal(got.bound[0].plane, 0);
	assert_int_equal(got.bound[1].rail, 0);
	assert_int_equal(got.bound[1].plane, -1);
	assert_null(got.bound[0].claim);
	assert_string_equal(got.bound[1].claim, "0b1a6e2c");
	assert_null(got.ledger);
}

static void a_rail_that_is_no_number_is_not_known(void **state)
{
	static const char *const rails[] = { "", ", \"rail\": \"3\"", ", \"rail\": -2",
					     ", \"rail\": 1.5", ", \"rail\": 1e12" };
	_cleanup_arena_ struct arena *a = arena_new(0);

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rails); i++) {
		const char *text = arena_printf(
			a, "{\"bound\": [{\"slot\": \"s\", \"resource\": \"r\", \"vf\": \"v\"%s}]}",
			rails[i]);
		struct control_reply got;

		assert_int_equal(control_read_reply(text, strlen(text), a, &got, NULL), 0);
		assert_int_equal(got.bound[0].rail, -1);
		assert_int_equal(got.bound[0].plane, -1);
	}
}

static void a_ledger_arrives_byte_for_byte(void **state)
{
	const char *ledger = "{\n \"a\": \"\\u00e9\t\\\\\"\n}\n";
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;
	_cleanup_arena_ struct arena *a = arena_new(0);
	struct control_reply got;

	(void)state;
	control_write_reply(&(struct control_reply) { .ledger = ledger }, &text);
	assert_ptr_equal(strchr(text.s, '\n'), text.s + text.len - 1);
	assert_int_equal(control_read_reply(text.s, text.len, a, &got, NULL), 0);
	assert_string_equal(got.ledger, ledger);
	assert_null(got.bound);
}

static void a_refusal_arrives_with_its_code_and_sentence(void **state)
{
	static const int sent[] = { EAGAIN, EBUSY, ENOENT, ENOSYS, ETIMEDOUT, EXDEV };
	static const int got[] = { EAGAIN, EBUSY, ENOENT, ENOSYS, ETIMEDOUT, EIO };
	_cleanup_arena_ struct arena *a = arena_new(0);

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(sent); i++) {
		_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;
		struct control_reply reply;
		struct err err = { 0 };

		control_write_error(&(struct err) { .code = sent[i], .msg = "slot x: \"why\"" },
				    &text);
		assert_int_equal(control_read_reply(text.s, text.len, a, &reply, &err), -got[i]);
		assert_int_equal(err.code, got[i]);
		assert_string_equal(err.msg, "slot x: \"why\"");
	}
}

static void what_is_no_reply_is_said_to_be_none(void **state)
{
	static const char *const bad[] = {
		"",
		"hello",
		"[]",
		"{\"bound\": 1}",
		"{\"bound\": [{}]}",
		"{\"bound\": [{\"slot\": \"s\", \"resource\": 1}]}",
	};
	_cleanup_arena_ struct arena *a = arena_new(0);

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct control_reply reply;
		struct err err = { 0 };

		assert_int_equal(control_read_reply(bad[i], strlen(bad[i]), a, &reply, &err),
				 -EBADMSG);
		assert_int_equal(err.code, EBADMSG);
		assert_non_null(strstr(err.msg, "railmated's reply"));
	}
}

static void a_refusal_without_a_reason_is_still_a_sentence(void **state)
{
	const char *text = "{\"error\": {}}";
	_cleanup_arena_ struct arena *a = arena_new(0);
	struct control_reply reply;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(control_read_reply(text, strlen(text), a, &reply, &err), -EIO);
	assert_string_equal(err.msg, "railmated gives no reason");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_request_arrives_as_it_was_sent),
		cmocka_unit_test(whose_a_vf_is_is_asked_with_the_vf_and_the_pod),
		cmocka_unit_test(a_pod_that_is_not_known_is_empty),
		cmocka_unit_test(what_is_no_request_is_refused_with_a_sentence),
		cmocka_unit_test(bindings_arrive_as_they_were_told),
		cmocka_unit_test(a_rail_that_is_no_number_is_not_known),
		cmocka_unit_test(a_ledger_arrives_byte_for_byte),
		cmocka_unit_test(a_refusal_arrives_with_its_code_and_sentence),
		cmocka_unit_test(what_is_no_reply_is_said_to_be_none),
		cmocka_unit_test(a_refusal_without_a_reason_is_still_a_sentence),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
