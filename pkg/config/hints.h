/*
 * The operator's hints of facts that a virtual machine hides (topo/hints.h), a file of its own:
 *
 *   { "groups": [ { "gpus": ["0001:00:00.0"], "nics": ["0101:00:00.0"], "numa": 0 } ],
 *     "linkSpeed": 32, "linkWidth": 16 }
 *
 * Members of a group share a PCIe switch. Keys as in config.h; an address stands there once.
 */
#ifndef RAILMATE_CONFIG_HINTS_H
#define RAILMATE_CONFIG_HINTS_H

#include <stddef.h>

struct config;
struct err;
struct strbuf;

#define HINTS_BYTES_MAX (1u << 20)

/* Into cfg->hints; warnings are added to cfg's. -EINVAL with a sentence that names file, line, key
 * and legal values: cfg is as before, and `also` as of config_parse(). */
int config_parse_hints(const char *text, size_t len, const char *name, struct config *cfg,
		       struct strbuf *also, struct err *err);

#endif
