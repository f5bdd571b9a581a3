#include "render/cdi.h"

#include <string.h>

#include "base/arena.h"
#include "base/json.h"
#include "base/str.h"
#include "render/render-internal.h"

#define FILE_PREFIX "railmate.io-vf_"
#define FILE_SUFFIX ".json"

const char *cdi_device(const char *slot, struct arena *arena)
{
	return arena_printf(arena, CDI_KIND "=%s", slot);
}

const char *cdi_file_name(const char *slot, struct arena *arena)
{
	return arena_printf(arena, FILE_PREFIX "%s" FILE_SUFFIX, slot);
}

const char *cdi_slot_of_file(const char *name, struct arena *arena)
{
	size_t len = strlen(name), prefix = strlen(FILE_PREFIX), suffix = strlen(FILE_SUFFIX);

	if (len <= prefix + suffix || !str_starts(name, FILE_PREFIX) ||
	    strcmp(name + len - suffix, FILE_SUFFIX) != 0)
		return NULL;
	return arena_printf(arena, "%.*s", (int)(len - prefix - suffix), name + prefix);
}

struct edits cdi_join(const struct edits *v, size_t n, struct arena *arena)
{
	struct env_set set = { .arena = arena };

	for (size_t i = 0; i < n; i++)
		env_put_all(&set, &v[i]);
	return (struct edits) { .envs = set.v, .n_envs = set.n };
}

/* --- the text --- */

/* Type and numbers are left to the runtime, which looks at the node when it makes the container. */
static void put_nodes(struct json *j, const struct edits *edits)
{
	json_key(j, "deviceNodes");
	json_begin_array(j);
	for (size_t i = 0; i < edits->n_devs; i++) {
		const struct devnode *d = &edits->devs[i];

		json_begin_object(j);
		json_kv_string(j, "path", d->container);
		if (strcmp(d->host, d->container) != 0)
			json_kv_string(j, "hostPath", d->host);
		json_kv_string(j, "permissions", d->permissions);
		json_end_object(j);
	}
	json_end_array(j);
}

static void put_mounts(struct json *j, const struct edits *edits)
{
	json_key(j, "mounts");
	json_begin_array(j);
	for (size_t i = 0; i < edits->n_mounts; i++) {
		const struct bindmount *m = &edits->mounts[i];

		json_begin_object(j);
		json_kv_string(j, "hostPath", m->host);
		json_kv_string(j, "containerPath", m->container);
		json_key(j, "options");
		json_begin_array(j);
		json_put_string(j, m->read_only ? "ro" : "rw");
		json_put_string(j, "nosuid");
		json_put_string(j, "nodev");
		json_put_string(j, "bind");
		json_end_array(j);
		json_end_object(j);
	}
	json_end_array(j);
}

static void put_edits(struct json *j, const struct edits *edits)
{
	_cleanup_strbuf_ struct strbuf b = STRBUF_INIT;

	json_key(j, "containerEdits");
	json_begin_object(j);
	if (edits->n_envs) {
		json_key(j, "env");
		json_begin_array(j);
		for (size_t i = 0; i < edits->n_envs; i++) {
			b.len = 0;
			strbuf_printf(&b, "%s=%s", edits->envs[i].key, edits->envs[i].value);
			json_put_string(j, strbuf_str(&b));
		}
		json_end_array(j);
	}
	if (edits->n_devs)
		put_nodes(j, edits);
	if (edits->n_mounts)
		put_mounts(j, edits);
	json_end_object(j);
}

const char *render_cdi(const struct edits *common, const struct cdi_entry *v, size_t n,
		       struct arena *arena)
{
	const struct edits repeated = { .envs = common->envs, .n_envs = common->n_envs };
	_cleanup_strbuf_ struct strbuf b = STRBUF_INIT;
	struct json j;

	json_init(&j, &b, 1);
	json_begin_object(&j);
	json_kv_string(&j, "cdiVersion", CDI_VERSION);
	json_kv_string(&j, "kind", CDI_KIND);
	put_edits(&j, common);
	json_key(&j, "devices");
	json_begin_array(&j);
	/* A device without edits is refused by runtimes: one that has no nodes repeats the
	 * variables. */
	for (size_t i = 0; i < n; i++) {
		json_begin_object(&j);
		json_kv_string(&j, "name", v[i].slot);
		put_edits(&j, v[i].edits.n_devs ? &v[i].edits : &repeated);
		json_end_object(&j);
	}
	json_end_array(&j);
	json_end_object(&j);
	strbuf_putc(&b, '\n');
	return arena_strdup(arena, strbuf_str(&b));
}
