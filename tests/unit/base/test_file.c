#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/file.h"
#include "base/mem.h"
#include "support/fixture.h"

#define NAME	  "map.json"
#define TEMPORARY ".map.json.tmp"

static struct {
	char *folder;
	int dir;
	struct err err;
	int syncs;	/* how often something was synced */
	int sync_fails; /* with this errno; 0: it works */
} m;

/* In the place of libc's. */
int fsync(int fd)
{
	(void)fd;
	m.syncs++;
	errno = m.sync_fails;
	return m.sync_fails ? -1 : 0;
}

static int set_up(void **state)
{
	(void)state;
	memset(&m, 0, sizeof(m));
	m.folder = fixture_folder();
	m.dir = open(m.folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return m.dir < 0;
}

static int tear_down(void **state)
{
	(void)state;
	closep(&m.dir);
	fixture_remove_tree(m.folder);
	free(m.folder);
	return 0;
}

static struct file_new here(void)
{
	return (struct file_new) { .dir = m.dir,
				   .dir_name = m.folder,
				   .name = NAME,
				   .temporary = TEMPORARY,
				   .mode = 0640 };
}

static int write_as(const struct file_new *f, const char *text)
{
	return file_write(f, text, strlen(text), &m.err);
}

static int write_here(const char *text)
{
	const struct file_new f = here();

	return write_as(&f, text);
}

static void put(const char *name, const char *text)
{
	_cleanup_close_ int fd =
		openat(m.dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
}

static void holds(const char *name, const char *text)
{
	_cleanup_close_ int fd = openat(m.dir, name, O_RDONLY | O_CLOEXEC);
	char got[128] = "";

	assert_true(fd >= 0);
	assert_true(read(fd, got, sizeof(got) - 1) >= 0);
	assert_string_equal(got, text);
}

static struct stat stat_of(const char *name)
{
	struct stat st;

	assert_int_equal(fstatat(m.dir, name, &st, AT_SYMLINK_NOFOLLOW), 0);
	return st;
}

static bool is_there(const char *name)
{
	struct stat st;

	return fstatat(m.dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

/* file: the part of the sentence behind the folder's name. */
static void says(const char *verb, const char *file, int code)
{
	_cleanup_free_ char *whole = xasprintf("%s %s%s: %s", verb, m.folder, file, strerror(code));

	assert_string_equal(m.err.msg, whole);
	assert_int_equal(m.err.code, code);
}

static void a_file_is_replaced_and_nothing_is_left_beside_it(void **state)
{
	struct stat old;

	(void)state;
	assert_int_equal(write_here("one"), 0);
	holds(NAME, "one");
	old = stat_of(NAME);
	assert_int_equal(write_here("two"), 0);
	holds(NAME, "two");
	assert_int_not_equal(old.st_ino,
			     stat_of(NAME).st_ino); /* who has it open keeps the old text */
	assert_false(is_there(TEMPORARY));
}

static void any_bytes_make_a_file_and_none_as_well(void **state)
{
	const struct file_new f = here();
	const char bytes[] = "a\0b";

	(void)state;
	assert_int_equal(file_write(&f, bytes, sizeof(bytes), NULL), 0);
	assert_int_equal(stat_of(NAME).st_size, sizeof(bytes));
	assert_int_equal(file_write(&f, NULL, 0, NULL), 0);
	assert_int_equal(stat_of(NAME).st_size, 0);
}

static void names_may_be_paths(void **state)
{
	_cleanup_free_ char *path = xasprintf("%s/deep", m.folder),
			    *temporary = xasprintf("%s.new", path);
	const struct file_new f = {
		.dir = AT_FDCWD, .name = path, .temporary = temporary, .mode = 0444
	};

	(void)state;
	assert_int_equal(write_as(&f, "x"), 0);
	holds("deep", "x");
	assert_int_equal(stat_of("deep").st_mode & 07777, 0444);
	assert_false(is_there("deep.new"));
}

static void the_mode_is_the_one_asked_for_whatever_the_umask(void **state)
{
	const mode_t modes[] = { 0444, 0644, 0666, 0600, 0755 };
	mode_t before = umask(077);

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
		struct file_new f = here();

		f.mode = modes[i];
		assert_int_equal(write_as(&f, "x"), 0);
		assert_int_equal(stat_of(NAME).st_mode & 07777, modes[i]);
	}
	umask(before);
}

static void a_link_in_its_place_is_replaced_and_not_followed(void **state)
{
	(void)state;
	put("precious", "old");
	assert_int_equal(symlinkat("precious", m.dir, NAME), 0);
	assert_int_equal(symlinkat("precious", m.dir, TEMPORARY), 0);
	assert_int_equal(write_here("new"), 0);
	holds("precious", "old");
	assert_true(S_ISREG(stat_of(NAME).st_mode));
	holds(NAME, "new");
}

static void what_a_killed_process_left_is_no_hindrance(void **state)
{
	(void)state;
	put(TEMPORARY, "much longer than the text that comes");
	assert_int_equal(write_here("one"), 0);
	holds(NAME, "one");
	assert_int_equal(mkfifoat(m.dir, TEMPORARY, 0600),
			 0); /* opening it would wait for a reader */
	assert_int_equal(write_here("two"), 0);
	holds(NAME, "two");
	assert_false(is_there(TEMPORARY));
}

static void a_directory_under_the_temporary_name_is_an_error(void **state)
{
	(void)state;
	put(NAME, "old");
	assert_int_equal(mkdirat(m.dir, TEMPORARY, 0700), 0);
	assert_int_equal(write_here("new"), -EISDIR);
	says("write", "/" TEMPORARY, EISDIR);
	holds(NAME, "old");
	assert_true(S_ISDIR(stat_of(TEMPORARY).st_mode));
}

static void a_directory_in_its_place_is_an_error(void **state)
{
	(void)state;
	assert_int_equal(mkdirat(m.dir, NAME, 0700), 0);
	assert_int_equal(write_here("new"), -EISDIR);
	says("replace", "/" NAME, EISDIR);
	assert_false(is_there(TEMPORARY));
}

static void a_folder_that_is_missing_or_no_folder_is_named(void **state)
{
	_cleanup_free_ char *missing = xasprintf("%s/missing", m.folder),
			    *file = xasprintf("%s/file", m.folder);
	_cleanup_free_ char *one = xasprintf("%s/x", missing), *two = xasprintf("%s/x", file);
	struct file_new f = { .dir = AT_FDCWD, .name = "unused", .temporary = one, .mode = 0600 };

	(void)state;
	put("file", "");
	assert_int_equal(write_as(&f, "x"), -ENOENT);
	says("write", "/missing/x", ENOENT);
	f.temporary = two;
	assert_int_equal(write_as(&f, "x"), -ENOTDIR);
	says("write", "/file/x", ENOTDIR);
}

static void limit_files(rlim_t bytes)
{
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	limit.rlim_cur = bytes;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* A limit on the size of files ends a write half-way, as a full disk does. */
static void a_write_that_ends_half_way_leaves_the_old_file_alone(void **state)
{
	int r;

	(void)state;
	put(NAME, "old");
	signal(SIGXFSZ, SIG_IGN);
	limit_files(4);
	r = write_here("longer than that");
	limit_files(RLIM_INFINITY);
	assert_int_equal(r, -EFBIG);
	says("write", "/" TEMPORARY, EFBIG);
	holds(NAME, "old");
	assert_false(is_there(TEMPORARY));
}

static void only_what_shall_be_synced_is(void **state)
{
	struct file_new f = here();

	(void)state;
	assert_int_equal(write_as(&f, "x"), 0);
	assert_int_equal(m.syncs, 0);
	f.synced = true;
	assert_int_equal(write_as(&f, "y"), 0);
	assert_int_equal(m.syncs, 1);
	assert_int_equal(file_sync_dir(m.dir, m.folder, &m.err), 0);
	assert_int_equal(m.syncs, 2);
}

static void what_cannot_be_synced_does_not_get_its_name(void **state)
{
	struct file_new f = here();

	(void)state;
	put(NAME, "old");
	f.synced = true;
	m.sync_fails = EIO;
	assert_int_equal(write_as(&f, "new"), -EIO);
	says("write", "/" TEMPORARY, EIO);
	holds(NAME, "old");
	assert_false(is_there(TEMPORARY));
	assert_int_equal(file_sync_dir(m.dir, m.folder, &m.err), -EIO);
	says("write the directory", "", EIO);
}

static void a_name_that_is_taken_stays_with_who_has_it(void **state)
{
	struct file_new f = here();

	(void)state;
	f.only_new = true;
	assert_int_equal(write_as(&f, "first"), 0);
	assert_false(is_there(TEMPORARY));
	assert_int_equal(stat_of(NAME).st_nlink, 1);
	assert_int_equal(write_as(&f, "second"), -EEXIST);
	says("make", "/" NAME, EEXIST);
	holds(NAME, "first");
	assert_false(is_there(TEMPORARY));
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_file_is_replaced_and_nothing_is_left_beside_it),
		TEST(any_bytes_make_a_file_and_none_as_well),
		TEST(names_may_be_paths),
		TEST(the_mode_is_the_one_asked_for_whatever_the_umask),
		TEST(a_link_in_its_place_is_replaced_and_not_followed),
		TEST(what_a_killed_process_left_is_no_hindrance),
		TEST(a_directory_under_the_temporary_name_is_an_error),
		TEST(a_directory_in_its_place_is_an_error),
		TEST(a_folder_that_is_missing_or_no_folder_is_named),
		TEST(a_write_that_ends_half_way_leaves_the_old_file_alone),
		TEST(only_what_shall_be_synced_is),
		TEST(what_cannot_be_synced_does_not_get_its_name),
		TEST(a_name_that_is_taken_stays_with_who_has_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
