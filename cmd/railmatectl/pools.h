/* What every VF of a node is now, as railmated says: railmatectl explain pool, and explain pod of a
 * pod that holds nothing. */
#ifndef RAILMATE_CMD_POOLS_H
#define RAILMATE_CMD_POOLS_H

#include <stdbool.h>

struct arena;
struct err;
struct item;
struct strbuf;

/* Asks railmated at that socket. The answer is in the arena. */
int pools_ask(const char *socket, struct arena *a, const struct item **ret, const char **ret_text,
	      struct err *err);
const char *pools_node(const struct item *answer); /* its name */
/* Who holds what, what is free, and what would free the rest. resource NULL: every pool. False:
 * there is no such pool. */
bool pools_text(const struct item *answer, const char *resource, struct strbuf *out);

#endif
