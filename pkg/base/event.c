#include "base/event.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
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

static void put_text(struct strbuf *out, const char *text, int precision)
{
	if (text && precision >= 0)
		strbuf_printf(out, "%.*s", precision, text);
	else if (text)
		strbuf_puts(out, text);
}

/* fmt stands behind the '%' of a conversion. Returns what follows it. */
static const char *convert(struct strbuf *out, const char *fmt, va_list *ap, int saved_errno)
{
	int precision = -1, longs = 0;
	unsigned long long v;
	bool size = false;
	char *end;

	if (*fmt == '.' && fmt[1] == '*') {
		precision = va_arg(*ap, int);
		fmt += 2;
	} else if (*fmt == '.') {
		precision = (int)strtol(fmt + 1, &end, 10);
		fmt = end;
	}
	for (; *fmt == 'l'; fmt++)
		longs++;
	if (*fmt == 'z') {
		size = true;
		fmt++;
	}
	switch (*fmt) {
	case '%':
		strbuf_putc(out, '%');
		break;
	case 's':
		put_text(out, va_arg(*ap, const char *), precision);
		break;
	case 'm':
		strbuf_puts(out, strerror(saved_errno));
		break;
	case 'd':
		strbuf_put_int(out, longs > 1 ? va_arg(*ap, long long)
				    : longs   ? va_arg(*ap, long)
					      : va_arg(*ap, int));
		break;
	case 'u':
	case 'x':
		v = size	? va_arg(*ap, size_t)
		    : longs > 1 ? va_arg(*ap, unsigned long long)
		    : longs	? va_arg(*ap, unsigned long)
				: va_arg(*ap, unsigned);
		strbuf_printf(out, *fmt == 'x' ? "%llx" : "%llu", v);
		break;
	case 'f':
		strbuf_printf(out, "%.*f", precision < 0 ? 6 : precision, va_arg(*ap, double));
		break;
	default:
		abort(); /* an error of the caller; hack/check docs looks for them */
	}
	return fmt + 1;
}

/* Up to the end of fmt, or to the blank before a pair. */
static const char *put_piece(struct strbuf *out, const char *fmt, va_list *ap, int saved_errno)
{
	size_t from = out->len;

	while (*fmt && !(*fmt == ' ' && key_length(fmt + 1))) {
		if (*fmt == '%') {
			fmt = convert(out, fmt + 1, ap, saved_errno);
			continue;
		}
		strbuf_putc(out, *fmt++);
	}
	if (out->len > from) /* names come from outside */
		str_printable(out->s + from, out->len - from, "");
	return fmt;
}

void event_compose(char *ret, size_t size, const char *fmt, va_list ap)
{
	_cleanup_strbuf_ struct strbuf event = { 0 };
	int saved_errno = errno;
	va_list args;

	va_copy(args, ap);
	fmt = put_piece(&event, fmt, &args, saved_errno);
	while (*fmt) {
		size_t key = key_length(++fmt) + 1, before = event.len, begin;

		strbuf_putc(&event, SEPARATOR);
		strbuf_add(&event, fmt, key);
		begin = event.len;
		fmt = put_piece(&event, fmt + key, &args, saved_errno);
		if (event.len == begin) {
			event.len = before;
			event.s[before] = '\0';
		}
	}
	va_end(args);
	snprintf(ret, size, "%s", strbuf_str(&event));
	str_utf8_trim(ret);
}

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
