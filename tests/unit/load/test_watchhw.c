/* What a uevent says, by table; and both sockets for real in a network namespace of
 * our own. */
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>
#include <libmnl/libmnl.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>

#include "base/err.h"
#include "base/mem.h"
#include "load/watch.h"
#include "load/watch-internal.h"

/* A literal ends with a NUL of its own: the kernel ends the last pair with one, too. */
#define UEVENT(text, matters)                                                                      \
	{                                                                                          \
		text, sizeof(text), matters                                                        \
	}

static void uevents_are_judged_by_subsystem(void **state)
{
	static const struct {
		const char *text;
		size_t len;
		bool matters;
	} table[] = {
		UEVENT("add@/devices/pci0000:3a/0000:3b:00.2\0ACTION=add\0DEVPATH=/devices/pci0000:3a/0000:3b:00.2\0SUBSYSTEM=pci\0PCI_ID=15B3:101E\0SEQNUM=4711",
		       true),
		UEVENT("move@/devices/x/net/eth1\0SUBSYSTEM=net\0INTERFACE=eth1", true),
		UEVENT("add@/devices/x/infiniband/mlx5_2\0SUBSYSTEM=infiniband\0NAME=mlx5_2", true),
		UEVENT("remove@/devices/x/infiniband_verbs/uverbs2\0SUBSYSTEM=infiniband_verbs",
		       true),
		UEVENT("unbind@/devices/x\0ACTION=unbind\0SUBSYSTEM=pci", true),
		UEVENT("add@/devices/virtual/block/loop0\0SUBSYSTEM=block", false),
		UEVENT("add@/devices/x/net/eth1/queues/rx-0\0SUBSYSTEM=queues", false),
		UEVENT("add@/devices/x\0SUBSYSTEM=pci_express", false),
		UEVENT("add@/devices/x\0SUBSYSTEM=pc", false),
		UEVENT("add@/devices/x\0XSUBSYSTEM=pci", false),
		UEVENT("add@/devices/x", false),
		UEVENT("libudev\0SUBSYSTEM=pci", false),
		UEVENT("", false),
		{ "", 0, false },
		{ "add@/x\0SUBSYSTEM=pci", 20, false }, /* cut before the last NUL */
		{ "add@/x\0SUBSYSTEM=", 17, false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		/* On the heap and of the exact size, so that the sanitizer sees a read beyond the
		 * end. */
		char *copy = xcalloc(table[i].len, 1);

		memcpy(copy, table[i].text, table[i].len);
		if (uevent_matters(copy, table[i].len) != table[i].matters)
			fail_msg("%s", table[i].text);
		free(copy);
	}
}

static bool changed(struct watch_hw *w, int which)
{
	struct pollfd fd = { .fd = watch_hw_fd(w, which), .events = POLLIN };

	while (poll(&fd, 1, 5000) == 1)
		if (watch_hw_drain(w, which, NULL, NULL))
			return true;
	return false;
}

/* Skips, with the reason, where namespaces are not for us. */
static struct watch_hw *open_in_own_network(void)
{
	struct err err = { 0 };
	struct watch_hw *w;

	if (unshare(CLONE_NEWNET) < 0) {
		print_message("no network namespace of our own: %s\n", strerror(errno));
		skip();
	}
	assert_int_equal(watch_hw_open(&w, &err), 0);
	if (watch_hw_fd(w, 0) < 0 || watch_hw_fd(w, 1) < 0) {
		print_message("%s\n", err.msg);
		watch_hw_close(w);
		skip();
	}
	assert_int_equal(err.code, 0);
	return w;
}

static void link_that_goes_up_is_seen(void **state)
{
	struct watch_hw *w = open_in_own_network();
	struct ifreq request = { .ifr_name = "lo", .ifr_flags = IFF_UP };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	(void)state;
	assert_false(watch_hw_drain(w, 1, NULL, NULL));
	assert_int_equal(ioctl(fd, SIOCSIFFLAGS, &request), 0);
	assert_true(changed(w, 1));
	assert_false(watch_hw_drain(w, 1, NULL, NULL));
	close(fd);
	watch_hw_close(w);
}

/* 0, or the errno of the kernel's answer. */
static int add_link(const char *name, const char *kind)
{
	_Alignas(struct nlmsghdr) char buf[1024];
	struct nlmsghdr *message = mnl_nlmsg_put_header(buf);
	struct mnl_socket *s = mnl_socket_open(NETLINK_ROUTE);
	struct nlattr *info;
	ssize_t n;
	int r;

	assert_non_null(s);
	message->nlmsg_type = RTM_NEWLINK;
	message->nlmsg_flags = NLM_F_REQUEST | NLM_F_CREATE | NLM_F_EXCL | NLM_F_ACK;
	mnl_nlmsg_put_extra_header(message, sizeof(struct ifinfomsg));
	mnl_attr_put_strz(message, IFLA_IFNAME, name);
	info = mnl_attr_nest_start(message, IFLA_LINKINFO);
	mnl_attr_put_strz(message, IFLA_INFO_KIND, kind);
	mnl_attr_nest_end(message, info);
	assert_true(mnl_socket_sendto(s, message, message->nlmsg_len) > 0);
	n = mnl_socket_recvfrom(s, buf, sizeof(buf));
	assert_true(n > 0);
	r = mnl_cb_run(buf, (size_t)n, 0, mnl_socket_get_portid(s), NULL, NULL) < 0 ? errno : 0;
	mnl_socket_close(s);
	return r;
}

static void network_device_that_appears_is_seen_on_both(void **state)
{
	struct watch_hw *w = open_in_own_network();
	int r = add_link("dummy7", "dummy");

	(void)state;
	if (r)
		r = add_link("veth7", "veth");
	if (r) {
		print_message("cannot make a link: %s\n", strerror(r));
		watch_hw_close(w);
		skip();
	}
	assert_true(changed(w, 0));
	assert_true(changed(w, 1));
	watch_hw_close(w);
}

static void set_address(unsigned last_byte)
{
	struct ifreq request = { .ifr_name = "lo" };
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_addr.s_addr = htonl(0x7f000000 + last_byte) };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	memcpy(&request.ifr_addr, &address, sizeof(address));
	assert_int_equal(ioctl(fd, SIOCSIFADDR, &request), 0);
	close(fd);
}

/* Our socket is turned over to messages that do not matter, so that only their loss can be the
 * change. */
static void overrun_counts_as_a_change(void **state)
{
	struct watch_hw *w = open_in_own_network();
	int links = RTNLGRP_LINK, addresses = RTNLGRP_IPV4_IFADDR, smallest = 1,
	    fd = watch_hw_fd(w, 1);

	(void)state;
	setsockopt(fd, SOL_NETLINK, NETLINK_DROP_MEMBERSHIP, &links, sizeof(links));
	setsockopt(fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &addresses, sizeof(addresses));
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &smallest, sizeof(smallest));
	set_address(1);
	assert_false(watch_hw_drain(w, 1, NULL, NULL));
	for (unsigned i = 0; i < 200; i++)
		set_address(2 + i % 2);
	assert_true(watch_hw_drain(w, 1, NULL, NULL));
	assert_false(watch_hw_drain(w, 1, NULL, NULL));
	watch_hw_close(w);
}

static void close_of_nothing_is_fine(void **state)
{
	(void)state;
	watch_hw_close(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(uevents_are_judged_by_subsystem),
		cmocka_unit_test(link_that_goes_up_is_seen),
		cmocka_unit_test(network_device_that_appears_is_seen_on_both),
		cmocka_unit_test(overrun_counts_as_a_change),
		cmocka_unit_test(close_of_nothing_is_fine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
