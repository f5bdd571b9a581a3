/* The neighbours of NICs as lldpcli wrote them down (docs/design/lldp.md). Any thread. */
#ifndef RAILMATE_DISCOVER_LLDP_H
#define RAILMATE_DISCOVER_LLDP_H

#include <stddef.h>

struct arena;
struct err;
struct sysroot;

/* The neighbours in LLDP_FILE, which lldpcli writes: one element for each that an interface heard.
 * A name that no terminal should be shown is NULL. -ENOENT: no such file. */
#define LLDP_FILE "run/railmate/lldp.json"
struct lldp_entry {
	const char *interface, *name, *port;
};
int lldp_read(const struct sysroot *root, struct arena *arena, struct lldp_entry **ret,
	      size_t *ret_n, struct err *err);

#endif
