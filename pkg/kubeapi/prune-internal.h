/*
 * Leaves out of a JSON text what is not needed. Reading a pod as a tree costs thirty times what
 * it takes to skip it, most of a pod is of no interest here, and an admission waits for all pods of
 * the node.
 */
#ifndef RAILMATE_KUBEAPI_PRUNE_INTERNAL_H
#define RAILMATE_KUBEAPI_PRUNE_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>

struct strbuf;

/* The members of an object that stay, up to a NULL key; of a list: of each of its elements. */
struct keep {
	const char *key;
	const struct keep *inside; /* NULL: the whole value */
};

/*
 * Appends the text without the rest. What stays is copied as it is and may still not be JSON; false
 * when even strings and brackets do not fit, then what was appended is worth nothing. A key is
 * compared as it is written: one with an escape is none of ours.
 */
bool kubeapi_prune(const char *text, size_t len, const struct keep *keep, struct strbuf *out);

#endif
