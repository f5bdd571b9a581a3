#include "status/exposition-internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "status/protobuf-internal.h"

#define SECOND_NS INT64_C(1000000000)

static const struct {
	const char *prometheus, *openmetrics;
	const char *suffix; /* of a sample's name */
	bool whole;	    /* Prometheus' family has the suffix, too */
} types[] = {
	[EXPOSITION_GAUGE] = { "gauge", "gauge", "", false },
	[EXPOSITION_COUNTER] = { "counter", "counter", "_total", true },
	[EXPOSITION_HISTOGRAM] = { "histogram", "histogram", "", false },
	[EXPOSITION_INFO] = { "gauge", "info", "_info", true },
};

void status_family(struct exposition *e, const char *name, enum exposition_type type,
		   const char *help)
{
	bool openmetrics = e->format == STATUS_OPENMETRICS;
	const char *suffix = !openmetrics && types[type].whole ? types[type].suffix : "";
	char whole[128];

	e->name = name;
	e->type = type;
	if (e->format == STATUS_PROTOBUF) {
		snprintf(whole, sizeof(whole), "%s%s", name, suffix);
		status_protobuf_end(e->protobuf, e->out);
		status_protobuf_family(e->protobuf, whole, type, help);
		return;
	}
	strbuf_printf(e->out, "# HELP %s%s %s\n# TYPE %s%s %s\n", name, suffix, help, name, suffix,
		      openmetrics ? types[type].openmetrics : types[type].prometheus);
}

void status_sample(struct exposition *e, const char *part)
{
	if (e->format == STATUS_PROTOBUF)
		return;
	strbuf_puts(e->out, e->name);
	strbuf_puts(e->out, types[e->type].suffix);
	strbuf_puts(e->out, part);
	e->labelled = false;
}

/* Both texts escape the same three characters; escape: it is one of them. */
static void put_value(struct strbuf *out, const char *s, bool escape)
{
	for (size_t left = strlen(s); left;) {
		size_t n = str_printable_sequence(s, left);

		if (escape && n == 1 && (*s == '\\' || *s == '"'))
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
	if (e->format == STATUS_PROTOBUF) {
		_cleanup_strbuf_ struct strbuf shown = STRBUF_INIT;

		put_value(&shown, value ? value : "", false);
		status_protobuf_label(e->protobuf, key, strbuf_str(&shown), shown.len);
		return;
	}
	strbuf_putc(e->out, e->labelled ? ',' : '{');
	strbuf_puts(e->out, key);
	strbuf_puts(e->out, "=\"");
	put_value(e->out, value ? value : "", true);
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
	if (e->format == STATUS_PROTOBUF) {
		status_protobuf_value(e->protobuf, e->type, (double)value);
		return;
	}
	put_space(e);
	strbuf_printf(e->out, "%" PRIu64 "\n", value);
}

void status_seconds(struct exposition *e, int64_t ns)
{
	if (e->format == STATUS_PROTOBUF) {
		status_protobuf_value(e->protobuf, e->type, (double)ns / (double)SECOND_NS);
		return;
	}
	put_space(e);
	strbuf_printf(e->out, "%" PRId64 ".%09" PRId64 "\n", ns / SECOND_NS, ns % SECOND_NS);
}

void status_histogram(struct exposition *e, const struct stats_histogram *h)
{
	status_protobuf_histogram(e->protobuf, h);
}

void status_end(struct exposition *e)
{
	if (e->format == STATUS_PROTOBUF)
		status_protobuf_end(e->protobuf, e->out);
	else if (e->format == STATUS_OPENMETRICS)
		strbuf_puts(e->out, "# EOF\n");
}
