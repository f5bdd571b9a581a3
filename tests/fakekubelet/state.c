/* What the device manager remembers: resources, pods, who holds what. */
#include "kubelet.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/mem.h"

struct resource *resource_find(struct kubelet *k, const char *name)
{
	struct resource *r = k->resources;

	while (r && strcmp(r->name, name))
		r = r->next;
	return r;
}

struct resource *resource_get(struct kubelet *k, const char *name)
{
	struct resource **at = &k->resources;

	while (*at && strcmp((*at)->name, name))
		at = &(*at)->next;
	if (!*at) {
		*at = xcalloc(1, sizeof(**at));
		(*at)->name = xstrdup(name);
	}
	return *at;
}

const struct device *resource_device(const struct resource *r, const char *id)
{
	for (size_t i = 0; i < r->devices.n; i++) {
		if (!strcmp(r->devices.v[i].id, id))
			return &r->devices.v[i];
	}
	return NULL;
}

size_t resource_allocatable(const struct resource *r)
{
	size_t n = 0;

	for (size_t i = 0; i < r->devices.n; i++)
		n += r->devices.v[i].healthy;
	return n;
}

void resource_mark_unhealthy(struct resource *r)
{
	for (size_t i = 0; i < r->devices.n; i++)
		r->devices.v[i].healthy = false;
}

bool resource_is_managed(const struct resource *r)
{
	return r->known || r->allocated.n;
}

static bool name_is(const struct pod_entry *p, const char *name)
{
	size_t n = strlen(p->ns);

	if (!strchr(name, '/'))
		return !strcmp(p->ns, "default") && !strcmp(p->name, name);
	return !strncmp(name, p->ns, n) && name[n] == '/' && !strcmp(name + n + 1, p->name);
}

struct pod_entry *pod_find(struct kubelet *k, const char *name)
{
	struct pod_entry *p = k->pods;

	while (p && !(p->active && name_is(p, name)))
		p = p->next;
	return p;
}

void forget_allocated(struct kubelet *k, const struct pod_entry *pod)
{
	for (size_t c = 0; c < pod->n_containers; c++) {
		for (size_t h = 0; h < pod->containers[c].n_held; h++) {
			const struct allocation *al = &pod->containers[c].held[h];
			struct resource *r = resource_get(k, al->resource);

			for (size_t i = 0; i < al->ids.n; i++)
				sim_idset_remove(&r->allocated, al->ids.v[i]);
		}
	}
}

void rebuild_allocated(struct kubelet *k)
{
	for (struct resource *r = k->resources; r; r = r->next)
		sim_idset_done(&r->allocated);
	for (struct pod_entry *p = k->pods; p; p = p->next) {
		for (size_t c = 0; c < p->n_containers; c++) {
			for (size_t h = 0; h < p->containers[c].n_held; h++) {
				const struct allocation *a = &p->containers[c].held[h];
				struct resource *r = resource_get(k, a->resource);

				for (size_t i = 0; i < a->ids.n; i++)
					sim_idset_add(&r->allocated, a->ids.v[i]);
			}
		}
	}
}

/*
 * As UpdateAllocatedDevices: nothing to do while every pod with records is active; else the set of
 * taken devices is computed anew from the records, and a reservation that is not recorded yet is
 * lost (docs/design/kubelet.md §2.2).
 */
void collect_inactive(struct kubelet *k, bool always)
{
	bool found = always;

	for (struct pod_entry **at = &k->pods; *at;) {
		struct pod_entry *p = *at;

		if (p->active || p->admitting) {
			at = &p->next;
			continue;
		}
		*at = p->next;
		arena_free(p->arena);
		found = true;
	}
	if (found)
		rebuild_allocated(k);
}

void state_free(struct kubelet *k)
{
	while (k->pods) {
		struct pod_entry *p = k->pods;

		k->pods = p->next;
		arena_free(p->arena);
	}
	while (k->resources) {
		struct resource *r = k->resources;

		k->resources = r->next;
		sim_idset_done(&r->allocated);
		arena_free(r->arena);
		free(r->name);
		free(r);
	}
	for (size_t i = 0; i < ARRAY_LEN(k->runtime_says); i++)
		free(k->runtime_says[i]);
}
