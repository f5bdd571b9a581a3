#include "support/onrpc.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "kubeclient/podsapi.h"
#include "kubemsg/messages.h"
#include "kubepeer/kubepeer.h"

#define NOTHING	   ((struct bytes) { NULL, 0 })
#define TIMEOUT_MS 30000 /* a busy machine takes its time */

/* --- a kubelet's Pods API --- */

enum manners { ANSWER, RATE_LIMIT, HANG, GARBAGE, LATE, FAIL };

static struct {
	enum manners manners;
	unsigned limited; /* this many more calls are rejected */
	struct rpc_server *server;
	struct rpc_call *hung;
	unsigned calls;
} k;

static char dir[] = "/tmp/rm-podsapi.XXXXXX";
static char *socket_path;
static struct podspec_source *p;

static struct {
	unsigned times, good;
	size_t n_pods;
	char why[480], pod[64];
} got;

static const struct spec_limit limits[] = { { "nvidia.com/gpu", 8 }, { "rdma/vf", 4 } };
static const struct spec_claim claims[] = { { "mine", NULL }, { "ours", "gpu-b" } };
static const struct spec_container containers[] = { { "prepare", SPEC_INIT, limits, 1, NULL, 0 },
						    { "agent", SPEC_SIDECAR, NULL, 0, claims, 1 },
						    { "main", SPEC_APP, limits, 2, claims, 2 } };
static const struct spec_pod pods[] = {
	{ "ml", "trainer", "u-1", false, 1767323045, NULL, containers, 3 },
	{ "default", "old", "u-2", true, 7, NULL, containers, 0 },
};
static const struct spec_list both = { pods, 2 };

static void drop_hung(void)
{
	if (k.hung)
		rpc_reply(k.hung, RPC_UNAVAILABLE, "going", NOTHING);
	k.hung = NULL;
}

static void on_list(void *ctx, struct rpc_call *call, struct bytes request)
{
	(void)ctx;
	(void)request;
	k.calls++;
	if (k.limited) {
		k.limited--;
		rpc_reply(call, RPC_RESOURCE_EXHAUSTED, "rejected by rate limit", NOTHING);
	} else if (k.manners == ANSWER) {
		rpc_reply(call, RPC_OK, NULL, peer_encode_pod_specs(&both, rpc_call_arena(call)));
	} else if (k.manners == HANG) {
		drop_hung();
		k.hung = call;
	} else if (k.manners == GARBAGE) {
		rpc_reply(call, RPC_OK, NULL, (struct bytes) { (const uint8_t *)"\xff", 1 });
	} else if (k.manners == LATE) {
		rpc_reply(call, RPC_DEADLINE_EXCEEDED, "Deadline Exceeded", NOTHING);
	} else {
		rpc_reply(call, RPC_INTERNAL, "out of order", NOTHING);
	}
}

static void serve(void *arg)
{
	static const struct rpc_method methods[] = { { .path = PATH_PODS_LIST, .unary = on_list } };
	struct err err = { 0 };

	(void)arg;
	if (rpc_server_open(rpc, socket_path, methods, 1, NULL, &k.server, &err) < 0)
		fail_msg("%s", err.msg);
}

static void stop_serving(void *arg)
{
	(void)arg;
	drop_hung();
	if (k.server)
		rpc_server_close(STEAL(k.server), NULL, NULL);
}

/* --- the one that asks --- */

static void on_done(void *arg, const struct spec_list *specs, const char *why)
{
	(void)arg;
	got.times++;
	got.good += specs != NULL;
	got.n_pods = specs ? specs->n : 0;
	snprintf(got.pod, sizeof(got.pod), "%s", specs && specs->n ? specs->v[0].name : "");
	snprintf(got.why, sizeof(got.why), "%s", why ? why : "");
}

struct asking {
	unsigned n, timeout_ms;
};

static void ask(void *arg)
{
	const struct podspec_source *s = p;
	const struct asking *asking = arg;

	for (unsigned i = 0; i < asking->n; i++)
		s->fetch(s->ctx, asking->timeout_ms, on_done, NULL);
	assert_int_equal(got.times, 0); /* never before the return */
}

static unsigned awaited;

static bool answered(void)
{
	return got.times == awaited;
}

static void fetch(unsigned n, unsigned timeout_ms)
{
	awaited = n;
	memset(&got, 0, sizeof(got));
	on_rpc(ask, &(struct asking) { n, timeout_ms });
	wait_until(answered);
}

static void free_client(void *arg)
{
	(void)arg;
	kubeclient_podsapi_close(STEAL(p));
}

static int setup(void **state)
{
	(void)state;
	memset(&k, 0, sizeof(k));
	p = kubeclient_podsapi_open(rpc, socket_path);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	on_rpc(free_client, NULL);
	on_rpc(stop_serving, NULL);
	return 0;
}

static int start(void **state)
{
	if (!mkdtemp(dir))
		return -1;
	socket_path = xasprintf("%s/pods-api.sock", dir);
	return start_rpc(state);
}

static int stop(void **state)
{
	stop_rpc(state);
	rmdir(dir);
	free(socket_path);
	return 0;
}

static void pods_come_with_what_their_containers_ask_for(void **state)
{
	(void)state;
	on_rpc(serve, NULL);
	fetch(1, TIMEOUT_MS);
	assert_string_equal(got.why, "");
	assert_int_equal(got.n_pods, 2);
	assert_string_equal(got.pod, "trainer");
}

static void both_directions_of_the_message_agree(void **state)
{
	_cleanup_arena_ struct arena *a = arena_new(4096);
	struct spec_list l;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(
		kubemsg_decode(&kubemsg_pod_specs, peer_encode_pod_specs(&both, a), a, &l, &err),
		0);
	assert_int_equal(l.n, 2);
	for (size_t i = 0; i < l.n; i++) {
		assert_string_equal(l.v[i].ns, pods[i].ns);
		assert_string_equal(l.v[i].name, pods[i].name);
		assert_string_equal(l.v[i].uid, pods[i].uid);
		assert_int_equal(l.v[i].deleted, pods[i].deleted);
		assert_true(l.v[i].created == pods[i].created);
		assert_int_equal(l.v[i].n_containers, pods[i].n_containers);
	}
	for (size_t i = 0; i < 3; i++) {
		const struct spec_container *c = &l.v[0].containers[i];

		assert_string_equal(c->name, containers[i].name);
		assert_int_equal(c->kind, containers[i].kind);
		assert_int_equal(c->n_limits, containers[i].n_limits);
		assert_int_equal(c->n_claims, containers[i].n_claims);
		for (size_t n = 0; n < c->n_claims; n++) {
			assert_string_equal(c->claims[n].claim, claims[n].claim);
			assert_true(str_eq(c->claims[n].request, claims[n].request));
		}
		for (size_t n = 0; n < c->n_limits; n++) {
			assert_string_equal(c->limits[n].resource, limits[n].resource);
			assert_int_equal(c->limits[n].count, limits[n].count);
		}
	}
}

/* Of a template, and of the claim that the scheduler makes for limits that a DRA driver serves. */
static void claims_that_the_status_names_are_the_containers(void **state)
{
	/* p in n, whose claim t is x by its status; container m: 2 of a/g and of a/v, all of t, and
	 * r of e for a/g */
	static const char pod[] =
		"\x0a\x06\x0a\x01\x70\x1a\x01\x6e\x12\x2c\xba\x02\x03\x0a\x01\x74\x12\x24\x0a\x01"
		"\x6d\x42\x1f\x0a\x0a\x0a\x03\x61\x2f\x67\x12\x03\x0a\x01\x32\x0a\x0a\x0a\x03\x61"
		"\x2f\x76\x12\x03\x0a\x01\x32\x1a\x05\x0a\x01\x74\x12\x00\x1a\x1b\x7a\x06\x0a\x01"
		"\x74\x12\x01\x78\x92\x01\x10\x0a\x0b\x0a\x01\x6d\x12\x03\x61\x2f\x67\x1a\x01\x72"
		"\x12\x01\x65";
	_cleanup_arena_ struct arena *a = arena_new(4096);
	struct strbuf b = STRBUF_INIT;
	const struct spec_container *c;
	struct spec_list l;
	struct err err = { 0 };

	(void)state;
	strbuf_putc(&b, '\x0a');
	strbuf_putc(&b, (char)(sizeof(pod) - 1));
	strbuf_add(&b, pod, sizeof(pod) - 1);
	if (kubemsg_decode(&kubemsg_pod_specs, (struct bytes) { (const uint8_t *)b.s, b.len }, a,
			   &l, &err) < 0)
		fail_msg("%s", err.msg);
	strbuf_done(&b);
	c = &l.v[0].containers[0];
	assert_int_equal(c->n_claims, 2);
	assert_string_equal(c->claims[0].claim, "x");
	assert_null(c->claims[0].request);
	assert_string_equal(c->claims[1].claim, "e");
	assert_string_equal(c->claims[1].request, "r");
	assert_int_equal(c->n_limits, 1); /* a/g is no device plugin's */
	assert_string_equal(c->limits[0].resource, "a/v");
}

static int decode(const char *bytes, size_t len, struct arena *a, struct spec_list *ret,
		  struct err *err)
{
	return kubemsg_decode(&kubemsg_pod_specs, (struct bytes) { (const uint8_t *)bytes, len }, a,
			      ret, err);
}

static void bytes_that_are_no_pods_are_refused(void **state)
{
	static const struct {
		const char *bytes, *why;
		size_t len;
	} cases[] = {
		{ "\xff", "not protobuf", 1 },
		{ "\x0a", "not protobuf", 1 },
		{ "\x0a\x05", "ends in the middle", 2 },
		{ "\x0a\x01\xff", "not protobuf", 3 },
		{ "\x0a\x00", "a pod has no name", 2 },
		/* a name with a NUL */
		{ "\x0a\x08\x0a\x06\x0a\x01\x00\x1a\x01n", "NUL", 10 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		_cleanup_arena_ struct arena *a = arena_new(4096);
		struct spec_list l = { NULL, 77 };
		struct err err = { 0 };

		assert_true(decode(cases[i].bytes, cases[i].len, a, &l, &err) < 0);
		if (!strstr(err.msg, cases[i].why))
			fail_msg("case %zu: '%s' does not say '%s'", i, err.msg, cases[i].why);
		assert_int_equal(l.n, 77);
	}
}

/* --- a pod of any shape, and one behind it --- */

static void put_varint(struct strbuf *b, size_t v)
{
	for (; v > 0x7f; v >>= 7)
		strbuf_putc(b, (char)(v | 0x80));
	strbuf_putc(b, (char)v);
}

static void put_field(struct strbuf *b, unsigned tag, const char *data, size_t len)
{
	put_varint(b, tag << 3 | 2);
	put_varint(b, len);
	strbuf_add(b, data, len);
}

/* Ends *inner. */
static void put_inner(struct strbuf *b, unsigned tag, struct strbuf *inner)
{
	put_field(b, tag, strbuf_str(inner), inner->len);
	strbuf_done(inner);
}

static void put_text(struct strbuf *b, unsigned tag, const char *text)
{
	put_field(b, tag, text, strlen(text));
}

/* Ends *more and *spec. */
static void put_pod(struct strbuf *list, const char *name, struct strbuf *more, struct strbuf *spec,
		    const char *phase)
{
	struct strbuf pod = STRBUF_INIT, meta = STRBUF_INIT, status = STRBUF_INIT;

	strbuf_add(&meta, strbuf_str(more), more->len);
	strbuf_done(more);
	put_text(&meta, 1, name);
	put_text(&meta, 3, "n");
	put_text(&status, 1, phase);
	put_inner(&pod, 1, &meta);
	put_inner(&pod, 2, spec);
	put_inner(&pod, 3, &status);
	put_inner(list, 1, &pod);
}

static void put_limit(struct strbuf *resources, const char *name, const char *count)
{
	struct strbuf entry = STRBUF_INIT, quantity = STRBUF_INIT;

	put_text(&quantity, 1, count);
	put_text(&entry, 1, name);
	put_inner(&entry, 2, &quantity);
	put_inner(resources, 1, &entry);
}

/* Ends *resources. */
static void put_container(struct strbuf *spec, struct strbuf *resources)
{
	struct strbuf container = STRBUF_INIT;

	put_text(&container, 1, "c");
	put_inner(&container, 8, resources);
	put_inner(spec, 2, &container);
}

/* p in n, and q, which asks for a VF. Ends *more and *spec. */
static struct spec_list decode_with_another(struct arena *a, struct strbuf *more,
					    struct strbuf *spec, const char *phase)
{
	struct strbuf list = STRBUF_INIT, none = STRBUF_INIT, of_q = STRBUF_INIT,
		      resources = STRBUF_INIT;
	struct spec_list l = { NULL, 0 };
	struct err err = { 0 };
	const struct spec_pod *q;

	put_pod(&list, "p", more, spec, phase);
	put_limit(&resources, "rdma/vf", "1");
	put_container(&of_q, &resources);
	put_pod(&list, "q", &none, &of_q, "Pending");
	if (decode(list.s, list.len, a, &l, &err) < 0)
		fail_msg("%s", err.msg);
	strbuf_done(&list);
	q = &l.v[l.n - 1];
	assert_string_equal(q->name, "q");
	assert_null(q->unread);
	assert_int_equal(q->n_containers, 1);
	assert_int_equal(q->containers[0].limits[0].count, 1);
	return l;
}

enum { CONTAINERS, CLAIMS, OWN_CLAIMS, ZEROS, ONES, ODD, NAMELESS, BROKEN };

static void put_shape(struct strbuf *spec, int shape, size_t m, size_t n)
{
	for (size_t i = 0; i < m; i++) {
		struct strbuf resources = STRBUF_INIT, name = STRBUF_INIT;

		for (size_t part = 0; part < n; part++) {
			char text[32];

			snprintf(text, sizeof(text), "a/%zu", part);
			if (shape == CLAIMS) {
				put_text(&name, 1, "a1");
				put_inner(&resources, 3, &name);
			} else {
				put_limit(&resources, text,
					  shape == ZEROS ? "0"
					  : shape == ODD ? "1.5"
							 : "+1");
			}
		}
		if (shape == OWN_CLAIMS) {
			put_text(&name, 1, "a1");
			put_inner(spec, 39, &name);
		} else if (shape == NAMELESS) {
			put_inner(spec, 2, &name);
		} else if (shape == BROKEN) {
			put_field(spec, 2, "\xff", 1);
		} else {
			put_container(spec, &resources);
		}
		strbuf_done(&resources);
	}
}

static void a_pod_that_asks_for_too_much_is_left_out_by_name(void **state)
{
	static const struct {
		int shape;
		size_t m, n;
		const char *why;
	} cases[] = {
		{ CLAIMS, 1000, 100, "takes more than 32768 bytes" },
		{ CLAIMS, 10, 60, "more limits and claims than are read" },
		{ ZEROS, 1, 8500, "takes more than 32768 bytes" },
		{ ONES, 2, 400, "more limits and claims than are read" },
		{ ONES, 10, 50, "ask for more than is kept" },
		{ CONTAINERS, 600, 0, "more containers than are read" },
		{ CONTAINERS, 100000, 0, "takes more than 32768 bytes" },
		{ OWN_CLAIMS, SPEC_CLAIMS_MAX + 1, 0, "more ResourceClaims than are read" },
		{ ODD, 1, 1, "container c: the limit of a/0 is not a whole number" },
		{ NAMELESS, 1, 0, "a container has no name" },
		{ BROKEN, 1, 0, "not protobuf" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		_cleanup_arena_ struct arena *a = arena_new(4096);
		struct strbuf spec = STRBUF_INIT, none = STRBUF_INIT;
		struct spec_list l;

		put_shape(&spec, cases[i].shape, cases[i].m, cases[i].n);
		l = decode_with_another(a, &none, &spec, "Pending");
		assert_int_equal(l.n, 2);
		assert_string_equal(l.v[0].name, "p");
		assert_int_equal(l.v[0].n_containers, 0);
		if (!l.v[0].unread || !strstr(l.v[0].unread, cases[i].why))
			fail_msg("case %zu: '%s' does not say '%s'", i, l.v[0].unread,
				 cases[i].why);
		assert_true(arena_used(a) < 2048);
	}
}

/* Labels, annotations, environments: of any size, and the pod is known. */
static void what_does_not_matter_costs_a_pod_nothing(void **state)
{
	_cleanup_arena_ struct arena *a = arena_new(4096);
	struct strbuf spec = STRBUF_INIT, labels = STRBUF_INIT, container = STRBUF_INIT,
		      resources = STRBUF_INIT;
	struct spec_list l;

	(void)state;
	for (int i = 0; i < 100000; i++) {
		put_field(&labels, 11, "\x0a\x01x", 3);
		put_field(&container, 7, "\x0a\x01x", 3);
		put_field(&spec, 1, "\x0a\x01x", 3);
	}
	put_text(&container, 1, "c");
	put_limit(&resources, "rdma/vf", "2");
	put_inner(&container, 8, &resources);
	put_inner(&spec, 2, &container);
	l = decode_with_another(a, &labels, &spec, "Running");
	assert_int_equal(l.n, 2);
	assert_null(l.v[0].unread);
	assert_int_equal(l.v[0].containers[0].limits[0].count, 2);
}

static void a_pod_that_ended_is_no_pod_of_the_list(void **state)
{
	_cleanup_arena_ struct arena *a = arena_new(4096);
	struct strbuf spec = STRBUF_INIT, none = STRBUF_INIT;

	(void)state;
	assert_int_equal(decode_with_another(a, &none, &spec, "Failed").n, 1);
	assert_int_equal(decode_with_another(a, &none, &spec, "Succeeded").n, 1);
}

static void questions_that_come_together_share_an_answer_but_never_an_older_one(void **state)
{
	(void)state;
	on_rpc(serve, NULL);
	fetch(40, TIMEOUT_MS);
	assert_int_equal(got.good, 40);
	assert_int_equal(k.calls, 2);
}

static void a_rate_limited_question_is_asked_again(void **state)
{
	(void)state;
	on_rpc(serve, NULL);
	k.limited = 3;
	fetch(1, TIMEOUT_MS);
	assert_int_equal(got.good, 1);
	assert_int_equal(k.calls, 4);
}

static void a_rate_limit_without_an_end_is_told(void **state)
{
	(void)state;
	on_rpc(serve, NULL);
	k.limited = 1000;
	fetch(1, TIMEOUT_MS);
	assert_int_equal(got.good, 0);
	assert_non_null(strstr(got.why, "rejected by rate limit"));
	assert_in_range(k.calls, 2, 10);
}

static void who_waits_is_told_in_time_and_the_next_one_is_served(void **state)
{
	(void)state;
	on_rpc(serve, NULL);
	k.manners = HANG;
	fetch(1, 50);
	assert_int_equal(got.good, 0);
	assert_non_null(strstr(got.why, "took longer than 50 ms"));
	k.manners = ANSWER;
	fetch(1, TIMEOUT_MS);
	assert_int_equal(got.good, 1);
}

static void failures_name_the_socket(void **state)
{
	static const struct {
		enum manners manners;
		const char *why;
	} cases[] = { { FAIL, "out of order" },
		      { GARBAGE, "not protobuf" },
		      { LATE, "took longer than" } };

	(void)state;
	fetch(1, TIMEOUT_MS);
	assert_int_equal(got.good, 0);
	assert_non_null(strstr(got.why, socket_path));
	on_rpc(serve, NULL);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		k.manners = cases[i].manners;
		fetch(1, TIMEOUT_MS);
		assert_int_equal(got.good, 0);
		assert_non_null(strstr(got.why, socket_path));
		assert_non_null(strstr(got.why, cases[i].why));
	}
}

static bool one_hangs(void)
{
	return k.hung != NULL;
}

static void questions_under_way_end_when_it_goes(void **state)
{
	(void)state;
	on_rpc(serve, NULL);
	k.manners = HANG;
	memset(&got, 0, sizeof(got));
	on_rpc(ask, &(struct asking) { 3, TIMEOUT_MS });
	wait_until(one_hangs);
	on_rpc(free_client, NULL);
	assert_int_equal(got.times, 3);
	assert_int_equal(got.good, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(pods_come_with_what_their_containers_ask_for, setup,
						teardown),
		cmocka_unit_test(both_directions_of_the_message_agree),
		cmocka_unit_test(claims_that_the_status_names_are_the_containers),
		cmocka_unit_test(bytes_that_are_no_pods_are_refused),
		cmocka_unit_test(a_pod_that_asks_for_too_much_is_left_out_by_name),
		cmocka_unit_test(what_does_not_matter_costs_a_pod_nothing),
		cmocka_unit_test(a_pod_that_ended_is_no_pod_of_the_list),
		cmocka_unit_test_setup_teardown(
			questions_that_come_together_share_an_answer_but_never_an_older_one, setup,
			teardown),
		cmocka_unit_test_setup_teardown(a_rate_limited_question_is_asked_again, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_rate_limit_without_an_end_is_told, setup,
						teardown),
		cmocka_unit_test_setup_teardown(
			who_waits_is_told_in_time_and_the_next_one_is_served, setup, teardown),
		cmocka_unit_test_setup_teardown(failures_name_the_socket, setup, teardown),
		cmocka_unit_test_setup_teardown(questions_under_way_end_when_it_goes, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
