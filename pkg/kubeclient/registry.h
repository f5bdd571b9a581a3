/*
 * A socket of ours in the registry of the kubelet's plugin watcher,
 * <kubelet-root>/plugins_registry: the kubelet finds it, asks GetInfo, dials, and tells what became
 * of it. Each client is answered; a question or report of another client than the kubelet counts
 * for nothing. On the rpc thread.
 */
#ifndef RAILMATE_KUBECLIENT_REGISTRY_H
#define RAILMATE_KUBECLIENT_REGISTRY_H

#include <stdbool.h>

#include "base/bytes.h"
#include "rpc/rpc.h"

struct plugin_info;
struct registration_status;

/* The kubelet that finds our socket listens at plugin_dir/kubelet.sock itself. False: not known. */
bool kubeclient_registry_find(const char *plugin_dir, struct rpc_peer *ret);
enum rpc_kin kubeclient_registry_kin(const char *plugin_dir, const struct rpc_peer *peer);

/* Answers GetInfo. False: another process asked. */
bool kubeclient_registry_tell(struct rpc_call *call, const char *plugin_dir,
			      const struct plugin_info *info);
/* Answers NotifyRegistrationStatus, after heard(). */
void kubeclient_registry_hear(struct rpc_call *call, const char *plugin_dir, struct bytes request,
			      void (*heard)(void *ctx, const struct registration_status *status),
			      void *ctx);

#endif
