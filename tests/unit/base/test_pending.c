#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/pending.h"

static void a_callback_finds_its_owner_once(void **state)
{
	struct pending *slot = NULL, *asked;
	int owner;

	(void)state;
	asked = pending_new(&owner, &slot);
	assert_ptr_equal(slot, asked);
	assert_ptr_equal(pending_end(asked), &owner);
	assert_null(slot);
}

static void after_a_cancel_it_finds_nobody(void **state)
{
	struct pending *slot = NULL, *asked;
	int owner;

	(void)state;
	asked = pending_new(&owner, &slot);
	pending_cancel(&slot);
	assert_null(slot);
	pending_cancel(&slot);
	assert_null(pending_end(asked));
}

static void the_slot_is_for_the_next_question(void **state)
{
	struct pending *slot = NULL, *first, *second;
	int owner;

	(void)state;
	first = pending_new(&owner, &slot);
	pending_cancel(&slot);
	second = pending_new(&owner, &slot);
	assert_null(pending_end(first));
	assert_ptr_equal(slot, second);
	assert_ptr_equal(pending_end(second), &owner);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_callback_finds_its_owner_once),
		cmocka_unit_test(after_a_cancel_it_finds_nobody),
		cmocka_unit_test(the_slot_is_for_the_next_question),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
