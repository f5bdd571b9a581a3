/* The probe's files, from the image onto the host. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "daemon/probefiles-internal.h"
#include "support/fixture.h"

static char *top;
static struct arena *a;
static struct strbuf lines;

static void remember(void *arg, enum log_level level, const char *line)
{
	(void)arg;
	strbuf_printf(&lines, "%s %s\n", level == LOG_LEVEL_WARN ? "WARN" : "", line);
}

static bool said(const char *words)
{
	bool ret = strstr(strbuf_str(&lines), words) != NULL;

	strbuf_done(&lines);
	lines = (struct strbuf)STRBUF_INIT;
	return ret;
}

static int set_up(void **state)
{
	(void)state;
	top = fixture_folder();
	a = arena_new(0);
	log_setup(LOG_LEVEL_DEBUG, remember, NULL);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	log_setup(LOG_LEVEL_INFO, NULL, NULL);
	said("");
	arena_free(a);
	fixture_remove_tree(top);
	free(top);
	return 0;
}

#define AT(below) arena_printf(a, "%s/%s", top, below)

static void put(const char *below, const char *text)
{
	FILE *f = fopen(AT(below), "we");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static const char *text_of(const char *below)
{
	char *text = arena_alloc(a, 256);
	FILE *f = fopen(AT(below), "re");

	if (!f)
		return "";
	text[fread(text, 1, 255, f)] = '\0';
	fclose(f);
	return text;
}

static ino_t inode_of(const char *below)
{
	struct stat st;

	assert_int_equal(stat(AT(below), &st), 0);
	return st.st_ino;
}

static void image(const char *program)
{
	mkdir(AT("image"), 0755);
	put("image/libc", "the C library");
	assert_true(symlink("../image/libc", AT("image/libc.so.6")) == 0 ||
		    access(AT("image/libc.so.6"), F_OK) == 0);
	put("image/railmate-probe", program);
}

static bool keep(void)
{
	_cleanup_free_ char *folder = probefiles_keep(AT("image"), AT("state"));

	assert_true(!folder || str_eq(folder, AT("state/probe")));
	return folder != NULL;
}

static void files_are_copied_for_everybody_to_execute(void **state)
{
	struct stat st;
	mode_t before = umask(077);

	(void)state;
	image("one");
	assert_true(keep());
	umask(before);
	assert_true(said("was put where containers get it from"));
	assert_string_equal(text_of("state/probe/railmate-probe"), "one");
	assert_int_equal(lstat(AT("state/probe/libc.so.6"), &st), 0); /* no link: the file */
	assert_int_equal(st.st_mode, S_IFREG | 0755);
	assert_int_equal(stat(AT("state/probe"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0755);
	assert_int_equal(stat(AT("state"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
}

static void only_a_file_that_differs_is_replaced(void **state)
{
	ino_t library, program;

	(void)state;
	image("one");
	assert_true(keep());
	library = inode_of("state/probe/libc.so.6");
	program = inode_of("state/probe/railmate-probe");
	said("");
	assert_true(keep());
	assert_false(said("probe"));
	assert_int_equal(inode_of("state/probe/railmate-probe"), program);
	image("two");
	assert_true(keep());
	assert_string_equal(text_of("state/probe/railmate-probe"), "two");
	assert_int_equal(inode_of("state/probe/libc.so.6"), library);
	assert_int_equal(chmod(AT("state/probe/railmate-probe"), 0600), 0);
	assert_true(keep());
	assert_int_equal(access(AT("state/probe/railmate-probe"), X_OK), 0);
}

static void an_image_without_it_is_said_once_and_nothing_is_made(void **state)
{
	(void)state;
	assert_false(keep());
	assert_true(said("containers get no railmate-probe"));
	assert_int_equal(access(AT("state"), F_OK), -1);
	image("one");
	assert_null(probefiles_keep(AT("image"), NULL));
	assert_true(said("it needs a run directory and a state directory"));
	assert_null(probefiles_keep(AT("image"), "state"));
	assert_true(said("it needs a run directory and a state directory"));
	assert_null(probefiles_keep(NULL, AT("state")));
	assert_false(said("probe"));
}

/* The program that an earlier start put there is still one. */
static void a_folder_that_cannot_be_filled_is_a_warning(void **state)
{
	(void)state;
	image("one");
	assert_true(keep());
	image("two");
	assert_int_equal(mkdir(AT("state/probe/.railmate-probe.new"), 0755), 0);
	said("");
	assert_true(keep());
	assert_true(said("WARN"));
	assert_string_equal(text_of("state/probe/railmate-probe"), "one");
	assert_int_equal(unlink(AT("image/railmate-probe")), 0);
	assert_true(keep());
	assert_true(said("read railmate-probe of the image"));
	assert_int_equal(access(AT("state/probe/libc.so.6"), F_OK), 0); /* the old program's */
	assert_int_equal(unlink(AT("state/probe/railmate-probe")), 0);
	assert_true(keep());
	assert_int_equal(access(AT("state/probe/libc.so.6"), F_OK), -1);
	fixture_remove_tree(AT("state"));
	put("state", "");
	assert_true(keep());
	assert_true(said("Not a directory"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
		T(files_are_copied_for_everybody_to_execute),
		T(only_a_file_that_differs_is_replaced),
		T(an_image_without_it_is_said_once_and_nothing_is_made),
		T(a_folder_that_cannot_be_filled_is_a_warning),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
