#include "pods/holders.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/mem.h"
#include "base/str.h"
#include "kubemsg/podspec.h"
#include "pods/identify.h"

#define GETS_MAX 256 /* then what they left behind is tidied up */

struct holders {
	struct pod_list view; /* in the order of names */
	size_t room;
	struct arena
		*arena; /* owns what the pods hold, and what they held since the last tidying up */
	unsigned gets;
	bool listed;
	int64_t listed_ms; /* when that List was asked for: answers to older questions may come
			      later */
};

struct holders *holders_new(void)
{
	struct holders *h = xcalloc(1, sizeof(*h));

	h->arena = arena_new(0);
	return h;
}

void holders_free(struct holders *h)
{
	if (!h)
		return;
	arena_free(h->arena);
	free(h->view.v);
	free(h);
}

static struct held copy_held(const struct held *from, struct arena *a)
{
	struct held h = { arena_strdup(a, from->resource),
			  { arena_array(a, from->ids.n, sizeof(*h.ids.v)), from->ids.n } };

	for (size_t i = 0; i < from->ids.n; i++)
		h.ids.v[i] = arena_strdup(a, from->ids.v[i]);
	return h;
}

static struct pod_container copy_container(const struct pod_container *from, struct arena *a)
{
	struct pod_container c = { .name = arena_strdup(a, from->name),
				   .held = arena_array(a, from->n_held, sizeof(*c.held)),
				   .n_held = from->n_held };

	for (size_t i = 0; i < from->n_held; i++)
		c.held[i] = copy_held(&from->held[i], a);
	return c;
}

static struct pod copy_pod(const struct pod *from, struct arena *a)
{
	struct pod p = { arena_strdup(a, from->ns), arena_strdup(a, from->name),
			 arena_array(a, from->n_containers, sizeof(*p.containers)),
			 from->n_containers };

	for (size_t i = 0; i < from->n_containers; i++)
		p.containers[i] = copy_container(&from->containers[i], a);
	return p;
}

/* from may be the view itself. */
static void copy_all(struct holders *h, const struct pod_list *from)
{
	struct arena *a = arena_new(8192);
	size_t room = 2 * from->n + 16;
	struct pod *v = xcalloc(room, sizeof(*v));

	for (size_t i = 0; i < from->n; i++)
		v[i] = copy_pod(&from->v[i], a);
	identify_sort(v, from->n);
	arena_free(h->arena);
	h->arena = a;
	h->view.n = from->n;
	free(h->view.v);
	h->view.v = v;
	h->room = room;
	h->gets = 0;
}

static void drop(struct holders *h, size_t i)
{
	h->view.n--;
	memmove(&h->view.v[i], &h->view.v[i + 1], (h->view.n - i) * sizeof(*h->view.v));
}

static void forget(struct holders *h, const char *ns, const char *name)
{
	const struct pod *pod = identify_sorted_pod(&h->view, ns, name);

	if (pod)
		drop(h, (size_t)(pod - h->view.v));
}

static void add(struct holders *h, const struct pod *pod)
{
	if (h->view.n == h->room || ++h->gets > GETS_MAX)
		copy_all(h, &h->view);
	h->view.v[h->view.n++] = copy_pod(pod, h->arena);
	identify_sort(h->view.v, h->view.n);
}

void holders_hear(void *holders, const struct pods_said *said)
{
	struct holders *h = holders;

	if (said->asked_ms < h->listed_ms)
		return;
	if (said->all) {
		copy_all(h, said->pods);
		h->listed = true;
		h->listed_ms = said->asked_ms;
		return;
	}
	forget(h, said->ns, said->name);
	for (size_t i = 0; i < said->pods->n; i++)
		add(h, &said->pods->v[i]);
}

void holders_keep(struct holders *h, const struct spec_list *specs)
{
	for (size_t i = h->view.n; i-- > 0;) {
		const struct pod *pod = &h->view.v[i];
		const struct spec_pod *spec = identify_spec(specs, pod->ns, pod->name);

		if (!spec || spec->over)
			drop(h, i);
	}
}

static size_t held_of(const struct pod *pod, const struct spec_container *c, const char *resource)
{
	const struct pod_container *now = pod ? identify_named(pod, c->name) : NULL;
	const struct ids *ids = now ? identify_held(now, resource) : NULL;

	return ids ? ids->n : 0;
}

static bool may_be_next(const struct spec_candidates *next, const struct spec_pod *spec)
{
	for (size_t i = 0; i < next->n; i++) {
		if (next->v[i].pod == spec && !next->v[i].stale)
			return true;
	}
	return false;
}

static bool has_all(const struct pod *pod, const struct spec_pod *spec)
{
	for (size_t i = 0; i < spec->n_containers; i++) {
		const struct spec_container *c = &spec->containers[i];

		for (size_t k = 0; c->kind != SPEC_INIT && k < c->n_limits; k++) {
			if ((int64_t)held_of(pod, c, c->limits[k].resource) < c->limits[k].count)
				return false;
		}
	}
	return true;
}

bool holders_complete(const struct holders *h, const struct spec_list *specs,
		      const struct spec_candidates *next)
{
	for (size_t i = 0; h->listed && i < specs->n; i++) {
		const struct spec_pod *spec = &specs->v[i];
		const struct pod *pod = identify_sorted_pod(&h->view, spec->ns, spec->name);

		if (!spec->over && !may_be_next(next, spec) && !has_all(pod, spec))
			return false;
	}
	return h->listed;
}

const struct pod_list *holders_view(const struct holders *h)
{
	return &h->view;
}
