/* Findings of checks made up for it: their order, how they are put together, what is left out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "facts/facts.h"
#include "diagnosis/diagnosis.h"

static const struct diagnosis_advice slow = { "It is slow.", { "Reseat it.", NULL, "Reboot." } };
static const struct diagnosis_advice fine = { "It is fast.", { NULL } };

static void run_slots(const struct facts *f, struct diagnosis *r)
{
	(void)f;
	assert_int_equal(diagnosis_worst_so_far(r), DIAGNOSIS_PASS);
	diagnosis_add(r, DIAGNOSIS_PASS, &fine, "host", "Slot %d is fine.", 1);
	for (int i = 2; i < 12; i++)
		diagnosis_add(r, DIAGNOSIS_WARN, &slow, "slot", "Slot %d is slow.", i)->kernel_arg =
			i % 2 ? "quiet" : "splash";
	assert_int_equal(diagnosis_worst_so_far(r), DIAGNOSIS_WARN);
}

static void run_nothing(const struct facts *f, struct diagnosis *r)
{
	(void)f;
	assert_int_equal(diagnosis_n_before(r), diagnosis_n(r));
}

static void run_fans(const struct facts *f, struct diagnosis *r)
{
	assert_int_equal(diagnosis_worst_so_far(r),
			 DIAGNOSIS_PASS); /* the other check's do not count */
	if (f->confined == FACTS_YES)
		diagnosis_add(r, DIAGNOSIS_UNKNOWN, &slow, "fan", "The fan is hidden.");
	else
		diagnosis_add(r, DIAGNOSIS_FAIL, &slow, "fan", "The fan is off.")->module = "fan";
}

static const struct diagnosis_check slots = { "slots", "slots of cards", .run = run_slots,
					      .in_manifest = true };
static const struct diagnosis_check nothing = { "nothing", "what is not here", .run = run_nothing };
static const struct diagnosis_check fans = { "fans", "fans of cards", .run = run_fans,
					     .in_manifest = true };

static struct diagnosis *diagnosis_of(const struct facts *f)
{
	struct diagnosis *r = diagnosis_new();

	diagnosis_run(r, &slots, f);
	diagnosis_run(r, &nothing, f);
	diagnosis_run(r, &fans, f);
	return r;
}

static void the_worst_finding_is_the_verdict_of_its_check(void **state)
{
	struct facts f = { .confined = FACTS_NO };
	_cleanup_diagnosis_ struct diagnosis *r = diagnosis_of(&f);
	_cleanup_diagnosis_ struct diagnosis *inside = NULL;

	(void)state;
	assert_int_equal(diagnosis_n(r), 12);
	assert_int_equal(diagnosis_worst(r), DIAGNOSIS_FAIL);
	assert_int_equal(diagnosis_verdict_of(r, &slots), DIAGNOSIS_WARN);
	assert_int_equal(diagnosis_verdict_of(r, &nothing), -1);
	assert_int_equal(diagnosis_verdict_of(r, &fans), DIAGNOSIS_FAIL);
	assert_string_equal(diagnosis_at(r, 0)->sentence, "Slot 1 is fine.");
	assert_ptr_equal(diagnosis_at(r, 11)->check, &fans);
	f.confined = FACTS_YES;
	inside = diagnosis_of(&f);
	assert_int_equal(diagnosis_worst(inside), DIAGNOSIS_WARN);
}

static void the_text_has_trouble_first_and_what_does_not_apply(void **state)
{
	static const char *const parts[] = { "verdict: FAIL\n",
					     "  FAIL:    fans\n",
					     "  WARN:    slots\n",
					     "  not applicable: nothing\n",
					     "\nFAIL fans: fans of cards\n  The fan is off.\n",
					     "  NCCL: It is slow.\n",
					     "  fix on Ubuntu, RHEL: Reseat it.\n",
					     "         on OpenShift: Reseat it.\n",
					     "             on Talos: Reboot.\n",
					     "\nWARN slots: slots of cards\n",
					     "  Slot 9 is slow.\n  and 2 more (--json has all)\n",
					     "\nPASS slots             Slot 1 is fine.\n" };
	const struct facts f = { .confined = FACTS_NO };
	_cleanup_diagnosis_ struct diagnosis *r = diagnosis_of(&f);
	_cleanup_strbuf_ struct strbuf out = STRBUF_INIT;
	const char *at;

	(void)state;
	diagnosis_text(&f, r, &out);
	at = strbuf_str(&out);
	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		const char *found = strstr(at, parts[i]);

		if (!found)
			fail_msg("no '%s' behind the part before it in:\n%s", parts[i],
				 strbuf_str(&out));
		at = found;
	}
}

static void the_json_has_every_finding(void **state)
{
	const struct facts f = { .live = true, .confined = FACTS_UNKNOWN };
	_cleanup_diagnosis_ struct diagnosis *r = diagnosis_of(&f);
	_cleanup_strbuf_ struct strbuf out = STRBUF_INIT;
	struct json j;
	size_t n = 0;

	(void)state;
	json_init(&j, &out, 2);
	diagnosis_json(&f, r, &j);
	for (const char *at = strbuf_str(&out); (at = strstr(at, "\"subject\"")); at++)
		n++;
	assert_int_equal(n, diagnosis_n(r));
	assert_non_null(strstr(strbuf_str(&out), "\"container\": null"));
	assert_non_null(strstr(strbuf_str(&out), "\"openshift\": \"Reseat it.\""));
	assert_non_null(strstr(strbuf_str(&out), "\"module\": \"fan\""));
}

static void the_manifest_has_each_argument_and_module_once(void **state)
{
	const struct facts f = { .confined = FACTS_NO };
	_cleanup_diagnosis_ struct diagnosis *r = diagnosis_of(&f);
	_cleanup_diagnosis_ struct diagnosis *empty = diagnosis_new();
	_cleanup_strbuf_ struct strbuf out = STRBUF_INIT;
	_cleanup_strbuf_ struct strbuf none = STRBUF_INIT;

	(void)state;
	assert_true(diagnosis_manifest(&f, r, DIAGNOSIS_TALOS, NULL, &out));
	assert_non_null(strstr(strbuf_str(&out), "    extraKernelArgs:\n      - 'splash'\n"
						 "      - 'quiet'\n  kernel:\n    modules:\n"
						 "      - name: 'fan'\n"));
	assert_false(diagnosis_manifest(&f, empty, DIAGNOSIS_TALOS, NULL, &none));
	assert_int_equal(none.len, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_worst_finding_is_the_verdict_of_its_check),
		cmocka_unit_test(the_text_has_trouble_first_and_what_does_not_apply),
		cmocka_unit_test(the_json_has_every_finding),
		cmocka_unit_test(the_manifest_has_each_argument_and_module_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
