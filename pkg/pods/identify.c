#include "pods/pods-internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/list.h"
#include "base/mem.h"
#include "base/str.h"
#include "hw/inventory.h"
#include "kubemsg/podspec.h"

/* A container of the list as this resource sees it. */
struct view {
	const struct pod *pod;
	const struct pod_container *container;
	struct gpu_set gpus;
	const struct ids *ours;
	const char *key; /* its name, and the GPUs or our devices it holds */
};

struct views {
	struct view *v;
	size_t n;
};

void pods_seen_free(struct seen_pods *s)
{
	if (!s)
		return;
	arena_free(s->arena);
	arena_free(s->specs.arena);
	free(s);
}

static const char *view_key(const struct hw_inventory *inv, const struct view *view,
			    struct arena *a)
{
	_cleanup_strbuf_ struct strbuf b = STRBUF_INIT;
	char bdf[BDF_STRLEN];

	strbuf_printf(&b, "%s/%s/%s", view->pod->ns, view->pod->name, view->container->name);
	if (view->ours) {
		const char **ids = arena_copy(a, view->ours->v, view->ours->n * sizeof(*ids));

		qsort(ids, view->ours->n, sizeof(*ids), list_by_string);
		for (size_t i = 0; i < view->ours->n; i++)
			strbuf_printf(&b, " %s", ids[i]);
	} else {
		for (size_t i = 0; i < view->gpus.n; i++)
			strbuf_printf(&b, " %s", bdf_format(inv->pci[view->gpus.v[i]].bdf, bdf));
	}
	return arena_strdup(a, strbuf_str(&b));
}

/* Every container that holds GPUs or ours. */
static struct views view_all(const struct pod_list *pods, const char *resource,
			     const struct hw_inventory *inv, struct arena *a)
{
	struct views views = { NULL, 0 };
	size_t total = 0;

	for (size_t i = 0; i < pods->n; i++)
		total += pods->v[i].n_containers;
	views.v = arena_array(a, total, sizeof(*views.v));
	for (size_t i = 0; i < pods->n; i++) {
		for (size_t k = 0; k < pods->v[i].n_containers; k++) {
			struct view *view = &views.v[views.n];

			*view = (struct view) { .pod = &pods->v[i],
						.container = &pods->v[i].containers[k] };
			view->ours = kubemsg_held(view->container, resource);
			view->gpus = pods_gpus_but(view->container, resource, inv, a);
			if (!view->gpus.n && !view->ours)
				continue;
			view->key = view_key(inv, view, a);
			views.n++;
		}
	}
	return views;
}

static const char *pod_key(const struct pod *pod, struct arena *a)
{
	return arena_printf(a, "%s/%s", pod->ns, pod->name);
}

static struct names names_new(size_t max, struct arena *a)
{
	return (struct names) { arena_array(a, max, sizeof(const char *)), 0 };
}

static void names_sort(struct names *names)
{
	if (names->n)
		qsort(names->v, names->n, sizeof(*names->v), list_by_string);
}

static void remember(struct seen_pods *seen, const struct pod_list *pods, const struct views *views,
		     const struct view *found)
{
	struct arena *a = arena_new(4096);
	struct seen_pods now = { a,
				 names_new(views->n, a),
				 names_new(views->n, a),
				 names_new(pods->n, a),
				 NULL,
				 seen->specs };

	for (size_t i = 0; i < views->n; i++) {
		struct names *names = views->v[i].ours ? &now.holders : &now.gpu_only;

		if (&views->v[i] == found)
			now.answered = arena_strdup(a, found->key);
		else
			names->v[names->n++] = arena_strdup(a, views->v[i].key);
	}
	for (size_t i = 0; i < pods->n; i++)
		now.pods.v[now.pods.n++] = pod_key(&pods->v[i], a);
	names_sort(&now.gpu_only);
	names_sort(&now.holders);
	names_sort(&now.pods);
	arena_free(seen->arena);
	*seen = now;
}

/* --- narrowing down: each step keeps those that fit, unless none does --- */

struct candidates {
	const struct view **v;
	size_t n;
};

/*
 * With GPUs, without ours, and not old. Old: had the same GPUs and none of ours before, so it never
 * asked for ours. The one that we took our last answer to be for is old too if that answer went to
 * another container (it was a wrong guess); else its pod came back anew. doubted: where all are
 * old, none is.
 */
static struct candidates first_candidates(const struct views *views, const struct seen_pods *seen,
					  const struct ids *must, bool doubted, struct arena *a)
{
	struct candidates c = { arena_array(a, views->n, sizeof(*c.v)), 0 };
	const struct pod *pod = NULL;
	bool wrong_guess = false;

	/* The pod whose container (a sidecar) holds the devices set aside for this one. */
	for (size_t i = 0; !pod && i < views->n; i++) {
		const struct ids *ours = views->v[i].ours;

		for (size_t k = 0; ours && k < must->n; k++) {
			if (list_has(ours->v, ours->n, must->v[k]))
				pod = views->v[i].pod;
		}
	}
	/* A container without ours when we last looked has some now: our last answer went to it. */
	for (size_t i = 0; seen->answered && i < views->n; i++)
		wrong_guess |= views->v[i].ours &&
			       !list_has_sorted(seen->holders.v, seen->holders.n, views->v[i].key);
	for (int pass = 0; !c.n && pass <= doubted; pass++) {
		for (size_t i = 0; i < views->n; i++) {
			const struct view *view = &views->v[i];
			bool old = str_eq(view->key, seen->answered)
					   ? wrong_guess
					   : list_has_sorted(seen->gpu_only.v, seen->gpu_only.n,
							     view->key);

			if (view->gpus.n && !view->ours && (!old || pass) &&
			    (!pod || view->pod == pod))
				c.v[c.n++] = view;
		}
	}
	return c;
}

static void narrow(struct candidates *c, const struct seen_pods *seen, size_t want, struct arena *a)
{
	size_t n = 0, n_new = 0, n_equal = 0;
	const struct view *equal = NULL;

	/* The kubelet goes through a pod in spec order: of its candidates the last one is the
	 * newest. Views of a pod are adjacent. */
	for (size_t i = 0; i < c->n; i++) {
		if (i + 1 == c->n || c->v[i + 1]->pod != c->v[i]->pod)
			c->v[n++] = c->v[i];
	}
	/* One pod is admitted after the other: beside a new pod, one that was there before is
	 * complete. */
	for (size_t i = 0; i < n; i++) {
		const struct view *view = c->v[i];

		if (!list_has_sorted(seen->pods.v, seen->pods.n, pod_key(view->pod, a))) {
			c->v[i] = c->v[n_new];
			c->v[n_new++] = view;
		}
	}
	c->n = n_new ? n_new : n;
	/* Most jobs ask for a VF per GPU: when that distinguishes one, it is the best there
	 * is. */
	for (size_t i = 0; i < c->n; i++) {
		if (c->v[i]->gpus.n == want) {
			equal = c->v[i];
			n_equal++;
		}
	}
	if (n_equal == 1)
		*c = (struct candidates) { arena_copy(a, &equal, sizeof(equal)), 1 };
}

static const char *explain(const struct views *views, const struct candidates *c,
			   const char *resource, struct arena *a)
{
	size_t gpu_holders = 0;

	if (c->n == 1)
		return arena_printf(a, "%s/%s container %s holds %s and no %s yet",
				    c->v[0]->pod->ns, c->v[0]->pod->name, c->v[0]->container->name,
				    pods_say_gpus(c->v[0]->gpus, a), resource);
	if (c->n > 1)
		return arena_printf(
			a,
			"%zu containers, %s/%s among them, hold GPUs and no %s, and it is not known which one asks",
			c->n, c->v[0]->pod->ns, c->v[0]->pod->name, resource);
	for (size_t i = 0; i < views->n; i++)
		gpu_holders += views->v[i].gpus.n > 0;
	return arena_printf(
		a,
		"none of the %zu containers with GPUs is new and without %s: the container that asks has no GPUs, or gets them later",
		gpu_holders, resource);
}

/* By the list alone. */
static struct identified eliminate(const struct pod_list *pods, const struct pods_question *q,
				   const struct hw_inventory *inv, struct seen_pods *seen,
				   struct arena *a)
{
	struct views views = view_all(pods, q->resource, inv, a);
	struct candidates c = { NULL, 0 };
	struct identified r = { .found = false };

	if (q->want) {
		c = first_candidates(&views, seen, &q->must, q->doubted, a);
		narrow(&c, seen, q->want, a);
		r.why = explain(&views, &c, q->resource, a);
	}
	if (c.n == 1) {
		r.found = true;
		r.owner = (struct ledger_owner) { .ns = c.v[0]->pod->ns,
						  .pod = c.v[0]->pod->name,
						  .container = c.v[0]->container->name };
		r.gpus = c.v[0]->gpus;
	}
	r.ambiguous = c.n > 1;
	r.busy_gpus = pods_busy_gpus(pods, r.found ? c.v[0]->container : NULL, inv, a);
	remember(seen, pods, &views, r.found ? c.v[0] : NULL);
	return r;
}

struct identified pods_identify(const struct pod_list *pods, const struct pods_question *q,
				const struct hw_inventory *inv, struct seen_pods **seen,
				struct arena *a)
{
	struct identified r;

	if (!*seen)
		*seen = xcalloc(1, sizeof(**seen));
	if (!q->candidates.n) {
		r = eliminate(pods, q, inv, *seen, a);
		if (q->candidates.n_unread) {
			const struct spec_pod *unread = q->candidates.unread[0];

			pods_note_candidates(&(*seen)->specs, &q->candidates, pods);
			r.why = arena_printf(a, "what pod %s/%s asks for is not known: %s",
					     unread->ns, unread->name, r.why);
		}
		return r;
	}
	r = pods_first_candidate(pods, q, inv, *seen, a);
	if (q->listed)
		eliminate(pods, &(struct pods_question) { .resource = q->resource }, inv, *seen, a);
	return r;
}
