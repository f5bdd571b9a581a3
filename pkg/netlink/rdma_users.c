#include "netlink/rdma_users.h"
#include "netlink/netlink-internal.h"

#include <errno.h>
#include <libmnl/libmnl.h>
#include <limits.h>
#include <linux/netlink.h>
#include <rdma/rdma_netlink.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"

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
