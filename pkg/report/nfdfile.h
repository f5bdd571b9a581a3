/*
 * Facts of this node that do not change, as a feature file of node-feature-discovery: it becomes
 * labels (feature.node.kubernetes.io/railmate.rails=8), by which pods can select nodes that are
 * alike. Main thread.
 */
#ifndef RAILMATE_REPORT_NFDFILE_H
#define RAILMATE_REPORT_NFDFILE_H

#include "status/status.h"

struct node;

/*
 * Lines of NAME=VALUE, in a fixed order; none where no pool has a device, and then the file is
 * removed. A link that is down changes nothing in it. verdict: doctor's. The file is whole at any
 * moment. path NULL: nothing. Failures are logged. The file stays when railmated stops: labels
 * shall not come and go with an update.
 */
void nfdfile_keep(const char *path, const struct node *node, enum status_found verdict);

#endif
