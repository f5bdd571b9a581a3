/* Which process is at the other end of a socket. */
#include "peer.h"

static void processes_are_told_apart(void **state)
{
	const struct rpc_peer kubelet = { .pid = 7 }, other = { .pid = 8 },
			      user = { .uid = 1, .pid = 7 };
	const struct rpc_peer outside = { .number = 5 }, outside2 = { .number = 6 },
			      unknown = { .pid = 0 };

	(void)state;
	assert_int_equal(rpc_peer_compare(&kubelet, &kubelet), RPC_PEER_SAME);
	assert_int_equal(rpc_peer_compare(&kubelet, &other), RPC_PEER_OTHER);
	assert_int_equal(rpc_peer_compare(&kubelet, &user), RPC_PEER_OTHER);
	assert_int_equal(rpc_peer_compare(&kubelet, &outside), RPC_PEER_OTHER);
	assert_int_equal(rpc_peer_compare(&outside, &outside), RPC_PEER_SAME);
	assert_int_equal(rpc_peer_compare(&outside, &outside2), RPC_PEER_OTHER);
	assert_int_equal(rpc_peer_compare(&unknown, &unknown), RPC_PEER_UNKNOWN);
	assert_int_equal(rpc_peer_compare(&outside, &unknown), RPC_PEER_UNKNOWN);
}

static void peer_of_a_socket_is_its_process(void **state)
{
	struct rpc_peer peer;
	int pair[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	assert_true(rpc_peer_of(pair[0], &peer));
	assert_int_equal(peer.pid, getpid());
	assert_int_equal(peer.uid, getuid());
	close(pair[0]);
	close(pair[1]);
	assert_false(rpc_peer_of(pair[0], &peer));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(processes_are_told_apart),
		cmocka_unit_test(peer_of_a_socket_is_its_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
