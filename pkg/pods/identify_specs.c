/* Identification with pod specs, and the reading of PodResources for both ways. */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/list.h"
#include "base/str.h"
#include "hw/inventory.h"
#include "kubemsg/podspec.h"
#include "pods/pods-internal.h"

/* --- looking things up --- */

int64_t pods_wants(const struct spec_container *c, const char *resource)
{
	for (size_t i = 0; i < c->n_limits; i++) {
		if (str_eq(c->limits[i].resource, resource))
			return c->limits[i].count;
	}
	return 0;
}

const struct pod_container *pods_find_container(const struct pod *pod, const char *container)
{
	for (size_t i = 0; i < pod->n_containers; i++) {
		if (str_eq(pod->containers[i].name, container))
			return &pod->containers[i];
	}
	return NULL;
}

static size_t count_ids(const struct pod_container *c)
{
	size_t n = 0;

	for (size_t i = 0; i < c->n_held; i++)
		n += c->held[i].ids.n;
	return n;
}

/* ret_unknown: devices of a GPU plugin without a known function; may be NULL. */
static size_t add_gpus(const struct pod_container *c, const char *except,
		       const struct hw_inventory *inv, int *v, size_t *ret_unknown)
{
	size_t n = 0;

	for (size_t i = 0; i < c->n_held; i++) {
		const struct held *h = &c->held[i];

		for (size_t k = 0; !str_eq(h->resource, except) && k < h->ids.n; k++) {
			int gpu = hw_gpu_of_id(inv, h->resource, h->ids.v[k]);

			if (gpu >= 0)
				v[n++] = gpu;
			else if (ret_unknown)
				*ret_unknown += pods_gives_gpus(h->resource);
		}
	}
	return n;
}

struct gpu_set pods_gpus_but(const struct pod_container *c, const char *except,
			     const struct hw_inventory *inv, struct arena *a)
{
	int *v = arena_array(a, count_ids(c), sizeof(*v));

	size_t n_unknown = 0, n = add_gpus(c, except, inv, v, &n_unknown);

	return (struct gpu_set) { v, list_unique_int(v, n), n_unknown };
}

const char *pods_say_gpus(struct gpu_set gpus, struct arena *a)
{
	if (!gpus.n_unknown)
		return arena_printf(a, "%zu GPUs", gpus.n);
	return arena_printf(a, "%zu GPUs or parts of them, of which %zu are not known",
			    gpus.n + gpus.n_unknown, gpus.n_unknown);
}

struct gpu_set pods_busy_gpus(const struct pod_list *pods, const struct pod_container *but,
			      const struct hw_inventory *inv, struct arena *a)
{
	size_t total = 0, n = 0;
	int *v;

	for (size_t i = 0; i < pods->n; i++) {
		for (size_t k = 0; k < pods->v[i].n_containers; k++)
			total += count_ids(&pods->v[i].containers[k]);
	}
	v = arena_array(a, total, sizeof(*v));
	for (size_t i = 0; i < pods->n; i++) {
		for (size_t k = 0; k < pods->v[i].n_containers; k++) {
			const struct pod_container *c = &pods->v[i].containers[k];

			if (c != but)
				n += add_gpus(c, "", inv, v + n, NULL);
		}
	}
	return (struct gpu_set) { v, list_unique_int(v, n), 0 };
}

/* --- candidates --- */

/* container "": of a pod whose containers are not known. */
static const char *key_of(const struct spec_pod *pod, const char *container, struct arena *a)
{
	return arena_printf(a, "%s %s/%s/%s", pod->uid ? pod->uid : "", pod->ns, pod->name,
			    container);
}

static bool has_theirs(const struct pod *pod, const struct spec_container *c, const char *resource)
{
	const struct pod_container *now = pod ? pods_find_container(pod, c->name) : NULL;

	return now && kubemsg_held(now, resource);
}

struct search {
	const struct pods_question *q;
	const struct seen_specs *seen;
	struct spec_candidates found;
	bool doubtful; /* a pod whose containers are not known may be the one */
	struct arena *arena;
};

static bool is_waiting(const struct search *s, const struct spec_pod *pod, const char *container)
{
	return list_has(s->seen->waiting, s->seen->n, key_of(pod, container, s->arena));
}

/* The kubelet goes through a pod in spec order, one container after the other. */
static void search_pod(struct search *s, const struct spec_pod *spec, const struct pod *pod)
{
	bool first = true;

	for (size_t i = 0; i < spec->n_containers; i++) {
		const struct spec_container *c = &spec->containers[i];
		int64_t asked = pods_wants(c, s->q->resource);
		struct spec_candidate found = { .pod = spec, .container = c };
		bool fits = asked > 0 && (uint64_t)asked == s->q->want && !(first && s->q->must.n);

		if (asked <= 0)
			continue;
		first = false;
		if (has_theirs(pod, c, s->q->resource))
			continue;
		/* An init container, which PodResources never shows, is past when one after it
		 * holds some. */
		for (size_t k = i + 1; c->kind == SPEC_INIT && fits && k < spec->n_containers; k++)
			fits = !has_theirs(pod, &spec->containers[k], s->q->resource);
		found.stale = fits && is_waiting(s, spec, c->name);
		if (fits)
			s->found.v[s->found.n++] = found;
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

struct spec_candidates pods_candidates(const struct spec_list *specs, const struct pod_list *pods,
				       const struct pods_question *q, const struct seen_pods *seen,
				       struct arena *a)
{
	static const struct seen_specs nothing;
	struct search s = { .q = q, .seen = seen ? &seen->specs : &nothing, .arena = a };
	size_t room = 0;

	for (size_t i = 0; i < specs->n; i++)
		room += specs->v[i].n_containers;
	s.found.v = arena_array(a, room, sizeof(*s.found.v));
	s.found.unread = arena_array(a, specs->n, sizeof(*s.found.unread));
	for (size_t i = 0; i < specs->n; i++) {
		const struct spec_pod *spec = &specs->v[i];
		const struct pod *pod = kubemsg_pods_find(pods, spec->ns, spec->name);

		if (spec->deleted || (!pod && q->listed))
			continue;
		if (spec->unread) {
			s.found.unread[s.found.n_unread++] = spec;
			s.doubtful |= !is_waiting(&s, spec, "");
		} else {
			search_pod(&s, spec, pod);
		}
	}
	if (s.found.n)
		qsort(s.found.v, s.found.n, sizeof(*s.found.v), likeliest_first);
	if (s.doubtful) {
		s.found.n_hidden = s.found.n;
		s.found.n = 0;
	}
	return s.found;
}

/* --- the one --- */

/*
 * Pods are admitted one after the other: a candidate that was there when another pod had its turn,
 * and still waits, waits for something else. A pod whose containers are not known has had its turn
 * then, too, or asks for nothing: it casts doubt on one admission, not on all.
 */
void pods_note_candidates(struct seen_specs *seen, const struct spec_candidates *c,
			  const struct pod_list *held)
{
	struct arena *a = arena_new(0);
	const char **waiting = arena_array(a, c->n + c->n_hidden + c->n_unread, sizeof(*waiting));
	size_t n = 0;

	for (size_t i = 0; i < c->n + c->n_hidden; i++) {
		const struct spec_candidate *one = &c->v[i];

		if (one->stale ||
		    (c->n && (!i || kubemsg_pods_find(held, one->pod->ns, one->pod->name))))
			waiting[n++] = key_of(one->pod, one->container->name, a);
	}
	for (size_t i = 0; i < c->n_unread; i++)
		waiting[n++] = key_of(c->unread[i], "", a);
	arena_free(seen->arena);
	*seen = (struct seen_specs) { a, waiting, n };
}

struct identified pods_first_candidate(const struct pod_list *pods, const struct pods_question *q,
				       const struct hw_inventory *inv, struct seen_pods *seen,
				       struct arena *a)
{
	const struct spec_candidate *first = &q->candidates.v[0];
	const struct pod *pod = kubemsg_pods_find(pods, first->pod->ns, first->pod->name);
	const struct pod_container *now =
		pod ? pods_find_container(pod, first->container->name) : NULL;
	struct identified r = { .found = true,
				.owner = { first->pod->ns, first->pod->name, first->pod->uid,
					   first->container->name, NULL },
				.spec = first->container };

	if (now)
		r.gpus = pods_gpus_but(now, q->resource, inv, a);
	r.why = arena_printf(a, "%s/%s container %s asks for it and holds %s", r.owner.ns,
			     r.owner.pod, r.owner.container, pods_say_gpus(r.gpus, a));
	r.busy_gpus = pods_busy_gpus(pods, now, inv, a);
	pods_note_candidates(&seen->specs, &q->candidates, pods);
	return r;
}
