#include "kubemsg/podspec.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/mem.h"
#include "base/str.h"
#include "kubemsg/messages.h"

bool kubemsg_podspec_is_extended(const char *resource)
{
	return strchr(resource, '/') && !strstr(resource, "kubernetes.io/") &&
	       !str_starts(resource, "requests.");
}

bool kubemsg_podspec_is_over(const char *phase)
{
	return str_eq(phase, "Succeeded") || str_eq(phase, "Failed");
}

enum spec_kind kubemsg_podspec_kind(bool init, const char *restart_policy)
{
	if (!init)
		return SPEC_APP;
	return str_eq(restart_policy, "Always") ? SPEC_SIDECAR : SPEC_INIT;
}

static int scale(int64_t *v, int64_t base, uint64_t exponent)
{
	while (exponent--) {
		if (__builtin_mul_overflow(*v, base, v))
			return -EINVAL;
	}
	return 0;
}

/* What may follow the digits; "e3" and "E3" are powers of ten, "E" alone is one of the names. */
static int apply_suffix(const char *suffix, int64_t *v)
{
	static const struct {
		const char *name;
		int64_t base;
		unsigned exponent;
	} suffixes[] = {
		{ "", 1, 0 },	   { "k", 1000, 1 },  { "M", 1000, 2 },	 { "G", 1000, 3 },
		{ "T", 1000, 4 },  { "P", 1000, 5 },  { "E", 1000, 6 },	 { "Ki", 1024, 1 },
		{ "Mi", 1024, 2 }, { "Gi", 1024, 3 }, { "Ti", 1024, 4 }, { "Pi", 1024, 5 },
		{ "Ei", 1024, 6 },
	};
	uint64_t exponent;

	for (size_t i = 0; i < ARRAY_LEN(suffixes); i++) {
		if (!strcmp(suffix, suffixes[i].name))
			return scale(v, suffixes[i].base, suffixes[i].exponent);
	}
	if ((*suffix == 'e' || *suffix == 'E') && str_to_u64(suffix + 1, 10, 18, &exponent) == 0)
		return scale(v, 10, exponent);
	return -EINVAL;
}

int kubemsg_podspec_count(const char *quantity, int64_t *ret)
{
	char digits[20] = "";
	size_t n = strspn(quantity, "0123456789");
	uint64_t u;
	int64_t v;

	if (!n || n >= sizeof(digits))
		return -EINVAL;
	memcpy(digits, quantity, n);
	if (str_to_u64(digits, 10, INT64_MAX, &u) < 0)
		return -EINVAL;
	v = (int64_t)u;
	if (apply_suffix(quantity + n, &v) < 0)
		return -EINVAL;
	*ret = v;
	return 0;
}

/* --- copies, and what is in them --- */

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

static int by_spec_name(const void *x, const void *y)
{
	const struct spec_pod *a = x, *b = y;
	int r = strcmp(a->name, b->name);

	return r ? r : strcmp(a->ns, b->ns);
}

struct spec_list kubemsg_podspec_copy(const struct spec_list *specs, struct arena *a)
{
	struct spec_pod *v = arena_array(a, specs->n, sizeof(*v));

	for (size_t i = 0; i < specs->n; i++)
		v[i] = copy_pod(&specs->v[i], a);
	if (specs->n)
		qsort(v, specs->n, sizeof(*v), by_spec_name);
	return (struct spec_list) { v, specs->n };
}

const struct spec_pod *kubemsg_podspec_find(const struct spec_list *specs, const char *ns,
					    const char *name)
{
	const struct spec_pod key = { .ns = ns, .name = name };

	return specs->n ? bsearch(&key, specs->v, specs->n, sizeof(key), by_spec_name) : NULL;
}

const struct ids *kubemsg_held(const struct pod_container *c, const char *resource)
{
	for (size_t i = 0; i < c->n_held; i++) {
		if (str_eq(c->held[i].resource, resource) && c->held[i].ids.n)
			return &c->held[i].ids;
	}
	return NULL;
}

static int by_pod_name(const void *x, const void *y)
{
	const struct pod *a = x, *b = y;
	int r = strcmp(a->name, b->name);

	return r ? r : strcmp(a->ns, b->ns);
}

void kubemsg_pods_sort(struct pod *pods, size_t n)
{
	if (n)
		qsort(pods, n, sizeof(*pods), by_pod_name);
}

const struct pod *kubemsg_pods_find(const struct pod_list *pods, const char *ns, const char *name)
{
	const struct pod key = { .ns = ns, .name = name };

	return pods->n ? bsearch(&key, pods->v, pods->n, sizeof(key), by_pod_name) : NULL;
}
