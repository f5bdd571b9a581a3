/* The big machine of the figures: complete and in order. Its speed is tests/bench's business. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/str.h"
#include "discover/discover.h"
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

/* Every descriptor that may be had, one more each time: what is found is the whole bus, or an
 * error. */
static void a_scan_without_descriptors_fails_and_is_not_taken_for_an_empty_bus(void **state)
{
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;
	struct rlimit before, few;
	struct sysroot *root;
	unsigned failures = 0;
	bool found = false;
	int free_fd;

	(void)state;
	bigtree_write(1, 4, 1, &text);
	root = fixture_text(strbuf_str(&text));
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	free_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	close(free_fd);
	for (int more = 0; more < 12; more++) {
		struct hw_inventory *inv;
		struct err err = { 0 };
		int r;

		few = (struct rlimit) { (rlim_t)(free_fd + more), before.rlim_max };
		setrlimit(RLIMIT_NOFILE, &few);
		r = discover_host(root, NULL, 0, NULL, &inv, &err);
		setrlimit(RLIMIT_NOFILE, &before);
		failures += r < 0;
		if (r < 0)
			continue;
		assert_int_equal(inv->n_pci, 5 + 4 + 1);
		hw_inventory_free(inv);
		found = true;
	}
	assert_true(failures >= 2 && found);
	fixture_close(root);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_every_function_of_a_big_machine),
		cmocka_unit_test(
			a_scan_without_descriptors_fails_and_is_not_taken_for_an_empty_bus),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
