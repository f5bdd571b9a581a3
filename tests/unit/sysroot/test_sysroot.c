/* Files below a root: nothing outside it, nothing that blocks, nothing cut short. Once with
 * openat2, once without. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/mem.h"
#include "support/slow.h"
#include "support/fixture.h"
#include "sysroot/dir.h"
#include "sysroot/sysroot-internal.h"

static bool fallback;

static struct sysroot *open_text(const char *text)
{
	struct sysroot *root = fixture_text(text);

	if (fallback)
		root->has_openat2 = false;
	return root;
}

static void reads_a_value_without_its_newline(void **state)
{
	struct sysroot *root = open_text("f a/b = 0x15b3\\n\nf a/two = x\\n\\n\nf a/none = \n");
	char buf[16];
	uint64_t v = 0;

	(void)state;
	assert_int_equal(sysroot_read(root, buf, sizeof(buf), "a/%s", "b"), 6);
	assert_string_equal(buf, "0x15b3");
	assert_int_equal(sysroot_read(root, buf, sizeof(buf), "a/two"), 2);
	assert_string_equal(buf, "x\n");
	assert_int_equal(sysroot_read(root, buf, sizeof(buf), "a/none"), 0);
	assert_int_equal(sysroot_read_u64(root, 16, &v, "a/b"), 0);
	assert_int_equal(v, 0x15b3);
	assert_int_equal(sysroot_read_u64(root, 10, &v, "a/b"), -EINVAL);
	assert_int_equal(sysroot_read_u64(root, 10, &v, "a/none"), -EINVAL);
	assert_int_equal(sysroot_read(root, buf, sizeof(buf), "a/missing"), -ENOENT);
	assert_int_equal(sysroot_read(root, buf, sizeof(buf), "a"), -EISDIR);
	fixture_close(root);
}

static void refuses_a_value_that_does_not_fit(void **state)
{
	struct sysroot *root = open_text("f a = 1234567\n");
	char buf[8];

	(void)state;
	assert_int_equal(sysroot_read(root, buf, 7, "a"), -EFBIG);
	assert_int_equal(sysroot_read(root, buf, 8, "a"), 7);
	fixture_close(root);
}

static void keeps_links_inside_the_root(void **state)
{
	struct sysroot *root = open_text("f etc/secret = inside\n"
					 "l absolute -> /etc/secret\n"
					 "l up -> ../../../../../../../../../../etc/secret\n"
					 "l deep/er/link -> ../../etc/./secret\n"
					 "l dir -> /etc\n"
					 "l chain -> dir/../absolute\n"
					 "l outside -> /usr/bin/env\n");
	static const char *const ways[] = { "absolute",	     "up",
					    "deep/er/link",  "dir/secret",
					    "chain",	     "/etc/secret",
					    "../etc/secret", "deep/../../etc//secret" };
	char buf[16];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(ways); i++) {
		assert_int_equal(sysroot_read(root, buf, sizeof(buf), "%s", ways[i]), 6);
		assert_string_equal(buf, "inside");
	}
	assert_false(sysroot_exists(root, "outside"));
	assert_int_equal(sysroot_read(root, buf, sizeof(buf), "etc/secret/below"), -ENOTDIR);
	fixture_close(root);
}

static void ends_a_ring_of_links(void **state)
{
	struct sysroot *root = open_text("l a -> b\nl b -> a\nl self -> self\nl down -> down/x\n");
	char buf[16];

	(void)state;
	assert_int_equal(sysroot_read(root, buf, sizeof(buf), "a"), -ELOOP);
	assert_int_equal(sysroot_read(root, buf, sizeof(buf), "self"), -ELOOP);
	assert_int_equal(sysroot_read(root, buf, sizeof(buf), "down/y"), -ELOOP);
	assert_int_equal(sysroot_link_name(root, buf, sizeof(buf), "a"), 0);
	assert_string_equal(buf, "b");
	fixture_close(root);
}

static void refuses_paths_that_are_too_long(void **state)
{
	struct sysroot *root =
		open_text("d d\nl long -> d/././././././././././././././././././././././d\n");
	char deep[6000], buf[4];

	(void)state;
	memset(deep, 'x', sizeof(deep) - 1);
	deep[sizeof(deep) - 1] = '\0';
	assert_int_equal(sysroot_read(root, buf, sizeof(buf), "%s", deep), -ENAMETOOLONG);
	deep[300] = '\0';
	assert_int_equal(sysroot_read(root, buf, sizeof(buf), "%s", deep), -ENAMETOOLONG);
	assert_int_equal(sysroot_read(root, buf, sizeof(buf), "long"), -ENOENT);
	fixture_close(root);
}

static void reads_the_last_name_of_a_link(void **state)
{
	struct sysroot *root = open_text(
		"l driver -> ../../../bus/pci/drivers/mlx5_core\nl plain -> x\nl root -> /\nf f = 1\n");
	char buf[16];

	(void)state;
	assert_int_equal(sysroot_link_name(root, buf, sizeof(buf), "driver"), 0);
	assert_string_equal(buf, "mlx5_core");
	assert_int_equal(sysroot_link_name(root, buf, sizeof(buf), "plain"), 0);
	assert_string_equal(buf, "x");
	assert_int_equal(sysroot_link_name(root, buf, sizeof(buf), "root"), 0);
	assert_string_equal(buf, "");
	assert_int_equal(sysroot_link_name(root, buf, 9, "driver"), -ENAMETOOLONG);
	assert_int_equal(sysroot_link_name(root, buf, sizeof(buf), "f"), -EINVAL);
	assert_int_equal(sysroot_link_name(root, buf, sizeof(buf), "missing"), -ENOENT);
	fixture_close(root);
}

static void does_not_wait_for_a_fifo(void **state)
{
	struct sysroot *root = open_text("d d\n");
	_cleanup_free_ char *path = xasprintf("%s/fifo", sysroot_path(root));
	_cleanup_dir_ struct dir top = DIR_CLOSED;
	char buf[16];

	(void)state;
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(sysroot_read(root, buf, sizeof(buf), "fifo"), 0);
	assert_int_equal(dir_open_path(root, ".", &top), 0);
	assert_int_equal(dir_read(&top, "fifo", buf, sizeof(buf)), 0);
	fixture_close(root);
}

static int count(void *arg, const char *name)
{
	int *n = arg;

	assert_true(strcmp(name, ".") && strcmp(name, ".."));
	return ++*n == 3 ? 42 : 0;
}

static void lists_until_told_to_stop(void **state)
{
	struct sysroot *root = open_text(
		"d two/a\nf two/b = 1\nd four/a\nd four/b\nd four/c\nd four/d\nf file = 1\n");
	int n = 0;

	(void)state;
	assert_int_equal(sysroot_each(root, "two", count, &n), 0);
	assert_int_equal(n, 2);
	n = 0;
	assert_int_equal(sysroot_each(root, "four", count, &n), 42);
	assert_int_equal(n, 3);
	assert_int_equal(sysroot_each(root, "none", count, &n), -ENOENT);
	assert_int_equal(sysroot_each(root, "file", count, &n), -ENOTDIR);
	fixture_close(root);
}

/* The short way beside an open directory refuses links; then the path goes through the root. */
static void follows_links_below_a_held_directory(void **state)
{
	struct sysroot *root =
		open_text("f real/ports/1/state = 4: ACTIVE\n"
			  "l dev/ib -> /real\nl dev/state -> ib/ports/1/state\nl dev/ring -> ring\n"
			  "l dev/out -> /etc/hostname\n");
	_cleanup_dir_ struct dir dev = DIR_CLOSED, ib = DIR_CLOSED;
	char buf[16], path[64];

	(void)state;
	assert_int_equal(dir_open_path(root, "dev", &dev), 0);
	assert_int_equal(dir_read(&dev, "state", buf, sizeof(buf)), 9);
	assert_int_equal(dir_read(&dev, "ib/ports/1/state", buf, sizeof(buf)), 9);
	assert_int_equal(dir_open(&dev, "ib", &ib), 0);
	assert_int_equal(dir_read(&ib, "ports/1/state", buf, sizeof(buf)), 9);
	assert_int_equal(dir_read(&dev, "ring", buf, sizeof(buf)), -ELOOP);
	assert_int_equal(dir_read(&dev, "out", buf, sizeof(buf)), -ENOENT);
	assert_int_equal(dir_read(&dev, "state", buf, 9), -EFBIG);
	dir_path(&ib, path, sizeof(path));
	assert_string_equal(path, "dev/ib");
	fixture_close(root);
}

static int descriptors(void)
{
	int n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static void leaves_no_descriptor_open(void **state)
{
	struct sysroot *root = open_text(
		"f a/b/c/d/e = 1\nl a/b/up -> ../../a/b/c/../c/d/../d/e\nl ring -> ring\n");
	int before = descriptors();
	char buf[8];

	(void)state;
	for (int i = 0; i < 300; i++) {
		sysroot_read(root, buf, sizeof(buf), "a/b/up");
		sysroot_read(root, buf, sizeof(buf), "a/b/c/d/e/f");
		sysroot_read(root, buf, sizeof(buf), "ring");
		sysroot_exists(root, "a/b/missing");
		sysroot_link_name(root, buf, sizeof(buf), "a/b");
	}
	assert_int_equal(descriptors(), before);
	fixture_close(root);
}

static void names_a_root_that_is_not_there(void **state)
{
	struct sysroot *root = NULL;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(sysroot_open("/nowhere/at/all", &root, &err), -ENOENT);
	assert_non_null(strstr(err.msg, "/nowhere/at/all"));
	assert_null(root);
	sysroot_close(NULL);
}

static void knows_the_live_machine(void **state)
{
	struct sysroot *live = NULL, *other = open_text("d proc\n");

	(void)state;
	if (is_emulated())
		skip();
	assert_int_equal(sysroot_open("/", &live, NULL), 0);
	assert_true(sysroot_is_live(live));
	assert_true(sysroot_exists(live, "proc/self"));
	assert_false(sysroot_is_live(other));
	sysroot_close(live);
	fixture_close(other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_a_value_without_its_newline),
		cmocka_unit_test(refuses_a_value_that_does_not_fit),
		cmocka_unit_test(keeps_links_inside_the_root),
		cmocka_unit_test(ends_a_ring_of_links),
		cmocka_unit_test(refuses_paths_that_are_too_long),
		cmocka_unit_test(reads_the_last_name_of_a_link),
		cmocka_unit_test(does_not_wait_for_a_fifo),
		cmocka_unit_test(lists_until_told_to_stop),
		cmocka_unit_test(follows_links_below_a_held_directory),
		cmocka_unit_test(leaves_no_descriptor_open),
		cmocka_unit_test(names_a_root_that_is_not_there),
		cmocka_unit_test(knows_the_live_machine),
	};
	int failed = cmocka_run_group_tests_name("with openat2", tests, NULL, NULL);

	fallback = true;
	return failed + cmocka_run_group_tests_name("without openat2", tests, NULL, NULL);
}
