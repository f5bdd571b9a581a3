/* The data direct functions that libmlx5 names against those of the VPD, on a machine like GB300.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"
#include "doctor/doctor.h"
#include "diagnosis/diagnosis.h"
#include "facts/facts.h"
#include "facts/gather.h"
#include "hw/inventory.h"
#include "support/fixture.h"
#include "topo/topo.h"

/* As the VPD has it. */
#define OF_0  "mlx5_0=/devices/pci0009:00/0009:00:00.0/0009:03:00.0 "
#define OF_1  "mlx5_1=/devices/pci0008:00/0008:00:00.0/0008:03:00.0 "
#define OF_2  "mlx5_2=/devices/pci0019:00/0019:00:00.0/0019:03:00.0 "
#define OF_3  "mlx5_3=/devices/pci0018:00/0018:00:00.0/0018:03:00.0 "
#define NIC_1 "0002:03:00.0"

struct machine {
	struct sysroot *root;
	struct hw_inventory *inv;
	struct topo *topo;
	struct facts *facts;
};

static struct machine *machine_new(const char *name)
{
	struct machine *m = xcalloc(1, sizeof(*m));
	_cleanup_free_ char *path = xasprintf(FIXTURES "/%s/host.tree", name);

	m->root = fixture_open(path);
	m->inv = fixture_discover(m->root);
	m->topo = topo_new(m->inv, NULL);
	m->facts = facts_gather(m->root, m->inv, m->topo, FACTS_OF_HERE);
	return m;
}

static void machine_free(struct machine **m)
{
	facts_free((*m)->facts);
	topo_free((*m)->topo);
	hw_inventory_free((*m)->inv);
	fixture_close((*m)->root);
	free(*m);
}
#define _cleanup_machine_ __attribute__((cleanup(machine_free)))

static void ask(struct machine *m, const char *answers, const char *library)
{
	assert_int_equal(setenv("FAKE_MLX5", answers, 1), 0);
	m->facts->direct = facts_ask_libmlx5(m->inv, FAKE_MLX5, library, m->facts->arena);
}

/* The only finding, if want is one's sentence or begins it; NULL: there is none. */
static void expect(struct machine *m, enum diagnosis_verdict verdict, const char *want)
{
	_cleanup_diagnosis_ struct diagnosis *r = NULL;
	const struct diagnosis_finding *f;

	assert_int_equal(doctor_run(m->facts, "data-direct", &r, NULL), 0);
	if (!want) {
		assert_int_equal(diagnosis_n(r), 0);
		return;
	}
	assert_int_equal(diagnosis_n(r), 1);
	f = diagnosis_at(r, 0);
	assert_int_equal(f->verdict, verdict);
	assert_string_equal(f->sentence, want);
	assert_string_equal(f->subject, verdict == DIAGNOSIS_PASS ? "host" : NIC_1);
}

static void libmlx5_and_vpd_are_compared(void **state)
{
	static const struct {
		const char *answers;
		enum diagnosis_verdict verdict;
		const char *sentence;
	} rows[] = {
		{ OF_0 OF_1 OF_2 OF_3, DIAGNOSIS_PASS,
		  "libmlx5 and the VPD pair 4 NICs with the same data direct functions." },
		{ OF_0 OF_2 OF_3 "mlx5_1=/devices/pci0009:00/0009:03:00.0", DIAGNOSIS_WARN,
		  "NIC 0002:03:00.0 (mlx5_1): libmlx5 names the data direct function 0009:03:00.0, its VPD 0008:03:00.0." },
		{ OF_0 OF_2 OF_3 "mlx5_1=none", DIAGNOSIS_WARN,
		  "NIC 0002:03:00.0 (mlx5_1): its VPD names the data direct function 0008:03:00.0, libmlx5 none." },
		{ OF_0 OF_2 OF_3 "mlx5_1=closed", DIAGNOSIS_UNKNOWN,
		  "NIC 0002:03:00.0 (mlx5_1): its RDMA device cannot be opened: Permission denied." },
		{ OF_0 OF_2 OF_3 "mlx5_1=broken", DIAGNOSIS_UNKNOWN,
		  "NIC 0002:03:00.0 (mlx5_1): libmlx5 cannot say its data direct function: Input/output error." },
		{ OF_0 OF_2 OF_3 "mlx5_1=/devices/no\x1bsense", DIAGNOSIS_UNKNOWN,
		  "NIC 0002:03:00.0 (mlx5_1): libmlx5 names '/devices/no?sense', which is not a PCI function." },
		{ OF_0 OF_2 OF_3, DIAGNOSIS_UNKNOWN,
		  "NIC 0002:03:00.0 (mlx5_1): it has no RDMA device here." },
	};
	_cleanup_machine_ struct machine *m = machine_new("gb300-like");

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		ask(m, rows[i].answers, FAKE_MLX5);
		expect(m, rows[i].verdict, rows[i].sentence);
	}
}

/* The VPD of 0002:03:00.0 is of no board that is there. */
static void what_only_libmlx5_knows_is_said(void **state)
{
	_cleanup_machine_ struct machine *m = machine_new("gb300-like");

	(void)state;
	for (size_t i = 0; i < m->inv->n_card; i++) {
		if (m->inv->card[i].pci == hw_find_pci(m->inv, (struct bdf) { 2, 3, 0, 0 }))
			m->inv->card[i].direct = -1;
	}
	ask(m, OF_0 OF_1 OF_2 OF_3, FAKE_MLX5);
	expect(m, DIAGNOSIS_WARN,
	       "NIC 0002:03:00.0 (mlx5_1): libmlx5 names the data direct function 0008:03:00.0, its VPD none.");
	ask(m, OF_0 OF_2 OF_3 "mlx5_1=none", FAKE_MLX5); /* both know of none */
	expect(m, DIAGNOSIS_PASS,
	       "libmlx5 and the VPD pair 4 NICs with the same data direct functions.");
}

static void without_the_libraries_there_is_nothing_to_say(void **state)
{
	_cleanup_machine_ struct machine *m = machine_new("gb300-like");
	_cleanup_machine_ struct machine *other = machine_new("hgx-b300");

	(void)state;
	expect(m, DIAGNOSIS_PASS, NULL); /* a captured machine is not asked */
	ask(m, OF_0, "/nowhere/libmlx5.so.1");
	expect(m, DIAGNOSIS_PASS, NULL);
	ask(m, OF_0, FAKE_MLX5_OLD);
	expect(m, DIAGNOSIS_PASS, NULL);
	ask(other, OF_0, FAKE_MLX5); /* no Data Direct: nothing is loaded */
	expect(other, DIAGNOSIS_PASS, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(libmlx5_and_vpd_are_compared),
		cmocka_unit_test(what_only_libmlx5_knows_is_said),
		cmocka_unit_test(without_the_libraries_there_is_nothing_to_say),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
