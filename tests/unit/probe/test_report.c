/* Outcomes, exit statuses, and the three forms of a report. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/mem.h"
#include "document/document.h"
#include "railmate-probe/report.h"
#include "railmate-probe/told.h"
#include "support/testarena.h"

static struct report new_report(void)
{
	return (struct report) { .arena = arena, .slow = 0.8, .broken = 0.5, .quiet = true };
}

static struct measure transfer(double gbps, double expected)
{
	return (struct measure) { .path = PATH_LOOPBACK,
				  .from = "mlx5_4",
				  .to = "mlx5_4",
				  .from_memory = "host",
				  .to_memory = "host",
				  .op = "write",
				  .gbps = gbps,
				  .usec = 1.5,
				  .expect_gbps = expected,
				  .limit = "port 1 of mlx5_4" };
}

static char *written(void (*form)(const struct report *r, FILE *out), const struct report *r)
{
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);

	assert_non_null(out);
	form(r, out);
	fclose(out);
	return text;
}

static void share_of_the_expectation_decides(void **state)
{
	static const struct {
		double gbps, expected;
		enum outcome outcome;
		enum probe_exit status;
	} cases[] = {
		{ 190, 200, OUTCOME_GOOD, PROBE_EXIT_GOOD },
		{ 159, 200, OUTCOME_SLOW, PROBE_EXIT_SLOW },
		{ 99, 200, OUTCOME_BROKEN, PROBE_EXIT_BROKEN },
		{ 1, NAN, OUTCOME_GOOD, PROBE_EXIT_GOOD },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct report r = new_report();
		struct measure m = transfer(cases[i].gbps, cases[i].expected);

		report_measure(&r, &m);
		assert_int_equal(r.measures[0].outcome, cases[i].outcome);
		assert_int_equal(report_exit(&r), cases[i].status);
	}
}

static void failure_of_a_tool_is_never_good(void **state)
{
	struct report r = new_report();
	struct measure m = transfer(NAN, NAN);

	(void)state;
	m.verified = true;
	report_measure(&r, &m); /* nobody said what went wrong */
	assert_int_equal(r.measures[0].outcome, OUTCOME_NOT_MEASURED);
	assert_false(r.measures[0].verified);
	m = transfer(200, 200);
	report_measure(&r, &m);
	assert_int_equal(report_exit(&r), PROBE_EXIT_NOT_MEASURED);
	r.no_gpu_library = true;
	report_finding(&r, OUTCOME_NOT_MEASURED, "gpu-library", "0000:1b:00.0", "no libcuda");
	assert_int_equal(report_exit(&r), PROBE_EXIT_NO_GPU_LIBRARY);
	report_finding(&r, OUTCOME_NOT_MEASURED, "out-of-time", NULL, "7 runs had no time left");
	assert_int_equal(report_exit(&r), PROBE_EXIT_NOT_MEASURED);
	report_finding(&r, OUTCOME_BROKEN, "no-hca", "0000:3b:00.2", "has no RDMA device");
	assert_int_equal(report_exit(&r), PROBE_EXIT_BROKEN);
}

static void text_has_the_worst_first_in_100_columns(void **state)
{
	struct report r = new_report();
	struct measure m = transfer(196, 200);
	_cleanup_free_ char *text = NULL;

	(void)state;
	report_measure(&r, &m);
	m.together = true;
	m.gbps = 80;
	report_measure(&r, &m);
	report_finding(&r, OUTCOME_GOOD, "no-gpu", NULL, "no GPU is in map.json");
	report_finding(&r, OUTCOME_BROKEN, "no-hca", "0000:3b:00.2", "has no RDMA device %0120d",
		       7);
	text = written(report_text, &r);
	assert_memory_equal(text, "FAIL: ", 6);
	/* One row: alone, its share, and at once. */
	assert_non_null(strstr(
		text,
		"FAIL loopback     mlx5_4                  host           write    196.0   98 %"
		"     80.0      1.5\n"));
	assert_non_null(strstr(text, "expected: 200.0 Gb/s, by port 1 of mlx5_4\n"));
	assert_true(strstr(text, "has no RDMA device") < strstr(text, "no GPU is in map.json"));
	assert_non_null(strstr(text, "     do: "));
	for (const char *line = text, *end; (end = strchr(line, '\n')); line = end + 1) {
		if (!strstr(line, "0000000000"))
			assert_true(end - line <= 100);
	}
}

static void a_slow_gpu_is_likened_to_what_others_measured(void **state)
{
	static const struct {
		double gbps;
		const char *memory, *like;
	} cases[] = {
		{ 140, "0000:1b:00.0", "17.5 GB/s of 50.0: about what RoCE with copies" },
		{ 196, "0000:1b:00.0", "24.5 GB/s of 50.0: about what two NUMA nodes give" },
		{ 300, "0000:1b:00.0", NULL },
		{ 390, "0000:1b:00.0", NULL },
		{ 140, "host", NULL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct report r = new_report();
		struct measure m = transfer(cases[i].gbps, 400);
		_cleanup_free_ char *text = NULL;

		m.from_memory = m.to_memory = cases[i].memory;
		report_measure(&r, &m);
		text = written(report_text, &r);
		if (cases[i].like)
			assert_non_null(strstr(text, cases[i].like));
		else
			assert_null(strstr(text, "about what"));
	}
}

static void text_names_a_peer_once(void **state)
{
	struct report r = new_report();
	struct measure m = transfer(0.054, NAN);
	_cleanup_free_ char *text = NULL;

	(void)state;
	m.path = PATH_SAME_RAIL;
	m.to = "ml/pytorch-worker-12-x7k2p/mlx5_15";
	report_measure(&r, &m);
	text = written(report_text, &r);
	assert_non_null(strstr(text, "0 VFs, 0 GPUs, 1 transfers to ml/pytorch-worker-12-x7k2p\n"));
	assert_non_null(strstr(text, " same rail    mlx5_4 > mlx5_15        host           write"
				     "    0.054      - "));
}

static void json_is_read_back(void **state)
{
	struct report r = new_report();
	struct told t = { .pod = "ml/train-0", .container = "a\"b" };
	struct measure m = transfer(NAN, 200);
	_cleanup_free_ char *text = NULL;
	const struct item *top, *measure;

	(void)state;
	r.told = &t;
	m.outcome = OUTCOME_NOT_MEASURED;
	report_measure(&r, &m);
	text = written(report_json, &r);
	assert_int_equal(document_parse(text, strlen(text), "report", arena, &top, NULL), 0);
	assert_string_equal(item_string(top, "outcome"), "not measured");
	assert_string_equal(item_string(top, "container"), "a\"b");
	measure = &item_get(top, "measures")->kids[0];
	assert_int_equal(item_get(measure, "gbps")->type, ITEM_NULL);
	assert_int_equal(item_get(measure, "expect_gbps")->type, ITEM_NUMBER);
}

static void page_escapes_names_and_refers_to_nothing(void **state)
{
	struct report r = new_report();
	struct told t = { .pod = "<script>alert(1)</script>" };
	struct measure m = transfer(196, 200);
	_cleanup_free_ char *text = NULL;

	(void)state;
	r.told = &t;
	report_measure(&r, &m);
	text = written(report_html, &r);
	assert_null(strstr(text, "<script"));
	assert_null(strstr(text, "http"));
	assert_non_null(strstr(text, "196.0 Gb/s"));
}

static void form_of_metrics(const struct report *r, FILE *out)
{
	report_metrics(r, 1795360800, out);
}

static void metrics_are_one_sample_a_transfer_and_finding(void **state)
{
	struct report r = new_report();
	struct measure m = transfer(196, NAN);
	_cleanup_free_ char *text = NULL;
	const char *sample;

	(void)state;
	report_measure(&r, &m);
	report_finding(&r, OUTCOME_GOOD, "no-gpu", NULL, "no GPU is in map.json");
	report_finding(&r, OUTCOME_BROKEN, "no-hca", "a\"b", "has no RDMA device");
	report_finding(&r, OUTCOME_BROKEN, "no-hca", "a\"b", "has none at all");
	text = written(form_of_metrics, &r);
	sample = strstr(text, "railmate_probe_finding{");
	assert_non_null(sample);
	assert_null(strstr(sample + 1, "railmate_probe_finding{")); /* twice is no valid file */
	assert_non_null(strstr(
		text,
		"railmate_probe_gigabits_per_second{path=\"loopback\",from=\"mlx5_4\",to=\"mlx5_4\","
		"from_memory=\"host\",to_memory=\"host\",op=\"write\",together=\"false\"} 196\n"));
	assert_null(strstr(text, "railmate_probe_expected_gigabits_per_second{"));
	assert_non_null(strstr(
		text,
		"railmate_probe_finding{id=\"no-hca\",on=\"a\\\"b\",outcome=\"broken\"} 1\n"));
	assert_null(strstr(text, "no-gpu"));
	assert_non_null(strstr(text, "railmate_probe_exit_status 1\n"));
	assert_non_null(strstr(text, "railmate_probe_last_run_timestamp_seconds 1795360800\n"));
}

static void every_sentence_is_there_once(void **state)
{
	(void)state;
	for (size_t i = 0; i < n_sentences; i++)
		assert_ptr_equal(sentence_of(sentences[i].id), &sentences[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(share_of_the_expectation_decides),
		cmocka_unit_test(failure_of_a_tool_is_never_good),
		cmocka_unit_test(text_has_the_worst_first_in_100_columns),
		cmocka_unit_test(a_slow_gpu_is_likened_to_what_others_measured),
		cmocka_unit_test(text_names_a_peer_once),
		cmocka_unit_test(json_is_read_back),
		cmocka_unit_test(page_escapes_names_and_refers_to_nothing),
		cmocka_unit_test(metrics_are_one_sample_a_transfer_and_finding),
		cmocka_unit_test(every_sentence_is_there_once),
	};

	return cmocka_run_group_tests(tests, arena_set_up, arena_tear_down);
}
