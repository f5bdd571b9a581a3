#include "kubeapi/sieve-internal.h"

#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"

#define LIST_KEY     "items"
#define METADATA_KEY "metadata"

/* How many brackets are open within the answer, within its items, within an element. */
enum { IN_ANSWER = 1, IN_ITEMS, IN_ELEMENT };

void kubeapi_sieve_init(struct sieve *s, const struct sieve_reader *reader)
{
	*s = (struct sieve) { .reader = reader, .where = SIEVE_BEFORE };
}

void kubeapi_sieve_done(struct sieve *s)
{
	strbuf_done(&s->text);
	strbuf_done(&s->metadata);
}

static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static int malformed(struct err *err)
{
	return err_set(err, EBADMSG, "is not JSON");
}

static struct sieve_level *top(struct sieve *s)
{
	return &s->levels[s->n_levels - 1];
}

/* --- kept text --- */

static void put(struct sieve *s, const char *data, size_t len)
{
	if (!s->member || s->overflowed)
		return;
	s->overflowed = s->text.len + len > s->reader->member_max;
	if (!s->overflowed)
		strbuf_add(&s->text, data, len);
}

static void begin_member(struct sieve *s, const char *key)
{
	s->member = key;
	s->overflowed = false;
	s->text.len = 0;
}

static int end_member(struct sieve *s, struct err *err)
{
	const char *key = s->member, *text = s->overflowed ? NULL : strbuf_str(&s->text);

	s->member = NULL;
	s->overflowed = false;
	if (text && !strcmp(text, "null")) /* as if it was not there */
		return 0;
	return s->reader->member(s->reader->arg, key, text, text ? s->text.len : 0, err);
}

/* A member of the answer itself. */
static int end_of_answers(struct sieve *s, struct err *err)
{
	const char *key = STEAL(s->member);

	if (!strcmp(key, METADATA_KEY)) {
		s->metadata.len = 0;
		if (!s->overflowed)
			strbuf_add(&s->metadata, s->text.s, s->text.len);
	} else if (s->overflowed || strcmp(strbuf_str(&s->text), "null") != 0) {
		return err_set(err, EBADMSG, "holds %s that are not a list", LIST_KEY);
	}
	return 0;
}

/* --- values --- */

/* The value is complete, and is one of the innermost open bracket. */
static int end_value(struct sieve *s, struct err *err)
{
	s->where = SIEVE_COMMA;
	if (s->n_levels == IN_ITEMS)
		return s->reader->end(s->reader->arg, err);
	if (s->n_levels == IN_ELEMENT && s->member)
		return end_member(s, err);
	return s->n_levels == IN_ANSWER && s->member ? end_of_answers(s, err) : 0;
}

/* How much of data belongs to a string; its end clears s->in_string. */
static size_t run_of_string(struct sieve *s, const char *data, size_t len)
{
	size_t i = 0;

	if (s->escaped && len) {
		s->escaped = false;
		i++;
	}
	while (i < len && s->in_string) {
		char c = data[i++];

		if (c == '"') {
			s->in_string = false;
		} else if (c == '\\') {
			s->escaped = i == len;
			i += i < len;
		}
	}
	return i;
}

/* How much of data belongs to the value of which all stays, or nothing; *ended: it is complete. */
static size_t run_of_whole(struct sieve *s, const char *data, size_t len, bool *ended)
{
	size_t i = 0;

	*ended = false;
	while (i < len && !*ended) {
		char c = data[i];

		if (s->in_string) {
			i += run_of_string(s, data + i, len - i);
			*ended = !s->in_string && !s->depth;
			continue;
		}
		i++;
		if (c == '"') {
			s->in_string = true;
		} else if (c == '{' || c == '[') {
			s->overflowed |= ++s->depth + s->n_levels > SIEVE_DEPTH_MAX && s->kept;
		} else if ((c == '}' || c == ']') && s->depth) {
			*ended = !--s->depth;
		} else if (!s->depth && (is_space(c) || strchr(",}]", c))) {
			*ended = true; /* a number or a word: it ended before this character (or a
					  NUL) */
			i--;
		}
	}
	return i;
}

static int in_whole(struct sieve *s, const char *data, size_t len, size_t *ret, struct err *err)
{
	bool ended;

	*ret = run_of_whole(s, data, len, &ended);
	if (s->kept)
		put(s, data, *ret);
	return ended ? end_value(s, err) : 0;
}

static void open_level(struct sieve *s, char c, const struct keep *inside)
{
	put(s, &c, 1);
	s->levels[s->n_levels++] = (struct sieve_level) { inside, c == '[', false };
	s->where = c == '[' ? SIEVE_FIRST_VALUE : SIEVE_FIRST_KEY;
}

/* The first character of a value; *used: it is done with. */
static int begin_value(struct sieve *s, char c, bool *used, struct err *err)
{
	bool opens = c == '{' || c == '[';

	if (strchr(",}]:", c)) /* or NUL */
		return malformed(err);
	if (s->n_levels == IN_ITEMS && c != '{')
		return err_set(err, EBADMSG, "holds an element of %s that is not an object",
			       LIST_KEY);
	if (top(s)->is_list) {
		s->kept = true;
		s->inside = top(s)->keep;
		if (top(s)->has_one)
			put(s, ",", 1);
		top(s)->has_one = true;
	}
	if (s->n_levels == IN_ANSWER && s->kept && !s->inside)
		begin_member(s, METADATA_KEY);
	else if (s->n_levels == IN_ANSWER && s->kept && c != '[')
		begin_member(s, LIST_KEY); /* null, or an error */
	else if (opens && s->kept && s->inside && s->n_levels < SIEVE_DEPTH_MAX && !s->overflowed) {
		open_level(s, c, s->inside);
		return 0;
	}
	*used = false;
	s->where = SIEVE_IN_WHOLE;
	s->depth = 0;
	s->in_string = s->escaped = false;
	return 0;
}

/* --- keys and the text between --- */

static bool is_key(const struct sieve *s, const char *key)
{
	return s->key_len == strlen(key) && !memcmp(s->key, key, s->key_len);
}

static int found_key_of_answer(struct sieve *s, struct err *err)
{
	bool is_list = is_key(s, LIST_KEY);

	s->kept = is_list || is_key(s, METADATA_KEY);
	s->inside = is_list ? s->reader->keep : NULL;
	if (is_list && s->has_items)
		return err_set(err, EBADMSG, "holds %s twice", LIST_KEY);
	s->has_items |= is_list;
	return 0;
}

static int found_key(struct sieve *s, struct err *err)
{
	const struct keep *k = top(s)->keep;

	s->where = SIEVE_COLON;
	if (s->n_levels == IN_ANSWER)
		return found_key_of_answer(s, err);
	while (k->key && !is_key(s, k->key))
		k++;
	s->kept = k->key;
	s->inside = k->inside;
	if (!s->kept)
		return 0;
	if (s->n_levels == IN_ELEMENT) {
		begin_member(s, k->key);
		return 0;
	}
	put(s, ",", top(s)->has_one);
	put(s, "\"", 1);
	put(s, k->key, s->key_len);
	put(s, "\":", 2);
	top(s)->has_one = true;
	return 0;
}

static int in_key(struct sieve *s, char c, struct err *err)
{
	if (c == '"' && !s->escaped)
		return found_key(s, err);
	s->escaped = c == '\\' && !s->escaped;
	if (s->key_len < sizeof(s->key))
		s->key[s->key_len++] = c;
	return 0;
}

static int begin_key(struct sieve *s, char c, struct err *err)
{
	if (c != '"')
		return malformed(err);
	s->where = SIEVE_IN_KEY;
	s->key_len = 0;
	s->escaped = false;
	return 0;
}

static int close_level(struct sieve *s, char c, struct err *err)
{
	if (c != (top(s)->is_list ? ']' : '}'))
		return malformed(err);
	if (s->n_levels > IN_ELEMENT)
		put(s, &c, 1);
	if (--s->n_levels)
		return end_value(s, err);
	s->where = SIEVE_AFTER;
	return 0;
}

static int begin_answer(struct sieve *s, char c, struct err *err)
{
	if (c != '{')
		return malformed(err);
	open_level(s, c, NULL);
	return 0;
}

/* One character outside of whole values; *used: it is done with. */
static int mark(struct sieve *s, char c, bool *used, struct err *err)
{
	*used = true;
	if (s->where == SIEVE_IN_KEY)
		return in_key(s, c, err);
	if (is_space(c))
		return 0;
	switch (s->where) {
	case SIEVE_BEFORE:
		return begin_answer(s, c, err);
	case SIEVE_FIRST_KEY:
		return c == '}' ? close_level(s, c, err) : begin_key(s, c, err);
	case SIEVE_KEY:
		return begin_key(s, c, err);
	case SIEVE_COLON:
		s->where = SIEVE_VALUE;
		return c == ':' ? 0 : malformed(err);
	case SIEVE_FIRST_VALUE:
		return c == ']' ? close_level(s, c, err) : begin_value(s, c, used, err);
	case SIEVE_VALUE:
		return begin_value(s, c, used, err);
	case SIEVE_COMMA:
		if (c != ',')
			return close_level(s, c, err);
		s->where = top(s)->is_list ? SIEVE_VALUE : SIEVE_KEY;
		return 0;
	default: /* SIEVE_AFTER */
		return malformed(err);
	}
}

int kubeapi_sieve_push(struct sieve *s, const char *data, size_t len, struct err *err)
{
	while (len) {
		size_t n = 1;
		int r;

		if (s->where == SIEVE_IN_WHOLE) {
			r = in_whole(s, data, len, &n, err);
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

int kubeapi_sieve_end(struct sieve *s, struct err *err)
{
	if (s->where == SIEVE_BEFORE)
		return err_set(err, EBADMSG, "is empty");
	if (s->where != SIEVE_AFTER)
		return err_set(err, EBADMSG, "ends in the middle");
	if (!s->has_items)
		return err_set(err, EBADMSG, "holds no %s: it is not a list of pods", LIST_KEY);
	return 0;
}
