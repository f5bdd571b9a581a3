/* room: render document */
/*
 * Any strings in a CDI spec: its text is JSON that says the same, whatever the strings are, and a
 * file's name is read back as the slot that it was made of. Strings of the input end with a NUL:
 * the name of a file, then a slot, then variables, nodes and mounts, two strings each.
 */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "document/document.h"
#include "render/cdi.h"

#define EACH_MAX 4

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
	const char *at, *end;
};

static const char *take(struct input *in, struct arena *a)
{
	size_t n = strnlen(in->at, (size_t)(in->end - in->at));
	const char *s = arena_printf(a, "%.*s", (int)n, in->at);

	in->at += n < (size_t)(in->end - in->at) ? n + 1 : n;
	return s;
}

static void check_name(const char *name, struct arena *a)
{
	const char *slot = cdi_slot_of_file(name, a);

	if (slot)
		assert(*slot && str_eq(cdi_file_name(slot, a), name));
}

static void take_edits(struct input *in, struct arena *a, struct edits *e)
{
	e->envs = arena_array(a, EACH_MAX, sizeof(*e->envs));
	e->devs = arena_array(a, EACH_MAX, sizeof(*e->devs));
	e->mounts = arena_array(a, EACH_MAX, sizeof(*e->mounts));
	for (size_t i = 0; in->at < in->end && i < EACH_MAX; i++) {
		struct kv *env = &e->envs[e->n_envs++];

		env->key = take(in, a);
		env->value = take(in, a);
		if (in->at == in->end)
			break;
		e->devs[e->n_devs++] = (struct devnode) { .host = take(in, a),
							  .container = env->value,
							  .permissions = "rw" };
		e->mounts[e->n_mounts++] = (struct bindmount) { .host = take(in, a),
								.container = env->key,
								.read_only = i & 1 };
	}
}

/* What is no UTF-8 cannot be said in JSON; everything else comes back. */
static void check_string(const struct item *item, const char *s)
{
	assert(item && item->string);
	if (str_utf8_valid(s, strlen(s)))
		assert(str_eq(item->string, s));
}

static void check_nodes(const struct item *device, const struct edits *e)
{
	const struct item *edits = item_get(device, "containerEdits"),
			  *nodes = item_get(edits, "deviceNodes");

	assert((nodes ? nodes->n_kids : 0) == e->n_devs);
	assert(e->n_devs || !e->n_envs || item_get(edits, "env"));
	for (size_t i = 0; i < e->n_devs; i++)
		check_string(item_get(&nodes->kids[i], "path"), e->devs[i].container);
}

static void check_text(const char *text, const char *slot, const struct edits *e, struct arena *a)
{
	const struct item *top, *edits, *env, *mounts;
	struct err err = { 0 };

	assert(!document_parse(text, strlen(text), "spec", a, &top, &err));
	assert(str_eq(item_string(top, "kind"), CDI_KIND) && item_get(top, "devices")->n_kids == 1);
	check_string(item_get(&item_get(top, "devices")->kids[0], "name"), slot);
	check_nodes(&item_get(top, "devices")->kids[0], e);
	edits = item_get(top, "containerEdits");
	env = item_get(edits, "env");
	assert((env ? env->n_kids : 0) == e->n_envs);
	for (size_t i = 0; i < e->n_envs; i++)
		check_string(&env->kids[i],
			     arena_printf(a, "%s=%s", e->envs[i].key, e->envs[i].value));
	mounts = item_get(edits, "mounts");
	assert((mounts ? mounts->n_kids : 0) == e->n_mounts);
	for (size_t i = 0; i < e->n_mounts; i++)
		check_string(item_get(&mounts->kids[i], "hostPath"), e->mounts[i].host);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_arena_ struct arena *a = arena_new(8192);
	struct input in = { (const char *)data, (const char *)data + size };
	struct edits edits = { 0 }, twice[2], joined;
	const char *slot;

	if (!size)
		return 0;
	check_name(take(&in, a), a);
	slot = take(&in, a);
	take_edits(&in, a, &edits);
	check_text(render_cdi(&edits, &(struct cdi_entry) { slot, edits }, 1, a), slot, &edits, a);
	twice[0] = twice[1] = edits;
	joined = cdi_join(twice, 2, a);
	for (size_t i = 1; i < joined.n_envs; i++)
		assert(strcmp(joined.envs[i - 1].key, joined.envs[i].key) < 0);
	return 0;
}
