#include "kubeapi/prune-internal.h"

#include <string.h>

#include "base/str.h"

struct cursor {
	const char *at, *end;
	struct strbuf *out;
};

static void skip_space(struct cursor *c)
{
	while (c->at < c->end &&
	       (*c->at == ' ' || *c->at == '\t' || *c->at == '\r' || *c->at == '\n'))
		c->at++;
}

static bool take(struct cursor *c, char mark)
{
	skip_space(c);
	if (c->at == c->end || *c->at != mark)
		return false;
	c->at++;
	return true;
}

/* From its opening quote past its closing one. */
static bool skip_string(struct cursor *c)
{
	for (c->at++; c->at < c->end; c->at++) {
		if (*c->at == '"') {
			c->at++;
			return true;
		}
		if (*c->at == '\\' && ++c->at == c->end)
			return false;
	}
	return false;
}

static bool skip_brackets(struct cursor *c)
{
	size_t depth = 0;

	while (c->at < c->end) {
		char mark = *c->at;

		if (mark == '"') {
			if (!skip_string(c))
				return false;
			continue;
		}
		c->at++;
		if (mark == '{' || mark == '[')
			depth++;
		else if ((mark == '}' || mark == ']') && --depth == 0)
			return true;
	}
	return false;
}

static bool skip_value(struct cursor *c)
{
	static const char ends_word[] = { ',', ']', '}', ' ', '\t', '\r', '\n' };
	const char *begin;

	skip_space(c);
	if (c->at == c->end)
		return false;
	if (*c->at == '"')
		return skip_string(c);
	if (*c->at == '{' || *c->at == '[')
		return skip_brackets(c);
	for (begin = c->at; c->at < c->end && !memchr(ends_word, *c->at, sizeof(ends_word));)
		c->at++;
	return c->at > begin;
}

static bool copy_value(struct cursor *c)
{
	const char *begin;

	skip_space(c);
	begin = c->at;
	if (!skip_value(c))
		return false;
	strbuf_add(c->out, begin, (size_t)(c->at - begin));
	return true;
}

static bool prune_value(struct cursor *c, const struct keep *keep);

/* key: with its quotes. */
static bool prune_member(struct cursor *c, const struct keep *keep, bool *first)
{
	const struct keep *k;
	const char *key;
	size_t len;

	skip_space(c);
	key = c->at;
	if (key == c->end || *key != '"' || !skip_string(c))
		return false;
	len = (size_t)(c->at - key);
	if (!take(c, ':'))
		return false;
	for (k = keep; k->key; k++) {
		if (strlen(k->key) == len - 2 && !memcmp(k->key, key + 1, len - 2))
			break;
	}
	if (!k->key)
		return skip_value(c);
	if (!*first)
		strbuf_putc(c->out, ',');
	*first = false;
	strbuf_add(c->out, key, len);
	strbuf_putc(c->out, ':');
	return k->inside ? prune_value(c, k->inside) : copy_value(c);
}

/* Recurses for lists in lists only, whose depth the caller has bounded. */
static bool prune_value(struct cursor *c, const struct keep *keep)
{
	bool first = true, is_object;
	char close;

	skip_space(c);
	if (c->at == c->end)
		return false;
	if (*c->at != '{' && *c->at != '[')
		return copy_value(c);
	is_object = *c->at == '{';
	close = is_object ? '}' : ']';
	strbuf_putc(c->out, *c->at++);
	if (!take(c, close)) {
		do {
			if (!is_object && !first)
				strbuf_putc(c->out, ',');
			if (is_object ? !prune_member(c, keep, &first) : !prune_value(c, keep))
				return false;
			first &= is_object;
		} while (take(c, ','));
		if (!take(c, close))
			return false;
	}
	strbuf_putc(c->out, close);
	return true;
}

bool kubeapi_prune(const char *text, size_t len, const struct keep *keep, struct strbuf *out)
{
	struct cursor c = { text, text + len, out };

	if (!prune_value(&c, keep))
		return false;
	skip_space(&c);
	return c.at == c.end;
}
