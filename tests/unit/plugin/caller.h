/* What the kubelet does with the socket of a plugin: one call each. */
#ifndef RAILMATE_TESTS_UNIT_PLUGIN_CALLER_H
#define RAILMATE_TESTS_UNIT_PLUGIN_CALLER_H

#include <semaphore.h>

#include "base/arena.h"
#include "support/onrpc.h"

struct reply {
	enum rpc_status status;
	const char *message;
	struct bytes body;
};

struct client_call {
	const char *socket, *path;
	struct bytes request;
	struct arena *arena; /* of the reply */

	/* its own */
	struct rpc_channel *channel;
	struct reply reply;
	sem_t done;
};

/* The socket of the plugin of rdma/vf in this directory; a path that is not there. */
const char *caller_socket_in(const char *dir, struct arena *a);

void call_begin(struct client_call *c);
struct reply call_end(struct client_call *c);
/* Both. */
struct reply call_whole(struct client_call c);

#endif
