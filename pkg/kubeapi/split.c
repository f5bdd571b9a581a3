#include "kubeapi/split-internal.h"

#include <errno.h>
#include <string.h>

#include "base/err.h"

#define LIST_KEY "items"

void kubeapi_split_init(struct split *s, size_t item_max, split_item_fn item, void *arg)
{
	*s = (struct split) {
		.item_max = item_max, .item = item, .arg = arg, .where = SPLIT_BEFORE
	};
}

void kubeapi_split_done(struct split *s)
{
	strbuf_done(&s->text);
}

static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static int malformed(struct err *err)
{
	return err_set(err, EBADMSG, "is not JSON");
}

/* --- values: elements, and what is skipped --- */

static int open_bracket(struct split *s, char c, struct err *err)
{
	if (s->depth == SPLIT_DEPTH_MAX)
		return err_set(err, EBADMSG, "is nested more than %d deep", SPLIT_DEPTH_MAX);
	s->lists &= ~(UINT64_C(1) << s->depth);
	s->lists |= (uint64_t)(c == '[') << s->depth++;
	return 0;
}

static void in_string(struct split *s, char c)
{
	if (s->escaped)
		s->escaped = false;
	else if (c == '\\')
		s->escaped = true;
	else if (c == '"')
		s->in_string = false;
}

/* How much of data belongs to the value under way; *ended: it is complete. */
static int run_of_value(struct split *s, const char *data, size_t len, size_t *ret, bool *ended,
			struct err *err)
{
	size_t i = 0;
	int r = 0;

	*ended = false;
	while (i < len && !*ended && r == 0) {
		char c = data[i++];

		if (s->in_string) {
			in_string(s, c);
			*ended = !s->in_string && !s->depth;
		} else if (c == '"') {
			s->in_string = true;
		} else if (c == '{' || c == '[') {
			r = open_bracket(s, c, err);
		} else if ((c == '}' || c == ']') && s->depth) {
			s->depth--;
			if ((s->lists >> s->depth & 1) != (c == ']'))
				r = malformed(err);
			*ended = !s->depth;
		} else if (!s->depth && (is_space(c) || strchr(",}]", c))) {
			*ended = true; /* a number or a word: it ended before this character (or a
					  NUL) */
			i--;
		}
	}
	*ret = i;
	return r;
}

static int value(struct split *s, const char *data, size_t len, size_t *ret, struct err *err)
{
	bool item = s->where == SPLIT_IN_ITEM, ended;
	int r = run_of_value(s, data, len, ret, &ended, err);

	if (r < 0)
		return r;
	if (item || s->is_items) {
		if (s->text.len + *ret > s->item_max)
			return err_set(err, EFBIG,
				       "holds an element of %s that is larger than %zu bytes",
				       LIST_KEY, s->item_max);
		strbuf_add(&s->text, data, *ret);
	}
	if (!ended)
		return 0;
	s->where = item ? SPLIT_ITEM_COMMA : SPLIT_COMMA;
	if (item)
		return s->item(s->arg, strbuf_str(&s->text), s->text.len, err);
	if (s->is_items && strcmp(strbuf_str(&s->text), "null") != 0)
		return err_set(err, EBADMSG, "holds %s that are not a list", LIST_KEY);
	return 0;
}

/* Goes on with the same character: it is the value's first. */
static int begin_value(struct split *s, enum split_where where, char c, struct err *err)
{
	if (strchr(",}]:", c)) /* or NUL */
		return malformed(err);
	s->where = where;
	s->depth = 0;
	s->in_string = s->escaped = false;
	s->text.len = 0;
	return 0;
}

/* --- keys and what stands between --- */

/* A key with an escape, or a longer one, is not ours. */
static int in_key(struct split *s, char c, struct err *err)
{
	s->in_string = true;
	in_string(s, c);
	if (s->in_string) {
		if (s->text.len <= strlen(LIST_KEY))
			strbuf_putc(&s->text, c);
		return 0;
	}
	s->where = SPLIT_COLON;
	s->is_items = !strcmp(strbuf_str(&s->text), LIST_KEY);
	if (s->is_items && s->found)
		return err_set(err, EBADMSG, "holds %s twice", LIST_KEY);
	s->found |= s->is_items;
	return 0;
}

static int begin_key(struct split *s, char c, struct err *err)
{
	if (c == '}' && s->where == SPLIT_FIRST_KEY) {
		s->where = SPLIT_AFTER;
		return 0;
	}
	if (c != '"')
		return malformed(err);
	s->where = SPLIT_IN_KEY;
	strbuf_done(&s->text);
	s->escaped = false;
	return 0;
}

/* The one character, or the other, takes us on. */
static int expect(struct split *s, char c, char one, enum split_where after_one, char other,
		  enum split_where after_other, struct err *err)
{
	if (c != one && c != other)
		return malformed(err);
	s->where = c == one ? after_one : after_other;
	return 0;
}

/* One character outside of values; *used: it is done with. */
static int mark(struct split *s, char c, bool *used, struct err *err)
{
	*used = true;
	if (s->where == SPLIT_IN_KEY)
		return in_key(s, c, err);
	if (is_space(c))
		return 0;
	switch (s->where) {
	case SPLIT_BEFORE:
		return expect(s, c, '{', SPLIT_FIRST_KEY, '{', SPLIT_FIRST_KEY, err);
	case SPLIT_FIRST_KEY:
	case SPLIT_KEY:
		return begin_key(s, c, err);
	case SPLIT_COLON:
		return expect(s, c, ':', SPLIT_VALUE, ':', SPLIT_VALUE, err);
	case SPLIT_COMMA:
		return expect(s, c, ',', SPLIT_KEY, '}', SPLIT_AFTER, err);
	case SPLIT_ITEM_COMMA:
		return expect(s, c, ',', SPLIT_ITEM, ']', SPLIT_COMMA, err);
	case SPLIT_VALUE:
		if (s->is_items && c == '[') {
			s->where = SPLIT_FIRST_ITEM;
			return 0;
		}
		*used = false;
		return begin_value(s, SPLIT_IN_VALUE, c, err);
	case SPLIT_FIRST_ITEM:
		if (c == ']') {
			s->where = SPLIT_COMMA;
			return 0;
		}
		/* fallthrough */
	case SPLIT_ITEM:
		*used = false;
		return begin_value(s, SPLIT_IN_ITEM, c, err);
	default: /* SPLIT_AFTER */
		return malformed(err);
	}
}

int kubeapi_split_push(struct split *s, const char *data, size_t len, struct err *err)
{
	while (len) {
		size_t n = 1;
		int r;

		if (s->where == SPLIT_IN_VALUE || s->where == SPLIT_IN_ITEM) {
			r = value(s, data, len, &n, err);
		} else {
			bool used;

			r = mark(s, *data, &used, err);
			n = used;
		}
		if (r < 0)
			return r;
		data += n;
		len -= n;
	}
	return 0;
}

int kubeapi_split_end(struct split *s, struct err *err)
{
	if (s->where == SPLIT_BEFORE)
		return err_set(err, EBADMSG, "is empty");
	if (s->where != SPLIT_AFTER)
		return err_set(err, EBADMSG, "ends in the middle");
	if (!s->found)
		return err_set(err, EBADMSG, "holds no %s: it is not a list of pods", LIST_KEY);
	return 0;
}
