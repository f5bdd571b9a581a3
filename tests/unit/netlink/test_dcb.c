/* DCB of a PF, from answers laid out as Linux 6.12 lays them out; and the question itself on this
 * kernel. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <libmnl/libmnl.h>
#include <linux/dcbnl.h>
#include <linux/rtnetlink.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "hw/dcb.h"
#include "netlink/netlink-internal.h"

#define TRUST_TABLE 11 /* DCB_ATTR_DCB_APP_TRUST_TABLE */

static _Alignas(struct nlmsghdr) char buf[8192];
static struct nlattr *ieee;

static struct nlmsghdr *begin(void)
{
	struct nlmsghdr *m;

	memset(buf, 0, sizeof(buf));
	m = mnl_nlmsg_put_header(buf);
	m->nlmsg_type = RTM_GETDCB;
	mnl_nlmsg_put_extra_header(m, sizeof(struct dcbmsg));
	mnl_attr_put_strz(m, DCB_ATTR_IFNAME, "eth2");
	ieee = mnl_attr_nest_start(m, DCB_ATTR_IEEE);
	return m;
}

static void put_apps(struct nlmsghdr *m, const struct dcb_app *apps, size_t n)
{
	struct nlattr *table = mnl_attr_nest_start(m, DCB_ATTR_IEEE_APP_TABLE);

	for (size_t i = 0; i < n; i++)
		mnl_attr_put(m, DCB_ATTR_IEEE_APP, sizeof(*apps), &apps[i]);
	mnl_attr_nest_end(m, table);
}

static const struct dcb_app roce[] = {
	{ IEEE_8021QAZ_APP_SEL_DSCP, 3, 26 }, { IEEE_8021QAZ_APP_SEL_DSCP, 1, 26 },
	{ IEEE_8021QAZ_APP_SEL_DSCP, 6, 48 }, { IEEE_8021QAZ_APP_SEL_ETHERTYPE, 5, 7 },
	{ IEEE_8021QAZ_APP_SEL_DSCP, 2, 64 }, /* no DSCP */
	{ IEEE_8021QAZ_APP_SEL_DSCP, 9, 8 },  /* no priority */
};

static void pfc_ets_and_the_dscp_map_are_read(void **state)
{
	const struct ieee_pfc pfc = { .pfc_cap = 8, .pfc_en = 1 << 3 };
	const struct ieee_ets ets = { .tc_tx_bw = { 40, 0, 0, 60 }, .prio_tc = { 0, 0, 0, 3 } };
	struct nlmsghdr *m = begin();
	struct hw_dcb dcb;

	(void)state;
	mnl_attr_put(m, DCB_ATTR_IEEE_ETS, sizeof(ets), &ets);
	mnl_attr_put(m, DCB_ATTR_IEEE_PFC, sizeof(pfc), &pfc);
	put_apps(m, roce, ARRAY_LEN(roce));
	mnl_attr_nest_end(m, ieee);
	assert_int_equal(dcb_message(m, &dcb), 0);
	assert_int_equal(dcb.pfc, 8);
	assert_true(dcb.has_ets);
	assert_int_equal(dcb.tc_of_priority[3], 3);
	assert_int_equal(dcb.bandwidth_of_tc[3], 60);
	assert_int_equal(dcb.trust, HW_DCB_TRUST_DSCP);
	assert_int_equal(dcb.priority_of_dscp[26], 3);
	assert_int_equal(dcb.priority_of_dscp[48], 6);
	assert_int_equal(dcb.priority_of_dscp[7], -1);
	assert_int_equal(dcb.priority_of_dscp[8], -1);
}

static void a_port_without_a_dscp_map_trusts_the_vlan(void **state)
{
	struct nlmsghdr *m = begin();
	struct hw_dcb dcb;

	(void)state;
	put_apps(m, NULL, 0);
	mnl_attr_nest_end(m, ieee);
	assert_int_equal(dcb_message(m, &dcb), 0);
	assert_int_equal(dcb.trust, HW_DCB_TRUST_PCP);
	assert_int_equal(dcb.pfc, -1);
	assert_false(dcb.has_ets);
}

static void the_table_of_trust_counts_for_more_than_the_map(void **state)
{
	static const struct {
		uint8_t selectors[2];
		size_t n;
		enum hw_dcb_trust trust;
	} rows[] = {
		{ { 255 }, 1, HW_DCB_TRUST_PCP },
		{ { 255, IEEE_8021QAZ_APP_SEL_DSCP }, 2, HW_DCB_TRUST_DSCP },
		{ { 0 }, 0, HW_DCB_TRUST_PCP },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct nlmsghdr *m = begin();
		struct nlattr *table;
		struct hw_dcb dcb;

		put_apps(m, roce, ARRAY_LEN(roce));
		table = mnl_attr_nest_start(m, TRUST_TABLE);
		for (size_t k = 0; k < rows[i].n; k++)
			mnl_attr_put_u8(m, DCB_ATTR_IEEE_APP, rows[i].selectors[k]);
		mnl_attr_nest_end(m, table);
		mnl_attr_nest_end(m, ieee);
		assert_int_equal(dcb_message(m, &dcb), 0);
		assert_int_equal(dcb.trust, rows[i].trust);
	}
}

static void values_that_are_too_short_are_unknown(void **state)
{
	struct nlmsghdr *m = begin();
	struct hw_dcb dcb;
	struct nlattr *table;

	(void)state;
	mnl_attr_put_u8(m, DCB_ATTR_IEEE_PFC, 8);
	mnl_attr_put_u32(m, DCB_ATTR_IEEE_ETS, 0);
	table = mnl_attr_nest_start(m, DCB_ATTR_IEEE_APP_TABLE);
	mnl_attr_put_u8(m, DCB_ATTR_IEEE_APP, IEEE_8021QAZ_APP_SEL_DSCP);
	mnl_attr_nest_end(m, table);
	mnl_attr_nest_end(m, ieee);
	assert_int_equal(dcb_message(m, &dcb), 0);
	assert_int_equal(dcb.pfc, -1);
	assert_false(dcb.has_ets);
	assert_int_equal(dcb.trust, HW_DCB_TRUST_PCP);
}

static void an_answer_about_something_else_says_nothing(void **state)
{
	struct hw_dcb dcb = { .pfc = 77 };
	struct nlmsghdr *m = begin();

	(void)state;
	mnl_attr_nest_end(m, ieee);
	m->nlmsg_type = RTM_NEWLINK;
	assert_int_equal(dcb_message(m, &dcb), -ENOTSUP);
	m = mnl_nlmsg_put_header(buf);
	m->nlmsg_type = RTM_GETDCB;
	assert_int_equal(dcb_message(m, &dcb), -ENOTSUP);
	assert_int_equal(dcb.pfc, 77);
}

static void the_kernel_answers(void **state)
{
	struct hw_dcb dcb = { .pfc = 77 };
	struct err err = { 0 };

	(void)state;
	assert_int_equal(netlink_dcb("lo", &dcb, &err), -ENOTSUP); /* no driver */
	assert_true(str_starts(err.msg, "DCB of lo: "));
	assert_int_equal(dcb.pfc, 77);
	assert_true(netlink_dcb("no_such_netdev", &dcb, &err) < 0);
	assert_int_equal(netlink_dcb("a_name_that_no_netdev_can_have", &dcb, &err), -ENODEV);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pfc_ets_and_the_dscp_map_are_read),
		cmocka_unit_test(a_port_without_a_dscp_map_trusts_the_vlan),
		cmocka_unit_test(the_table_of_trust_counts_for_more_than_the_map),
		cmocka_unit_test(values_that_are_too_short_are_unknown),
		cmocka_unit_test(an_answer_about_something_else_says_nothing),
		cmocka_unit_test(the_kernel_answers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
