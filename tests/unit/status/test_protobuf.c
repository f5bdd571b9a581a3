/* The protobuf format, read by a decoder of its own: every length ends where a field does. */
#include "facts.h"

struct field {
	unsigned number;
	uint64_t value; /* of a varint, or the bits of a double */
	const uint8_t *data;
	size_t len;
};

static uint64_t varint(const uint8_t **p, const uint8_t *end)
{
	uint64_t v = 0;

	for (int shift = 0;; shift += 7) {
		assert_true(*p < end && shift < 64);
		v |= (uint64_t)(**p & 0x7f) << shift;
		if (!(*(*p)++ & 0x80))
			return v;
	}
}

static bool next(const uint8_t **p, const uint8_t *end, struct field *ret)
{
	uint64_t tag;

	if (*p == end)
		return false;
	tag = varint(p, end);
	*ret = (struct field) { .number = (unsigned)(tag >> 3) };
	if ((tag & 7) == 0) {
		ret->value = varint(p, end);
		return true;
	}
	assert_true((tag & 7) == 1 || (tag & 7) == 2);
	ret->len = (tag & 7) == 1 ? 8 : varint(p, end);
	assert_true((size_t)(end - *p) >= ret->len);
	ret->data = *p;
	*p += ret->len;
	if ((tag & 7) == 1)
		memcpy(&ret->value, ret->data, 8);
	return true;
}

static int64_t zigzag(uint64_t v)
{
	return (int64_t)(v >> 1) ^ -(int64_t)(v & 1);
}

static double as_double(uint64_t bits)
{
	double d;

	memcpy(&d, &bits, sizeof(d));
	return d;
}

/* The nth field of this number; false: there are fewer. */
static bool find(struct field in, unsigned number, size_t nth, struct field *ret)
{
	const uint8_t *p = in.data, *end = in.data + in.len;

	while (next(&p, end, ret)) {
		if (ret->number == number && !nth--)
			return true;
	}
	return false;
}

static bool is_text(struct field f, const char *text)
{
	return f.len == strlen(text) && !memcmp(f.data, text, f.len);
}

static bool find_family(const struct strbuf *all, const char *name, struct field *ret)
{
	const uint8_t *p = (const uint8_t *)all->s, *end = p + all->len;
	bool found = false;

	while (p < end) {
		struct field family = { .len = varint(&p, end) }, own;

		family.data = p;
		assert_true((size_t)(end - p) >= family.len);
		p += family.len;
		assert_true(find(family, 1, 0, &own));
		if (is_text(own, name)) {
			*ret = family;
			found = true;
		}
	}
	return found;
}

static void counters_and_gauges_have_labels_and_values(void **state)
{
	struct strbuf out = STRBUF_INIT;
	struct world *w = *state;
	struct field family = { 0 }, metric = { 0 }, f, label = { 0 };
	struct ledger_hold hold = world_hold(w, 0, "x");

	hold.owner.pod = "a\"\\\xff";
	ledger_put(w->ledger, &hold);
	status_write_metrics(&w->facts, STATUS_PROTOBUF, &out);
	assert_true(find_family(&out, "railmate_scans_total", &family));
	assert_true(find(family, 3, 0, &f) && f.value == 0);
	assert_true(find(family, 4, 0, &metric) && find(metric, 3, 0, &f) && find(f, 1, 0, &f));
	assert_true(as_double(f.value) == 7);
	assert_false(find(family, 4, 1, &f));
	assert_true(find_family(&out, "railmate_vf_info", &family));
	assert_true(find(family, 3, 0, &f) && f.value == 1);
	assert_true(find(family, 4, 0, &metric) && find(metric, 2, 0, &f) && find(f, 1, 0, &f));
	assert_true(as_double(f.value) == 1);
	assert_true(find(metric, 1, 3, &label) && find(label, 1, 0, &f) && is_text(f, "pod"));
	assert_true(find(label, 2, 0, &f) && is_text(f, "a\"\\?"));
	/* A family without metrics is not there. */
	assert_false(find_family(&out, "railmate_port_info", &family));
	strbuf_done(&out);
}

static void a_histogram_is_classic_and_native(void **state)
{
	static const struct {
		int64_t offset;
		uint64_t len;
	} spans[] = { { -98, 2 }, { 96, 1 }, { 15, 1 } };
	static const int64_t deltas[] = { 2, -1, 0, 1 };
	struct strbuf out = STRBUF_INIT;
	struct world *w = *state;
	struct stats_pool *p = stats_of(w->stats, RESOURCE);
	struct field family = { 0 }, metric = { 0 }, h = { 0 }, f, part;

	/* Allocate's: 2^(-99/8) s is 187 µs, 2^(-98/8) 206 µs, 2^(-97/8) 224 µs. */
	stats_count_call(p, STATS_ALLOCATE, 0, 200000);
	stats_count_call(p, STATS_ALLOCATE, 0, 200000);
	stats_count_call(p, STATS_ALLOCATE, 0, 220000);
	stats_count_call(p, STATS_ALLOCATE, 0, 1000000000); /* bucket 0 */
	stats_count_call(p, STATS_ALLOCATE, 0, 4000000000);
	stats_count_call(p, STATS_ALLOCATE, 0, 4000000000); /* bucket 16 */
	stats_count_call(p, STATS_ALLOCATE, 0, 500);	    /* the zero bucket */
	w->service.stats = stats_copy(w->stats, w->arena, &w->service.n_stats);
	status_write_metrics(&w->facts, STATUS_PROTOBUF, &out);
	assert_true(find_family(&out, "railmate_pool_call_duration_seconds", &family));
	assert_true(find(family, 3, 0, &f) && f.value == 4);
	assert_true(find(family, 4, STATS_ALLOCATE, &metric) && find(metric, 7, 0, &h));
	assert_true(find(h, 1, 0, &f) && f.value == 7);
	assert_true(find(h, 2, 0, &f) && as_double(f.value) > 9.00062 &&
		    as_double(f.value) < 9.00063);
	assert_true(find(h, 3, 1, &part) && find(part, 1, 0, &f) && f.value == 4);
	assert_true(find(part, 2, 0, &f) && as_double(f.value) == 0.00025);
	assert_true(find(h, 3, STATS_BUCKETS - 1, &part) && !find(h, 3, STATS_BUCKETS, &f));
	assert_true(find(h, 5, 0, &f) && zigzag(f.value) == 3);
	assert_true(find(h, 6, 0, &f) && as_double(f.value) == 0x1p-20);
	assert_true(find(h, 7, 0, &f) && f.value == 1);
	for (size_t i = 0; i < ARRAY_LEN(spans); i++) {
		assert_true(find(h, 12, i, &part) && find(part, 1, 0, &f));
		assert_int_equal(zigzag(f.value), spans[i].offset);
		assert_true(find(part, 2, 0, &f) && f.value == spans[i].len);
	}
	assert_false(find(h, 12, ARRAY_LEN(spans), &f));
	for (size_t i = 0; i < ARRAY_LEN(deltas); i++)
		assert_true(find(h, 13, i, &f) && zigzag(f.value) == deltas[i]);
	assert_false(find(h, 13, ARRAY_LEN(deltas), &f));
	strbuf_done(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define WORLD(f) cmocka_unit_test_setup_teardown(f, world_set_up, world_tear_down)
		WORLD(counters_and_gauges_have_labels_and_values),
		WORLD(a_histogram_is_classic_and_native),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
