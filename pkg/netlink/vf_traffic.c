/* Traffic of VFs, which their PF knows also of those that are in a pod's network namespace. */
#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"
#include "netlink/netlink-internal.h"

/* A VF takes some 370 bytes with its counters, and the list has 16 bits for its length, which older
 * kernels let overflow (net/core/rtnetlink.c: rtnl_fill_vfinfo()). */
#define VFS_MAX 160

/* --- reading the message --- */

/* Into the members of struct netlink_vf_traffic. */
#define AT(field) (offsetof(struct netlink_vf_traffic, field) + 1)
static const size_t members[] = {
	[IFLA_VF_STATS_RX_PACKETS] = AT(received.packets),
	[IFLA_VF_STATS_TX_PACKETS] = AT(sent.packets),
	[IFLA_VF_STATS_RX_BYTES] = AT(received.bytes),
	[IFLA_VF_STATS_TX_BYTES] = AT(sent.bytes),
	[IFLA_VF_STATS_RX_DROPPED] = AT(received.drops),
	[IFLA_VF_STATS_TX_DROPPED] = AT(sent.drops),
};

/* *busy: one of them is not 0. */
static void read_stats(const struct nlattr *stats, struct netlink_vf_traffic *ret, bool *busy)
{
	const struct nlattr *attr;
	uint64_t value;

	mnl_attr_for_each_nested(attr, stats)
	{
		uint16_t type = mnl_attr_get_type(attr);

		if (type >= ARRAY_LEN(members) || !members[type] ||
		    mnl_attr_get_payload_len(attr) < sizeof(value))
			continue;
		memcpy(&value, mnl_attr_get_payload(attr), sizeof(value));
		memcpy((char *)ret + members[type] - 1, &value, sizeof(value));
		*busy |= value != 0;
	}
}

/* False: it does not name a VF. */
static bool read_vf(const struct nlattr *info, struct netlink_vf_traffic *ret, bool *busy)
{
	const struct nlattr *attr;
	uint32_t vf;

	*ret = (struct netlink_vf_traffic) { .index = -1 };
	mnl_attr_for_each_nested(attr, info)
	{
		uint16_t type = mnl_attr_get_type(attr);

		if (type == IFLA_VF_STATS) {
			read_stats(attr, ret, busy);
		} else if (type == IFLA_VF_MAC && mnl_attr_get_payload_len(attr) >= sizeof(vf)) {
			memcpy(&vf, mnl_attr_get_payload(attr), sizeof(vf));
			ret->index = vf > UINT16_MAX ? -1 : (int)vf;
		}
	}
	return ret->index >= 0;
}

size_t link_message_vf_traffic(const struct nlmsghdr *message, struct arena *arena,
			       const struct netlink_vf_traffic **ret)
{
	const struct nlattr *list = link_message_vf_list(message), *info;
	struct netlink_vf_traffic *vfs;
	bool busy = false;
	size_t n = 0;

	if (!list)
		return 0;
	mnl_attr_for_each_nested(info, list) n++;
	vfs = arena_array(arena, n, sizeof(*vfs));
	n = 0;
	mnl_attr_for_each_nested(info, list)
	{
		if (mnl_attr_get_type(info) == IFLA_VF_INFO && read_vf(info, &vfs[n], &busy))
			n++;
	}
	*ret = vfs;
	return busy ? n : 0;
}

/* --- the question --- */

struct found {
	struct arena *arena;
	const struct netlink_vf_traffic *vfs;
	size_t n;
};

static int note_vfs(const struct nlmsghdr *message, void *arg)
{
	struct found *found = arg;

	found->n = link_message_vf_traffic(message, found->arena, &found->vfs);
	return 0;
}

int netlink_vf_traffic(const char *netdev, size_t n_vfs, struct arena *arena,
		       const struct netlink_vf_traffic **ret, size_t *ret_n, struct err *err)
{
	struct found found = { .arena = arena };
	int r;

	if (n_vfs > VFS_MAX)
		return err_set(err, E2BIG, "%s: %zu VFs are more than an answer holds", netdev,
			       n_vfs);
	r = netlink_ask_link(netdev, RTEXT_FILTER_VF, "traffic of the VFs", note_vfs, &found, err);
	if (r < 0)
		return r;
	*ret = found.vfs;
	*ret_n = found.n;
	return 0;
}
