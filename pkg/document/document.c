#include "document/document.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include <jansson.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"

/* The text while its lines are counted. It is valid JSON: jansson has read it. */
struct walk {
	const char *at, *end;
	int line;
	struct arena *arena;
};

static void skip_space(struct walk *w)
{
	while (w->at < w->end && strchr(" \t\r\n", *w->at)) {
		if (*w->at++ == '\n')
			w->line++;
	}
}

/* A JSON string holds no raw line feed, so its line does not change. */
static void skip_string(struct walk *w)
{
	for (w->at++; w->at < w->end && *w->at != '"'; w->at++) {
		if (*w->at == '\\')
			w->at++;
	}
	w->at++;
}

static void skip_mark(struct walk *w, char mark)
{
	skip_space(w);
	if (w->at < w->end && *w->at == mark)
		w->at++;
	skip_space(w);
}

static void build(struct walk *w, const json_t *json, struct item *out);

static void build_object(struct walk *w, const json_t *json, struct item *out)
{
	json_t *object = (json_t *)json; /* iteration takes no const; nothing is changed */
	struct item *kids = arena_array(w->arena, json_object_size(json), sizeof(*kids));
	struct item *kid = kids;
	const char *key;
	json_t *value;

	/* jansson keeps the order of insertion, which is that of the text; no key is there twice.
	 */
	json_object_foreach(object, key, value)
	{
		skip_mark(w, kid == kids ? '{' : ',');
		*kid = (struct item) { .parent = out,
				       .index = (size_t)(kid - kids),
				       .line = w->line };
		kid->key = arena_strdup(w->arena, key);
		skip_string(w);
		skip_mark(w, ':');
		build(w, value, kid++);
	}
	if (kid == kids)
		skip_mark(w, '{');
	skip_space(w);
	w->at++;
	out->kids = kids;
	out->n_kids = (size_t)(kid - kids);
}

static void build_list(struct walk *w, const json_t *json, struct item *out)
{
	size_t n = json_array_size(json);
	struct item *kids = arena_array(w->arena, n, sizeof(*kids));

	for (size_t i = 0; i < n; i++) {
		skip_mark(w, i ? ',' : '[');
		kids[i] = (struct item) { .parent = out, .index = i, .line = w->line };
		build(w, json_array_get(json, i), &kids[i]);
	}
	if (!n)
		skip_mark(w, '[');
	skip_space(w);
	w->at++;
	out->kids = kids;
	out->n_kids = n;
}

static void build(struct walk *w, const json_t *json, struct item *out)
{
	static const enum item_type types[] = {
		[JSON_OBJECT] = ITEM_OBJECT, [JSON_ARRAY] = ITEM_LIST,
		[JSON_STRING] = ITEM_STRING, [JSON_INTEGER] = ITEM_NUMBER,
		[JSON_REAL] = ITEM_NUMBER,   [JSON_TRUE] = ITEM_BOOL,
		[JSON_FALSE] = ITEM_BOOL,    [JSON_NULL] = ITEM_NULL,
	};

	out->type = types[json_typeof(json)];
	out->text = w->at;
	out->boolean = json_is_true(json);
	if (out->type == ITEM_OBJECT) {
		build_object(w, json, out);
	} else if (out->type == ITEM_LIST) {
		build_list(w, json, out);
	} else if (out->type == ITEM_STRING) {
		out->string = arena_strdup(w->arena, json_string_value(json));
		skip_string(w);
	} else {
		out->whole = json_is_integer(json);
		out->number = json_integer_value(json);
		while (w->at < w->end && !strchr(" \t\r\n,]}", *w->at))
			w->at++;
	}
	out->text_len = (size_t)(w->at - out->text);
}

#define SHOWN_MAX 60

/* At most max bytes of text, all of it printable. */
static const char *clean(const char *text, size_t max, struct arena *arena)
{
	char *out = arena_printf(arena, "%.*s", (int)max, text);
	bool whole = !text[strlen(out)];

	if (!whole)
		str_utf8_trim(out);
	str_printable(out, strlen(out), "");
	return whole ? out : arena_printf(arena, "%s...", out);
}

const char *document_shown(const char *text, struct arena *arena)
{
	return clean(text, SHOWN_MAX, arena);
}

/* jansson's sentence is about its own lexer; its meaning for the file comes first. */
static int refuse_text(const char *name, const json_error_t *e, struct arena *arena,
		       struct err *err)
{
	static const struct {
		enum json_error_code code;
		const char *meaning;
	} meanings[] = {
		{ json_error_duplicate_key, "a key stands twice in one object" },
		{ json_error_invalid_utf8, "is not UTF-8 text" },
		{ json_error_null_character, "holds a NUL character" },
		{ json_error_null_byte_in_key, "holds a NUL character in a key" },
		{ json_error_stack_overflow, "is nested too deeply" },
		{ json_error_numeric_overflow, "holds a number that is too large" },
	};
	enum json_error_code code = json_error_code(e);
	const char *meaning = "is not JSON";

	for (size_t i = 0; i < ARRAY_LEN(meanings); i++) {
		if (meanings[i].code == code)
			meaning = meanings[i].meaning;
	}
	return err_set(err, EINVAL, "%s:%d: %s (%s)", name, e->line > 0 ? e->line : 1, meaning,
		       clean(e->text, sizeof(e->text), arena));
}

/* jansson's value and ours, each with its key: most of all for an object of one member. */
#define VALUE_BYTES 304

/* How many values the text holds at most. It need not be JSON. */
static size_t count_values(const char *text, size_t len)
{
	bool in_string = false;
	size_t n = 1;

	for (size_t i = 0; i < len; i++) {
		if (text[i] == '"')
			in_string = !in_string;
		else if (in_string)
			i += text[i] == '\\';
		else
			n += text[i] == ',' || text[i] == '[' || text[i] == '{';
	}
	return n;
}

/* Editors of Windows begin UTF-8 with a byte order mark, which JSON does not know (RFC 8259 §8.1:
 * it may be passed over), and some write UTF-16. */
static size_t byte_order_mark(const char *text, size_t len, bool *ret_utf16)
{
	*ret_utf16 = len >= 2 && (!memcmp(text, "\xff\xfe", 2) || !memcmp(text, "\xfe\xff", 2));
	return len >= 3 && !memcmp(text, "\xef\xbb\xbf", 3) ? 3 : 0;
}

int document_parse(const char *text, size_t len, const char *name, struct arena *arena,
		   const struct item **ret, struct err *err)
{
	bool utf16;
	size_t mark = byte_order_mark(text, len, &utf16);
	struct walk w = { .at = text + mark, .end = text + len, .line = 1, .arena = arena };
	json_auto_t *json = NULL;
	struct item *top;
	json_error_t e;

	if (utf16)
		return err_set(err, EINVAL, "%s:1: is UTF-16 text: save it as UTF-8", name);
	text += mark;
	len -= mark;
	if (!len)
		return err_set(err, EINVAL, "%s:1: is empty", name);
	if (count_values(text, len) > DOCUMENT_TREE_MAX / VALUE_BYTES)
		return err_set(err, EINVAL, "%s:1: holds more than %zu values", name,
			       DOCUMENT_TREE_MAX / VALUE_BYTES);
	json = json_loadb(text, len, JSON_REJECT_DUPLICATES, &e);
	if (!json)
		return refuse_text(name, &e, arena, err);
	top = arena_alloc(arena, sizeof(*top));
	skip_space(&w);
	top->line = w.line;
	build(&w, json, top);
	skip_space(&w);
	assert(w.at == w.end);
	*ret = top;
	return 0;
}

const char *item_type_name(enum item_type type)
{
	static const char *const names[ITEM_TYPE_MAX] = {
		[ITEM_NULL] = "null",	    [ITEM_BOOL] = "true or false",
		[ITEM_NUMBER] = "a number", [ITEM_STRING] = "a string",
		[ITEM_LIST] = "a list",	    [ITEM_OBJECT] = "an object",
	};

	return names[type];
}

const char *item_path(const struct item *item, struct arena *arena)
{
	const char *base;

	if (!item->parent)
		return "";
	base = item_path(item->parent, arena);
	if (!item->key)
		return arena_printf(arena, "%s[%zu]", base, item->index);
	return arena_printf(arena, "%s%s%s", base, *base ? "." : "",
			    document_shown(item->key, arena));
}

const struct item *item_get(const struct item *object, const char *key)
{
	for (size_t i = 0; object && object->type == ITEM_OBJECT && i < object->n_kids; i++) {
		if (!strcmp(object->kids[i].key, key))
			return &object->kids[i];
	}
	return NULL;
}

const char *item_string(const struct item *object, const char *key)
{
	const struct item *item = item_get(object, key);

	return item && item->type == ITEM_STRING ? item->string : NULL;
}

int64_t item_number(const struct item *object, const char *key, int64_t otherwise)
{
	const struct item *item = item_get(object, key);

	return item && item->whole ? item->number : otherwise;
}
