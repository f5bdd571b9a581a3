/* Bytes → lines: a line that is whole in the caller's bytes is not copied. */
#include <string.h>

#include "base/arena.h"
#include "base/mem.h"
#include "verify/verify-internal.h"

struct verify *verify_new(void)
{
	struct verify *v = xcalloc(1, sizeof(*v));

	v->arena = arena_new(4096);
	v->partial = xcalloc(VERIFY_MAX_LINE, 1);
	verify_phrases_fill(&v->phrases);
	for (unsigned id = 0; id < SIGN_MAX; id++)
		v->levels[id] = (uint8_t)verify_sign_of(id)->level;
	return v;
}

void verify_freep(struct verify **verify)
{
	struct verify *v = *verify;

	if (!v)
		return;
	for (size_t i = 0; i < v->n_procs; i++) {
		freep(&v->procs[i]->hcas);
		freep(&v->procs[i]->wanted);
		freep(&v->procs[i]);
	}
	for (size_t i = 0; i < v->n_gpus; i++)
		freep(&v->gpus[i]);
	freep(&v->partial);
	arena_free(v->arena);
	freep(&v);
}

void verify_begin(struct verify *v, const char *name)
{
	v->source = arena_strdup(v->arena, name);
	v->line = 0;
	v->partial_len = 0;
}

static void end_line(struct verify *v, const char *line, size_t len, bool whole)
{
	v->line++;
	v->lines++;
	verify_line(v, line, len < VERIFY_MAX_LINE ? len : VERIFY_MAX_LINE, whole);
}

static void keep_partial(struct verify *v, const char *data, size_t len)
{
	size_t room = VERIFY_MAX_LINE - v->partial_len;
	size_t n = len < room ? len : room;

	memcpy(v->partial + v->partial_len, data, n);
	v->partial_len += n;
}

void verify_feed(struct verify *v, const char *data, size_t len)
{
	const char *end = data + len, *newline;

	v->bytes += len;
	for (; data < end; data = newline + 1) {
		newline = memchr(data, '\n', (size_t)(end - data));
		if (!newline) {
			keep_partial(v, data, (size_t)(end - data));
			return;
		}
		if (!v->partial_len) {
			end_line(v, data, (size_t)(newline - data), true);
			continue;
		}
		keep_partial(v, data, (size_t)(newline - data));
		end_line(v, v->partial, v->partial_len, true);
		v->partial_len = 0;
	}
}

void verify_end(struct verify *v)
{
	if (v->partial_len)
		end_line(v, v->partial, v->partial_len, false);
	v->partial_len = 0;
	verify_close_table(v);
}
