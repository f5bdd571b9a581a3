/*
 * The configuration of k8s-rdma-shared-dev-plugin: HCAs that many containers share.
 *
 *   { "periodicUpdateInterval": 300,
 *     "configList": [ { "resourceName": "hca_shared_devices_a", "rdmaHcaMax": 1000,
 *                       "selectors": { "vendors": ["15b3"], "deviceIDs": ["1017"],
 *                                      "drivers": ["mlx5_core"], "ifNames": ["ib0"],
 *                                      "linkTypes": ["infiniband"] } } ] }
 */
#ifndef RAILMATE_CONFIG_SHARED_H
#define RAILMATE_CONFIG_SHARED_H

#include <stddef.h>

struct config;
struct err;
struct strbuf;

/* Into cfg->shared, after its pools were read. As config_parse(): an entry that cannot be served is
 * left out, with an error in cfg. */
int config_parse_shared(const char *text, size_t len, const char *name, struct config *cfg,
			struct strbuf *also, struct err *err);

#endif
