/* Reads the facts of a machine below a root: files, and of the running one netlink and system
 * calls. */
#ifndef RAILMATE_FACTS_GATHER_H
#define RAILMATE_FACTS_GATHER_H

#include <stdbool.h>

struct arena;
struct facts;
struct facts_net;
struct hw_inventory;
struct sysroot;
struct topo;

/*
 * HERE: also the container that we run in, if any, as that of a program with VFs; the one of
 * railmate itself never is, by the name of its first process. NODE: without facts of this process
 * only (devices, limits, mounts), for a program that runs for the whole node.
 */
enum facts_of { FACTS_OF_HERE, FACTS_OF_NODE };
/* Unreadable facts are unknown: this cannot fail. inv and topo are borrowed by the facts. */
struct facts *facts_gather(const struct sysroot *root, const struct hw_inventory *inv,
			   const struct topo *topo, enum facts_of of);
void facts_free(struct facts *f); /* NULL is fine */

/* --- between the files of the room --- */

/* config.c: fills the configuration part of one function. */
void facts_read_config(const struct sysroot *root, const struct facts *f, int pci);
/* In the arena. inv must outlive it. own_dev: /dev is that of the program that uses the VFs. */
const struct facts_net *facts_net_gather(const struct sysroot *root, const struct hw_inventory *inv,
					 bool own_dev, struct arena *arena);

#endif
