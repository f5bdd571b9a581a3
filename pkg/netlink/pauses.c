/*
 * Pause frames of a netdev. RTM_GETSTATS has none by priority, and those of DCB's IEEE_PFC are,
 * with some drivers, as old as the last look at these statistics: so the statistics of the driver,
 * whose names are its own (linux/ethtool.h: ETHTOOL_GSTATS). No right is needed for them.
 */
#include <errno.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/err.h"
#include "base/mem.h"
#include "netlink/netlink-internal.h"

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
