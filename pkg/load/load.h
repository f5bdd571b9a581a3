/* From a root and a configuration file to a node, for the daemon and railmatectl. Files are read up
 * to a limit; an error is a sentence with the file's name. */
#ifndef RAILMATE_LOAD_LOAD_H
#define RAILMATE_LOAD_LOAD_H

#include <stddef.h>

struct config;
struct err;
struct node;
struct node_parts;
struct strbuf;
struct sysroot;

/* At most max bytes of a file of this machine (not below a root) as a heap string; -EFBIG names the
 * limit. */
int load_file(const char *path, size_t max, char **ret, size_t *ret_len, struct err *err);
/* path NULL: the built-in pool. also: as of config_parse(), config/config.h. */
int load_config(const char *path, const char *default_prefix, struct config **ret,
		struct strbuf *also, struct err *err);
/* The operator's hints (config/config.h) into cfg; path NULL: none. */
int load_hints(const char *path, struct config *cfg, struct strbuf *also, struct err *err);
/* Scan below root and build the node; previous may be NULL. */
int load_node(const struct sysroot *root, const struct config *cfg, const struct node *previous,
	      struct node **ret, struct err *err);
/* load_node() with all other parts of a node (pool/node.h). */
int load_node_of(const struct sysroot *root, const struct node_parts *parts, struct node **ret,
		 struct err *err);

#endif
