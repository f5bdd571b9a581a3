/* The health of devices that claims have, for the kubelet, which shows it in the status of their
 * pods. Pure. */
#ifndef RAILMATE_DRA_HEALTH_H
#define RAILMATE_DRA_HEALTH_H

#include "kubemsg/dra.h"

struct ledger;
struct node;

/* A device is as healthy as the VF of it that is worst. In the arena, sorted by name; strings of
 * the node are not copied. */
struct dra_health_list dra_health_of(const struct node *node, const struct ledger *ledger,
				     const char *node_name, struct arena *a);

#endif
