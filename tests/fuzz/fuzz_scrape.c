/* room: status */
/*
 * Any bytes as the name of a pod in the metrics and on the page: one sample on one line, whose
 * value is read back as what may be shown of the name; text of HTML that ends nothing.
 */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "status/exposition-internal.h"
#include "status/html-internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The value up to its quotation mark, as Prometheus reads it. */
static const char *read_value(const char *at, struct strbuf *ret)
{
	for (; *at != '"'; at++) {
		assert(*at && *at != '\n');
		if (*at == '\\') {
			at++;
			assert(*at == '"' || *at == '\\');
		}
		strbuf_putc(ret, *at);
	}
	return at + 1;
}

static void check_sample(const char *name, const char *shown)
{
	static const char begin[] = "railmate_x{pod=\"";
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT, value = STRBUF_INIT;
	struct exposition e = { .out = &text, .name = "railmate_x" };
	const char *rest;

	status_sample(&e, "");
	status_label(&e, "pod", name);
	status_label(&e, "vf", "v");
	status_count(&e, 7);
	assert(str_starts(strbuf_str(&text), begin));
	rest = read_value(strbuf_str(&text) + strlen(begin), &value);
	assert(!strcmp(rest, ",vf=\"v\"} 7\n") && !strcmp(strbuf_str(&value), shown));
}

static void check_html(const char *name, const char *shown)
{
	static const struct {
		const char *entity;
		char of;
	} entities[] = { { "&amp;", '&' }, { "&lt;", '<' }, { "&gt;", '>' }, { "&quot;", '"' } };
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT, read = STRBUF_INIT;

	status_html_text(&text, name);
	for (const char *at = strbuf_str(&text); *at;) {
		size_t i = 0;

		assert(!strchr("<>\"\n", *at));
		if (*at != '&') {
			strbuf_putc(&read, *at++);
			continue;
		}
		while (i < ARRAY_LEN(entities) && !str_starts(at, entities[i].entity))
			i++;
		assert(i < ARRAY_LEN(entities));
		strbuf_putc(&read, entities[i].of);
		at += strlen(entities[i].entity);
	}
	assert(!strcmp(strbuf_str(&read), shown));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_free_ char *name = xasprintf("%.*s", (int)size, (const char *)data);
	_cleanup_strbuf_ struct strbuf shown = STRBUF_INIT;

	strbuf_puts(&shown, name);
	if (shown.len)
		str_printable(shown.s, shown.len, "");
	check_sample(name, strbuf_str(&shown));
	check_html(name, strbuf_str(&shown));
	return 0;
}
