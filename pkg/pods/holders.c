#include "pods/holders.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/mem.h"
#include "kubemsg/podspec.h"
#include "pods/pods-internal.h"

#define GETS_MAX 256 /* then the memory that they left behind is tidied up */

struct holders {
	struct pod_list view; /* in the order of names */
	size_t room;
	struct arena *arena; /* owns the pods' devices, and former ones until tidied up */
	unsigned gets;
	bool listed;
	int64_t listed_ms; /* when that List was asked for: answers to older questions may come
			      later */
};

struct holders *pods_holders_new(void)
{
	struct holders *h = xcalloc(1, sizeof(*h));

	h->arena = arena_new(0);
	return h;
}

void pods_holders_free(struct holders *h)
{
	if (!h)
		return;
	arena_free(h->arena);
	free(h->view.v);
	free(h);
}

static struct pod copy_pod(const struct pod *from, struct arena *a)
{
	struct pod p = { arena_strdup(a, from->ns), arena_strdup(a, from->name),
			 arena_array(a, from->n_containers, sizeof(*p.containers)),
			 from->n_containers };

	for (size_t i = 0; i < p.n_containers; i++) {
		const struct pod_container *theirs = &from->containers[i];
		struct held *held = arena_array(a, theirs->n_held, sizeof(*held));

		for (size_t k = 0; k < theirs->n_held; k++) {
			const struct ids *ids = &theirs->held[k].ids;

			held[k].resource = arena_strdup(a, theirs->held[k].resource);
			held[k].ids =
				(struct ids) { arena_array(a, ids->n, sizeof(*ids->v)), ids->n };
			for (size_t j = 0; j < ids->n; j++)
				held[k].ids.v[j] = arena_strdup(a, ids->v[j]);
		}
		p.containers[i] = (struct pod_container) { .name = arena_strdup(a, theirs->name),
							   .held = held,
							   .n_held = theirs->n_held };
	}
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
	kubemsg_pods_sort(v, from->n);
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

void pods_holders_hear(void *holders, const struct pods_said *said)
{
	struct holders *h = holders;
	const struct pod *old;

	if (said->asked_ms < h->listed_ms)
		return;
	if (said->all) {
		copy_all(h, said->pods);
		h->listed = true;
		h->listed_ms = said->asked_ms;
		return;
	}
	old = kubemsg_pods_find(&h->view, said->ns, said->name);
	if (old)
		drop(h, (size_t)(old - h->view.v));
	for (size_t i = 0; i < said->pods->n; i++) {
		if (h->view.n == h->room || ++h->gets > GETS_MAX)
			copy_all(h, &h->view);
		h->view.v[h->view.n++] = copy_pod(&said->pods->v[i], h->arena);
		kubemsg_pods_sort(h->view.v, h->view.n);
	}
}

bool pods_holders_listed(const struct holders *h)
{
	return h->listed;
}

static bool has_all(const struct pod *pod, const struct spec_pod *spec)
{
	for (size_t i = 0; i < spec->n_containers; i++) {
		const struct spec_container *c = &spec->containers[i];
		const struct pod_container *now = pod ? pods_find_container(pod, c->name) : NULL;

		for (size_t k = 0; c->kind != SPEC_INIT && k < c->n_limits; k++) {
			const struct ids *ids =
				now ? kubemsg_held(now, c->limits[k].resource) : NULL;

			if ((ids ? (int64_t)ids->n : 0) < c->limits[k].count)
				return false;
		}
	}
	return true;
}

bool pods_holders_complete(const struct holders *h, const struct spec_list *specs,
			   const struct spec_candidates *next)
{
	for (size_t i = 0; h->listed && i < specs->n; i++) {
		const struct spec_pod *spec = &specs->v[i];
		const struct pod *pod = kubemsg_pods_find(&h->view, spec->ns, spec->name);
		bool excused = false;

		/* Its requests are not known, so it may hold more by now. */
		if (spec->unread)
			return false;
		for (size_t k = 0; !excused && k < next->n; k++)
			excused = next->v[k].pod == spec && !next->v[k].stale;
		if (!excused && !has_all(pod, spec))
			return false;
	}
	return h->listed;
}

const struct pod_list *pods_holders_view(struct holders *h, const struct spec_list *exist)
{
	for (size_t i = h->view.n; exist && i-- > 0;) {
		const struct pod *pod = &h->view.v[i];

		if (!kubemsg_podspec_find(exist, pod->ns, pod->name))
			drop(h, i);
	}
	return &h->view;
}
