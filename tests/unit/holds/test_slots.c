/* Late binding: slots, what was promised of them, and which VF each has. */
#include "unit/holds/world.h"

static const char *vf_told_for(const char *slot)
{
	struct holds_slots s = holds_slots(w.h, w.a);

	for (size_t i = 0; i < s.n_uses; i++) {
		if (!strcmp(s.uses[i].slot, slot))
			return s.uses[i].vf ? s.uses[i].vf : "none yet";
	}
	return "free";
}

/* A VF that is not free and that no slot has. */
static bool is_told_lost(const char *vf)
{
	struct holds_slots s = holds_slots(w.h, w.a);

	for (size_t i = 0; i < s.n_uses; i++) {
		if (s.uses[i].vf && !strcmp(s.uses[i].vf, vf))
			return false;
	}
	return judge(vf).state != HOLDS_IS_FREE;
}

/* --- from a promise to a VF --- */

static void a_slot_is_promised_until_a_vf_is_bound_to_it(void **state)
{
	(void)state;
	promise(S0);
	assert_true(holds_slot(w.h, S0).promised);
	assert_string_equal(vf_told_for(S0), "none yet");
	assert_null(holds_slot(w.h, S0).vf);
	bind_slot("web-0#u1", S0, V0);
	assert_false(holds_slot(w.h, S0).promised);
	assert_string_equal(vf_told_for(S0), V0);
	assert_string_equal(holds_slot(w.h, S0).vf, V0);
	assert_string_equal(vf_told_for(S1), "free");
}

static void a_promise_is_forgotten_when_a_list_that_was_asked_for_later_lacks_it(void **state)
{
	(void)state;
	promise(S0);
	pass(500);
	answer(NULL, w.now.mono_ms, w.epoch, NULL, 0);
	assert_true(holds_slot(w.h, S0).promised); /* the kubelet notes it a moment later */
	kubelet_lists({ "web-0", S0 });
	assert_string_equal(vf_told_for(S0), "none yet");
	kubelet_lists({ "web-0", NULL });
	assert_false(holds_slot(w.h, S0).promised);
	assert_string_equal(vf_told_for(S0), "free");
}

static void a_slot_that_a_container_got_before_we_started_is_told(void **state)
{
	(void)state;
	kubelet_lists({ "web-0", S0 });
	assert_string_equal(vf_told_for(S0), "none yet");
	assert_null(hold_of(S0));
}

static void a_binding_that_came_to_nothing_is_taken_back(void **state)
{
	(void)state;
	promise(S0);
	bind_slot("web-0#u1", S0, V0);
	holds_event(w.h, &(struct holds_event) { .kind = HOLDS_UNBOUND, .slot = S0 }, w.now);
	assert_null(hold_of(V0));
	assert_true(holds_slot(w.h, S0).promised);
	bind_slot("web-0#u1", S0, V1);
	holds_event(w.h, &(struct holds_event) { .kind = HOLDS_CONFIRMED, .slot = S0 }, w.now);
	holds_event(w.h, &(struct holds_event) { .kind = HOLDS_UNBOUND, .slot = S0 },
		    w.now); /* a container, or a CNI plugin, has it by now */
	assert_true(is_held_by(V1, "web-0#u1"));
}

/* --- a container starts again --- */

static void a_container_that_starts_again_keeps_its_vf(void **state)
{
	(void)state;
	begin_late("web-0#u1", S0, V0);
	assert_string_equal(slot_starts("web-0#u1", S0, true), V0);
	restart(copy_of_ledger());
	records_read();
	assert_string_equal(slot_starts("web-0#u1", S0, true), V0);
	assert_string_equal(slot_starts("web-0", S0, true), V0);
}

static void a_decision_that_came_to_nothing_is_forgotten(void **state)
{
	uint64_t number;

	(void)state;
	promise(S0);
	number = bind_slot("web-0#u1", S0, V0);
	holds_event(w.h, &(struct holds_event) { .kind = HOLDS_UNDECIDED, .number = number },
		    w.now);
	assert_non_null(ledger_decision(holds_ledger(w.h), number)); /* a VF is held by it */
	holds_event(w.h, &(struct holds_event) { .kind = HOLDS_UNBOUND, .slot = S0 }, w.now);
	holds_event(w.h, &(struct holds_event) { .kind = HOLDS_UNDECIDED, .number = number },
		    w.now);
	assert_null(ledger_decision(holds_ledger(w.h), number));
	assert_true(bind_slot("web-0#u1", S0, V0) > number); /* numbers only grow */
}

static void a_vf_that_is_bound_again_keeps_its_number_and_its_owner(void **state)
{
	uint64_t number = begin_late("web-0#u1", S0, V0);
	struct holds_vf v = vf_of(V0);
	const struct ledger_owner o = { .ns = "default", .pod = "web-0", .uid = "" };

	(void)state;
	holds_event(
		w.h,
		&(struct holds_event) {
			.kind = HOLDS_BOUND, .slot = S0, .given = &v, .owner = &o, .number = 0 },
		w.now);
	assert_int_equal(hold_of(V0)->decision, number);
	assert_true(is_held_by(V0, "web-0#u1"));
	assert_string_equal(hold_of(V0)->owner.container, "main");
	holds_event(w.h, &(struct holds_event) { .kind = HOLDS_UNBOUND, .slot = S0 }, w.now);
	assert_true(is_held_by(V0, "web-0#u1"));
}

static void a_vf_that_is_not_usable_is_left_for_another_one(void **state)
{
	(void)state;
	begin_late("web-0#u1", S0, V0);
	w.away = V0;
	assert_null(slot_starts("web-0#u1", S0, false));
	assert_true(is_draining(V0));
	assert_true(is_told_lost(V0));
	assert_string_equal(vf_told_for(S0), "none yet"); /* and not free: its container has it */
	bind_slot("web-0#u1", S0, V1);
	holds_event(w.h, &(struct holds_event) { .kind = HOLDS_CONFIRMED, .slot = S0 }, w.now);
	assert_string_equal(vf_told_for(S0), V1);
	w.away = NULL;
	tick();
	assert_null(hold_of(V0)); /* that the pod runs says nothing about it */
	assert_true(is_held_by(V1, "web-0#u1"));
}

static void leave_vf_that_stays_away(void)
{
	begin_late("web-0#u1", S0, V0);
	kubelet_lists({ "web-0", S0 });
	w.away = V0;
	assert_null(slot_starts("web-0#u1", S0, false));
	bind_slot("web-0#u1", S0, V1);
	holds_event(w.h, &(struct holds_event) { .kind = HOLDS_CONFIRMED, .slot = S0 }, w.now);
	tick();
	assert_true(is_draining(V0));
}

static void a_vf_that_was_left_for_another_one_is_free_after_a_restart(void **state)
{
	(void)state;
	leave_vf_that_stays_away();
	restart(copy_of_ledger());
	records_read();
	kubelet_lists({ "web-0", S0 });
	tick();
	assert_true(is_draining(V0));
	w.away = NULL;
	tick();
	assert_null(hold_of(V0));
	assert_true(is_held_by(V1, "web-0#u1"));
}

static void a_vf_that_was_left_for_another_one_is_free_when_the_pod_has_ended(void **state)
{
	(void)state;
	leave_vf_that_stays_away();
	end_pod("web-0#u1");
	kubelet_lists_nothing();
	tick();
	assert_true(is_draining(V0));
	w.away = NULL;
	tick();
	assert_null(hold_of(V0));
}

/* --- the slot is another container's --- */

static void a_slot_that_was_given_away_leaves_its_vf_with_the_first_container(void **state)
{
	(void)state;
	begin_late("web-0#u1", S0, V0);
	kubelet_lists({ "web-0", S0 });
	promise(S0);
	assert_null(slot_starts("web-1#u2", S0, true));
	assert_true(is_held_by(V0, "web-0#u1"));
	assert_null(hold_of(V0)->slot);
	assert_true(is_told_lost(V0));
	bind_slot("web-1#u2", S0, V1);
	assert_true(is_held_by(V1, "web-1#u2"));
	assert_false(may_give(V0));
	end_pod("web-0#u1");
	tick();
	assert_null(hold_of(V0));
}

static void a_slot_is_the_first_containers_again_when_the_second_one_is_gone(void **state)
{
	(void)state;
	begin_late("web-0#u1", S0, V0);
	kubelet_lists({ "web-0", S0 });
	promise(S0);
	assert_null(slot_starts("web-1#u2", S0, true));
	bind_slot("web-1#u2", S0, V1);
	assert_string_equal(vf_told_for(S0), V1);
	end_pod("web-1#u2");
	holds_event(w.h, &(struct holds_event) { .kind = HOLDS_RELEASED, .vf = V1 }, w.now);
	settle();
	assert_string_equal(vf_told_for(S0), V0);
	assert_false(is_told_lost(V0));
	kubelet_lists({ "web-0", S0 });
	assert_string_equal(vf_told_for(S0), V0);
	assert_false(holds_slot(w.h, S0).promised);
	promise(S0); /* a third one */
	assert_string_equal(vf_told_for(S0), "none yet");
	assert_true(is_told_lost(V0));
}

static void a_pod_of_the_same_name_and_another_uid_gets_another_vf(void **state)
{
	(void)state;
	begin_late("web-0#u1", S0, V0);
	kubelet_lists({ "web-0", S0 });
	promise(S0);
	run_pod("web-0#u2");
	assert_null(slot_starts("web-0#u2", S0, true));
	bind_slot("web-0#u2", S0, V1);
	assert_true(is_held_by(V0, "web-0#u1"));
	assert_true(is_held_by(V1, "web-0#u2"));
}

/* The kubelet has given the slot twice: the spec names the VF of the first until its container is
 * created. */
static void a_container_waits_while_another_of_its_slot_may_not_be_created_yet(void **state)
{
	struct ledger_owner first = who("web-0#u1"), second = who("web-1#u2");
	struct holds_facts f;

	(void)state;
	begin_late("web-0#u1", S0, V0);
	run_pod("web-0#u1");
	promise(S0);
	f = facts_of(V0);
	assert_non_null(strstr(holds_slot_waits(w.h, S0, &second, &f, w.now, w.a), "web-0"));
	assert_null(holds_slot_waits(w.h, S0, &first, &f, w.now, w.a));
	assert_null(holds_slot_waits(w.h, S1, &second, &f, w.now, w.a));
	restart(copy_of_ledger());
	records_read();
	f = facts_of(V0);
	assert_non_null(holds_slot_waits(w.h, S0, &second, &f, w.now, w.a));
	pass((int64_t)holds_default_pace.create_ms);
	assert_null(holds_slot_waits(w.h, S0, &second, &f, w.now, w.a));
}

static void a_container_does_not_wait_for_a_pod_that_has_ended(void **state)
{
	struct ledger_owner second = who("web-1#u2");
	struct holds_facts f;

	(void)state;
	begin_late("web-0#u1", S0, V0);
	end_pod("web-0#u1");
	f = facts_of(V0);
	assert_null(holds_slot_waits(w.h, S0, &second, &f, w.now, w.a));
}

/* It was begun when another pod held the VF. */
static void a_look_at_the_cgroup_of_a_former_holder_does_not_end_the_wait(void **state)
{
	const struct holds_facts former = { .cgroup = HOLDS_CGROUP_EMPTY, .uid = "u0" };
	struct ledger_owner second = who("web-1#u2");

	(void)state;
	begin_late("web-0#u1", S0, V0);
	promise(S0);
	assert_non_null(holds_slot_waits(w.h, S0, &second, &former, w.now, w.a));
}

/* The kubelet has given it to both, and shows both. */
static void a_second_container_of_the_pod_waits_and_gets_a_vf_of_its_own(void **state)
{
	struct ledger_owner a = who("web-0#u1/a"), b = who("web-0#u1/b");
	struct holds_facts f;

	(void)state;
	begin_late("web-0#u1/a", S0, V0);
	kubelet_lists({ "web-0/a", S0 }, { "web-0/b", S0 });
	f = facts_of(V0);
	assert_null(holds_slot_waits(w.h, S0, &a, &f, w.now, w.a));
	assert_non_null(strstr(holds_slot_waits(w.h, S0, &b, &f, w.now, w.a), "container a of"));
	pass((int64_t)holds_default_pace.create_ms);
	assert_null(holds_slot_waits(w.h, S0, &b, &f, w.now, w.a));
	assert_null(slot_starts("web-0#u1/b", S0, true));
	assert_true(is_held_by(V0, "web-0#u1"));
	assert_false(may_give(V0));
	bind_slot("web-0#u1/b", S0, V1);
	kubelet_lists({ "web-0/a", S0 }, { "web-0/b", S0 });
	assert_string_equal(hold_of(V0)->owner.container, "a");
	assert_string_equal(hold_of(V1)->owner.container, "b");
	assert_string_equal(slot_starts("web-0#u1/b", S0, true), V1);
	assert_null(slot_starts("web-0#u1/a", S0, true));
	assert_string_equal(holds_kept(w.h, RES, &a, 0), V0);
}

/* A restartable init container has it, and perhaps an ordinary one that comes after it. */
static void a_slot_that_two_containers_have_on_record_waits_while_its_vf_is_open(void **state)
{
	const struct holds_entry v[] = { { "u1", "a", RES, S0 }, { "u1", "setup", RES, S0 } };
	struct ledger_owner a = who("web-0#u1/a");
	struct holds_facts f;

	(void)state;
	begin_late("web-0#u1/a", S0, V0);
	holds_event(
		w.h,
		&(struct holds_event) { .kind = HOLDS_CHECKPOINT, .entries = v, .n = ARRAY_LEN(v) },
		w.now);
	w.open = V0;
	f = facts_of(V0);
	assert_non_null(strstr(holds_slot_waits(w.h, S0, &a, &f, w.now, w.a), "is open"));
	w.open = NULL;
	f = facts_of(V0);
	assert_null(holds_slot_waits(w.h, S0, &a, &f, w.now, w.a));
	assert_string_equal(slot_starts("web-0#u1/a", S0, true), V0);
}

/* The ledger is older than the other records: it had been stored between a binding and its end. */
static void no_container_keeps_the_vf_of_its_slot_before_all_records_were_read(void **state)
{
	struct ledger_owner o = who("web-0#u1");
	struct holds_facts f;

	(void)state;
	begin_late("web-0#u1", S0, V0);
	restart(copy_of_ledger());
	f = facts_of(V0);
	assert_non_null(strstr(holds_slot_waits(w.h, S0, &o, &f, w.now, w.a), "were not read yet"));
	records_read();
	assert_null(holds_slot_waits(w.h, S0, &o, &f, w.now, w.a));
	assert_string_equal(slot_starts("web-0#u1", S0, true), V0);
}

/* The first one has a VF of another pool to wait for: it is told of this one again and again, and
 * not created. */
static void a_container_does_not_wait_for_one_that_was_refused_after_it_was_told(void **state)
{
	struct ledger_owner first = who("web-0#u1"), second = who("web-1#u2");
	struct holds_facts f;

	(void)state;
	begin_late("web-0#u1", S0, V0);
	f = facts_of(V0);
	assert_non_null(holds_slot_waits(w.h, S0, &second, &f, w.now, w.a));
	holds_event(w.h, &(struct holds_event) { .kind = HOLDS_NOT_CREATED, .owner = &second },
		    w.now);
	assert_non_null(holds_slot_waits(w.h, S0, &second, &f, w.now, w.a));
	holds_event(w.h, &(struct holds_event) { .kind = HOLDS_NOT_CREATED, .owner = &first },
		    w.now);
	assert_null(holds_slot_waits(w.h, S0, &second, &f, w.now, w.a));
	holds_event(w.h, &(struct holds_event) { .kind = HOLDS_CONFIRMED, .slot = S0 }, w.now);
	assert_non_null(holds_slot_waits(w.h, S0, &second, &f, w.now, w.a));
}

/* Its other pool binds early. */
static void a_container_that_an_early_pool_refuses_is_not_created(void **state)
{
	struct ledger_owner second = who("web-1#u2");
	struct holds_facts f;

	(void)state;
	begin_pod("web-9#u9", V1);
	begin_late("web-0#u1", S0, V0);
	f = facts_of(V0);
	assert_non_null(holds_slot_waits(w.h, S0, &second, &f, w.now, w.a));
	assert_false(starts("web-0#u1", V1));
	assert_null(holds_slot_waits(w.h, S0, &second, &f, w.now, w.a));
}

static void without_uids_a_name_keeps_its_vf_unless_the_slot_was_given_since(void **state)
{
	(void)state;
	begin_late("web-0", S0, V0);
	assert_string_equal(slot_starts("web-0", S0, true), V0);
	promise(S0);
	assert_null(slot_starts("web-0", S0, true));
	assert_non_null(hold_of(V0));
}

static void a_container_whose_slot_was_given_away_keeps_its_vf_with_another_slot(void **state)
{
	struct ledger_owner first = who("web-0#u1"), second = who("web-1#u2");
	struct holds_facts facts = facts_of(V0);
	struct holds_vf kept = { NULL, RES, NULL, &facts };

	(void)state;
	begin_late("web-0#u1", S0, V0);
	promise(S0);
	assert_null(slot_starts("web-1#u2", S0, true));
	assert_string_equal(holds_kept(w.h, RES, &first, 0), V0);
	assert_null(holds_kept(w.h, RES, &first, 1));
	assert_null(holds_kept(w.h, RES, &second, 0));
	assert_null(holds_kept(w.h, "rdma/other", &first, 0));
	kept.vf = holds_kept(w.h, RES, &first, 0);
	holds_event(w.h,
		    &(struct holds_event) { .kind = HOLDS_BOUND,
					    .slot = S1,
					    .given = &kept,
					    .owner = &first,
					    .number = 0 },
		    w.now); /* by a name that the ledger drops meanwhile */
	assert_string_equal(hold_of(V0)->slot, S1);
	settle();
}

/* By its name alone it may be another pod, while the first one lives. */
static void a_container_without_a_uid_does_not_keep_what_has_lost_its_slot(void **state)
{
	struct ledger_owner again = who("web-0"), other = who("web-0#u2");

	(void)state;
	begin_late("web-0", S0, V0);
	promise(S0);
	assert_null(slot_starts("web-0", S0, true));
	assert_null(holds_kept(w.h, RES, &again, 0));
	assert_null(holds_kept(w.h, RES, &other, 0));
}

/* The checkpoint could not be read before, or now. */
static void a_slot_waits_while_its_holder_has_but_a_uid_and_the_container_but_a_name(void **state)
{
	struct ledger_owner named = who("web-0"), known = who("web-0#u1"), uid = who("#u1");
	struct holds_facts f;

	(void)state;
	begin_late("#u1", S0, V0);
	pass(60000);
	f = facts_of(V0);
	assert_non_null(holds_slot_waits(w.h, S0, &named, &f, w.now, w.a));
	assert_null(holds_slot_waits(w.h, S0, &known, &f, w.now, w.a));
	assert_null(holds_slot_waits(w.h, S0, &uid, &f, w.now, w.a));
	assert_string_equal(slot_starts("web-0#u1", S0, true), V0);
}

/* The kubelet shows the name with the slot, and by its checkpoint that UID has it. */
static void a_slot_is_kept_by_a_uid_alone_if_the_kubelet_says_that_it_is_the_holder(void **state)
{
	struct ledger_owner uid = who("#u1"), other = who("#u2");
	struct holds_facts f;

	(void)state;
	begin_late("web-0", S0, V0);
	restart(copy_of_ledger());
	records_read();
	pass(60000);
	f = facts_of(V0);
	checkpoint("u1", S0);
	assert_non_null(holds_slot_waits(w.h, S0, &uid, &f, w.now, w.a));
	kubelet_lists({ "web-0", S0 });
	assert_non_null(holds_slot_waits(w.h, S0, &other, &f, w.now, w.a));
	assert_null(holds_slot_waits(w.h, S0, &uid, &f, w.now, w.a));
	assert_string_equal(slot_starts("#u1", S0, true), V0);
}

/* The state directory was away at the start: the ledger, which has no UID, is found later. */
static void a_slot_that_was_unknown_was_not_given_to_another_container(void **state)
{
	(void)state;
	restart(NULL);
	records_read();
	kubelet_lists({ "web-0", S0 });
	assert_non_null(holds_unknown(w.h, 0, NULL));
	claim("web-0", S0, V0, 7);
	assert_null(holds_unknown(w.h, 0, NULL));
	assert_string_equal(slot_starts("web-0#u1", S0, true), V0);
	promise(S0); /* and now it was */
	assert_null(slot_starts("web-0#u2", S0, true));
}

static void what_drains_loses_its_slot_to_the_next_container(void **state)
{
	(void)state;
	begin_late("web-0#u1", S0, V0);
	kubelet_lists({ "web-0", S0 });
	kubelet_lists({ "web-1", NULL });
	kubelet_lists({ "web-1", NULL });
	assert_true(is_draining(V0));
	promise(S0);
	assert_null(hold_of(V0)->slot);
	assert_string_equal(vf_told_for(S0), "none yet");
	assert_true(is_told_lost(V0));
}

static void a_slot_of_another_pod_is_no_sign_of_life_and_none_of_death(void **state)
{
	(void)state;
	begin_late("web-0#u1", S0, V0);
	for (int i = 0; i < 5; i++)
		kubelet_lists({ "web-1", S0 });
	assert_true(is_held_by(V0, "web-0#u1"));
	assert_false(is_draining(V0));
	end_pod("web-0#u1");
	kubelet_lists({ "web-1", S0 });
	assert_null(hold_of(V0));
}

static void a_vf_that_only_an_init_container_had_stays_quiet_late_too(void **state)
{
	(void)state;
	begin_late("web-0#u1/init", S0, V0);
	begin_late("web-0#u1", S1, V1);
	for (int i = 0; i < 5; i++)
		kubelet_lists({ "web-0", S1 });
	assert_non_null(hold_of(V0));
	assert_false(is_draining(V0));
	assert_string_equal(vf_told_for(S0), V0);
}

/* No list shows the init containers of a pod, and the checkpoint has UIDs only. */
static void a_hold_with_a_uid_and_no_name_is_not_missed(void **state)
{
	(void)state;
	begin_late("#u1", S0, V0);
	for (int i = 0; i < 5; i++)
		kubelet_lists({ "web-0", NULL });
	assert_non_null(hold_of(V0));
	assert_false(is_draining(V0));
	assert_string_equal(slot_starts("#u1", S0, true), V0);
	end_pod("#u1");
	tick();
	assert_null(hold_of(V0));
}

static void a_promise_is_not_forgotten_by_a_list_that_is_older(void **state)
{
	int64_t asked;

	(void)state;
	asked = w.now.mono_ms;
	promise(S0);
	pass(90000);
	answer(NULL, asked, w.epoch, NULL, 0);
	assert_true(holds_slot(w.h, S0).promised);
}

/* --- which VFs may be given --- */

static void an_idle_vf_that_is_not_held_may_be_given(void **state)
{
	(void)state;
	assert_true(may_give(V0));
	w.open = V0;
	assert_false(may_give(V0));
	assert_string_equal(w.why, "VF " V0 " is in use: its RDMA device is open (1 context)");
}

static void a_vf_of_a_container_is_given_only_when_that_one_is_gone(void **state)
{
	(void)state;
	begin_late("web-0#u1", S0, V0);
	assert_false(may_give(V0));
	assert_non_null(
		strstr(w.why, "VF " V0 " is held by container main of pod default/web-0 (UID u1)"));
	assert_false(holds_could_give(w.h, V0));
	kubelet_lists({ "web-0", S0 });
	kubelet_lists({ "web-1", NULL });
	assert_true(holds_could_give(w.h, V0));
	assert_false(may_give(V0));
	end_pod("web-0#u1");
	assert_true(may_give(V0));
	assert_null(hold_of(V0));
}

/* --- the ledger, the specs and map.json are lost --- */

static void lose_everything(void)
{
	begin_late("web-0#u1", S0, V0);
	restart(NULL);
	records_read();
}

static void nothing_is_given_before_the_kubelet_has_shown_its_pods(void **state)
{
	(void)state;
	lose_everything();
	assert_false(holds_status(w.h).settled);
	assert_false(may_give(V1));
	assert_non_null(strstr(w.why, "the kubelet has not shown its pods yet"));
	assert_true(holds_needs_record(w.h, NULL, S1));
	assert_true(holds_needs_record(w.h, V3, NULL));
	kubelet_gets("web-9", { "web-9", NULL });
	assert_false(may_give(V1));
	kubelet_lists({ "web-9", NULL });
	assert_true(holds_status(w.h).settled);
	assert_true(may_give(V1));
}

static void while_the_vf_of_a_slot_is_unknown_none_of_its_resource_is_given(void **state)
{
	const struct ledger_owner *owner;

	(void)state;
	lose_everything();
	kubelet_lists({ "web-0", S0 });
	assert_string_equal(holds_unknown(w.h, 0, &owner), S0);
	assert_string_equal(owner->pod, "web-0");
	assert_null(holds_unknown(w.h, 1, NULL));
	assert_int_equal(w.bad, 1);
	assert_true(says("slot=" S0 " resource=rdma/vf pod=default/web-0 container=main"));
	assert_false(may_give(V0));
	assert_false(may_give(V1));
	assert_non_null(strstr(w.why, "may be that of slot " S0));
	assert_true(holds_needs_record(w.h, NULL, S1));
	assert_true(holds_needs_record(w.h, V0, NULL));
	assert_false(holds_status(w.h).wants_store); /* the next start has to look for it again */
}

static void a_slot_is_known_again_when_its_container_starts_again(void **state)
{
	(void)state;
	lose_everything();
	kubelet_lists({ "web-0", S0 });
	assert_null(slot_starts("web-0#u1", S0, true));
	assert_null(holds_unknown(w.h, 0, NULL));
	assert_true(may_give(V1));
}

static void an_unknown_slot_is_forgotten_when_its_pod_is_missed_twice_and_runs_no_more(void **state)
{
	(void)state;
	lose_everything();
	kubelet_lists({ "web-0", S0 });
	checkpoint("u1", S0);
	tick();
	kubelet_lists({ "web-1", NULL });
	kubelet_lists({ "web-1", NULL });
	assert_non_null(holds_unknown(w.h, 0, NULL)); /* its cgroup has processes */
	assert_false(may_give(V1));
	end_pod("web-0#u1");
	tick();
	assert_null(holds_unknown(w.h, 0, NULL));
	assert_true(may_give(V1));
}

/* The kubelet has given the slot since, and the checkpoint names the pod that has got it. */
static void an_unknown_slot_does_not_get_the_uid_of_the_next_pod(void **state)
{
	(void)state;
	restart(NULL);
	records_read();
	kubelet_lists({ "web-0", S0 });
	run_pod("web-0#u1");
	promise(S0);
	checkpoint("u2", S0);
	assert_null(slot_starts("web-1#u2", S0, true));
	assert_string_equal(holds_unknown(w.h, 0, NULL), S0);
	assert_false(may_give(V0));
}

/* The kubelet has given it to two containers of the pod: that one starts says nothing of the other.
 */
static void an_unknown_slot_of_two_containers_is_not_known_when_the_other_one_starts(void **state)
{
	(void)state;
	restart(NULL);
	records_read();
	kubelet_lists({ "web-0/side", S0 }, { "web-0", S0 });
	run_pod("web-0#u1");
	checkpoint("u1", S0);
	assert_null(slot_starts("web-0#u1/init", S0, true));
	assert_false(may_give(V0));
	assert_null(slot_starts("web-0#u1/main", S0, true));
	assert_false(may_give(V0));
	assert_null(slot_starts("web-0#u1/side", S0, true)); /* it restarts */
	assert_true(may_give(V0));
}

/* No List shows it by its name; the next container of its pod gets the same slots, and more. */
static void the_slots_of_a_container_are_known_when_its_init_container_starts(void **state)
{
	(void)state;
	lose_everything();
	end_pod("web-0#u1");
	kubelet_lists({ "web-0", S0 }, { "web-0", S1 });
	checkpoint("u1", S0);
	checkpoint("u1", S1);
	assert_false(may_give(V1));
	run_pod("web-0#u1"); /* its sandbox */
	assert_null(slot_starts("#u1", S0, true));
	assert_null(holds_unknown(w.h, 0, NULL));
	assert_true(may_give(V1));
}

/* A restartable init container of the pod runs on meanwhile. */
static void the_slot_of_another_container_stays_unknown_when_an_init_container_starts(void **state)
{
	const struct holds_entry v[] = { { "u1", "sidecar", RES, S0 }, { "u1", "setup", RES, S1 } };

	(void)state;
	lose_everything();
	kubelet_lists({ "web-0/sidecar", S0 });
	holds_event(
		w.h,
		&(struct holds_event) { .kind = HOLDS_CHECKPOINT, .entries = v, .n = ARRAY_LEN(v) },
		w.now);
	assert_null(slot_starts("#u1", S1, true));
	tick();
	assert_string_equal(holds_unknown(w.h, 0, NULL), S0);
	assert_false(may_give(V0));
	assert_non_null(
		strstr(w.why, "slot " S0 ", which container sidecar of pod default/web-0 has"));
}

static void the_slot_shows(enum holds_cgroup cgroup)
{
	holds_event(
		w.h,
		&(struct holds_event) { .kind = HOLDS_SLOT_PROBED, .slot = S0, .cgroup = cgroup },
		w.now);
}

#define OTHER "rdma_vf-n0-7"

/* main has a slot that its init container has not: neither has started when all is lost. */
static void lose_the_slot_of_a_later_container(void)
{
	lose_everything();
	kubelet_lists({ "web-0", S0 });
	checkpoint("u1", S0);
	assert_null(slot_starts("web-0#u1/setup", OTHER, true));
}

static void a_slot_is_known_when_its_pod_is_called_for_and_runs_but_a_sandbox(void **state)
{
	(void)state;
	lose_the_slot_of_a_later_container();
	the_slot_shows(HOLDS_CGROUP_SANDBOX);
	pass(34999);
	assert_null(slot_starts("web-0#u1/setup", OTHER, true));
	the_slot_shows(HOLDS_CGROUP_SANDBOX);
	assert_false(may_give(V1)); /* one may be created yet that started before */
	pass(1);
	the_slot_shows(HOLDS_CGROUP_SANDBOX);
	assert_null(holds_unknown(w.h, 0, NULL));
	assert_true(may_give(V1));
}

static void a_slot_stays_unknown_when_a_container_ran_meanwhile(void **state)
{
	(void)state;
	lose_the_slot_of_a_later_container();
	the_slot_shows(HOLDS_CGROUP_SANDBOX);
	pass(20000);
	the_slot_shows(HOLDS_CGROUP_RUNS);
	pass(20000);
	assert_null(slot_starts("web-0#u1/setup", OTHER, true));
	the_slot_shows(HOLDS_CGROUP_SANDBOX);
	assert_false(may_give(V1));
}

/* What looks like its sandbox is a container, if the sandbox has ended. */
static void a_slot_stays_unknown_when_no_container_of_its_pod_is_called_for(void **state)
{
	(void)state;
	lose_the_slot_of_a_later_container();
	the_slot_shows(HOLDS_CGROUP_SANDBOX);
	pass(40000);
	the_slot_shows(HOLDS_CGROUP_SANDBOX);
	assert_false(may_give(V1));
	assert_null(slot_starts("web-0#u1/setup", OTHER, true));
	the_slot_shows(HOLDS_CGROUP_SANDBOX);
	assert_true(may_give(V1));
}

/* The checkpoint still has a pod that is gone: of one slot it names two. They have one name in one
 * List. */
static void a_slot_that_two_pods_have_on_record_is_that_of_the_pod_of_its_name(void **state)
{
	const struct holds_entry v[] = { { "u1", "main", RES, S0 },
					 { "u1", "main", RES, S1 },
					 { "u9", "main", RES, S1 } };

	(void)state;
	lose_everything();
	end_pod("web-0#u1");
	kubelet_lists({ "web-0", S0 }, { "web-0", S1 });
	holds_event(
		w.h,
		&(struct holds_event) { .kind = HOLDS_CHECKPOINT, .entries = v, .n = ARRAY_LEN(v) },
		w.now);
	run_pod("web-0#u1"); /* its sandbox */
	assert_null(slot_starts("#u1", S0, true));
	assert_null(slot_starts("#u1", S1, true));
	assert_null(holds_unknown(w.h, 0, NULL));
}

/* The kubelet has given it twice: the one that starts does not run, so the other one's cgroup
 * tells. */
static void
an_unknown_slot_of_two_pods_is_known_when_one_starts_and_the_other_does_not_run(void **state)
{
	const struct holds_entry two[] = { { "u1", "main", RES, S0 }, { "u2", "main", RES, S0 } };

	(void)state;
	lose_everything();
	kubelet_lists({ "web-0", S0 }, { "web-2", S0 });
	holds_event(w.h,
		    &(struct holds_event) {
			    .kind = HOLDS_CHECKPOINT, .entries = two, .n = ARRAY_LEN(two) },
		    w.now);
	run_pod("web-2#u2"); /* its sandbox */
	assert_null(slot_starts("#u2", S0, true));
	tick();
	assert_false(may_give(V1)); /* web-0 runs */
	end_pod("web-0#u1");
	tick();
	assert_true(may_give(V1));
}

static void
an_unknown_slot_of_two_pods_is_the_other_ones_when_its_own_container_starts(void **state)
{
	const struct holds_entry two[] = { { "u1", "main", RES, S0 }, { "u2", "main", RES, S0 } };

	(void)state;
	lose_everything();
	kubelet_lists({ "web-0", S0 }, { "web-2", S0 });
	holds_event(w.h,
		    &(struct holds_event) {
			    .kind = HOLDS_CHECKPOINT, .entries = two, .n = ARRAY_LEN(two) },
		    w.now);
	run_pod("web-2#u2");
	assert_null(slot_starts("web-0#u1", S0, true));
	assert_string_equal(holds_unknown(w.h, 0, NULL), S0);
	assert_false(may_give(V1)); /* web-2 may have it */
	assert_non_null(strstr(w.why, "a pod with the UID u2 has"));
	assert_null(slot_starts("web-0#u1", S0, true));
	assert_false(may_give(V1));
	end_pod("web-2#u2");
	holds_event(w.h,
		    &(struct holds_event) {
			    .kind = HOLDS_SLOT_PROBED, .slot = S0, .cgroup = HOLDS_CGROUP_EMPTY },
		    w.now);
	assert_true(may_give(V1));
}

static void a_pod_that_runs_nothing_does_not_keep_its_slots_unknown(void **state)
{
	(void)state;
	lose_everything();
	end_pod("web-0#u1");
	kubelet_lists({ "web-0", S0 }, { "web-0/other", S1 });
	checkpoint("u1", S0);
	holds_event(w.h,
		    &(struct holds_event) {
			    .kind = HOLDS_SLOT_PROBED, .slot = S0, .cgroup = HOLDS_CGROUP_EMPTY },
		    w.now);
	assert_null(holds_unknown(w.h, 0, NULL));
}

static void two_answers_of_one_moment_do_not_end_an_unknown_slot(void **state)
{
	(void)state;
	lose_everything();
	kubelet_lists({ "web-0", S0 });
	checkpoint("u1", S0);
	kubelet_lists({ "web-1", NULL });
	pass(1);
	answer(NULL, w.now.mono_ms, w.epoch, SAYS({ "web-1", NULL }));
	assert_false(may_give(V1));
	tick();
	kubelet_lists({ "web-1", NULL });
	assert_non_null(holds_unknown(w.h, 0, NULL));
}

static void an_unknown_slot_stays_so_while_cgroups_cannot_be_read(void **state)
{
	(void)state;
	lose_everything();
	kubelet_lists({ "web-0", S0 });
	checkpoint("u1", S0);
	w.cgroups_unreadable = true;
	for (int i = 0; i < 10; i++) {
		kubelet_lists({ "web-1", NULL });
		tick();
	}
	assert_false(may_give(V1));
	w.cgroups_unreadable = false;
	end_pod("web-0#u1");
	tick();
	assert_true(may_give(V1));
}

static void an_unknown_slot_of_a_pod_without_uid_is_forgotten_after_ten_minutes(void **state)
{
	(void)state;
	lose_everything();
	kubelet_lists({ "web-0", S0 });
	end_pod("web-0#u1");
	for (int64_t ms = 0; ms < 590000; ms += 2000) {
		kubelet_lists({ "web-1", NULL });
		tick();
	}
	assert_false(may_give(V1));
	for (int64_t ms = 0; ms < 20000; ms += 2000) {
		kubelet_lists({ "web-1", NULL });
		tick();
	}
	assert_true(may_give(V1));
}

static void what_another_pod_has_of_an_unknown_slot_is_no_sign_of_life(void **state)
{
	(void)state;
	lose_everything();
	kubelet_lists({ "web-0", S0 });
	checkpoint("u1", S0);
	kubelet_lists({ "web-1", S0 });
	kubelet_lists({ "web-1", S0 });
	end_pod("web-0#u1");
	tick();
	assert_null(holds_unknown(w.h, 0, NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_slot_is_promised_until_a_vf_is_bound_to_it),
		TEST(a_promise_is_forgotten_when_a_list_that_was_asked_for_later_lacks_it),
		TEST(a_slot_that_a_container_got_before_we_started_is_told),
		TEST(a_binding_that_came_to_nothing_is_taken_back),
		TEST(a_container_that_starts_again_keeps_its_vf),
		TEST(a_decision_that_came_to_nothing_is_forgotten),
		TEST(a_vf_that_is_bound_again_keeps_its_number_and_its_owner),
		TEST(a_vf_that_is_not_usable_is_left_for_another_one),
		TEST(a_vf_that_was_left_for_another_one_is_free_after_a_restart),
		TEST(a_vf_that_was_left_for_another_one_is_free_when_the_pod_has_ended),
		TEST(a_slot_that_was_given_away_leaves_its_vf_with_the_first_container),
		TEST(a_slot_is_the_first_containers_again_when_the_second_one_is_gone),
		TEST(a_pod_of_the_same_name_and_another_uid_gets_another_vf),
		TEST(a_container_waits_while_another_of_its_slot_may_not_be_created_yet),
		TEST(a_look_at_the_cgroup_of_a_former_holder_does_not_end_the_wait),
		TEST(a_second_container_of_the_pod_waits_and_gets_a_vf_of_its_own),
		TEST(a_slot_that_two_containers_have_on_record_waits_while_its_vf_is_open),
		TEST(no_container_keeps_the_vf_of_its_slot_before_all_records_were_read),
		TEST(a_container_does_not_wait_for_one_that_was_refused_after_it_was_told),
		TEST(a_container_that_an_early_pool_refuses_is_not_created),
		TEST(a_container_does_not_wait_for_a_pod_that_has_ended),
		TEST(without_uids_a_name_keeps_its_vf_unless_the_slot_was_given_since),
		TEST(a_container_whose_slot_was_given_away_keeps_its_vf_with_another_slot),
		TEST(a_container_without_a_uid_does_not_keep_what_has_lost_its_slot),
		TEST(a_slot_waits_while_its_holder_has_but_a_uid_and_the_container_but_a_name),
		TEST(a_slot_is_kept_by_a_uid_alone_if_the_kubelet_says_that_it_is_the_holder),
		TEST(a_slot_that_was_unknown_was_not_given_to_another_container),
		TEST(what_drains_loses_its_slot_to_the_next_container),
		TEST(a_slot_of_another_pod_is_no_sign_of_life_and_none_of_death),
		TEST(a_vf_that_only_an_init_container_had_stays_quiet_late_too),
		TEST(a_hold_with_a_uid_and_no_name_is_not_missed),
		TEST(a_promise_is_not_forgotten_by_a_list_that_is_older),
		TEST(an_idle_vf_that_is_not_held_may_be_given),
		TEST(a_vf_of_a_container_is_given_only_when_that_one_is_gone),
		TEST(nothing_is_given_before_the_kubelet_has_shown_its_pods),
		TEST(while_the_vf_of_a_slot_is_unknown_none_of_its_resource_is_given),
		TEST(a_slot_is_known_again_when_its_container_starts_again),
		TEST(an_unknown_slot_is_forgotten_when_its_pod_is_missed_twice_and_runs_no_more),
		TEST(an_unknown_slot_does_not_get_the_uid_of_the_next_pod),
		TEST(an_unknown_slot_of_two_containers_is_not_known_when_the_other_one_starts),
		TEST(the_slots_of_a_container_are_known_when_its_init_container_starts),
		TEST(the_slot_of_another_container_stays_unknown_when_an_init_container_starts),
		TEST(a_slot_is_known_when_its_pod_is_called_for_and_runs_but_a_sandbox),
		TEST(a_slot_stays_unknown_when_a_container_ran_meanwhile),
		TEST(a_slot_stays_unknown_when_no_container_of_its_pod_is_called_for),
		TEST(a_slot_that_two_pods_have_on_record_is_that_of_the_pod_of_its_name),
		TEST(an_unknown_slot_of_two_pods_is_known_when_one_starts_and_the_other_does_not_run),
		TEST(an_unknown_slot_of_two_pods_is_the_other_ones_when_its_own_container_starts),
		TEST(a_pod_that_runs_nothing_does_not_keep_its_slots_unknown),
		TEST(two_answers_of_one_moment_do_not_end_an_unknown_slot),
		TEST(an_unknown_slot_stays_so_while_cgroups_cannot_be_read),
		TEST(an_unknown_slot_of_a_pod_without_uid_is_forgotten_after_ten_minutes),
		TEST(what_another_pod_has_of_an_unknown_slot_is_no_sign_of_life),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
