/*
 * The node condition RDMALinksHealthy: True while every PF of a pool has its link up and well,
 * Unknown while no pool has a PF.
 * Sent as a strategic merge patch of the node's status, which leaves all other conditions as they
 * are (https://kubernetes.io/docs/reference/kubernetes-api/cluster-resources/node-v1: patchMergeKey
 * "type").
 */
#ifndef RAILMATE_KUBEAPI_CONDITION_H
#define RAILMATE_KUBEAPI_CONDITION_H

#include <stdint.h>

struct strbuf;

#define CONDITION_TYPE "RDMALinksHealthy"

enum condition_status { CONDITION_FALSE, CONDITION_TRUE, CONDITION_UNKNOWN };

struct condition {
	const char *node;
	enum condition_status status;
	const char *message;
	int64_t since_ms, now_ms; /* wall clock; since: of the present status */
};

/* The path for the patch, behind the API server's address. Heap; NULL: no node can have that name.
 */
char *kubeapi_condition_path(const char *node);
void kubeapi_condition_write(const struct condition *c, struct strbuf *out);

#endif
