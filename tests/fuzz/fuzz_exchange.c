/* room: probe */
/*
 * Any bytes as what another railmate-probe sends: one sentence, or a message within its bounds,
 * which may be shown on a terminal, and which says the same when it is sent on.
 */
#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "railmate-probe/exchange-internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_text(const char *text, size_t most)
{
	size_t len = text ? strlen(text) : 1;

	assert(len > 0 && len <= most);
	for (size_t i = 0, n; text && i < len; i += n) {
		n = str_printable_sequence(text + i, len - i);
		assert(n > 0);
	}
}

static void check_name(const char *name)
{
	check_text(name, 63);
	assert(name && *name != '.' && !strchr(name, '/'));
}

static void check_message(const struct exchange_message *m)
{
	assert(m->n_vfs <= EXCHANGE_VFS_MAX && m->n_ends <= EXCHANGE_VFS_MAX);
	for (size_t i = 0; i < m->n_vfs; i++) {
		check_name(m->vfs[i].hca);
		check_text(m->vfs[i].subnet, 63);
	}
	for (size_t i = 0; i < m->n_ends; i++) {
		const struct wire_address *w = &m->ends[i].address;

		check_name(m->ends[i].from);
		check_name(m->ends[i].to);
		check_text(m->ends[i].memory, 63);
		check_text(m->ends[i].limit, 400);
		assert(m->ends[i].status <= 0 && w->size <= WIRE_MEMORY_MAX);
		assert(w->address + w->size >= w->address);
		assert(m->type != EXCHANGE_RUN || m->size <= w->size);
	}
	for (size_t i = 0; i < m->n_findings; i++) {
		assert(m->findings[i].outcome < OUTCOME_MAX);
		check_text(m->findings[i].what, 400);
		check_text(m->findings[i].on, 400);
	}
}

static void check_again(const struct exchange_message *m, struct arena *a)
{
	_cleanup_strbuf_ struct strbuf once = STRBUF_INIT, twice = STRBUF_INIT;
	struct exchange_message again;
	struct err err = { 0 };

	exchange_encode(m, &once);
	assert(once.len && strchr(once.s, '\n') == once.s + once.len - 1);
	assert(exchange_decode(once.s, once.len - 1, a, &again, &err) == 0);
	exchange_encode(&again, &twice);
	assert(str_eq(once.s, twice.s));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_arena_ struct arena *arena = arena_new(4096);
	struct exchange_message m;
	struct err err = { 0 };

	if (exchange_decode((const char *)data, size, arena, &m, &err) < 0) {
		assert(err.code == EBADMSG && *err.msg && !strchr(err.msg, '\n'));
		return 0;
	}
	assert(m.type < EXCHANGE_TYPE_MAX);
	if (m.type == EXCHANGE_HELLO && m.version != EXCHANGE_VERSION)
		return 0;
	check_message(&m);
	check_again(&m, arena);
	return 0;
}
