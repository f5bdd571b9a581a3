#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "ledger/file.h"
#include "unit/ledger/sample.h"
#include "support/fixture.h"

static char *folder; /* of the running test */

static int set_up(void **state)
{
	(void)state;
	folder = fixture_folder();
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	fixture_remove_tree(folder);
	free(folder);
	return 0;
}

static char *path_of(const char *name)
{
	return xasprintf("%s/%s", folder, name);
}

static struct ledger_file *open_file(void)
{
	struct ledger_file *f = NULL;
	struct err err = { 0 };

	assert_int_equal(ledger_file_open(folder, 0, &f, &err), 0);
	return f;
}

static void write_file(const char *name, const char *text, size_t len)
{
	_cleanup_free_ char *path = path_of(name);
	_cleanup_close_ int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_true(fd >= 0 && write(fd, text, len) == (ssize_t)len);
}

static void store(struct ledger_file *f, const struct ledger *l)
{
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;
	struct err err = { 0 };

	ledger_write(l, &text);
	assert_int_equal(ledger_file_store(f, text.s, text.len, &err), 0);
}

#define NO_LEDGER SIZE_MAX

/* How many holds the file has; the note goes to *ret_note. */
static size_t load(struct ledger_file *f, char **ret_note)
{
	struct ledger *l = NULL;
	struct err err = { 0 };
	size_t n;

	assert_int_equal(ledger_file_load(f, &l, ret_note, &err), 0);
	n = l ? ledger_holds(l) : NO_LEDGER;
	ledger_free(l);
	return n;
}

static bool exists(const char *name)
{
	_cleanup_free_ char *path = path_of(name);
	struct stat st;

	return lstat(path, &st) == 0;
}

/* --- what is there when we start --- */

static void a_missing_file_is_no_ledger(void **state)
{
	struct ledger_file *f = open_file();
	char *note = NULL;

	(void)state;
	assert_int_equal(load(f, &note), NO_LEDGER);
	assert_null(note);
	ledger_file_close(f);
}

static void what_was_stored_is_loaded_and_seen_without_the_lock(void **state)
{
	struct ledger *l = sample_ledger(), *seen = NULL;
	struct ledger_file *f = open_file();
	struct err err = { 0 };
	char *note = NULL;

	(void)state;
	assert_int_equal(ledger_file_peek(folder, &seen, &err), -ENOENT);
	store(f, l);
	assert_int_equal(load(f, &note), 2);
	assert_null(note);
	assert_int_equal(ledger_file_peek(folder, &seen, &err), 0);
	assert_int_equal(ledger_holds(seen), 2);
	ledger_free(seen);
	ledger_free(l);
	ledger_file_close(f);
}

static void a_file_torn_at_any_byte_is_set_aside(void **state)
{
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;
	struct ledger *l = sample_ledger();
	struct ledger_file *f = open_file();

	(void)state;
	ledger_write(l, &text);
	for (size_t len = 0; len < text.len; len++) {
		_cleanup_free_ char *note = NULL;

		write_file("ledger.json", text.s, len);
		assert_int_equal(load(f, &note), NO_LEDGER);
		assert_non_null(strstr(note, "it was set aside as ledger.json.bad-"));
		assert_false(exists("ledger.json"));
	}
	ledger_free(l);
	ledger_file_close(f);
}

static void a_later_version_is_set_aside_under_a_name_that_says_so(void **state)
{
	static const char text[] = "{\"railmate\":\"ledger\",\"version\":2}\n";
	_cleanup_free_ char *note = NULL, *name = NULL;
	struct ledger_file *f = open_file();

	(void)state;
	write_file("ledger.json", text, strlen(text));
	assert_int_equal(load(f, &note), NO_LEDGER);
	assert_non_null(strstr(note, "is a ledger of version 2"));
	name = xstrdup(strstr(note, "ledger.json.later-"));
	*strchr(name, ' ') = '\0';
	assert_true(exists(name));
	ledger_file_close(f);
}

static void what_is_no_file_is_set_aside(void **state)
{
	_cleanup_free_ char *path = path_of("ledger.json");
	struct ledger_file *f = open_file();

	(void)state;
	for (int kind = 0; kind < 3; kind++) {
		_cleanup_free_ char *note = NULL;

		assert_int_equal(kind == 0   ? mkdir(path, 0700)
				 : kind == 1 ? mkfifo(path, 0600)
					     : symlink("/etc/passwd", path),
				 0);
		assert_int_equal(load(f, &note), NO_LEDGER);
		assert_non_null(strstr(note, "is not a regular file"));
		assert_false(exists("ledger.json"));
	}
	ledger_file_close(f);
}

static size_t count_set_aside(void)
{
	DIR *dir = opendir(folder);
	const struct dirent *e;
	size_t n = 0;

	assert_non_null(dir);
	while ((e = readdir(dir)))
		n += !strncmp(e->d_name, "ledger.json.", strlen("ledger.json."));
	closedir(dir);
	return n;
}

static void of_the_files_set_aside_the_newest_four_are_kept(void **state)
{
	struct ledger_file *f = open_file();
	_cleanup_free_ char *note = NULL;

	(void)state;
	write_file("ledger.json.bad-1600000001", "1", 1);
	write_file("ledger.json.later-1600000002", "2", 1);
	write_file("ledger.json.bad-1600000003", "3", 1);
	write_file("ledger.json.bad-1600000004", "4", 1);
	write_file("ledger.json.bad-1600000005", "5", 1);
	write_file("ledger.json", "{", 1);
	assert_int_equal(load(f, &note), NO_LEDGER);
	assert_int_equal(count_set_aside(), 4);
	assert_false(exists("ledger.json.bad-1600000001"));
	assert_false(exists("ledger.json.later-1600000002"));
	assert_true(exists("ledger.json.bad-1600000003"));
	ledger_file_close(f);
}

static void a_file_that_is_too_large_is_set_aside_unread(void **state)
{
	_cleanup_free_ char *path = path_of("ledger.json"), *note = NULL;
	struct ledger_file *f = open_file();

	(void)state;
	write_file("ledger.json", "", 0);
	assert_int_equal(truncate(path, (off_t)LEDGER_BYTES_MAX + 1), 0);
	assert_int_equal(load(f, &note), NO_LEDGER);
	assert_non_null(strstr(note, "is larger than 64 MiB"));
	ledger_file_close(f);
}

/* --- one at a time --- */

static void the_folder_is_made_and_a_file_in_its_place_is_named(void **state)
{
	_cleanup_free_ char *deep = path_of("state"), *plain = path_of("plain");
	struct ledger_file *f = NULL;
	struct err err = { 0 };
	struct stat st;

	(void)state;
	assert_int_equal(ledger_file_open(deep, 0, &f, &err), 0);
	assert_int_equal(stat(deep, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
	ledger_file_close(f);
	write_file("plain", "x", 1);
	assert_int_equal(ledger_file_open(plain, 0, &f, &err), -ENOTDIR);
	assert_non_null(strstr(err.msg, plain));
}

static void a_second_one_waits_and_is_refused_with_the_pid_of_the_first(void **state)
{
	struct ledger_file *first = open_file(), *second = NULL;
	struct timespec before, after;
	struct err err = { 0 };
	char pid[32];

	(void)state;
	clock_gettime(CLOCK_MONOTONIC, &before);
	assert_int_equal(ledger_file_open(folder, 120, &second, &err), -EBUSY);
	clock_gettime(CLOCK_MONOTONIC, &after);
	assert_true((after.tv_sec - before.tv_sec) * 1000 +
			    (after.tv_nsec - before.tv_nsec) / 1000000 >=
		    100);
	snprintf(pid, sizeof(pid), "pid %d", (int)getpid());
	assert_non_null(strstr(err.msg, pid));
	assert_non_null(strstr(err.msg, folder));
	ledger_file_close(first);
	assert_int_equal(ledger_file_open(folder, 0, &second, &err), 0);
	ledger_file_close(second);
}

static void a_holder_on_another_host_is_named_with_it_and_one_without_a_name_without(void **state)
{
	struct ledger_file *first = open_file(), *second = NULL;
	struct err err = { 0 };

	(void)state;
	write_file("lock", "1 railmate-x2vbq\n", 17);
	assert_int_equal(ledger_file_open(folder, 0, &second, &err), -EBUSY);
	assert_non_null(strstr(err.msg, "pid 1 on railmate-x2vbq"));
	write_file("lock", "", 0);
	assert_int_equal(ledger_file_open(folder, 0, &second, &err), -EBUSY);
	assert_non_null(strstr(err.msg, "is in use by another railmated"));
	ledger_file_close(first);
}

static void *close_soon(void *arg)
{
	nanosleep(&(struct timespec) { .tv_nsec = 60000000 }, NULL);
	ledger_file_close(arg);
	return NULL;
}

static void a_second_one_gets_the_lock_when_the_first_one_leaves(void **state)
{
	struct ledger_file *first = open_file(), *second = NULL;
	struct err err = { 0 };
	pthread_t thread;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, close_soon, first), 0);
	assert_int_equal(ledger_file_open(folder, 20000, &second, &err), 0);
	pthread_join(thread, NULL);
	ledger_file_close(second);
}

/* --- writing --- */

static void limit_files(rlim_t bytes)
{
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	limit.rlim_cur = bytes;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* A limit on the size of files ends a write half-way, as a full disk does. No ledger is better than
 * an old one. */
static void a_full_disk_leaves_no_ledger_and_no_rubbish(void **state)
{
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;
	struct ledger *l = sample_ledger();
	struct ledger_file *f = open_file();
	struct err err = { 0 };
	char *note = NULL;

	(void)state;
	store(f, l);
	ledger_drop(l, "0000:18:00.2");
	ledger_write(l, &text);
	signal(SIGXFSZ, SIG_IGN);
	limit_files(64);
	assert_int_equal(ledger_file_store(f, text.s, text.len, &err), -EFBIG);
	limit_files(RLIM_INFINITY);
	assert_non_null(strstr(err.msg, "ledger.json.tmp"));
	assert_false(exists("ledger.json.tmp"));
	assert_false(exists("ledger.json"));
	assert_int_equal(load(f, &note), NO_LEDGER);
	assert_null(note);
	store(f, l);
	assert_int_equal(load(f, &note), 1);
	ledger_free(l);
	ledger_file_close(f);
}

static void a_folder_that_is_gone_is_an_error_with_its_name(void **state)
{
	_cleanup_free_ char *deep = path_of("state"), *lock = path_of("state/lock");
	struct ledger_file *f = NULL;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(ledger_file_open(deep, 0, &f, &err), 0);
	unlink(lock);
	assert_int_equal(rmdir(deep), 0);
	assert_int_equal(ledger_file_store(f, "x", 1, &err), -ENOENT);
	assert_non_null(strstr(err.msg, deep));
	ledger_file_close(f);
}

/* Ledgers of 1, 2, … 40 holds, one after the other, for ever. The first is told. */
static void store_for_ever(struct ledger_file *f, int told_fd)
{
	for (;;) {
		struct ledger *l = ledger_new();

		for (int i = 0; i < 40; i++) {
			char vf[24];
			struct ledger_hold hold;

			snprintf(vf, sizeof(vf), "0000:18:%02x.0", (unsigned)i);
			hold = sample_hold(vf);
			ledger_put(l, &hold);
			store(f, l);
			if (told_fd >= 0)
				assert_int_equal(write(told_fd, "1", 1), 1);
			told_fd = -1;
		}
		ledger_free(l);
	}
}

/* So long after it began, or after its first ledger. */
static void kill_one(unsigned after_us, bool has_stored)
{
	struct timespec ts = { .tv_nsec = after_us * 1000L };
	int fds[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe(fds), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid)
		store_for_ever(open_file(), fds[1]);
	close(fds[1]);
	if (has_stored)
		assert_int_equal(read(fds[0], &byte, 1), 1);
	nanosleep(&ts, NULL);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	close(fds[0]);
}

static void a_daemon_killed_at_any_moment_leaves_a_whole_ledger(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 60; i++) {
		struct ledger_file *f;
		char *note = NULL;
		size_t n;

		kill_one(500 + i * 337, i % 2);
		f = open_file(); /* the lock went with the process */
		n = load(f, &note);
		assert_null(note);
		assert_true(n <= 40 || n == NO_LEDGER);
		if (i % 2)
			assert_int_not_equal(n, NO_LEDGER);
		ledger_file_close(f);
	}
}

/* --- the writer --- */

static sem_t told;
static int n_failed;

static void on_stored(void *arg, const struct err *err)
{
	(void)arg;
	n_failed += err != NULL;
	sem_post(&told);
}

/* One text more each time; the last one is not waited for. */
static void put_holds(struct ledger_writer *w, int n)
{
	struct ledger *l = ledger_new();

	sem_init(&told, 0, 0);
	n_failed = 0;
	for (int i = 0; i < n; i++) {
		struct strbuf text = STRBUF_INIT;
		char vf[24];
		struct ledger_hold hold;
		size_t len;

		snprintf(vf, sizeof(vf), "0000:%02x:00.0", (unsigned)i);
		hold = sample_hold(vf);
		ledger_put(l, &hold);
		ledger_write(l, &text);
		len = text.len;
		if (i)
			sem_wait(&told);
		ledger_writer_put(w, strbuf_steal(&text), len, on_stored, NULL);
	}
	ledger_free(l);
}

/* Of which one was not waited for: it was told by the end of the writer. */
static void assert_told_once(void)
{
	assert_int_equal(sem_trywait(&told), 0);
	assert_int_equal(sem_trywait(&told), -1);
	sem_destroy(&told);
}

static void each_text_is_told_of_once_and_is_on_disk(void **state)
{
	struct ledger_file *f = open_file();
	struct ledger_writer *w = ledger_writer_start(f);
	char *note = NULL;

	(void)state;
	put_holds(w, 50);
	ledger_writer_stop(w);
	assert_told_once();
	assert_int_equal(n_failed, 0);
	assert_int_equal(load(f, &note), 50);
	ledger_file_close(f);
}

static void a_store_that_fails_is_told(void **state)
{
	struct ledger_file *f = open_file();
	struct ledger_writer *w;

	(void)state;
	signal(SIGXFSZ, SIG_IGN);
	limit_files(16);
	w = ledger_writer_start(f);
	put_holds(w, 20);
	ledger_writer_stop(w);
	limit_files(RLIM_INFINITY);
	assert_told_once();
	assert_int_equal(n_failed, 20);
	ledger_file_close(f);
}

#define NO_SECCOMP 99

/* As a cgroup's limit of pids does it; for good, so in a process of its own. */
static void forbid_threads(void)
{
	struct sock_filter rules[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EAGAIN),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog filter = { ARRAY_LEN(rules), rules };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) < 0)
		_exit(NO_SECCOMP);
}

static void keep_sentence(void *arg, const struct err *err)
{
	strcpy(arg, err ? err->msg : "stored");
}

static void store_without_a_thread(void)
{
	struct ledger_file *f = open_file();
	char said[sizeof(((struct err *)NULL)->msg)] = "not told";
	struct ledger_writer *w;

	forbid_threads();
	w = ledger_writer_start(f);
	ledger_writer_put(w, strdup("x"), 1, keep_sentence, said);
	ledger_writer_stop(w);
	ledger_file_close(f);
	_exit(!str_starts(
		said, "start the thread that writes the ledger: Resource temporarily unavailable"));
}

static void a_thread_that_cannot_start_is_a_store_that_failed(void **state)
{
	pid_t child = fork();
	int status;

	(void)state;
	assert_true(child >= 0);
	if (child == 0)
		store_without_a_thread();
	assert_int_equal(waitpid(child, &status, 0), child);
	if (WEXITSTATUS(status) == NO_SECCOMP)
		skip(); /* an emulator has none */
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_missing_file_is_no_ledger, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_was_stored_is_loaded_and_seen_without_the_lock,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_file_torn_at_any_byte_is_set_aside, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(
			a_later_version_is_set_aside_under_a_name_that_says_so, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_is_no_file_is_set_aside, set_up, tear_down),
		cmocka_unit_test_setup_teardown(of_the_files_set_aside_the_newest_four_are_kept,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_file_that_is_too_large_is_set_aside_unread,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_folder_is_made_and_a_file_in_its_place_is_named,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			a_second_one_waits_and_is_refused_with_the_pid_of_the_first, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(
			a_holder_on_another_host_is_named_with_it_and_one_without_a_name_without,
			set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			a_second_one_gets_the_lock_when_the_first_one_leaves, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_full_disk_leaves_no_ledger_and_no_rubbish, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_folder_that_is_gone_is_an_error_with_its_name,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_daemon_killed_at_any_moment_leaves_a_whole_ledger,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(each_text_is_told_of_once_and_is_on_disk, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_thread_that_cannot_start_is_a_store_that_failed,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_store_that_fails_is_told, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
