/* room: control */
/*
 * Any bytes as a request to the local socket, and as railmated's reply: one that holds together, or
 * one sentence. What was understood says the same when it is written and read again.
 */
#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "control/control.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_sentence(const struct err *err)
{
	assert(err->code && *err->msg && str_utf8_valid(err->msg, strlen(err->msg)));
}

static void check_request(const char *text, size_t len, struct arena *a)
{
	_cleanup_strbuf_ struct strbuf out = STRBUF_INIT;
	struct control_request once, twice;
	struct err err = { 0 };
	int r = control_read_request(text, len, a, &once, &err);

	if (r < 0) {
		assert(r == -EINVAL || r == -ENOSYS);
		check_sentence(&err);
		return;
	}
	assert(once.op < CONTROL_OP_MAX && (once.op != CONTROL_BIND || *once.slot));
	control_write_request(&once, &out);
	assert(out.len && out.s[out.len - 1] == '\n' &&
	       memchr(out.s, '\n', out.len) == out.s + out.len - 1);
	assert(!control_read_request(out.s, out.len - 1, a, &twice, &err) && once.op == twice.op);
	if (once.op == CONTROL_BIND)
		assert(str_eq(once.slot, twice.slot) && str_eq(once.ns, twice.ns) &&
		       str_eq(once.pod, twice.pod) && str_eq(once.uid, twice.uid));
}

/* Another code than those of the table travels as EIO, so only the sentence is the same. */
static void check_refusal(const struct err *why, struct arena *a)
{
	_cleanup_strbuf_ struct strbuf out = STRBUF_INIT;
	struct control_reply none;
	struct err err = { 0 };

	control_write_error(why, &out);
	assert(control_read_reply(out.s, out.len - 1, a, &none, &err) < 0 &&
	       !strcmp(err.msg, why->msg));
}

static void check_reply(const char *text, size_t len, struct arena *a)
{
	_cleanup_strbuf_ struct strbuf out = STRBUF_INIT;
	struct control_reply once, twice;
	struct err err = { 0 };

	if (control_read_reply(text, len, a, &once, &err) < 0) {
		check_sentence(&err);
		check_refusal(&err, a);
		return;
	}
	control_write_reply(&once, &out);
	assert(!control_read_reply(out.s, out.len - 1, a, &twice, &err));
	assert(!once.bound == !twice.bound && once.n_bound == twice.n_bound &&
	       str_eq(once.ledger, twice.ledger));
	for (size_t i = 0; i < once.n_bound; i++)
		assert(str_eq(once.bound[i].slot, twice.bound[i].slot) &&
		       str_eq(once.bound[i].resource, twice.bound[i].resource) &&
		       str_eq(once.bound[i].vf, twice.bound[i].vf) &&
		       str_eq(once.bound[i].rdma, twice.bound[i].rdma));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_arena_ struct arena *a = arena_new(4096);

	check_request((const char *)data, size, a);
	check_reply((const char *)data, size, a);
	return 0;
}
