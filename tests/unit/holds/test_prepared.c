/* VFs of ResourceClaims (DRA): bound when the claim is prepared, and its own until it is not. */
#include "unit/holds/world.h"

#define CLAIM "0b1a6e2c-55d0-4f0b-9d7e-6b1d1f0c9a55"
#define K0    "rdma_vf-c" CLAIM "-0"

static struct ledger_owner claims(const char *pod)
{
	struct ledger_owner o = who(pod);

	o.claim = CLAIM;
	return o;
}

static uint64_t prepare_some(const char *pod, const char *slot, const char *vf)
{
	struct holds_vf v = vf_of(vf);
	const struct ledger_owner o = claims(pod);
	uint64_t number = decide(pod, vf);

	holds_event(w.h,
		    &(struct holds_event) { .kind = HOLDS_BOUND,
					    .slot = slot,
					    .given = &v,
					    .owner = &o,
					    .number = number },
		    w.now);
	settle();
	return number;
}

static void confirm(const char *slot)
{
	holds_event(w.h, &(struct holds_event) { .kind = HOLDS_CONFIRMED, .slot = slot }, w.now);
	settle();
}

static void prepare(const char *pod, const char *slot, const char *vf)
{
	prepare_some(pod, slot, vf);
	confirm(slot);
}

static void unprepare(void)
{
	holds_event(w.h, &(struct holds_event) { .kind = HOLDS_UNPREPARED, .claim_uid = CLAIM },
		    w.now);
	settle();
}

static const char *starts_again(const char *pod)
{
	const struct ledger_owner o = claims(pod);

	return holds_slot_start(w.h, K0, &o, true, w.now);
}

static void a_claim_keeps_its_vf_although_its_pod_is_not_shown(void **state)
{
	(void)state;
	prepare("web-0#u1", K0, V0);
	run_pod("web-0#u1");
	kubelet_lists({ "web-0", NULL });
	kubelet_lists({ "web-0", NULL });
	kubelet_lists_nothing();
	kubelet_lists_nothing();
	end_pod("web-0#u1"); /* the first of the claim's pods */
	new_kubelet();
	kubelet_lists_nothing();
	pass(3600000);
	kubelet_lists_nothing();
	tick();
	assert_true(is_held_by(V0, "web-0#u1"));
	assert_false(is_draining(V0));
	assert_false(may_give(V0));
}

static void an_unprepared_claim_leaves_its_vf(void **state)
{
	(void)state;
	prepare("web-0#u1", K0, V0);
	assert_int_equal(judge(V0).state, HOLDS_IS_HELD);
	assert_false(judge(V0).offered); /* after --serve=plugin: the kubelet would give it */
	unprepare();
	assert_null(hold_of(V0));
	assert_int_equal(judge(V0).state, HOLDS_IS_FREE);
	unprepare(); /* the kubelet asks again where it missed the answer */
	assert_null(hold_of(V0));
}

static void a_vf_that_is_in_use_drains(void **state)
{
	(void)state;
	prepare("web-0#u1", K0, V0);
	w.open = V0;
	w.said = 0;
	unprepare();
	assert_int_equal(w.said, 1);
	assert_true(says("the kubelet has unprepared their claim"));
	assert_true(says(V0));
	assert_true(is_draining(V0));
	assert_false(may_give(V0));
	restart(copy_of_ledger());
	records_read();
	tick();
	assert_true(is_draining(V0));
	w.open = NULL;
	tick();
	assert_null(hold_of(V0));
}

static void a_pod_whose_containers_run_keeps_it(void **state)
{
	(void)state;
	prepare("web-0#u1", K0, V0);
	run_pod("web-0#u1");
	unprepare();
	assert_true(is_draining(V0));
	end_pod("web-0#u1");
	tick();
	assert_null(hold_of(V0));
}

/* It was prepared for one that has ended, and another one lives on after it was forgotten. */
static void the_pod_that_runs_keeps_it(void **state)
{
	const struct ledger_owner o = { .uid = "u2" };

	(void)state;
	prepare("web-0#u1", K0, V0);
	run_pod("web-1#u2");
	holds_event(
		w.h,
		&(struct holds_event) { .kind = HOLDS_UNPREPARED, .claim_uid = CLAIM, .owner = &o },
		w.now);
	settle();
	assert_true(is_draining(V0));
	assert_string_equal(hold_of(V0)->owner.uid, "u2");
	assert_string_equal(hold_of(V0)->owner.claim, CLAIM);
	restart(copy_of_ledger());
	records_read();
	tick();
	assert_false(may_give(V0));
	end_pod("web-1#u2");
	tick();
	assert_null(hold_of(V0));
}

static void a_claim_that_is_prepared_again_keeps_its_vf(void **state)
{
	(void)state;
	prepare("web-0#u1", K0, V0);
	assert_string_equal(starts_again("web-0#u1"), V0);
	restart(copy_of_ledger());
	records_read();
	assert_string_equal(starts_again("web-0#u1"), V0);
	assert_string_equal(hold_of(V0)->owner.claim, CLAIM);
	/* another pod of the claim is the first one that the kubelet prepares it for */
	assert_string_equal(starts_again("web-1#u2"), V0);
}

/* Another pod of the claim may run with it, and nothing shows that but what it has open. */
static void a_claim_keeps_a_vf_that_is_not_usable(void **state)
{
	struct ledger_owner o = claims("web-1#u2");

	(void)state;
	prepare("web-0#u1", K0, V0);
	assert_null(holds_slot_start(w.h, K0, &o, false, w.now));
	settle();
	tick();
	assert_int_equal(judge(V0).state, HOLDS_IS_HELD);
	assert_false(may_give(V0));
	assert_string_equal(holds_slot(w.h, K0).vf, V0); /* until there is another one */
	prepare_some("web-1#u2", K0, V1);
	assert_true(is_held_by(V0, "web-0#u1"));
	assert_string_equal(holds_slot(w.h, K0).vf, V1);
	holds_event(w.h, &(struct holds_event) { .kind = HOLDS_UNBOUND, .slot = K0 }, w.now);
	assert_string_equal(holds_slot(w.h, K0).vf, V0); /* it came to nothing */
	prepare("web-1#u2", K0, V1);
	assert_string_equal(starts_again("web-1#u2"), V1);
	assert_false(may_give(V0));
	o = who("web-0#u1"); /* what a claim holds is none of its containers' slots */
	assert_null(holds_kept(w.h, RES, &o, 0));
	unprepare();
	assert_null(hold_of(V0));
	assert_null(hold_of(V1));
}

/* The configuration was another one: by the kubelet's account no container has what claims do. */
static void a_device_plugin_gets_no_vf_of_a_claim(void **state)
{
	(void)state;
	prepare("web-0#u1", K0, V0);
	allocate("web-0#u1", V0);
	assert_string_equal(hold_of(V0)->owner.claim, CLAIM);
	assert_false(starts("web-0#u1", V0));
	assert_false(starts("web-0", V0));
	allocate("web-1#u2", V0);
	assert_false(starts("web-1#u2", V0)); /* also when no process of web-0 is left */
	unprepare();
	assert_true(starts("web-1#u2", V0));
}

static void a_preparation_that_came_to_nothing_promises_nothing(void **state)
{
	(void)state;
	prepare_some("web-0#u1", K0, V0);
	holds_event(w.h, &(struct holds_event) { .kind = HOLDS_UNBOUND, .slot = K0 }, w.now);
	assert_null(hold_of(V0));
	assert_false(holds_slot(w.h, K0).promised);
}

static void a_claim_is_known_by_its_spec_alone(void **state)
{
	struct ledger_owner o = who("web-0#u1");
	struct holds_claim c = {
		.vf = V0, .resource = RES, .slot = K0, .number = 7, .source = "x"
	};

	(void)state;
	restart(NULL);
	o.claim = CLAIM;
	c.owner = o;
	holds_event(w.h, &(struct holds_event) { .kind = HOLDS_CLAIMED, .claim = &c }, w.now);
	records_read();
	kubelet_lists_nothing();
	kubelet_lists_nothing();
	assert_true(is_held_by(V0, "web-0#u1"));
	unprepare();
	assert_null(hold_of(V0));
}

static void an_operator_releases_it(void **state)
{
	(void)state;
	prepare("web-0#u1", K0, V0);
	assert_false(holds_is_shown(w.h, V0)); /* no answer would undo it */
	holds_event(w.h, &(struct holds_event) { .kind = HOLDS_RELEASED, .vf = V0 }, w.now);
	assert_null(hold_of(V0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_claim_keeps_its_vf_although_its_pod_is_not_shown),
		TEST(an_unprepared_claim_leaves_its_vf),
		TEST(a_vf_that_is_in_use_drains),
		TEST(a_pod_whose_containers_run_keeps_it),
		TEST(the_pod_that_runs_keeps_it),
		TEST(a_claim_that_is_prepared_again_keeps_its_vf),
		TEST(a_claim_keeps_a_vf_that_is_not_usable),
		TEST(a_device_plugin_gets_no_vf_of_a_claim),
		TEST(a_preparation_that_came_to_nothing_promises_nothing),
		TEST(a_claim_is_known_by_its_spec_alone),
		TEST(an_operator_releases_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
