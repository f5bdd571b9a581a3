/* What an rtnetlink message says, by table; that the feeds work is the watch room's test. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <libmnl/libmnl.h>
#include <linux/if.h>
#include <linux/rtnetlink.h>

#include "base/err.h"
#include "base/str.h"
#include "netlink/netlink.h"

static size_t put_message(char *buf, uint16_t type)
{
	struct nlmsghdr *message = mnl_nlmsg_put_header(buf);

	message->nlmsg_type = type;
	mnl_nlmsg_put_extra_header(message, sizeof(struct ifinfomsg));
	return message->nlmsg_len;
}

static void link_messages_are_judged_by_type(void **state)
{
	_Alignas(struct nlmsghdr) char buf[512] = { 0 };
	size_t len, both;

	(void)state;
	len = put_message(buf, RTM_NEWLINK);
	assert_true(netlink_reports_link(buf, len, NULL, NULL));
	len = put_message(buf, RTM_DELLINK);
	assert_true(netlink_reports_link(buf, len, NULL, NULL));
	len = put_message(buf, RTM_NEWADDR);
	assert_false(netlink_reports_link(buf, len, NULL, NULL));
	both = len + put_message(buf + len, RTM_NEWLINK);
	assert_true(netlink_reports_link(buf, both, NULL, NULL));
	assert_false(netlink_reports_link(buf, both - 1, NULL, NULL)); /* the second one is cut */
	assert_false(netlink_reports_link(buf, 3, NULL, NULL));
	assert_false(netlink_reports_link(buf, 0, NULL, NULL));
}

static size_t put_link(char *buf, uint16_t type, unsigned flags, const char *name)
{
	struct nlmsghdr *message = mnl_nlmsg_put_header(buf);
	struct ifinfomsg *info;

	message->nlmsg_type = type;
	info = mnl_nlmsg_put_extra_header(message, sizeof(*info));
	info->ifi_flags = flags;
	mnl_attr_put_u32(message, IFLA_MTU, 9000);
	if (name)
		mnl_attr_put_strz(message, IFLA_IFNAME, name);
	return message->nlmsg_len;
}

static void note_down(void *ctx, const char *netdev)
{
	strbuf_printf(ctx, "%s ", netdev);
}

static void links_without_carrier_are_named(void **state)
{
	_cleanup_strbuf_ struct strbuf down = STRBUF_INIT;
	_Alignas(struct nlmsghdr) char buf[1024] = { 0 };
	size_t len = 0;

	(void)state;
	len += put_link(buf, RTM_NEWLINK, IFF_UP | IFF_RUNNING | IFF_LOWER_UP, "well");
	len += put_link(buf + len, RTM_NEWLINK, IFF_UP, "cut");
	len += put_link(buf + len, RTM_NEWLINK, 0, "off");
	len += put_link(buf + len, RTM_DELLINK, IFF_UP | IFF_LOWER_UP, "gone");
	len += put_link(buf + len, RTM_NEWLINK, 0, NULL);
	assert_true(netlink_reports_link(buf, len, note_down, &down));
	assert_string_equal(strbuf_str(&down), "cut off gone ");
}

static void a_bus_that_is_not_there_is_named(void **state)
{
	struct netlink_feed *feed = NULL;
	struct err err = { 0 };

	(void)state;
	assert_true(netlink_feed_open(9999, 1, "what nobody sends", &feed, &err) < 0);
	assert_null(feed);
	assert_true(str_starts(err.msg, "listen to what nobody sends: "));
	netlink_feed_close(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(link_messages_are_judged_by_type),
		cmocka_unit_test(links_without_carrier_are_named),
		cmocka_unit_test(a_bus_that_is_not_there_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
