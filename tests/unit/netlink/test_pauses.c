/* Pause frames among the statistics of a driver; and the question itself on this kernel. */
#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "hw/portstats.h"
#include "netlink/netlink-internal.h"

#define MAX  16
#define LINK (HW_PAUSES - 1)

struct stat {
	const char *name;
	uint64_t value;
};

static bool read_all(const struct stat *stats, struct hw_pauses *ret)
{
	char names[MAX][ETH_GSTRING_LEN];
	uint64_t values[MAX];
	size_t n = 0;

	for (; stats[n].name; n++) {
		assert_true(n < MAX);
		strncpy(names[n], stats[n].name, ETH_GSTRING_LEN);
		values[n] = stats[n].value;
	}
	return netlink_read_pauses(names, values, n, ret);
}

/* With what stands around them in mlx5_core. */
static void frames_and_times_are_read_by_priority(void **state)
{
	static const struct stat stats[] = { { "rx_packets", 1000000 },
					     { "rx_prio3_bytes", 999 },
					     { "rx_prio3_pause", 17 },
					     { "rx_prio3_pause_duration", 2500 },
					     { "rx_prio3_pause_transition", 4 },
					     { "tx_prio0_pause", 0 },
					     { "rx_prio8_pause", 77 },
					     { "rx_prio_pause", 78 },
					     { "rx_prio3_discards", 21 },
					     { "rx_prio8_discards", 22 },
					     { "rx_discards_phy", 23 },
					     { "tx_global_pause", 5 },
					     { "tx_pause_storm_warning_events", 6 },
					     { NULL, 0 } };
	struct hw_pauses p;

	(void)state;
	assert_true(read_all(stats, &p));
	assert_int_equal(p.received[3].frames, 17);
	assert_int_equal(p.received[3].us, 2500);
	assert_int_equal(p.sent[0].frames, 0);
	assert_int_equal(p.sent[0].us, -1);
	assert_int_equal(p.sent[LINK].frames, 5);
	assert_int_equal(p.received[LINK].frames, -1);
	assert_int_equal(p.received[0].frames, -1);
	assert_int_equal(p.dropped[3], 21);
	assert_int_equal(p.dropped[LINK], 23);
	assert_int_equal(p.dropped[0], -1);
}

static void names_of_other_drivers_are_known(void **state)
{
	static const struct stat bnxt[] = { { "rx_pfc_ena_frames_pri7", 1 },
					    { "tx_pfc_ena_frames_pri0", 2 },
					    { "pfc_pri5_tx_duration_us", 3 },
					    { "rx_pause_frames", 4 },
					    { NULL, 0 } };
	static const struct stat ice[] = { { "tx_priority_2_xon.nic", 10 },
					   { "tx_priority_2_xoff.nic", 11 },
					   { "link_xoff_rx.nic", 12 },
					   { NULL, 0 } };
	static const struct stat hns3[] = { { "mac_rx_pfc_pri1_pkt_num", 20 },
					    { "mac_tx_pfc_pkt_num", 99 },
					    { "mac_tx_mac_pause_num", 21 },
					    { NULL, 0 } };
	struct hw_pauses p;

	(void)state;
	assert_true(read_all(bnxt, &p));
	assert_int_equal(p.dropped[LINK], -1);
	assert_int_equal(p.received[7].frames, 1);
	assert_int_equal(p.sent[0].frames, 2);
	assert_int_equal(p.sent[5].us, 3);
	assert_int_equal(p.received[LINK].frames, 4);
	assert_true(read_all(ice, &p));
	assert_int_equal(p.sent[2].frames, 21);
	assert_int_equal(p.received[LINK].frames, 12);
	assert_true(read_all(hns3, &p));
	assert_int_equal(p.received[1].frames, 20);
	assert_int_equal(p.sent[LINK].frames, 21);
}

static void statistics_without_pauses_are_none(void **state)
{
	static const struct stat none[] = { { NULL, 0 } },
				 others[] = { { "rx_packets", 1 },
					      { "", 2 },
					      { "rx_prio#_pause", 3 },
					      /* 32 characters have no NUL */
					      { "rx_prio3_pause_duration_and_more", 4 },
					      { NULL, 0 } },
				 absurd[] = { { "rx_prio0_pause", UINT64_MAX }, { NULL, 0 } };
	struct hw_pauses p;

	(void)state;
	assert_false(read_all(none, &p));
	assert_false(read_all(others, &p));
	assert_false(read_all(absurd, &p));
}

/* qemu's user mode does not know the ioctl. */
static void skip_where_it_is_not_asked(void)
{
	struct hw_pauses p;

	if (netlink_pauses("lo", &p, NULL) == -ENOSYS)
		skip();
}

static void the_kernel_answers(void **state)
{
	struct hw_pauses p;
	struct err err = { 0 };

	(void)state;
	skip_where_it_is_not_asked();
	assert_int_equal(netlink_pauses("lo", &p, &err), -ENOTSUP);
	assert_true(str_starts(err.msg, "pause frames of lo: "));
	assert_int_equal(netlink_pauses("no_such_netdev", &p, &err), -ENODEV);
	assert_int_equal(netlink_pauses("a_name_that_no_netdev_can_have", &p, &err), -ENODEV);
}

/* A veth has statistics, and no pause frames among them: all three questions are asked. */
static void a_driver_without_pauses_is_told_from_one_without_statistics(void **state)
{
	struct hw_pauses p;
	struct err err = { 0 };

	(void)state;
	skip_where_it_is_not_asked();
	if (unshare(CLONE_NEWNET) < 0 ||
	    system("ip link add pauses0 type veth peer name pauses1 2>/dev/null") != 0) {
		print_message("no network namespace, or no veth, for us\n");
		skip();
	}
	assert_int_equal(netlink_pauses("pauses0", &p, &err), -ENOTSUP);
	assert_string_equal(err.msg, "pause frames of pauses0: not counted by its driver");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames_and_times_are_read_by_priority),
		cmocka_unit_test(names_of_other_drivers_are_known),
		cmocka_unit_test(statistics_without_pauses_are_none),
		cmocka_unit_test(the_kernel_answers),
		cmocka_unit_test(a_driver_without_pauses_is_told_from_one_without_statistics),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
