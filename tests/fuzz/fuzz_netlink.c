/* room: netlink */
/* Any bytes as a datagram of netlink: every reader ends within it, and what it says makes sense. */
#include <assert.h>
#include <libmnl/libmnl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/mem.h"
#include "base/str.h"
#include "hw/dcb.h"
#include "hw/vfadmin.h"
#include "netlink/netlink.h"
#include "netlink/netlink-internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_vfs(const struct nlmsghdr *message, struct arena *arena)
{
	const struct hw_vf_admin *vfs = NULL;
	size_t n = link_message_vfs(message, arena, &vfs);

	for (size_t i = 0; i < n; i++) {
		assert(vfs[i].index >= 0 && vfs[i].index <= UINT16_MAX);
		assert(vfs[i].spoofchk >= -1 && vfs[i].spoofchk <= 1 && vfs[i].trust >= -1 &&
		       vfs[i].trust <= 1);
		assert(vfs[i].max_mbps >= -1 && vfs[i].vlan < 4096);
	}
}

static void read_dcb(const struct nlmsghdr *message)
{
	_cleanup_strbuf_ struct strbuf how = STRBUF_INIT;
	struct hw_dcb dcb;

	if (dcb_message(message, &dcb) < 0)
		return;
	assert(dcb.pfc >= -1 && dcb.pfc <= UINT8_MAX);
	for (int dscp = 0; dscp < HW_DCB_DSCPS; dscp++)
		assert(hw_dcb_priority(&dcb, dscp << 2) < HW_DCB_PRIORITIES);
	hw_dcb_contradicts(&dcb, 106, -1, &how);
	hw_dcb_contradicts(&dcb, -1, 3, &how);
}

static int read_message(const struct nlmsghdr *message, void *arg)
{
	const char *name;
	uint32_t index;
	unsigned users;
	bool exclusive;

	read_vfs(message, arg);
	read_dcb(message);
	rdma_message_exclusive(message, &exclusive);
	if (rdma_message_device(message, &name, &index))
		assert(strlen(name) < message->nlmsg_len);
	rdma_message_users(message, "mlx5_0", &users);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_arena_ struct arena *arena = arena_new(4096);
	/* Of the exact size, so that the sanitizer sees a read beyond the end. */
	_cleanup_free_ char *copy = xcalloc(1, size ? size : 1);

	if (size)
		memcpy(copy, data, size);
	netlink_answer(copy, size, 1, 7, read_message, arena);
	netlink_reports_link(copy, size, NULL, NULL);
	return 0;
}
