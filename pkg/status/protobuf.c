#include "status/protobuf-internal.h"

#include <string.h>

#include "stats/stats.h"

#define SECOND_NS 1e9

enum wire { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2 };

static void put_varint(struct strbuf *b, uint64_t v)
{
	for (; v >= 0x80; v >>= 7)
		strbuf_putc(b, (char)(v | 0x80));
	strbuf_putc(b, (char)v);
}

static void put_uint(struct strbuf *b, unsigned field, uint64_t v)
{
	put_varint(b, field << 3 | WIRE_VARINT);
	put_varint(b, v);
}

/* sint32, sint64: small numbers below 0 are short, too. */
static void put_sint(struct strbuf *b, unsigned field, int64_t v)
{
	put_uint(b, field, ((uint64_t)v << 1) ^ (v < 0 ? UINT64_MAX : 0));
}

static void put_double(struct strbuf *b, unsigned field, double v)
{
	uint64_t bits;

	memcpy(&bits, &v, sizeof(bits));
	put_varint(b, field << 3 | WIRE_64);
	for (int i = 0; i < 8; i++)
		strbuf_putc(b, (char)(bits >> 8 * i));
}

static void put_bytes(struct strbuf *b, unsigned field, const char *data, size_t len)
{
	put_varint(b, field << 3 | WIRE_BYTES);
	put_varint(b, len);
	strbuf_add(b, data, len);
}

/* A message that is complete; the buffer is for the next one then. */
static void put_message(struct strbuf *b, unsigned field, struct strbuf *message)
{
	put_bytes(b, field, strbuf_str(message), message->len);
	message->len = 0;
}

void status_protobuf_family(struct protobuf *p, const char *name, enum exposition_type type,
			    const char *help)
{
	static const unsigned types[] = { [EXPOSITION_COUNTER] = 0,
					  [EXPOSITION_GAUGE] = 1,
					  [EXPOSITION_INFO] = 1,
					  [EXPOSITION_HISTOGRAM] = 4 };

	put_bytes(&p->family, 1, name, strlen(name));
	put_bytes(&p->family, 2, help, strlen(help));
	put_uint(&p->family, 3, types[type]);
	p->has_metrics = false;
}

void status_protobuf_label(struct protobuf *p, const char *key, const char *value, size_t len)
{
	put_bytes(&p->part, 1, key, strlen(key));
	put_bytes(&p->part, 2, value, len);
	put_message(&p->metric, 1, &p->part);
}

void status_protobuf_value(struct protobuf *p, enum exposition_type type, double value)
{
	put_double(&p->part, 1, value);
	put_message(&p->metric, type == EXPOSITION_COUNTER ? 3 : 2, &p->part);
	put_message(&p->family, 4, &p->metric);
	p->has_metrics = true;
}

void status_protobuf_histogram(struct protobuf *p, const struct stats_histogram *h)
{
	struct strbuf bucket = STRBUF_INIT, span = STRBUF_INIT;
	int next = 0; /* the bucket behind the last run */
	int64_t before = 0;
	uint64_t sum = 0;

	for (size_t i = 0; i < STATS_BUCKETS; i++) {
		sum += h->n[i];
		put_uint(&bucket, 1, sum);
		put_double(&bucket, 2, (double)stats_bounds_ns[i] / SECOND_NS);
		put_message(&p->part, 3, &bucket);
	}
	put_uint(&p->part, 1, sum + h->n[STATS_BUCKETS]);
	put_double(&p->part, 2, (double)h->sum_ns / SECOND_NS);
	/* Native buckets that have something, as runs of neighbours; of each the difference to the
	 * one before. */
	put_sint(&p->part, 5, STATS_NATIVE_SCHEMA);
	put_double(&p->part, 6, stats_native_zero);
	put_uint(&p->part, 7, h->native_zero);
	for (int i = 0, end; i < STATS_NATIVE_BUCKETS; i = end + 1) {
		for (end = i; end < STATS_NATIVE_BUCKETS && h->native[end]; end++) {
			put_sint(&p->part, 13, (int64_t)h->native[end] - before);
			before = (int64_t)h->native[end];
		}
		if (end == i)
			continue;
		put_sint(&span, 1, i + STATS_NATIVE_FIRST - next);
		put_uint(&span, 2, (uint64_t)(end - i));
		next = end + STATS_NATIVE_FIRST;
		put_message(&p->part, 12, &span);
	}
	strbuf_done(&span);
	strbuf_done(&bucket);
	put_message(&p->metric, 7, &p->part);
	put_message(&p->family, 4, &p->metric);
	p->has_metrics = true;
}

void status_protobuf_end(struct protobuf *p, struct strbuf *out)
{
	if (p->has_metrics) {
		put_varint(out, p->family.len);
		strbuf_add(out, strbuf_str(&p->family), p->family.len);
	}
	p->family.len = 0;
	p->has_metrics = false;
}
