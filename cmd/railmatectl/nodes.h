/* --node: the same command in the railmate pods of other nodes, by kubectl. */
#ifndef RAILMATE_CMD_NODES_H
#define RAILMATE_CMD_NODES_H

/* args: the command line without --node, NULL at its end; node: a node's name, or "all". Returns an
 * exit code: the lowest of the nodes'. */
int nodes_run(const char *node, const char *ns, const char *const *args);

#endif
