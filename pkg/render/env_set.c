#include <string.h>

#include "base/arena.h"
#include "base/str.h"
#include "render/render-internal.h"

/* Where it is, or would be. */
static size_t place_of(const struct env_set *set, const char *key, bool *ret_found)
{
	size_t i = 0;

	while (i < set->n && strcmp(set->v[i].key, key) < 0)
		i++;
	*ret_found = i < set->n && !strcmp(set->v[i].key, key);
	return i;
}

const char *env_get(const struct env_set *set, const char *key)
{
	bool found;
	size_t at = place_of(set, key, &found);

	return found ? set->v[at].value : NULL;
}

bool env_put(struct env_set *set, const char *key, const char *value)
{
	bool found;
	size_t at = place_of(set, key, &found);

	if (found)
		return false;
	if (set->n == set->room) {
		size_t room = set->room ? 2 * set->room : 16;
		struct kv *v = arena_array(set->arena, room, sizeof(*v));

		if (set->n)
			memcpy(v, set->v, set->n * sizeof(*v));
		set->v = v;
		set->room = room;
	}
	memmove(&set->v[at + 1], &set->v[at], (set->n++ - at) * sizeof(*set->v));
	set->v[at] = (struct kv) { key, value };
	return true;
}

void env_put_all(struct env_set *set, const struct edits *edits)
{
	for (size_t i = 0; i < edits->n_envs; i++)
		env_put(set, edits->envs[i].key, edits->envs[i].value);
}

void add_env(struct edits *edits, const char *key, const char *value)
{
	edits->envs[edits->n_envs++] = (struct kv) { key, value };
}

void add_note(struct notes *notes, const char *sentence)
{
	if (!notes)
		return;
	for (size_t i = 0; i < notes->n; i++) {
		if (!strcmp(notes->v[i], sentence))
			return;
	}
	if (notes->n == notes->room) {
		const char **v = arena_array(notes->arena, 2 * notes->room + 8, sizeof(*v));

		if (notes->n)
			memcpy(v, notes->v, notes->n * sizeof(*v));
		notes->v = v;
		notes->room = 2 * notes->room + 8;
	}
	notes->v[notes->n++] = sentence;
}

#define FEW_MAX 4

void few_add(struct few *few, const char *name)
{
	if (few->n++ < FEW_MAX) {
		if (few->last)
			strbuf_printf(few->text, "%s%s", few->n > 2 ? ", " : "", few->last);
		few->last = name;
	}
}

const char *few_end(struct few *few)
{
	if (few->n > FEW_MAX)
		strbuf_printf(few->text, ", %s and %zu more", few->last, few->n - FEW_MAX);
	else if (few->last)
		strbuf_printf(few->text, "%s%s", few->n > 1 ? " and " : "", few->last);
	few->last = NULL;
	return strbuf_str(few->text);
}
