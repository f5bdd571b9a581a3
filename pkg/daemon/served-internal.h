/* The plugins of all pools: which there are follows the node. Everything on the rpc thread. */
#ifndef RAILMATE_DAEMON_SERVED_INTERNAL_H
#define RAILMATE_DAEMON_SERVED_INTERNAL_H

#include <stddef.h>

struct node;
struct plugin;
struct plugin_env;
struct served;

struct served *served_new(const struct plugin_env *env); /* borrowed */
/* A plugin for each pool of the node, with the node. The plugin of a pool which is not there any
 * more, or binds otherwise now, ends: the kubelet knows its devices by other ids. */
void served_update(struct served *s, struct node *node);
void served_kick(struct served *s);   /* plugin_kick() of all */
void served_relist(struct served *s); /* plugin_relist() of all */
/* NULL: i is past the last one. */
const struct plugin *served_at(const struct served *s, size_t i, const char **ret_resource);
void served_free(struct served *s); /* NULL is fine */

#endif
