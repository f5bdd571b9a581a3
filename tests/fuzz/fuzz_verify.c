/* room: verify */
/* Any bytes as a log, as a map and as a file of counters: an answer, or one sentence; the same
 * whole and in pieces. Before, behind and beside any log a bad end is never PASS. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/json.h"
#include "base/str.h"
#include "verify/counters.h"
#include "verify/verify.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void judge(const char *data, size_t size, size_t step, struct strbuf *out)
{
	_cleanup_verify_ struct verify *v = verify_new();
	struct json j;

	verify_begin(v, "log");
	for (size_t at = 0; at < size; at += step)
		verify_feed(v, data + at, size - at < step ? size - at : step);
	verify_end(v);
	assert(verify_judge(v) < VERDICT_MAX);
	verify_text(v, out);
	json_init(&j, out, 0);
	json_begin_object(&j);
	verify_json(v, &j);
	json_end_object(&j);
}

static void end_badly(const char *data, size_t size, const char *bad, bool first)
{
	_cleanup_verify_ struct verify *v = verify_new();

	for (int i = 0; i < 2; i++) {
		verify_begin(v, "log");
		if (first == !i)
			verify_feed(v, bad, strlen(bad));
		else
			verify_feed(v, data, size);
		verify_end(v);
	}
	assert(verify_judge(v) == VERDICT_FAIL);
}

static void check_sentence(const struct err *err)
{
	assert(err->code && !strchr(err->msg, '\n') && str_starts(err->msg, "file"));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const bad[] = {
		"a:1:1 [0] NCCL INFO group.cc:65 -> 2 [Async thread]\n",
		" \"outcome\": \"broken\",\n",
		"{\"probe\":1,\"outcome\":\"broken\",\"measures\":[]}\n",
		"FAIL: ml/train-0 main, 2 VFs, 2 GPUs, 4 transfers\n",
	};
	_cleanup_strbuf_ struct strbuf whole = STRBUF_INIT, pieces = STRBUF_INIT;
	_cleanup_verify_ struct verify *v = verify_new();
	_cleanup_arena_ struct arena *arena = arena_new(1024);
	const char *text = (const char *)data;
	struct counters counters;
	struct counters_diff diff;
	struct err err = { 0 };

	judge(text, size, size + 1, &whole);
	judge(text, size, 7, &pieces);
	assert(!strcmp(strbuf_str(&whole), strbuf_str(&pieces)));
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		end_badly(text, size, bad[i], true);
		end_badly(text, size, bad[i], false);
	}
	if (verify_add_map(v, NULL, text, size, "file", &err) < 0)
		check_sentence(&err);
	err = (struct err) { 0 };
	if (counters_read(text, size, "file", arena, &counters, &err) < 0)
		check_sentence(&err);
	else
		counters_compare(&counters, &counters, arena, &diff);
	return 0;
}
