/* What an rtnetlink message says, by table; that the feeds work is the watch room's test. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <libmnl/libmnl.h>
#include <linux/rtnetlink.h>

#include "base/err.h"
#include "base/str.h"
#include "netlink/feed.h"

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
	assert_true(netlink_tells_link(buf, len));
	len = put_message(buf, RTM_DELLINK);
	assert_true(netlink_tells_link(buf, len));
	len = put_message(buf, RTM_NEWADDR);
	assert_false(netlink_tells_link(buf, len));
	both = len + put_message(buf + len, RTM_NEWLINK);
	assert_true(netlink_tells_link(buf, both));
	assert_false(netlink_tells_link(buf, both - 1)); /* the second one is cut */
	assert_false(netlink_tells_link(buf, 3));
	assert_false(netlink_tells_link(buf, 0));
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
		cmocka_unit_test(a_bus_that_is_not_there_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
