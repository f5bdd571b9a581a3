/* Claims of pods → devices: which container has which, for which GPUs, and what is refused. */
#include "unit/latebind/binding.h"

#include "dra/prepare.h"
#include "pool/node.h"

#define DRIVER "vf.railmate.io"
#define POOL                                                                                       \
	"{\"resourceList\": [{\"resourcePrefix\": \"rdma\", \"resourceName\": \"vf\", \"excludeTopology\": true, \"selectors\": {\"isRdma\": true}, \"railmate\": {\"binding\": \"late\"}}]}"
#define U0 "0b1a6e2c-55d0-4f0b-9d7e-6b1d1f0c9a55"
#define U1 "11111111-55d0-4f0b-9d7e-6b1d1f0c9a55"

/* --- the API server: claims by name, and the pod p --- */

static struct {
	struct claim {
		const char *name, *why; /* why: it cannot be had */
		struct draclaim claim;
		struct draclaim_device v[8];
		struct draclaim_user user;
	} claims[4];
	size_t n_claims;
	struct spec_container containers[3];
	struct spec_claim parts[3][4];
	struct spec_pod pod;
	const char *pod_why;
	bool stuck; /* claims are asked for and not answered yet */
	const char *asked;
	draclaim_done_fn claim_done;
	void *arg;
} api;

static struct claim *claim(const char *name, const char *uid)
{
	struct claim *c = &api.claims[api.n_claims++];

	*c = (struct claim) { .name = name, .user = { "p", "u1" } };
	c->claim = (struct draclaim) {
		.uid = uid, .name = name, .v = c->v, .users = &c->user, .n_users = 1
	};
	return c;
}

static struct draclaim_device *gives(struct claim *c, const char *request, const char *driver,
				     const char *device)
{
	struct draclaim_device *d = &c->v[c->claim.n++];

	*d = (struct draclaim_device) {
		.request = request, .driver = driver, .pool = "node", .device = device
	};
	return d;
}

static void uses(int container, const char *name, const char *request)
{
	struct spec_container *c = &api.containers[container];

	api.parts[container][c->n_claims++] = (struct spec_claim) { name, request };
}

static void tell_claim(void *arg)
{
	(void)arg;
	for (size_t i = 0; i < api.n_claims; i++) {
		const struct claim *c = &api.claims[i];

		if (strcmp(c->name, api.asked) != 0)
			continue;
		api.claim_done(api.arg, c->why ? NULL : &c->claim, c->why);
		return;
	}
	api.claim_done(api.arg, NULL, "there is none");
}

static void fetch_claim(void *ctx, const char *ns, const char *name, unsigned timeout_ms,
			draclaim_done_fn done, void *arg)
{
	(void)ctx;
	(void)timeout_ms;
	assert_string_equal(ns, "default");
	api.asked = arena_strdup(arena, name);
	api.claim_done = done;
	api.arg = arg;
	if (!api.stuck)
		rpc_after(rpc, 1, tell_claim, NULL);
}

/* A Pod in its envelope: as in a list of pods, with another tag before it. */
static struct bytes encode_pod(void)
{
	static const uint8_t magic[] = { 'k', '8', 's', '\0' };
	struct spec_list list = { &api.pod, 1 };
	struct bytes in = peer_encode_pod_specs(&list, arena);
	uint8_t *text = arena_alloc(arena, in.len + sizeof(magic));

	assert_int_equal(in.data[0], 1 << 3 | 2);
	memcpy(text, magic, sizeof(magic));
	memcpy(text + sizeof(magic), in.data, in.len);
	text[sizeof(magic)] = 2 << 3 | 2;
	return (struct bytes) { text, in.len + sizeof(magic) };
}

/* --- ResourceSlices of other drivers --- */

static struct {
	char text[600], path[200];
	bool is_pod, is_bad;
	const char *why; /* they cannot be had */
	unsigned asked;
	api_done_fn done;
	void *arg;
} slices_there;

static void tell_slices(void *arg)
{
	const struct bytes body = { (const uint8_t *)slices_there.text, strlen(slices_there.text) };

	(void)arg;
	if (slices_there.is_pod)
		slices_there.done(slices_there.arg, api.pod_why ? 503 : 200, encode_pod(),
				  slices_there.is_bad ? "a bad name" : api.pod_why);
	else
		slices_there.done(slices_there.arg, slices_there.why ? 503 : 200, body,
				  slices_there.why);
}

static void ask(void *ctx, const struct api_request *request, api_done_fn done, void *arg)
{
	(void)ctx;
	slices_there.is_pod = !request->path || !strncmp(request->path, "/api/v1/", 8);
	slices_there.is_bad = !request->path;
	if (slices_there.is_bad)
		;
	else if (slices_there.is_pod)
		assert_string_equal(request->path, "/api/v1/namespaces/default/pods/p");
	else
		slices_there.asked++;
	snprintf(slices_there.path, sizeof(slices_there.path), "%s",
		 request->path ? request->path : "");
	slices_there.done = done;
	slices_there.arg = arg;
	rpc_after(rpc, 1, tell_slices, NULL);
}

/* --- the driver --- */

static const struct draclaim_source claim_source = { fetch_claim, NULL };
static struct prepares *prepares;
static const char *state_path;

static void open_prepares(void *arg)
{
	const struct prepare_env env = { .rpc = rpc,
					 .driver = DRIVER,
					 .node_name = "worker-1",
					 .ask = ask,
					 .latebind = latebind,
					 .tracker = tracker,
					 .claims = &claim_source,
					 .state = state_path,
					 .state_ms = 5 };

	(void)arg;
	prepares = prepare_open(&env);
	prepare_update(prepares, machine.node);
}

static void close_prepares(void *arg)
{
	(void)arg;
	prepare_close(STEAL(prepares));
}

static int begin(void **state)
{
	(void)state;
	memset(&api, 0, sizeof(api));
	memset(&slices_there, 0, sizeof(slices_there));
	for (int i = 0; i < 3; i++)
		api.containers[i] = (struct spec_container) { .name = i == 0   ? "main"
								      : i == 1 ? "side"
									       : "other",
							      .kind = SPEC_APP,
							      .claims = api.parts[i] };
	api.pod = (struct spec_pod) { .ns = "default",
				      .name = "p",
				      .uid = "u1",
				      .containers = api.containers,
				      .n_containers = 3 };
	state_path = NULL;
	assert_int_equal(set_up_with(POOL), 0);
	on_rpc(open_prepares, NULL);
	return 0;
}

static int finish(void **state)
{
	on_rpc(close_prepares, NULL);
	return tear_down(state);
}

/* The answer, as text: "uid request=device:cdi,cdi …" or "uid: error". */
static struct {
	bool done;
	size_t n;
	char text[4][600], all[2000]; /* all: the first ones of all answers */
} replied;

static void note(void *arg, const struct dra_results *results)
{
	(void)arg;
	replied.n = results->n;
	for (size_t i = 0; i < results->n; i++) {
		const struct dra_result *r = &results->v[i];
		_cleanup_strbuf_ struct strbuf s = STRBUF_INIT;

		strbuf_printf(&s, "%s%s%s", r->uid, r->error ? ": " : "", r->error ? r->error : "");
		for (size_t k = 0; k < r->n; k++) {
			const struct dra_device *d = &r->v[k];

			strbuf_printf(&s, " %s=%s", d->requests.v[0], d->device);
			for (size_t m = 0; m < d->cdi.n; m++)
				strbuf_printf(&s, "%c%s", m ? ',' : ':', d->cdi.v[m]);
		}
		snprintf(replied.text[i], sizeof(replied.text[i]), "%s", strbuf_str(&s));
	}
	strcat(strcat(replied.all, replied.text[0]), ";");
	replied.done = true;
}

static bool is_replied(void)
{
	return replied.done;
}

struct call {
	struct dra_claim_refs refs;
	bool un;
};

static void call_fn(void *arg)
{
	struct call *c = arg;

	(c->un ? unprepare_claims : prepare_claims)(prepares, &c->refs, note, NULL);
}

static void start_call(bool un, const char *name, const char *other_name)
{
	struct dra_claim_ref v[] = { { "default", U0, name }, { "default", U1, other_name } };
	struct call c = { { v, other_name ? 2 : 1 }, un };

	memset(&replied, 0, sizeof(replied));
	on_rpc(call_fn, &c);
}

static void prepare(const char *name, const char *other_name)
{
	start_call(false, name, other_name);
	wait_until(is_replied);
}

static void unprepare(const char *name)
{
	start_call(true, name, NULL);
	wait_until(is_replied);
	assert_string_equal(replied.text[0], U0);
}

/* The VF that holds have for the slot of this number of a claim. */
static const char *vf_of(const char *uid, int number)
{
	const struct ledger *l = ledger_now(tracker_ledger(tracker));
	const char *slot = arena_printf(arena, "rdma_vf-c%s-%d", uid, number);
	const struct ledger_hold *hold = ledger_find_slot(l, slot);

	if (!hold)
		fail_msg("no VF for %s", slot);
	return arena_strdup(arena, hold->vf);
}

/* --- */

static void a_claim_gets_the_vfs_nearest_to_the_plugins_gpus(void **state)
{
	struct claim *c = claim("nics", U0);

	(void)state;
	gives(c, "nic", DRIVER, "rdma-vf-slot-4");
	gives(c, "nic", DRIVER, "rdma-vf-slot-5");
	uses(0, "nics", NULL);
	pod("p", HOLDS(GPU "=%s", gpus(6, 7)));
	prepare("nics", NULL);
	assert_string_equal(replied.text[0],
			    U0 " nic=rdma-vf-slot-4:railmate.io/vf=rdma_vf-c" U0
			       "-4 nic=rdma-vf-slot-5:railmate.io/vf=rdma_vf-c" U0 "-5");
	assert_int_equal(pf_of(vf_of(U0, 4)), 3);
	assert_int_equal(pf_of(vf_of(U0, 5)), 3);
	assert_non_null(spec("rdma_vf-c" U0 "-4"));
	assert_string_equal(hold_of(vf_of(U0, 4))->owner.container, "main");
}

/* As the scheduler makes it of limits: one claim of the pod, whose GPUs are in it. */
static void containers_of_one_claim_have_their_own(void **state)
{
	struct claim *c = claim("p-extended-resources", U0);

	(void)state;
	gives(c, "container-0-request-0", "gpu.nvidia.com", gpus(0, 0) + 0);
	c->v[0].device = arena_printf(arena, "gpu-%s", gpus(0, 0) + strlen("GPU-"));
	gives(c, "container-0-request-1", DRIVER, "rdma-vf-slot-0");
	gives(c, "container-1-request-0", "gpu.nvidia.com",
	      arena_printf(arena, "gpu-%s", gpus(7, 7) + strlen("GPU-")));
	gives(c, "container-1-request-1/sub", DRIVER, "rdma-vf-slot-1");
	uses(0, "p-extended-resources", "container-0-request-0");
	uses(0, "p-extended-resources", "container-0-request-1");
	uses(1, "p-extended-resources", "container-1-request-0");
	uses(1, "p-extended-resources", "container-1-request-1");
	pod_with("p", "", "");
	prepare("p-extended-resources", NULL);
	assert_string_equal(replied.text[0],
			    U0 " container-0-request-1=rdma-vf-slot-0:railmate.io/vf=rdma_vf-c" U0
			       "-0 container-1-request-1=rdma-vf-slot-1:railmate.io/vf=rdma_vf-c" U0
			       "-1");
	assert_int_equal(pf_of(vf_of(U0, 0)), 0);
	assert_int_equal(pf_of(vf_of(U0, 1)), 3);
	/* each has a spec of its own */
	assert_null(strstr(spec("rdma_vf-c" U0 "-0"), vf_of(U0, 1)));
	assert_null(strstr(spec("rdma_vf-c" U0 "-1"), vf_of(U0, 0)));
	assert_string_equal(hold_of(vf_of(U0, 1))->owner.container, "side");
}

static void claims_of_one_container_are_one_choice(void **state)
{
	struct claim *c = claim("a", U0), *d = claim("b", U1), *g = claim("gpus", "x");

	(void)state;
	gives(c, "nic", DRIVER, "rdma-vf-slot-0");
	gives(d, "nic", DRIVER, "rdma-vf-slot-1");
	gives(g, "gpu", "gpu.nvidia.com",
	      arena_printf(arena, "gpu-%s", gpus(4, 4) + strlen("GPU-")));
	uses(0, "a", NULL);
	uses(0, "b", "nic");
	uses(0, "gpus", NULL);
	pod("p", "");
	prepare("a", "b");
	assert_int_equal(pf_of(vf_of(U0, 0)), 2);
	assert_int_equal(pf_of(vf_of(U1, 1)), 2);
	assert_non_null(strstr(spec("rdma_vf-c" U0 "-0"), vf_of(U1, 1)));
	assert_string_equal(replied.text[1],
			    U1 " nic=rdma-vf-slot-1:railmate.io/vf=rdma_vf-c" U1 "-1");
}

static void a_gpu_of_any_driver_is_known_by_its_slice(void **state)
{
	struct claim *c = claim("all", U0);
	const int gpu = machine.node->inv->gpu[5].pci;
	char address[BDF_STRLEN];

	(void)state;
	gives(c, "gpu", "gpu.example.com", "card7");
	gives(c, "gpu", "gpu.example.com", "card8");
	gives(c, "nic", DRIVER, "rdma-vf-slot-0");
	uses(0, "all", NULL);
	pod("p", "");
	snprintf(
		slices_there.text, sizeof(slices_there.text),
		"{\"items\": [{\"spec\": {\"driver\": \"gpu.example.com\", \"pool\": {\"name\": \"node\"}, \"devices\": ["
		"{\"name\": \"card7\", \"attributes\": {\"resource.kubernetes.io/pciBusID\": {\"string\": \"%s\"}}},"
		"{\"name\": \"card8\"}]}}]}",
		bdf_format(machine.node->inv->pci[gpu].bdf, address));
	prepare("all", NULL);
	assert_int_equal(pf_of(vf_of(U0, 0)), 2);
	assert_int_equal(slices_there.asked, 1);
	assert_string_equal(
		slices_there.path,
		"/apis/resource.k8s.io/v1/resourceslices?fieldSelector=spec.nodeName%3Dworker-1,spec.driver%3Dgpu.example.com");
	unprepare("all");
	slices_there.why = "HTTP 503";
	prepare("all", NULL); /* no reason to let the pod wait */
	assert_int_equal(n_holds(), 1);
	unprepare("all");
	slices_there.why = NULL;
	strcpy(slices_there.text, "{\"items\": 7}");
	prepare("all", NULL);
	assert_int_equal(n_holds(), 1);
	unprepare("all");
	strcpy(slices_there.text, "{");
	prepare("all", NULL);
	assert_int_equal(n_holds(), 1);
}

static void a_share_of_a_rail_is_vfs_of_that_pf(void **state)
{
	struct claim *c = claim("rails", U0);
	const struct pool_dev *far;
	char *name;

	(void)state;
	far = &machine.node->pools[0].devs[machine.node->pools[0].n_devs - 1];
	name = arena_printf(arena, "rdma-vf-%s", pool_dev_place(far));
	for (char *p = name; *p; p++)
		*p = *p == ':' || *p == '.' ? '-' : *p;
	gives(c, "rail", DRIVER, name)->vfs = 2;
	c->v[0].share = "s1";
	gives(c, "rail", DRIVER, name)->vfs = 1;
	uses(0, "rails", NULL);
	pod("p", HOLDS(GPU "=%s", gpus(0, 1)));
	prepare("rails", NULL);
	for (int i = 0; i < 3; i++)
		assert_int_equal(pf_of(vf_of(U0, i)), 3);
	assert_non_null(strstr(replied.text[0], "-0,railmate.io/vf=rdma_vf-c" U0 "-1 rail="));
}

static void the_same_claim_again_gets_the_same(void **state)
{
	char first[sizeof(replied.text[0])];
	const char *vf;

	(void)state;
	gives(claim("nics", U0), "nic", DRIVER, "rdma-vf-slot-0");
	uses(1, "nics", NULL);
	pod_with("p", HOLDS(GPU "=%s", gpus(0, 0)), HOLDS(GPU "=%s", gpus(4, 4)));
	prepare("nics", NULL);
	strcpy(first, replied.text[0]);
	vf = vf_of(U0, 0);
	assert_int_equal(pf_of(vf), 2);
	prepare("nics", NULL);
	assert_string_equal(replied.text[0], first);
	assert_string_equal(vf_of(U0, 0), vf);
	unprepare("nics");
	assert_int_equal(n_holds(), 0);
	unprepare("nics"); /* not known any more: fine */
}

static void is_refused(const char *why)
{
	prepare("nics", NULL);
	if (!strstr(replied.text[0], why))
		fail_msg("'%s' does not say '%s'", replied.text[0], why);
	assert_int_equal(n_holds(), 0);
}

static void a_claim_that_cannot_be_prepared_is_refused_with_a_reason(void **state)
{
	struct claim *c = claim("nics", U0);

	(void)state;
	uses(0, "nics", NULL);
	is_refused("no device of vf.railmate.io: is it allocated?");
	gives(c, "nic", DRIVER, "rdma-nothing-slot-0");
	is_refused("device rdma-nothing-slot-0 of request nic is of no pool of this node");
	c->v[0].device = "rdma-vf-slot-0";
	is_refused("PodResources does not show pod default/p");
	pod("p", "");
	c->why = "HTTP 403";
	is_refused("the claim cannot be read: HTTP 403");
	c->why = NULL;
	c->claim.uid = U1;
	is_refused("another claim of that name");
	c->claim.uid = U0;
	api.pod_why = "timed out";
	is_refused("no pod that the claim is reserved for is known: timed out");
	api.pod_why = NULL;
	api.pod.deleted = true;
	is_refused("no pod that the claim is reserved for is known: it is reserved for none");
	api.pod.deleted = false;
	c->user.uid = "u2";
	is_refused("no pod that the claim is reserved for");
	c->user.uid = "u1";
	c->claim.n_users = 0;
	is_refused("it is reserved for none");
	c->claim.n_users = 1;
	c->user.pod = "../p";
	is_refused("no pod that the claim is reserved for is known");
	c->user.pod = "p";
	c->v[0].admin = true;
	is_refused("request nic has adminAccess");
	c->v[0].admin = false;
	prepare("nics", NULL);
	assert_int_equal(n_holds(), 1);
}

static void a_pod_gets_all_its_claims_or_none(void **state)
{
	(void)state;
	gives(claim("a", U0), "nic", DRIVER, "rdma-vf-slot-0");
	claim("b", U1)->why = "HTTP 500";
	uses(0, "a", NULL);
	uses(0, "b", NULL);
	pod("p", "");
	prepare("a", "b");
	assert_string_equal(replied.text[0], U0 ": claim default/b of the same pod: the claim "
						"cannot be read: HTTP 500");
	assert_string_equal(replied.text[1], U1 ": the claim cannot be read: HTTP 500");
	assert_int_equal(n_holds(), 0);
}

static void gpus_of_a_claim_that_cannot_be_read_are_told(void **state)
{
	const struct ledger_decision *d;

	(void)state;
	gives(claim("nics", U0), "nic", DRIVER, "rdma-vf-slot-0");
	claim("gpus", "x")->why = "HTTP 403";
	uses(0, "nics", NULL);
	uses(0, "gpus", NULL);
	pod("p", "");
	prepare("nics", NULL);
	assert_int_equal(n_holds(), 1);
	d = ledger_decision_at(ledger_now(tracker_ledger(tracker)), 0);
	assert_string_equal(d->source, "the GPUs of claim gpus are not known: HTTP 403");
	assert_int_not_equal(d->known, LEDGER_GPUS_KNOWN);
}

static void note_saved(void *arg)
{
	*(bool *)arg = true;
}

static bool saved;

static bool is_saved(void)
{
	return saved;
}

static void save(void *arg)
{
	(void)arg;
	tracker_save(tracker, note_saved, &saved);
}

/* The kubelet may prepare it anew once it has the answer. */
static void a_claim_that_is_unprepared_meanwhile_holds_nothing(void **state)
{
	(void)state;
	gives(claim("nics", U0), "nic", DRIVER, "rdma-vf-slot-0");
	uses(0, "nics", NULL);
	pod("p", "");
	api.stuck = true;
	start_call(false, "nics", NULL);
	start_call(true, "nics", NULL);
	saved = false;
	on_rpc(save, NULL);
	wait_until(is_saved);
	assert_string_equal(replied.all, "");
	api.stuck = false;
	on_rpc(tell_claim, NULL);
	assert_string_equal(replied.all, U0 ": the claim was unprepared meanwhile;" U0 ";");
	assert_int_equal(n_holds(), 0);
}

static void unprepare_meanwhile_is_of_the_named_claim_alone(void **state)
{
	const char *shared;

	(void)state;
	gives(claim("own", U0), "nic", DRIVER, "rdma-vf-slot-0");
	gives(claim("shared", U1), "nic", DRIVER, "rdma-vf-slot-1");
	uses(0, "own", NULL);
	uses(0, "shared", NULL);
	pod("p", "");
	prepare("own", "shared");
	shared = vf_of(U1, 1);
	/* The kubelet restarts, and names both again, for a new sandbox; another pod runs with the
	 * shared claim. Then that pod is deleted: its own claim is unprepared, the shared one is
	 * not. */
	api.stuck = true;
	start_call(false, "own", "shared");
	start_call(true, "own", NULL);
	api.stuck = false;
	on_rpc(tell_claim, NULL);
	wait_until(is_replied);
	assert_int_equal(n_holds(), 1);
	assert_string_equal(vf_of(U1, 1), shared);
}

static void a_record_that_is_read_later_is_not_of_a_claim_that_was_unprepared(void **state)
{
	char *aside = arena_printf(arena, "%s.aside", cdi_dir);

	(void)state;
	gives(claim("nics", U0), "nic", DRIVER, "rdma-vf-slot-0");
	uses(0, "nics", NULL);
	pod("p", "");
	prepare("nics", NULL);
	on_rpc(close_prepares, NULL);
	on_rpc(end_all, NULL);
	assert_int_equal(rename(cdi_dir, aside), 0);
	assert_int_equal(symlink(cdi_dir, cdi_dir), 0); /* cannot be opened */
	on_rpc(begin_all, NULL);
	on_rpc(open_prepares, NULL);
	start_call(true, "nics", NULL);
	wait_until(is_replied);
	assert_string_equal(replied.text[0], U0 ": not all records of what is held were read yet");
	assert_int_equal(unlink(cdi_dir), 0);
	assert_int_equal(rename(aside, cdi_dir), 0);
	on_rpc(close_prepares, NULL);
	on_rpc(end_all, NULL);
	on_rpc(begin_all, NULL);
	on_rpc(open_prepares, NULL);
	assert_int_equal(n_holds(), 1);
	prepare("nics", NULL); /* the kubelet lists its pods */
	unprepare("nics");
	assert_int_equal(n_holds(), 0);
}

static void write_state(const char *text)
{
	char *temporary = arena_printf(arena, "%s.new", state_path);
	FILE *f = fopen(temporary, "w");

	fputs(text, f);
	fclose(f);
	assert_int_equal(rename(temporary, state_path), 0);
}

static bool holds_none(void)
{
	return !n_holds();
}

#define STATE(list) "{\"Data\":\"{\\\"ClaimInfoStateList\\\":" list "}\",\"Checksum\":1}"

static void a_claim_that_the_kubelet_has_forgotten_holds_nothing(void **state)
{
	static const char *const keeps[] = { "", "{}",
					     STATE("[{\\\"ClaimUID\\\":\\\"" U0 "\\\"}]") };

	(void)state;
	gives(claim("nics", U0), "nic", DRIVER, "rdma-vf-slot-0");
	uses(0, "nics", NULL);
	pod("p", "");
	prepare("nics", NULL);
	on_rpc(close_prepares, NULL);
	state_path = arena_printf(arena, "%s/dra_manager_state", machine.dir);
	on_rpc(open_prepares, NULL); /* without the file */
	for (size_t i = 0; i < ARRAY_LEN(keeps); i++) {
		write_state(keeps[i]);
		usleep(30000);
		assert_int_equal(n_holds(), 1);
	}
	write_state(STATE("[{\\\"ClaimUID\\\":\\\"" U1 "\\\"}]"));
	wait_until(holds_none);
}

#define OF_PODS(pods) STATE("[{\\\"ClaimUID\\\":\\\"" U0 "\\\",\\\"PodUIDs\\\":{" pods "}}]")

static void run_pods(void *uids)
{
	running = uids;
}

/* Its first pod has ended; others were deleted by force, and live on. */
static void a_claim_is_its_pods_that_run(void **state)
{
	const char *vf;

	(void)state;
	gives(claim("nics", U0), "nic", DRIVER, "rdma-vf-slot-0");
	uses(0, "nics", NULL);
	pod("p", "");
	on_rpc(show_cgroups, NULL);
	prepare("nics", NULL);
	vf = vf_of(U0, 0);
	on_rpc(close_prepares, NULL);
	state_path = arena_printf(arena, "%s/dra_manager_state", machine.dir);
	write_state(OF_PODS("\\\"u8\\\":{},\\\"u9\\\":{}"));
	on_rpc(open_prepares, NULL);
	usleep(30000);
	write_state(OF_PODS("\\\"u9\\\":{}"));
	on_rpc(run_pods, (char *)"u8,u9");
	start_call(true, "nics", NULL);
	wait_until(is_replied);
	assert_string_equal(replied.text[0], U0 ": several pods of it that were deleted still run");
	on_rpc(run_pods, (char *)"u8");
	unprepare("nics");
	assert_true(hold_of(vf)->draining);
	assert_string_equal(hold_of(vf)->owner.uid, "u8");
}

#define P(f) cmocka_unit_test_setup_teardown(f, begin, finish)

int main(void)
{
	const struct CMUnitTest tests[] = {
		P(a_claim_gets_the_vfs_nearest_to_the_plugins_gpus),
		P(containers_of_one_claim_have_their_own),
		P(claims_of_one_container_are_one_choice),
		P(a_gpu_of_any_driver_is_known_by_its_slice),
		P(a_share_of_a_rail_is_vfs_of_that_pf),
		P(the_same_claim_again_gets_the_same),
		P(a_claim_that_cannot_be_prepared_is_refused_with_a_reason),
		P(a_pod_gets_all_its_claims_or_none),
		P(gpus_of_a_claim_that_cannot_be_read_are_told),
		P(a_claim_that_is_unprepared_meanwhile_holds_nothing),
		P(unprepare_meanwhile_is_of_the_named_claim_alone),
		P(a_record_that_is_read_later_is_not_of_a_claim_that_was_unprepared),
		P(a_claim_that_the_kubelet_has_forgotten_holds_nothing),
		P(a_claim_is_its_pods_that_run),
	};

	return cmocka_run_group_tests(tests, start_rpc, stop_rpc);
}
