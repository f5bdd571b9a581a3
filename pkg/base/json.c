#include "base/json.h"

#include <assert.h>
#include <string.h>

#include "base/str.h"

#define DEPTH_MAX 60

void json_init(struct json *j, struct strbuf *out, int indent)
{
	*j = (struct json) { .out = out, .indent = indent };
}

static void newline(struct json *j)
{
	if (!j->indent)
		return;
	strbuf_putc(j->out, '\n');
	for (int i = 0; i < j->depth * j->indent; i++)
		strbuf_putc(j->out, ' ');
}

static void before_value(struct json *j)
{
	if (j->after_key) {
		j->after_key = false;
		return;
	}
	if (j->comma >> j->depth & 1)
		strbuf_putc(j->out, ',');
	if (j->depth)
		newline(j);
	j->comma |= UINT64_C(1) << j->depth;
}

static void begin(struct json *j, char c)
{
	before_value(j);
	strbuf_putc(j->out, c);
	j->depth++;
	assert(j->depth < DEPTH_MAX);
	j->comma &= ~(UINT64_C(1) << j->depth);
}

static void end(struct json *j, char c)
{
	bool filled = j->comma >> j->depth & 1;

	assert(j->depth > 0 && !j->after_key);
	j->depth--;
	if (filled)
		newline(j);
	strbuf_putc(j->out, c);
}

void json_begin_object(struct json *j)
{
	begin(j, '{');
}

void json_end_object(struct json *j)
{
	end(j, '}');
}

void json_begin_array(struct json *j)
{
	begin(j, '[');
}

void json_end_array(struct json *j)
{
	end(j, ']');
}

static void put_escaped(struct strbuf *b, unsigned char c)
{
	static const char *const named[] = {
		['\b'] = "\\b", ['\f'] = "\\f", ['\n'] = "\\n", ['\r'] = "\\r", ['\t'] = "\\t"
	};

	if (c == '"' || c == '\\')
		strbuf_printf(b, "\\%c", c);
	else if (c <= '\r' && named[c])
		strbuf_puts(b, named[c]);
	else if (c < 0x20 || c == 0x7f)
		strbuf_printf(b, "\\u%04x", c);
	else
		strbuf_putc(b, (char)c);
}

static void put_string(struct strbuf *b, const char *s)
{
	size_t len = strlen(s);
	uint32_t c;

	strbuf_putc(b, '"');
	for (size_t i = 0, n; i < len; i += n ? n : 1) {
		/* Most characters stand for themselves. */
		for (n = 0;
		     s[i + n] >= 0x20 && s[i + n] < 0x7f && s[i + n] != '"' && s[i + n] != '\\';)
			n++;
		if (n) {
			strbuf_add(b, s + i, n);
			continue;
		}
		n = str_utf8_sequence(s + i, len - i);
		if (n == 1)
			put_escaped(b, (unsigned char)s[i]);
		else if (n && str_printable_sequence(s + i, n))
			strbuf_add(b, s + i, n);
		else if (!n)
			strbuf_puts(b, "\xef\xbf\xbd");
		/* A character that a terminal may not be shown: for a reader it is the same one. */
		else if ((c = str_utf8_code_point(s + i, n)) < 0x10000)
			strbuf_printf(b, "\\u%04x", c);
		else
			strbuf_printf(b, "\\u%04x\\u%04x", 0xd800 + ((c - 0x10000) >> 10),
				      0xdc00 + ((c - 0x10000) & 0x3ff));
	}
	strbuf_putc(b, '"');
}

void json_key(struct json *j, const char *key)
{
	assert(!j->after_key);
	before_value(j);
	put_string(j->out, key);
	strbuf_puts(j->out, j->indent ? ": " : ":");
	j->after_key = true;
}

void json_put_string(struct json *j, const char *s)
{
	if (!s) {
		json_put_null(j);
		return;
	}
	before_value(j);
	put_string(j->out, s);
}

void json_put_int(struct json *j, int64_t v)
{
	before_value(j);
	strbuf_put_int(j->out, v);
}

void json_put_bool(struct json *j, bool v)
{
	before_value(j);
	strbuf_puts(j->out, v ? "true" : "false");
}

void json_put_null(struct json *j)
{
	before_value(j);
	strbuf_puts(j->out, "null");
}

void json_put_raw(struct json *j, const char *text, size_t len)
{
	before_value(j);
	strbuf_add(j->out, text, len);
}

void json_kv_object(struct json *j, const char *key)
{
	json_key(j, key);
	json_begin_object(j);
}

void json_kv_array(struct json *j, const char *key)
{
	json_key(j, key);
	json_begin_array(j);
}

void json_kv_strings(struct json *j, const char *key, const char *const *v, size_t n)
{
	json_kv_array(j, key);
	for (size_t i = 0; i < n; i++)
		json_put_string(j, v[i]);
	json_end_array(j);
}

void json_kv_string(struct json *j, const char *key, const char *s)
{
	json_key(j, key);
	json_put_string(j, s);
}

void json_kv_int(struct json *j, const char *key, int64_t v)
{
	json_key(j, key);
	json_put_int(j, v);
}

void json_kv_int_if(struct json *j, const char *key, int64_t v, bool known)
{
	json_key(j, key);
	if (known)
		json_put_int(j, v);
	else
		json_put_null(j);
}

void json_kv_bool(struct json *j, const char *key, bool v)
{
	json_key(j, key);
	json_put_bool(j, v);
}
