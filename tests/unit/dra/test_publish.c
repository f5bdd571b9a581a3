/* The ResourceSlices of a node, kept against an API server that fails in every way that it can. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "config/config.h"
#include "document/document.h"
#include "dra/publish.h"
#include "dra/slices.h"
#include "kubemsg/apiobject.h"
#include "pool/node.h"
#include "support/nodes.h"
#include "support/onrpc.h"
#include "support/synth.h"
#include "unit/dra/apiserver.h"

static struct fake_api *api;
static struct publish *p;
static struct node *node;
static _Atomic size_t n_slots; /* wanted; 0: nothing */
static unsigned numbers[600];  /* of slots: 0, 1, … */

/* --- on the rpc thread --- */

static int n_changed;

static void set_fn(void *arg);

static void changed_fn(void *arg)
{
	n_changed++;
	assert_true(publish_has_taints(p));
	set_fn(NULL);
}

static void open_fn(void *arg)
{
	p = publish_open(&(struct publish_env) { .rpc = rpc,
						 .driver = "vf.railmate.io",
						 .node_name = "worker-1",
						 .ask = fake_api_ask,
						 .ctx = api,
						 .changed = changed_fn,
						 .pause_ms = 4 });
}

static void set_fn(void *arg)
{
	const struct slices_pool v = { .pool = node->pools, .slots = numbers, .n_slots = n_slots };

	publish_set(p, n_slots ? &(struct slices_in) { .node = node, .v = &v, .n = 1 } : NULL);
}

static void look_fn(void *arg)
{
	publish_look(p);
}

static void close_fn(void *arg)
{
	publish_close(STEAL(p));
}

static bool is_done(void)
{
	return publish_is_done(p);
}

static bool is_idle(void)
{
	return !api->open;
}

static void want(size_t n)
{
	n_slots = n;
	on_rpc(set_fn, NULL);
}

static void fails_fn(void *arg)
{
	api->script = *(const struct fake_script *)arg;
}

static void fails(struct fake_script script)
{
	on_rpc(fails_fn, &script);
}

static void come_and_go(void)
{
	on_rpc(close_fn, NULL);
	wait_until(is_idle);
	on_rpc(open_fn, NULL);
}

static struct {
	size_t slices, devices;
	int64_t generation;
} there;

static void check_fn(void *arg)
{
	size_t devices = 0;

	for (size_t i = 0; i < api->n; i++) {
		const struct fake_object *o = &api->v[i];

		assert_string_equal(o->owner, api->node_uid);
		assert_int_equal(o->count, api->n);
		assert_int_equal(o->pool_generation, api->v[0].pool_generation);
		devices += o->n_devices;
	}
	there.slices = api->n;
	there.devices = devices;
	there.generation = api->n ? api->v[0].pool_generation : 0;
}

/* All slots are offered, by slices of one generation. */
static void check(void)
{
	wait_until(is_done);
	on_rpc(check_fn, NULL);
	assert_int_equal(there.devices, n_slots);
	assert_int_equal(there.slices, (n_slots + SLICE_DEVICES_MAX - 1) / SLICE_DEVICES_MAX);
}

static int setup(void **state)
{
	struct config *cfg = config_default();

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(numbers); i++)
		numbers[i] = i;
	node = node_new(synth_inventory("pf:1 vf:4"), cfg, NULL);
	config_free(cfg);
	api = fake_api_new(rpc);
	on_rpc(open_fn, NULL);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	on_rpc(close_fn, NULL);
	wait_until(is_idle);
	fake_api_free(STEAL(api));
	node = node_unref(node);
	return 0;
}

/* --- all is well --- */

static void what_is_wanted_is_written_once(void **state)
{
	(void)state;
	want(300);
	check();
	assert_int_equal(there.generation, 1);
	assert_int_equal(api->writes, 3);
	assert_int_equal(api->asked, 3 + 4); /* version, list, node, and the list again */
	want(300);
	assert_int_equal(api->asked, 3 + 4);
}

static void a_restart_is_not_noticed(void **state)
{
	(void)state;
	want(300);
	check();
	for (int i = 0; i < 3; i++) {
		come_and_go();
		want(300);
		check();
	}
	assert_int_equal(api->writes, 3);
	assert_int_equal(there.generation, 1);
}

static void a_change_is_a_generation(void **state)
{
	(void)state;
	want(300);
	check();
	want(301);
	check();
	assert_int_equal(there.generation, 2);
	assert_int_equal(api->writes, 3 + 3);
	assert_int_equal(api->created, 3);
	want(10);
	check();
	assert_int_equal(there.generation, 3);
	assert_int_equal(api->writes, 3 + 3 + 3); /* two are removed */
	want(500);
	check();
	assert_int_equal(there.generation, 4);
}

static bool has_taints(void)
{
	return publish_has_taints(p);
}

static void taints_are_for_servers_that_keep_them(void **state)
{
	static const char *const minors[] = { "35", "34+", "x", "" };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(minors); i++) {
		come_and_go();
		api->minor = minors[i];
		want(1);
		check();
		assert_false(is_on_rpc(has_taints));
	}
	on_rpc(fake_api_wipe, api);
	come_and_go();
	fails((struct fake_script) { FAKE_REFUSE, .times = 1, .status = 403 });
	want(1);
	check();
	assert_false(is_on_rpc(has_taints));
	on_rpc(fake_api_wipe, api);
	come_and_go();
	api->minor = "36";
	n_changed = 0;
	want(1);
	check();
	assert_true(is_on_rpc(has_taints));
	assert_int_equal(n_changed, 1);
	assert_int_equal(there.generation, 1);
}

static void slices_do_not_wait_for_a_version(void **state)
{
	(void)state;
	fails((struct fake_script) { FAKE_REFUSE, .times = 1, .status = 500 });
	want(300);
	check();
	assert_int_equal(api->writes, 3);
	assert_true(is_on_rpc(has_taints)); /* since the list behind the writes */
}

static void nothing_is_written_before_something_is_wanted(void **state)
{
	(void)state;
	on_rpc(look_fn, NULL);
	usleep(20000);
	assert_int_equal(api->asked, 0);
}

static void all_go_when_nothing_is_wanted(void **state)
{
	(void)state;
	want(300);
	check();
	come_and_go();
	want(0);
	check();
	assert_int_equal(there.slices, 0);
}

/* Every second at most, and the newest in the end. */
static void a_link_that_flaps_costs_few_writes(void **state)
{
	(void)state;
	for (size_t i = 1; i <= 100; i++) {
		want(i);
		usleep(1000);
	}
	check();
	assert_in_range(api->writes, 1, 4);
}

static char said[256];

static void say_fn(void *arg)
{
	struct strbuf text = STRBUF_INIT;

	publish_say(p, &text);
	snprintf(said, sizeof(said), "%s", strbuf_str(&text));
	strbuf_done(&text);
}

static void its_state_is_a_sentence(void **state)
{
	(void)state;
	on_rpc(say_fn, NULL);
	assert_string_equal(said, "no ResourceSlice is wanted yet");
	want(300);
	check();
	on_rpc(say_fn, NULL);
	assert_string_equal(said, "3 ResourceSlices, generation 1");
	fails((struct fake_script) { FAKE_REFUSE, .from = 0, .times = 1, .status = 422 });
	want(1);
	while (strcmp(said, "ResourceSlices are not kept: refused: HTTP 422") != 0)
		on_rpc(say_fn, NULL);
}

/* --- what others do --- */

static void slices_that_are_not_ours_are_removed(void **state)
{
	(void)state;
	on_rpc(fake_api_add_stray, api);
	want(100);
	check();
	on_rpc(fake_api_add_stray, api);
	on_rpc(look_fn, NULL);
	wait_until(is_done);
	check();
	assert_int_equal(there.generation, 1);
}

static bool is_mended(void)
{
	return publish_is_done(p) && api->n == 3 && !api->v[0].is_changed;
}

static void a_slice_that_somebody_changed_is_mended(void **state)
{
	(void)state;
	want(300);
	check();
	on_rpc(fake_api_change_first, api);
	on_rpc(look_fn, NULL);
	wait_until(is_mended);
	check();
	assert_int_equal(there.generation, 2);
	come_and_go();
	on_rpc(fake_api_change_first, api);
	want(300);
	wait_until(is_mended);
	check();
	assert_int_equal(there.generation, 3);
}

static void what_the_kubelet_removed_comes_back_when_it_registers_us(void **state)
{
	(void)state;
	want(300);
	check();
	on_rpc(fake_api_wipe, api);
	on_rpc(look_fn, NULL);
	wait_until(is_mended);
	check();
}

/* It goes with all that it owns. */
static void a_node_that_is_made_anew_owns_the_new_slices(void **state)
{
	(void)state;
	want(300);
	check();
	on_rpc(fake_api_wipe, api);
	api->node_uid = "node-2";
	on_rpc(look_fn, NULL);
	wait_until(is_mended);
	check();
}

/* --- failures --- */

static void a_conflict_is_tried_again_at_once(void **state)
{
	(void)state;
	want(300);
	check();
	fails((struct fake_script) { FAKE_REFUSE, "PUT", .times = 3, .status = 409 });
	want(301);
	check();
	assert_int_equal(api->writes, 3 + 3 + 3);
	assert_int_equal(there.generation, 2);
}

static void conflicts_without_an_end_are_no_storm(void **state)
{
	int asked;

	(void)state;
	want(300);
	check();
	asked = api->asked;
	fails((struct fake_script) { FAKE_REFUSE, "PUT", .times = 1 << 20, .status = 409 });
	want(301);
	usleep(1200000);
	assert_in_range(api->asked - asked, 6, 300); /* pauses of 4, 8, 16 ms … */
	on_rpc(fake_api_heal, api);
	check();
	assert_int_equal(there.generation, 2);
}

static void a_server_that_is_away_loses_nothing(void **state)
{
	(void)state;
	want(300);
	check();
	fails((struct fake_script) { FAKE_REFUSE, .times = 1 << 20, .status = 0 });
	for (size_t i = 1; i < 20; i++) {
		want(300 + i);
		usleep(2000);
	}
	assert_int_equal(api->writes, 3);
	on_rpc(fake_api_heal, api);
	check();
	assert_int_equal(there.devices, 319);
	assert_int_equal(there.generation, 2);
}

static bool is_refused(void)
{
	say_fn(NULL);
	return strstr(said, "HTTP 422") != NULL;
}

/* The same again would be refused again; something else may not. */
static void an_invalid_slice_is_not_sent_again(void **state)
{
	int asked;

	(void)state;
	fails((struct fake_script) { FAKE_REFUSE, "POST", .times = 1, .status = 422 });
	want(300);
	wait_until(is_refused);
	asked = api->asked;
	usleep(50000);
	assert_int_equal(api->asked, asked);
	want(200);
	check();
}

/* Each request of a round fails, in each way, and another process goes on; or the same one does. */
static void a_round_that_breaks_anywhere_is_brought_to_its_end(void **state)
{
	static const struct fake_script ways[] = {
		{ FAKE_REFUSE, .times = 1, .status = 500 },
		{ FAKE_REFUSE, .times = 1, .status = 409 },
		{ FAKE_REFUSE, .times = 1, .status = 404 },
		{ FAKE_REFUSE, .times = 1, .status = 0 },
		{ FAKE_LOSE, .times = 1, .status = 0 },
		{ FAKE_GARBLE, .times = 1 },
	};
	static const size_t wants[] = { 300, 100, 500, 129, 400 };
	struct fake_script way;
	int64_t last = 0;
	size_t n = 0;

	(void)state;
	for (size_t w = 0; w < ARRAY_LEN(ways); w++) {
		for (int at = 0; at < 8; at++) {
			come_and_go();
			way = ways[w];
			way.from = at;
			fails(way);
			want(wants[n % ARRAY_LEN(wants)] + n);
			n++;
			if (n % 2) {
				usleep(2000);
				come_and_go();
				want(n_slots);
			}
			check();
			assert_true(there.generation > last);
			last = there.generation;
			on_rpc(fake_api_heal, api);
		}
	}
}

/* As libcurl does on a connection that ended. */
static void a_request_that_is_sent_twice_makes_no_second_slice(void **state)
{
	(void)state;
	fails((struct fake_script) { FAKE_TWICE, "POST", .times = 1 });
	want(300);
	check();
	assert_int_equal(api->created, 3 + 1);
	assert_int_equal(there.generation, 1);
}

static void an_answer_after_the_end_is_nobodys(void **state)
{
	(void)state;
	want(300);
	come_and_go();
	want(300);
	check();
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_is_wanted_is_written_once),
		TEST(a_restart_is_not_noticed),
		TEST(a_change_is_a_generation),
		TEST(taints_are_for_servers_that_keep_them),
		TEST(slices_do_not_wait_for_a_version),
		TEST(nothing_is_written_before_something_is_wanted),
		TEST(all_go_when_nothing_is_wanted),
		TEST(a_link_that_flaps_costs_few_writes),
		TEST(its_state_is_a_sentence),
		TEST(slices_that_are_not_ours_are_removed),
		TEST(a_slice_that_somebody_changed_is_mended),
		TEST(what_the_kubelet_removed_comes_back_when_it_registers_us),
		TEST(a_node_that_is_made_anew_owns_the_new_slices),
		TEST(a_conflict_is_tried_again_at_once),
		TEST(conflicts_without_an_end_are_no_storm),
		TEST(a_server_that_is_away_loses_nothing),
		TEST(an_invalid_slice_is_not_sent_again),
		TEST(a_round_that_breaks_anywhere_is_brought_to_its_end),
		TEST(a_request_that_is_sent_twice_makes_no_second_slice),
		TEST(an_answer_after_the_end_is_nobodys),
	};

	return cmocka_run_group_tests(tests, start_rpc, stop_rpc);
}
