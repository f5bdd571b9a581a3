/* Whose answer is it, and has it ended? By datagrams as the kernel, and as somebody else, would
 * send them. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <libmnl/libmnl.h>
#include <linux/netlink.h>
#include <rdma/rdma_netlink.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "netlink/netlink.h"
#include "netlink/netlink-internal.h"

#define SEQ  5
#define PORT 4711
#define DATA 20

static _Alignas(struct nlmsghdr) char buf[512];
static size_t used;

static struct nlmsghdr *put(uint16_t type, unsigned seq, unsigned port)
{
	struct nlmsghdr *m = mnl_nlmsg_put_header(buf + used);

	m->nlmsg_type = type;
	m->nlmsg_seq = seq;
	m->nlmsg_pid = port;
	used += m->nlmsg_len;
	return m;
}

static void put_verdict(int error, unsigned seq)
{
	struct nlmsghdr *m = put(NLMSG_ERROR, seq, PORT);
	struct nlmsgerr *said = mnl_nlmsg_put_extra_header(m, sizeof(*said));

	said->error = error;
	used += m->nlmsg_len - sizeof(*m);
}

static int count(const struct nlmsghdr *message, void *arg)
{
	(void)message;
	++*(int *)arg;
	return 0;
}

static int refuse(const struct nlmsghdr *message, void *arg)
{
	(void)message, (void)arg;
	return -ENOTSUP;
}

static int read_all(int *ret_seen)
{
	*ret_seen = 0;
	return netlink_answer(buf, used, SEQ, PORT, count, ret_seen);
}

static void an_answer_ends_with_the_kernels_verdict(void **state)
{
	static const struct {
		int error, want;
	} rows[] = { { 0, 1 }, { -ENODEV, -ENODEV }, { 5, -EBADMSG }, { -100000, -EBADMSG } };
	int seen;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		used = 0;
		put(DATA, SEQ, PORT);
		assert_int_equal(read_all(&seen), 0);
		put_verdict(rows[i].error, SEQ);
		put(DATA, SEQ, PORT);
		assert_int_equal(read_all(&seen), rows[i].want);
		assert_int_equal(seen, 1);
	}
}

static void what_is_not_ours_is_passed_over(void **state)
{
	int seen;

	(void)state;
	used = 0;
	put(DATA, SEQ - 1, PORT);
	put(DATA, SEQ, PORT + 1);
	put_verdict(-EIO, SEQ + 1);
	put(NLMSG_NOOP, SEQ, PORT);
	put(DATA, SEQ, PORT);
	assert_int_equal(read_all(&seen), 0);
	assert_int_equal(seen, 1);
}

static void a_datagram_cut_anywhere_is_never_read_beyond_its_end(void **state)
{
	size_t whole;
	int seen = 0;

	(void)state;
	used = 0;
	put(DATA, SEQ, PORT);
	put_verdict(0, SEQ);
	whole = used;
	for (size_t len = 0; len < whole; len++) {
		_cleanup_free_ char *cut = xcalloc(len + 1, 1);

		memcpy(cut, buf, len);
		assert_int_equal(netlink_answer(cut, len, SEQ, PORT, count, &seen), 0);
	}
	/* A verdict whose own length leaves out the verdict. */
	used = 0;
	put(NLMSG_ERROR, SEQ, PORT);
	assert_int_equal(read_all(&seen), -EBADMSG);
}

/* As a number with a sign, which libmnl makes of it, each is less than what is left. */
static void a_message_longer_than_its_datagram_ends_it(void **state)
{
	static const uint32_t lengths[] = { 0,		15,	    24,	       0x7fffffff,
					    0x80000000, 0xfffffff0, 0xffffffff };
	int seen;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
		used = 0;
		put(DATA, SEQ, PORT);
		put(DATA, SEQ, PORT)->nlmsg_len = lengths[i];
		used = 36;
		assert_int_equal(read_all(&seen), 0);
		assert_int_equal(seen, 1);
		assert_false(netlink_reports_link(buf, used, NULL, NULL));
	}
}

static void a_dump_ends_with_its_last_message(void **state)
{
	int seen;

	(void)state;
	used = 0;
	put(DATA, SEQ, PORT);
	put(DATA, SEQ, PORT);
	put(NLMSG_DONE, SEQ, PORT);
	assert_int_equal(read_all(&seen), 1);
	assert_int_equal(seen, 2);
}

static void a_reader_that_cannot_use_the_answer_ends_it(void **state)
{
	(void)state;
	used = 0;
	put(DATA, SEQ, PORT);
	put_verdict(0, SEQ);
	assert_int_equal(netlink_answer(buf, used, SEQ, PORT, refuse, NULL), -ENOTSUP);
}

static void a_question_without_an_answer_names_what_was_asked(void **state)
{
	_Alignas(struct nlmsghdr) char request[64];
	struct nlmsghdr *m = mnl_nlmsg_put_header(request);
	struct err err = { 0 };
	int seen = 0;

	(void)state;
	m->nlmsg_type = DATA;
	assert_true(netlink_ask(9999, m, count, &seen, "what nobody knows", &err) < 0);
	assert_true(str_starts(err.msg, "what nobody knows: "));
	/* The kernel says at once that it does not know this type of message. */
	m = mnl_nlmsg_put_header(request);
	m->nlmsg_type = 4000;
	assert_int_equal(netlink_ask(NETLINK_ROUTE, m, count, &seen, "an odd message", &err),
			 -ENOTSUP);
	assert_int_equal(seen, 0);
}

static struct nlmsghdr *mode_message(int mode)
{
	struct nlmsghdr *m;

	memset(buf, 0, sizeof(buf));
	m = mnl_nlmsg_put_header(buf);
	m->nlmsg_type = RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_SYS_GET);
	mnl_attr_put_u8(m, RDMA_NLDEV_SYS_ATTR_COPY_ON_FORK, 1);
	if (mode >= 0)
		mnl_attr_put_u8(m, RDMA_NLDEV_SYS_ATTR_NETNS_MODE, (uint8_t)mode);
	return m;
}

static void the_mode_of_rdma_namespaces_is_read(void **state)
{
	struct nlmsghdr *m;
	bool exclusive;

	(void)state;
	assert_int_equal(rdma_message_exclusive(mode_message(0), &exclusive), 0);
	assert_true(exclusive);
	assert_int_equal(rdma_message_exclusive(mode_message(1), &exclusive), 0);
	assert_false(exclusive);
	assert_int_equal(rdma_message_exclusive(mode_message(-1), &exclusive), -ENOTSUP);
	m = mode_message(-1);
	mnl_attr_put_u32(m, RDMA_NLDEV_SYS_ATTR_NETNS_MODE, 1);
	assert_int_equal(rdma_message_exclusive(m, &exclusive), -ENOTSUP);
}

/* Most test machines have no RDMA. */
static void the_kernel_says_its_mode_or_that_it_has_none(void **state)
{
	struct err err = { 0 };
	bool exclusive;
	int r = netlink_rdma_exclusive(&exclusive, &err);

	(void)state;
	if (r < 0) {
		assert_int_equal(r, -ENOTSUP);
		assert_true(str_starts(err.msg, "RDMA network namespace mode: "));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_answer_ends_with_the_kernels_verdict),
		cmocka_unit_test(what_is_not_ours_is_passed_over),
		cmocka_unit_test(a_datagram_cut_anywhere_is_never_read_beyond_its_end),
		cmocka_unit_test(a_message_longer_than_its_datagram_ends_it),
		cmocka_unit_test(a_dump_ends_with_its_last_message),
		cmocka_unit_test(a_reader_that_cannot_use_the_answer_ends_it),
		cmocka_unit_test(a_question_without_an_answer_names_what_was_asked),
		cmocka_unit_test(the_mode_of_rdma_namespaces_is_read),
		cmocka_unit_test(the_kernel_says_its_mode_or_that_it_has_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
