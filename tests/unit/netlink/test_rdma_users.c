/* What RDMA netlink says, by messages laid out as Linux 6.12 lays them out; and the socket, where
 * this kernel has it. */
#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <libmnl/libmnl.h>
#include <rdma/rdma_netlink.h>

#include "base/err.h"
#include "base/str.h"
#include "netlink/netlink.h"
#include "netlink/netlink-internal.h"

static _Alignas(struct nlmsghdr) char buf[4096];

static struct nlmsghdr *begin(const char *name, uint32_t index)
{
	struct nlmsghdr *m;

	memset(buf, 0, sizeof(buf));
	m = mnl_nlmsg_put_header(buf);
	m->nlmsg_type = RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_RES_GET);
	mnl_attr_put_u32(m, RDMA_NLDEV_ATTR_DEV_INDEX, index);
	mnl_attr_put_strz(m, RDMA_NLDEV_ATTR_DEV_NAME, name);
	return m;
}

static void put_entry(struct nlmsghdr *m, const char *name, uint64_t count)
{
	struct nlattr *entry = mnl_attr_nest_start(m, RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY);

	mnl_attr_put_strz(m, RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY_NAME, name);
	mnl_attr_put_u64(m, RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY_CURR, count);
	mnl_attr_nest_end(m, entry);
}

static struct nlmsghdr *summary(const char *name, uint64_t contexts)
{
	struct nlmsghdr *m = begin(name, 7);
	struct nlattr *table = mnl_attr_nest_start(m, RDMA_NLDEV_ATTR_RES_SUMMARY);

	put_entry(m, "pd", 5);
	put_entry(m, "cq", 6);
	put_entry(m, "ctx", contexts);
	put_entry(m, "srq", 9);
	mnl_attr_nest_end(m, table);
	return m;
}

static void contexts_are_counted_and_nothing_else(void **state)
{
	unsigned users = 99;

	(void)state;
	assert_int_equal(rdma_message_users(summary("mlx5_7", 3), "mlx5_7", &users), 0);
	assert_int_equal(users, 3);
	assert_int_equal(rdma_message_users(summary("mlx5_7", 0), "mlx5_7", &users), 0);
	assert_int_equal(users, 0);
	assert_int_equal(rdma_message_users(summary("mlx5_7", UINT64_MAX), "mlx5_7", &users), 0);
	assert_true(users == UINT_MAX);
}

static void a_message_about_another_device_says_nothing(void **state)
{
	unsigned users;

	(void)state;
	assert_int_equal(rdma_message_users(summary("mlx5_70", 3), "mlx5_7", &users), -ENODEV);
}

static void a_kernel_that_does_not_count_contexts_says_so(void **state)
{
	struct nlmsghdr *m = begin("mlx5_7", 7);
	struct nlattr *table = mnl_attr_nest_start(m, RDMA_NLDEV_ATTR_RES_SUMMARY);
	unsigned users;

	(void)state;
	put_entry(m, "pd", 5);
	mnl_attr_nest_end(m, table);
	assert_int_equal(rdma_message_users(m, "mlx5_7", &users), -ENOTSUP);
	assert_int_equal(rdma_message_users(begin("mlx5_7", 7), "mlx5_7", &users), -ENOTSUP);
}

static void values_of_a_wrong_size_do_not_count(void **state)
{
	struct nlmsghdr *m = begin("mlx5_7", 7);
	struct nlattr *table = mnl_attr_nest_start(m, RDMA_NLDEV_ATTR_RES_SUMMARY);
	struct nlattr *entry = mnl_attr_nest_start(m, RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY);
	const char *name;
	uint32_t index;
	unsigned users;

	(void)state;
	mnl_attr_put_strz(m, RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY_NAME, "ctx");
	mnl_attr_put_u32(m, RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY_CURR, 1);
	mnl_attr_nest_end(m, entry);
	mnl_attr_nest_end(m, table);
	assert_int_equal(rdma_message_users(m, "mlx5_7", &users), -ENOTSUP);
	m = mnl_nlmsg_put_header(buf);
	mnl_attr_put_u64(m, RDMA_NLDEV_ATTR_DEV_INDEX, 7);
	mnl_attr_put_strz(m, RDMA_NLDEV_ATTR_DEV_NAME, "mlx5_7");
	assert_false(rdma_message_device(m, &name, &index));
	m = mnl_nlmsg_put_header(buf);
	mnl_attr_put_u32(m, RDMA_NLDEV_ATTR_DEV_INDEX, 7);
	mnl_attr_put(m, RDMA_NLDEV_ATTR_DEV_NAME, 3, "abc"); /* no NUL */
	assert_false(rdma_message_device(m, &name, &index));
}

static void a_message_names_its_device(void **state)
{
	const char *name = NULL;
	uint32_t index = 0;

	(void)state;
	assert_true(rdma_message_device(summary("rxe0", 1), &name, &index));
	assert_string_equal(name, "rxe0");
	assert_int_equal(index, 7);
}

static void is_seen(void *arg, const char *rdma, unsigned users)
{
	size_t *n = arg;

	(void)users;
	assert_non_null(n); /* of all devices, not of the one that is not there */
	assert_non_null(rdma);
	++*n;
}

/* A kernel without RDMA (most test machines) says it cannot know; one with it knows that this
 * device is not there. */
static void the_socket_says_what_this_kernel_can(void **state)
{
	struct rdma_users *u = NULL;
	struct err err = { 0 };
	size_t n = 0;
	int r = rdma_users_open(&u, &err);

	(void)state;
	if (r < 0) {
		assert_int_equal(r, -ENOTSUP);
		assert_true(str_starts(err.msg, "open RDMA netlink:"));
		assert_null(u);
		return;
	}
	assert_int_equal(rdma_users_count(u, "no_such_device", is_seen, NULL), -ENODEV);
	assert_int_equal(rdma_users_count(u, "no_such_device", is_seen, NULL), -ENODEV);
	assert_int_equal(rdma_users_count(u, NULL, is_seen, &n), 0);
	rdma_users_close(u);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(contexts_are_counted_and_nothing_else),
		cmocka_unit_test(a_message_about_another_device_says_nothing),
		cmocka_unit_test(a_kernel_that_does_not_count_contexts_says_so),
		cmocka_unit_test(values_of_a_wrong_size_do_not_count),
		cmocka_unit_test(a_message_names_its_device),
		cmocka_unit_test(the_socket_says_what_this_kernel_can),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
