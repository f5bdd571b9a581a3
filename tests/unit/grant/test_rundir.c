/* Directories of containers: made, filled, swept; and run directories that do not work. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/file.h"
#include "base/mem.h"
#include "grant/grant-internal.h"
#include "support/fixture.h"

#define ONE "0000:3b:00.1"
#define TWO "0000:3b:00.2"

static char *top;
static const char *r;
static struct arena *a;
static struct err err;
static const char *needed[2]; /* the VFs whose directories are needed */

static int set_up(void **state)
{
	(void)state;
	top = fixture_folder();
	a = arena_new(0);
	err = (struct err) { 0 };
	needed[0] = needed[1] = NULL;
	r = arena_printf(a, "%s/run", top);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	arena_free(a);
	fixture_remove_tree(top);
	free(top);
	return 0;
}

#define IN(...) arena_printf(a, __VA_ARGS__)

static const char *path(const char *below)
{
	return IN("%s/run/%s", top, below);
}

static const char *text_of(const char *below)
{
	char *text = arena_alloc(a, 4096);
	FILE *f = fopen(path(below), "re");

	if (!f)
		return NULL;
	text[fread(text, 1, 4095, f)] = '\0';
	fclose(f);
	return text;
}

static void put(const char *below, const char *text)
{
	FILE *f = fopen(path(below), "we");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static mode_t mode_of(const char *below)
{
	struct stat st;

	assert_int_equal(lstat(path(below), &st), 0);
	return st.st_mode & 07777;
}

static bool exists(const char *below)
{
	struct stat st;

	return lstat(path(below), &st) == 0;
}

static bool needs(void *ctx, const char *vf)
{
	(void)ctx;
	for (size_t i = 0; i < ARRAY_LEN(needed); i++) {
		if (needed[i] && !strcmp(needed[i], vf))
			return true;
	}
	return false;
}

static int write_one(const char *vf, const char *name, const char *text)
{
	const struct rundir_file file = { .name = name, .text = text };

	return grant_rundir_write(r, vf, &file, 1, &err);
}

/* --- */

static void makes_a_directory_once_and_below_a_run_directory_of_its_own(void **state)
{
	struct stat before, after;

	(void)state;
	assert_int_equal(grant_rundir_make(r, ONE, &err), 0);
	assert_int_equal(stat(path("vf-" ONE), &before), 0);
	assert_int_equal(grant_rundir_make(r, ONE, &err), 0);
	assert_int_equal(stat(path("vf-" ONE), &after), 0);
	assert_int_equal(after.st_ino, before.st_ino); /* it may be mounted */
	assert_int_equal(grant_rundir_make(r, TWO, &err), 0);
	assert_string_equal(grant_rundir_path(r, ONE, a), path("vf-" ONE));
}

static void what_is_there_can_be_read_by_anybody(void **state)
{
	mode_t before = umask(0077);

	(void)state;
	assert_int_equal(grant_rundir_make(r, ONE, &err), 0);
	assert_int_equal(write_one(ONE, "map.json", "{}"), 0);
	umask(before);
	assert_int_equal(mode_of("vf-" ONE), 0755);
	assert_int_equal(mode_of("vf-" ONE "/map.json"), 0644);
}

static void files_are_replaced_whole_and_removed(void **state)
{
	const struct rundir_file files[] = { { .name = "nccl.conf", .text = "NEW=1\n" },
					     { .name = "cufile.json", .text = NULL },
					     { .name = "never.was", .text = NULL } };
	struct stat before, after;

	(void)state;
	assert_int_equal(write_one(ONE, "nccl.conf", "OLD=1 and more\n"), 0);
	assert_int_equal(write_one(ONE, "cufile.json", "{}"), 0);
	assert_int_equal(stat(path("vf-" ONE "/nccl.conf"), &before), 0);
	assert_int_equal(grant_rundir_write(r, ONE, files, ARRAY_LEN(files), &err), 0);
	assert_string_equal(text_of("vf-" ONE "/nccl.conf"), "NEW=1\n");
	assert_int_equal(stat(path("vf-" ONE "/nccl.conf"), &after), 0);
	assert_true(before.st_ino !=
		    after.st_ino); /* who has it open reads the old one to its end */
	assert_false(exists("vf-" ONE "/cufile.json"));
	assert_false(exists("vf-" ONE "/.nccl.conf.new"));
}

static void a_file_of_the_node_is_linked_and_follows_when_it_is_replaced(void **state)
{
	const struct rundir_file file = { .name = "topology.xml", .same = "topology.xml" };
	struct stat ours, theirs;

	(void)state;
	assert_int_equal(grant_rundir_make(r, ONE, &err), 0);
	assert_false(grant_rundir_has(r, "topology.xml"));
	put("topology.xml", "<system/>");
	assert_true(grant_rundir_has(r, "topology.xml"));
	assert_int_equal(grant_rundir_write(r, ONE, &file, 1, &err), 0);
	assert_int_equal(grant_rundir_write(r, ONE, &file, 1, &err), 0);
	assert_int_equal(stat(path("topology.xml"), &theirs), 0);
	assert_int_equal(stat(path("vf-" ONE "/topology.xml"), &ours), 0);
	assert_int_equal(ours.st_ino, theirs.st_ino);
	assert_false(exists("vf-" ONE "/.topology.xml.new"));
	unlink(path("topology.xml"));
	put("topology.xml", "<system version=\"1\"/>");
	assert_string_equal(text_of("vf-" ONE "/topology.xml"), "<system/>");
	assert_int_equal(grant_rundir_write(r, ONE, &file, 1, &err), 0);
	assert_string_equal(text_of("vf-" ONE "/topology.xml"), "<system version=\"1\"/>");
}

static void a_file_of_the_node_that_is_gone_is_an_error_and_the_others_are_written(void **state)
{
	const struct rundir_file files[] = { { .name = "map.json", .text = "{}" },
					     { .name = "topology.xml", .same = "topology.xml" } };

	(void)state;
	assert_int_equal(grant_rundir_write(r, ONE, files, 2, &err), -ENOENT);
	assert_non_null(strstr(err.msg, "topology.xml: No such file"));
	assert_string_equal(text_of("vf-" ONE "/map.json"), "{}");
}

static void a_link_among_the_nodes_files_is_not_followed(void **state)
{
	const struct rundir_file file = { .name = "topology.xml", .same = "topology.xml" };

	(void)state;
	assert_int_equal(grant_rundir_make(r, ONE, &err), 0);
	assert_int_equal(symlink("/etc/passwd", path("topology.xml")), 0);
	assert_false(grant_rundir_has(r, "topology.xml"));
	assert_true(grant_rundir_write(r, ONE, &file, 1, &err) < 0);
	assert_false(exists("vf-" ONE "/topology.xml"));
}

/* --- what is in the way --- */

static void a_link_in_the_place_of_the_directory_is_refused(void **state)
{
	(void)state;
	assert_int_equal(grant_rundir_make(r, TWO, &err), 0);
	assert_int_equal(mkdir(path("elsewhere"), 0755), 0);
	assert_int_equal(symlink("elsewhere", path("vf-" ONE)), 0);
	assert_int_equal(grant_rundir_make(r, ONE, &err), -ENOTDIR);
	assert_non_null(strstr(err.msg, "exists and is not a directory"));
	assert_int_equal(write_one(ONE, "map.json", "{}"), -ENOTDIR);
	assert_false(exists("elsewhere/map.json"));
}

static void a_link_in_the_place_of_a_file_is_replaced(void **state)
{
	(void)state;
	assert_int_equal(grant_rundir_make(r, ONE, &err), 0);
	put("victim", "stays");
	assert_int_equal(symlink("../victim", path("vf-" ONE "/map.json")), 0);
	assert_int_equal(symlink("../victim", path("vf-" ONE "/.map.json.new")), 0);
	assert_int_equal(write_one(ONE, "map.json", "{}"), 0);
	assert_string_equal(text_of("vf-" ONE "/map.json"), "{}");
	assert_string_equal(text_of("victim"), "stays");
}

static void a_folder_in_the_place_of_a_file_is_told(void **state)
{
	(void)state;
	assert_int_equal(grant_rundir_make(r, ONE, &err), 0);
	assert_int_equal(mkdir(path("vf-" ONE "/map.json"), 0755), 0);
	assert_true(write_one(ONE, "map.json", "{}") < 0);
	assert_non_null(strstr(err.msg, "vf-" ONE "/map.json"));
	assert_false(exists("vf-" ONE "/.map.json.new"));
}

static void a_run_directory_that_is_none_is_told(void **state)
{
	(void)state;
	r = "/proc/self/fdinfo";
	assert_true(grant_rundir_make(r, ONE, &err) < 0);
	assert_non_null(strstr(err.msg, "/proc/self/fdinfo/vf-" ONE));
	r = "/dev/null";
	assert_int_equal(grant_rundir_make(r, ONE, &err), -ENOTDIR);
	assert_non_null(strstr(err.msg, "/dev/null"));
	assert_true(write_one(ONE, "map.json", "{}") < 0);
	grant_rundir_sweep(r, needs, NULL);
}

static void a_file_that_does_not_fit_leaves_the_old_one(void **state)
{
	struct rlimit limit, small;
	void (*before)(int) = signal(SIGXFSZ, SIG_IGN);
	int e;

	(void)state;
	assert_int_equal(write_one(ONE, "map.json", "old"), 0);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	small = limit;
	small.rlim_cur = 4;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	e = write_one(ONE, "map.json", "much longer than that");
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	signal(SIGXFSZ, before);
	assert_int_equal(e, -EFBIG);
	assert_string_equal(text_of("vf-" ONE "/map.json"), "old");
	assert_false(exists("vf-" ONE "/.map.json.new"));
}

static void mount_read_only(const char *on)
{
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("none", on, "tmpfs", MS_RDONLY, NULL) < 0)
		skip();
}

static void a_read_only_run_directory_is_told(void **state)
{
	(void)state;
	assert_int_equal(mkdir(IN("%s/run", top), 0755), 0);
	mount_read_only(IN("%s/run", top));
	assert_int_equal(grant_rundir_make(r, ONE, &err), -EROFS);
	assert_non_null(strstr(err.msg, "Read-only"));
	umount2(IN("%s/run", top), MNT_DETACH);
}

static void a_directory_has_a_place_to_mount_the_probe_over(void **state)
{
	(void)state;
	assert_int_equal(write_one(ONE, "map.json", "{}"), 0);
	assert_int_equal(mode_of("vf-" ONE "/probe"), 0755);
	assert_int_equal(rmdir(path("vf-" ONE "/probe")), 0);
	assert_int_equal(grant_rundir_make(r, ONE, &err), 0); /* an earlier release made none */
	assert_int_equal(rmdir(path("vf-" ONE "/probe")), 0);
	put("vf-" ONE "/probe", "");
	assert_int_equal(grant_rundir_make(r, ONE, &err), -ENOTDIR);
}

/* --- sweeping --- */

static void directories_go_when_their_vf_is_not_needed(void **state)
{
	(void)state;
	assert_int_equal(write_one(ONE, "map.json", "{}"), 0);
	assert_int_equal(write_one(TWO, "map.json", "{}"), 0);
	needed[0] = ONE;
	needed[1] = TWO;
	grant_rundir_sweep(r, needs, NULL);
	assert_true(exists("vf-" ONE));
	needed[0] = NULL;
	grant_rundir_sweep(r, needs, NULL);
	assert_false(exists("vf-" ONE));
	assert_string_equal(text_of("vf-" TWO "/map.json"), "{}");
}

static void what_is_not_ours_stays(void **state)
{
	static const char *const others[] = {
		"railmate.sock", "topology.xml",    "vf-",
		"vf-0000:3b:00", "vf-0000:3B:00.1", "vf-0000:3b:00.1x"
	};

	(void)state;
	assert_int_equal(grant_rundir_make(r, ONE, &err), 0);
	for (size_t i = 0; i < ARRAY_LEN(others); i++)
		put(others[i], "x");
	assert_int_equal(mkdir(path("folder"), 0755), 0);
	assert_int_equal(symlink("folder", path("vf-" TWO)),
			 0); /* our name, and not what we make */
	put("folder/file", "x");
	grant_rundir_sweep(r, needs, NULL);
	assert_false(exists("vf-" ONE));
	for (size_t i = 0; i < ARRAY_LEN(others); i++)
		assert_true(exists(others[i]));
	assert_true(exists("folder/file"));
}

static void a_run_directory_that_is_not_there_is_nothing_to_sweep(void **state)
{
	(void)state;
	grant_rundir_sweep(r, needs, NULL);
	assert_false(exists(""));
}

/* --- reading --- */

static unsigned n_found;
static const char *found_path, *found_text;

static void on_found(void *ctx, const char *where, const char *text)
{
	(void)ctx;
	n_found++;
	found_path = IN("%s", where);
	found_text = IN("%s", text);
}

static bool each_map(void)
{
	n_found = 0;
	return grant_rundir_each(r, "map.json", on_found, NULL);
}

static void every_file_of_a_name_is_read(void **state)
{
	(void)state;
	assert_true(each_map()); /* no run directory, no files */
	assert_int_equal(write_one(ONE, "map.json", "{1}"), 0);
	assert_int_equal(write_one(TWO, "nccl.conf", "x"), 0);
	put("map.json", "not a container's");
	assert_true(each_map());
	assert_int_equal(n_found, 1);
	assert_string_equal(found_text, "{1}");
	assert_string_equal(found_path, path("vf-" ONE "/map.json"));
}

static void links_and_folders_are_no_records(void **state)
{
	(void)state;
	assert_int_equal(grant_rundir_make(r, ONE, &err), 0);
	put("victim", "stays");
	assert_int_equal(symlink("../victim", path("vf-" ONE "/map.json")), 0);
	assert_int_equal(grant_rundir_make(r, TWO, &err), 0);
	assert_int_equal(mkdir(path("vf-" TWO "/map.json"), 0755), 0);
	assert_true(each_map());
	assert_int_equal(n_found, 0);
}

static void a_link_in_the_place_of_a_directory_is_not_followed(void **state)
{
	(void)state;
	assert_int_equal(write_one(ONE, "map.json", "{}"), 0);
	assert_int_equal(symlink("vf-" ONE, path("vf-" TWO)), 0);
	assert_true(each_map());
	assert_int_equal(n_found, 1);
	assert_string_equal(found_path, path("vf-" ONE "/map.json"));
}

static void a_run_directory_that_is_none_has_no_records(void **state)
{
	(void)state;
	r = "/dev/null";
	assert_true(each_map());
	assert_int_equal(n_found, 0);
}

static void what_cannot_be_opened_is_not_taken_for_absent(void **state)
{
	struct rlimit limit, none;

	(void)state;
	assert_int_equal(write_one(ONE, "map.json", "{}"), 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	none = limit;
	none.rlim_cur = 0;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_false(each_map());
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_true(each_map());
	assert_int_equal(n_found, 1);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

/* Mounts are its own from here on; skips where that is not allowed. */
static void mount_image(void)
{
	static const char *const folders[] = { "mem", "mem/low", "mem/up", "mem/work", "image" };

	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		skip();
	for (size_t i = 0; i < sizeof(folders) / sizeof(*folders); i++) {
		assert_int_equal(mkdir(IN("%s/%s", top, folders[i]), 0755), 0);
		if (i == 0 && mount("mem", IN("%s/mem", top), "tmpfs", 0, NULL) < 0)
			skip();
	}
	if (mount("image", IN("%s/image", top), "overlay", 0,
		  IN("lowerdir=%s/mem/low,upperdir=%s/mem/up,workdir=%s/mem/work", top, top, top)) <
	    0)
		skip();
}

static void a_run_directory_in_the_image_is_known(void **state)
{
	(void)state;
	mount_image();
	assert_true(file_is_in_image(IN("%s/image", top), IN("%s/image/run/railmate", top)));
	assert_int_equal(mkdir(IN("%s/image/run", top), 0755), 0);
	assert_int_equal(mount("host", IN("%s/image/run", top), "tmpfs", 0, NULL), 0);
	assert_false(file_is_in_image(IN("%s/image", top), IN("%s/image/run/railmate", top)));
	assert_false(file_is_in_image(IN("%s/mem", top), IN("%s/mem/up", top))); /* no overlay */
	umount2(IN("%s/image/run", top), MNT_DETACH);
	umount2(IN("%s/image", top), MNT_DETACH);
	umount2(IN("%s/mem", top), MNT_DETACH);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(makes_a_directory_once_and_below_a_run_directory_of_its_own),
		TEST(what_is_there_can_be_read_by_anybody),
		TEST(files_are_replaced_whole_and_removed),
		TEST(a_file_of_the_node_is_linked_and_follows_when_it_is_replaced),
		TEST(a_file_of_the_node_that_is_gone_is_an_error_and_the_others_are_written),
		TEST(a_link_among_the_nodes_files_is_not_followed),
		TEST(a_link_in_the_place_of_the_directory_is_refused),
		TEST(a_link_in_the_place_of_a_file_is_replaced),
		TEST(a_folder_in_the_place_of_a_file_is_told),
		TEST(a_directory_has_a_place_to_mount_the_probe_over),
		TEST(a_run_directory_that_is_none_is_told),
		TEST(a_file_that_does_not_fit_leaves_the_old_one),
		TEST(directories_go_when_their_vf_is_not_needed),
		TEST(what_is_not_ours_stays),
		TEST(every_file_of_a_name_is_read),
		TEST(links_and_folders_are_no_records),
		TEST(a_link_in_the_place_of_a_directory_is_not_followed),
		TEST(a_run_directory_that_is_none_has_no_records),
		TEST(what_cannot_be_opened_is_not_taken_for_absent),
		TEST(a_run_directory_that_is_not_there_is_nothing_to_sweep),
		TEST(a_run_directory_in_the_image_is_known),
		TEST(a_read_only_run_directory_is_told), /* the last one: its mounts are its own
							  * from here on
							  */
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
