/* What a VF is: the one verdict, state by state. */
#include "unit/holds/world.h"

#define SICK "0000:18:00.1: no driver is bound to it"

static struct holds_verdict judge_view(struct holds_view view)
{
	struct holds_facts facts = facts_of(V0);

	view.vf = V0;
	view.resource = RES;
	view.facts = &facts;
	return holds_judge(w.h, &view, w.a);
}

static void assert_is(struct holds_verdict v, enum holds_state state, bool offered, const char *why)
{
	assert_string_equal(holds_state_names[v.state], holds_state_names[state]);
	assert_int_equal(v.offered, offered);
	if (why)
		assert_string_equal(v.why, why);
	else
		assert_null(v.why);
}

static void a_vf_that_nothing_has_is_free_and_on_offer(void **state)
{
	(void)state;
	assert_is(judge(V0), HOLDS_IS_FREE, true, NULL);
}

static void what_a_container_has_stays_on_offer(void **state)
{
	(void)state;
	assert_is(judge(V0), HOLDS_IS_FREE, true, NULL);
	allocate("web-0", V0);
	assert_is(judge(V0), HOLDS_IS_ALLOCATED, true, NULL);
	begin_pod("web-1#u1", V1);
	assert_is(judge(V1), HOLDS_IS_HELD, true, "containers of its pod still run");
}

static void what_something_else_has_is_not_offered(void **state)
{
	(void)state;
	w.open = V0;
	assert_is(judge(V0), HOLDS_IS_IN_USE, false, facts_of(V0).open);
	w.open = NULL;
	w.away = V0;
	assert_is(judge(V0), HOLDS_IS_IN_USE, false, facts_of(V0).away);
	assert_is(judge(V1), HOLDS_IS_FREE, true, NULL);
	w.away = NULL;
	assert_is(judge(V0), HOLDS_IS_FREE, true, NULL);
}

/* A container of which no record is left may be what uses it. */
static void what_the_kubelet_counts_as_a_pods_stays_on_offer(void **state)
{
	(void)state;
	w.open = V0;
	assert_is(judge_view((struct holds_view) { .given = true }), HOLDS_IS_IN_USE, true,
		  facts_of(V0).open);
	assert_true(holds_is_spare(&(struct holds_verdict) { HOLDS_IS_IN_USE, true, NULL }));
	assert_false(holds_is_spare(&(struct holds_verdict) { HOLDS_IS_IN_USE, false, NULL }));
	assert_false(holds_is_spare(&(struct holds_verdict) { HOLDS_IS_HELD, true, NULL }));
}

static void until_records_were_read_what_is_used_stays_on_offer(void **state)
{
	(void)state;
	restart(copy_of_ledger());
	w.away = V0;
	assert_is(judge(V0), HOLDS_IS_IN_USE, true, facts_of(V0).away);
	records_read();
	assert_is(judge(V0), HOLDS_IS_IN_USE, false, facts_of(V0).away);
}

static void a_sick_vf_is_not_offered_whoever_has_it(void **state)
{
	(void)state;
	assert_is(judge_view((struct holds_view) { .unhealthy = SICK }), HOLDS_IS_UNHEALTHY, false,
		  SICK);
	w.open = V0; /* the worse of the two is said */
	assert_is(judge_view((struct holds_view) { .unhealthy = SICK }), HOLDS_IS_UNHEALTHY, false,
		  SICK);
	w.open = NULL;
	begin_pod("web-0#u1", V0);
	assert_is(judge_view((struct holds_view) { .unhealthy = SICK }), HOLDS_IS_HELD, false,
		  SICK);
}

static void a_vf_that_its_pool_does_not_select_leaves(void **state)
{
	const struct holds_view view = { .leaving = true, .unhealthy = SICK };

	(void)state;
	assert_is(judge_view(view), HOLDS_IS_LEAVING, false, SICK);
	begin_pod("web-0#u1", V0);
	assert_is(judge_view(view), HOLDS_IS_LEAVING, false, SICK);
}

static void a_vf_of_a_retired_pool_is_for_its_holder_alone(void **state)
{
	const struct holds_view view = { .retired = true };

	(void)state;
	assert_is(judge_view(view), HOLDS_IS_RETIRED, false, NULL);
	begin_pod("web-0#u1", V0);
	assert_is(judge_view(view), HOLDS_IS_RETIRED, true, "containers of its pod still run");
}

static void what_drains_is_not_offered_whatever_its_pool_is(void **state)
{
	(void)state;
	begin_pod("web-0#u1", V0);
	kubelet_lists({ "web-0", V0 });
	w.open = V0;
	end_pod("web-0#u1");
	kubelet_lists({ "web-1", NULL });
	kubelet_lists({ "web-1", NULL });
	assert_is(judge(V0), HOLDS_IS_DRAINING, false, facts_of(V0).open);
	assert_is(judge_view((struct holds_view) { .retired = true, .leaving = true }),
		  HOLDS_IS_DRAINING, false, facts_of(V0).open);
}

/* The ledger, the specs and map.json are lost. */
static void while_a_slots_vf_is_unknown_any_may_be_it(void **state)
{
	(void)state;
	restart(NULL);
	records_read();
	kubelet_lists({ "web-0", S0 });
	assert_non_null(holds_unknown(w.h, 0, NULL));
	assert_is(judge(V0), HOLDS_IS_IN_USE, false,
		  V0 " may be that of slot " S0 ", which container main of pod default/web-0 has");
	w.relists = 0;
	kubelet_lists({ "web-1", NULL });
	for (int i = 0; i < 10 && holds_unknown(w.h, 0, NULL); i++) {
		pass(600000);
		kubelet_lists({ "web-1", NULL });
		tick();
	}
	assert_null(holds_unknown(w.h, 0, NULL));
	assert_true(w.relists > 0);
	assert_is(judge(V0), HOLDS_IS_FREE, true, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_vf_that_nothing_has_is_free_and_on_offer),
		TEST(what_a_container_has_stays_on_offer),
		TEST(what_something_else_has_is_not_offered),
		TEST(what_the_kubelet_counts_as_a_pods_stays_on_offer),
		TEST(until_records_were_read_what_is_used_stays_on_offer),
		TEST(a_sick_vf_is_not_offered_whoever_has_it),
		TEST(a_vf_that_its_pool_does_not_select_leaves),
		TEST(a_vf_of_a_retired_pool_is_for_its_holder_alone),
		TEST(what_drains_is_not_offered_whatever_its_pool_is),
		TEST(while_a_slots_vf_is_unknown_any_may_be_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
