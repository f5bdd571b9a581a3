#include "kubeclient/registry.h"

#include "base/err.h"
#include "base/mem.h"
#include "kubemsg/messages.h"
#include "rpc/listen.h"

bool kubeclient_registry_find(const char *plugin_dir, struct rpc_peer *ret)
{
	_cleanup_free_ char *path = xasprintf("%s/kubelet.sock", plugin_dir);

	ret->uid = (uid_t)-1;
	return rpc_socket_accepts(path, ret) && ret->uid != (uid_t)-1;
}

enum rpc_kin kubeclient_registry_kin(const char *plugin_dir, const struct rpc_peer *peer)
{
	struct rpc_peer kubelet;

	return kubeclient_registry_find(plugin_dir, &kubelet) ? rpc_peer_compare(&kubelet, peer)
							      : RPC_PEER_UNKNOWN;
}

bool kubeclient_registry_tell(struct rpc_call *call, const char *plugin_dir,
			      const struct plugin_info *info)
{
	bool other = kubeclient_registry_kin(plugin_dir, rpc_call_peer(call)) == RPC_PEER_OTHER;

	rpc_reply(call, RPC_OK, NULL,
		  kubemsg_encode(&kubemsg_plugin_info, info, rpc_call_arena(call)));
	return !other;
}

void kubeclient_registry_hear(struct rpc_call *call, const char *plugin_dir, struct bytes request,
			      void (*heard)(void *ctx, const struct registration_status *status),
			      void *ctx)
{
	struct registration_status status;
	struct err err = { 0 };

	if (kubemsg_decode(&kubemsg_registration_status, request, rpc_call_arena(call), &status,
			   &err) < 0) {
		rpc_reply(call, rpc_status_of(err.code), err.msg, (struct bytes) { NULL, 0 });
		return;
	}
	if (kubeclient_registry_kin(plugin_dir, rpc_call_peer(call)) != RPC_PEER_OTHER)
		heard(ctx, &status);
	rpc_reply(call, RPC_OK, NULL, (struct bytes) { NULL, 0 });
}
