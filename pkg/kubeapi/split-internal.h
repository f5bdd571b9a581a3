/*
 * Cuts the elements out of the list "items" of a JSON object that arrives in pieces, so that
 * the whole is never in memory: an answer of 40 MB costs the memory of its largest pod. Knows
 * strings, escapes and brackets; whether an element is proper JSON is found by what reads it. What
 * stands beside "items" is skipped.
 */
#ifndef RAILMATE_KUBEAPI_SPLIT_INTERNAL_H
#define RAILMATE_KUBEAPI_SPLIT_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

struct err;

/* Brackets in brackets, below the top: API objects stay below 20, and what reads an element
 * recurses. */
#define SPLIT_DEPTH_MAX 64

typedef int (*split_item_fn)(void *arg, const char *text, size_t len, struct err *err);

enum split_where {
	SPLIT_BEFORE,
	SPLIT_FIRST_KEY,
	SPLIT_KEY,
	SPLIT_IN_KEY,
	SPLIT_COLON,
	SPLIT_VALUE,
	SPLIT_IN_VALUE,
	SPLIT_COMMA,
	SPLIT_FIRST_ITEM,
	SPLIT_ITEM,
	SPLIT_IN_ITEM,
	SPLIT_ITEM_COMMA,
	SPLIT_AFTER,
};

struct split {
	size_t item_max;
	split_item_fn item;
	void *arg;
	enum split_where where;
	struct strbuf text; /* of the key, of an element, of an "items" that is not a list */
	bool in_string, escaped;
	unsigned depth;
	uint64_t lists; /* a bit per depth: a '[' opened it */
	bool is_items, found;
};

/* item is called for each element; its text lives until the return, an error of it ends the
 * splitting. */
void kubeapi_split_init(struct split *s, size_t item_max, split_item_fn item, void *arg);
/* After an error nothing more may be pushed. */
int kubeapi_split_push(struct split *s, const char *data, size_t len, struct err *err);
/* Was it whole, and were there "items"? null counts as an empty list (the kubelet says so). */
int kubeapi_split_end(struct split *s, struct err *err);
void kubeapi_split_done(struct split *s);

#endif
