#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/mem.h"
#include "kubemsg/dra.h"
#include "kubepeer/kubepeer.h"
#include "support/testarena.h"

#include <errno.h>

#define BYTES(literal) ((struct bytes) { (const uint8_t *)(literal), sizeof(literal) - 1 })

/* What k8s.io/kubelet v0.37.2 marshals. */
static const char claims_wire[] = "\x0a\x0b\x0a\x02ns\x12\x02u1\x1a\x01"
				  "c\x0a\x0b\x0a\x02ns\x12\x02u2\x1a"
				  "\x01"
				  "d";
static const char prepare_wire[] =
	"\x0a/\x0a\x02u1\x12)\x0a\x1b\x0a\x02vf\x12\x02n1\x1a\x05rail0\x22\x05k/"
	"c=x*\x03s-1\x0a\x0a\x12\x02n1\x1a\x04vf-1\x0a\x15\x0a\x02u2\x12\x0f\x12"
	"\x0dno VF is free";
static const char unprepare_wire[] =
	"\x0a\x06\x0a\x02u1\x12\x00\x0a\x0e\x0a\x02u2\x12\x08\x0a\x06in use";
static const char health_wire[] =
	"\x0a%\x0a\x0b\x0a\x02n1\x12\x05rail0\x10\x02\x18\x80\xe2\xcf\xaa\x06 <*"
	"\x0clink is down\x0a\x0e\x0a\x0a\x0a\x02n1\x12\x04vf-1\x10\x01";

static void assert_bytes(struct bytes got, struct bytes want)
{
	assert_int_equal(got.len, want.len);
	assert_memory_equal(got.data, want.data, want.len);
}

static void claims_are_the_kubelets_bytes(void **state)
{
	struct dra_claim_refs refs;

	(void)state;
	assert_int_equal(
		kubemsg_decode(&kubemsg_dra_claims, BYTES(claims_wire), arena, &refs, NULL), 0);
	assert_int_equal(refs.n, 2);
	assert_string_equal(refs.v[0].ns, "ns");
	assert_string_equal(refs.v[0].uid, "u1");
	assert_string_equal(refs.v[0].name, "c");
	assert_string_equal(refs.v[1].uid, "u2");
	assert_bytes(peer_encode_dra_claims(&refs, arena), BYTES(claims_wire));
}

static void assert_refused(struct dra_claim_ref ref)
{
	struct dra_claim_refs refs = { &ref, 1 };
	struct err err = { 0 };

	assert_int_equal(kubemsg_decode(&kubemsg_dra_claims, peer_encode_dra_claims(&refs, arena),
					arena, &refs, &err),
			 -EBADMSG);
	assert_string_equal(err.msg, "a claim lacks its namespace, uid or name");
}

static void claim_that_is_not_named_is_refused(void **state)
{
	(void)state;
	assert_refused((struct dra_claim_ref) { "", "u1", "c" });
	assert_refused((struct dra_claim_ref) { "ns", "", "c" });
	assert_refused((struct dra_claim_ref) { "ns", "u1", "" });
}

static void number_of_claims_is_bounded(void **state)
{
	struct dra_claim_ref *v = arena_array(arena, 1025, sizeof(*v));
	struct dra_claim_refs refs = { v, 1025 };
	struct err err = { 0 };

	(void)state;
	for (size_t i = 0; i < refs.n; i++)
		v[i] = (struct dra_claim_ref) { "ns", "u1", "c" };
	assert_int_equal(kubemsg_decode(&kubemsg_dra_claims, peer_encode_dra_claims(&refs, arena),
					arena, &refs, &err),
			 -EBADMSG);
	assert_string_equal(err.msg, "ClaimsRequest: too many values of claims");
}

static void prepared_devices_are_the_kubelets_bytes(void **state)
{
	const struct dra_device devices[] = {
		{ .requests = { (const char *[]) { "vf" }, 1 },
		  .cdi = { (const char *[]) { "k/c=x" }, 1 },
		  .pool = "n1",
		  .device = "rail0",
		  .share = "s-1" },
		{ .pool = "n1", .device = "vf-1" },
	};
	const struct dra_result results[] = {
		{ .uid = "u1", .v = devices, .n = ARRAY_LEN(devices) },
		{ .uid = "u2", .error = "no VF is free", .v = devices, .n = 1 },
	};
	const struct dra_results list = { results, ARRAY_LEN(results) };
	struct dra_results back;

	(void)state;
	assert_bytes(kubemsg_encode(&kubemsg_dra_prepare_reply, &list, arena), BYTES(prepare_wire));
	assert_int_equal(peer_decode_dra_prepare_reply(BYTES(prepare_wire), arena, &back, NULL), 0);
	assert_int_equal(back.n, 2);
	assert_null(back.v[0].error);
	assert_string_equal(back.v[0].v[0].share, "s-1");
	assert_string_equal(back.v[0].v[0].requests.v[0], "vf");
	assert_int_equal(back.v[0].v[1].requests.n, 0);
	assert_null(back.v[0].v[1].share);
	assert_string_equal(back.v[1].error, "no VF is free");
}

/* A claim without an entry counts as one that was not unprepared. */
static void every_unprepared_claim_has_an_entry(void **state)
{
	const struct dra_result results[] = { { .uid = "u1" }, { .uid = "u2", .error = "in use" } };
	const struct dra_results list = { results, ARRAY_LEN(results) };
	struct dra_results back;

	(void)state;
	assert_bytes(kubemsg_encode(&kubemsg_dra_unprepare_reply, &list, arena),
		     BYTES(unprepare_wire));
	assert_int_equal(peer_decode_dra_unprepare_reply(BYTES(unprepare_wire), arena, &back, NULL),
			 0);
	assert_int_equal(back.n, 2);
	assert_null(back.v[0].error);
	assert_string_equal(back.v[1].error, "in use");
}

static void health_is_the_kubelets_bytes(void **state)
{
	const struct dra_health devices[] = {
		{ .pool = "n1",
		  .device = "rail0",
		  .message = "link is down",
		  .health = DRA_UNHEALTHY,
		  .since_s = 1700000000,
		  .timeout_s = 60 },
		{ .pool = "n1", .device = "vf-1", .health = DRA_HEALTHY },
	};
	const struct dra_health_list list = { devices, ARRAY_LEN(devices) };
	struct dra_health_list back;

	(void)state;
	assert_bytes(kubemsg_encode(&kubemsg_dra_health, &list, arena), BYTES(health_wire));
	assert_int_equal(peer_decode_dra_health(BYTES(health_wire), arena, &back, NULL), 0);
	assert_int_equal(back.n, 2);
	assert_string_equal(back.v[0].message, "link is down");
	assert_int_equal(back.v[0].since_s, 1700000000);
	assert_int_equal(back.v[1].health, DRA_HEALTHY);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, arena_set_up, arena_tear_down)
	const struct CMUnitTest tests[] = {
		T(claims_are_the_kubelets_bytes),	T(claim_that_is_not_named_is_refused),
		T(number_of_claims_is_bounded),		T(prepared_devices_are_the_kubelets_bytes),
		T(every_unprepared_claim_has_an_entry), T(health_is_the_kubelets_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
