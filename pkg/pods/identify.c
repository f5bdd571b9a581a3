#include "pods/identify.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/mem.h"
#include "base/str.h"
#include "hw/inventory.h"

struct names {
	const char **v; /* sorted */
	size_t n;
};

struct seen_pods {
	struct arena *arena;
	struct names gpu_only; /* containers with GPUs and none of ours, by name and GPUs */
	struct names holders;  /* containers with some of ours, by name and ids */
	struct names pods;     /* every pod of the list */
	const char *answered;  /* the one that was found then, as in gpu_only; NULL */
	bool doubted;	       /* the look may have been within an admission */
};

/* A container of the list as this resource sees it. */
struct view {
	const struct pod *pod;
	const struct pod_container *container;
	int *gpus;
	size_t n_gpus;
	const struct ids *ours;
	const char *key; /* its name, and the GPUs or our devices it holds */
	bool old;
};

struct views {
	struct view *v;
	size_t n;
};

struct seen_pods *seen_pods_new(void)
{
	struct seen_pods *s = xcalloc(1, sizeof(*s));

	s->arena = arena_new(0);
	return s;
}

void seen_pods_free(struct seen_pods *s)
{
	if (!s)
		return;
	arena_free(s->arena);
	free(s);
}

static int by_string(const void *x, const void *y)
{
	return strcmp(*(const char *const *)x, *(const char *const *)y);
}

static bool has_name(const struct names *names, const char *name)
{
	return names->n && bsearch(&name, names->v, names->n, sizeof(*names->v), by_string);
}

static void view_devices(const struct hw_inventory *inv, const char *resource, struct view *view,
			 struct arena *a)
{
	view->ours = identify_held(view->container, resource);
	view->n_gpus = identify_gpus(view->container, resource, inv, a, &view->gpus);
}

static const char *view_key(const struct hw_inventory *inv, const struct view *view,
			    struct arena *a)
{
	_cleanup_strbuf_ struct strbuf b = STRBUF_INIT;
	char bdf[BDF_STRLEN];

	strbuf_printf(&b, "%s/%s/%s", view->pod->ns, view->pod->name, view->container->name);
	if (view->ours) {
		const char **ids = arena_copy(a, view->ours->v, view->ours->n * sizeof(*ids));

		qsort(ids, view->ours->n, sizeof(*ids), by_string);
		for (size_t i = 0; i < view->ours->n; i++)
			strbuf_printf(&b, " %s", ids[i]);
	} else {
		for (size_t i = 0; i < view->n_gpus; i++)
			strbuf_printf(&b, " %s", bdf_format(inv->pci[view->gpus[i]].bdf, bdf));
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

			*view = (struct view) {
				&pods->v[i], &pods->v[i].containers[k], NULL, 0, NULL, NULL, false
			};
			view_devices(inv, resource, view, a);
			if (!view->n_gpus && !view->ours)
				continue;
			view->key = view_key(inv, view, a);
			views.n++;
		}
	}
	return views;
}

/* Somebody holds ours who did not when we last looked: our last answer went to him. */
static bool has_new_holder(const struct views *views, const struct seen_pods *seen)
{
	for (size_t i = 0; i < views->n; i++) {
		if (views->v[i].ours && !has_name(&seen->holders, views->v[i].key))
			return true;
	}
	return false;
}

/*
 * Old: had the same GPUs and none of ours before, so it never asked for ours. The one that we took
 * our last answer to be for is old too if that answer went to somebody else (it was a wrong guess);
 * else its pod came back anew.
 */
static void mark_old(struct views *views, const struct seen_pods *seen)
{
	bool wrong_guess = seen->answered && has_new_holder(views, seen);

	for (size_t i = 0; i < views->n; i++) {
		struct view *view = &views->v[i];

		if (str_eq(view->key, seen->answered))
			view->old = wrong_guess;
		else
			view->old = has_name(&seen->gpu_only, view->key);
	}
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
		qsort(names->v, names->n, sizeof(*names->v), by_string);
}

static void remember(struct seen_pods *seen, const struct pod_list *pods, const struct views *views,
		     const struct view *found)
{
	struct arena *a = arena_new(4096);
	struct seen_pods now = {
		a,    names_new(views->n, a), names_new(views->n, a), names_new(pods->n, a), NULL,
		false
	};

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

void seen_pods_note(struct seen_pods *s, const struct pod_list *pods, const char *resource,
		    const struct hw_inventory *inv)
{
	_cleanup_arena_ struct arena *a = arena_new(4096);
	struct views views = view_all(pods, resource, inv, a);

	remember(s, pods, &views, NULL);
}

void seen_pods_doubt(struct seen_pods *s)
{
	s->doubted = true;
}

/* --- narrowing down: each step keeps what fits, unless nothing does --- */

struct candidates {
	const struct view **v;
	size_t n;
};

static bool holds_one_of(const struct ids *held, const struct ids *ids)
{
	for (size_t i = 0; held && i < held->n; i++) {
		for (size_t k = 0; k < ids->n; k++) {
			if (str_eq(held->v[i], ids->v[k]))
				return true;
		}
	}
	return false;
}

/* The pod whose container (a sidecar) holds what the kubelet has set aside for this one; NULL
 * unknown. */
static const struct pod *pod_of_must(const struct views *views, const struct ids *must)
{
	for (size_t i = 0; i < views->n; i++) {
		if (holds_one_of(views->v[i].ours, must))
			return views->v[i].pod;
	}
	return NULL;
}

static struct candidates not_old(const struct views *views, const struct ids *must, struct arena *a)
{
	struct candidates c = { arena_array(a, views->n, sizeof(*c.v)), 0 };
	const struct pod *pod = pod_of_must(views, must);

	for (size_t i = 0; i < views->n; i++) {
		const struct view *view = &views->v[i];

		if (view->n_gpus && !view->ours && !view->old && (!pod || view->pod == pod))
			c.v[c.n++] = view;
	}
	return c;
}

static struct candidates first_candidates(struct views *views, struct seen_pods *seen,
					  const struct ids *must, struct arena *a)
{
	struct candidates c;

	mark_old(views, seen);
	c = not_old(views, must, a);
	if (c.n || !seen->doubted)
		return c;
	for (size_t i = 0; i < views->n; i++)
		views->v[i].old = false;
	return not_old(views, must, a);
}

/* The kubelet goes through a pod in spec order: of its candidates the last one is the newest. Views
 * of a pod are adjacent. */
static void keep_last_of_each_pod(struct candidates *c)
{
	size_t out = 0;

	for (size_t i = 0; i < c->n; i++) {
		if (i + 1 == c->n || c->v[i + 1]->pod != c->v[i]->pod)
			c->v[out++] = c->v[i];
	}
	c->n = out;
}

/* One pod is admitted after the other: beside a new pod, one that was there before is complete. */
static void prefer_new_pods(struct candidates *c, const struct seen_pods *seen, struct arena *a)
{
	size_t out = 0;

	for (size_t i = 0; i < c->n; i++) {
		if (!has_name(&seen->pods, pod_key(c->v[i]->pod, a))) {
			const struct view *view = c->v[i];

			c->v[i] = c->v[out];
			c->v[out++] = view;
		}
	}
	if (out)
		c->n = out;
}

/* Most jobs ask for a VF per GPU: when that tells one from the others, it is the best there is. */
static void prefer_equal_count(struct candidates *c, size_t want)
{
	const struct view *match = NULL;

	for (size_t i = 0; i < c->n; i++) {
		if (c->v[i]->n_gpus != want)
			continue;
		if (match)
			return;
		match = c->v[i];
	}
	if (match) {
		c->v[0] = match;
		c->n = 1;
	}
}

static int *busy_gpus(const struct views *views, const struct view *found, size_t *ret_n,
		      struct arena *a)
{
	size_t total = 0, n = 0;
	int *v;

	for (size_t i = 0; i < views->n; i++)
		total += views->v[i].n_gpus;
	v = arena_array(a, total, sizeof(*v));
	for (size_t i = 0; i < views->n; i++) {
		if (&views->v[i] == found)
			continue;
		for (size_t k = 0; k < views->v[i].n_gpus; k++)
			v[n++] = views->v[i].gpus[k];
	}
	*ret_n = identify_unique(v, n);
	return v;
}

static const char *explain(const struct views *views, const struct candidates *c,
			   const char *resource, struct arena *a)
{
	size_t gpu_holders = 0;

	if (c->n == 1)
		return arena_printf(a, "%s/%s container %s holds %zu GPUs and no %s yet",
				    c->v[0]->pod->ns, c->v[0]->pod->name, c->v[0]->container->name,
				    c->v[0]->n_gpus, resource);
	if (c->n > 1)
		return arena_printf(
			a,
			"%zu containers, %s/%s among them, hold GPUs and no %s, and it is not "
			"known which one asks",
			c->n, c->v[0]->pod->ns, c->v[0]->pod->name, resource);
	for (size_t i = 0; i < views->n; i++)
		gpu_holders += views->v[i].n_gpus > 0;
	return arena_printf(
		a,
		"none of the %zu containers with GPUs is new and without %s: the container that "
		"asks has no GPUs, or gets them later",
		gpu_holders, resource);
}

struct identified identify_container(const struct pod_list *pods, const char *resource, size_t want,
				     const struct ids *must, const struct hw_inventory *inv,
				     struct seen_pods *seen, struct arena *a)
{
	struct views views = view_all(pods, resource, inv, a);
	const struct view *found = NULL;
	struct candidates c;
	struct identified r = { .found = false };

	c = first_candidates(&views, seen, must, a);
	keep_last_of_each_pod(&c);
	prefer_new_pods(&c, seen, a);
	if (c.n > 1)
		prefer_equal_count(&c, want);
	if (c.n == 1) {
		found = c.v[0];
		r = (struct identified) { .found = true,
					  .ns = found->pod->ns,
					  .pod = found->pod->name,
					  .container = found->container->name,
					  .gpus = found->gpus,
					  .n_gpus = found->n_gpus };
	}
	r.ambiguous = c.n > 1;
	r.busy_gpus = busy_gpus(&views, found, &r.n_busy_gpus, a);
	r.why = explain(&views, &c, resource, a);
	remember(seen, pods, &views, found);
	return r;
}
