#include "status/exposition-internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"

#define SECOND_NS INT64_C(1000000000)

static const struct {
	const char *name;
	const char *suffix; /* of the family's name */
} types[] = {
	[EXPOSITION_GAUGE] = { "gauge", "" },
	[EXPOSITION_COUNTER] = { "counter", "_total" },
	[EXPOSITION_HISTOGRAM] = { "histogram", "" },
	[EXPOSITION_INFO] = { "gauge", "_info" },
};

void status_family(struct exposition *e, const char *name, enum exposition_type type,
		   const char *help)
{
	const char *suffix = types[type].suffix;

	e->name = name;
	e->type = type;
	strbuf_printf(e->out, "# HELP %s%s %s\n# TYPE %s%s %s\n", name, suffix, help, name, suffix,
		      types[type].name);
}

void status_sample(struct exposition *e, const char *part)
{
	strbuf_puts(e->out, e->name);
	strbuf_puts(e->out, types[e->type].suffix);
	strbuf_puts(e->out, part);
	e->labelled = false;
}

static void put_value(struct strbuf *out, const char *s)
{
	for (size_t left = strlen(s); left;) {
		size_t n = str_printable_sequence(s, left);

		if (n == 1 && (*s == '\\' || *s == '"'))
			strbuf_putc(out, '\\');
		if (n)
			strbuf_add(out, s, n);
		else
			strbuf_putc(out, '?');
		n += !n;
		s += n;
		left -= n;
	}
}

void status_label(struct exposition *e, const char *key, const char *value)
{
	strbuf_putc(e->out, e->labelled ? ',' : '{');
	strbuf_puts(e->out, key);
	strbuf_puts(e->out, "=\"");
	put_value(e->out, value ? value : "");
	strbuf_putc(e->out, '"');
	e->labelled = true;
}

void status_label_int(struct exposition *e, const char *key, int value)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", value);
	status_label(e, key, text);
}

static void put_space(struct exposition *e)
{
	strbuf_puts(e->out, e->labelled ? "} " : " ");
}

void status_count(struct exposition *e, uint64_t value)
{
	put_space(e);
	strbuf_printf(e->out, "%" PRIu64 "\n", value);
}

void status_seconds(struct exposition *e, int64_t ns)
{
	put_space(e);
	strbuf_printf(e->out, "%" PRId64 ".%09" PRId64 "\n", ns / SECOND_NS, ns % SECOND_NS);
}
