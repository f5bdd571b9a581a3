#include "config/config-internal.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"

__attribute__((format(printf, 3, 0))) static const char *
sentence(const struct parse *p, const struct item *at, const char *fmt, va_list ap)
{
	const char *path = item_path(at, p->scratch);
	char what[400];

	vsnprintf(what, sizeof(what), fmt, ap);
	return arena_printf(p->out, "%s:%d: %s%s%s", p->name, at->line, path, *path ? ": " : "",
			    what);
}

int refuse(const struct parse *p, const struct item *at, const char *fmt, ...)
{
	const char *text;
	va_list ap;

	va_start(ap, fmt);
	text = sentence(p, at, fmt, ap);
	va_end(ap);
	return err_set(p->err, EINVAL, "%s", text);
}

void config_warn(struct parse *p, const struct item *at, const char *fmt, ...)
{
	va_list ap;

	if (p->warnings.n++ >= WARNINGS_MAX)
		return;
	va_start(ap, fmt);
	p->warnings.v[p->warnings.n - 1] = sentence(p, at, fmt, ap);
	va_end(ap);
}

static void add_error(struct parse *p, const char *text)
{
	if (p->errors.n++ < WARNINGS_MAX)
		p->errors.v[p->errors.n - 1] = text;
	*p->err = (struct err) { 0 };
}

void leave_out(struct parse *p, const char *what)
{
	add_error(p, arena_printf(p->out, "%s; %s is left out", p->err->msg, what));
}

/* A refused value is read on, for its other errors: the first refusal is the reason. */
struct refusal {
	int r;
	struct err err;
};

static void read_on(struct parse *p, int r, struct refusal *first)
{
	if (r == 0)
		return;
	if (first->r == 0) {
		*first = (struct refusal) { r, *p->err };
		*p->err = (struct err) { 0 };
	} else {
		add_error(p, arena_strdup(p->out, p->err->msg));
	}
}

/* More errors than these are not reported. */
static bool is_enough(const struct parse *p, const struct refusal *first)
{
	return first->r < 0 && p->errors.n >= WARNINGS_MAX;
}

static int settle(const struct parse *p, const struct refusal *first)
{
	if (first->r < 0)
		*p->err = first->err;
	return first->r;
}

static void put_list(const struct parse *p, const struct sentences *s, size_t skip,
		     const char *kind, struct strbuf *also)
{
	for (size_t i = 0; i < s->n && i < WARNINGS_MAX; i++) {
		if (i != skip)
			strbuf_printf(also, "%s\n", s->v[i]);
	}
	if (s->n > WARNINGS_MAX)
		strbuf_printf(also, "%s: %zu more %s like these\n", p->name, s->n - WARNINGS_MAX,
			      kind);
}

static void put_sentences(const struct parse *p, struct strbuf *also)
{
	put_list(p, &p->errors, p->n_refused ? p->refused_at : SIZE_MAX, "errors", also);
	put_list(p, &p->warnings, SIZE_MAX, "warnings", also);
}

int read_file_text(struct parse *p, const char *text, size_t len, size_t max, element_fn read,
		   void *out, struct strbuf *also, struct err *err)
{
	const struct item *document;
	struct err own = { 0 };
	int r;

	if (len > max)
		return err_set(err, EINVAL, "%s: has %zu bytes; %zu are read at most", p->name, len,
			       max);
	p->err = &own;
	r = document_parse(text, len, p->name, p->scratch, &document, &own);
	if (r == 0)
		r = read(p, document, out);
	if (r < 0 && also)
		put_sentences(p, also);
	if (r < 0 && err)
		*err = own;
	p->err = NULL;
	return r;
}

const char *shown(const struct parse *p, const struct item *string)
{
	return document_shown(string->string, p->scratch);
}

int want(const struct parse *p, const struct item *value, enum item_type type)
{
	if (value->type == type)
		return 0;
	return refuse(p, value, "must be %s, not %s", item_type_name(type),
		      item_type_name(value->type));
}

static const char *joined(const struct parse *p, const char *const *words, size_t n)
{
	_cleanup_strbuf_ struct strbuf b = STRBUF_INIT;

	for (size_t i = 0; i < n; i++)
		strbuf_printf(&b, "%s%s", i ? ", " : "", words[i]);
	return arena_strdup(p->scratch, strbuf_str(&b));
}

int want_choice(const struct parse *p, const struct item *value, const char *const *choices,
		size_t n, int *ret)
{
	int r = want(p, value, ITEM_STRING);

	if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++) {
		if (!strcmp(choices[i], value->string)) {
			*ret = (int)i;
			return 0;
		}
	}
	return refuse(p, value, "'%s' is not legal; legal values: %s", shown(p, value),
		      joined(p, choices, n));
}

int read_bool(struct parse *p, const struct item *value, const struct key *key, void *out)
{
	memcpy((char *)out + key->at, &value->boolean, sizeof(value->boolean));
	return 0;
}

int read_number(struct parse *p, const struct item *value, const struct key *key, void *out)
{
	int number = (int)value->number;

	if (value->type != ITEM_NUMBER || !value->whole || value->number < key->min ||
	    value->number > key->max)
		return refuse(p, value, "must be a whole number from %lld to %lld",
			      (long long)key->min, (long long)key->max);
	memcpy((char *)out + key->at, &number, sizeof(number));
	return 0;
}

int read_choice(struct parse *p, const struct item *value, const struct key *key, void *out)
{
	int choice, r = want_choice(p, value, key->choices, key->n_choices, &choice);

	if (r == 0)
		memcpy((char *)out + key->at, &choice, sizeof(choice));
	return r;
}

int want_hex4(const struct parse *p, const struct item *value, const char *what, uint16_t *ret)
{
	int r = want(p, value, ITEM_STRING);
	uint64_t v;

	if (r < 0)
		return r;
	if (strspn(value->string, "0123456789abcdefABCDEF") != 4 || value->string[4] ||
	    str_to_u64(value->string, 16, UINT16_MAX, &v) < 0)
		return refuse(p, value,
			      "'%s' is not a %s: four hexadecimal digits without 0x, such as 15b3",
			      shown(p, value), what);
	*ret = (uint16_t)v;
	return 0;
}

const struct key *key_find(const struct key_set *set, const char *name)
{
	for (size_t i = 0; i < set->n; i++) {
		if (!strcasecmp(set->keys[i].name, name))
			return &set->keys[i];
	}
	return NULL;
}

/* The legal key that was probably meant, or NULL. */
static const char *nearest(const struct key_set *set, const char *word)
{
	const char *best = NULL;
	size_t best_distance = 3;

	for (size_t i = 0; i < set->n; i++) {
		size_t d = word_distance(word, set->keys[i].name);

		if (!set->keys[i].hidden && d < best_distance && d < strlen(word)) {
			best = set->keys[i].name;
			best_distance = d;
		}
	}
	return best;
}

static const char *legal_keys(const struct parse *p, const struct key_set *set)
{
	const char *names[KEYS_PER_SET_MAX];
	size_t n = 0;

	for (size_t i = 0; i < set->n; i++) {
		if (!set->keys[i].hidden)
			names[n++] = set->keys[i].name;
	}
	return joined(p, names, n);
}

/* A member that no key of ours names. The line is the member's, the path its object's. */
static void unknown_member(struct parse *p, const struct item *member, const struct key_set *set)
{
	const char *near = nearest(set, member->key);
	struct item at = *member->parent;
	const char *key = document_shown(member->key, p->scratch);

	at.line = member->line;
	if (set->unknown && set->unknown(p, member))
		return;
	if (near)
		config_warn(p, &at, "unknown key '%s' is ignored; did you mean '%s'?", key, near);
	else
		config_warn(p, &at, "unknown key '%s' is ignored; known keys: %s", key,
			    legal_keys(p, set));
}

static int read_value(struct parse *p, const struct item *value, const struct key *key, void *out)
{
	int r = key->type ? want(p, value, key->type) : 0;

	return r < 0 ? r : key->read(p, value, key, out);
}

int read_members(struct parse *p, const struct item *object, const struct key_set *set, void *out)
{
	const struct item *seen[KEYS_PER_SET_MAX] = { NULL };
	struct refusal first = { 0 };
	int r = want(p, object, ITEM_OBJECT);

	assert(set->n <= KEYS_PER_SET_MAX);
	if (r < 0)
		return r;
	for (size_t i = 0; i < object->n_kids && !is_enough(p, &first); i++) {
		const struct item *kid = &object->kids[i];
		const struct key *key = key_find(set, kid->key);

		r = 0;
		if (!key) {
			unknown_member(p, kid, set);
		} else if (seen[key - set->keys]) {
			r = refuse(p, kid, "repeats the key '%s' of line %d (case does not count)",
				   seen[key - set->keys]->key, seen[key - set->keys]->line);
		} else {
			seen[key - set->keys] = kid;
			r = kid->type == ITEM_NULL ? 0 : read_value(p, kid, key, out);
		}
		if (r < 0 && set->lenient && !(key && key->vital))
			leave_out(p, "the key");
		else
			read_on(p, r, &first);
	}
	return settle(p, &first);
}

int read_list(struct parse *p, const struct item *value, const struct key *key, void *out)
{
	struct refusal first = { 0 };
	int r = want(p, value, ITEM_LIST);
	char *elements;

	if (r < 0)
		return r;
	elements = arena_array(p->out, value->n_kids, key->size);
	for (size_t i = 0; i < value->n_kids && !is_enough(p, &first); i++)
		read_on(p, key->element(p, &value->kids[i], elements + i * key->size), &first);
	if (first.r < 0)
		return settle(p, &first);
	memcpy((char *)out + key->at, &elements, sizeof(elements));
	memcpy((char *)out + key->count, &value->n_kids, sizeof(value->n_kids));
	return 0;
}

int one_string(struct parse *p, const struct item *value, void *ret_string)
{
	const char *copy;
	int r = want(p, value, ITEM_STRING);

	if (r < 0)
		return r;
	if (!value->string[0])
		return refuse(p, value, "is an empty string");
	copy = arena_strdup(p->out, value->string);
	memcpy(ret_string, &copy, sizeof(copy));
	return 0;
}

int read_text(struct parse *p, const struct item *value, const struct key *key, void *out)
{
	return one_string(p, value, (char *)out + key->at);
}
