/*
 * Pods as the kubelet has them: PodResources, what their specs come to, and the Pods API that has
 * those as protobuf. kubeclient, pods and kubeapi call.
 */
#include "kubemsg/podspec.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "corepod.pb-c.h"
#include "kubemsg/apilist.h"
#include "kubemsg/messages-internal.h"
#include "kubemsg/messages.h"
#include "podresources.pb-c.h"
#include "podsapi.pb-c.h"

/* PodResources: containers and their devices. */

static int by_resource(const void *x, const void *y)
{
	const V1__ContainerDevices *const *a = x, *const *b = y;

	return strcmp((*a)->resource_name, (*b)->resource_name);
}

/* Entries first … end of one resource → one list of ids. */
static struct held merge(V1__ContainerDevices **v, size_t first, size_t end, struct arena *a)
{
	struct held h = { .resource = arena_strdup(a, v[first]->resource_name) };
	size_t total = 0;

	for (size_t i = first; i < end; i++)
		total += v[i]->n_device_ids;
	h.ids.v = arena_array(a, total, sizeof(*h.ids.v));
	for (size_t i = first; i < end; i++) {
		for (size_t k = 0; k < v[i]->n_device_ids; k++)
			h.ids.v[h.ids.n++] = arena_strdup(a, v[i]->device_ids[k]);
	}
	return h;
}

static void held_from(V1__ContainerDevices **v, size_t n, struct pod_container *c, struct arena *a)
{
	c->held = arena_array(a, n, sizeof(*c->held));
	if (n)
		qsort(v, n, sizeof(*v), by_resource);
	for (size_t i = 0, end; i < n; i = end) {
		for (end = i + 1; end < n && !strcmp(v[i]->resource_name, v[end]->resource_name);)
			end++;
		c->held[c->n_held++] = merge(v, i, end, a);
	}
}

static struct dynamic dynamic_of(const V1__ClaimResource *m, const char *claim, struct arena *a)
{
	struct dynamic d = { .driver = arena_strdup(a, m->driver_name),
			     .pool = arena_strdup(a, m->pool_name),
			     .device = arena_strdup(a, m->device_name),
			     .claim = claim };

	d.cdi.v = arena_array(a, m->n_cdi_devices, sizeof(*d.cdi.v));
	for (size_t i = 0; i < m->n_cdi_devices; i++)
		d.cdi.v[d.cdi.n++] = arena_strdup(a, m->cdi_devices[i]->name);
	return d;
}

static bool begins_with(const struct ids *ids, const struct ids *start)
{
	for (size_t i = 0; i < start->n; i++) {
		if (i >= ids->n || strcmp(ids->v[i], start->v[i]) != 0)
			return false;
	}
	return true;
}

/* Kubelets to 1.36 repeat with each device of a driver the CDI names of those before it. */
static void keep_own_names(struct dynamic *claim, size_t n)
{
	for (size_t i = n; i-- > 0;) {
		struct ids *own = &claim[i].cdi;
		size_t before = i;

		while (before && strcmp(claim[before - 1].driver, claim[i].driver) != 0)
			before--;
		if (!before || own->n <= claim[before - 1].cdi.n ||
		    !begins_with(own, &claim[before - 1].cdi))
			continue;
		own->v += claim[before - 1].cdi.n;
		own->n -= claim[before - 1].cdi.n;
	}
}

static void dynamic_from(V1__DynamicResource **v, size_t n, struct pod_container *c,
			 struct arena *a)
{
	size_t total = 0;

	for (size_t i = 0; i < n; i++)
		total += v[i]->n_claim_resources;
	c->dynamic = arena_array(a, total, sizeof(*c->dynamic));
	for (size_t i = 0; i < n; i++) {
		struct dynamic *claim = c->dynamic + c->n_dynamic;
		const char *name = arena_strdup(a, v[i]->claim_name);

		for (size_t k = 0; k < v[i]->n_claim_resources; k++)
			claim[k] = dynamic_of(v[i]->claim_resources[k], name, a);
		keep_own_names(claim, v[i]->n_claim_resources);
		c->n_dynamic += v[i]->n_claim_resources;
	}
}

/* Of a pod's containers that hold nothing so many stay: a thousand are any tenant's to create. */
#define IDLE_MAX 128

static bool is_idle(const V1__ContainerResources *m)
{
	return !m->n_devices && !m->n_dynamic_resources;
}

static size_t count_kept(const V1__PodResources *m)
{
	size_t n_idle = 0;

	for (size_t i = 0; i < m->n_containers; i++)
		n_idle += is_idle(m->containers[i]);
	return m->n_containers - (n_idle > IDLE_MAX ? n_idle - IDLE_MAX : 0);
}

static struct pod pod_from(const V1__PodResources *m, struct arena *a)
{
	struct pod p = { arena_strdup(a, m->namespace_), arena_strdup(a, m->name),
			 arena_array(a, count_kept(m), sizeof(*p.containers)), 0 };
	size_t n_idle = 0;

	for (size_t i = 0; i < m->n_containers; i++) {
		const V1__ContainerResources *from = m->containers[i];
		struct pod_container *c = &p.containers[p.n_containers];

		if (is_idle(from) && n_idle++ >= IDLE_MAX)
			continue;
		c->name = arena_strdup(a, from->name);
		held_from(from->devices, from->n_devices, c, a);
		dynamic_from(from->dynamic_resources, from->n_dynamic_resources, c, a);
		p.n_containers++;
	}
	return p;
}

static int read_pod(struct bytes in, struct pod *ret, struct arena *a, struct err *err)
{
	_cleanup_arena_ struct arena *scratch = arena_new(4096);
	const V1__PodResources *m =
		kubemsg_unpack(&v1__pod_resources__descriptor, in, scratch, err);

	if (!m)
		return -EBADMSG;
	*ret = pod_from(m, a);
	return 0;
}

#define LIST_BYTES_MAX ((size_t)16 << 20)

static int too_large(struct err *err)
{
	return err_set(err, EBADMSG, "ListPodResourcesResponse: its pods take more than %zu MiB",
		       LIST_BYTES_MAX >> 20);
}

/* Field 1 is a pod: one after the other, for unpacked they take twenty times as much. */
static int pod_list_read(struct bytes in, void *ret, struct arena *a, struct err *err)
{
	struct pod_list list = { NULL, 0 };
	struct bytes rest = in, pod;
	size_t room = 0, before = arena_used(a);
	int r = 0;

	while (kubemsg_next(&rest, 1, &pod))
		room++;
	if (rest.len)
		return err_set(
			err, EBADMSG,
			"ListPodResourcesResponse: the bytes end in the middle of a field or are not protobuf");
	if (room > LIST_BYTES_MAX / sizeof(*list.v))
		return too_large(err);
	list.v = arena_array(a, room, sizeof(*list.v));
	while (r == 0 && kubemsg_next(&in, 1, &pod)) {
		r = read_pod(pod, &list.v[list.n++], a, err);
		if (r == 0 && arena_used(a) - before > LIST_BYTES_MAX)
			r = too_large(err);
	}
	if (r == 0)
		*(struct pod_list *)ret = list;
	return r;
}

const struct kubemsg_type kubemsg_pod_list = { .desc = &v1__list_pod_resources_response__descriptor,
					       .read = pod_list_read };

static int pod_get_reply_from(const void *message, void *ret, struct arena *a, struct err *err)
{
	const V1__GetPodResourcesResponse *m = message;

	if (!m->pod_resources)
		return err_set(err, EBADMSG, "GetPodResourcesResponse: there is no pod in it");
	*(struct pod *)ret = pod_from(m->pod_resources, a);
	return 0;
}

const struct kubemsg_type kubemsg_pod_get_reply = {
	.desc = &v1__get_pod_resources_response__descriptor,
	.is_copied = true,
	.from = pod_get_reply_from
};

static int allocatable_from(const void *message, void *ret, struct arena *a, struct err *err)
{
	const V1__AllocatableResourcesResponse *m = message;
	struct pod_container *c = ret;

	*c = (struct pod_container) { .name = "" };
	held_from(m->devices, m->n_devices, c, a);
	return 0;
}

const struct kubemsg_type kubemsg_allocatable = {
	.desc = &v1__allocatable_resources_response__descriptor,
	.is_copied = true,
	.from = allocatable_from
};

static void pod_get_request_to(const void *from, void *message, struct arena *a)
{
	const struct pod_name *pod = from;
	V1__GetPodResourcesRequest *m = message;

	m->pod_namespace = (char *)pod->ns;
	m->pod_name = (char *)pod->name;
}

const struct kubemsg_type kubemsg_pod_get_request = {
	.desc = &v1__get_pod_resources_request__descriptor, .to = pod_get_request_to
};

/* --- the specs of pods --- */

bool kubemsg_podspec_is_extended(const char *resource)
{
	return strchr(resource, '/') && !strstr(resource, "kubernetes.io/") &&
	       !str_starts(resource, "requests.");
}

/* --- quantities --- */

/* v·base^exponent, exactly. v is not 0: so many steps are not exact, or do not fit, soon. */
static int scale(uint64_t *v, uint64_t base, int64_t exponent)
{
	for (; exponent > 0; exponent--) {
		if (__builtin_mul_overflow(*v, base, v))
			return -EINVAL;
	}
	for (; exponent < 0; exponent++) {
		if (*v % base)
			return -EINVAL;
		*v /= base;
	}
	return 0;
}

/* A number is v·5^fives·2^twos. */
struct number {
	uint64_t v;
	int64_t fives, twos;
};

static void shift(struct number *n, int64_t tens)
{
	n->fives += tens;
	n->twos += tens;
}

/* Zeros that end the digits are no digits, so "1000000000000000000000e-21" fits. */
static int add_digits(struct number *n, const char *digits, size_t len, size_t *zeros)
{
	for (size_t i = 0; i < len; i++) {
		uint64_t digit = (uint64_t)(digits[i] - '0');

		++*zeros;
		if (!digit)
			continue;
		if (n->v && scale(&n->v, 10, (int64_t)*zeros) < 0)
			return -EINVAL;
		if (__builtin_add_overflow(n->v, digit, &n->v))
			return -EINVAL;
		*zeros = 0;
	}
	return 0;
}

/* "12", "1.", ".5"; *at: behind it. */
static int read_digits(const char **at, struct number *n)
{
	const char *whole = *at, *part;
	size_t n_whole = strspn(whole, "0123456789"), n_part = 0, zeros = 0;
	int r;

	part = whole + n_whole;
	if (*part == '.')
		n_part = strspn(++part, "0123456789");
	if (!n_whole && !n_part)
		return -EINVAL;
	*at = part + n_part;
	r = add_digits(n, whole, n_whole, &zeros);
	r = r < 0 ? r : add_digits(n, part, n_part, &zeros);
	if (n->v)
		shift(n, (int64_t)zeros - (int64_t)n_part);
	return r;
}

/* The power of ten behind "e" or "E". No larger one fits, whatever the digits; *ret of a larger one
 * is as large as that. */
static int read_exponent(const char *text, int64_t *ret)
{
	bool minus = *text == '-';
	const char *digits = text + (*text == '-' || *text == '+');
	size_t n = strspn(digits, "0123456789");
	int64_t v = 0;

	if (!n || digits[n])
		return -EINVAL;
	for (size_t i = 0; i < n; i++)
		v = v < 1000000 ? 10 * v + (digits[i] - '0') : v;
	*ret = minus ? -v : v;
	return 0;
}

/* "E" alone is a name, not an exponent. */
static int read_suffix(const char *suffix, struct number *n)
{
	static const struct {
		const char *name;
		int tens, twos;
	} names[] = {
		{ "", 0, 0 },	 { "n", -9, 0 },  { "u", -6, 0 },  { "m", -3, 0 },
		{ "k", 3, 0 },	 { "M", 6, 0 },	  { "G", 9, 0 },   { "T", 12, 0 },
		{ "P", 15, 0 },	 { "E", 18, 0 },  { "Ki", 0, 10 }, { "Mi", 0, 20 },
		{ "Gi", 0, 30 }, { "Ti", 0, 40 }, { "Pi", 0, 50 }, { "Ei", 0, 60 },
	};
	int64_t tens;

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		if (!strcmp(suffix, names[i].name)) {
			shift(n, names[i].tens);
			n->twos += names[i].twos;
			return 0;
		}
	}
	if ((*suffix != 'e' && *suffix != 'E') || read_exponent(suffix + 1, &tens) < 0)
		return -EINVAL;
	shift(n, tens);
	return 0;
}

int kubemsg_podspec_count(const char *quantity, int64_t *ret)
{
	const char *at = quantity + (*quantity == '+' || *quantity == '-');
	struct number n = { 0 };
	int r = read_digits(&at, &n);

	r = r < 0 ? r : read_suffix(at, &n);
	/* Divisions are exact in any order, and before multiplications nothing overflows early. */
	if (r == 0 && n.v)
		r = scale(&n.v, 5, n.fives);
	if (r == 0 && n.v)
		r = scale(&n.v, 2, n.twos);
	if (r < 0 || n.v > INT64_MAX || (n.v && *quantity == '-'))
		return -EINVAL;
	*ret = (int64_t)n.v;
	return 0;
}

/* --- copies, and their contents --- */

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
	pod.uid = arena_strdup(a, from->uid);
	pod.unread = arena_strdup(a, from->unread);
	pod.containers = containers;
	return pod;
}

struct draclaim kubemsg_draclaim_copy(const struct draclaim *claim, struct arena *a)
{
	struct draclaim_device *v = arena_array(a, claim->n, sizeof(*v));
	struct draclaim_user *users = arena_array(a, claim->n_users, sizeof(*users));
	struct draclaim copy = *claim;

	for (size_t i = 0; i < claim->n; i++) {
		const struct draclaim_device *d = &claim->v[i];

		v[i] = (struct draclaim_device) { .request = arena_strdup(a, d->request),
						  .driver = arena_strdup(a, d->driver),
						  .pool = arena_strdup(a, d->pool),
						  .device = arena_strdup(a, d->device),
						  .share = arena_strdup(a, d->share),
						  .vfs = d->vfs,
						  .admin = d->admin };
	}
	for (size_t i = 0; i < claim->n_users; i++)
		users[i] = (struct draclaim_user) { arena_strdup(a, claim->users[i].pod),
						    arena_strdup(a, claim->users[i].uid) };
	copy.name = arena_strdup(a, claim->name);
	copy.uid = arena_strdup(a, claim->uid);
	copy.v = v;
	copy.users = users;
	return copy;
}

static size_t size_of(const char *s)
{
	return s ? strlen(s) + 1 : 0;
}

/* The bytes of the containers in a list, alignment aside. */
static size_t size_of_containers(const struct spec_pod *pod)
{
	size_t size = pod->n_containers * sizeof(*pod->containers);

	for (size_t i = 0; i < pod->n_containers; i++) {
		const struct spec_container *c = &pod->containers[i];

		size += size_of(c->name) + c->n_limits * sizeof(*c->limits) +
			c->n_claims * sizeof(*c->claims);
		for (size_t k = 0; k < c->n_limits; k++)
			size += size_of(c->limits[k].resource);
		for (size_t k = 0; k < c->n_claims; k++)
			size += size_of(c->claims[k].claim) + size_of(c->claims[k].request);
	}
	return size;
}

/* An array that grows is there twice for a moment. */
static size_t size_with_one_more(const struct spec_pods *p)
{
	size_t places = p->n < p->cap ? p->cap : 3 * p->cap;

	return arena_used(p->arena) + places * sizeof(*p->v);
}

/* Adds a copy, without the containers where they are too many or pod->unread is set. -EFBIG: there
 * are more pods than a node can run. */
static int add_pod(struct spec_pods *to, const struct spec_pod *pod, struct err *err)
{
	struct spec_pod kept = *pod;

	if (!kept.unread && size_of_containers(pod) > SPEC_POD_BYTES_MAX)
		kept.unread = "its containers ask for more than is kept of one pod";
	if (kept.unread)
		kept.n_containers = 0;
	if (size_with_one_more(to) > SPEC_LIST_BYTES_MAX)
		return err_set(err, EFBIG, "the pods' limits and names take more than %zu bytes",
			       SPEC_LIST_BYTES_MAX);
	to->v = xgrow(to->v, &to->cap, to->n + 1, sizeof(*to->v));
	to->v[to->n++] = copy_pod(&kept, to->arena);
	return 0;
}

void kubemsg_podspec_done(struct spec_pods *pods)
{
	free(pods->v);
	*pods = (struct spec_pods) { 0 };
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

/* Pods as protobuf, of the Pods API and of the API server. */

/* Of a pod, without all that is not read. */
#define POD_BYTES_MAX 32768

/* The scheduler has made a claim of the container's limit: no device plugin is asked for it. */
static bool is_by_dra(const Corepod__Pod *pod, const char *container, const char *resource)
{
	const Corepod__PodExtendedResourceClaimStatus *extended =
		pod->status ? pod->status->extended_resource_claim_status : NULL;

	for (size_t i = 0; extended && i < extended->n_request_mappings; i++) {
		const Corepod__ContainerExtendedResourceRequest *r = extended->request_mappings[i];

		if (!strcmp(r->container_name, container) && !strcmp(r->resource_name, resource))
			return true;
	}
	return false;
}

static int too_many(const char *what, struct err *err)
{
	return err_set(err, EFBIG, "it has more %s than are read of one pod", what);
}

static int limits_from(const Corepod__Pod *from, const Corepod__ResourceRequirements *m,
		       struct spec_container *c, size_t *parts, struct arena *a, struct err *err)
{
	struct spec_limit *v = arena_array(a, m->n_limits, sizeof(*v));
	size_t n = 0;

	for (size_t i = 0; i < m->n_limits; i++) {
		const Corepod__ResourceRequirements__LimitsEntry *e = m->limits[i];
		int64_t count;

		if (!kubemsg_podspec_is_extended(e->key))
			continue;
		if (kubemsg_podspec_count(e->value ? e->value->string : "", &count) < 0)
			return err_set(err, EBADMSG,
				       "container %s: the limit of %s is not a whole number",
				       c->name, e->key);
		if (!count)
			continue;
		if (++*parts > SPEC_PARTS_MAX)
			return too_many("limits and claims", err);
		if (!is_by_dra(from, c->name, e->key))
			v[n++] = (struct spec_limit) { e->key, count };
	}
	c->limits = v;
	c->n_limits = n;
	return 0;
}

/* The ResourceClaim behind a name of the pod's own: made of a template, the status names it. NULL:
 * none. */
static const char *claim_of(const Corepod__Pod *pod, const char *name)
{
	for (size_t i = 0; i < pod->spec->n_resource_claims; i++) {
		const Corepod__PodResourceClaim *c = pod->spec->resource_claims[i];

		if (!strcmp(c->name, name) && *c->resource_claim_name)
			return c->resource_claim_name;
	}
	for (size_t i = 0; pod->status && i < pod->status->n_resource_claim_statuses; i++) {
		const Corepod__PodResourceClaimStatus *c = pod->status->resource_claim_statuses[i];

		if (!strcmp(c->name, name) && *c->resource_claim_name)
			return c->resource_claim_name;
	}
	return NULL;
}

static struct spec_claim spec_claim_of(const char *claim, const char *request)
{
	return (struct spec_claim) { claim, *request ? request : NULL };
}

static int claims_from(const Corepod__Pod *pod, const Corepod__Container *m,
		       struct spec_container *c, size_t *parts, struct arena *a, struct err *err)
{
	const Corepod__PodExtendedResourceClaimStatus *extended =
		pod->status ? pod->status->extended_resource_claim_status : NULL;
	size_t n_claims = m->resources ? m->resources->n_claims : 0;
	struct spec_claim *v;

	if (n_claims > SPEC_PARTS_MAX || (*parts += n_claims) > SPEC_PARTS_MAX)
		return too_many("limits and claims", err);
	v = arena_array(a, n_claims + (extended ? extended->n_request_mappings : 0), sizeof(*v));
	c->claims = v;
	for (size_t i = 0; i < n_claims; i++) {
		const Corepod__ResourceClaim *part = m->resources->claims[i];
		const char *claim = claim_of(pod, part->name);

		if (claim)
			v[c->n_claims++] = spec_claim_of(claim, part->request);
	}
	for (size_t i = 0; extended && i < extended->n_request_mappings; i++) {
		const Corepod__ContainerExtendedResourceRequest *r = extended->request_mappings[i];

		if (!strcmp(r->container_name, m->name))
			v[c->n_claims++] =
				spec_claim_of(extended->resource_claim_name, r->request_name);
	}
	return 0;
}

static int container_from(const Corepod__Pod *pod, const Corepod__Container *m, bool init,
			  struct spec_container *c, size_t *parts, struct arena *a, struct err *err)
{
	int r;

	if (!*m->name)
		return err_set(err, EBADMSG, "a container has no name");
	c->name = m->name;
	c->kind = !init ? SPEC_APP : str_eq(m->restart_policy, "Always") ? SPEC_SIDECAR : SPEC_INIT;
	r = claims_from(pod, m, c, parts, a, err);
	return r < 0 || !m->resources ? r : limits_from(pod, m->resources, c, parts, a, err);
}

/* Names are searched one by one. */
static int check_claims(const Corepod__Pod *pod, struct err *err)
{
	const Corepod__PodStatus *status = pod->status;

	if (pod->spec->n_resource_claims > SPEC_CLAIMS_MAX ||
	    (status &&
	     (status->n_resource_claim_statuses > SPEC_CLAIMS_MAX ||
	      (status->extended_resource_claim_status &&
	       status->extended_resource_claim_status->n_request_mappings > SPEC_CLAIMS_MAX))))
		return too_many("ResourceClaims", err);
	return 0;
}

static int containers_from(struct bytes in, struct spec_pod *p, struct arena *a, struct err *err)
{
	const Corepod__Pod *pod =
		kubemsg_unpack_known(&corepod__pod__descriptor, in, POD_BYTES_MAX, a, err);
	const Corepod__PodSpec *m = pod ? pod->spec : NULL;
	size_t n_init = m ? m->n_init_containers : 0, n = m ? n_init + m->n_containers : 0;
	struct spec_container *v;
	size_t parts = 0;
	int r = 0;

	if (!m)
		return pod ? err_set(err, EBADMSG, "it has no spec") : -EBADMSG;
	if (n > SPEC_PARTS_MAX)
		return too_many("containers", err);
	v = arena_array(a, n, sizeof(*v));
	r = check_claims(pod, err);
	for (size_t i = 0; i < n && r == 0; i++)
		r = container_from(pod,
				   i < n_init ? m->init_containers[i] : m->containers[i - n_init],
				   i < n_init, &v[i], &parts, a, err);
	if (r < 0)
		return r;
	p->containers = v;
	p->n_containers = n;
	return 0;
}

int kubemsg_list_pod(void *arg, struct bytes in, struct err *err)
{
	_cleanup_arena_ struct arena *scratch = arena_new(16384);
	const Corepod__NamedPod *m = kubemsg_unpack_known(&corepod__named_pod__descriptor, in,
							  POD_BYTES_MAX, scratch, err);
	struct spec_pod p = { 0 };
	struct err why = { 0 };

	if (!m)
		return -EBADMSG;
	if (!m->metadata || !*m->metadata->name || !*m->metadata->namespace_)
		return err_set(err, EBADMSG, "a pod has no name");
	if (m->status &&
	    (str_eq(m->status->phase, "Succeeded") || str_eq(m->status->phase, "Failed")))
		return 0;
	p.ns = m->metadata->namespace_;
	p.name = m->metadata->name;
	p.uid = m->metadata->uid;
	p.deleted = m->metadata->deletion_timestamp != NULL;
	p.created = m->metadata->creation_timestamp ? m->metadata->creation_timestamp->seconds : 0;
	if (containers_from(in, &p, scratch, &why) < 0)
		p.unread = why.msg;
	return add_pod(arg, &p, err);
}

/* ListPodsResponse: field 1 is a pod. The answer is all pods of the node, so it is not copied. */
static int pod_specs_read(struct bytes in, void *ret, struct arena *a, struct err *err)
{
	struct spec_pods pods = { .arena = a };
	struct bytes pod;
	int r = 0;

	while (r == 0 && kubemsg_next(&in, 1, &pod))
		r = kubemsg_list_pod(&pods, pod, err);
	if (r == 0 && in.len)
		r = err_set(err, EBADMSG,
			    "the list of pods ends in the middle of one or is not protobuf");
	if (r == 0)
		*(struct spec_list *)ret =
			(struct spec_list) { arena_copy(a, pods.v, pods.n * sizeof(*pods.v)),
					     pods.n };
	kubemsg_podspec_done(&pods);
	return r;
}

const struct kubemsg_type kubemsg_pod_specs = { .desc = &v1alpha1__list_pods_response__descriptor,
						.read = pod_specs_read };
