/* Shared by the files that read the machine. */
#ifndef RAILMATE_FACTS_FACTS_INTERNAL_H
#define RAILMATE_FACTS_FACTS_INTERNAL_H

#include "facts/facts.h"

struct sysroot;

/* config.c: fills the configuration part of one function. */
void facts_read_config(const struct sysroot *root, const struct facts *f, int pci);
/* In the arena. inv must outlive it. own_dev: /dev is that of the program that uses the VFs. */
const struct facts_net *facts_net_gather(const struct sysroot *root, const struct hw_inventory *inv,
					 bool own_dev, struct arena *arena);

#endif
