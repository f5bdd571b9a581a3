/* Shared by the files of the room, and its tests. */
#ifndef RAILMATE_KUBECLIENT_KUBECLIENT_INTERNAL_H
#define RAILMATE_KUBECLIENT_KUBECLIENT_INTERNAL_H

#include <stdbool.h>

#include "kubeclient/podspec_queue.h"
#include "kubeclient/runtime.h"

struct arena;

/* Is a caller waiting for the question under way? */
bool kubeclient_queue_is_awaited(const struct spec_queue *q);

/*
 * The decision alone. config: containerd's report of its configuration, as JSON; NULL not known.
 * ret_sentence: "containerd 1.6.20 …", in the arena.
 */
enum runtime_cdi kubeclient_runtime_judge(const char *name, const char *version, const char *config,
					  struct arena *a, const char **ret_sentence);
/* The same of CNI. who: "containerd 2.1.9"; cni: containerd's report of its CNI configuration, as
 * JSON; NULL not known. */
enum runtime_cni kubeclient_runtime_judge_cni(const char *who, const char *cni, struct arena *a,
					      const char **ret_sentence);

#endif
