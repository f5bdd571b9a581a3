/* Edits as JSON, for people and scripts. */
#include "base/json.h"
#include "render/render.h"

void render_json_devices(const struct edits *edits, struct json *j)
{
	for (size_t i = 0; i < edits->n_devs; i++) {
		json_begin_object(j);
		json_kv_string(j, "host", edits->devs[i].host);
		json_kv_string(j, "container", edits->devs[i].container);
		json_kv_string(j, "permissions", edits->devs[i].permissions);
		json_end_object(j);
	}
}

void render_json_mounts(const struct edits *edits, struct json *j)
{
	for (size_t i = 0; i < edits->n_mounts; i++) {
		json_begin_object(j);
		json_kv_string(j, "host", edits->mounts[i].host);
		json_kv_string(j, "container", edits->mounts[i].container);
		json_kv_bool(j, "read_only", edits->mounts[i].read_only);
		json_end_object(j);
	}
}
