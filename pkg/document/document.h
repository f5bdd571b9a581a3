/*
 * A JSON text as a tree of items that know their line; a bad text is a sentence. jansson parses but
 * forgets where values of a valid text stood; messages about a wrong value need the line, so a
 * second walk over the same text notes it. Writing JSON is base/json.h.
 */
#ifndef RAILMATE_DOCUMENT_DOCUMENT_H
#define RAILMATE_DOCUMENT_DOCUMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct err;

enum item_type {
	ITEM_NULL,
	ITEM_BOOL,
	ITEM_NUMBER,
	ITEM_STRING,
	ITEM_LIST,
	ITEM_OBJECT,
	ITEM_TYPE_MAX
};

struct item {
	const struct item *parent; /* NULL: the whole document */
	const char *key;	   /* of a member; NULL: element of a list, or the document */
	size_t index;		   /* in the parent, from 0 */
	int line;		   /* of a member's key, of an element's first character; from 1 */
	enum item_type type;
	bool boolean; /* ITEM_BOOL */
	bool whole;   /* ITEM_NUMBER: an integer that number holds */
	int64_t number;
	const char *string; /* ITEM_STRING, UTF-8 without NUL */
	const char *text;   /* the value as it stands in the parsed text, borrowed from there */
	size_t text_len;
	const struct item *kids; /* ITEM_LIST, ITEM_OBJECT: in the order of the text */
	size_t n_kids;
};

/* Memory that the trees of a document may take while it is read, beside the bytes of its strings:
 * any tenant may have written it. */
#define DOCUMENT_TREE_MAX ((size_t)16 << 20)

/* The tree lives in the arena, which may outlive the text if item.text is not used. Errors:
 * "name:line: …". */
int document_parse(const char *text, size_t len, const char *name, struct arena *arena,
		   const struct item **ret, struct err *err);
const char *item_type_name(enum item_type type); /* "a string" */
/* Text of the file as a message may carry it: short, without control characters. */
const char *document_shown(const char *text, struct arena *arena);
/* A member of an object; NULL: none of that name, or no object. Exact case. */
const struct item *item_get(const struct item *object, const char *key);
/* The text of a member that is a string, else NULL. */
const char *item_string(const struct item *object, const char *key);
/* The value of a member that is a whole number, else otherwise. */
int64_t item_number(const struct item *object, const char *key, int64_t otherwise);
/* "resourceList[0].selectors.vendors[1]"; "" for the document. */
const char *item_path(const struct item *item, struct arena *arena);

#endif
