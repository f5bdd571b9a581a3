#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "ledger/ledger-internal.h"
#include "unit/ledger/sample.h"

static void put(struct ledger *l, const char *vf, const char *slot, uint64_t decision)
{
	struct ledger_hold hold = sample_hold(vf);

	hold.slot = slot;
	hold.decision = decision;
	ledger_put(l, &hold);
}

/* --- holds --- */

static void holds_are_found_by_vf_and_by_slot_and_stand_in_the_order_of_addresses(void **state)
{
	struct ledger *l = ledger_new();

	(void)state;
	put(l, "10000:01:00.1", NULL, 0);
	put(l, "0000:29:00.2", "slot-b", 0);
	put(l, "0000:18:00.2", NULL, 0);
	assert_int_equal(ledger_holds(l), 3);
	assert_string_equal(ledger_hold_at(l, 0)->vf, "0000:18:00.2");
	assert_string_equal(ledger_hold_at(l, 1)->vf, "0000:29:00.2");
	assert_string_equal(ledger_hold_at(l, 2)->vf, "10000:01:00.1");
	assert_string_equal(ledger_find(l, "0000:18:00.2")->owner.pod, "train-0");
	assert_string_equal(ledger_find_slot(l, "slot-b")->vf, "0000:29:00.2");
	assert_null(ledger_find(l, "0000:18:00.3"));
	assert_null(ledger_find_slot(l, "slot-a"));
	assert_null(ledger_find_slot(l, NULL));
	ledger_free(l);
}

static void a_vf_has_one_hold_and_the_last_one_counts(void **state)
{
	struct ledger *l = ledger_new();
	struct ledger_hold hold = sample_hold("0000:18:00.2");

	(void)state;
	ledger_put(l, &hold);
	hold.owner.pod = "train-1";
	ledger_put(l, &hold);
	assert_int_equal(ledger_holds(l), 1);
	assert_string_equal(ledger_find(l, "0000:18:00.2")->owner.pod, "train-1");
	ledger_free(l);
}

static void a_slot_that_gets_another_vf_leaves_the_first_one_draining(void **state)
{
	struct ledger *l = ledger_new();

	(void)state;
	put(l, "0000:18:00.2", "slot-a", 0);
	put(l, "0000:29:00.2", "slot-a", 0);
	assert_string_equal(ledger_find_slot(l, "slot-a")->vf, "0000:29:00.2");
	assert_null(ledger_find(l, "0000:18:00.2")->slot);
	assert_true(ledger_find(l, "0000:18:00.2")->draining);
	assert_false(ledger_find(l, "0000:29:00.2")->draining);
	ledger_free(l);
}

static void a_copy_says_the_same_and_stays_as_it_was(void **state)
{
	struct ledger *l = sample_ledger();
	struct ledger *copy = ledger_copy(l);
	_cleanup_strbuf_ struct strbuf before = STRBUF_INIT, after = STRBUF_INIT;

	(void)state;
	ledger_write(l, &before);
	assert_int_equal(ledger_generation(copy), ledger_generation(l));
	while (ledger_holds(l))
		ledger_drop(l, ledger_hold_at(l, 0)->vf);
	ledger_free(l);
	ledger_write(copy, &after);
	assert_string_equal(after.s, before.s);
	ledger_free(copy);
}

static void a_copy_of_nothing_is_nothing(void **state)
{
	struct ledger *l = ledger_new(), *copy = ledger_copy(l);

	(void)state;
	assert_int_equal(ledger_holds(copy) + ledger_decisions(copy), 0);
	ledger_free(copy);
	ledger_free(l);
}

static void a_decision_is_read_into_the_arena_of_whoever_asks(void **state)
{
	_cleanup_arena_ struct arena *a = arena_new(1024);
	struct ledger *l = sample_ledger();
	const struct ledger_decision *d, *first = ledger_decision_at(l, 0);

	(void)state;
	d = ledger_decision_read(l, first->number, a);
	assert_ptr_not_equal(d, first);
	assert_string_equal(d->source, first->source);
	assert_int_equal(d->n_pairs, first->n_pairs);
	assert_null(ledger_decision_read(l, ledger_next(l), a));
	ledger_free(l);
	assert_int_equal(d->n_chosen, d->asked);
}

static void a_hold_may_be_changed_through_what_the_ledger_returned(void **state)
{
	struct ledger *l = sample_ledger();
	struct ledger_hold hold = *ledger_find(l, "0000:18:00.2");

	(void)state;
	hold.draining = true;
	ledger_put(l, &hold);
	assert_true(ledger_find_slot(l, "rvf-vf-n0-1")->draining);
	ledger_drop(l, ledger_find(l, "0000:18:00.2")->vf);
	assert_null(ledger_find(l, "0000:18:00.2"));
	ledger_free(l);
}

static void every_change_counts_and_what_changes_nothing_does_not(void **state)
{
	struct ledger *l = ledger_new();
	uint64_t before;

	(void)state;
	put(l, "0000:18:00.2", NULL, 0);
	before = ledger_generation(l);
	put(l, "0000:18:00.2", NULL, 0);
	ledger_drop(l, "0000:18:00.3");
	ledger_amend(l, 7, &sample_decision);
	assert_int_equal(ledger_generation(l), before);
	put(l, "0000:18:00.2", "slot-a", 0);
	assert_true(ledger_generation(l) > before);
	before = ledger_generation(l);
	ledger_drop(l, "0000:18:00.2");
	assert_true(ledger_generation(l) > before);
	ledger_free(l);
}

/* --- decisions --- */

static void decisions_are_numbered_from_one_and_amended_in_place(void **state)
{
	struct ledger *l = ledger_new();
	struct ledger_decision later;

	(void)state;
	assert_int_equal(ledger_decide(l, &sample_decision), 1);
	assert_int_equal(ledger_decide(l, &sample_decision), 2);
	later = *ledger_decision(l, 1);
	later.owner.pod = "known-now";
	later.number = 99;
	ledger_amend(l, 1, &later);
	assert_string_equal(ledger_decision(l, 1)->owner.pod, "known-now");
	assert_string_equal(ledger_decision(l, 1)->pairs[1].path, "PXB");
	assert_int_equal(ledger_decision(l, 1)->number, 1);
	assert_string_equal(ledger_decision(l, 2)->owner.pod, "train-0");
	assert_null(ledger_decision(l, 3));
	assert_null(ledger_decision(l, 0));
	ledger_free(l);
}

static void a_decision_is_looked_for_by_what_it_mentions(void **state)
{
	struct ledger *l = sample_ledger();

	(void)state;
	assert_true(ledger_decision_mentions(l, 0, "0000:18:00.2"));
	assert_true(ledger_decision_mentions(l, 0, "0000:44:00.0"));
	assert_false(ledger_decision_mentions(l, 0, "0000:18:00.7"));
	assert_false(ledger_decision_mentions(l, 1, "0000:18:00.2"));
	ledger_free(l);
}

static void old_decisions_are_forgotten_unless_a_live_hold_stands_on_them(void **state)
{
	struct ledger *l = ledger_new();

	(void)state;
	put(l, "0000:18:00.2", NULL, ledger_decide(l, &sample_decision));
	for (int i = 0; i < 2 * LEDGER_DECISIONS; i++)
		ledger_decide(l, &sample_decision);
	assert_non_null(ledger_decision(l, 1));
	assert_null(ledger_decision(l, 2));
	assert_int_equal(ledger_decisions(l), LEDGER_DECISIONS + 1);
	assert_int_equal(ledger_decision_at(l, 1)->number, LEDGER_DECISIONS + 2);
	ledger_drop(l, "0000:18:00.2");
	ledger_decide(l, &sample_decision);
	assert_null(ledger_decision(l, 1));
	assert_int_equal(ledger_decisions(l), LEDGER_DECISIONS);
	ledger_free(l);
}

/* --- text --- */

static void write_text(const struct ledger *l, struct strbuf *out)
{
	strbuf_done(out);
	ledger_write(l, out);
}

static int read_text(const char *text, size_t len, struct ledger **ret, struct err *err)
{
	*ret = NULL;
	*err = (struct err) { 0 };
	return ledger_read(text, len, "ledger.json", ret, err);
}

static void what_is_written_is_read_again(void **state)
{
	_cleanup_strbuf_ struct strbuf first = STRBUF_INIT, second = STRBUF_INIT;
	struct ledger *l = sample_ledger(), *again;
	const struct ledger_decision *d;
	struct err err;

	(void)state;
	write_text(l, &first);
	assert_int_equal(read_text(first.s, first.len, &again, &err), 0);
	write_text(again, &second);
	assert_string_equal(first.s, second.s);
	d = ledger_decision(again, 1);
	assert_int_equal(d->known, LEDGER_GPUS_PREDICTED);
	assert_string_equal(d->free[1].pf, "0000:29:00.0");
	assert_int_equal(d->free[1].free, 7);
	assert_string_equal(ledger_find_slot(again, "rvf-vf-n0-1")->netdev, "ens1f0v0");
	assert_string_equal(ledger_find_slot(again, "rvf-vf-n0-1")->driver, "mlx5_core");
	assert_true(ledger_find_slot(again, "rvf-vf-n0-1")->pending);
	assert_true(ledger_find(again, "10000:01:00.1")->draining);
	assert_string_equal(ledger_find(again, "10000:01:00.1")->owner.pod, "");
	assert_int_equal(ledger_decide(again, &sample_decision), 3);
	ledger_free(l);
	ledger_free(again);
}

static void numbers_of_forgotten_decisions_are_not_given_again(void **state)
{
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;
	struct ledger *l = ledger_new(), *again;
	struct err err;

	(void)state;
	l->next = 1000;
	write_text(l, &text);
	assert_int_equal(read_text(text.s, text.len, &again, &err), 0);
	assert_int_equal(ledger_decide(again, &sample_decision), 1000);
	ledger_free(l);
	ledger_free(again);
}

static void a_text_cut_at_any_byte_is_refused(void **state)
{
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;
	struct ledger *l = sample_ledger(), *again;
	struct err err;

	(void)state;
	write_text(l, &text);
	for (size_t len = 0; len < text.len; len++) {
		assert_int_equal(read_text(text.s, len, &again, &err), -EBADMSG);
		assert_int_equal(err.code, EBADMSG);
		assert_true(str_starts(err.msg, "ledger.json:"));
		assert_null(again);
	}
	ledger_free(l);
}

static void a_text_with_any_byte_changed_is_refused(void **state)
{
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;
	struct ledger *l = sample_ledger(), *again;
	struct err err;

	(void)state;
	write_text(l, &text);
	for (size_t i = 0; i < text.len; i++) {
		text.s[i] ^= 1;
		assert_true(read_text(text.s, text.len, &again, &err) < 0);
		assert_null(again);
		text.s[i] ^= 1;
	}
	assert_int_equal(read_text(text.s, text.len, &again, &err), 0);
	ledger_free(again);
	ledger_free(l);
}

static void a_later_version_is_told_from_rubbish(void **state)
{
	static const char later[] = "{\"railmate\": \"ledger\", \"version\": 7, \"holds\": 3}";
	struct ledger *again;
	struct err err;

	(void)state;
	assert_int_equal(read_text(later, strlen(later), &again, &err), -ENOTSUP);
	assert_string_equal(err.msg,
			    "ledger.json: is a ledger of version 7; this railmate reads version 1");
}

static void texts_of_others_are_refused(void **state)
{
	static const char *const texts[] = {
		"",
		"\n",
		"[]",
		"null",
		"{}",
		"{\"version\": 7}",
		"{\"railmate\": \"ledger\"}",
		"{\"railmate\": \"ledger\", \"version\": \"7\"}",
		"{\"railmate\": \"ledger\", \"version\": 1, \"holds\": []}",
		"{\"Data\":{\"PodDeviceEntries\":null},\"Checksum\":1}",
		"\x7f\x45LF",
	};
	struct ledger *again;
	struct err err;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		assert_int_equal(read_text(texts[i], strlen(texts[i]), &again, &err), -EBADMSG);
		assert_int_equal(err.code, EBADMSG);
		assert_true(str_starts(err.msg, "ledger.json:"));
	}
}

/* Reads a body under a checksum that fits. */
static int read_body(const char *body, struct err *err)
{
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;
	struct ledger *l;
	int r;

	strbuf_printf(&text, LEDGER_HEAD "%016llx" LEDGER_HEAD_END "%s",
		      (unsigned long long)str_checksum(body, strlen(body)), body);
	r = read_text(text.s, text.len, &l, err);
	ledger_free(l);
	return r;
}

static void values_that_do_not_fit_are_refused_even_under_a_right_checksum(void **state)
{
	static const char *const bodies[] = {
		"\"holds\": [}",
		"\"holds\": {}}",
		"\"holds\": [{}]}",
		"\"holds\": [{\"vf\": \"\"}]}",
		"\"holds\": [{\"vf\": 1}]}",
		"\"holds\": [7]}",
		"\"holds\": [{\"vf\": \"0000:18:00.2\", \"draining\": 1}]}",
		"\"holds\": [{\"vf\": \"0000:18:00.2\", \"decision\": -1}]}",
		"\"holds\": [{\"vf\": \"0000:18:00.2\", \"since_ms\": 0.5}]}",
		"\"next\": -1}",
		"\"decisions\": [{\"number\": 1}]}",
		"\"decisions\": [{\"number\": 0, \"known\": \"known\"}]}",
		"\"decisions\": [{\"number\": 1, \"known\": \"guessed\"}]}",
		"\"decisions\": [{\"number\": 2, \"known\": \"known\"}, {\"number\": 2}]}",
		"\"decisions\": [{\"number\": 1, \"known\": \"known\", \"gpus\": [1]}]}",
		"\"decisions\": [{\"number\": 1, \"known\": \"known\", \"free\": [[\"a\"]]}]}",
		"\"decisions\": [{\"number\": 1, \"known\": \"known\", \"free\": [[\"a\", -1]]}]}",
		"\"decisions\": [{\"number\": 1, \"known\": \"known\", \"pairs\": [[\"a\", \"b\"]]}]}",
		"\"decisions\": [{\"number\": 1, \"known\": \"known\", \"cost\": 4294967296}]}",
	};
	struct err err;

	(void)state;
	assert_int_equal(read_body("\"later addition\": [1, {}]}", &err), 0);
	for (size_t i = 0; i < ARRAY_LEN(bodies); i++) {
		assert_int_equal(read_body(bodies[i], &err), -EBADMSG);
		assert_int_equal(err.code, EBADMSG);
		assert_true(str_starts(err.msg, "ledger.json:"));
	}
}

static void a_name_that_is_not_utf8_does_not_make_a_ledger_that_cannot_be_read(void **state)
{
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;
	struct ledger *l = ledger_new(), *again;
	struct ledger_hold hold = sample_hold("0000:18:00.2");
	struct err err;

	(void)state;
	hold.rdma = "mlx\xff\n\"";
	ledger_put(l, &hold);
	write_text(l, &text);
	assert_int_equal(read_text(text.s, text.len, &again, &err), 0);
	ledger_free(l);
	ledger_free(again);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			holds_are_found_by_vf_and_by_slot_and_stand_in_the_order_of_addresses),
		cmocka_unit_test(a_vf_has_one_hold_and_the_last_one_counts),
		cmocka_unit_test(a_slot_that_gets_another_vf_leaves_the_first_one_draining),
		cmocka_unit_test(a_copy_says_the_same_and_stays_as_it_was),
		cmocka_unit_test(a_copy_of_nothing_is_nothing),
		cmocka_unit_test(a_decision_is_read_into_the_arena_of_whoever_asks),
		cmocka_unit_test(a_hold_may_be_changed_through_what_the_ledger_returned),
		cmocka_unit_test(every_change_counts_and_what_changes_nothing_does_not),
		cmocka_unit_test(decisions_are_numbered_from_one_and_amended_in_place),
		cmocka_unit_test(a_decision_is_looked_for_by_what_it_mentions),
		cmocka_unit_test(old_decisions_are_forgotten_unless_a_live_hold_stands_on_them),
		cmocka_unit_test(what_is_written_is_read_again),
		cmocka_unit_test(numbers_of_forgotten_decisions_are_not_given_again),
		cmocka_unit_test(a_text_cut_at_any_byte_is_refused),
		cmocka_unit_test(a_text_with_any_byte_changed_is_refused),
		cmocka_unit_test(a_later_version_is_told_from_rubbish),
		cmocka_unit_test(texts_of_others_are_refused),
		cmocka_unit_test(values_that_do_not_fit_are_refused_even_under_a_right_checksum),
		cmocka_unit_test(
			a_name_that_is_not_utf8_does_not_make_a_ledger_that_cannot_be_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
