/* When a holder is gone, when its VF is free, and what says nothing about either. */
#include "unit/holds/world.h"

/* --- (a): shown, and then not any more --- */

static void a_pod_that_was_shown_and_is_then_missed_is_gone(void **state)
{
	(void)state;
	begin_pod("web-0#u1", V0);
	begin_pod("web-1#u2", V1);
	kubelet_lists({ "web-0", V0 }, { "web-1", V1 });
	end_pod("web-0#u1");
	kubelet_lists({ "web-1", V1 });
	assert_null(hold_of(V0));
	assert_true(is_held_by(V1, "web-1#u2"));
	assert_true(says(" vf=" V0));
}

static void one_sentence_says_what_the_end_of_a_container_frees(void **state)
{
	(void)state;
	begin_pod("web-0#u1", V0);
	begin_pod("web-0#u1", V1);
	begin_pod("web-1#u2", V2);
	kubelet_lists({ "web-0", V0 }, { "web-0", V1 }, { "web-1", V2 });
	end_pod("web-0#u1");
	w.said = 0;
	kubelet_lists({ "web-1", V2 });
	assert_null(hold_of(V0));
	assert_null(hold_of(V1));
	assert_int_equal(w.said, 1);
	assert_true(says(
		"VFs are free: their holder is gone pod=default/web-0 uid=u1 container=main resource=rdma/vf reason=\"nothing uses what it held\" vf="));
	assert_true(says(V0) && says(V1));
}

static void a_name_alone_frees_no_started_hold(void **state)
{
	(void)state;
	begin_pod("web-0#u1", V0);
	new_kubelet();
	for (int i = 0; i < 1000; i++)
		kubelet_lists({ "web-1", V1 });
	assert_true(is_held_by(V0, "web-0#u1"));
	assert_false(is_draining(V0));
}

static void a_get_that_finds_no_pod_counts_like_a_list(void **state)
{
	(void)state;
	begin_pod("web-0#u1", V0);
	kubelet_gets("web-0", { "web-0", V0 });
	end_pod("web-0#u1");
	kubelet_gets_nothing("web-0");
	assert_null(hold_of(V0));
}

static void an_answer_about_one_pod_says_nothing_of_others(void **state)
{
	(void)state;
	begin_pod("web-0#u1", V0);
	begin_pod("web-1#u2", V1);
	kubelet_lists({ "web-0", V0 }, { "web-1", V1 });
	end_pod("web-0#u1");
	kubelet_gets("web-1", { "web-1", V1 });
	kubelet_gets_nothing("web-2");
	assert_true(is_held_by(V0, "web-0#u1"));
}

static void an_answer_says_nothing_of_a_hold_that_is_younger(void **state)
{
	int64_t began;

	(void)state;
	began = w.now.mono_ms;
	allocate("web-0#u1", V0);
	pass(2000);
	answer(NULL, began - 1, w.epoch, SAYS({ "web-1", V0 })); /* of the time before the hold */
	answer(NULL, began + 999, w.epoch,
	       SAYS({ "web-1", V1 })); /* the kubelet notes it a moment later */
	assert_true(is_held_by(V0, "web-0#u1"));
	answer(NULL, began + 1001, w.epoch, SAYS({ "web-1", V1 }));
	assert_null(hold_of(V0));
}

static void what_the_kubelet_has_shown_it_has_noted(void **state)
{
	int64_t began;

	(void)state;
	began = w.now.mono_ms;
	begin_pod("web-0#u1", V0);
	pass(100);
	answer(NULL, began + 50, w.epoch, SAYS({ "web-0", V0 }));
	end_pod("web-0#u1");
	answer(NULL, began + 60, w.epoch, SAYS({ "web-1", V1 }));
	assert_null(hold_of(V0));
}

static void an_answer_that_was_overtaken_says_nothing(void **state)
{
	int64_t first, second;

	(void)state;
	begin_pod("web-0#u1", V0);
	kubelet_lists({ "web-0", V0 });
	first = w.now.mono_ms + 1000;
	second = first + 10;
	pass(3000);
	answer(NULL, second, w.epoch, SAYS({ "web-0", V0 }));
	w.cgroups_unreadable = true;
	answer(NULL, first, w.epoch, SAYS({ "web-1", V1 }));
	assert_true(is_held_by(V0, "web-0#u1"));
	assert_false(holds_status(w.h).misses_some);
}

static void an_overtaken_answer_that_shows_a_pod_does_not_bring_it_back(void **state)
{
	int64_t first;

	(void)state;
	begin_pod("web-0#u1", V0);
	kubelet_lists({ "web-0", V0 });
	w.open = V0;
	end_pod("web-0#u1");
	first = w.now.mono_ms + 1000;
	pass(3000);
	answer(NULL, first + 10, w.epoch, SAYS({ "web-1", NULL }));
	answer(NULL, first, w.epoch, SAYS({ "web-0", V0 }));
	w.open = NULL;
	tick();
	assert_null(hold_of(V0));
}

/* Nor one whose hold is no longer there: what ended it was asked for later. */
static void an_overtaken_answer_adopts_nothing(void **state)
{
	int64_t first;

	(void)state;
	begin_pod("web-0#u1", V0);
	kubelet_lists({ "web-0", V0 });
	end_pod("web-0#u1");
	first = w.now.mono_ms + 1000;
	pass(3000);
	answer(NULL, first + 10, w.epoch, SAYS({ "web-1", NULL }));
	assert_null(hold_of(V0));
	answer(NULL, first, w.epoch, SAYS({ "web-0", V0 }));
	assert_null(hold_of(V0));

	begin_pod("web-2#u2", V1);
	kubelet_gets("web-2", { "web-2", V1 });
	end_pod("web-2#u2");
	first = w.now.mono_ms;
	kubelet_gets_nothing("web-2");
	assert_null(hold_of(V1));
	answer(NULL, first, w.epoch, SAYS({ "web-2", V1 }));
	assert_null(hold_of(V1));
}

/* What the newest question found is not all that there is: the next List says it. */
static void a_lost_ledger_is_not_settled_by_an_overtaken_answer(void **state)
{
	int64_t first;

	(void)state;
	restart(NULL);
	claim("web-0#u1", NULL, V0, 7);
	records_read();
	first = w.now.mono_ms;
	kubelet_gets("web-0", { "web-0", V0 });
	kubelet_gets_nothing("web-0");
	assert_null(hold_of(V0));
	answer(NULL, first, w.epoch, SAYS({ "web-0", V0 }, { "web-1", V1 }));
	assert_false(holds_status(w.h).settled);
	kubelet_lists({ "web-1", V1 });
	assert_true(holds_status(w.h).settled);
	assert_true(is_held_by(V1, "web-1"));
	assert_null(hold_of(V0));
}

/* The ledger is older than a map.json: another pod runs with it. */
static void what_drains_is_withheld_when_all_records_were_read(void **state)
{
	struct ledger *old;

	(void)state;
	begin_pod("web-0#u1", V0);
	kubelet_lists({ "web-0", V0 });
	w.open = V0;
	end_pod("web-0#u1");
	kubelet_lists({ "web-1", NULL });
	kubelet_lists({ "web-1", NULL });
	assert_true(hold_of(V0)->draining);
	assert_false(judge(V0).offered);
	old = copy_of_ledger();
	restart(old);
	assert_true(hold_of(V0)->draining);
	assert_true(judge(V0).offered);
	claim("web-2#u2", NULL, V0, hold_of(V0)->decision + 5);
	records_read();
	assert_true(is_held_by(V0, "web-2#u2"));
	w.relists = 0;
	kubelet_lists({ "web-2", V0 });
	assert_true(holds_status(w.h).settled && w.relists > 0);
	assert_true(judge(V0).offered);
}

static void before_the_records_were_read_nothing_is_freed(void **state)
{
	(void)state;
	begin_pod("web-0#u1", V0);
	kubelet_lists({ "web-0", V0 });
	restart(copy_of_ledger());
	end_pod("web-0#u1");
	kubelet_lists({ "web-1", NULL });
	tick();
	assert_true(is_held_by(V0, "web-0#u1"));
	records_read();
	tick();
	assert_null(hold_of(V0));
}

/* --- another kubelet --- */

static void a_kubelet_that_has_named_a_container_has_shown_its_pod(void **state)
{
	(void)state;
	begin_pod("web-0#u1", V0);
	end_pod("web-0#u1");
	kubelet_lists({ "web-1", V1 });
	assert_null(hold_of(V0));
}

static void what_this_kubelet_has_shown_counts_over_a_restart_of_ours(void **state)
{
	(void)state;
	w.cgroups_off = true;
	begin_pod("web-0#u1", V0);
	begin_pod("web-1#u2", V1);
	kubelet_lists({ "web-0", V0 }, { "web-1", V1 });
	restart(copy_of_ledger());
	records_read();
	kubelet_lists({ "web-1", V1 });
	assert_null(hold_of(V0));
	w.epoch++; /* and the kubelet started, too */
	restart(copy_of_ledger());
	records_read();
	kubelet_lists({ "web-9", NULL });
	assert_true(is_held_by(V1, "web-1#u2"));
}

static void a_kubelet_that_cannot_be_told_from_another_has_shown_nothing_before_us(void **state)
{
	(void)state;
	w.cgroups_off = true;
	w.epoch = 0;
	restart(ledger_new());
	records_read();
	begin_pod("web-0#u1", V0);
	restart(copy_of_ledger());
	records_read();
	kubelet_lists({ "web-1", V1 });
	assert_true(is_held_by(V0, "web-0#u1"));
}

static void what_another_kubelet_has_shown_says_nothing(void **state)
{
	(void)state;
	begin_pod("web-0#u1", V0);
	kubelet_lists({ "web-0", V0 });
	new_kubelet();
	for (int i = 0; i < 100; i++)
		kubelet_lists_nothing();
	assert_true(is_held_by(V0, "web-0#u1"));
	assert_false(is_draining(V0));
	assert_false(holds_status(w.h).misses_some);
	kubelet_lists({ "web-0", V0 });
	end_pod("web-0#u1");
	kubelet_lists_nothing();
	assert_null(hold_of(V0));
}

static void an_answer_of_the_kubelet_before_is_ignored(void **state)
{
	(void)state;
	begin_pod("web-0#u1", V0);
	kubelet_lists({ "web-0", V0 });
	new_kubelet();
	kubelet_lists({ "web-0", V0 });
	w.cgroups_unreadable = true;
	pass(2000);
	answer(NULL, w.now.mono_ms, w.epoch - 1, NULL, 0);
	assert_true(is_held_by(V0, "web-0#u1"));
	assert_false(holds_status(w.h).misses_some);
}

/* --- (b): its cgroup --- */

static void a_pod_whose_cgroup_became_empty_is_gone_when_the_kubelet_does_not_show_it(void **state)
{
	(void)state;
	begin_pod("web-0#u1", V0);
	new_kubelet();
	kubelet_lists_nothing();
	assert_non_null(hold_of(V0));
	end_pod("web-0#u1");
	tick();
	assert_null(hold_of(V0));
}

static void a_pod_that_ended_and_that_the_kubelet_shows_keeps_its_vf(void **state)
{
	(void)state;
	begin_pod("web-0#u1", V0);
	kubelet_lists({ "web-0", V0 });
	end_pod("web-0#u1");
	tick();
	kubelet_lists({ "web-0", V0 });
	assert_true(is_held_by(V0, "web-0#u1"));
}

static void a_pod_that_lives_for_a_moment_leaves_its_vf(void **state)
{
	uint64_t number = allocate("web-0#u1", V0);

	(void)state;
	run_pod("web-0#u1");
	assert_true(starts_by("web-0#u1", V0, number, false));
	pass(250);
	end_pod("web-0#u1");
	kubelet_lists({ "web-1", NULL });
	tick();
	assert_null(hold_of(V0));
}

static void a_cgroup_that_cannot_be_read_is_not_empty(void **state)
{
	(void)state;
	begin_pod("web-0#u1", V0);
	new_kubelet();
	w.cgroups_unreadable = true;
	kubelet_lists_nothing();
	tick();
	assert_true(is_held_by(V0, "web-0#u1"));
}

static void a_cgroup_that_cannot_be_read_ends_no_hold_by_any_rule(void **state)
{
	(void)state;
	begin_pod("web-0#u1", V0);
	kubelet_lists({ "web-0", V0 });
	w.cgroups_unreadable = true;
	kubelet_lists({ "web-1", V0 });
	kubelet_lists({ "web-1", V0 });
	assert_true(is_held_by(V0, "web-0#u1"));
	w.cgroups_unreadable = false;
	end_pod("web-0#u1");
	tick();
	assert_null(hold_of(V0));
}

static void a_node_whose_cgroups_are_not_looked_at_goes_by_what_the_kubelet_shows(void **state)
{
	(void)state;
	w.cgroups_off = true;
	begin_pod("web-0#u1", V0);
	kubelet_lists({ "web-0", V0 });
	assert_non_null(hold_of(V0));
	kubelet_lists({ "web-1", NULL });
	assert_null(hold_of(V0));
}

static void a_look_at_the_cgroup_of_another_pod_says_nothing(void **state)
{
	const struct holds_facts other = { .cgroup = HOLDS_CGROUP_EMPTY, .uid = "u0" };

	(void)state;
	begin_pod("web-0#u1", V0);
	kubelet_lists({ "web-0", V0 });
	kubelet_lists({ "web-1", NULL });
	holds_event(w.h, &(struct holds_event) { .kind = HOLDS_PROBED, .vf = V0, .facts = &other },
		    w.now); /* begun before the hold */
	assert_true(is_held_by(V0, "web-0#u1"));
}

static void a_cgroup_is_seen_though_it_has_no_process_yet(void **state)
{
	const struct holds_facts facts = { .cgroup = HOLDS_CGROUP_EMPTY,
					   .cgroup_is_there = true,
					   .uid = "u1" };

	(void)state;
	allocate("web-0#u1", V0);
	assert_true(starts("web-0#u1", V0));
	assert_false(hold_of(V0)->seen_cgroup);
	holds_event(w.h, &(struct holds_event) { .kind = HOLDS_PROBED, .vf = V0, .facts = &facts },
		    w.now);
	assert_true(hold_of(V0)->seen_cgroup);
}

static void a_machine_that_cannot_be_looked_at_decides_nothing(void **state)
{
	(void)state;
	begin_pod("web-0#u1", V0);
	kubelet_lists({ "web-0", V0 });
	end_pod("web-0#u1");
	w.unreadable = V0;
	kubelet_lists_nothing();
	assert_non_null(hold_of(V0));
	w.unreadable = NULL;
	tick();
	assert_null(hold_of(V0));
}

/* --- (c): an operator --- */

static void an_operator_frees_a_vf_whoever_holds_it(void **state)
{
	(void)state;
	begin_pod("web-0#u1", V0);
	w.open = V0;
	w.relists = 0;
	holds_event(w.h, &(struct holds_event) { .kind = HOLDS_RELEASED, .vf = V0 }, w.now);
	settle();
	assert_null(hold_of(V0));
	assert_int_equal(w.relists, 1);
	assert_int_equal(w.bad, 1);
	assert_true(says("an operator has released the VF vf=" V0
			 " resource=rdma/vf pod=default/web-0 uid=u1 container=main"));
	holds_event(w.h, &(struct holds_event) { .kind = HOLDS_RELEASED, .vf = V0 }, w.now);
	settle();
	assert_int_equal(w.relists, 1); /* nothing holds it any more */
}

/* --- (d): nothing is known but the name --- */

static void begin_without_uid(void)
{
	uint64_t number = allocate("web-0", V0);

	assert_true(starts_by("web-0", V0, number, false));
	new_kubelet();
}

static void without_uid_a_name_counts_after_ten_minutes(void **state)
{
	(void)state;
	begin_without_uid();
	for (int64_t ms = 0; ms < 590000; ms += 2000)
		kubelet_lists({ "web-1", V1 });
	assert_true(is_held_by(V0, "web-0"));
	for (int64_t ms = 0; ms < 20000; ms += 2000)
		kubelet_lists({ "web-1", V1 });
	assert_null(hold_of(V0));
}

/* Its containers may live, and have not opened their devices yet. */
static void without_uid_a_name_that_was_shown_and_is_missed_counts_after_ten_minutes(void **state)
{
	uint64_t number = allocate("web-0", V0);

	(void)state;
	assert_true(starts_by("web-0", V0, number, false));
	for (int64_t ms = 0; ms < 700000; ms += 2000)
		kubelet_lists({ "web-0", V0 });
	kubelet_lists({ "web-1", V1 });
	tick();
	assert_true(is_held_by(V0, "web-0"));
	assert_false(starts("web-2#u2", V0));
	assert_non_null(strstr(w.why, "its UID is not known"));
	for (int64_t ms = 0; ms < 590000; ms += 2000)
		kubelet_lists({ "web-1", V1 });
	assert_true(is_held_by(V0, "web-0"));
	for (int64_t ms = 0; ms < 20000; ms += 2000)
		kubelet_lists({ "web-1", V1 });
	assert_null(hold_of(V0));
}

static void without_uid_and_cgroups_a_name_that_was_shown_and_is_missed_counts(void **state)
{
	uint64_t number = allocate("web-0", V0);

	(void)state;
	w.cgroups_off = true;
	assert_true(starts_by("web-0", V0, number, false));
	kubelet_lists({ "web-0", V0 });
	kubelet_lists({ "web-1", V1 });
	assert_null(hold_of(V0));
}

static void the_ten_minutes_begin_with_the_hold(void **state)
{
	uint64_t number;

	(void)state;
	for (int64_t ms = 0; ms < 700000; ms += 2000)
		kubelet_lists({ "web-1", V1 });
	number = allocate("", V0);
	assert_true(starts_by("", V0, number, false));
	kubelet_lists({ "web-1", V1 });
	tick();
	assert_non_null(hold_of(V0));
	for (int64_t ms = 0; ms < 610000; ms += 2000)
		kubelet_lists({ "web-1", V1 });
	assert_null(hold_of(V0));
}

static void the_ten_minutes_are_those_of_one_kubelet(void **state)
{
	(void)state;
	begin_without_uid();
	for (int i = 0; i < 20; i++) {
		new_kubelet();
		for (int64_t ms = 0; ms < 100000; ms += 2000)
			kubelet_lists_nothing();
	}
	assert_true(is_held_by(V0, "web-0"));
	pass(1000000); /* a kubelet that is down says nothing either */
	new_kubelet();
	kubelet_lists_nothing();
	assert_true(is_held_by(V0, "web-0"));
}

static void without_uid_a_vf_in_use_stays_held_after_ten_minutes(void **state)
{
	(void)state;
	begin_without_uid();
	w.open = V0;
	for (int64_t ms = 0; ms < 700000; ms += 2000)
		kubelet_lists({ "web-1", V1 });
	assert_non_null(hold_of(V0));
	w.open = NULL;
	tick();
	assert_null(hold_of(V0));
}

/* --- pods whose processes outlive them --- */

static void a_pod_that_still_runs_drains_when_it_is_missed_twice(void **state)
{
	(void)state;
	begin_pod("web-0#u1", V0);
	kubelet_lists({ "web-0", V0 });
	w.relists = w.said = 0;
	kubelet_lists({ "web-1", V1 });
	assert_false(is_draining(V0)); /* it may be about to end */
	assert_true(holds_status(w.h).misses_some);
	kubelet_lists({ "web-1", V1 });
	assert_true(is_draining(V0));
	assert_false(holds_status(w.h).misses_some);
	assert_true(says("containers of its pod still run"));
	end_pod("web-0#u1");
	tick();
	assert_null(hold_of(V0));
}

static void a_pod_that_ends_a_moment_later_does_not_drain(void **state)
{
	(void)state;
	begin_pod("web-0#u1", V0);
	kubelet_lists({ "web-0", V0 });
	kubelet_lists({ "web-1", NULL });
	assert_non_null(hold_of(V0));
	end_pod("web-0#u1");
	tick();
	assert_null(hold_of(V0));
	assert_int_equal(w.bad, 0);
}

static void two_answers_of_one_moment_are_one_miss(void **state)
{
	(void)state;
	begin_pod("web-0#u1", V0);
	kubelet_lists({ "web-0", V0 });
	kubelet_lists({ "web-1", NULL });
	pass(100);
	answer(NULL, w.now.mono_ms, w.epoch, SAYS({ "web-1", NULL }));
	assert_false(is_draining(V0));
	pass(1900);
	answer(NULL, w.now.mono_ms, w.epoch, SAYS({ "web-1", NULL }));
	assert_true(is_draining(V0));
}

static void a_vf_drains_until_no_process_has_it_open_and_it_is_back(void **state)
{
	(void)state;
	begin_pod("web-0#u1", V0);
	kubelet_lists({ "web-0", V0 });
	end_pod("web-0#u1");
	w.open = V0;
	kubelet_lists({ "web-1", NULL });
	kubelet_lists({ "web-1", NULL });
	assert_true(is_draining(V0));
	w.open = NULL;
	w.away = V0;
	tick();
	assert_true(is_draining(V0));
	w.away = NULL;
	tick();
	assert_null(hold_of(V0));
}

static void a_pod_that_is_shown_again_has_its_vf_again(void **state)
{
	(void)state;
	begin_pod("web-0#u1", V0);
	kubelet_lists({ "web-0", V0 });
	kubelet_lists({ "web-1", NULL });
	kubelet_lists({ "web-1", NULL });
	assert_true(is_draining(V0));
	w.relists = 0;
	kubelet_lists({ "web-0", V0 });
	assert_false(is_draining(V0));
	assert_true(is_held_by(V0, "web-0#u1"));
	assert_int_equal(w.relists, 1);
}

/* Its processes may live and have it open again, or open it late. */
static void what_drains_without_a_uid_is_not_free_when_nothing_has_it_open(void **state)
{
	(void)state;
	begin_pod("web-0", V0);
	kubelet_lists({ "web-0", V0 });
	w.open = V0;
	kubelet_lists_nothing();
	kubelet_lists_nothing();
	settle();
	assert_true(is_draining(V0));
	w.open = NULL;
	tick();
	assert_true(is_draining(V0));
	restart(copy_of_ledger());
	records_read();
	kubelet_lists_nothing();
	tick();
	assert_true(is_draining(V0));
	pass(600000);
	kubelet_lists_nothing();
	tick();
	assert_null(hold_of(V0));
}

static void what_drains_drains_on_after_a_restart(void **state)
{
	(void)state;
	begin_pod("web-0#u1", V0);
	kubelet_lists({ "web-0", V0 });
	kubelet_lists({ "web-1", NULL });
	kubelet_lists({ "web-1", NULL });
	restart(copy_of_ledger());
	records_read();
	tick();
	assert_true(is_draining(V0));
	end_pod("web-0#u1");
	tick();
	assert_null(hold_of(V0));
}

/* --- a pod that is there, and the id is not --- */

static void a_vf_that_only_an_init_container_had_stays_quiet(void **state)
{
	(void)state;
	begin_pod("web-0#u1/init", V0);
	begin_pod("web-0#u1", V1);
	for (int i = 0; i < 10; i++)
		kubelet_lists({ "web-0", V1 });
	assert_non_null(hold_of(V0));
	assert_false(is_draining(V0));
	assert_int_equal(w.bad, 0);
	kubelet_gets("web-0", { "web-0", V1 });
	assert_string_equal(hold_of(V0)->owner.container, "init");
	end_pod("web-0#u1");
	kubelet_lists({ "web-9", NULL });
	assert_null(hold_of(V0));
	assert_null(hold_of(V1));
}

static void an_active_pod_keeps_what_the_kubelet_has_no_record_of(void **state)
{
	(void)state;
	w.active_only = true;
	begin_pod("web-0#u1", V0);
	kubelet_lists({ "web-0", V0 });
	for (int i = 0; i < 5; i++)
		kubelet_lists({ "web-0", NULL });
	assert_true(is_held_by(V0, "web-0#u1"));
	assert_false(is_draining(V0));
}

static void a_pod_that_is_over_and_still_shown_has_its_vf_no_more(void **state)
{
	(void)state;
	begin_pod("web-0#u1", V0);
	kubelet_lists({ "web-0", V0 });
	end_pod("web-0#u1");
	kubelet_lists({ "web-0", NULL });
	assert_null(hold_of(V0));
}

/* --- names --- */

static void a_hold_and_its_decision_get_the_name_of_their_pod(void **state)
{
	uint64_t number = allocate("", V0);

	(void)state;
	kubelet_lists({ "web-0", V0 });
	assert_true(is_held_by(V0, "web-0"));
	assert_string_equal(hold_of(V0)->owner.container, "main");
	assert_int_equal(hold_of(V0)->decision, number);
	assert_string_equal(ledger_decision(holds_ledger(w.h), number)->owner.pod, "web-0");
}

static void a_vf_that_the_kubelet_gives_twice_stays_with_the_first_pod(void **state)
{
	(void)state;
	begin_pod("web-0#u1", V0);
	kubelet_lists({ "web-0", V0 });
	kubelet_lists({ "web-0", V0 }, { "web-1", V0 });
	kubelet_lists({ "web-1", V0 }, { "web-0", V0 });
	assert_true(is_held_by(V0, "web-0#u1"));
	assert_int_equal(w.bad, 1);
	assert_true(says("the kubelet has given a VF to two pods vf=") &&
		    says("pod=default/web-0 ") && says("other=default/web-1"));
	end_pod("web-0#u1");
	kubelet_lists({ "web-1", V0 });
	kubelet_lists({ "web-1", V0 });
	assert_true(is_held_by(V0, "web-1"));
}

static void a_vf_does_not_pass_to_another_pod_while_the_first_one_runs(void **state)
{
	(void)state;
	begin_pod("web-0#u1", V0);
	kubelet_lists({ "web-0", V0 });
	for (int i = 0; i < 5; i++)
		kubelet_lists({ "web-1", V0 });
	assert_true(is_held_by(V0, "web-0#u1"));
	assert_false(is_draining(
		V0)); /* web-1 has it, says the kubelet: it is not told that it is sick */
	end_pod("web-0#u1");
	kubelet_lists({ "web-1", V0 });
	kubelet_lists({ "web-1", V0 });
	assert_true(is_held_by(V0, "web-1"));
	assert_string_equal(hold_of(V0)->owner.uid, "");
}

/* --- blind --- */

static void without_cgroups_a_kubelet_that_has_not_shown_a_pod_for_ten_minutes_ends_it(void **state)
{
	(void)state;
	w.cgroups_off = true;
	begin_pod("web-0#u1", V0);
	new_kubelet();
	for (int64_t ms = 0; ms < 590000; ms += 2000)
		kubelet_lists({ "web-1", V1 });
	assert_true(is_held_by(V0, "web-0#u1"));
	for (int64_t ms = 0; ms < 20000; ms += 2000)
		kubelet_lists({ "web-1", V1 });
	assert_null(hold_of(V0));
}

static void where_no_kubelet_answers_an_idle_vf_is_free_when_it_is_given(void **state)
{
	(void)state;
	holds_event(w.h, &(struct holds_event) { .kind = HOLDS_BLIND, .blind = true }, w.now);
	begin_pod("", V0);
	w.open = V0;
	allocate("web-1#u2", V0);
	assert_false(starts("web-1#u2", V0));
	assert_non_null(strstr(w.why, "is open"));
	w.open = NULL;
	assert_true(starts("web-1#u2", V0));
	assert_true(is_held_by(V0, "web-1#u2"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_pod_that_was_shown_and_is_then_missed_is_gone),
		TEST(one_sentence_says_what_the_end_of_a_container_frees),
		TEST(a_name_alone_frees_no_started_hold),
		TEST(a_get_that_finds_no_pod_counts_like_a_list),
		TEST(an_answer_about_one_pod_says_nothing_of_others),
		TEST(an_answer_says_nothing_of_a_hold_that_is_younger),
		TEST(what_the_kubelet_has_shown_it_has_noted),
		TEST(an_answer_that_was_overtaken_says_nothing),
		TEST(an_overtaken_answer_that_shows_a_pod_does_not_bring_it_back),
		TEST(an_overtaken_answer_adopts_nothing),
		TEST(a_lost_ledger_is_not_settled_by_an_overtaken_answer),
		TEST(what_drains_is_withheld_when_all_records_were_read),
		TEST(before_the_records_were_read_nothing_is_freed),
		TEST(the_ten_minutes_begin_with_the_hold),
		TEST(a_kubelet_that_has_named_a_container_has_shown_its_pod),
		TEST(what_this_kubelet_has_shown_counts_over_a_restart_of_ours),
		TEST(a_kubelet_that_cannot_be_told_from_another_has_shown_nothing_before_us),
		TEST(what_another_kubelet_has_shown_says_nothing),
		TEST(an_answer_of_the_kubelet_before_is_ignored),
		TEST(a_pod_whose_cgroup_became_empty_is_gone_when_the_kubelet_does_not_show_it),
		TEST(a_pod_that_ended_and_that_the_kubelet_shows_keeps_its_vf),
		TEST(a_pod_that_lives_for_a_moment_leaves_its_vf),
		TEST(a_cgroup_that_cannot_be_read_is_not_empty),
		TEST(a_cgroup_that_cannot_be_read_ends_no_hold_by_any_rule),
		TEST(a_node_whose_cgroups_are_not_looked_at_goes_by_what_the_kubelet_shows),
		TEST(a_look_at_the_cgroup_of_another_pod_says_nothing),
		TEST(a_cgroup_is_seen_though_it_has_no_process_yet),
		TEST(a_machine_that_cannot_be_looked_at_decides_nothing),
		TEST(an_operator_frees_a_vf_whoever_holds_it),
		TEST(without_uid_a_name_counts_after_ten_minutes),
		TEST(without_uid_a_name_that_was_shown_and_is_missed_counts_after_ten_minutes),
		TEST(without_uid_and_cgroups_a_name_that_was_shown_and_is_missed_counts),
		TEST(the_ten_minutes_are_those_of_one_kubelet),
		TEST(without_uid_a_vf_in_use_stays_held_after_ten_minutes),
		TEST(a_pod_that_still_runs_drains_when_it_is_missed_twice),
		TEST(a_pod_that_ends_a_moment_later_does_not_drain),
		TEST(two_answers_of_one_moment_are_one_miss),
		TEST(a_vf_drains_until_no_process_has_it_open_and_it_is_back),
		TEST(a_pod_that_is_shown_again_has_its_vf_again),
		TEST(what_drains_without_a_uid_is_not_free_when_nothing_has_it_open),
		TEST(what_drains_drains_on_after_a_restart),
		TEST(a_vf_that_only_an_init_container_had_stays_quiet),
		TEST(an_active_pod_keeps_what_the_kubelet_has_no_record_of),
		TEST(a_pod_that_is_over_and_still_shown_has_its_vf_no_more),
		TEST(a_hold_and_its_decision_get_the_name_of_their_pod),
		TEST(a_vf_that_the_kubelet_gives_twice_stays_with_the_first_pod),
		TEST(a_vf_does_not_pass_to_another_pod_while_the_first_one_runs),
		TEST(without_cgroups_a_kubelet_that_has_not_shown_a_pod_for_ten_minutes_ends_it),
		TEST(where_no_kubelet_answers_an_idle_vf_is_free_when_it_is_given),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
