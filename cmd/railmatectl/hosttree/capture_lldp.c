/* What a capture has of the neighbours: of NICs, and what discovery reads of them. */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/json.h"
#include "base/str.h"
#include "discover/lldp.h"
#include "hosttree/capture-internal.h"

/* Of switches or of ports, each once, in their order. */
struct known {
	const char **v;
	size_t n;
};

static int by_version(const void *a, const void *b)
{
	const char *const *x = a, *const *y = b;

	return strverscmp(*x, *y);
}

static const char *of_entry(const struct lldp_entry *entry, bool port)
{
	return port ? entry->port : entry->name;
}

static struct known known_of(const struct lldp_entry *entries, size_t n, bool port,
			     struct arena *arena)
{
	struct known known = { arena_array(arena, n, sizeof(*known.v)), 0 };
	size_t all = 0;

	for (size_t i = 0; i < n; i++) {
		if (of_entry(&entries[i], port))
			known.v[all++] = of_entry(&entries[i], port);
	}
	if (all)
		qsort(known.v, all, sizeof(*known.v), by_version);
	for (size_t i = 0; i < all; i++) {
		if (!i || !str_eq(known.v[i], known.v[known.n - 1]))
			known.v[known.n++] = known.v[i];
	}
	return known;
}

/* A made-up name, by its place in their order: the rails stay what they are. */
static const char *made_up(const struct known *known, const char *text, const char *what,
			   struct arena *arena)
{
	const char **at = bsearch(&text, known->v, known->n, sizeof(*known->v), by_version);

	return arena_printf(arena, "%s-%zd", what, at - known->v + 1);
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
	struct known switches, ports;
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
	switches = known_of(kept, n_kept, false, arena);
	ports = known_of(kept, n_kept, true, arena);
	for (size_t i = 0; c->scrubber && i < n_kept; i++) {
		if (kept[i].name)
			entries[i].name = made_up(&switches, kept[i].name, "switch", arena);
		if (kept[i].port)
			entries[i].port = made_up(&ports, kept[i].port, "port", arena);
	}
	json_init(&j, &text, 0);
	put_entries(&j, entries, n_kept);
	line_file(c->out, LLDP_FILE, strbuf_str(&text), text.len);
}
