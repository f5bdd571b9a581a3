/* Where the kubelet finds a plugin. */
#ifndef RAILMATE_TESTS_UNIT_PLUGIN_CALLER_H
#define RAILMATE_TESTS_UNIT_PLUGIN_CALLER_H

#include "base/arena.h"
#include "support/onrpc.h"

/* The socket of the plugin of rdma/vf in this directory; a path that is not there. */
const char *caller_socket_in(const char *dir, struct arena *a);

#endif
