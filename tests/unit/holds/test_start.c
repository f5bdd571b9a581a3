/* Early binding: what Allocate gave, whose it is, and whether a container may start with it. */
#include "unit/holds/world.h"

static void what_allocate_gave_is_pending_until_its_container_starts(void **state)
{
	uint64_t number = allocate("web-0", V0);

	(void)state;
	assert_true(hold_of(V0)->pending);
	run_pod("web-0#u1");
	assert_true(starts_by("web-0#u1", V0, number, false));
	assert_false(hold_of(V0)->pending);
	assert_true(is_held_by(V0, "web-0#u1"));
	assert_int_equal(hold_of(V0)->decision, number);
}

static enum holds_whose whose(const char *vf, const char *pod)
{
	const struct ledger_owner asks = who(pod);

	return holds_whose(w.h, vf, &asks);
}

static void whose_a_vf_is_is_told_by_the_uid_and_else_by_the_name(void **state)
{
	(void)state;
	assert_int_equal(whose(V0, "web-0#u1"), HOLDS_OF_NOBODY);
	allocate("", V0);
	assert_int_equal(whose(V0, "web-0#u1"), HOLDS_OF_UNKNOWN);
	allocate("web-0", V1); /* its UID is not known yet */
	assert_int_equal(whose(V1, "web-0#u1"), HOLDS_OF_POD);
	assert_int_equal(whose(V1, "web-1#u1"), HOLDS_OF_ANOTHER);
	begin_pod("web-0#u1", V2);
	assert_int_equal(whose(V2, "web-0#u1"), HOLDS_OF_POD);
	assert_int_equal(whose(V2, "web-0"), HOLDS_OF_POD);
	assert_int_equal(whose(V2, "#u1"), HOLDS_OF_POD);
	assert_int_equal(whose(V2, "web-0#u2"), HOLDS_OF_ANOTHER); /* it came back */
	assert_int_equal(whose(V2, "#u2"), HOLDS_OF_ANOTHER);
	assert_int_equal(whose(V2, ""), HOLDS_OF_ANOTHER);
	begin_pod("#u3", V3); /* an init container */
	assert_int_equal(whose(V3, "web-0#u3"), HOLDS_OF_POD);
	assert_int_equal(whose(V3, "web-0"), HOLDS_OF_ANOTHER);
}

static void vfs_that_pass_to_another_container_look_the_same_to_the_kubelet(void **state)
{
	const struct ledger_owner nobody = { .pod = NULL };
	const struct holds_vf vfs[] = { vf_of(V0), vf_of(V1) };

	(void)state;
	allocate("", V0);
	allocate("", V1);
	w.relists = w.said = 0;
	holds_event(w.h,
		    &(struct holds_event) { .kind = HOLDS_ALLOCATED,
					    .given = vfs,
					    .n = 2,
					    .owner = &nobody,
					    .number = decide("", V0) },
		    w.now);
	settle();
	assert_int_equal(w.relists, 0);
	assert_int_equal(w.said, 1);
	assert_true(says("reason=\"the kubelet has given what it held to another container\" vf=" V0
			 "," V1));
}

static void a_container_starts_with_what_its_own_decision_took_even_if_its_pod_uses_it(void **state)
{
	uint64_t number = allocate("web-0#u1", V0);

	(void)state;
	run_pod("web-0#u1");
	w.away = V0; /* its CNI plugin has moved it */
	assert_true(starts_by("web-0#u1", V0, number, false));
}

static void a_container_of_the_same_pod_starts_again(void **state)
{
	(void)state;
	begin_pod("web-0#u1", V0);
	w.open = V0;
	assert_true(starts("web-0#u1", V0));
	assert_true(is_held_by(V0, "web-0#u1"));
	restart(copy_of_ledger());
	records_read();
	assert_true(starts("web-0#u1", V0));
}

static void a_vf_of_a_pending_hold_passes_to_the_container_that_the_kubelet_names(void **state)
{
	(void)state;
	allocate("web-0", V0); /* inferred */
	kubelet_lists({ "web-1", V0 });
	assert_true(is_held_by(V0, "web-1"));
	assert_true(hold_of(V0)->pending);
	assert_true(starts("web-1#u2", V0));
	assert_true(is_held_by(V0, "web-1#u2"));
}

static void a_pending_hold_ends_when_the_kubelet_does_not_show_its_pod(void **state)
{
	(void)state;
	allocate("web-0", V0);
	kubelet_lists({ "web-1", V1 });
	assert_null(hold_of(V0));
}

static void a_pending_hold_of_a_vf_in_use_stays(void **state)
{
	(void)state;
	allocate("web-0", V0);
	w.open = V0;
	kubelet_lists({ "web-1", V1 });
	assert_non_null(hold_of(V0));
}

/* --- the container before has not gone --- */

static void a_vf_of_another_pod_is_not_given_while_that_one_is_shown(void **state)
{
	(void)state;
	begin_pod("web-0#u1", V0);
	kubelet_lists({ "web-0", V0 });
	allocate("web-1#u2", V0);
	assert_true(is_held_by(V0, "web-0#u1"));
	assert_true(says("the kubelet has given the VF to another container"));
	assert_false(starts("web-1#u2", V0));
	assert_non_null(strstr(
		w.why,
		"VF " V0
		" is held by container main of pod default/web-0 (UID u1): containers of its pod still run"));
	end_pod("web-0#u1");
	assert_true(starts("web-1#u2", V0));
	assert_true(is_held_by(V0, "web-1#u2"));
}

static void a_pod_that_waits_for_a_vf_gets_it_when_it_is_idle(void **state)
{
	(void)state;
	begin_pod("web-0#u1", V0);
	kubelet_lists({ "web-0", V0 });
	w.open = V0;
	end_pod("web-0#u1");
	allocate("web-1#u2", V0);
	assert_false(starts("web-1#u2", V0));
	assert_non_null(strstr(w.why, "is open"));
	w.open = NULL;
	assert_true(starts("web-1#u2", V0));
}

static void that_a_vf_is_away_says_nothing_where_a_cni_plugin_moves_it(void **state)
{
	(void)state;
	w.away = V0;
	assert_false(starts("web-0#u1", V0));
	assert_true(starts_by("web-0#u1", V0, 0, true));
}

static void with_several_vfs_all_or_none_is_taken(void **state)
{
	struct holds_vf v[2];
	struct ledger_owner o = who("web-1#u2");

	(void)state;
	begin_pod("web-0#u1", V1);
	v[0] = vf_of(V0);
	v[1] = vf_of(V1);
	assert_false(holds_start(w.h, v, 2, &o, 0, false, w.now, w.a, &w.why));
	settle();
	assert_null(hold_of(V0));
	assert_true(is_held_by(V1, "web-0#u1"));
	end_pod("web-0#u1");
	v[1] = vf_of(V1);
	assert_true(holds_start(w.h, v, 2, &o, 0, false, w.now, w.a, &w.why));
	assert_true(is_held_by(V0, "web-1#u2"));
	assert_true(is_held_by(V1, "web-1#u2"));
}

/* --- names and UIDs --- */

static void a_pod_of_the_same_name_and_another_uid_waits_for_the_first(void **state)
{
	(void)state;
	begin_pod("web-0#u1", V0);
	kubelet_lists({ "web-0", V0 });
	allocate("web-0#u2", V0);
	run_pod("web-0#u2");
	assert_false(starts("web-0#u2", V0));
	assert_true(is_held_by(V0, "web-0#u1"));
	end_pod("web-0#u1");
	assert_true(starts("web-0#u2", V0));
	assert_true(is_held_by(V0, "web-0#u2"));
}

static void without_uids_the_same_name_starts_again_only_with_an_idle_vf(void **state)
{
	uint64_t number = allocate("web-0", V0);

	(void)state;
	assert_true(starts_by("web-0", V0, number, false));
	w.open = V0;
	assert_false(starts("web-0", V0));
	w.open = NULL;
	assert_true(starts("web-0", V0));
}

static void a_container_without_name_starts_with_an_idle_vf_that_keeps_its_owner(void **state)
{
	(void)state;
	begin_pod("web-0#u1", V0);
	end_pod("web-0#u1"); /* its container ends, and starts again */
	assert_true(starts("", V0));
	assert_true(is_held_by(V0, "web-0#u1"));
	w.open = V0;
	assert_false(starts("", V0));
}

/* One is known by its name alone, the other (an init container, which no list shows) by its UID
 * alone: nothing says that they are one. */
static void a_name_and_a_uid_are_not_the_same_pod(void **state)
{
	uint64_t number = allocate("web-0", V0);

	(void)state;
	assert_true(starts_by("web-0", V0, number, false));
	kubelet_lists({ "web-0", V0 });
	run_pod("#u9");
	assert_false(starts("#u9", V0));
	assert_true(is_held_by(V0, "web-0"));
	for (int64_t ms = 0; ms < 610000; ms += 2000)
		kubelet_lists({ "web-1", NULL });
	assert_true(starts("#u9", V0));
}

static void the_checkpoint_names_the_pod_of_a_hold(void **state)
{
	uint64_t number = allocate("web-0", V0);

	(void)state;
	run_pod("web-0#u1");
	assert_true(starts_by("web-0", V0, number, false));
	checkpoint("u1", V0);
	assert_true(is_held_by(V0, "web-0#u1"));
	checkpoint("u2", V0); /* the id was given away: the hold is whose it was */
	assert_true(is_held_by(V0, "web-0#u1"));
	assert_string_equal(hold_of(V0)->owner.uid, "u1");
	assert_null(hold_of(V1));
}

/* Of an id that was just given it has the pod before, for a moment; and the start cannot read it.
 */
static void the_checkpoint_of_the_moment_of_allocate_names_no_pod(void **state)
{
	uint64_t number;

	(void)state;
	number = allocate("web-0", V0);
	checkpoint("u9", V0);
	assert_string_equal(hold_of(V0)->owner.uid, "");
	assert_true(starts_by("web-0", V0, number, false));
	assert_string_equal(hold_of(V0)->owner.uid, "");
}

/* PodResources was silent when its container started: only its UID is known. */
static void a_hold_without_a_name_does_not_get_that_of_the_next_pod(void **state)
{
	uint64_t number = allocate("", V0);

	(void)state;
	run_pod("#u1");
	assert_true(starts_by("#u1", V0, number, false));
	allocate("web-1", V0);
	kubelet_lists({ "web-1", V0 });
	assert_string_equal(hold_of(V0)->owner.uid, "u1");
	assert_string_equal(hold_of(V0)->owner.pod, "");
	assert_false(starts("web-1#u2", V0));
	end_pod("#u1");
	assert_true(starts("web-1#u2", V0));
}

/* That its first pod was web-0 was inferred; before it started the kubelet gave its VF again. */
static void a_vf_that_was_given_again_does_not_start_as_that_of_the_pod_before(void **state)
{
	uint64_t number;

	(void)state;
	allocate("web-0", V0);
	restart(copy_of_ledger());
	number = allocate("web-1", V0); /* not taken over: records may know better */
	records_read();
	assert_true(is_held_by(V0, "web-0"));
	assert_true(starts_by("", V0, number, false));
	assert_string_equal(hold_of(V0)->owner.pod, "");
	kubelet_lists({ "web-1", V0 });
	assert_true(is_held_by(V0, "web-1"));
}

/* As above, and the kubelet has given the id to a pod before that, too. */
static void a_hold_without_a_name_does_not_get_that_of_one_of_two_pods(void **state)
{
	uint64_t number = allocate("", V0);

	(void)state;
	run_pod("#u1");
	assert_true(starts_by("#u1", V0, number, false));
	kubelet_lists({ "web-0", V0 }, { "web-1", V0 });
	assert_string_equal(hold_of(V0)->owner.pod, "");
	kubelet_lists({ "web-1", V0 });
	assert_true(is_held_by(V0, "web-1#u1"));
	kubelet_lists({ "web-1", V0 });
	assert_false(is_draining(V0));
}

/* Its init container, which List does not show, starts after the id was given to another pod. */
static void a_hold_without_a_name_does_not_get_that_of_the_other_pod_in_the_checkpoint(void **state)
{
	const struct holds_entry two[] = { { "u1", "init", RES, V0 }, { "u2", "main", RES, V0 } };
	uint64_t number;

	(void)state;
	allocate("web-1", V0);
	number = allocate("web-2", V0);
	run_pod("#u1");
	holds_event(w.h, &(struct holds_event) { .kind = HOLDS_CHECKPOINT, .entries = two, .n = 2 },
		    w.now);
	assert_true(starts_by("#u1", V0, number, false));
	kubelet_lists({ "web-1", NULL }, { "web-2", V0 });
	assert_string_equal(hold_of(V0)->owner.pod, "");
	assert_string_equal(hold_of(V0)->owner.uid, "u1");
}

static void a_hold_without_a_name_does_not_get_that_of_the_next_pod_after_a_restart(void **state)
{
	uint64_t number = allocate("", V0);

	(void)state;
	run_pod("#u1");
	assert_true(starts_by("#u1", V0, number, false));
	allocate("web-1", V0);
	restart(copy_of_ledger());
	records_read();
	end_pod("#u1");
	kubelet_lists({ "web-1", V0 });
	assert_string_equal(hold_of(V0)->owner.pod, "");
	assert_true(starts("web-1", V0)); /* while the checkpoint cannot be read */
	assert_string_equal(hold_of(V0)->owner.pod, "web-1");
	assert_string_equal(hold_of(V0)->owner.uid, "");
}

static void a_hold_without_a_name_gets_that_of_the_only_pod_after_a_restart(void **state)
{
	uint64_t number = allocate("", V0);

	(void)state;
	run_pod("#u1");
	assert_true(starts_by("#u1", V0, number, false));
	restart(copy_of_ledger());
	records_read();
	checkpoint("u1", V0);
	kubelet_lists({ "web-0", V0 });
	assert_true(is_held_by(V0, "web-0#u1"));
}

static void the_checkpoint_names_a_hold_whose_container_does_not_start_yet(void **state)
{
	(void)state;
	allocate("web-0", V0);
	pass(2000);
	checkpoint("u1", V0);
	assert_string_equal(hold_of(V0)->owner.uid, "u1");
}

static void the_checkpoint_does_not_name_the_pod_that_came_after_a_started_hold(void **state)
{
	uint64_t number = allocate("web-0", V0);

	(void)state;
	assert_true(starts_by("web-0", V0, number, false));
	allocate("web-1", V0);
	checkpoint("u2", V0);
	assert_true(is_held_by(V0, "web-0"));
	assert_string_equal(hold_of(V0)->owner.uid, "");
}

/* Its checkpoint has forgotten the first pod, whose containers live on. */
static void
nor_does_that_of_another_kubelet_name_the_pod_that_came_after_a_started_hold(void **state)
{
	uint64_t number = allocate("web-0", V0);

	(void)state;
	assert_true(starts_by("web-0", V0, number, false));
	kubelet_lists({ "web-0", V0 });
	allocate("web-1", V0);
	new_kubelet();
	checkpoint("u2", V0);
	assert_true(is_held_by(V0, "web-0"));
	assert_string_equal(hold_of(V0)->owner.uid, "");
	assert_false(starts("web-1#u2", V0));
}

/* A List shows the first pod's name, and means the second one. */
static void nor_the_pod_of_the_same_name_that_came_after_a_started_hold(void **state)
{
	uint64_t number = allocate("web-0", V0);

	(void)state;
	assert_true(starts_by("web-0", V0, number, false));
	allocate("web-0#u2", V0);
	kubelet_lists({ "web-0", V0 });
	checkpoint("u2", V0);
	assert_string_equal(hold_of(V0)->owner.uid, "");
}

/* The Allocate of web-1 is forgotten: the newest decision that is known gave the same VF to another
 * pod. */
static void a_hold_does_not_go_on_as_that_of_another_pod(void **state)
{
	uint64_t number = allocate("web-0", V0);

	(void)state;
	run_pod("web-0#u1");
	assert_true(starts_by("web-0#u1", V0, number, false));
	kubelet_lists({ "web-0", V0 });
	end_pod("web-0#u1");
	run_pod("web-1#u2");
	assert_true(starts_by("web-1#u2", V0, number, false));
	assert_true(hold_of(V0)->decision > number);
}

/* Allocate was answered while another pod had the VF still: a ledger of that moment knows the
 * number, and no hold with it. */
static void a_hold_that_begins_later_than_its_decision_has_a_number_of_its_own(void **state)
{
	uint64_t decided, number;
	struct ledger *between;

	(void)state;
	begin_pod("web-0#u1", V0);
	kubelet_lists({ "web-0", V0 });
	decided = allocate("web-1#u2", V0);
	end_pod("web-0#u1");
	kubelet_lists({ "web-1", NULL });
	assert_null(hold_of(V0));
	between = copy_of_ledger();
	run_pod("web-1#u2");
	assert_true(starts_by("web-1#u2", V0, decided, false));
	number = hold_of(V0)->decision;
	assert_true(number > decided);
	assert_int_equal(ledger_decision(holds_ledger(w.h), number)->n_chosen, 1);
	restart(between);
	claim("web-1#u2", NULL, V0, number);
	records_read();
	assert_true(is_held_by(V0, "web-1#u2"));
}

/* The disk hangs, so the newest decision by which its VF was given is that of the pod before. */
static void a_container_without_a_uid_does_not_go_on_with_the_number_of_the_one_before(void **state)
{
	uint64_t number = allocate("web-0#u1", V0);
	struct ledger *old;

	(void)state;
	run_pod("web-0#u1");
	assert_true(starts_by("web-0#u1", V0, number, false));
	old = copy_of_ledger();
	allocate("web-1", V0);
	restart(copy_of_ledger());
	records_read();
	end_pod("web-0#u1");
	assert_true(starts_by("web-1", V0, number, false));
	assert_true(hold_of(V0)->decision > number);
	number = hold_of(V0)->decision;
	restart(old);
	claim("web-1", NULL, V0, number);
	records_read();
	assert_true(is_held_by(V0, "web-1"));
}

static void after_a_restart_the_checkpoint_names_no_started_hold(void **state)
{
	uint64_t number = allocate("web-0", V0);

	(void)state;
	assert_true(starts_by("web-0", V0, number, false));
	restart(copy_of_ledger());
	records_read();
	checkpoint("u2", V0); /* may be the pod that came while we were down */
	assert_string_equal(hold_of(V0)->owner.uid, "");
}

/* Of an older version, or rebuilt from what the kubelet shows: nobody has said that another pod has
 * the id.
 */
static void after_a_restart_the_container_of_a_hold_without_a_uid_starts_again(void **state)
{
	uint64_t number = allocate("web-0", V0);

	(void)state;
	assert_true(starts_by("web-0", V0, number, false));
	restart(copy_of_ledger());
	records_read();
	kubelet_lists({ "web-0", V0 });
	checkpoint("u1", V0);
	w.open = V0;
	assert_false(starts("web-0#u1", V0));
	w.open = NULL;
	assert_true(starts("web-0#u1", V0));
	assert_true(is_held_by(V0, "web-0#u1"));
}

/* Its pod starts anew, as after a reboot, with an init container, which no List shows. */
static void a_uid_alone_is_the_pod_that_the_kubelet_shows_if_no_other_one_has_the_id(void **state)
{
	const struct holds_entry two[] = { { "u1", "main", RES, V0 }, { "u2", "main", RES, V0 } };
	uint64_t number = allocate("web-0", V0);

	(void)state;
	assert_true(starts_by("web-0", V0, number, false));
	restart(copy_of_ledger());
	records_read();
	checkpoint("u1", V0);
	assert_false(starts("#u1", V0)); /* the kubelet has not shown web-0 yet */
	kubelet_lists({ "web-0", V0 });
	assert_false(starts("#u2", V0));
	kubelet_lists({ "web-0", V0 });
	holds_event(w.h, &(struct holds_event) { .kind = HOLDS_CHECKPOINT, .entries = two, .n = 2 },
		    w.now);
	assert_false(starts("#u1", V0));
	kubelet_lists({ "web-0", V0 });
	checkpoint("u1", V0);
	w.open = V0;
	assert_false(starts("#u1", V0));
	w.open = NULL;
	assert_true(starts("#u1", V0));
	assert_string_equal(hold_of(V0)->owner.uid, "u1");
}

/* A pod of the same name came after it was deleted by force, and the checkpoint cannot be read. */
static void once_its_id_was_given_again_a_name_alone_does_not_take_a_vf_from_a_uid(void **state)
{
	uint64_t number;

	(void)state;
	begin_pod("web-0#u1", V0);
	number = allocate("web-0", V0);
	kubelet_lists({ "web-0", V0 });
	assert_false(starts_by("web-0", V0, number, false));
	assert_true(is_held_by(V0, "web-0#u1"));
	end_pod("web-0#u1");
	assert_true(starts_by("web-0#u2", V0, number, false));
}

/* All records are lost, and the kubelet gives one id to two pods: neither may wait for the other
 * for ever. */
static void of_two_pods_with_one_id_the_one_that_starts_tells_who_the_other_is(void **state)
{
	const struct holds_entry two[] = { { "u1", "main", RES, V0 }, { "u2", "main", RES, V0 } };

	(void)state;
	restart(NULL);
	records_read();
	kubelet_lists({ "job-1", V0 }, { "web-2", V0 });
	assert_true(is_held_by(V0, "job-1"));
	run_pod("web-2#u2");
	run_pod("job-1#u1");
	holds_event(w.h, &(struct holds_event) { .kind = HOLDS_CHECKPOINT, .entries = two, .n = 2 },
		    w.now);
	assert_false(starts("web-2#u2", V0)); /* it may run */
	assert_true(is_held_by(V0, "job-1#u1"));
	assert_false(starts("web-2#u2", V0));
	end_pod("job-1#u1");
	tick();
	assert_true(starts("web-2#u2", V0));
	assert_true(is_held_by(V0, "web-2#u2"));
}

/* As above; List does not show that it is the init container of the pod that it shows. */
static void of_two_pods_with_one_id_an_init_container_waits_for_the_other_one_only(void **state)
{
	const struct holds_entry two[] = { { "u1", "main", RES, V0 }, { "u2", "init", RES, V0 } };

	(void)state;
	restart(NULL);
	records_read();
	kubelet_lists({ "web-2", V0 });
	run_pod("#u1");
	run_pod("web-2#u2");
	holds_event(w.h, &(struct holds_event) { .kind = HOLDS_CHECKPOINT, .entries = two, .n = 2 },
		    w.now);
	assert_false(starts("#u2", V0)); /* web-2 may be u1 */
	assert_false(starts("#u2", V0));
	end_pod("#u1");
	tick();
	assert_true(starts("#u2", V0));
	assert_string_equal(hold_of(V0)->owner.uid, "u2");
}

static void an_id_of_two_pods_has_no_uid(void **state)
{
	const struct holds_entry two[] = { { "u1", "main", RES, V0 }, { "u2", "main", RES, V0 } };
	const struct holds_entry same[] = { { "u1", "a", RES, V0 }, { "u1", "b", RES, V0 } };
	const char *const id = V0;

	(void)state;
	assert_string_equal(holds_checkpoint_uid(two, 2, RES, &id, 1), "");
	assert_string_equal(holds_checkpoint_uid(same, 2, RES, &id, 1), "u1");
	assert_string_equal(holds_checkpoint_uid(same, 2, "rdma/other", &id, 1), "");
	assert_string_equal(holds_checkpoint_uid(NULL, 0, RES, &id, 1), "");
}

/* --- two containers of one pod --- */

/* The reservation of the first one was lost, and the kubelet gave its id to the second one. */
static void begin_two(void)
{
	uint64_t a = allocate("web-0#u1/a", V0);

	allocate("web-0#u1/b", V0);
	run_pod("web-0#u1");
	assert_true(starts_by("web-0#u1/a", V0, a, false));
	assert_string_equal(hold_of(V0)->owner.container, "a");
}

static void two_containers_of_one_pod_do_not_start_with_one_vf(void **state)
{
	(void)state;
	begin_two();
	for (int i = 0; i < 2; i++) {
		kubelet_lists({ "web-0/b", V0 }, { "web-0/a", V0 });
		assert_string_equal(hold_of(V0)->owner.container, "a");
		assert_false(starts("web-0#u1/b", V0)); /* the first one has not opened it yet */
		assert_non_null(strstr(
			w.why,
			"VF " V0
			" is held by container a of pod default/web-0 (UID u1): the kubelet has given it to another container of the pod as well"));
		assert_false(starts("#u1", V0));
		allocate("web-0#u1/b", V0);
	}
	assert_true(starts("web-0#u1/a", V0)); /* again */
	restart(copy_of_ledger());
	records_read();
	kubelet_lists({ "web-0/b", V0 }, { "web-0/a", V0 });
	assert_false(starts("web-0#u1/b", V0));
	end_pod("web-0#u1");
	kubelet_lists({ "web-1", NULL });
	assert_null(hold_of(V0));
}

/* An ordinary init container started with it, and leaves it to the next one. */
static void a_container_that_was_inferred_wrongly_has_no_other_beside_it(void **state)
{
	uint64_t number = allocate("web-0/a", V0);

	(void)state;
	kubelet_lists({ "web-0/a", NULL }, { "web-0/b", V0 });
	run_pod("web-0#u1");
	assert_true(starts_by("web-0#u1/setup", V0, number, false));
	kubelet_lists({ "web-0/a", NULL }, { "web-0/b", V0 });
	assert_true(starts("web-0#u1/b", V0));
	assert_string_equal(hold_of(V0)->owner.container, "b");
}

static void without_uids_two_containers_of_one_pod_do_not_start_with_one_vf_either(void **state)
{
	uint64_t number = allocate("web-0/a", V0);

	(void)state;
	assert_true(starts_by("web-0/a", V0, number, false));
	kubelet_lists({ "web-0/a", V0 }, { "web-0/b", V0 });
	assert_false(starts("web-0/b", V0));
	assert_true(starts("web-0/a", V0));
}

/* The kubelet has lost what the first one has, which it shows. */
static void a_container_does_not_start_with_the_vf_of_one_that_is_shown_without_it(void **state)
{
	(void)state;
	begin_two();
	kubelet_lists({ "web-0/a", NULL }, { "web-0/b", V0 });
	assert_false(starts("web-0#u1/b", V0));
	assert_string_equal(hold_of(V0)->owner.container, "a");
}

static void a_vf_that_another_container_of_the_pod_has_open_is_not_taken(void **state)
{
	(void)state;
	begin_two();
	w.open = V0;
	assert_false(starts("web-0#u1/b", V0));
	assert_non_null(strstr(w.why, "held by container a of pod default/web-0"));
	assert_non_null(strstr(w.why, "is open"));
	assert_true(starts("web-0#u1/a", V0));
	w.open = NULL;
	assert_true(starts("web-0#u1/b", V0)); /* the first one was an ordinary init container */
}

/* Which of them starts is not known: one that restarts has nothing open. */
static void a_vf_that_two_containers_have_on_record_is_not_taken_while_it_is_open(void **state)
{
	const struct holds_entry v[] = { { "u1", "a", RES, V0 }, { "u1", "b", RES, V0 } };

	(void)state;
	begin_two();
	holds_event(
		w.h,
		&(struct holds_event) { .kind = HOLDS_CHECKPOINT, .entries = v, .n = ARRAY_LEN(v) },
		w.now);
	w.open = V0;
	assert_false(starts("#u1", V0));
	w.open = NULL;
	assert_true(starts("#u1", V0));
}

static void containers_of_one_pod_start_again_each_with_its_own(void **state)
{
	(void)state;
	begin_pod("web-0#u1/sidecar", V0);
	begin_pod("web-0#u1/setup", V1);
	begin_pod("web-0#u1", V1);
	kubelet_lists({ "web-0/sidecar", V0 }, { "web-0", V1 });
	w.open = V0;
	assert_true(starts("web-0#u1", V1));
	assert_true(starts("#u1", V1)); /* the sandbox is made anew */
	assert_true(starts("web-0#u1", V1));
	w.open = V1;
	assert_true(starts("web-0#u1/sidecar", V0));
	assert_true(starts("web-0#u1", V1));
}

static void an_init_container_and_the_main_one_share_a_vf(void **state)
{
	(void)state;
	begin_pod("web-0#u1/init", V0);
	allocate("web-0#u1", V0);
	assert_true(starts("web-0#u1", V0));
	assert_true(is_held_by(V0, "web-0#u1"));
	assert_string_equal(hold_of(V0)->owner.container, "main");
}

/* --- GetPreferredAllocation --- */

static void what_the_kubelet_offers_is_looked_at_and_freed_if_its_pod_has_ended(void **state)
{
	const char *offered[] = { V0, V1 };

	(void)state;
	begin_pod("web-0#u1", V0);
	begin_pod("web-1#u2", V1);
	end_pod("web-0#u1");
	holds_event(w.h, &(struct holds_event) { .kind = HOLDS_OFFERED, .vfs = offered, .n = 2 },
		    w.now);
	settle();
	assert_null(hold_of(V0));
	assert_true(is_held_by(V1, "web-1#u2"));
}

static void an_offer_says_nothing_of_a_pod_that_the_kubelet_shows(void **state)
{
	const char *offered[] = { V0 };

	(void)state;
	begin_pod("web-0#u1", V0);
	kubelet_lists({ "web-0", V0 });
	end_pod("web-0#u1");
	holds_event(w.h, &(struct holds_event) { .kind = HOLDS_OFFERED, .vfs = offered, .n = 1 },
		    w.now);
	settle();
	assert_non_null(hold_of(V0));
}

/* --- before the records are read --- */

static void no_container_starts_before_the_records_were_read(void **state)
{
	uint64_t number;

	(void)state;
	restart(ledger_new());
	number = allocate("web-0#u1", V0);
	assert_false(starts_by("web-0#u1", V0, number, false));
	assert_non_null(strstr(w.why, "were not read yet"));
	holds_event(w.h, &(struct holds_event) { .kind = HOLDS_CLAIMS_READ, .complete = false },
		    w.now);
	assert_false(starts_by("web-0#u1", V0, number, false));
	records_read();
	assert_true(starts_by("web-0#u1", V0, number, false));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_allocate_gave_is_pending_until_its_container_starts),
		TEST(whose_a_vf_is_is_told_by_the_uid_and_else_by_the_name),
		TEST(vfs_that_pass_to_another_container_look_the_same_to_the_kubelet),
		TEST(a_container_starts_with_what_its_own_decision_took_even_if_its_pod_uses_it),
		TEST(a_container_of_the_same_pod_starts_again),
		TEST(a_vf_of_a_pending_hold_passes_to_the_container_that_the_kubelet_names),
		TEST(a_pending_hold_ends_when_the_kubelet_does_not_show_its_pod),
		TEST(a_pending_hold_of_a_vf_in_use_stays),
		TEST(a_vf_of_another_pod_is_not_given_while_that_one_is_shown),
		TEST(a_pod_that_waits_for_a_vf_gets_it_when_it_is_idle),
		TEST(that_a_vf_is_away_says_nothing_where_a_cni_plugin_moves_it),
		TEST(with_several_vfs_all_or_none_is_taken),
		TEST(a_pod_of_the_same_name_and_another_uid_waits_for_the_first),
		TEST(without_uids_the_same_name_starts_again_only_with_an_idle_vf),
		TEST(a_container_without_name_starts_with_an_idle_vf_that_keeps_its_owner),
		TEST(a_name_and_a_uid_are_not_the_same_pod),
		TEST(the_checkpoint_names_the_pod_of_a_hold),
		TEST(a_hold_without_a_name_does_not_get_that_of_the_next_pod),
		TEST(a_hold_without_a_name_does_not_get_that_of_the_other_pod_in_the_checkpoint),
		TEST(a_hold_without_a_name_does_not_get_that_of_the_next_pod_after_a_restart),
		TEST(a_hold_without_a_name_gets_that_of_the_only_pod_after_a_restart),
		TEST(the_checkpoint_of_the_moment_of_allocate_names_no_pod),
		TEST(a_hold_without_a_name_does_not_get_that_of_one_of_two_pods),
		TEST(a_vf_that_was_given_again_does_not_start_as_that_of_the_pod_before),
		TEST(the_checkpoint_names_a_hold_whose_container_does_not_start_yet),
		TEST(the_checkpoint_does_not_name_the_pod_that_came_after_a_started_hold),
		TEST(nor_does_that_of_another_kubelet_name_the_pod_that_came_after_a_started_hold),
		TEST(nor_the_pod_of_the_same_name_that_came_after_a_started_hold),
		TEST(a_hold_does_not_go_on_as_that_of_another_pod),
		TEST(a_hold_that_begins_later_than_its_decision_has_a_number_of_its_own),
		TEST(a_container_without_a_uid_does_not_go_on_with_the_number_of_the_one_before),
		TEST(after_a_restart_the_checkpoint_names_no_started_hold),
		TEST(after_a_restart_the_container_of_a_hold_without_a_uid_starts_again),
		TEST(a_uid_alone_is_the_pod_that_the_kubelet_shows_if_no_other_one_has_the_id),
		TEST(once_its_id_was_given_again_a_name_alone_does_not_take_a_vf_from_a_uid),
		TEST(of_two_pods_with_one_id_the_one_that_starts_tells_who_the_other_is),
		TEST(of_two_pods_with_one_id_an_init_container_waits_for_the_other_one_only),
		TEST(an_id_of_two_pods_has_no_uid),
		TEST(two_containers_of_one_pod_do_not_start_with_one_vf),
		TEST(a_container_that_was_inferred_wrongly_has_no_other_beside_it),
		TEST(without_uids_two_containers_of_one_pod_do_not_start_with_one_vf_either),
		TEST(a_container_does_not_start_with_the_vf_of_one_that_is_shown_without_it),
		TEST(a_vf_that_another_container_of_the_pod_has_open_is_not_taken),
		TEST(a_vf_that_two_containers_have_on_record_is_not_taken_while_it_is_open),
		TEST(containers_of_one_pod_start_again_each_with_its_own),
		TEST(an_init_container_and_the_main_one_share_a_vf),
		TEST(what_the_kubelet_offers_is_looked_at_and_freed_if_its_pod_has_ended),
		TEST(an_offer_says_nothing_of_a_pod_that_the_kubelet_shows),
		TEST(no_container_starts_before_the_records_were_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
