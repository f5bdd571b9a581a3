#include "kubemsg/podspec.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
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

int kubemsg_podspec_add(struct spec_pods *to, const struct spec_pod *pod, struct err *err)
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
