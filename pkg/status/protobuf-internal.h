/*
 * Metrics as Prometheus' protobuf format, the only one that has native histograms: messages
 * MetricFamily, each with its length before it. Numbers of fields are those of
 * https://github.com/prometheus/client_model/blob/master/io/prometheus/client/metrics.proto.
 * Written as they come, since a tree of thousands of messages would be more memory than their text.
 */
#ifndef RAILMATE_STATUS_PROTOBUF_INTERNAL_H
#define RAILMATE_STATUS_PROTOBUF_INTERNAL_H

#include "base/str.h"
#include "status/exposition-internal.h"

struct stats_histogram;

/* One family, one of its metrics and a message of that under way: the length of each stands before
 * it. */
struct protobuf {
	struct strbuf family, metric, part;
	bool has_metrics;
};

/* name: with its suffix. */
void status_protobuf_family(struct protobuf *p, const char *name, enum exposition_type type,
			    const char *help);
void status_protobuf_label(struct protobuf *p, const char *key, const char *value, size_t len);
/* These two end the metric. */
void status_protobuf_value(struct protobuf *p, enum exposition_type type, double value);
void status_protobuf_histogram(struct protobuf *p, const struct stats_histogram *h);
/* The family, if it has metrics. */
void status_protobuf_end(struct protobuf *p, struct strbuf *out);

#endif
