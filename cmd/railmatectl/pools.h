/* The state of every VF of a node, by railmated: railmatectl explain pool, and explain pod of a pod
 * that holds nothing. */
#ifndef RAILMATE_CMD_POOLS_H
#define RAILMATE_CMD_POOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct err;
struct item;
struct json;
struct strbuf;

/* Asks railmated at that socket. The answer is in the arena. */
int pools_ask(const char *socket, struct arena *a, const struct item **ret, const char **ret_text,
	      struct err *err);
const char *pools_node(const struct item *answer);   /* the node's name */
void pools_put_time(int64_t ms, struct strbuf *out); /* Unix time; 0: not known */
/* The "pods" of a link, in words. */
void pools_put_pods(const struct item *link, struct strbuf *out);
/* A list of an object; one without elements if it has none. */
const struct item *pools_list(const struct item *object, const char *key);
/* The containers with shares of a pool whose HCAs are shared, a line each; pod NULL: of any pod.
 * False: none has shares. */
bool pools_put_shares(const struct item *pool, const char *ns, const char *pod, struct strbuf *out);
void pools_json_shares(const struct item *pool, const char *ns, const char *pod, struct json *j);
/* "rdma/vf (binding late): 64 VFs: 60 free, 4 held", a line. */
void pools_put_heading(const struct item *pool, struct strbuf *out);
/* The holders, the free VFs, and the events that would free the rest. resource NULL: every pool.
 * False: there is no such pool. */
bool pools_text(const struct item *answer, const char *resource, struct strbuf *out);

#endif
