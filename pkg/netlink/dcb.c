#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/dcbnl.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "hw/dcb.h"
#include "netlink/netlink-internal.h"

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
