/* What the rules share: steps through a text, inline: a log may have gigabytes; and those rules
 * that are files of their own. */
#ifndef RAILMATE_VERIFY_RULES_INTERNAL_H
#define RAILMATE_VERIFY_RULES_INTERNAL_H

#include <stdlib.h>
#include <string.h>

#include "verify/verify-internal.h"

/* Step over the word, or stay and say no. */
static inline bool skip(const char **p, const char *word)
{
	size_t n = strlen(word);

	if (strncmp(*p, word, n) != 0)
		return false;
	*p += n;
	return true;
}

static inline bool skip_number(const char **p, int base, uint64_t *ret)
{
	char *end;

	if (strspn(*p, base == 16 ? "0123456789abcdefABCDEF" : "0123456789") == 0)
		return false;
	*ret = strtoull(*p, &end, base);
	*p = end;
	return true;
}

/* The number after this word, anywhere. */
static inline bool number_after(const char *text, const char *word, int base, uint64_t *ret)
{
	const char *p = strstr(text, word);

	if (!p)
		return false;
	p += strlen(word);
	return skip_number(&p, base, ret);
}

static inline struct gpu *record_gpu(struct verify *v, const struct record *r)
{
	return r->proc && r->cuda >= 0 ? verify_gpu(v, r->proc, (unsigned)r->cuda) : NULL;
}

/* rules_channel.c: "Channel 00/0 : 3[5d000] -> 11[5d000] [send] via NET/IB/0/GDRDMA" */
void rule_channel(struct verify *v, const struct record *r);

/* rules.c: `interface` begins with its name, which a ':' ends. */
void verify_bootstrap(struct verify *v, const struct record *r, const char *interface);

/* rules_hca.c */
void rule_using(struct verify *v, const struct record *r);
void rule_virtual(struct verify *v, const struct record *r);
void rule_gdr_of_hca(struct verify *v, const struct record *r);
void rule_gdr_of_gpu(struct verify *v, const struct record *r);

#endif
