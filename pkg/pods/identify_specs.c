/* Identification with pod specs, and what both ways read from PodResources. */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/mem.h"
#include "base/str.h"
#include "hw/inventory.h"
#include "kubemsg/podspec.h"
#include "pods/identify.h"

struct seen_specs {
	struct arena *arena;
	const char **waiting; /* that did not get what they wait for when somebody else did, and the
				 one who did */
	size_t n;
};

struct seen_specs *seen_specs_new(void)
{
	struct seen_specs *s = xcalloc(1, sizeof(*s));

	s->arena = arena_new(0);
	return s;
}

void seen_specs_free(struct seen_specs *s)
{
	if (!s)
		return;
	arena_free(s->arena);
	free(s);
}

/* --- a copy --- */

static struct spec_container copy_container(const struct spec_container *from, struct arena *a)
{
	struct spec_limit *limits = arena_array(a, from->n_limits, sizeof(*limits));
	struct spec_claim *claims = arena_array(a, from->n_claims, sizeof(*claims));

	for (size_t i = 0; i < from->n_limits; i++)
		limits[i] = (struct spec_limit) { arena_strdup(a, from->limits[i].resource),
						  from->limits[i].count };
	for (size_t i = 0; i < from->n_claims; i++)
		claims[i] = (struct spec_claim) { arena_strdup(a, from->claims[i].claim),
						  arena_strdup(a, from->claims[i].request) };
	return (struct spec_container) { .name = arena_strdup(a, from->name),
					 .kind = from->kind,
					 .limits = limits,
					 .n_limits = from->n_limits,
					 .claims = claims,
					 .n_claims = from->n_claims };
}

static struct spec_pod copy_pod(const struct spec_pod *from, struct arena *a)
{
	struct spec_container *containers = arena_array(a, from->n_containers, sizeof(*containers));
	struct spec_pod pod = *from;

	for (size_t i = 0; i < from->n_containers; i++)
		containers[i] = copy_container(&from->containers[i], a);
	pod.ns = arena_strdup(a, from->ns);
	pod.name = arena_strdup(a, from->name);
	pod.uid = from->uid ? arena_strdup(a, from->uid) : NULL;
	pod.containers = containers;
	return pod;
}

static int by_name(const char *ns_a, const char *name_a, const char *ns_b, const char *name_b)
{
	int r = strcmp(name_a, name_b);

	return r ? r : strcmp(ns_a, ns_b);
}

static int by_spec_name(const void *x, const void *y)
{
	const struct spec_pod *a = x, *b = y;

	return by_name(a->ns, a->name, b->ns, b->name);
}

static int by_pod_name(const void *x, const void *y)
{
	const struct pod *a = x, *b = y;

	return by_name(a->ns, a->name, b->ns, b->name);
}

void identify_sort(struct pod *pods, size_t n)
{
	if (n)
		qsort(pods, n, sizeof(*pods), by_pod_name);
}

struct spec_list identify_copy_specs(const struct spec_list *specs, struct arena *a)
{
	struct spec_pod *v = arena_array(a, specs->n, sizeof(*v));

	for (size_t i = 0; i < specs->n; i++)
		v[i] = copy_pod(&specs->v[i], a);
	if (specs->n)
		qsort(v, specs->n, sizeof(*v), by_spec_name);
	return (struct spec_list) { v, specs->n };
}

/* --- looking things up --- */

int64_t identify_asked(const struct spec_container *c, const char *resource)
{
	for (size_t i = 0; i < c->n_limits; i++) {
		if (str_eq(c->limits[i].resource, resource))
			return c->limits[i].count;
	}
	return 0;
}

const struct ids *identify_held(const struct pod_container *c, const char *resource)
{
	for (size_t i = 0; i < c->n_held; i++) {
		if (str_eq(c->held[i].resource, resource) && c->held[i].ids.n)
			return &c->held[i].ids;
	}
	return NULL;
}

const struct pod *identify_sorted_pod(const struct pod_list *pods, const char *ns, const char *name)
{
	const struct pod key = { .ns = ns, .name = name };

	return pods->n ? bsearch(&key, pods->v, pods->n, sizeof(key), by_pod_name) : NULL;
}

const struct spec_pod *identify_spec(const struct spec_list *specs, const char *ns,
				     const char *name)
{
	const struct spec_pod key = { .ns = ns, .name = name };

	return specs->n ? bsearch(&key, specs->v, specs->n, sizeof(key), by_spec_name) : NULL;
}

const struct pod_container *identify_named(const struct pod *pod, const char *container)
{
	for (size_t i = 0; i < pod->n_containers; i++) {
		if (str_eq(pod->containers[i].name, container))
			return &pod->containers[i];
	}
	return NULL;
}

static int by_int(const void *x, const void *y)
{
	int a = *(const int *)x, b = *(const int *)y;

	return (a > b) - (a < b);
}

size_t identify_unique(int *v, size_t n)
{
	size_t out = 0;

	if (n)
		qsort(v, n, sizeof(*v), by_int);
	for (size_t i = 0; i < n; i++) {
		if (!out || v[out - 1] != v[i])
			v[out++] = v[i];
	}
	return out;
}

static size_t count_ids(const struct pod_container *c)
{
	size_t n = 0;

	for (size_t i = 0; i < c->n_held; i++)
		n += c->held[i].ids.n;
	return n;
}

static size_t add_gpus(const struct pod_container *c, const char *except,
		       const struct hw_inventory *inv, int *v)
{
	size_t n = 0;

	for (size_t i = 0; i < c->n_held; i++) {
		const struct held *h = &c->held[i];

		for (size_t k = 0; !str_eq(h->resource, except) && k < h->ids.n; k++) {
			int gpu = hw_gpu_of_id(inv, h->resource, h->ids.v[k]);

			if (gpu >= 0)
				v[n++] = gpu;
		}
	}
	return n;
}

size_t identify_gpus(const struct pod_container *c, const char *except,
		     const struct hw_inventory *inv, struct arena *a, int **ret)
{
	*ret = arena_array(a, count_ids(c), sizeof(**ret));
	return identify_unique(*ret, add_gpus(c, except, inv, *ret));
}

/* --- candidates --- */

static const char *key_of(const struct spec_candidate *c, struct arena *a)
{
	return arena_printf(a, "%s %s/%s/%s", c->pod->uid ? c->pod->uid : "", c->pod->ns,
			    c->pod->name, c->container->name);
}

static bool is_stale(const struct seen_specs *seen, const char *key)
{
	for (size_t i = 0; i < seen->n; i++) {
		if (!strcmp(seen->waiting[i], key))
			return true;
	}
	return false;
}

static bool has_theirs(const struct pod *pod, const struct spec_container *c, const char *resource)
{
	const struct pod_container *now = pod ? identify_named(pod, c->name) : NULL;

	return now && identify_held(now, resource);
}

/* Does a container after this one hold some? Then this one, an init container that PodResources
 * never shows, is past. */
static bool is_past(const struct pod *pod, const struct spec_pod *spec, size_t at,
		    const char *resource)
{
	for (size_t i = at + 1; i < spec->n_containers; i++) {
		if (has_theirs(pod, &spec->containers[i], resource))
			return true;
	}
	return false;
}

struct search {
	const char *resource;
	size_t want;
	bool reused;
	const struct seen_specs *seen;
	struct spec_candidates found;
	struct arena *arena;
};

static void add_candidate(struct search *s, const struct spec_pod *pod,
			  const struct spec_container *c)
{
	struct spec_candidate *candidate = &s->found.v[s->found.n++];

	*candidate = (struct spec_candidate) { .pod = pod, .container = c };
	candidate->stale = is_stale(s->seen, key_of(candidate, s->arena));
}

/* The kubelet goes through a pod in spec order, one container after the other. */
static void search_pod(struct search *s, const struct spec_pod *spec, const struct pod *pod)
{
	bool first = true;

	for (size_t i = 0; i < spec->n_containers; i++) {
		const struct spec_container *c = &spec->containers[i];
		int64_t asked = identify_asked(c, s->resource);
		bool fits = asked > 0 && (uint64_t)asked == s->want && !(first && s->reused);

		if (asked <= 0)
			continue;
		first = false;
		if (has_theirs(pod, c, s->resource))
			continue;
		if (fits && (c->kind != SPEC_INIT || !is_past(pod, spec, i, s->resource)))
			add_candidate(s, spec, c);
		if (c->kind != SPEC_INIT)
			return;
	}
}

static int likeliest_first(const void *x, const void *y)
{
	const struct spec_candidate *a = x, *b = y;
	int r;

	if (a->stale != b->stale)
		return a->stale - b->stale;
	if (a->pod->created != b->pod->created)
		return a->pod->created < b->pod->created ? 1 : -1;
	r = strcmp(a->pod->ns, b->pod->ns);
	if (r == 0)
		r = strcmp(a->pod->name, b->pod->name);
	if (r != 0)
		return r;
	return (a->container > b->container) - (a->container < b->container);
}

static size_t count_containers(const struct spec_list *specs)
{
	size_t n = 0;

	for (size_t i = 0; i < specs->n; i++)
		n += specs->v[i].n_containers;
	return n;
}

struct spec_candidates identify_candidates(const struct spec_list *specs,
					   const struct pod_list *held, bool complete,
					   const char *resource, size_t want, bool reused,
					   const struct seen_specs *seen, struct arena *a)
{
	struct search s = {
		.resource = resource, .want = want, .reused = reused, .seen = seen, .arena = a
	};

	s.found.v = arena_array(a, count_containers(specs), sizeof(*s.found.v));
	for (size_t i = 0; i < specs->n; i++) {
		const struct spec_pod *spec = &specs->v[i];
		const struct pod *pod = identify_sorted_pod(held, spec->ns, spec->name);

		if (!spec->over && !spec->deleted && (pod || !complete))
			search_pod(&s, spec, pod);
	}
	if (s.found.n)
		qsort(s.found.v, s.found.n, sizeof(*s.found.v), likeliest_first);
	return s.found;
}

/* --- the one --- */

/* One pod is admitted after the other: whoever is there and waits while it is another one's turn
 * waits for nothing. */
static void remember(struct seen_specs *seen, const struct spec_candidates *c,
		     const struct pod_list *held)
{
	struct arena *a = arena_new(0);
	const char **waiting = arena_array(a, c->n, sizeof(*waiting));
	size_t n = 0;

	for (size_t i = 0; i < c->n; i++) {
		if (i == 0 || c->v[i].stale ||
		    identify_sorted_pod(held, c->v[i].pod->ns, c->v[i].pod->name))
			waiting[n++] = key_of(&c->v[i], a);
	}
	arena_free(seen->arena);
	*seen = (struct seen_specs) { a, waiting, n };
}

static size_t busy_gpus(const struct pod_list *held, const struct spec_candidate *me,
			const struct hw_inventory *inv, struct arena *a, int **ret)
{
	size_t total = 0, n = 0;

	for (size_t i = 0; i < held->n; i++) {
		for (size_t k = 0; k < held->v[i].n_containers; k++)
			total += count_ids(&held->v[i].containers[k]);
	}
	*ret = arena_array(a, total, sizeof(**ret));
	for (size_t i = 0; i < held->n; i++) {
		const struct pod *pod = &held->v[i];
		bool mine = me && str_eq(pod->ns, me->pod->ns) && str_eq(pod->name, me->pod->name);

		for (size_t k = 0; k < pod->n_containers; k++) {
			if (!mine || !str_eq(pod->containers[k].name, me->container->name))
				n += add_gpus(&pod->containers[k], "", inv, *ret + n);
		}
	}
	return identify_unique(*ret, n);
}

static struct identified describe(const struct spec_candidate *c, const struct pod_list *held,
				  const char *resource, const struct hw_inventory *inv,
				  struct arena *a)
{
	const struct pod *pod = identify_sorted_pod(held, c->pod->ns, c->pod->name);
	const struct pod_container *now = pod ? identify_named(pod, c->container->name) : NULL;
	struct identified r = { .found = true,
				.ns = c->pod->ns,
				.pod = c->pod->name,
				.container = c->container->name,
				.uid = c->pod->uid,
				.spec = c->container };

	if (now)
		r.n_gpus = identify_gpus(now, resource, inv, a, &r.gpus);
	r.why = arena_printf(a, "%s/%s container %s asks for it and holds %zu GPUs", r.ns, r.pod,
			     r.container, r.n_gpus);
	return r;
}

struct identified identify_by_specs(const struct spec_candidates *candidates,
				    const struct pod_list *held, const char *resource,
				    const struct hw_inventory *inv, struct seen_specs *seen,
				    struct arena *a)
{
	const struct spec_candidate *first = candidates->n ? &candidates->v[0] : NULL;
	struct identified r = { .found = false };

	if (first)
		r = describe(first, held, resource, inv, a);
	else
		r.why = arena_printf(a, "no pod of the %zu asks for that many %s and has none",
				     held->n, resource);
	r.n_busy_gpus = busy_gpus(held, first, inv, a, &r.busy_gpus);
	remember(seen, candidates, held);
	return r;
}
