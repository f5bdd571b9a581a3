/* The ledger on its way to the disk: who waits for it, disks that fail, hang or come back. */
#include "unit/tracker/tracking.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

static struct {
	unsigned times;
	size_t on_disk; /* holds in the file when it was told */
} saved;

static void on_saved(void *arg)
{
	struct ledger *l = NULL;

	(void)arg;
	saved.times++;
	if (ledger_file_peek(folder, &l, NULL) == 0)
		saved.on_disk = ledger_holds(l);
	ledger_free(l);
}

static void begin_on_disk(void *arg)
{
	struct ledger_file *file = NULL;
	struct ledger *ledger = NULL;
	char *note = NULL;

	(void)arg;
	end_tracker(NULL);
	memset(&saved, 0, sizeof(saved));
	assert_int_equal(ledger_file_open(folder, 0, &file, NULL), 0);
	assert_int_equal(ledger_file_load(file, &ledger, &note, NULL), 0);
	assert_null(note);
	make_tracker(ledger ? ledger : ledger_new(), file);
}

static void save_one(void *arg)
{
	(void)arg;
	give(0, "p1", NULL);
	tracker_save(tracker, on_saved, NULL);
	assert_int_equal(saved.times, 0); /* never before the return */
}

static bool is_saved(void)
{
	return saved.times == 1;
}

static void who_waits_is_told_when_it_is_on_disk(void **state)
{
	(void)state;
	on_rpc(begin_on_disk, NULL);
	on_rpc(save_one, NULL);
	wait_until(is_saved);
	assert_int_equal(saved.on_disk, 1);
}

static void in_memory_who_waits_is_told_all_the_same(void **state)
{
	(void)state;
	memset(&saved, 0, sizeof(saved));
	on_rpc(save_one, NULL);
	wait_until(is_saved);
}

static void save_many(void *arg)
{
	(void)arg;
	for (size_t i = 0; i < N_VFS; i++) {
		give(i, "p1", NULL);
		tracker_save(tracker, on_saved, NULL);
	}
	end_tracker(NULL);
	assert_int_equal(saved.times, N_VFS);
	assert_int_equal(saved.on_disk, N_VFS);
}

static void the_end_stores_what_is_not_stored_yet_and_tells_everybody(void **state)
{
	(void)state;
	on_rpc(begin_on_disk, NULL);
	on_rpc(save_many, NULL);
}

static void limit_files(rlim_t bytes)
{
	struct rlimit limit;

	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	limit.rlim_cur = bytes;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static bool is_stored(void)
{
	return !tracker->failing && holds_status(tracker->holds).stored;
}

static void a_full_disk_is_told_once_and_tried_again(void **state)
{
	(void)state;
	on_rpc(begin_on_disk, NULL);
	limit_files(16);
	on_rpc(save_one, NULL);
	wait_until(is_saved); /* specs and map.json say it, too */
	usleep(50000);	      /* more tries, no more notes */
	limit_files(RLIM_INFINITY);
	assert_int_equal(bad_notes, 1);
	wait_until(is_stored);
	assert_int_equal(bad_notes, 1);
	assert_string_equal(last_note, "the ledger is on disk again");
	on_rpc(end_tracker, NULL);
	on_rpc(begin_on_disk, NULL);
	assert_non_null(hold_of(0));
}

static void a_restart_knows_what_was_held(void **state)
{
	(void)state;
	on_rpc(begin_on_disk, NULL);
	on_rpc(save_one, NULL);
	on_rpc(begin_on_disk, NULL);
	assert_string_equal(hold_of(0)->owner.pod, "p1");
	assert_string_equal(hold_of(0)->netdev, "vf0");
}

/* --- a disk that hangs --- */

/* A store that never ends. */
static void hang(void *arg)
{
	(void)arg;
	give(0, "p1", NULL);
	tracker->store = (struct store *)(void *)tracker; /* as if one were under way */
	tracker->store_since_ms = clock_mono_ms();
	tracker_save(tracker, on_saved, NULL);
}

static void unhang(void *arg)
{
	(void)arg;
	tracker->store = NULL;
	tracker_save(tracker, NULL, NULL);
}

static bool is_late(void)
{
	return tracker_disk(tracker).late;
}

static void hang_unnoticed(void *arg)
{
	(void)arg;
	tracker->store = (struct store *)(void *)tracker;
	tracker->store_since_ms = clock_mono_ms();
}

static void a_disk_that_hangs_is_told_whether_or_not_somebody_waits(void **state)
{
	struct tracker_disk disk;

	(void)state;
	on_rpc(begin_on_disk, NULL);
	on_rpc(hang_unnoticed, NULL);
	wait_until(is_late);
	on_rpc(unhang, NULL);
	wait_until(is_stored);
	disk = tracker_disk(tracker);
	assert_true(disk.has_file && disk.stored && !disk.failing && !disk.late);
}

static void a_disk_that_hangs_stops_no_container(void **state)
{
	int64_t began;

	(void)state;
	store_ms = 300;
	on_rpc(begin_on_disk, NULL);
	began = clock_mono_ms();
	on_rpc(hang, NULL);
	wait_until(is_saved);
	assert_true(clock_mono_ms() - began >= store_ms - 10);
	assert_int_equal(saved.on_disk, 0);
	assert_int_equal(bad_notes, 1);
	assert_non_null(strstr(last_note, "the disk has not stored the ledger in time"));
	on_rpc(unhang, NULL);
	wait_until(is_stored);
	assert_string_equal(last_note, "the ledger is on disk again");
}

/* --- a state directory that could not be opened --- */

static const char *state_dir(void)
{
	return arena_printf(arena, "%s/state", folder);
}

static void begin_without_directory(void *arg)
{
	FILE *f = fopen(state_dir(), "we"); /* a file in its place */

	(void)arg;
	assert_non_null(f);
	fclose(f);
	end_tracker(NULL);
	make_tracker(NULL, NULL);
	told(SAYS({ "p9", "mlx5_0" }));
	tracker->env.away_dir = state_dir();
	tracker_reopen_later(tracker);
	give(1, "p2", "u2");
}

static bool is_reopened(void)
{
	return tracker->file && holds_status(tracker->holds).stored;
}

static void a_state_directory_is_opened_when_it_can_be(void **state)
{
	struct ledger *l = NULL;

	(void)state;
	on_rpc(begin_without_directory, NULL);
	usleep(60000);
	assert_null(tracker->file);
	unlink(state_dir());
	wait_until(is_reopened);
	assert_int_equal(ledger_file_peek(state_dir(), &l, NULL), 0);
	assert_string_equal(ledger_find(l, vf[1])->owner.pod, "p2");
	ledger_free(l);
}

/* All at once: the thread that looks for it meanwhile would make one where none is. */
static void put_old_ledger(void)
{
	char elsewhere[PATH_MAX];
	struct ledger_file *file = NULL;
	struct strbuf text = STRBUF_INIT;
	struct ledger *l = ledger_new();
	const struct ledger_decision d = { .resource = "rdma/vf" };

	snprintf(elsewhere, sizeof(elsewhere), "%s/elsewhere", folder);
	for (size_t i = 0; i < 3; i++)
		ledger_put(l,
			   &(struct ledger_hold) { .vf = vf[i],
						   .resource = "rdma/vf",
						   .owner = { "default", "p1", "u1", "main", NULL },
						   .pending = i == 2,
						   .decision = ledger_decide(l, &d) });
	ledger_write(l, &text);
	assert_int_equal(ledger_file_open(elsewhere, 0, &file, NULL), 0);
	assert_int_equal(ledger_file_store(file, text.s, text.len, NULL), 0);
	ledger_file_close(file);
	assert_int_equal(renameat2(AT_FDCWD, elsewhere, AT_FDCWD, state_dir(), RENAME_EXCHANGE), 0);
	strbuf_done(&text);
	ledger_free(l);
}

static void expect_what_came_back(void *arg)
{
	(void)arg;
	assert_string_equal(hold_of(0)->owner.uid, "u1");
	assert_string_equal(hold_of(1)->owner.pod, "p2");
	assert_null(hold_of(2)); /* no container had started with it */
}

/* It was decided before we started: what was decided since counts, what we did not know is known
 * again. */
static void what_a_ledger_says_that_comes_back_is_older_than_what_was_decided_since(void **state)
{
	(void)state;
	on_rpc(begin_without_directory, NULL);
	put_old_ledger();
	wait_until(is_reopened);
	on_rpc(expect_what_came_back, NULL);
}

/* What we hold has been stored by then, in memory. */
static void a_ledger_that_comes_back_later_says_the_same(void **state)
{
	(void)state;
	on_rpc(begin_without_directory, NULL);
	usleep(60000);
	put_old_ledger();
	wait_until(is_reopened);
	on_rpc(expect_what_came_back, NULL);
}

/* One that takes its time to be read. */
static void put_slow_ledger(void)
{
	FILE *f;

	assert_int_equal(mkdir(state_dir(), 0700), 0);
	f = fopen(arena_printf(arena, "%s/ledger.json", state_dir()), "we");
	assert_non_null(f);
	fputs("{\"version\": 1, \"holds\": [0", f);
	for (size_t i = 0; i < 500000; i++)
		fputs(", 0", f);
	fputs("]}", f);
	fclose(f);
}

static void begin_to_open(void *arg)
{
	(void)arg;
	end_tracker(NULL);
	make_tracker(NULL, NULL);
	tracker->pace.retry_ms = 0;
	tracker->env.away_dir = state_dir();
	tracker_reopen_later(tracker);
}

/* Nor does the thread that opens it use anything of those that are gone. */
static void the_end_does_not_wait_for_a_state_directory(void **state)
{
	(void)state;
	put_slow_ledger();
	on_rpc(begin_to_open, NULL);
	usleep(2000);
	on_rpc(end_tracker, NULL);
	rpc_stop(rpc);
	usleep(500000); /* it ends meanwhile */
	assert_int_equal(rpc_start(&rpc, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(who_waits_is_told_when_it_is_on_disk),
		TEST(in_memory_who_waits_is_told_all_the_same),
		TEST(the_end_stores_what_is_not_stored_yet_and_tells_everybody),
		TEST(a_full_disk_is_told_once_and_tried_again),
		TEST(a_restart_knows_what_was_held),
		TEST(a_disk_that_hangs_stops_no_container),
		TEST(a_disk_that_hangs_is_told_whether_or_not_somebody_waits),
		TEST(a_state_directory_is_opened_when_it_can_be),
		TEST(what_a_ledger_says_that_comes_back_is_older_than_what_was_decided_since),
		TEST(a_ledger_that_comes_back_later_says_the_same),
		TEST(the_end_does_not_wait_for_a_state_directory),
	};

	return cmocka_run_group_tests(tests, start_rpc, stop_rpc);
}
