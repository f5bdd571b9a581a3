/* What a capture has of the neighbours: of NICs, and what discovery reads of them. */
#include <string.h>

#include "base/arena.h"
#include "base/json.h"
#include "base/str.h"
#include "discover/capture-internal.h"

static const char *of_entry(const struct lldp_entry *entry, bool port)
{
	return port ? entry->port : entry->name;
}

/* A made-up name, by its place in their order: the rails stay what they are. */
static const char *made_up(const struct lldp_entry *entries, size_t n, const char *text, bool port,
			   struct arena *arena)
{
	int before = 0;

	for (size_t i = 0; i < n; i++) {
		const char *other = of_entry(&entries[i], port);
		bool is_first = true;

		for (size_t k = 0; other && k < i; k++)
			is_first &= !str_eq(other, of_entry(&entries[k], port));
		before += other && is_first && strverscmp(other, text) < 0;
	}
	return arena_printf(arena, "%s-%d", port ? "port" : "switch", before + 1);
}

/* As lldpcli: "key":[{"name":[{"value":"…"}]}] */
static void put_value(struct json *j, const char *key, const char *part, const char *value)
{
	json_key(j, key);
	json_begin_array(j);
	json_begin_object(j);
	json_key(j, part);
	json_begin_array(j);
	json_begin_object(j);
	json_kv_string(j, "value", value);
	json_end_object(j);
	json_end_array(j);
	json_end_object(j);
	json_end_array(j);
}

static void put_entries(struct json *j, const struct lldp_entry *entries, size_t n)
{
	json_begin_object(j);
	json_key(j, "lldp");
	json_begin_array(j);
	json_begin_object(j);
	json_key(j, "interface");
	json_begin_array(j);
	for (size_t i = 0; i < n; i++) {
		json_begin_object(j);
		json_kv_string(j, "name", entries[i].interface);
		json_kv_string(j, "via", "LLDP");
		put_value(j, "chassis", "name", entries[i].name);
		put_value(j, "port", "id", entries[i].port);
		json_end_object(j);
	}
	json_end_array(j);
	json_end_object(j);
	json_end_array(j);
	json_end_object(j);
}

void capture_neighbors(struct capture *c)
{
	_cleanup_arena_ struct arena *arena = arena_new(8 * 1024);
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;
	struct lldp_entry *entries, *kept;
	struct json j;
	size_t n = 0, n_kept = 0;

	if (lldp_read(c->root, arena, &entries, &n, NULL) < 0)
		return;
	kept = arena_array(arena, n + 1, sizeof(*kept));
	for (size_t i = 0; i < n; i++) {
		if (!strchr(entries[i].interface, '/') &&
		    sysroot_exists(c->root, "sys/class/net/%s/device/class", entries[i].interface))
			kept[n_kept++] = entries[i];
	}
	memcpy(entries, kept, n_kept * sizeof(*kept));
	for (size_t i = 0; c->scrubber && i < n_kept; i++) {
		if (kept[i].name)
			entries[i].name = made_up(kept, n_kept, kept[i].name, false, arena);
		if (kept[i].port)
			entries[i].port = made_up(kept, n_kept, kept[i].port, true, arena);
	}
	json_init(&j, &text, 0);
	put_entries(&j, entries, n_kept);
	line_file(c->out, LLDP_FILE, strbuf_str(&text), text.len);
}
