/* A small set of strings, in the order they came. */
#ifndef RAILMATE_SIM_IDSET_H
#define RAILMATE_SIM_IDSET_H

#include <stdbool.h>
#include <stddef.h>

struct idset {
	char **v;
	size_t n, cap;
};

bool sim_idset_has(const struct idset *s, const char *id);
void sim_idset_add(struct idset *s, const char *id);
void sim_idset_remove(struct idset *s, const char *id);
void sim_idset_done(struct idset *s);

#endif
