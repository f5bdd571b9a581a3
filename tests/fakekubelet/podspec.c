/*
 * `admit NAME [order=…] [claim=CLAIM:DRIVER/REQUEST=DEVICE,…]
 * [init:|sidecar:]CONTAINER:resource=n,…` → a pod. `claim:CLAIM[/REQUEST]` among a container's
 * resources: its part of that claim.
 */
#include "kubelet.h"

#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"

#define COUNT_MAX 100000

static const struct {
	const char *prefix;
	enum container_kind kind;
} kinds[] = {
	{ "init:", CONTAINER_INIT },
	{ "sidecar:", CONTAINER_SIDECAR },
};

/* Cuts the text at the mark, and returns what follows; NULL: it is not there. */
static char *cut(char *text, char mark)
{
	char *at = strchr(text, mark);

	if (at)
		*at++ = '\0';
	return at;
}

static int parse_device(char *text, struct fake_claim *claim, struct err *err)
{
	char *name = cut(text, '='), *request = cut(text, '/');

	if (!name || !request)
		return err_set(err, EINVAL, "claim %s: '%s' is not DRIVER/REQUEST=DEVICE",
			       claim->name, text);
	claim->devices[claim->n_devices++] = (struct fake_device) { text, request, name };
	return 0;
}

static int parse_claim(char *text, struct pod_entry *p, struct err *err)
{
	struct fake_claim *claim = &p->claims[p->n_claims++];
	char *devices = cut(text, ':'), *save;

	if (!devices)
		return err_set(err, EINVAL, "claim %s has no device", text);
	claim->name = text;
	claim->devices = arena_array(p->arena, strlen(devices), sizeof(*claim->devices));
	for (char *d = strtok_r(devices, ",", &save); d; d = strtok_r(NULL, ",", &save)) {
		if (parse_device(d, claim, err) < 0)
			return -err->code;
	}
	return 0;
}

static int parse_demand(char *text, struct fake_container *c, struct err *err)
{
	char *equals = strchr(text, '=');
	uint64_t count;

	if (str_starts(text, "claim:")) {
		char *claim = text + strlen("claim:");

		c->claims[c->n_claims++] = (struct spec_claim) { claim, cut(claim, '/') };
		return 0;
	}
	if (!equals || equals == text || str_to_u64(equals + 1, 10, COUNT_MAX, &count) < 0)
		return err_set(err, EINVAL, "container %s: '%s' is not RESOURCE=COUNT", c->name,
			       text);
	*equals = '\0';
	for (size_t i = 0; i < c->n_demands; i++) {
		if (!strcmp(c->demands[i].resource, text))
			return err_set(err, EINVAL, "container %s asks for %s twice", c->name,
				       text);
	}
	c->demands[c->n_demands++] = (struct demand) { .resource = text, .count = (int)count };
	return 0;
}

/* text lives in the pod's arena and is cut in place */
static int parse_container(char *text, struct arena *a, struct fake_container *c, struct err *err)
{
	size_t room = 1;
	char *colon, *save;

	c->kind = CONTAINER_APP;
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		if (!str_starts(text, kinds[i].prefix))
			continue;
		c->kind = kinds[i].kind;
		text += strlen(kinds[i].prefix);
	}
	colon = strchr(text, ':');
	if (!colon || colon == text)
		return err_set(err, EINVAL, "'%s' is not CONTAINER:resource=n,…", text);
	*colon = '\0';
	c->name = text;
	for (const char *s = colon + 1; *s; s++)
		room += *s == ',';
	c->demands = arena_array(a, room, sizeof(*c->demands));
	c->held = arena_array(a, room, sizeof(*c->held));
	c->claims = arena_array(a, room, sizeof(*c->claims));
	for (char *d = strtok_r(colon + 1, ",", &save); d; d = strtok_r(NULL, ",", &save)) {
		if (parse_demand(d, c, err) < 0)
			return -err->code;
	}
	return 0;
}

static bool is_gpu(const char *resource)
{
	return strstr(resource, "gpu") != NULL;
}

/* Stable: those of the wanted kind first. */
static void put_first(struct fake_container *c, bool gpus)
{
	size_t first = 0;

	for (size_t i = 0; i < c->n_demands; i++) {
		struct demand d = c->demands[i];

		if (is_gpu(d.resource) != gpus)
			continue;
		memmove(&c->demands[first + 1], &c->demands[first], (i - first) * sizeof(d));
		c->demands[first++] = d;
	}
}

/* The real one walks a Go map: any order (docs/design/kubelet.md §1.3). */
static int order_demands(struct kubelet *k, const char *order, struct pod_entry *p, struct err *err)
{
	for (size_t i = 0; i < p->n_containers; i++) {
		struct fake_container *c = &p->containers[i];

		if (!strcmp(order, "random"))
			sim_random_shuffle(&k->random, c->demands, c->n_demands,
					   sizeof(*c->demands));
		else if (!strcmp(order, "gpu-first") || !strcmp(order, "vf-first"))
			put_first(c, order[0] == 'g');
		else if (strcmp(order, "listed") != 0)
			return err_set(
				err, EINVAL,
				"order '%s': random, gpu-first, vf-first and listed are known",
				order);
	}
	return 0;
}

/* Init containers and sidecars come before the others, in their own order. */
static void order_containers(struct pod_entry *p)
{
	size_t first = 0;

	for (size_t i = 0; i < p->n_containers; i++) {
		struct fake_container c = p->containers[i];

		if (c.kind == CONTAINER_APP)
			continue;
		memmove(&p->containers[first + 1], &p->containers[first], (i - first) * sizeof(c));
		p->containers[first++] = c;
	}
}

static void name_pod(struct kubelet *k, const char *name, struct pod_entry *p)
{
	const char *slash = strchr(name, '/');

	p->ns = slash ? arena_printf(p->arena, "%.*s", (int)(slash - name), name) : "default";
	p->name = arena_strdup(p->arena, slash ? slash + 1 : name);
	p->uid = arena_printf(p->arena, "%08x-%04x-4%03x-8%03x-%012llx",
			      (unsigned)sim_random_below(&k->random, UINT32_MAX),
			      (unsigned)sim_random_below(&k->random, 0x10000),
			      (unsigned)sim_random_below(&k->random, 0x1000),
			      (unsigned)sim_random_below(&k->random, 0x1000),
			      (unsigned long long)sim_random_below(&k->random, UINT64_C(1) << 48));
}

static int parse_into(struct kubelet *k, char **argv, size_t argc, struct pod_entry *p,
		      struct err *err)
{
	const char *order = "random";

	if (argc < 1)
		return err_set(err, EINVAL, "admit needs a pod name");
	if (pod_find(k, argv[0]))
		return err_set(err, EEXIST, "pod %s is already there", argv[0]);
	name_pod(k, argv[0], p);
	p->containers = arena_array(p->arena, argc, sizeof(*p->containers));
	p->claims = arena_array(p->arena, argc, sizeof(*p->claims));
	for (size_t i = 1; i < argc; i++) {
		if (str_starts(argv[i], "order=")) {
			order = argv[i] + strlen("order=");
			continue;
		}
		if (str_starts(argv[i], "claim=")) {
			if (parse_claim(arena_strdup(p->arena, argv[i] + strlen("claim=")), p,
					err) < 0)
				return -err->code;
			continue;
		}
		if (parse_container(arena_strdup(p->arena, argv[i]), p->arena,
				    &p->containers[p->n_containers++], err) < 0)
			return -err->code;
	}
	if (!p->n_containers)
		return err_set(err, EINVAL, "pod %s has no container", argv[0]);
	order_containers(p);
	return order_demands(k, order, p, err);
}

int pod_parse(struct kubelet *k, char **argv, size_t argc, struct pod_entry **ret, struct err *err)
{
	_cleanup_arena_ struct arena *arena = arena_new(4096);
	struct pod_entry *p = arena_alloc(arena, sizeof(*p));

	p->arena = arena;
	p->active = true;
	if (parse_into(k, argv, argc, p, err) < 0)
		return -err->code;
	arena = NULL;
	*ret = p;
	return 0;
}
