/* The big machine of the figures: complete and in order. Its speed is tests/bench's business. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/str.h"
#include "hw/inventory.h"
#include "support/bigtree.h"
#include "support/fixture.h"

static void finds_every_function_of_a_big_machine(void **state)
{
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;
	struct hw_inventory *inv;
	struct sysroot *root;
	size_t vfs = 0;

	(void)state;
	bigtree_write(4, 127, 8, &text);
	root = fixture_text(strbuf_str(&text));
	inv = fixture_discover(root);
	assert_int_equal(inv->n_notes, 0);
	assert_int_equal(inv->n_gpu, 8);
	assert_int_equal(inv->n_rdma, 4 * 128);
	assert_int_equal(inv->n_pci, 4 * (4 + 128) + 8);
	for (size_t i = 0; i < inv->n_pci; i++) {
		const struct hw_pci *f = &inv->pci[i];

		if (!f->is_vf)
			continue;
		vfs++;
		assert_int_equal(f->vf_index, f->bdf.dev * 8 + f->bdf.fn - 1);
		assert_int_equal(f->numa, f->bdf.domain);
		assert_string_equal(f->driver, "mlx5_core");
		assert_true(hw_find_rdma(inv, (int)i) >= 0);
		assert_int_equal(inv->rdma[hw_find_rdma(inv, (int)i)].n_ports, 1);
		assert_int_equal(f->parent, inv->pci[f->physfn].parent);
	}
	assert_int_equal(vfs, 4 * 127);
	hw_inventory_free(inv);
	fixture_close(root);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_every_function_of_a_big_machine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
