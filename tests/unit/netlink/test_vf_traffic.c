/* Traffic of VFs, from RTM_NEWLINK laid out as Linux 6.12 lays it out; and the question itself. */
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
#include "netlink/netlink-internal.h"
#include "support/testarena.h"

static _Alignas(struct nlmsghdr) char buf[64 << 10];
static void put_vf(struct nlmsghdr *m, uint32_t vf, uint64_t base)
{
	struct nlattr *info = mnl_attr_nest_start(m, IFLA_VF_INFO), *stats;
	const struct ifla_vf_mac mac = { .vf = vf };

	mnl_attr_put(m, IFLA_VF_MAC, sizeof(mac), &mac);
	stats = mnl_attr_nest_start(m, IFLA_VF_STATS);
	for (uint16_t i = IFLA_VF_STATS_RX_PACKETS; i <= IFLA_VF_STATS_TX_DROPPED; i++) {
		if (i == IFLA_VF_STATS_PAD)
			mnl_attr_put(m, i, 0, NULL);
		else
			mnl_attr_put_u64(m, i, base ? base + i : 0);
	}
	mnl_attr_nest_end(m, stats);
	mnl_attr_nest_end(m, info);
}

static struct nlmsghdr *link_of(size_t n, uint64_t base)
{
	struct nlmsghdr *m;
	struct nlattr *list;

	memset(buf, 0, 4096);
	m = mnl_nlmsg_put_header(buf);
	m->nlmsg_type = RTM_NEWLINK;
	mnl_nlmsg_put_extra_header(m, sizeof(struct ifinfomsg));
	list = mnl_attr_nest_start(m, IFLA_VFINFO_LIST);
	for (uint32_t i = 0; i < n; i++)
		put_vf(m, i, base * i);
	mnl_attr_nest_end(m, list);
	return m;
}

static void each_number_is_in_its_place(void **state)
{
	const struct netlink_vf_traffic *v = NULL;

	(void)state;
	assert_int_equal(link_message_vf_traffic(link_of(3, 1000), arena, &v), 3);
	assert_int_equal(v[0].received.bytes, 0);
	assert_int_equal(v[2].index, 2);
	assert_int_equal(v[2].received.packets, 2000);
	assert_int_equal(v[2].sent.packets, 2001);
	assert_int_equal(v[2].received.bytes, 2002);
	assert_int_equal(v[2].sent.bytes, 2003);
	assert_int_equal(v[2].received.drops, 2007);
	assert_int_equal(v[2].sent.drops, 2008);
}

/* The kernel puts zeros where the driver does not count. */
static void a_driver_that_counts_nothing_has_no_traffic(void **state)
{
	const struct netlink_vf_traffic *v = NULL;

	(void)state;
	assert_int_equal(link_message_vf_traffic(link_of(3, 0), arena, &v), 0);
	assert_int_equal(link_message_vf_traffic(link_of(0, 0), arena, &v), 0);
}

/* On the heap and of the exact size for the sanitizer. */
static void a_cut_message_is_not_read_beyond_its_end(void **state)
{
	struct nlmsghdr *m = link_of(127, 1);
	const struct netlink_vf_traffic *v = NULL;

	(void)state;
	assert_int_equal(link_message_vf_traffic(m, arena, &v), 127);
	for (size_t len = sizeof(*m); len < m->nlmsg_len; len += 97) {
		_cleanup_free_ char *cut = xcalloc(1, len);

		memcpy(cut, m, len);
		((struct nlmsghdr *)(void *)cut)->nlmsg_len = (uint32_t)len;
		assert_int_equal(link_message_vf_traffic((void *)cut, arena, &v), 0);
	}
}

static void the_kernel_answers(void **state)
{
	const struct netlink_vf_traffic *v = NULL;
	struct err err = { 0 };
	size_t n = 99;

	(void)state;
	assert_int_equal(netlink_vf_traffic("lo", 1, arena, &v, &n, &err), 0);
	assert_int_equal(n, 0);
	assert_int_equal(netlink_vf_traffic("no_such_netdev", 1, arena, &v, &n, &err), -ENODEV);
	assert_true(str_starts(err.msg, "traffic of the VFs of no_such_netdev: "));
	assert_int_equal(netlink_vf_traffic("lo", 254, arena, &v, &n, &err), -E2BIG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_number_is_in_its_place),
		cmocka_unit_test(a_driver_that_counts_nothing_has_no_traffic),
		cmocka_unit_test(a_cut_message_is_not_read_beyond_its_end),
		cmocka_unit_test(the_kernel_answers),
	};

	return cmocka_run_group_tests(tests, arena_set_up, arena_tear_down);
}
