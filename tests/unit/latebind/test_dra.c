/* Containers of a pod share a ResourceClaim: which of its GPUs are whose? */
#include "unit/latebind/binding.h"

static const char *gpu_device(int i)
{
	return arena_printf(arena, "gpu-%s", machine.node->inv->gpu[i].uuid + strlen("GPU-"));
}

/* What the kubelet shows of a claim with these GPUs. */
static void show_claim(struct pod_container *c, const char *claim, int first, int second)
{
	const int gpu[] = { first, second };

	c->dynamic = arena_array(arena, 2, sizeof(*c->dynamic));
	for (; c->n_dynamic < 2; c->n_dynamic++)
		c->dynamic[c->n_dynamic] = (struct dynamic) {
			"gpu.nvidia.com", "node", gpu_device(gpu[c->n_dynamic]), { NULL, 0 }, claim
		};
}

/* --- who tells; a little later --- */

static struct {
	struct spec_claim parts[2]; /* of the containers main and side */
	struct draclaim claim;
	const char *specs_why, *claim_why; /* NULL: they can be had */
	unsigned spec_fetches, claim_fetches;
	char asked[64];
	podspec_done_fn latebind_specs_done;
	draclaim_done_fn claim_done;
	void *arg;
} source;

static void tell_specs(void *arg)
{
	struct spec_container c[] = { { "main", SPEC_APP, NULL, 0, &source.parts[0], 1 },
				      { "side", SPEC_APP, NULL, 0, &source.parts[1], 1 } };
	struct spec_pod v = { .ns = "default", .name = "p", .containers = c, .n_containers = 2 };
	struct spec_list list = { &v, 1 };

	(void)arg;
	source.latebind_specs_done(source.arg, source.specs_why ? NULL : &list, source.specs_why);
}

static void fetch_specs(void *ctx, unsigned timeout_ms, podspec_done_fn done, void *arg)
{
	(void)ctx;
	(void)timeout_ms;
	source.spec_fetches++;
	source.latebind_specs_done = done;
	source.arg = arg;
	rpc_after(rpc, 1, tell_specs, NULL);
}

static void tell_claim(void *arg)
{
	(void)arg;
	source.claim_done(source.arg, source.claim_why ? NULL : &source.claim, source.claim_why);
}

static void fetch_claim(void *ctx, const char *ns, const char *name, unsigned timeout_ms,
			draclaim_done_fn done, void *arg)
{
	(void)ctx;
	(void)timeout_ms;
	source.claim_fetches++;
	snprintf(source.asked, sizeof(source.asked), "%s/%s", ns, name);
	source.claim_done = done;
	source.arg = arg;
	rpc_after(rpc, 1, tell_claim, NULL);
}

static struct draclaim_device given_device(const char *request, const char *pool, int gpu)
{
	return (struct draclaim_device) { .request = request,
					  .driver = "gpu.nvidia.com",
					  .pool = pool,
					  .device = gpu_device(gpu) };
}

/* A pod of two containers with a VF each that share a claim of GPU 6 and GPU 0; by default "main"
 * has GPU 6.
 */
static int set_up_sharing(void **state)
{
	static const struct podspec_source specs = { "test", fetch_specs, NULL };
	static const struct draclaim_source claims = { fetch_claim, NULL };
	static struct draclaim_device given[3];
	int r = set_up(state);

	given[0] = given_device("gpu-a/large", "node", 6);
	given[1] = given_device("gpu-b", "node", 0);
	given[2] = given_device("gpu-b", "another node", 6);
	memset(&source, 0, sizeof(source));
	source.claim = (struct draclaim) { .v = given, .n = 3 };
	source.parts[0] = (struct spec_claim) { "c", "gpu-a" };
	source.parts[1] = (struct spec_claim) { "c", "gpu-b" };
	latebind->env.specs = &specs;
	latebind->env.claims = &claims;
	pod_with("p", HOLDS("rdma/vf=%s", slots(0, 0, 0)), HOLDS("rdma/vf=%s", slots(0, 1, 1)));
	show_claim(&pods[0].containers[0], "c", 6, 0);
	show_claim(&pods[0].containers[1], "c", 6, 0);
	return r;
}

static const struct ledger_decision *last_decision(void)
{
	const struct ledger *l = ledger_now(tracker_ledger(tracker));

	return ledger_decision_at(l, ledger_decisions(l) - 1);
}

static void each_container_gets_the_vf_of_its_own_request(void **state)
{
	(void)state;
	bind_slots(slots(0, 0, 0));
	assert_int_equal(pf_of(got.vf[0]), 3);
	assert_string_equal(source.asked, "default/c");
	bind_slots(slots(0, 1, 1));
	assert_int_equal(pf_of(got.vf[0]), 0);
	assert_int_equal(last_decision()->known, LEDGER_GPUS_KNOWN);
	assert_int_equal(last_decision()->n_gpus, 1);
}

static void whichever_starts_first(void **state)
{
	(void)state;
	bind_slots(slots(0, 1, 1));
	assert_int_equal(pf_of(got.vf[0]), 0);
	bind_slots(slots(0, 0, 0));
	assert_int_equal(pf_of(got.vf[0]), 3);
}

static void a_container_that_starts_again_asks_nobody(void **state)
{
	(void)state;
	bind_slots(slots(0, 0, 0));
	source.claim_why = "the API server is away";
	bind_slots(slots(0, 0, 0));
	assert_int_equal(pf_of(got.vf[0]), 3);
	assert_int_equal(source.claim_fetches, 1);
	assert_int_equal(source.spec_fetches, 1);
}

static void a_part_without_a_request_is_all_of_it(void **state)
{
	(void)state;
	source.parts[0].request = NULL;
	bind_slots(slots(0, 0, 0));
	assert_int_equal(last_decision()->n_gpus, 2);
	assert_int_equal(last_decision()->known, LEDGER_GPUS_KNOWN);
	assert_int_equal(source.claim_fetches, 0);
}

static void no_claim_is_asked_for_that_is_not_shared(void **state)
{
	(void)state;
	pods[0].containers[1].n_dynamic = 0;
	show_claim(&pods[0].containers[1], "d", 1, 2);
	source.parts[1].claim = "d";
	bind_slots(slots(0, 0, 0));
	assert_int_equal(last_decision()->n_gpus, 2);
	assert_int_equal(source.claim_fetches, 0);
	source.specs_why = "HTTP 500"; /* it does not matter */
	bind_slots(slots(0, 1, 1));
	assert_int_equal(last_decision()->n_gpus, 2);
	assert_int_equal(last_decision()->known, LEDGER_GPUS_KNOWN);
}

/* No list of the kubelet's shows what it has. */
static void an_init_container_may_have_the_other_part(void **state)
{
	(void)state;
	pods[0].n_containers = 1;
	bind_slots(slots(0, 0, 0));
	assert_int_equal(pf_of(got.vf[0]), 3);
	assert_int_equal(last_decision()->n_gpus, 1);
}

static void nobody_is_asked_about_one_gpu_that_both_have(void **state)
{
	(void)state;
	for (size_t i = 0; i < 2; i++)
		pods[0].containers[i].n_dynamic = 1;
	bind_slots(slots(0, 0, 0));
	assert_int_equal(pf_of(got.vf[0]), 3);
	assert_int_equal(source.spec_fetches, 0);
}

static void doubted(const char *why)
{
	bind_slots(slots(0, 0, 0));
	assert_int_equal(last_decision()->n_gpus, 2);
	assert_int_equal(last_decision()->known, LEDGER_GPUS_PREDICTED);
	assert_string_equal(last_decision()->source,
			    HOLDS("which GPUs of its claim c it has is not known: %s", why));
	assert_non_null(strstr(last_note, last_decision()->source));
}

static void a_claim_that_cannot_be_read_is_said_so(void **state)
{
	(void)state;
	source.claim_why = "HTTP 403";
	doubted("HTTP 403");
}

static void pod_specs_that_cannot_be_read_are_said_so(void **state)
{
	(void)state;
	source.specs_why = "HTTP 500";
	doubted("HTTP 500");
}

static void without_an_api_server_it_is_said_so(void **state)
{
	(void)state;
	latebind->env.claims = NULL;
	doubted("there is no API server to ask");
}

static void without_pod_specs_it_is_said_so(void **state)
{
	(void)state;
	latebind->env.specs = NULL;
	doubted("the pod specs do not say");
}

#undef T
#define T(test) cmocka_unit_test_setup_teardown(test, set_up_sharing, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(each_container_gets_the_vf_of_its_own_request),
		T(whichever_starts_first),
		T(a_container_that_starts_again_asks_nobody),
		T(a_part_without_a_request_is_all_of_it),
		T(no_claim_is_asked_for_that_is_not_shared),
		T(an_init_container_may_have_the_other_part),
		T(nobody_is_asked_about_one_gpu_that_both_have),
		T(a_claim_that_cannot_be_read_is_said_so),
		T(pod_specs_that_cannot_be_read_are_said_so),
		T(without_an_api_server_it_is_said_so),
		T(without_pod_specs_it_is_said_so),
	};

	return cmocka_run_group_tests(tests, start_rpc, stop_rpc);
}
