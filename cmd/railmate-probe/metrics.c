/*
 * A report as Prometheus text, for the text file collector of node_exporter or another reader of
 * such files: one sample a transfer and finding. docs/probe.md lists them.
 */
#include <inttypes.h>
#include <math.h>

#include "base/str.h"
#include "report.h"
#include "told.h"

/* A label's value: names of a tenant, in Prometheus' escapes. */
static void put_label(const char *name, const char *value, FILE *out)
{
	fprintf(out, "%s=\"", name);
	for (; value && *value; value++) {
		if (*value == '"' || *value == '\\')
			fputc('\\', out);
		fputc((unsigned char)*value < ' ' ? '?' : *value, out);
	}
	fputc('"', out);
}

static void put_sample(const char *metric, const struct measure *m, double value, FILE *out)
{
	if (isnan(value))
		return;
	fprintf(out, "%s{", metric);
	put_label("path", measure_path_name(m->path), out);
	put_label(",from", m->from, out);
	put_label(",to", m->to, out);
	put_label(",from_memory", m->from_memory, out);
	put_label(",to_memory", m->to_memory, out);
	put_label(",op", m->op, out);
	put_label(",together", m->together ? "true" : "false", out);
	fprintf(out, "} %.9g\n", value);
}

/* A reader refuses the whole of a file that has one sample twice: of what is alike the first
 * counts.
 */
static bool is_alike(const struct finding *f, const struct finding *o)
{
	return f->outcome == o->outcome && f->sentence == o->sentence && str_eq(f->on, o->on);
}

static void put_findings(const struct report *r, FILE *out)
{
	for (size_t i = 0, k = 0; i < r->n_findings; i++, k = 0) {
		const struct finding *f = &r->findings[i];

		while (k < i && !is_alike(&r->findings[k], f))
			k++;
		if (f->outcome == OUTCOME_GOOD || k < i)
			continue;
		fputs("railmate_probe_finding{", out);
		put_label("id", f->sentence->id, out);
		put_label(",on", f->on, out);
		put_label(",outcome", outcome_name(f->outcome), out);
		fputs("} 1\n", out);
	}
}

static void begin(const char *metric, const char *help, FILE *out)
{
	fprintf(out, "# HELP %s %s\n# TYPE %s gauge\n", metric, help, metric);
}

void report_metrics(const struct report *r, int64_t at, FILE *out)
{
	begin("railmate_probe_gigabits_per_second", "Payload of a transfer in 10^9 bits a second.",
	      out);
	for (size_t i = 0; i < r->n_measures; i++)
		put_sample("railmate_probe_gigabits_per_second", &r->measures[i],
			   r->measures[i].gbps, out);
	begin("railmate_probe_expected_gigabits_per_second",
	      "What ports, PCIe links and rate limits allow that transfer.", out);
	for (size_t i = 0; i < r->n_measures; i++)
		put_sample("railmate_probe_expected_gigabits_per_second", &r->measures[i],
			   r->measures[i].expect_gbps, out);
	begin("railmate_probe_latency_seconds", "Half a round trip of 8 bytes.", out);
	for (size_t i = 0; i < r->n_measures; i++)
		put_sample("railmate_probe_latency_seconds", &r->measures[i],
			   r->measures[i].usec / 1e6, out);
	begin("railmate_probe_finding", "1 for each finding that is not good.", out);
	put_findings(r, out);
	begin("railmate_probe_exit_status",
	      "Of the run: 0 good, 1 broken, 3 slow, 4 not measured, 5 no GPU library.", out);
	fprintf(out, "railmate_probe_exit_status %d\n", report_exit(r));
	begin("railmate_probe_last_run_timestamp_seconds", "When the run ended.", out);
	fprintf(out, "railmate_probe_last_run_timestamp_seconds %" PRId64 "\n", at);
}
