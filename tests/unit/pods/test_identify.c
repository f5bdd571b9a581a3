#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/mem.h"
#include "hw/inventory.h"
#include "kubemsg/podspec.h"
#include "pods/pods-internal.h"

#define RES "rdma/vf"

/* Eight NVIDIA GPUs, one AMD, one Intel; PCI index = GPU index. */
static struct hw_pci pci[10];
static struct hw_gpu gpus[10];
static const char *const uuids[8] = { "GPU-0", "GPU-1", "GPU-2", "GPU-3",
				      "GPU-4", "GPU-5", "GPU-6", "GPU-7" };
static const struct hw_inventory inv = { .pci = pci, .n_pci = 10, .gpu = gpus, .n_gpu = 10 };

static struct arena *a;
static struct seen_pods *seen;
static const struct pods_question nobody_asks = { .resource = RES };

static int setup(void **state)
{
	(void)state;
	for (int i = 0; i < 10; i++) {
		pci[i] = (struct hw_pci) { .bdf = { 0, (uint8_t)(0x10 + i), 0, 0 },
					   .class_code = 0x030200,
					   .vendor = i < 8    ? 0x10de
						     : i == 8 ? 0x1002
							      : 0x8086,
					   .parent = -1,
					   .physfn = -1,
					   .vf_index = -1,
					   .numa = -1 };
		gpus[i] = (struct hw_gpu) { .pci = i,
					    .vendor = i < 8    ? "NVIDIA"
						      : i == 8 ? "AMD"
							       : "Intel",
					    .uuid = i < 8 ? uuids[i] : NULL,
					    .minor = -1,
					    .card = i == 9 ? 3 : -1 };
	}
	a = arena_new(0);
	seen = NULL;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	pods_seen_free(seen);
	arena_free(a);
	return 0;
}

/*
 * A list as text: "pod/container: resource=id,id resource=id; …". A pod goes on while the name
 * stays the same. "g" stands for nvidia.com/gpu, "v" for our resource.
 */
static struct ids parse_ids(char *text)
{
	struct ids ids = { arena_array(a, 16, sizeof(*ids.v)), 0 };
	char *save;

	for (char *id = strtok_r(text, ",", &save); id; id = strtok_r(NULL, ",", &save))
		ids.v[ids.n++] = id;
	return ids;
}

static struct pod_container parse_container(char *text)
{
	struct pod_container c = { .held = arena_array(a, 8, sizeof(*c.held)) };
	char *save, *colon = strchr(text, ':');

	*colon = '\0';
	c.name = text;
	for (char *h = strtok_r(colon + 1, " ", &save); h; h = strtok_r(NULL, " ", &save)) {
		char *equal = strchr(h, '=');

		*equal = '\0';
		if (!strcmp(h, "g"))
			h = arena_strdup(a, "nvidia.com/gpu");
		else if (!strcmp(h, "v"))
			h = arena_strdup(a, RES);
		c.held[c.n_held++] = (struct held) { h, parse_ids(equal + 1) };
	}
	return c;
}

static struct pod_list parse(const char *text)
{
	struct pod_list l = { arena_array(a, 16, sizeof(*l.v)), 0 };
	char *save;

	for (char *entry = strtok_r(arena_strdup(a, text), ";", &save); entry;
	     entry = strtok_r(NULL, ";", &save)) {
		char *slash;
		struct pod *p;

		entry += strspn(entry, " ");
		slash = strchr(entry, '/');
		*slash = '\0';
		p = l.n ? &l.v[l.n - 1] : NULL;
		if (!p || strcmp(p->name, entry) != 0) {
			p = &l.v[l.n++];
			*p = (struct pod) { "default", entry,
					    arena_array(a, 8, sizeof(*p->containers)), 0 };
		}
		p->containers[p->n_containers++] = parse_container(slash + 1);
	}
	return l;
}

static struct identified look_in_doubt(const char *text, size_t want, bool doubted)
{
	struct pod_list l = parse(text);
	const struct pods_question q = { .resource = RES, .want = want, .doubted = doubted };

	return pods_identify(&l, &q, &inv, &seen, a);
}

static struct identified look(const char *text, size_t want)
{
	return look_in_doubt(text, want, false);
}

static void assert_found(const struct identified *who, const char *pod, const char *container,
			 const char *gpus_text)
{
	char text[64] = "";

	if (!who->found)
		fail_msg("not found: %s", who->why);
	for (size_t i = 0; i < who->gpus.n; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%d", i ? "," : "",
			 who->gpus.v[i]);
	assert_string_equal(who->owner.ns, "default");
	assert_string_equal(who->owner.pod, pod);
	assert_string_equal(who->owner.container, container);
	assert_string_equal(text, gpus_text);
}

static void assert_busy(const struct identified *who, const char *want)
{
	char text[64] = "";

	for (size_t i = 0; i < who->busy_gpus.n; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%d", i ? "," : "",
			 who->busy_gpus.v[i]);
	assert_string_equal(text, want);
}

static void finds_the_container_that_has_its_gpus_already(void **state)
{
	struct identified who = look("p0/main: g=GPU-3,GPU-1", 2);

	(void)state;
	assert_found(&who, "p0", "main", "1,3");
	assert_busy(&who, "");
	assert_string_equal(who.why, "default/p0 container main holds 2 GPUs and no rdma/vf yet");
}

static void parts_of_gpus_that_are_not_known_are_counted(void **state)
{
	static const struct {
		const char *list, *gpus, *why;
		size_t unknown;
	} rows[] = {
		{ "p0/main: g=GPU-3,GPU-9", "3",
		  "2 GPUs or parts of them, of which 1 are not known", 1 },
		{ "p0/main: g=GPU-1 nvidia.com/mig-1g.10gb=MIG-1,MIG-2", "1",
		  "3 GPUs or parts of them, of which 2 are not known", 2 },
		{ "p0/main: amd.com/gpu=0000:18:00.0,amdgpu_xcp_7,amdgpu_xcp_8", "8",
		  "3 GPUs or parts of them, of which 2 are not known", 2 },
		{ "p0/main: g=GPU-3 example.com/fpga=f1", "3", "1 GPUs", 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct identified who = look(rows[i].list, 3);

		assert_found(&who, "p0", "main", rows[i].gpus);
		assert_int_equal(who.gpus.n_unknown, rows[i].unknown);
		assert_non_null(strstr(who.why, rows[i].why));
		pods_seen_free(seen);
		seen = NULL;
	}
}

static void finds_nothing_when_the_vf_comes_first(void **state)
{
	struct identified who = look("p0/main:", 2);

	(void)state;
	assert_false(who.found);
	assert_string_equal(
		who.why,
		"none of the 0 containers with GPUs is new and without rdma/vf: the container that asks has no GPUs, or gets them later");
}

static void complete_pods_are_no_candidates_and_their_gpus_are_busy(void **state)
{
	struct identified who = look("p0/main: g=GPU-0,GPU-1 v=x,y; p1/main: g=GPU-4", 1);

	(void)state;
	assert_found(&who, "p1", "main", "4");
	assert_busy(&who, "0,1");
}

static void gpu_only_pod_of_before_is_not_mistaken(void **state)
{
	struct identified who = look("old/main: g=GPU-0; p0/main: g=GPU-1 v=x", 1);

	(void)state;
	who = look("old/main: g=GPU-0; p0/main: g=GPU-1 v=x; p1/main: g=GPU-2", 1);
	assert_found(&who, "p1", "main", "2");
	assert_busy(&who, "0,1");
}

static void pods_noted_at_start_are_old(void **state)
{
	struct pod_list l = parse("old/main: g=GPU-0; older/main: g=GPU-5");
	struct identified who;

	(void)state;
	pods_identify(&l, &nobody_asks, &inv, &seen, a);
	who = look("older/main: g=GPU-5; p1/main: g=GPU-2; old/main: g=GPU-0", 1);
	assert_found(&who, "p1", "main", "2");
}

static void who_was_there_at_a_doubtful_start_is_old_only_beside_somebody_new(void **state)
{
	struct pod_list l = parse("old/main: g=GPU-0; p1/main: g=GPU-2,GPU-3");
	struct identified who;

	(void)state;
	pods_identify(&l, &nobody_asks, &inv, &seen, a);
	who = look_in_doubt("old/main: g=GPU-0; p1/main: g=GPU-2,GPU-3", 2, true);
	assert_found(&who, "p1", "main", "2,3");
	/* the doubt was about one call */
	who = look("old/main: g=GPU-0; p1/main: g=GPU-2,GPU-3 v=x,y; p2/main: ", 2);
	assert_false(who.found);
	pods_identify(&l, &nobody_asks, &inv, &seen, a);
	who = look_in_doubt("old/main: g=GPU-0; p1/main: g=GPU-2,GPU-3; p2/main: g=GPU-1", 2, true);
	assert_found(&who, "p2", "main", "1");
}

static void wrong_guess_is_not_repeated(void **state)
{
	struct identified who;

	(void)state;
	/* p0 asks VF-first, and a GPU-only pod came just before: it looks like the one */
	who = look("gpuonly/main: g=GPU-0; p0/main:", 1);
	assert_found(&who, "gpuonly", "main", "0");
	/* but the VF went to p0 */
	who = look("gpuonly/main: g=GPU-0; p0/main: v=x g=GPU-1; p1/main:", 1);
	assert_false(who.found);
	who = look("gpuonly/main: g=GPU-0; p0/main: v=x g=GPU-1; p1/main: v=y; p2/main: g=GPU-2",
		   1);
	assert_found(&who, "p2", "main", "2");
}

static void pod_that_comes_back_under_its_name_is_new(void **state)
{
	struct identified who = look("worker-0/main: g=GPU-0,GPU-1", 2);

	(void)state;
	assert_found(&who, "worker-0", "main", "0,1");
	/* it got its VFs, ended, and came back with the same GPUs, all unseen */
	who = look("worker-0/main: g=GPU-0,GPU-1", 2);
	assert_found(&who, "worker-0", "main", "0,1");
	/* seen with its VFs in between, and back with others */
	who = look("worker-0/main: g=GPU-0,GPU-1 v=x,y; p/main:", 1);
	assert_false(who.found);
	who = look("worker-0/main: g=GPU-1,GPU-2", 2);
	assert_found(&who, "worker-0", "main", "1,2");
}

static void two_new_candidates_are_told_apart_by_count(void **state)
{
	struct identified who = look("a/main: g=GPU-0; b/main: g=GPU-1,GPU-2", 2);

	(void)state;
	assert_found(&who, "b", "main", "1,2");
	assert_busy(&who, "0");
}

static void two_equal_candidates_are_not_guessed_at(void **state)
{
	struct identified who = look("a/main: g=GPU-0; b/main: g=GPU-1", 1);

	(void)state;
	assert_false(who.found);
	assert_int_equal(who.gpus.n, 0);
	assert_busy(&who, "0,1");
	assert_string_equal(
		who.why,
		"2 containers, default/a among them, hold GPUs and no rdma/vf, and it is not known which one asks");
	/* and neither is one of them later */
	who = look("a/main: g=GPU-0; b/main: g=GPU-1 v=x; c/main: g=GPU-2", 1);
	assert_found(&who, "c", "main", "2");
}

static void last_container_of_a_pod_is_the_one_in_admission(void **state)
{
	struct identified who = look("p0/one: g=GPU-0; p0/two: g=GPU-1; p0/three:", 1);

	(void)state;
	assert_found(&who, "p0", "two", "1");
	assert_busy(&who, "0");
}

static void second_container_of_a_pod_is_found_after_the_first(void **state)
{
	struct identified who = look("p0/one: g=GPU-0; p0/two:", 1);

	(void)state;
	assert_found(&who, "p0", "one", "0");
	who = look("p0/one: g=GPU-0 v=x; p0/two: g=GPU-1", 1);
	assert_found(&who, "p0", "two", "1");
}

static void new_pod_is_preferred_to_one_that_was_there_before(void **state)
{
	struct identified who = look("p0/one: g=GPU-0; p0/two:", 1);

	(void)state;
	assert_found(&who, "p0", "one", "0");
	/* p0/two was GPU-only and p0 is complete: p1 asks */
	who = look("p1/main: g=GPU-2; p0/one: g=GPU-0 v=x; p0/two: g=GPU-1", 1);
	assert_found(&who, "p1", "main", "2");
}

static void devices_set_aside_tell_the_pod(void **state)
{
	struct pod_list l = parse("a/main: g=GPU-0; b/side: v=x; b/main: g=GPU-1");
	const char *x[] = { "x" };
	const struct pods_question q = { .resource = RES, .want = 1, .must = { x, 1 } };
	struct identified who = pods_identify(&l, &q, &inv, &seen, a);

	(void)state;
	assert_found(&who, "b", "main", "1");
}

static void ids_of_every_vendor_are_understood(void **state)
{
	struct identified who = look("p0/main: g=GPU-2::3,GPU-2::4,GPU-0::1", 2);

	(void)state;
	assert_found(&who, "p0", "main", "0,2");
	who = look("amd/main: amd.com/gpu=0000:18:00.0", 1);
	assert_found(&who, "amd", "main", "8");
	who = look("intel/main: gpu.intel.com/i915=card3-0", 1);
	assert_found(&who, "intel", "main", "9");
}

static void gpus_that_nobody_knows_do_not_count(void **state)
{
	struct identified who =
		look("mig/main: nvidia.com/mig-1g.10gb=MIG-123; other/main: x.com/fpga=f0", 1);

	(void)state;
	assert_false(who.found);
	assert_busy(&who, "");
}

static void empty_list_is_fine(void **state)
{
	struct pod_list none = { NULL, 0 };
	const struct pods_question q = { .resource = RES, .want = 1 };
	struct identified who = pods_identify(&none, &q, &inv, &seen, a);

	(void)state;
	assert_false(who.found);
	assert_int_equal(who.busy_gpus.n, 0);
}

/* The kubelet lists them in another order each time (docs/design/kubelet.md §2). */
static void a_pod_is_found_in_whatever_order_they_are_listed(void **state)
{
	static const char *const names[] = { "p7", "p8", "p9", "p6", "p10", "p1" };
	struct pod pods[6];
	struct pod_list list = { pods, 6 };

	(void)state;
	for (size_t i = 0; i < list.n; i++)
		pods[i] = (struct pod) { .ns = "default", .name = names[i] };
	for (size_t i = 0; i < list.n; i++)
		kubemsg_pods_sort(pods, list.n);
	for (size_t i = 0; i < list.n; i++)
		assert_string_equal(kubemsg_pods_find(&list, "default", names[i])->name, names[i]);
	assert_null(kubemsg_pods_find(&list, "default", "p2"));
}

/* --- with pod specs --- */

/*
 * Specs as text: "pod/container: v=2 g=4; …" with the mark "+" before the container's name for an
 * init container and
 * "*" for a sidecar; before the pod's name "!" for one that is over and "-" for one that is
 * deleted. Every pod was created a second after the one before; those whose names begin with
 * "static" have no such time.
 */
static struct spec_container parse_spec_container(char *text)
{
	struct spec_limit *limits = arena_array(a, 8, sizeof(*limits));
	struct spec_container c = { .kind = SPEC_APP, .limits = limits };
	char *save, *colon = strchr(text, ':');

	*colon = '\0';
	if (*text == '+')
		c.kind = SPEC_INIT;
	else if (*text == '*')
		c.kind = SPEC_SIDECAR;
	c.name = text + (c.kind != SPEC_APP);
	for (char *l = strtok_r(colon + 1, " ", &save); l; l = strtok_r(NULL, " ", &save)) {
		limits[c.n_limits].resource = l[0] == 'g' ? "nvidia.com/gpu" : RES;
		limits[c.n_limits++].count = atoi(l + 2);
	}
	return c;
}

static struct spec_list parse_specs(const char *text)
{
	struct spec_pod *pods = arena_array(a, 16, sizeof(*pods)), *p = NULL;
	size_t n = 0;
	char *save;

	for (char *entry = strtok_r(arena_strdup(a, text), ";", &save); entry;
	     entry = strtok_r(NULL, ";", &save)) {
		char *slash, *name = entry + strspn(entry, " ");
		struct spec_container *containers;
		bool unread = *name == '!', deleted = *name == '-';

		name += unread || deleted;
		slash = strchr(name, '/');
		*slash = '\0';
		if (!p || strcmp(p->name, name) != 0) {
			p = &pods[n++];
			*p = (struct spec_pod) { .ns = "default", .name = name, .uid = name };
			p->containers = arena_array(a, 8, sizeof(*p->containers));
			p->unread = unread ? "its spec is too large" : NULL;
			p->deleted = deleted;
			p->created = strncmp(name, "static", 6) ? (int64_t)n : 0;
		}
		if (unread)
			continue;
		containers = (struct spec_container *)p->containers;
		containers[p->n_containers++] = parse_spec_container(slash + 1);
	}
	return (struct spec_list) { pods, n };
}

struct spec_case {
	const char *specs, *held;
	size_t want;
	bool reused;
	const char *expected; /* pod/container; NULL nobody */
	size_t gpus;
};

static struct identified look_with_specs(const struct spec_case *c)
{
	struct spec_list specs = parse_specs(c->specs);
	struct pod_list held = parse(c->held);
	const char *set_aside = "of an earlier container";
	struct pods_question q = {
		.resource = RES, .want = c->want, .must = { &set_aside, c->reused }, .listed = true
	};

	kubemsg_pods_sort(held.v, held.n);
	q.candidates = pods_candidates(&specs, &held, &q, seen, a);
	q.listed = false; /* by the specs alone */
	if (!q.candidates.n)
		return (struct identified) { .found = false };
	return pods_identify(&held, &q, &inv, &seen, a);
}

static void assert_is(const struct identified *who, const char *expected)
{
	if (!expected) {
		assert_false(who->found);
		return;
	}
	assert_true(who->found);
	assert_string_equal(arena_printf(a, "%s/%s", who->owner.pod, who->owner.container),
			    expected);
}

static void spec_tells_whose_turn_it_is(void **state)
{
	static const struct spec_case cases[] = {
		{ "p/c: v=2 g=2", "p/c: g=GPU-0,GPU-1", 2, false, "p/c", 2 },
		/* VF first: it is known all the same */
		{ "p/c: v=2 g=2", "p/c:", 2, false, "p/c", 0 },
		/* without GPUs, beside a pod with GPUs only that nobody has seen before */
		{ "q/c: g=1; p/c: v=1", "q/c: g=GPU-0; p/c:", 1, false, "p/c", 0 },
		{ "q/c: v=1 g=1; p/c: v=1 g=1", "q/c: v=a g=GPU-0; p/c: g=GPU-1", 1, false, "p/c",
		  1 },
		/* another count */
		{ "p/c: v=2 g=2", "p/c: g=GPU-0", 1, false, NULL, 0 },
		/* deleted, not admitted yet */
		{ "-p/c: v=1", "p/c:", 1, false, NULL, 0 },
		{ "p/c: v=1; q/c: v=1", "p/c:", 1, false, "p/c", 0 },
		/* the newest one of several */
		{ "p/c: v=1; q/c: v=1", "p/c:; q/c:", 1, false, "q/c", 0 },
		{ "static/c: v=1; p/c: v=1", "static/c:; p/c:", 1, false, "p/c", 0 },
		/* one container after the other */
		{ "p/a: v=1; p/b: v=1", "p/a:; p/b:", 1, false, "p/a", 0 },
		{ "p/a: v=1; p/b: v=1", "p/a: v=x; p/b: g=GPU-3", 1, false, "p/b", 1 },
		{ "p/a: v=2; p/b: v=1", "p/a:; p/b:", 1, false, NULL, 0 },
		/* init containers are never listed */
		{ "p/+i: v=1; p/c: v=2", "p/c:", 1, false, "p/i", 0 },
		{ "p/+i: v=1; p/c: v=2", "p/c:", 2, true, "p/c", 0 },
		{ "p/+i: v=1; p/c: v=1", "p/c: v=x", 1, false, NULL, 0 },
		{ "p/+i: v=2; p/*s: v=2", "p/s:", 2, true, "p/s", 0 },
		{ "p/*s: v=1; p/c: v=1", "p/s: v=x; p/c:", 1, false, "p/c", 0 },
		{ "p/c: g=1", "p/c: g=GPU-0", 1, false, NULL, 0 },
		{ "p/c: v=0", "p/c:", 0, false, NULL, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct identified who;

		pods_seen_free(seen);
		seen = NULL;
		who = look_with_specs(&cases[i]);
		assert_is(&who, cases[i].expected);
		assert_int_equal(who.gpus.n, cases[i].gpus);
	}
}

static void whoever_waited_while_another_was_found_is_passed_over(void **state)
{
	/* old was admitted while nobody served the resource, and runs without */
	const struct spec_case first = { "p/c: v=1; old/c: v=1", "p/c:", 1, false, NULL, 0 };
	const struct spec_case later = {
		"p/c: v=1; old/c: v=1", "p/c:; old/c:", 1, false, NULL, 0
	};
	struct identified who;

	(void)state;
	who = look_with_specs(&first);
	assert_is(&who, "p/c");
	who = look_with_specs(&later);
	assert_is(&who, "old/c");
	who = look_with_specs(&(struct spec_case) { "p/c: v=1; old/c: v=1; new/c: v=1",
						    "p/c: v=x; old/c:; new/c:", 1, false, NULL,
						    0 });
	assert_is(&who, "new/c");
	who = look_with_specs(
		&(struct spec_case) { "q/c: v=1; old/c: v=1", "q/c:; old/c:", 1, false, NULL, 0 });
	assert_is(&who, "q/c");
}

/* Its author may be anybody: it casts doubt on one admission, never on the next. */
static void pod_whose_containers_are_not_known_casts_doubt_once(void **state)
{
	struct pods_question q = { .resource = RES, .want = 1, .listed = true };
	struct spec_list specs = parse_specs("!evil/c:; old/c: v=1; p/c: v=1 g=1");
	struct pod_list held = parse("evil/c:; old/c:; p/c: g=GPU-1");
	struct identified who;

	(void)state;
	kubemsg_pods_sort(held.v, held.n);
	for (int round = 0; round < 2; round++) {
		q.candidates = pods_candidates(&specs, &held, &q, seen, a);
		assert_int_equal(q.candidates.n, round ? 2 : 0);
		who = pods_identify(&held, &q, &inv, &seen, a);
		assert_is(&who, "p/c"); /* by what it holds; then by its spec */
		assert_int_equal(who.gpus.n, 1);
		assert_true(round == !!who.spec);
		assert_true(round == !strstr(who.why, "default/evil"));
	}
	/* Nor does it, or what was hidden, get back what was known before. */
	specs = parse_specs("!evil/c:; old/c: v=1; p/c: v=1 g=1; !evil2/c:; r/c: v=1");
	held = parse("evil/c:; evil2/c:; old/c:; p/c: g=GPU-1 v=x; r/c:");
	kubemsg_pods_sort(held.v, held.n);
	q.candidates = pods_candidates(&specs, &held, &q, seen, a);
	assert_int_equal(q.candidates.n, 0);
	who = pods_identify(&held, &q, &inv, &seen, a);
	q.candidates = pods_candidates(&specs, &held, &q, seen, a);
	assert_int_equal(q.candidates.n, 2);
	assert_string_equal(q.candidates.v[0].pod->name, "r");
	assert_false(q.candidates.v[0].stale);
	assert_true(q.candidates.v[1].stale);
}

static void pod_whose_containers_are_not_known_may_be_the_one(void **state)
{
	struct pods_question q = { .resource = RES, .want = 2 };
	struct spec_list specs = parse_specs("p/c: v=2; !large/c:");
	struct pod_list held = parse("p/c:; large/c: g=GPU-1,GPU-2"), none = parse("p/c:");
	struct identified who;

	(void)state;
	kubemsg_pods_sort(held.v, held.n);
	q.candidates = pods_candidates(&specs, &none, &q, seen, a);
	assert_int_equal(q.candidates.n, 0); /* no List has shown it yet */
	q.listed = true;
	q.candidates = pods_candidates(&specs, &none, &q, seen, a);
	assert_int_equal(q.candidates.n, 1); /* the kubelet does not know it */
	q.candidates = pods_candidates(&specs, &held, &q, seen, a);
	assert_int_equal(q.candidates.n, 0);
	who = pods_identify(&held, &q, &inv, &seen, a);
	assert_is(&who, "large/c");
	assert_null(who.spec);
	/* Deleted it asks for nothing. */
	specs = parse_specs("p/c: v=2");
	q.candidates = pods_candidates(&specs, &held, &q, NULL, a);
	assert_int_equal(q.candidates.n, 1);
}

static void pod_that_is_not_looked_at_yet_is_a_candidate_of_an_incomplete_picture(void **state)
{
	struct spec_list specs = parse_specs("p/c: v=1; q/c: v=1");
	struct pod_list held = parse("p/c: v=x");
	const struct pods_question q = { .resource = RES, .want = 1 };
	struct spec_candidates c = pods_candidates(&specs, &held, &q, seen, a);

	(void)state;
	assert_int_equal(c.n, 1);
	assert_string_equal(c.v[0].pod->name, "q");
}

static void gpus_of_everybody_else_are_busy_with_specs_too(void **state)
{
	const struct spec_case c = { "q/c: g=2; p/a: v=1 g=1; p/b: v=1 g=1",
				     "q/c: g=GPU-4,GPU-5; p/a: v=x g=GPU-1; p/b: g=GPU-2",
				     1,
				     false,
				     NULL,
				     0 };
	struct identified who = look_with_specs(&c);

	(void)state;
	assert_is(&who, "p/b");
	assert_string_equal(who.owner.uid, "p");
	assert_int_equal(pods_wants(who.spec, "nvidia.com/gpu"), 1);
	assert_int_equal(who.gpus.n, 1);
	assert_int_equal(who.gpus.v[0], 2);
	assert_int_equal(who.busy_gpus.n, 3);
	assert_int_equal(who.busy_gpus.v[0], 1);
	assert_int_equal(who.busy_gpus.v[2], 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		T(a_pod_is_found_in_whatever_order_they_are_listed),
		T(finds_the_container_that_has_its_gpus_already),
		T(parts_of_gpus_that_are_not_known_are_counted),
		T(finds_nothing_when_the_vf_comes_first),
		T(complete_pods_are_no_candidates_and_their_gpus_are_busy),
		T(gpu_only_pod_of_before_is_not_mistaken),
		T(pods_noted_at_start_are_old),
		T(who_was_there_at_a_doubtful_start_is_old_only_beside_somebody_new),
		T(wrong_guess_is_not_repeated),
		T(pod_that_comes_back_under_its_name_is_new),
		T(two_new_candidates_are_told_apart_by_count),
		T(two_equal_candidates_are_not_guessed_at),
		T(last_container_of_a_pod_is_the_one_in_admission),
		T(second_container_of_a_pod_is_found_after_the_first),
		T(new_pod_is_preferred_to_one_that_was_there_before),
		T(devices_set_aside_tell_the_pod),
		T(ids_of_every_vendor_are_understood),
		T(gpus_that_nobody_knows_do_not_count),
		T(empty_list_is_fine),
		T(spec_tells_whose_turn_it_is),
		T(whoever_waited_while_another_was_found_is_passed_over),
		T(pod_that_is_not_looked_at_yet_is_a_candidate_of_an_incomplete_picture),
		T(pod_whose_containers_are_not_known_casts_doubt_once),
		T(pod_whose_containers_are_not_known_may_be_the_one),
		T(gpus_of_everybody_else_are_busy_with_specs_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
