/* Words of the kernel's command line. */
#include <string.h>

#include "base/arena.h"
#include "base/str.h"
#include "facts/facts.h"

/* The next word from *at on; its length, 0 at the end. A quoted blank belongs to its word, as in
 * the kernel. */
static size_t next_word(const char **at)
{
	bool quoted = false;
	size_t len = 0;

	*at += strspn(*at, " \t\n");
	for (; (*at)[len] && (quoted || !strchr(" \t\n", (*at)[len])); len++)
		quoted ^= (*at)[len] == '"';
	return len;
}

enum facts_answer facts_boot_word(const struct facts_host *h, const char *word)
{
	size_t len;

	if (!h->cmdline)
		return FACTS_UNKNOWN;
	for (const char *at = h->cmdline; (len = next_word(&at)) > 0; at += len) {
		if (len == strlen(word) && !strncmp(at, word, len))
			return FACTS_YES;
	}
	return FACTS_NO;
}

/* Quotes around a word or a value are not the value's. */
const char *facts_boot_value(const struct facts *f, const char *key)
{
	_cleanup_strbuf_ struct strbuf all = STRBUF_INIT;
	size_t len, skip = strlen(key);
	bool found = false;

	if (!f->host.cmdline)
		return NULL;
	for (const char *at = f->host.cmdline; (len = next_word(&at)) > 0; at += len) {
		const char *word = at + (*at == '"');

		if (!str_starts(word, key) || word + skip > at + len)
			continue;
		found = true;
		if (all.len)
			strbuf_putc(&all, ',');
		for (const char *c = word + skip; c < at + len; c++) {
			if (*c != '"')
				strbuf_putc(&all, *c);
		}
	}
	return found ? arena_strdup(f->arena, strbuf_str(&all)) : NULL;
}

bool facts_boot_list_has(const struct facts *f, const char *key, const char *element)
{
	const char *list = facts_boot_value(f, key);
	size_t len = strlen(element);

	for (const char *at = list; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
		if (!strncmp(at, element, len) && strchr(",=:\"", at[len]))
			return true;
	}
	return false;
}
