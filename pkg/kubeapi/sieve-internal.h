/*
 * Reads the list "items" of a JSON object that arrives in pieces, and leaves out of each element
 * all members that are not asked for: annotations, environments and managed fields never get into
 * memory. The rest comes member by member, so that a member that is too large is left out, and the
 * element still has its name. Knows strings, escapes and brackets; whether a member is proper JSON
 * is found by the reader that takes it.
 */
#ifndef RAILMATE_KUBEAPI_SIEVE_INTERNAL_H
#define RAILMATE_KUBEAPI_SIEVE_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

struct err;

/* Brackets in brackets that are kept: the reader of a member recurses. */
#define SIEVE_DEPTH_MAX 32
/* A key that is longer is none of those that are kept. */
#define SIEVE_KEY_MAX 32

/* The members of an object that stay, up to a NULL key; of a list: of each of its elements. A key
 * is compared as it is written: one with an escape is none of these. */
struct keep {
	const char *key;
	const struct keep *inside; /* NULL: the whole value */
};

/* An error of either ends the reading. */
struct sieve_reader {
	const struct keep *keep; /* of an element */
	size_t member_max;	 /* bytes of a member, without the parts left out */
	/* text lives until the return; NULL: the member is larger, or nested too deeply. */
	int (*member)(void *arg, const char *key, const char *text, size_t len, struct err *err);
	int (*end)(void *arg, struct err *err); /* of an element */
	void *arg;
};

enum sieve_where {
	SIEVE_BEFORE,
	SIEVE_FIRST_KEY,
	SIEVE_KEY,
	SIEVE_IN_KEY,
	SIEVE_COLON,
	SIEVE_FIRST_VALUE, /* of a list */
	SIEVE_VALUE,
	SIEVE_IN_WHOLE, /* a value of which all stays, or nothing */
	SIEVE_COMMA,
	SIEVE_AFTER,
};

struct sieve_level {
	const struct keep *keep;
	bool is_list, has_one;
};

struct sieve {
	const struct sieve_reader *reader;
	enum sieve_where where;
	struct sieve_level levels[SIEVE_DEPTH_MAX]; /* open brackets of which a part stays */
	size_t n_levels;
	char key[SIEVE_KEY_MAX];
	size_t key_len;
	/* Of the value that comes, or is under way: does it stay, and which parts (NULL: all)? */
	bool kept;
	const struct keep *inside;
	bool in_string, escaped;
	size_t depth;		/* of a value of which all stays, or nothing */
	struct strbuf text;	/* of the member under way */
	struct strbuf metadata; /* of the answer, when that was whole: not of its elements */
	const char *member;	/* NULL: none is under way */
	bool overflowed;	/* that one is left out */
	bool has_items;
};

/* reader is borrowed. */
void kubeapi_sieve_init(struct sieve *s, const struct sieve_reader *reader);
/* After an error nothing more may be pushed. */
int kubeapi_sieve_push(struct sieve *s, const char *data, size_t len, struct err *err);
/* Was it whole, and were there "items"? null counts as an empty list. */
int kubeapi_sieve_end(struct sieve *s, struct err *err);
void kubeapi_sieve_done(struct sieve *s);

#endif
