#include <errno.h>
#include <libmnl/libmnl.h>
#include <limits.h>
#include <linux/if_link.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"
#include "hw/vfadmin.h"
#include "netlink/netlink-internal.h"

/* --- reading the message --- */

/* The payload of each attribute; all begin with the VF's index. */
union vf_attr {
	uint32_t vf;
	struct ifla_vf_mac mac;
	struct ifla_vf_vlan vlan;
	struct ifla_vf_tx_rate tx_rate;
	struct ifla_vf_rate rate;
	struct ifla_vf_spoofchk spoofchk;
	struct ifla_vf_trust trust;
	struct ifla_vf_link_state link;
	struct ifla_vf_guid guid;
};

/* The kernel's "the driver does not say" is -1 in 32 bits. */
static int setting(uint32_t value)
{
	return value > 1 ? -1 : (int)value;
}

static int megabits(uint32_t value)
{
	return value > INT_MAX ? INT_MAX : (int)value;
}

static void take_mac(struct hw_vf_admin *vf, const union vf_attr *v)
{
	vf->has_mac = true;
	memcpy(vf->mac, v->mac.mac, sizeof(vf->mac));
}

static void take_vlan(struct hw_vf_admin *vf, const union vf_attr *v)
{
	vf->vlan = (int)(v->vlan.vlan & 0xfff);
	vf->vlan_qos = (int)(v->vlan.qos & 7);
}

/* The older of the two attributes about rates: the newer one comes after it and counts. */
static void take_tx_rate(struct hw_vf_admin *vf, const union vf_attr *v)
{
	vf->max_mbps = megabits(v->tx_rate.rate);
}

static void take_rate(struct hw_vf_admin *vf, const union vf_attr *v)
{
	vf->min_mbps = megabits(v->rate.min_tx_rate);
	vf->max_mbps = megabits(v->rate.max_tx_rate);
}

static void take_spoofchk(struct hw_vf_admin *vf, const union vf_attr *v)
{
	vf->spoofchk = setting(v->spoofchk.setting);
}

static void take_trust(struct hw_vf_admin *vf, const union vf_attr *v)
{
	vf->trust = setting(v->trust.setting);
}

static void take_link(struct hw_vf_admin *vf, const union vf_attr *v)
{
	static const enum hw_vf_link links[] = {
		[IFLA_VF_LINK_STATE_AUTO] = HW_VF_LINK_AUTO,
		[IFLA_VF_LINK_STATE_ENABLE] = HW_VF_LINK_ENABLE,
		[IFLA_VF_LINK_STATE_DISABLE] = HW_VF_LINK_DISABLE,
	};

	vf->link = v->link.link_state < ARRAY_LEN(links) ? links[v->link.link_state]
							 : HW_VF_LINK_UNKNOWN;
}

static void take_node_guid(struct hw_vf_admin *vf, const union vf_attr *v)
{
	vf->has_guids = true;
	vf->node_guid = v->guid.guid;
}

static void take_port_guid(struct hw_vf_admin *vf, const union vf_attr *v)
{
	vf->has_guids = true;
	vf->port_guid = v->guid.guid;
}

static const struct vf_row {
	size_t size;
	void (*take)(struct hw_vf_admin *vf, const union vf_attr *v);
} vf_rows[] = {
	[IFLA_VF_MAC] = { sizeof(struct ifla_vf_mac), take_mac },
	[IFLA_VF_VLAN] = { sizeof(struct ifla_vf_vlan), take_vlan },
	[IFLA_VF_TX_RATE] = { sizeof(struct ifla_vf_tx_rate), take_tx_rate },
	[IFLA_VF_SPOOFCHK] = { sizeof(struct ifla_vf_spoofchk), take_spoofchk },
	[IFLA_VF_LINK_STATE] = { sizeof(struct ifla_vf_link_state), take_link },
	[IFLA_VF_RATE] = { sizeof(struct ifla_vf_rate), take_rate },
	[IFLA_VF_TRUST] = { sizeof(struct ifla_vf_trust), take_trust },
	[IFLA_VF_IB_NODE_GUID] = { sizeof(struct ifla_vf_guid), take_node_guid },
	[IFLA_VF_IB_PORT_GUID] = { sizeof(struct ifla_vf_guid), take_port_guid },
};

/* False: it does not name a VF. */
static bool read_vf(const struct nlattr *info, struct hw_vf_admin *ret)
{
	const struct nlattr *attr;
	union vf_attr value;

	*ret = (struct hw_vf_admin) {
		.index = -1,
		.vlan = -1,
		.vlan_qos = -1,
		.spoofchk = -1,
		.trust = -1,
		.min_mbps = -1,
		.max_mbps = -1,
	};
	mnl_attr_for_each_nested(attr, info)
	{
		uint16_t type = mnl_attr_get_type(attr);

		if (type >= ARRAY_LEN(vf_rows) || !vf_rows[type].take ||
		    mnl_attr_get_payload_len(attr) < vf_rows[type].size)
			continue;
		memcpy(&value, mnl_attr_get_payload(attr), vf_rows[type].size);
		if (value.vf > UINT16_MAX)
			continue;
		ret->index = (int)value.vf;
		vf_rows[type].take(ret, &value);
	}
	return ret->index >= 0;
}

const struct nlattr *link_message_vf_list(const struct nlmsghdr *message)
{
	const struct nlattr *attr;

	if (message->nlmsg_type != RTM_NEWLINK)
		return NULL;
	mnl_attr_for_each(attr, message, sizeof(struct ifinfomsg))
	{
		if (mnl_attr_get_type(attr) == IFLA_VFINFO_LIST)
			return attr;
	}
	return NULL;
}

size_t link_message_vfs(const struct nlmsghdr *message, struct arena *arena,
			const struct hw_vf_admin **ret)
{
	const struct nlattr *list = link_message_vf_list(message), *info;
	struct hw_vf_admin *vfs;
	size_t n = 0;

	if (!list)
		return 0;
	mnl_attr_for_each_nested(info, list) n++;
	vfs = arena_array(arena, n, sizeof(*vfs));
	n = 0;
	mnl_attr_for_each_nested(info, list)
	{
		if (mnl_attr_get_type(info) == IFLA_VF_INFO && read_vf(info, &vfs[n]))
			n++;
	}
	*ret = vfs;
	return n;
}

/* --- the question --- */

struct found {
	struct arena *arena;
	const struct hw_vf_admin *vfs;
	size_t n;
};

static int note_vfs(const struct nlmsghdr *message, void *arg)
{
	struct found *found = arg;

	found->n = link_message_vfs(message, found->arena, &found->vfs);
	return 0;
}

int netlink_ask_link(const char *netdev, uint32_t mask, const char *about, netlink_each *each,
		     void *arg, struct err *err)
{
	_Alignas(struct nlmsghdr) char buf[128];
	struct nlmsghdr *request = mnl_nlmsg_put_header(buf);
	struct ifinfomsg *link;
	char what[IF_NAMESIZE + 64];

	if (strlen(netdev) >= IF_NAMESIZE)
		return err_set(err, ENODEV, "'%.32s' is too long for the name of a netdev", netdev);
	request->nlmsg_type = RTM_GETLINK;
	link = mnl_nlmsg_put_extra_header(request, sizeof(*link));
	link->ifi_family = AF_UNSPEC;
	mnl_attr_put_strz(request, IFLA_IFNAME, netdev);
	mnl_attr_put_u32(request, IFLA_EXT_MASK, mask);
	snprintf(what, sizeof(what), "%s of %s", about, netdev);
	return netlink_ask(NETLINK_ROUTE, request, each, arg, what, err);
}

int netlink_vfs(const char *netdev, struct arena *arena, const struct hw_vf_admin **ret,
		size_t *ret_n, struct err *err)
{
	struct found found = { .arena = arena };
	int r = netlink_ask_link(netdev, RTEXT_FILTER_VF | RTEXT_FILTER_SKIP_STATS, "VFs", note_vfs,
				 &found, err);

	if (r < 0)
		return r;
	*ret = found.vfs;
	*ret_n = found.n;
	return 0;
}
