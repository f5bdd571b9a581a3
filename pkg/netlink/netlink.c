/*
 * How a question goes to the kernel and its answer comes back, what the kernel tells by itself, and
 * the questions about RDMA and about this network namespace; links.c has those about one interface.
 */
#include <errno.h>
#include <libmnl/libmnl.h>
#include <limits.h>
#include <linux/if.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <rdma/rdma_netlink.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "netlink/netlink.h"
#include "netlink/netlink-internal.h"

/*
 * One question, one socket: no answer can be mistaken for another's. The kernel answers while it
 * takes the question, so an answer that is not there within the patience will not come.
 */

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

/* The message at *at of a datagram, which is moved behind it; NULL: no whole one. (libmnl's own
 * walk trusts lengths above 2 GiB.) */
static const struct nlmsghdr *netlink_message(const char *buf, size_t len, size_t *at)
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

/* Receives until the answer to question seq is whole. */
static int netlink_wait(const struct mnl_socket *s, unsigned seq, netlink_each *each, void *arg)
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

/* A socket of this bus whose receive ends after NETLINK_PATIENCE_MS. -ENOTSUP: this kernel or
 * sandbox has no such bus. */
static int netlink_open(int bus, struct mnl_socket **ret)
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

/* The number of links in a network namespace, counted before all of them are read. */

struct crowd {
	size_t n, max;
};

static int count(const struct nlmsghdr *message, void *arg)
{
	struct crowd *crowd = arg;

	return ++crowd->n > crowd->max ? -E2BIG : 0;
}

static int ask_for_more(uint16_t type, const char *what, size_t max, bool *ret, struct err *err)
{
	_Alignas(struct nlmsghdr) char buf[64];
	struct nlmsghdr *request = mnl_nlmsg_put_header(buf);
	struct crowd crowd = { 0, max };
	int r;

	request->nlmsg_type = type;
	request->nlmsg_flags = NLM_F_DUMP;
	mnl_nlmsg_put_extra_header(
		request, sizeof(struct ifinfomsg)); /* all families; larger than an ifaddrmsg */
	r = netlink_ask(NETLINK_ROUTE, request, count, &crowd, what, err);
	if (r < 0 && crowd.n <= max)
		return r;
	*ret = crowd.n > max;
	return 0;
}

int netlink_is_crowded(size_t max, bool *ret, struct err *err)
{
	int r = ask_for_more(RTM_GETADDR, "addresses of the network namespace", max, ret, err);

	return r < 0 || *ret ? r
			     : ask_for_more(RTM_GETLINK, "interfaces of the network namespace", max,
					    ret, err);
}

struct netlink_feed {
	struct mnl_socket *socket;
};

int netlink_feed_open(int bus, unsigned groups, const char *what, struct netlink_feed **ret,
		      struct err *err)
{
	struct mnl_socket *s = mnl_socket_open2(bus, SOCK_CLOEXEC | SOCK_NONBLOCK);
	int r;

	if (!s || mnl_socket_bind(s, groups, MNL_SOCKET_AUTOPID) < 0) {
		r = err_sys(err, "listen to %s", what);
		if (s)
			mnl_socket_close(s);
		return r;
	}
	*ret = xcalloc(1, sizeof(**ret));
	(*ret)->socket = s;
	return 0;
}

int netlink_feed_fd(const struct netlink_feed *feed)
{
	return mnl_socket_get_fd(feed->socket);
}

ssize_t netlink_feed_read(struct netlink_feed *feed, char *buf, size_t size)
{
	ssize_t n;

	do {
		n = mnl_socket_recvfrom(feed->socket, buf, size);
	} while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

void netlink_feed_close(struct netlink_feed *feed)
{
	if (!feed)
		return;
	mnl_socket_close(feed->socket);
	free(feed);
}

static int take_name(const struct nlattr *attr, void *ret)
{
	const char **name = ret;

	if (mnl_attr_get_type(attr) == IFLA_IFNAME &&
	    mnl_attr_validate(attr, MNL_TYPE_NUL_STRING) >= 0)
		*name = mnl_attr_get_str(attr);
	return MNL_CB_OK;
}

/* The kernel sets IFF_LOWER_UP of an interface that is up and has a carrier (dev_get_flags()). */
static const char *name_of_down(const struct nlmsghdr *message)
{
	const struct ifinfomsg *info;
	const char *name = NULL;

	if (mnl_nlmsg_get_payload_len(message) < sizeof(*info))
		return NULL;
	info = mnl_nlmsg_get_payload(message);
	if (message->nlmsg_type == RTM_NEWLINK && info->ifi_flags & IFF_LOWER_UP)
		return NULL;
	mnl_attr_parse(message, sizeof(*info), take_name, &name);
	return name;
}

bool netlink_reports_link(const char *buf, size_t len, netlink_down_fn *down, void *ctx)
{
	const struct nlmsghdr *message;
	bool any = false;
	size_t at = 0;

	while ((message = netlink_message(buf, len, &at))) {
		const char *name;

		if (message->nlmsg_type != RTM_NEWLINK && message->nlmsg_type != RTM_DELLINK)
			continue;
		any = true;
		name = down ? name_of_down(message) : NULL;
		if (name)
			down(ctx, name);
	}
	return any;
}

int rdma_message_exclusive(const struct nlmsghdr *message, bool *ret)
{
	const struct nlattr *attr;

	mnl_attr_for_each(attr, message, 0)
	{
		if (mnl_attr_get_type(attr) != RDMA_NLDEV_SYS_ATTR_NETNS_MODE ||
		    mnl_attr_validate(attr, MNL_TYPE_U8) < 0)
			continue;
		*ret = mnl_attr_get_u8(attr) == 0;
		return 0;
	}
	return -ENOTSUP;
}

static int note_mode(const struct nlmsghdr *message, void *arg)
{
	return rdma_message_exclusive(message, arg);
}

int netlink_rdma_exclusive(bool *ret, struct err *err)
{
	_Alignas(struct nlmsghdr) char buf[64];
	struct nlmsghdr *request = mnl_nlmsg_put_header(buf);

	request->nlmsg_type = (uint16_t)RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_SYS_GET);
	return netlink_ask(NETLINK_RDMA, request, note_mode, ret, "RDMA network namespace mode",
			   err);
}

#define QUESTION_BYTES 64

/* Questions about one device need its number; the kernel never gives a number to another device. */
struct number {
	char *name;
	uint32_t index;
};

struct rdma_users {
	struct mnl_socket *socket;
	unsigned seq;
	struct number *numbers;
	size_t n_numbers, cap_numbers;
	_Alignas(struct nlmsghdr) char buf[QUESTION_BYTES];
};

/* --- reading messages --- */

bool rdma_message_device(const struct nlmsghdr *message, const char **ret_name, uint32_t *ret_index)
{
	const struct nlattr *attr;
	const char *name = NULL;
	bool numbered = false;

	mnl_attr_for_each(attr, message, 0)
	{
		if (mnl_attr_get_type(attr) == RDMA_NLDEV_ATTR_DEV_NAME &&
		    mnl_attr_validate(attr, MNL_TYPE_NUL_STRING) >= 0) {
			name = mnl_attr_get_str(attr);
		} else if (mnl_attr_get_type(attr) == RDMA_NLDEV_ATTR_DEV_INDEX &&
			   mnl_attr_validate(attr, MNL_TYPE_U32) >= 0) {
			*ret_index = mnl_attr_get_u32(attr);
			numbered = true;
		}
	}
	if (!name || !numbered)
		return false;
	*ret_name = name;
	return true;
}

/* An entry of the summary: is it that of the contexts? */
static bool counts_contexts(const struct nlattr *entry, uint64_t *ret)
{
	const struct nlattr *attr;
	const char *name = NULL;
	bool counted = false;

	mnl_attr_for_each_nested(attr, entry)
	{
		if (mnl_attr_get_type(attr) == RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY_NAME &&
		    mnl_attr_validate(attr, MNL_TYPE_NUL_STRING) >= 0) {
			name = mnl_attr_get_str(attr);
		} else if (mnl_attr_get_type(attr) == RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY_CURR &&
			   mnl_attr_validate(attr, MNL_TYPE_U64) >= 0) {
			*ret = mnl_attr_get_u64(attr);
			counted = true;
		}
	}
	return counted && str_eq(name, "ctx");
}

int rdma_message_users(const struct nlmsghdr *message, const char *rdma, unsigned *ret_users)
{
	const struct nlattr *attr, *entry;
	const char *name;
	uint32_t index;
	uint64_t count;

	if (!rdma_message_device(message, &name, &index) || strcmp(name, rdma))
		return -ENODEV;
	mnl_attr_for_each(attr, message, 0)
	{
		if (mnl_attr_get_type(attr) != RDMA_NLDEV_ATTR_RES_SUMMARY)
			continue;
		mnl_attr_for_each_nested(entry, attr)
		{
			if (!counts_contexts(entry, &count))
				continue;
			*ret_users = count < UINT_MAX ? (unsigned)count : UINT_MAX;
			return 0;
		}
	}
	return -ENOTSUP;
}

/* --- questions --- */

static int ask(struct rdma_users *u, int command, unsigned flags, const uint32_t *index)
{
	struct nlmsghdr *message = mnl_nlmsg_put_header(u->buf);

	message->nlmsg_type = (uint16_t)RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, command);
	message->nlmsg_flags = (uint16_t)(NLM_F_REQUEST | NLM_F_ACK | flags);
	message->nlmsg_seq = ++u->seq;
	if (index)
		mnl_attr_put_u32(message, RDMA_NLDEV_ATTR_DEV_INDEX, *index);
	return mnl_socket_sendto(u->socket, message, message->nlmsg_len) < 0 ? -errno : 0;
}

static int note_number(const struct nlmsghdr *message, void *arg)
{
	struct rdma_users *u = arg;
	const char *name;
	uint32_t index;

	if (!rdma_message_device(message, &name, &index))
		return 0;
	u->numbers = xgrow(u->numbers, &u->cap_numbers, u->n_numbers + 1, sizeof(*u->numbers));
	u->numbers[u->n_numbers++] = (struct number) { xstrdup(name), index };
	return 0;
}

static void forget_numbers(struct rdma_users *u)
{
	while (u->n_numbers)
		free(u->numbers[--u->n_numbers].name);
}

static int learn_numbers(struct rdma_users *u)
{
	int r;

	forget_numbers(u);
	r = ask(u, RDMA_NLDEV_CMD_GET, NLM_F_DUMP, NULL);
	return r < 0 ? r : netlink_wait(u->socket, u->seq, note_number, u);
}

struct question {
	const char *rdma; /* NULL: every device */
	rdma_users_fn seen;
	void *arg;
	int r;
};

static int note_users(const struct nlmsghdr *message, void *arg)
{
	struct question *q = arg;
	const char *name = q->rdma;
	uint32_t index;
	unsigned users;

	if (!name && !rdma_message_device(message, &name, &index))
		return 0;
	q->r = rdma_message_users(message, name, &users);
	if (q->r == 0)
		q->seen(q->arg, name, users);
	return 0;
}

static int ask_users(struct rdma_users *u, unsigned flags, const uint32_t *index,
		     struct question *q)
{
	int r = ask(u, RDMA_NLDEV_CMD_RES_GET, flags, index);

	if (r == 0)
		r = netlink_wait(u->socket, u->seq, note_users, q);
	return r < 0 ? r : q->r;
}

static int count_known(struct rdma_users *u, struct question *q)
{
	const struct number *number = NULL;

	for (size_t i = 0; i < u->n_numbers; i++) {
		if (!strcmp(u->numbers[i].name, q->rdma))
			number = &u->numbers[i];
	}
	q->r = -ENODEV;
	return number ? ask_users(u, 0, &number->index, q) : -ENODEV;
}

/* A device that came, or came back, has another number: then look at all once more. */
int rdma_users_count(struct rdma_users *u, const char *rdma, rdma_users_fn seen, void *arg)
{
	struct question q = { .rdma = rdma, .seen = seen, .arg = arg };
	int r;

	if (!rdma)
		return ask_users(u, NLM_F_DUMP, NULL, &q);
	r = count_known(u, &q);
	if (r != -ENODEV && r != -EINVAL)
		return r;
	r = learn_numbers(u);
	return r < 0 ? r : count_known(u, &q);
}

int rdma_users_open(struct rdma_users **ret, struct err *err)
{
	struct mnl_socket *s = NULL;
	int r = netlink_open(NETLINK_RDMA, &s);

	if (r == -EPERM || r == -EACCES)
		r = -ENOTSUP;
	if (r < 0)
		return err_set(err, -r, "open RDMA netlink: %s", strerror(-r));
	*ret = xcalloc(1, sizeof(**ret));
	(*ret)->socket = s;
	return 0;
}

void rdma_users_close(struct rdma_users *u)
{
	if (!u)
		return;
	forget_numbers(u);
	free(u->numbers);
	mnl_socket_close(u->socket);
	free(u);
}
