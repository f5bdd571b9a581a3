/* The state of every VF of a node, by railmated: railmatectl explain pool, and explain pod of a pod
 * that holds nothing. */
#ifndef RAILMATE_CMD_POOLS_H
#define RAILMATE_CMD_POOLS_H

#include <stdbool.h>
#include <stddef.h>

struct arena;
struct err;
struct item;
struct strbuf;

/* Asks railmated at that socket. The answer is in the arena. */
int pools_ask(const char *socket, struct arena *a, const struct item **ret, const char **ret_text,
	      struct err *err);
const char *pools_node(const struct item *answer); /* its name */
/* The "pods" of a link, in words. */
void pools_put_pods(const struct item *link, struct strbuf *out);
/* "rdma/vf (binding late): 64 VFs: 60 free, 4 held", a line. */
void pools_put_heading(const struct item *pool, struct strbuf *out);
/* The holders, the free VFs, and the events that would free the rest. resource NULL: every pool.
 * False: there is no such pool. */
bool pools_text(const struct item *answer, const char *resource, struct strbuf *out);

#endif
