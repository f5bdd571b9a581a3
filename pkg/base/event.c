#include "base/event.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"

/* Stands before each pair of an event. No text has it: str_printable() replaces controls. */
#define SEPARATOR '\x1f'

/* --- a format string → an event --- */

/* 0: no pair begins here. */
static size_t key_length(const char *s)
{
	size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyz_");

	return n && s[n] == '=' ? n : 0;
}

/* The blank before each pair becomes a separator. Heap. */
static char *mark_pairs(const char *fmt)
{
	char *marked = xstrdup(fmt);

	for (char *p = marked; *p; p++) {
		if (*p == ' ' && key_length(p + 1))
			*p = SEPARATOR;
	}
	return marked;
}

/* The sentence or a pair, without the blank before it. */
static void put_piece(struct strbuf *out, const char *piece, size_t len, bool is_pair)
{
	size_t key = is_pair ? key_length(piece) + 1 : 0;

	if (len == key || (is_pair && len == key + 6 && !memcmp(piece + key, "(null)", 6)))
		return;
	if (is_pair)
		strbuf_putc(out, SEPARATOR);
	strbuf_add(out, piece, len);
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral" /* fmt but for its blanks */
/* Written twice, with and without separators: where these differ a pair begins, whatever the values
 * are. */
void event_compose(char *ret, size_t size, const char *fmt, va_list ap)
{
	int saved_errno = errno; /* for %m */
	_cleanup_free_ char *marked_fmt = mark_pairs(fmt), *text = NULL, *marked = NULL;
	_cleanup_strbuf_ struct strbuf event = { 0 };
	va_list again;

	va_copy(again, ap);
	errno = saved_errno;
	text = xvasprintf(fmt, again);
	va_end(again);
	errno = saved_errno;
	marked = xvasprintf(marked_fmt, ap);
	str_printable(text, strlen(text), ""); /* names come from outside */
	for (size_t at = 0, n; text[at]; at += n) {
		bool is_pair = text[at] == ' ' && marked[at] == SEPARATOR;

		for (n = 1; text[at + n] && !(text[at + n] == ' ' && marked[at + n] == SEPARATOR);)
			n++;
		put_piece(&event, text + at + is_pair, n - is_pair, is_pair);
	}
	snprintf(ret, size, "%s", strbuf_str(&event));
	str_utf8_trim(ret);
}
#pragma GCC diagnostic pop

void event_extend(char *event, size_t size, const char *fmt, ...)
{
	size_t len = strlen(event);
	va_list ap;

	va_start(ap, fmt);
	event_compose(event + len, size - len, fmt, ap);
	va_end(ap);
}

/* --- an event → text --- */

struct pair {
	const char *key, *value; /* not terminated */
	size_t key_len, value_len;
};

static size_t piece_length(const char *s)
{
	return strcspn(s, (const char[]) { SEPARATOR, '\0' });
}

/* *at: behind the sentence, or behind a pair. False: none is left. The last part of an event that
 * was cut need not be a pair, or has no value. */
static bool next_pair(const char **at, struct pair *ret)
{
	const char *key = *at + 1, *equals;
	size_t len;

	if (!**at)
		return false;
	len = piece_length(key);
	equals = memchr(key, '=', len);
	if (!equals || equals + 1 == key + len)
		return false;
	*ret = (struct pair) { key, equals + 1, (size_t)(equals - key),
			       len - (size_t)(equals + 1 - key) };
	*at = key + len;
	return true;
}

size_t event_sentence(const char *event)
{
	return piece_length(event);
}

void event_text(struct strbuf *out, const char *event)
{
	const char *at = event + piece_length(event);
	struct pair pair;

	strbuf_add(out, event, (size_t)(at - event));
	while (next_pair(&at, &pair)) {
		bool quoted = false;

		for (size_t i = 0; i < pair.value_len; i++)
			quoted = quoted || strchr(" \"=", pair.value[i]);
		strbuf_putc(out, ' ');
		strbuf_add(out, pair.key, pair.key_len);
		strbuf_puts(out, quoted ? "=\"" : "=");
		for (size_t i = 0; i < pair.value_len; i++) {
			if (quoted && (pair.value[i] == '"' || pair.value[i] == '\\'))
				strbuf_putc(out, '\\');
			strbuf_putc(out, pair.value[i]);
		}
		if (quoted)
			strbuf_putc(out, '"');
	}
}

void event_json(struct json *out, const char *event)
{
	const char *at = event + piece_length(event);
	char key[64], value[EVENT_SIZE];
	struct pair pair;

	snprintf(value, sizeof(value), "%.*s", (int)(at - event), event);
	json_kv_string(out, "message", value);
	while (next_pair(&at, &pair)) {
		snprintf(key, sizeof(key), "%.*s", (int)pair.key_len, pair.key);
		snprintf(value, sizeof(value), "%.*s", (int)pair.value_len, pair.value);
		json_kv_string(out, key, value);
	}
}
