/*
 * Questions about one interface: the VFs of a PF and their traffic, its DCB, its pause frames. They
 * go through netlink.c; daemon, devstate, discover and doctor ask.
 */
#include <errno.h>
#include <libmnl/libmnl.h>
#include <limits.h>
#include <linux/dcbnl.h>
#include <linux/ethtool.h>
#include <linux/if_link.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"
#include "hw/dcb.h"
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
static bool read_vf(const struct nlattr *info, void *vf, bool *busy)
{
	struct hw_vf_admin *ret = vf;
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

/* What a question about a PF found. */
struct vf_list {
	struct arena *arena;
	size_t size; /* of one of v */
	bool (*read)(const struct nlattr *info, void *vf, bool *busy);
	void *v;
	size_t n;
	bool busy;
};

static void read_list(const struct nlattr *list, struct vf_list *ret)
{
	const struct nlattr *info;
	size_t n = 0;

	mnl_attr_for_each_nested(info, list) n++;
	ret->v = arena_array(ret->arena, n, ret->size);
	ret->n = 0;
	mnl_attr_for_each_nested(info, list)
	{
		if (mnl_attr_get_type(info) == IFLA_VF_INFO &&
		    ret->read(info, (char *)ret->v + ret->n * ret->size, &ret->busy))
			ret->n++;
	}
}

static int note_list(const struct nlmsghdr *message, void *vf_list)
{
	const struct nlattr *attr;

	if (message->nlmsg_type != RTM_NEWLINK)
		return 0;
	mnl_attr_for_each(attr, message, sizeof(struct ifinfomsg))
	{
		if (mnl_attr_get_type(attr) == IFLA_VFINFO_LIST) {
			read_list(attr, vf_list);
			break;
		}
	}
	return 0;
}

static struct vf_list no_vfs(struct arena *arena)
{
	return (struct vf_list) { .arena = arena,
				  .size = sizeof(struct hw_vf_admin),
				  .read = read_vf };
}

size_t link_message_vfs(const struct nlmsghdr *message, struct arena *arena,
			const struct hw_vf_admin **ret)
{
	struct vf_list found = no_vfs(arena);

	note_list(message, &found);
	*ret = found.v;
	return found.n;
}

/* --- the question --- */

/* Asks RTM_GETLINK for this netdev with IFLA_EXT_MASK mask; about names the question. */
static int ask_link(const char *netdev, uint32_t mask, const char *about, netlink_each *each,
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
	struct vf_list found = no_vfs(arena);
	int r = ask_link(netdev, RTEXT_FILTER_VF | RTEXT_FILTER_SKIP_STATS, "VFs", note_list,
			 &found, err);

	if (r < 0)
		return r;
	*ret = found.v;
	*ret_n = found.n;
	return 0;
}

/* Traffic of VFs, which their PF knows also of those that are in a pod's network namespace. */

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
static bool read_vf_stats(const struct nlattr *info, void *vf_traffic, bool *busy)
{
	struct netlink_vf_traffic *ret = vf_traffic;
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

static struct vf_list no_traffic(struct arena *arena)
{
	return (struct vf_list) { .arena = arena,
				  .size = sizeof(struct netlink_vf_traffic),
				  .read = read_vf_stats };
}

size_t link_message_vf_traffic(const struct nlmsghdr *message, struct arena *arena,
			       const struct netlink_vf_traffic **ret)
{
	struct vf_list found = no_traffic(arena);

	note_list(message, &found);
	*ret = found.v;
	return found.busy ? found.n : 0;
}

/* --- the question --- */

int netlink_vf_traffic(const char *netdev, size_t n_vfs, struct arena *arena,
		       const struct netlink_vf_traffic **ret, size_t *ret_n, struct err *err)
{
	struct vf_list found = no_traffic(arena);
	int r;

	if (n_vfs > VFS_MAX)
		return err_set(err, E2BIG, "%s: %zu VFs are more than an answer holds", netdev,
			       n_vfs);
	r = ask_link(netdev, RTEXT_FILTER_VF, "traffic of the VFs", note_list, &found, err);
	if (r < 0)
		return r;
	*ret = found.v;
	*ret_n = found.busy ? found.n : 0;
	return 0;
}

/* Of Linux 6.2; older headers do not have it. */
#define APP_TRUST_TABLE 11

/* --- reading the message --- */

/* Payloads are shorter on kernels that know fewer members. */
static void copy_payload(const struct nlattr *attr, void *dst, size_t size)
{
	size_t n = mnl_attr_get_payload_len(attr);

	memset(dst, 0, size);
	memcpy(dst, mnl_attr_get_payload(attr), n < size ? n : size);
}

static void read_pfc(const struct nlattr *attr, struct hw_dcb *ret)
{
	struct ieee_pfc pfc;

	if (mnl_attr_get_payload_len(attr) <= offsetof(struct ieee_pfc, pfc_en))
		return;
	copy_payload(attr, &pfc, sizeof(pfc));
	ret->pfc = pfc.pfc_en;
}

static void read_ets(const struct nlattr *attr, struct hw_dcb *ret)
{
	struct ieee_ets ets;

	if (mnl_attr_get_payload_len(attr) < offsetof(struct ieee_ets, tc_reco_bw))
		return;
	copy_payload(attr, &ets, sizeof(ets));
	ret->has_ets = true;
	memcpy(ret->tc_of_priority, ets.prio_tc, sizeof(ret->tc_of_priority));
	memcpy(ret->bandwidth_of_tc, ets.tc_tx_bw, sizeof(ret->bandwidth_of_tc));
}

static void read_app(const struct nlattr *attr, struct hw_dcb *ret)
{
	struct dcb_app app;

	if (mnl_attr_get_payload_len(attr) < sizeof(app))
		return;
	copy_payload(attr, &app, sizeof(app));
	if (app.selector != IEEE_8021QAZ_APP_SEL_DSCP || app.protocol >= HW_DCB_DSCPS ||
	    app.priority >= HW_DCB_PRIORITIES)
		return;
	/* Of two entries for one DSCP the higher priority counts, as in the kernel
	 * (dcb_ieee_getapp_dscp_prio_mask_map()). */
	if (app.priority > ret->priority_of_dscp[app.protocol])
		ret->priority_of_dscp[app.protocol] = (int8_t)app.priority;
}

/* Drivers without a table of trust (mlx5, ice, bnxt_en) trust DSCP as soon as there is an entry for
 * one. */
static void read_apps(const struct nlattr *table, struct hw_dcb *ret)
{
	const struct nlattr *attr;

	mnl_attr_for_each_nested(attr, table)
	{
		if (mnl_attr_get_type(attr) == DCB_ATTR_IEEE_APP)
			read_app(attr, ret);
	}
	if (ret->trust != HW_DCB_TRUST_UNKNOWN)
		return;
	ret->trust = HW_DCB_TRUST_PCP;
	for (size_t i = 0; i < HW_DCB_DSCPS; i++) {
		if (ret->priority_of_dscp[i] >= 0)
			ret->trust = HW_DCB_TRUST_DSCP;
	}
}

/* In order: the first of them that a packet has decides, and every RoCE v2 packet has a DSCP. An
 * empty one trusts the port. */
static void read_trust(const struct nlattr *table, struct hw_dcb *ret)
{
	const struct nlattr *attr;

	ret->trust = HW_DCB_TRUST_PCP;
	mnl_attr_for_each_nested(attr, table)
	{
		if (mnl_attr_validate(attr, MNL_TYPE_U8) >= 0 &&
		    mnl_attr_get_u8(attr) == IEEE_8021QAZ_APP_SEL_DSCP)
			ret->trust = HW_DCB_TRUST_DSCP;
	}
}

static void read_ieee(const struct nlattr *ieee, struct hw_dcb *ret)
{
	static const struct {
		uint16_t type;
		void (*read)(const struct nlattr *attr, struct hw_dcb *ret);
	} readers[] = {
		{ DCB_ATTR_IEEE_PFC, read_pfc },
		{ DCB_ATTR_IEEE_ETS, read_ets },
		{ APP_TRUST_TABLE, read_trust },
		{ DCB_ATTR_IEEE_APP_TABLE, read_apps }, /* after the trust, which counts for more */
	};
	const struct nlattr *attr;

	for (size_t i = 0; i < ARRAY_LEN(readers); i++) {
		mnl_attr_for_each_nested(attr, ieee)
		{
			if (mnl_attr_get_type(attr) == readers[i].type)
				readers[i].read(attr, ret);
		}
	}
}

int dcb_message(const struct nlmsghdr *message, struct hw_dcb *ret)
{
	struct hw_dcb dcb = hw_dcb_unknown();
	const struct nlattr *attr;

	if (message->nlmsg_type != RTM_GETDCB && message->nlmsg_type != RTM_SETDCB)
		return -ENOTSUP;
	mnl_attr_for_each(attr, message, sizeof(struct dcbmsg))
	{
		if (mnl_attr_get_type(attr) != DCB_ATTR_IEEE)
			continue;
		read_ieee(attr, &dcb);
		*ret = dcb;
		return 0;
	}
	return -ENOTSUP;
}

/* --- the question --- */

struct answer {
	struct hw_dcb dcb;
	int r;
};

static int note_dcb(const struct nlmsghdr *message, void *arg)
{
	struct answer *answer = arg;

	answer->r = dcb_message(message, &answer->dcb);
	return 0;
}

int netlink_dcb(const char *netdev, struct hw_dcb *ret, struct err *err)
{
	_Alignas(struct nlmsghdr) char buf[128];
	struct nlmsghdr *request = mnl_nlmsg_put_header(buf);
	struct answer answer = { .r = -ENOTSUP };
	struct dcbmsg *about;
	char what[IF_NAMESIZE + 32];
	int r;

	if (strlen(netdev) >= IF_NAMESIZE)
		return err_set(err, ENODEV, "'%.32s' is too long for the name of a netdev", netdev);
	request->nlmsg_type = RTM_GETDCB;
	about = mnl_nlmsg_put_extra_header(request, sizeof(*about));
	about->cmd = DCB_CMD_IEEE_GET;
	mnl_attr_put_strz(request, DCB_ATTR_IFNAME, netdev);
	snprintf(what, sizeof(what), "DCB of %s", netdev);
	r = netlink_ask(NETLINK_ROUTE, request, note_dcb, &answer, what, err);
	if (r == 0 && answer.r < 0)
		r = err_set(err, -answer.r, "%s: not reported by the driver", what);
	if (r == 0)
		*ret = answer.dcb;
	return r;
}

/*
 * Pause frames of a netdev. RTM_GETSTATS has none by priority, and those of DCB's IEEE_PFC are,
 * with some drivers, as old as the last look at these statistics: so the statistics of the driver,
 * whose names are its own (linux/ethtool.h: ETHTOOL_GSTATS). No right is needed for them.
 */

#define STRINGS_MAX 65536 /* a NIC with 128 queues has some 10,000 */
/* The kernel writes as many as there are by then, not as were asked for (net/ethtool/ioctl.c). */
#define ROOM(n) (2 * (size_t)(n) + 1024)

/* --- reading the statistics --- */

/* '#' is a priority. Documentation/networking/device_drivers/ethernet/mellanox/mlx5/counters.rst;
 * the tables of strings in drivers/net/ethernet. Where two rows are of the same frames, that is XON
 * and XOFF. */
static const struct pause_name {
	const char *name;
	bool sent, is_time, dropped;
} pause_names[] = {
	{ "rx_prio#_discards", false, false, true },
	{ "rx_discards_phy", false, false, true },
	{ "rx_prio#_pause", false, false, false },
	{ "tx_prio#_pause", true, false, false },
	{ "rx_prio#_pause_duration", false, true, false },
	{ "tx_prio#_pause_duration", true, true, false },
	{ "rx_global_pause", false, false, false },
	{ "tx_global_pause", true, false, false },
	{ "rx_global_pause_duration", false, true, false },
	{ "tx_global_pause_duration", true, true, false },
	{ "rx_pfc_ena_frames_pri#", false, false, false },
	{ "tx_pfc_ena_frames_pri#", true, false, false },
	{ "pfc_pri#_rx_duration_us", false, true, false },
	{ "pfc_pri#_tx_duration_us", true, true, false },
	{ "rx_pause_frames", false, false, false },
	{ "tx_pause_frames", true, false, false },
	{ "rx_priority_#_xon.nic", false, false, false },
	{ "tx_priority_#_xon.nic", true, false, false },
	{ "rx_priority_#_xoff.nic", false, false, false },
	{ "tx_priority_#_xoff.nic", true, false, false },
	{ "link_xon_rx.nic", false, false, false },
	{ "link_xon_tx.nic", true, false, false },
	{ "link_xoff_rx.nic", false, false, false },
	{ "link_xoff_tx.nic", true, false, false },
	{ "mac_rx_pfc_pri#_pkt_num", false, false, false },
	{ "mac_tx_pfc_pri#_pkt_num", true, false, false },
	{ "mac_rx_mac_pause_num", false, false, false },
	{ "mac_tx_mac_pause_num", true, false, false },
};

/* The priority; HW_PAUSES - 1: the name has none; -1: it is another name. */
static int match(const char *pattern, const char *name)
{
	int priority = HW_PAUSES - 1;

	for (size_t i = 0; i < ETH_GSTRING_LEN; i++) {
		bool digit = name[i] >= '0' && name[i] < '0' + HW_PAUSES - 1;

		if (pattern[i] == '#' ? !digit : pattern[i] != name[i])
			return -1;
		if (!name[i])
			return priority;
		if (pattern[i] == '#')
			priority = name[i] - '0';
	}
	return -1;
}

bool netlink_read_pauses(const char (*names)[ETH_GSTRING_LEN], const uint64_t *values, size_t n,
			 struct hw_pauses *ret)
{
	bool found = false;

	for (int p = 0; p < HW_PAUSES; p++)
		ret->received[p] = ret->sent[p] = (struct hw_pause) { -1, -1 };
	memset(ret->dropped, -1, sizeof(ret->dropped));
	for (size_t i = 0; i < n; i++) {
		for (size_t k = 0; k < ARRAY_LEN(pause_names); k++) {
			const struct pause_name *row = &pause_names[k];
			int p = match(row->name, names[i]);
			struct hw_pause *pause;
			int64_t *sum;

			if (p < 0 || values[i] > INT64_MAX / 2)
				continue;
			pause = row->sent ? &ret->sent[p] : &ret->received[p];
			sum = row->dropped   ? &ret->dropped[p]
			      : row->is_time ? &pause->us
					     : &pause->frames;
			*sum = *sum < 0 ? (int64_t)values[i] : *sum + (int64_t)values[i];
			found = true;
		}
	}
	return found;
}

/* --- the question --- */

static int ask(int fd, struct ifreq *ifr, void *request)
{
	ifr->ifr_data = request;
	return ioctl(fd, SIOCETHTOOL, ifr) < 0 ? -errno : 0;
}

/* The names and the values are asked for one after the other: they belong together where there are
 * as many of both. */
static int ask_all(int fd, struct ifreq *ifr, struct hw_pauses *ret)
{
	union {
		struct ethtool_sset_info head;
		uint32_t words[sizeof(struct ethtool_sset_info) / sizeof(uint32_t) + 1];
	} sets = { .head = { .cmd = ETHTOOL_GSSET_INFO,
			     .sset_mask = UINT64_C(1) << ETH_SS_STATS } };
	_cleanup_free_ struct ethtool_gstrings *names = NULL;
	_cleanup_free_ struct ethtool_stats *values = NULL;
	int r = ask(fd, ifr, &sets);
	uint32_t n = sets.words[ARRAY_LEN(sets.words) - 1];

	if (r < 0)
		return r;
	if (!sets.head.sset_mask || !n)
		return -ENODATA;
	if (n > STRINGS_MAX)
		return -E2BIG;
	names = xcalloc(1, sizeof(*names) + ROOM(n) * ETH_GSTRING_LEN);
	*names = (struct ethtool_gstrings) { ETHTOOL_GSTRINGS, ETH_SS_STATS, n };
	r = ask(fd, ifr, names);
	if (r < 0)
		return r;
	values = xcalloc(1, sizeof(*values) + ROOM(n) * sizeof(values->data[0]));
	*values = (struct ethtool_stats) { ETHTOOL_GSTATS, n };
	r = ask(fd, ifr, values);
	if (r < 0)
		return r;
	if (names->len != n || values->n_stats != n)
		return -EAGAIN;
	return netlink_read_pauses((const void *)names->data, (const uint64_t *)values->data, n,
				   ret)
		       ? 0
		       : -ENODATA;
}

int netlink_pauses(const char *netdev, struct hw_pauses *ret, struct err *err)
{
	_cleanup_close_ int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq ifr = { 0 };
	int r;

	if (strlen(netdev) >= IF_NAMESIZE)
		return err_set(err, ENODEV, "'%.32s' is too long for the name of a netdev", netdev);
	strcpy(ifr.ifr_name, netdev);
	r = fd < 0 ? -errno : ask_all(fd, &ifr, ret);
	if (r == -ENODATA)
		return err_set(err, ENOTSUP, "pause frames of %s: not counted by its driver",
			       netdev);
	if (r == -EOPNOTSUPP || r == -EPERM)
		r = -ENOTSUP;
	return r < 0 ? err_set(err, -r, "pause frames of %s: %s", netdev, strerror(-r)) : 0;
}
