/* Names and values against the table of policy.c. */
#include <regex.h>
#include <string.h>
#include <strings.h>

#include "base/arena.h"
#include "base/str.h"
#include "config/config-internal.h"
#include "config/policy.h"

const struct policy_var *policy_find(const char *name)
{
	for (size_t i = 0; i < n_policy_vars; i++) {
		if (str_eq(policy_vars[i].name, name))
			return &policy_vars[i];
	}
	return NULL;
}

/* Are the letters of `word` in `whole`, in this order? "NCCL_TC" in "NCCL_IB_TC". */
static bool is_contained(const char *word, const char *whole)
{
	for (; *word && *whole; whole++)
		word += !strncasecmp(word, whole, 1);
	return !*word;
}

/* NCCL_ is not UCX_, but people write RCCL_ for NCCL_. */
static bool same_library(const char *a, const char *b)
{
	char x[WORD_MAX + 1] = "", y[WORD_MAX + 1] = "";

	memcpy(x, a, strcspn(a, "_"));
	memcpy(y, b, strcspn(b, "_"));
	return word_distance(x, y) <= 1;
}

#define LETTERS_MAX 3

const struct policy_var *policy_nearest(const char *name)
{
	const struct policy_var *best = NULL;
	size_t best_distance = LETTERS_MAX + 1, tail = strlen(name) - strcspn(name, "_");

	if (strlen(name) > WORD_MAX)
		return NULL;
	for (size_t i = 0; i < n_policy_vars; i++) {
		const struct policy_var *v = &policy_vars[i];
		size_t d = word_distance(name, v->name);

		if (d < best_distance && same_library(name, v->name) &&
		    (2 * d < tail || is_contained(name, v->name))) {
			best = v;
			best_distance = d;
		}
	}
	return best;
}

static bool is_word(const char *words, const char *s, size_t len)
{
	for (; words && *words; words += strspn(words, " ")) {
		size_t n = strcspn(words, " ");

		if (n == len && !strncmp(words, s, n))
			return true;
		words += n;
	}
	return false;
}

static bool is_list(const char *words, const char *s)
{
	for (;;) {
		size_t n;

		s += *s == '^';
		n = strcspn(s, ",");
		if (!is_word(words, s, n))
			return false;
		if (!s[n])
			return true;
		s += n + 1;
	}
}

static bool matches(const char *pattern, const char *s)
{
	regex_t compiled;
	bool yes;

	if (regcomp(&compiled, pattern, REG_EXTENDED | REG_NOSUB) != 0)
		return false;
	yes = regexec(&compiled, s, 0, NULL, 0) == 0;
	regfree(&compiled);
	return yes;
}

/* It travels through environments and through lines of nccl.conf. */
static bool is_printable(const char *s)
{
	size_t len = strlen(s);

	for (size_t i = 0; i < len; i++) {
		if (s[i] <= ' ' || s[i] > '~')
			return false;
	}
	return len && len <= POLICY_BYTES_MAX;
}

bool policy_accepts(const struct policy_var *var, const char *value)
{
	const struct policy_legal *legal = &var->legal;
	int number;

	if (!is_printable(value))
		return false;
	switch (legal->kind) {
	case POLICY_NUMBER:
		return is_word(legal->words, value, strlen(value)) ||
		       (str_to_int(value, &number) == 0 && number >= legal->min &&
			number <= legal->max);
	case POLICY_WORD:
		return is_word(legal->words, value, strlen(value));
	case POLICY_LIST:
		return is_list(legal->words, value);
	case POLICY_TEXT:
		break;
	}
	return !legal->pattern || matches(legal->pattern, value);
}

/* "A", "B" or "C" of "A B C". */
static void put_words(struct strbuf *b, const char *words)
{
	while (words && *words) {
		size_t n = strcspn(words, " ");
		bool last = !words[n];

		if (b->len)
			strbuf_puts(b, last ? " or " : ", ");
		strbuf_add(b, words, n);
		words += n + !last;
	}
}

const char *policy_legal_text(const struct policy_var *var, struct arena *arena)
{
	_cleanup_strbuf_ struct strbuf b = STRBUF_INIT;
	const struct policy_legal *legal = &var->legal;

	if (legal->kind == POLICY_NUMBER)
		strbuf_printf(&b, "%lld to %lld", (long long)legal->min, (long long)legal->max);
	if (legal->kind == POLICY_TEXT)
		strbuf_puts(&b, legal->shape ? legal->shape : "any word");
	put_words(&b, legal->words);
	if (legal->kind == POLICY_LIST)
		strbuf_puts(&b, "; several with commas between them, '^' before one leaves it out");
	return arena_strdup(arena, strbuf_str(&b));
}
