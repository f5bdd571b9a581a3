#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/mem.h"

static void memory_is_zeroed_aligned_and_apart(void **state)
{
	_cleanup_arena_ struct arena *a = arena_new(16);
	unsigned char *before = NULL;

	(void)state;
	for (size_t size = 1; size < 5000; size += 37) {
		unsigned char *p = arena_alloc(a, size);

		assert_int_equal((uintptr_t)p % _Alignof(max_align_t), 0);
		for (size_t i = 0; i < size; i++)
			assert_int_equal(p[i], 0);
		memset(p, 0xaa, size);
		if (before)
			assert_int_equal(before[0], 0xaa);
		before = p;
	}
}

static void older_blocks_stay_while_it_grows(void **state)
{
	_cleanup_arena_ struct arena *a = arena_new(0);
	char *first = arena_strdup(a, "first");

	(void)state;
	for (int i = 0; i < 10000; i++)
		arena_printf(a, "string number %d", i);
	assert_string_equal(first, "first");
	assert_true(arena_used(a) >= 10000 * strlen("string number 1"));
}

static void copies_are_the_arenas_own(void **state)
{
	_cleanup_arena_ struct arena *a = arena_new(64);
	char text[] = "abc";
	char *s = arena_strdup(a, text), *c = arena_copy(a, text, 2);

	(void)state;
	text[0] = 'x';
	assert_string_equal(s, "abc");
	assert_memory_equal(c, "ab", 2);
	assert_null(arena_strdup(a, NULL));
	assert_non_null(arena_copy(a, NULL, 0));
	assert_non_null(arena_alloc(a, 0));
	assert_string_equal(arena_printf(a, "%s-%d", s, 7), "abc-7");
}

static void printf_takes_any_length(void **state)
{
	_cleanup_arena_ struct arena *a = arena_new(64);
	char word[600];

	(void)state;
	memset(word, 'x', sizeof(word));
	for (int len = 0; len < (int)sizeof(word); len++) {
		const char *s = arena_printf(a, "%.*s>", len, word);

		assert_int_equal(strlen(s), len + 1);
		assert_int_equal(s[len], '>');
	}
}

static void free_takes_null(void **state)
{
	struct arena *none = NULL;

	(void)state;
	arena_free(NULL);
	arena_freep(&none);
}

/* In a child: an abort is what is expected. */
static void assert_aborts(size_t n, size_t size)
{
	int status = 0;
	pid_t pid = fork();

	if (!pid) {
		struct arena *a = arena_new(16);

		signal(SIGABRT, SIG_DFL);
		arena_array(a, n, size);
		_exit(0);
	}
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

static void an_array_too_large_aborts(void **state)
{
	(void)state;
	assert_aborts(SIZE_MAX / 8, 16);
	assert_aborts(SIZE_MAX, 1);
	assert_aborts(1, SIZE_MAX);
}

static void grown_arrays_keep_their_content(void **state)
{
	size_t cap = 0;
	int *p = NULL;

	(void)state;
	for (size_t i = 0; i < 1000; i++) {
		p = xgrow(p, &cap, i + 1, sizeof(*p));
		assert_true(cap >= i + 1);
		p[i] = (int)i;
	}
	for (size_t i = 0; i < 1000; i++)
		assert_int_equal(p[i], i);
	freep(&p);
}

static void steal_leaves_null(void **state)
{
	char *s = xstrdup("x");
	_cleanup_free_ char *t = STEAL(s);

	(void)state;
	assert_null(s);
	assert_string_equal(t, "x");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_is_zeroed_aligned_and_apart),
		cmocka_unit_test(older_blocks_stay_while_it_grows),
		cmocka_unit_test(copies_are_the_arenas_own),
		cmocka_unit_test(printf_takes_any_length),
		cmocka_unit_test(free_takes_null),
		cmocka_unit_test(an_array_too_large_aborts),
		cmocka_unit_test(grown_arrays_keep_their_content),
		cmocka_unit_test(steal_leaves_null),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
