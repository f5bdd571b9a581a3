/* Real inotify on real folders: the plugin directory as the kubelet treats it. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/mem.h"
#include "load/watch.h"
#include "load/watch-internal.h"

struct folder {
	char root[64], dir[96];
	struct watch_dir *w;
};

static const char *path_of(const struct folder *f, const char *name)
{
	static char path[256];

	snprintf(path, sizeof(path), "%s/%s", f->dir, name);
	return path;
}

static void touch(const struct folder *f, const char *name)
{
	int fd = open(path_of(f, name), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	close(fd);
}

static void write_to(const struct folder *f, const char *name)
{
	int fd = open(path_of(f, name), O_WRONLY | O_CLOEXEC);

	assert_int_equal(write(fd, "{}", 2), 2);
	close(fd);
}

static void make_socket(const struct folder *f, const char *name)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	memcpy(address.sun_path, path_of(f, name), strlen(path_of(f, name)) + 1);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	close(fd);
}

static void make_dir(const char *path)
{
	assert_int_equal(mkdir(path, 0700), 0);
}

/* Does the descriptor become readable because of something that matters? Events are queued before a
 * call returns. */
static bool changed(const struct folder *f)
{
	struct pollfd fd = { .fd = watch_dir_fd(f->w), .events = POLLIN };

	return poll(&fd, 1, 0) == 1 && watch_dir_drain(f->w);
}

static int setup(void **state)
{
	struct folder *f = xcalloc(1, sizeof(*f));

	snprintf(f->root, sizeof(f->root), "/tmp/railmate-watch-XXXXXX");
	assert_non_null(mkdtemp(f->root));
	snprintf(f->dir, sizeof(f->dir), "%s/kubelet/device-plugins", f->root);
	*state = f;
	return 0;
}

static void watch(struct folder *f)
{
	struct err err;

	if (watch_dir_open(f->dir, &f->w, &err) < 0)
		fail_msg("%s", err.msg);
}

static void make_all(struct folder *f)
{
	char path[96];

	snprintf(path, sizeof(path), "%s/kubelet", f->root);
	make_dir(path);
	make_dir(f->dir);
}

static int setup_existing(void **state)
{
	setup(state);
	make_all(*state);
	watch(*state);
	return 0;
}

static int teardown(void **state)
{
	struct folder *f = *state;
	char command[128];

	watch_dir_close(f->w);
	snprintf(command, sizeof(command), "rm -rf '%s'", f->root);
	assert_int_equal(system(command), 0);
	free(f);
	return 0;
}

static void quiet_until_something_happens(void **state)
{
	struct folder *f = *state;

	assert_false(changed(f));
	assert_false(watch_dir_drain(f->w));
}

static void socket_that_comes_and_goes_is_seen(void **state)
{
	struct folder *f = *state;

	make_socket(f, "kubelet.sock");
	assert_true(changed(f));
	assert_false(changed(f));
	unlink(path_of(f, "kubelet.sock"));
	assert_true(changed(f));
	assert_false(changed(f));
}

static void name_that_moves_in_or_out_is_seen(void **state)
{
	struct folder *f = *state;
	char outside[128];

	snprintf(outside, sizeof(outside), "%s/outside", f->root);
	touch(f, "inside");
	assert_true(changed(f));
	assert_int_equal(rename(path_of(f, "inside"), outside), 0);
	assert_true(changed(f));
	assert_int_equal(rename(outside, path_of(f, "inside")), 0);
	assert_true(changed(f));
}

static void the_kubelets_checkpoint_is_ignored(void **state)
{
	struct folder *f = *state;
	char temporary[256];

	touch(f, ".123456789");
	snprintf(temporary, sizeof(temporary), "%s", path_of(f, ".123456789"));
	assert_int_equal(rename(temporary, path_of(f, "kubelet_internal_checkpoint")), 0);
	assert_false(changed(f));
	touch(f, ".hidden");
	assert_true(changed(f));
}

static void names_are_judged_exactly(void **state)
{
	static const struct {
		const char *name;
		bool matters;
	} table[] = {
		{ ".1", false },
		{ ".0123456789", false },
		{ "kubelet_internal_checkpoint", false },
		{ ".1a", true },
		{ ".", true },
		{ ".a1", true },
		{ "123", true },
		{ "", true },
		{ "kubelet.sock", true },
		{ "kubelet_internal_checkpoint2", true },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(table); i++)
		if (dir_name_matters(table[i].name) != table[i].matters)
			fail_msg("'%s'", table[i].name);
}

static void folder_that_does_not_exist_yet_is_found_when_it_comes(void **state)
{
	struct folder *f = *state;
	char path[96];

	watch(f);
	assert_false(changed(f));
	snprintf(path, sizeof(path), "%s/other", f->root);
	make_dir(path);
	assert_false(changed(f));
	snprintf(path, sizeof(path), "%s/kubelet", f->root);
	make_dir(path);
	assert_false(changed(f)); /* one step nearer */
	make_dir(f->dir);
	assert_true(changed(f));
	make_socket(f, "kubelet.sock");
	assert_true(changed(f));
}

/* Both folders and the socket are there before the first event is looked at. */
static void folders_that_come_all_at_once_are_not_missed(void **state)
{
	struct folder *f = *state;

	watch(f);
	make_all(f);
	make_socket(f, "kubelet.sock");
	assert_true(changed(f));
	unlink(path_of(f, "kubelet.sock"));
	assert_true(changed(f));
}

static void folder_that_is_removed_and_made_again_is_followed(void **state)
{
	struct folder *f = *state;

	for (int i = 0; i < 5; i++) {
		assert_int_equal(rmdir(f->dir), 0);
		assert_true(changed(f));
		assert_false(changed(f));
		make_dir(f->dir);
		assert_true(changed(f));
		touch(f, "x");
		assert_true(changed(f));
		unlink(path_of(f, "x"));
		assert_true(changed(f));
	}
}

static void folder_that_is_replaced_between_two_looks_is_followed(void **state)
{
	struct folder *f = *state;
	char away[96];

	snprintf(away, sizeof(away), "%s/away", f->root);
	assert_int_equal(rename(f->dir, away), 0);
	make_dir(f->dir);
	assert_true(changed(f));
	touch(f, "x");
	assert_true(changed(f));
	snprintf(f->dir, sizeof(f->dir), "%s", away); /* the old one does not interest any more */
	touch(f, "y");
	assert_false(changed(f));
}

static void whole_tree_may_vanish(void **state)
{
	struct folder *f = *state;
	char path[96];

	snprintf(path, sizeof(path), "%s/kubelet", f->root);
	rmdir(f->dir);
	rmdir(path);
	assert_true(changed(f));
	make_all(f);
	assert_true(changed(f));
}

static void more_events_than_the_queue_holds_are_a_change(void **state)
{
	struct folder *f = *state;
	FILE *limit = fopen("/proc/sys/fs/inotify/max_queued_events", "re");
	char one[256], two[256];
	unsigned max;

	assert_non_null(limit);
	assert_int_equal(fscanf(limit, "%u", &max), 1);
	fclose(limit);
	if (max > 100000)
		skip();
	/* Names that do not matter by themselves. */
	touch(f, ".1");
	snprintf(one, sizeof(one), "%s", path_of(f, ".1"));
	snprintf(two, sizeof(two), "%s", path_of(f, ".2"));
	for (unsigned i = 0; i < max / 2 + 10; i++)
		assert_int_equal(i % 2 ? rename(two, one) : rename(one, two), 0);
	assert_true(changed(f));
	touch(f, "x");
	assert_true(changed(f));
}

static void a_file_in_place_of_the_folder_is_an_error(void **state)
{
	struct folder *f = *state;
	struct err err;

	touch(f, "file");
	strcat(f->dir, "/file");
	assert_int_equal(watch_dir_open(f->dir, &(struct watch_dir *) { NULL }, &err), -ENOTDIR);
	assert_non_null(strstr(err.msg, f->dir));
	*strrchr(f->dir, '/') = '\0';
}

static void trailing_slash_and_relative_path_are_fine(void **state)
{
	struct folder *f = *state;
	struct watch_dir *w;
	struct err err;
	char path[128];
	int here = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	snprintf(path, sizeof(path), "%s//", f->dir);
	assert_int_equal(watch_dir_open(path, &w, &err), 0);
	touch(f, "x");
	assert_true(watch_dir_drain(w));
	watch_dir_close(w);
	assert_int_equal(chdir(f->dir), 0);
	assert_int_equal(watch_dir_open("later", &w, &err), 0);
	make_dir("later");
	assert_true(watch_dir_drain(w));
	watch_dir_close(w);
	assert_int_equal(fchdir(here), 0);
	close(here);
}

static void close_of_nothing_is_fine(void **state)
{
	(void)state;
	watch_dir_close(NULL);
}

#define EXISTING(test) cmocka_unit_test_setup_teardown(test, setup_existing, teardown)
#define MISSING(test)  cmocka_unit_test_setup_teardown(test, setup, teardown)

static void a_file_that_was_written_in_place_is_seen_where_files_are_read(void **state)
{
	struct folder *f = *state;
	struct watch_dir *kubelet = f->w;

	assert_int_equal(watch_dir_open_files(f->dir, &f->w, NULL), 0);
	touch(f, "config.json");
	assert_true(changed(f));
	assert_true(watch_dir_drain(kubelet));
	write_to(f, "config.json");
	assert_true(changed(f));
	assert_false(watch_dir_drain(kubelet));
	touch(f, ".123");
	assert_true(changed(f));
	watch_dir_close(kubelet);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		EXISTING(quiet_until_something_happens),
		EXISTING(socket_that_comes_and_goes_is_seen),
		EXISTING(name_that_moves_in_or_out_is_seen),
		EXISTING(the_kubelets_checkpoint_is_ignored),
		cmocka_unit_test(names_are_judged_exactly),
		MISSING(folder_that_does_not_exist_yet_is_found_when_it_comes),
		MISSING(folders_that_come_all_at_once_are_not_missed),
		EXISTING(folder_that_is_removed_and_made_again_is_followed),
		EXISTING(folder_that_is_replaced_between_two_looks_is_followed),
		EXISTING(whole_tree_may_vanish),
		EXISTING(more_events_than_the_queue_holds_are_a_change),
		EXISTING(a_file_in_place_of_the_folder_is_an_error),
		EXISTING(a_file_that_was_written_in_place_is_seen_where_files_are_read),
		EXISTING(trailing_slash_and_relative_path_are_fine),
		cmocka_unit_test(close_of_nothing_is_fine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
