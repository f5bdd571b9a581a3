/* VFs of a PF, from RTM_NEWLINK laid out as Linux 6.12 lays it out; and the question itself on this
 * kernel.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <libmnl/libmnl.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "hw/vfadmin.h"
#include "netlink/netlink-internal.h"
#include "support/testarena.h"

static _Alignas(struct nlmsghdr) char buf[64 << 10];
static struct nlmsghdr *begin(void)
{
	struct nlmsghdr *m;

	memset(buf, 0, 4096);
	m = mnl_nlmsg_put_header(buf);
	m->nlmsg_type = RTM_NEWLINK;
	mnl_nlmsg_put_extra_header(m, sizeof(struct ifinfomsg));
	mnl_attr_put_strz(m, IFLA_IFNAME, "eth2");
	return m;
}

#define PUT(m, type, name, ...)                                                                    \
	do {                                                                                       \
		const struct name value = { __VA_ARGS__ };                                         \
		mnl_attr_put(m, type, sizeof(value), &value);                                      \
	} while (0)

static void put_whole_vf(struct nlmsghdr *m, uint32_t vf, uint32_t rate)
{
	struct nlattr *info = mnl_attr_nest_start(m, IFLA_VF_INFO);

	PUT(m, IFLA_VF_MAC, ifla_vf_mac, .vf = vf, .mac = { 2, 0, 0, 0, 0, (uint8_t)vf });
	mnl_attr_put_u32(m, IFLA_VF_BROADCAST, 0xffffffff);
	PUT(m, IFLA_VF_VLAN, ifla_vf_vlan, .vf = vf, .vlan = 100, .qos = 3);
	PUT(m, IFLA_VF_RATE, ifla_vf_rate, .vf = vf, .min_tx_rate = 5, .max_tx_rate = rate);
	PUT(m, IFLA_VF_TX_RATE, ifla_vf_tx_rate, .vf = vf, .rate = rate);
	PUT(m, IFLA_VF_SPOOFCHK, ifla_vf_spoofchk, .vf = vf, .setting = 1);
	PUT(m, IFLA_VF_LINK_STATE, ifla_vf_link_state, .vf = vf,
	    .link_state = IFLA_VF_LINK_STATE_DISABLE);
	PUT(m, IFLA_VF_TRUST, ifla_vf_trust, .vf = vf, .setting = 0);
	PUT(m, IFLA_VF_IB_NODE_GUID, ifla_vf_guid, .vf = vf, .guid = 0x1122334455667788);
	PUT(m, IFLA_VF_IB_PORT_GUID, ifla_vf_guid, .vf = vf, .guid = 0);
	mnl_attr_nest_end(m, info);
}

static void what_the_administrator_set_is_read(void **state)
{
	struct nlmsghdr *m = begin();
	struct nlattr *list = mnl_attr_nest_start(m, IFLA_VFINFO_LIST);
	const struct hw_vf_admin *vfs = NULL;

	(void)state;
	put_whole_vf(m, 0, 0);
	put_whole_vf(m, 1, 25000);
	mnl_attr_nest_end(m, list);
	assert_int_equal(link_message_vfs(m, arena, &vfs), 2);
	assert_int_equal(vfs[0].index, 0);
	assert_int_equal(vfs[0].max_mbps, 0);
	assert_int_equal(vfs[1].index, 1);
	assert_true(vfs[1].has_mac);
	assert_memory_equal(vfs[1].mac, "\2\0\0\0\0\1", 6);
	assert_int_equal(vfs[1].vlan, 100);
	assert_int_equal(vfs[1].vlan_qos, 3);
	assert_int_equal(vfs[1].min_mbps, 5);
	assert_int_equal(vfs[1].max_mbps, 25000);
	assert_int_equal(vfs[1].spoofchk, 1);
	assert_int_equal(vfs[1].trust, 0);
	assert_int_equal(vfs[1].link, HW_VF_LINK_DISABLE);
	assert_true(vfs[1].has_guids);
	assert_true(vfs[1].node_guid == 0x1122334455667788);
	assert_true(vfs[1].port_guid == 0);
}

/* -1 in 32 bits is how the kernel says that the driver said nothing. */
static void what_the_driver_does_not_say_is_unknown(void **state)
{
	struct nlmsghdr *m = begin();
	struct nlattr *list = mnl_attr_nest_start(m, IFLA_VFINFO_LIST),
		      *info = mnl_attr_nest_start(m, IFLA_VF_INFO);
	const struct hw_vf_admin *vfs = NULL;

	(void)state;
	PUT(m, IFLA_VF_SPOOFCHK, ifla_vf_spoofchk, .vf = 3, .setting = UINT32_MAX);
	PUT(m, IFLA_VF_TRUST, ifla_vf_trust, .vf = 3, .setting = UINT32_MAX);
	PUT(m, IFLA_VF_LINK_STATE, ifla_vf_link_state, .vf = 3, .link_state = 77);
	mnl_attr_nest_end(m, info);
	mnl_attr_nest_end(m, list);
	assert_int_equal(link_message_vfs(m, arena, &vfs), 1);
	assert_int_equal(vfs->index, 3);
	assert_false(vfs->has_mac || vfs->has_guids);
	assert_int_equal(vfs->vlan, -1);
	assert_int_equal(vfs->spoofchk, -1);
	assert_int_equal(vfs->trust, -1);
	assert_int_equal(vfs->link, HW_VF_LINK_UNKNOWN);
	assert_int_equal(vfs->min_mbps, -1);
	assert_int_equal(vfs->max_mbps, -1);
}

static void the_older_rate_counts_where_there_is_no_newer(void **state)
{
	struct nlmsghdr *m = begin();
	struct nlattr *list = mnl_attr_nest_start(m, IFLA_VFINFO_LIST),
		      *info = mnl_attr_nest_start(m, IFLA_VF_INFO);
	const struct hw_vf_admin *vfs = NULL;

	(void)state;
	PUT(m, IFLA_VF_TX_RATE, ifla_vf_tx_rate, .vf = 0, .rate = 700);
	mnl_attr_nest_end(m, info);
	mnl_attr_nest_end(m, list);
	assert_int_equal(link_message_vfs(m, arena, &vfs), 1);
	assert_int_equal(vfs->max_mbps, 700);
}

static void attributes_that_are_too_short_do_not_count(void **state)
{
	struct nlmsghdr *m = begin();
	struct nlattr *list = mnl_attr_nest_start(m, IFLA_VFINFO_LIST),
		      *info = mnl_attr_nest_start(m, IFLA_VF_INFO);
	const struct hw_vf_admin *vfs = NULL;

	(void)state;
	mnl_attr_put_u32(m, IFLA_VF_MAC, 0);
	mnl_attr_put_u32(m, IFLA_VF_RATE, 0);
	mnl_attr_put(m, IFLA_VF_TRUST, 0, "");
	mnl_attr_put_u32(m, 4711, 0);
	mnl_attr_nest_end(m, info);
	info = mnl_attr_nest_start(m, IFLA_VF_INFO);
	PUT(m, IFLA_VF_TRUST, ifla_vf_trust, .vf = 0xfffffff0, .setting = 1); /* no such index */
	mnl_attr_nest_end(m, info);
	mnl_attr_nest_end(m, list);
	assert_int_equal(link_message_vfs(m, arena, &vfs), 0);
}

static void other_messages_have_no_vfs(void **state)
{
	const struct hw_vf_admin *vfs = NULL;
	struct nlmsghdr *m = begin();

	(void)state;
	assert_int_equal(link_message_vfs(m, arena, &vfs), 0);
	m->nlmsg_type = RTM_NEWADDR;
	assert_int_equal(link_message_vfs(m, arena, &vfs), 0);
	m = mnl_nlmsg_put_header(buf); /* without even its fixed part */
	m->nlmsg_type = RTM_NEWLINK;
	assert_int_equal(link_message_vfs(m, arena, &vfs), 0);
}

/* The largest PF of mlx5; and every shorter message, on the heap and of the exact size for the
 * sanitizer. */
static void a_large_message_is_read_and_a_cut_one_is_not(void **state)
{
	struct nlmsghdr *m = begin();
	struct nlattr *list = mnl_attr_nest_start(m, IFLA_VFINFO_LIST);
	const struct hw_vf_admin *vfs = NULL;

	(void)state;
	for (uint32_t i = 0; i < 127; i++)
		put_whole_vf(m, i, 1000 + i);
	mnl_attr_nest_end(m, list);
	assert_int_equal(link_message_vfs(m, arena, &vfs), 127);
	assert_int_equal(vfs[126].max_mbps, 1126);
	for (size_t len = sizeof(*m); len < m->nlmsg_len; len += 97) {
		_cleanup_free_ char *cut = xcalloc(1, len);

		memcpy(cut, m, len);
		((struct nlmsghdr *)(void *)cut)->nlmsg_len = (uint32_t)len;
		/* The list's own length now goes beyond the end: it is not there. */
		assert_int_equal(link_message_vfs((void *)cut, arena, &vfs), 0);
	}
}

static void the_kernel_answers(void **state)
{
	const struct hw_vf_admin *vfs = NULL;
	struct err err = { 0 };
	size_t n = 99;

	(void)state;
	assert_int_equal(netlink_vfs("lo", arena, &vfs, &n, &err), 0);
	assert_int_equal(n, 0);
	assert_int_equal(netlink_vfs("no_such_netdev", arena, &vfs, &n, &err), -ENODEV);
	assert_true(str_starts(err.msg, "VFs of no_such_netdev: "));
	assert_int_equal(netlink_vfs("a_name_that_no_netdev_can_have", arena, &vfs, &n, &err),
			 -ENODEV);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_the_administrator_set_is_read),
		cmocka_unit_test(what_the_driver_does_not_say_is_unknown),
		cmocka_unit_test(the_older_rate_counts_where_there_is_no_newer),
		cmocka_unit_test(attributes_that_are_too_short_do_not_count),
		cmocka_unit_test(other_messages_have_no_vfs),
		cmocka_unit_test(a_large_message_is_read_and_a_cut_one_is_not),
		cmocka_unit_test(the_kernel_answers),
	};

	return cmocka_run_group_tests(tests, arena_set_up, arena_tear_down);
}
