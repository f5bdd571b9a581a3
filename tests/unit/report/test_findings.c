/* What the report of railmatectl doctor comes to, and what a child that has none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>
#include <uv.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"
#include "config/config.h"
#include "load/configfiles.h"
#include "report/child.h"
#include "report/findings.h"
#include "support/nodes.h"
#include "support/synth.h"

#define CHECK(id, findings)                                                                        \
	"{\"id\": \"" id "\", \"title\": \"the " id "\", \"findings\": [" findings "]}"
#define FINDING(verdict, sentence, rest)                                                           \
	"{\"verdict\": \"" verdict "\", \"finding\": \"" sentence "\", " rest "}"
#define SLOW	       "\"meaning\": \"Slow.\", \"fix\": "
#define ALIKE	       "{\"grub\": \"Turn it.\", \"openshift\": \"Turn it.\", \"talos\": \"Turn it.\"}"
#define APART	       "{\"grub\": \"Edit.\", \"openshift\": \"Edit.\", \"talos\": \"Patch.\"}"
#define REPORT(checks) "{\"verdict\": \"FAIL\", \"container\": true, \"checks\": [" checks "]}"

static struct findings_report *report_of(const char *text)
{
	struct findings_report *report = NULL;
	struct err err = { 0 };

	if (findings_read(text, strlen(text), &report, &err) < 0)
		fail_msg("%s", err.msg);
	return report;
}

static void findings_with_one_fix_are_one_the_worst_first(void **state)
{
	struct findings_report *report = report_of(REPORT(CHECK("acs", FINDING("PASS", "fine", SLOW "null")) "," CHECK(
		"link",
		FINDING("WARN", "b", SLOW ALIKE) "," FINDING("FAIL", "a", SLOW APART) "," FINDING(
			"WARN",
			"c",
			SLOW ALIKE)) "," CHECK("vfs",
					       "") "," CHECK("gid",
							     FINDING("UNKNOWN", "1", SLOW ALIKE) "," FINDING("UNKNOWN", "2", SLOW ALIKE) "," FINDING(
								     "UNKNOWN", "3",
								     SLOW ALIKE) "," FINDING("UNKNOWN",
											     "4",
											     SLOW ALIKE) "," FINDING("UNKNOWN",
														     "5",
														     "\"meaning\": \"Wrong.\", \"fix\": " ALIKE))));
	const struct status_doctor *d = &report->doctor;

	(void)state;
	assert_null(d->failure);
	assert_int_equal(d->verdict, STATUS_FOUND_FAIL);
	assert_true(d->confined);
	assert_int_equal(d->n_by_verdict[STATUS_FOUND_UNKNOWN], 5);
	assert_int_equal(d->n_by_verdict[STATUS_FOUND_WARN], 2);
	assert_int_equal(d->n, 5);
	assert_string_equal(d->v[0].shown[0], "a");
	assert_int_equal(d->v[0].n_fixes, 2);
	assert_string_equal(d->v[0].fixes[0].where, "Ubuntu, RHEL");
	assert_string_equal(d->v[0].fixes[1].where, "Talos");
	assert_string_equal(d->v[0].fixes[1].what, "Patch.");
	assert_string_equal(d->v[1].check, "link");
	assert_string_equal(d->v[1].title, "the link");
	assert_string_equal(d->v[1].meaning, "Slow.");
	assert_int_equal(d->v[1].n, 2);
	assert_string_equal(d->v[1].shown[1], "c");
	assert_int_equal(d->v[1].n_fixes, 1);
	assert_null(d->v[1].fixes[0].where);
	assert_int_equal(d->v[2].n, 4); /* of which three are shown */
	assert_int_equal(d->v[2].n_shown, 3);
	assert_string_equal(d->v[3].meaning, "Wrong.");
	assert_int_equal(d->v[4].n_fixes, 0);
	arena_free(report->arena);
}

static void what_is_no_report_is_refused(void **state)
{
	static const struct {
		const char *text, *why;
	} wrong[] = {
		{ "", "its report:" },
		{ "core dumped", "its report:1:" },
		{ "[]", "line 1 has no verdict" },
		{ "{\"verdict\": \"PASS\"}", "its report has no checks" },
		{ "{\"verdict\": \"GOOD\", \"checks\": []}", "line 1 has no verdict" },
		{ "{\"verdict\": \"PASS\", \"checks\": [7]}", "line 1 is no check" },
		{ REPORT("{\"findings\": []}"), "line 1 is no check" },
		{ REPORT("{\"id\": \"acs\",\n\"findings\": {}}"), "line 1 is no check" },
		{ REPORT(CHECK("acs", "\n{\"verdict\": 7}")), "line 2 has no verdict" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		struct findings_report *report = NULL;
		struct err err = { 0 };

		assert_true(findings_read(wrong[i].text, strlen(wrong[i].text), &report, &err) < 0);
		assert_null(report);
		if (strncmp(err.msg, wrong[i].why, strlen(wrong[i].why)) != 0)
			fail_msg("%s: %s", wrong[i].text, err.msg);
	}
}

/* --- runs --- */

static const struct config_files no_files = { .dir = "/nowhere" };
static const struct child_machine here = { "/", &no_files };

struct lab {
	uv_loop_t loop;
	char dir[64], program[96];
	struct child *child;
	char *said; /* of the last run */
	struct findings_report *report;
	struct findings *findings;
};

static void write_script(struct lab *lab, const char *script)
{
	FILE *file = fopen(lab->program, "w");

	assert_non_null(file);
	fprintf(file, "#!/bin/sh\n%s\n", script);
	fclose(file);
	assert_int_equal(chmod(lab->program, 0755), 0);
}

static int set_up(void **state)
{
	struct lab *lab = xcalloc(1, sizeof(*lab));

	uv_loop_init(&lab->loop);
	strcpy(lab->dir, "/tmp/railmate-child-XXXXXX");
	assert_non_null(mkdtemp(lab->dir));
	snprintf(lab->program, sizeof(lab->program), "%s/railmatectl", lab->dir);
	*state = lab;
	return 0;
}

static int tear_down(void **state)
{
	struct lab *lab = *state;

	child_close(lab->child);
	findings_close(lab->findings);
	uv_run(&lab->loop, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(&lab->loop), 0);
	child_free(lab->child);
	findings_free(lab->findings);
	if (lab->report)
		arena_free(lab->report->arena);
	unlink(lab->program);
	assert_int_equal(rmdir(lab->dir), 0);
	free(lab->said);
	free(lab);
	return 0;
}

static void on_ended(void *ctx, const struct child_end *end)
{
	struct lab *lab = ctx;

	free(lab->said);
	lab->said = xasprintf("%s|%d|%.20s|%s", end->failure ? end->failure : "", end->status,
			      end->out, end->said);
	uv_stop(&lab->loop);
}

static const char *run(struct lab *lab, const char *script)
{
	static const char *const words[] = { "doctor", "--json", NULL };

	if (script)
		write_script(lab, script);
	if (!lab->child)
		lab->child = child_new(&lab->loop, lab->program, 300, on_ended, lab);
	/* What was killed has to be waited for. */
	while (!child_run(lab->child, &here, words))
		uv_run(&lab->loop, UV_RUN_ONCE);
	uv_run(&lab->loop, UV_RUN_DEFAULT);
	return lab->said;
}

static void a_child_that_fails_has_a_reason(void **state)
{
	struct lab *lab = *state;

	assert_string_equal(run(lab, NULL), "cannot be run: no such file or directory|0||");
	assert_string_equal(run(lab, "echo \"$1 $2\"; echo because >&2; echo more >&2; exit 5"),
			    "|5|doctor --json\n|because");
	assert_string_equal(run(lab, "kill -SEGV $$"), "was ended by signal 11|0||");
	assert_string_equal(run(lab, "exec sleep 60"), "did not end within 0 s|0||");
	assert_string_equal(run(lab, "exec cat /dev/zero"), "printed too much|0||");
	assert_string_equal(run(lab, "echo fine"), "|0|fine\n|");
}

static void an_end_of_ours_waits_for_no_child(void **state)
{
	static const char *const words[] = { "topo", NULL };
	struct lab *lab = *state;

	write_script(lab, "exec sleep 60");
	lab->child = child_new(&lab->loop, lab->program, 60000, on_ended, lab);
	assert_true(child_run(lab->child, &here, words));
	assert_false(child_run(lab->child, &here, words));
	/* the rest is tear_down()'s */
}

static void on_found(void *ctx, struct findings_report *report)
{
	struct lab *lab = ctx;

	lab->report = report;
	uv_stop(&lab->loop);
}

static void doctor_sees_the_machine_and_the_configuration_that_we_see(void **state)
{
	struct lab *lab = *state;
	const struct config_files files = { .config = "/c.json", .hints = "/h.json" };
	const struct findings_env env = { .loop = &lab->loop,
					  .machine = { "/machine", &files },
					  .program = lab->program,
					  .found = on_found,
					  .ctx = lab };
	struct config *cfg = config_default();
	struct node *node = node_new(synth_inventory("switch:1 gpu:1 pf:1 vf:2"), cfg, NULL);

	write_script(lab, "echo \"$*\" >&2; exit 3");
	lab->findings = findings_new(&env);
	findings_update(lab->findings, node);
	uv_run(&lab->loop, UV_RUN_DEFAULT);
	assert_int_equal(lab->report->doctor.verdict, STATUS_FOUND_UNKNOWN);
	assert_string_equal(
		lab->report->doctor.failure,
		"railmatectl doctor ended with status 3: doctor --json --node-only --root /machine --config /c.json --topology-hints /h.json");
	node_unref(node);
	config_free(cfg);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(findings_with_one_fix_are_one_the_worst_first),
		cmocka_unit_test(what_is_no_report_is_refused),
		cmocka_unit_test_setup_teardown(a_child_that_fails_has_a_reason, set_up, tear_down),
		cmocka_unit_test_setup_teardown(an_end_of_ours_waits_for_no_child, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(
			doctor_sees_the_machine_and_the_configuration_that_we_see, set_up,
			tear_down),
	};

	return cmocka_run_group_tests_name("findings", tests, NULL, NULL);
}
