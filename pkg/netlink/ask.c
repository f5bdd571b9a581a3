/*
 * One question, one socket: no answer can be mistaken for another's. The kernel answers while it
 * takes the question, so an answer that is not there within the patience will not come.
 */
#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/netlink.h>
#include <string.h>
#include <sys/time.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "netlink/netlink-internal.h"

/* An attribute holds 64 KiB, so all VFs of a PF are no more than that. */
#define ANSWER_BYTES (128u << 10)

static int verdict_of(const struct nlmsghdr *message)
{
	const struct nlmsgerr *said = mnl_nlmsg_get_payload(message);

	if (mnl_nlmsg_get_payload_len(message) < sizeof(*said))
		return -EBADMSG;
	/* A sane kernel's, which a positive or absurd number is not. */
	if (said->error > 0 || said->error < -4095)
		return -EBADMSG;
	return said->error ? said->error : 1;
}

const struct nlmsghdr *netlink_message(const char *buf, size_t len, size_t *at)
{
	const struct nlmsghdr *message = (const void *)(buf + *at);
	size_t left = len - *at;

	if (left < sizeof(*message) || message->nlmsg_len < sizeof(*message) ||
	    message->nlmsg_len > left)
		return NULL;
	*at += MNL_ALIGN(message->nlmsg_len) < left ? MNL_ALIGN(message->nlmsg_len) : left;
	return message;
}

static int read_message(const struct nlmsghdr *message, netlink_each *each, void *arg)
{
	if (message->nlmsg_type == NLMSG_ERROR)
		return verdict_of(message);
	if (message->nlmsg_type == NLMSG_DONE)
		return 1;
	return message->nlmsg_type >= NLMSG_MIN_TYPE ? each(message, arg) : 0;
}

int netlink_answer(const char *buf, size_t len, unsigned seq, unsigned port, netlink_each *each,
		   void *arg)
{
	const struct nlmsghdr *message;
	size_t at = 0;
	int r = 0;

	while (r == 0 && (message = netlink_message(buf, len, &at))) {
		if (message->nlmsg_seq == seq && message->nlmsg_pid == port)
			r = read_message(message, each, arg);
	}
	return r;
}

/* One datagram of the kernel; 0: sent by another process; -ETIMEDOUT, -EMSGSIZE: it did not
 * fit. */
static ssize_t receive(int fd, char *buf, size_t size)
{
	struct sockaddr_nl from = { 0 };
	struct iovec part = { .iov_base = buf, .iov_len = size };
	struct msghdr datagram = {
		.msg_name = &from, .msg_namelen = sizeof(from), .msg_iov = &part, .msg_iovlen = 1
	};
	ssize_t n;

	do {
		n = recvmsg(fd, &datagram, 0);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return errno == EAGAIN ? -ETIMEDOUT : -errno;
	if (from.nl_pid)
		return 0;
	return datagram.msg_flags & MSG_TRUNC ? -EMSGSIZE : n;
}

int netlink_wait(const struct mnl_socket *s, unsigned seq, netlink_each *each, void *arg)
{
	_cleanup_free_ char *buf = xcalloc(1, ANSWER_BYTES);
	int64_t deadline = clock_mono_ms() + NETLINK_PATIENCE_MS;
	int r = 0;

	while (r == 0) {
		ssize_t n = receive(mnl_socket_get_fd(s), buf, ANSWER_BYTES);

		if (n < 0)
			return (int)n;
		r = netlink_answer(buf, (size_t)n, seq, mnl_socket_get_portid(s), each, arg);
		if (r == 0 && clock_mono_ms() > deadline)
			return -ETIMEDOUT;
	}
	return r < 0 ? r : 0;
}

int netlink_open(int bus, struct mnl_socket **ret)
{
	const struct timeval patience = { .tv_sec = NETLINK_PATIENCE_MS / 1000,
					  .tv_usec = NETLINK_PATIENCE_MS % 1000 * 1000 };
	struct mnl_socket *s = mnl_socket_open2(bus, SOCK_CLOEXEC);
	int r;

	if (!s || mnl_socket_bind(s, 0, MNL_SOCKET_AUTOPID) < 0 ||
	    setsockopt(mnl_socket_get_fd(s), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) <
		    0) {
		r = -errno;
		if (s)
			mnl_socket_close(s);
		return r == -EPROTONOSUPPORT || r == -EAFNOSUPPORT ? -ENOTSUP : r;
	}
	*ret = s;
	return 0;
}

int netlink_ask(int bus, struct nlmsghdr *request, netlink_each *each, void *arg, const char *what,
		struct err *err)
{
	struct mnl_socket *s = NULL;
	int r = netlink_open(bus, &s);

	if (r == 0) {
		request->nlmsg_flags |= NLM_F_REQUEST | NLM_F_ACK;
		request->nlmsg_seq = 1;
		if (mnl_socket_sendto(s, request, request->nlmsg_len) < 0)
			r = -errno;
		if (r == 0)
			r = netlink_wait(s, request->nlmsg_seq, each, arg);
		mnl_socket_close(s);
	}
	if (r == -EOPNOTSUPP || r == -EPERM || r == -EACCES)
		r = -ENOTSUP;
	return r < 0 ? err_set(err, -r, "%s: %s", what, strerror(-r)) : 0;
}
