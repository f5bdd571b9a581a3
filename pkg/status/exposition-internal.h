/*
 * Metrics in Prometheus' text format 0.0.4
 * (https://prometheus.io/docs/instrumenting/exposition_formats/). Pure. A family is begun once,
 * then its samples follow; each sample is begun, gets its labels, and ends with its value. Values
 * of labels are escaped, and bytes that are not printable become '?'.
 */
#ifndef RAILMATE_STATUS_EXPOSITION_INTERNAL_H
#define RAILMATE_STATUS_EXPOSITION_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

struct strbuf;

/* INFO: a gauge that is always 1, for its labels. */
enum exposition_type {
	EXPOSITION_GAUGE,
	EXPOSITION_COUNTER,
	EXPOSITION_HISTOGRAM,
	EXPOSITION_INFO
};

struct exposition {
	struct strbuf *out;
	const char *name; /* of the family: without _total and _info */
	enum exposition_type type;
	bool labelled; /* the sample has a label already */
};

void status_family(struct exposition *e, const char *name, enum exposition_type type,
		   const char *help);
/* part: "" for the value itself; of a histogram "_bucket", "_count", "_sum". */
void status_sample(struct exposition *e, const char *part);
void status_label(struct exposition *e, const char *key, const char *value);
void status_label_int(struct exposition *e, const char *key, int value);
void status_count(struct exposition *e, uint64_t value);
/* Nanoseconds as seconds, exact. */
void status_seconds(struct exposition *e, int64_t ns);

#endif
