/* The rate that is expected of a path, from folders that are a container's /sys. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/mem.h"
#include "found.h"
#include "railmate-probe/expect.h"
#include "support/fixture.h"
#include "railmate-probe/told.h"

/* clang-format off */
#define FUNCTION(at, bdf, class, gts, lanes, can_gts, can_lanes)                                   \
	"l sys/bus/pci/devices/" bdf " -> ../../../devices/" at bdf "\n"                            \
	"f sys/devices/" at bdf "/class = " class "\\n\n"                                          \
	"f sys/devices/" at bdf "/current_link_speed = " gts "\\n\n"                               \
	"f sys/devices/" at bdf "/current_link_width = " lanes "\\n\n"                             \
	"f sys/devices/" at bdf "/max_link_speed = " can_gts "\\n\n"                               \
	"f sys/devices/" at bdf "/max_link_width = " can_lanes "\\n\n"
#define VF(at, bdf, pf)                                                                            \
	"l sys/bus/pci/devices/" bdf " -> ../../../devices/" at bdf "\n"                            \
	"l sys/devices/" at bdf "/physfn -> ../" pf "\n"                                            \
	"f sys/devices/" at bdf "/current_link_speed = Unknown\\n\n"                               \
	"f sys/devices/" at bdf "/current_link_width = 0\\n\n"

#define RP   "pci0000:10/0000:10:01.0/"
#define UP   RP "0000:11:00.0/"
#define NIC  UP "0000:12:00.0/"
#define GPU  UP "0000:12:01.0/"
#define FAR  "pci0000:80/0000:80:01.0/"
#define G4 "16.0 GT/s PCIe"
#define G5 "32.0 GT/s PCIe"
/* A switch below a root port of x16 16 GT/s, with a NIC and an idle GPU of x16 32 GT/s; another GPU below another root
 * port. */
static const char machine[] =
	FUNCTION("pci0000:10/", "0000:10:01.0", "0x060400", G4, "16", G5, "16")
	FUNCTION(RP, "0000:11:00.0", "0x060400", G4, "16", G5, "16")
	FUNCTION(UP, "0000:12:00.0", "0x060400", G5, "16", G5, "16")
	FUNCTION(NIC, "0000:13:00.0", "0x020000", G5, "16", G5, "16")
	VF(NIC, "0000:13:00.1", "0000:13:00.0")
	VF(NIC, "0000:13:00.2", "0000:13:00.0")
	FUNCTION(UP, "0000:12:01.0", "0x060400", "2.5 GT/s PCIe", "16", G5, "16")
	FUNCTION(GPU, "0000:14:00.0", "0x030200", "2.5 GT/s PCIe", "16", G5, "16")
	FUNCTION("pci0000:80/", "0000:80:01.0", "0x060400", "8.0 GT/s PCIe", "8", G5, "16")
	FUNCTION(FAR, "0000:81:00.0", "0x030200", "8.0 GT/s PCIe", "8", "8.0 GT/s PCIe", "16")
	"d sys/class/infiniband/soft0\n"
	"f sys/class/infiniband/hard0/node_desc = x\\n\n"
	"l sys/class/infiniband/hard0/device -> ../../../devices/" NIC "0000:13:00.1\n";
/* clang-format on */

#define LINK_G4 (16 * 16 * 128.0 / 130 * 57.88 / 62.96 * 256 / 280)
#define LINK_G5 (2 * LINK_G4)

static const struct told_vf vf = { .bdf = "0000:13:00.1", .hca = "hard0", .port = 1, .mbps = -1 };

struct told_machine {
	struct sysroot *root;
	struct arena *arena;
};

static struct told_machine open_machine(const char *text)
{
	return (struct told_machine) { fixture_text(text), arena_new(4096) };
}

static void close_machine(struct told_machine *m)
{
	fixture_close(m->root);
	arena_free(m->arena);
}

static void rate_of_a_link(void **state)
{
	static const struct {
		double gts;
		int lanes, mps;
		double low, high; /* published: PCIe 3.0 x8 52.9 (SIGCOMM 2018), NICs on the rest */
	} rows[] = {
		{ 2.5, 4, 128, 6, 6.5 },   { 5, 8, 256, 26.5, 27.5 },  { 8, 8, 256, 52.8, 53 },
		{ 8, 16, 256, 105, 107 },  { 16, 16, 256, 210, 213 },  { 32, 16, 256, 420, 426 },
		{ 32, 16, 128, 385, 395 }, { 32, 16, 4096, 455, 465 }, { 64, 16, 256, 880, 900 },
	};
	static const struct {
		double gts;
		int lanes, mps;
	} bad[] = { { 0, 16, 256 },   { NAN, 16, 256 }, { -8, 16, 256 }, { 1000, 16, 256 },
		    { 16, 0, 256 },   { 16, 63, 256 },	{ 16, 16, 0 },	 { 16, 16, 64 },
		    { 16, 16, 8192 }, { 16, -1, 256 } };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		double gbps = expect_pcie_gbps(rows[i].gts, rows[i].lanes, rows[i].mps);

		if (!(gbps >= rows[i].low && gbps <= rows[i].high))
			fail_msg("x%d %g GT/s, %d bytes: %g", rows[i].lanes, rows[i].gts,
				 rows[i].mps, gbps);
	}
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_true(isnan(expect_pcie_gbps(bad[i].gts, bad[i].lanes, bad[i].mps)));
}

static struct expectation loopback(struct told_machine *m, const struct told_vf *of, double port,
				   const char *gpu)
{
	return expect_of(m->root, of, port, gpu, of, port, gpu, m->arena);
}

static void narrowest_link_above_the_pf_limits(void **state)
{
	struct told_machine m = open_machine(machine);
	struct expectation e = loopback(&m, &vf, NAN, NULL);

	(void)state;
	assert_true(fabs(e.gbps - LINK_G4) < 0.1);
	assert_string_equal(e.limit,
			    "PCIe x16 16 GT/s of 0000:10:01.0, payload 256, which can x16 32 GT/s");
	close_machine(&m);
}

static void port_and_told_rate_limit_where_they_are_less(void **state)
{
	struct told_machine m = open_machine(machine);
	struct expectation e = loopback(&m, &vf, 196, NULL);
	struct told_vf slow = vf;

	(void)state;
	assert_true(fabs(e.gbps - 196) < 0.01);
	assert_string_equal(e.limit, "port 1 of hard0");
	slow.mbps = 25000;
	e = expect_of(m.root, &vf, 196, NULL, &slow, 196, NULL, m.arena);
	assert_true(fabs(e.gbps - 25) < 0.01);
	assert_string_equal(e.limit, "rate of 0000:13:00.1 that was told, 25 Gb/s");
	close_machine(&m);
}

static void ends_at_once_share_links_and_ports_but_no_rate_limit(void **state)
{
	struct told_machine m = open_machine(machine);
	const struct told_vf other = {
		.bdf = "0000:13:00.2", .hca = "hard1", .port = 1, .mbps = -1
	};
	const struct told_vf limited = {
		.bdf = "0000:13:00.2", .hca = "hard1", .port = 1, .mbps = 50000
	};
	const struct told_vf elsewhere = {
		.bdf = "0000:99:00.1", .hca = "hard2", .port = 1, .mbps = -1
	};
	struct expect_end ends[] = { { &vf, 196, NULL }, { &other, 196, NULL } };
	struct expectation e = expect_shared(m.root, ends, 2, 0, m.arena);

	(void)state;
	/* two VFs of one PF have one port */
	assert_true(fabs(e.gbps - 98) < 0.01);
	assert_string_equal(e.limit, "port 1 of hard0, shared by 2");
	/* the narrowest link, which both cross */
	ends[0].port_gbps = ends[1].port_gbps = NAN;
	e = expect_shared(m.root, ends, 2, 1, m.arena);
	assert_true(fabs(e.gbps - LINK_G4 / 2) < 0.1);
	assert_non_null(strstr(e.limit, "0000:10:01.0"));
	assert_non_null(strstr(e.limit, ", shared by 2"));
	/* a limit of 50 Gb/s is this VF's alone */
	ends[1] = (struct expect_end) { &limited, 196, NULL };
	e = expect_shared(m.root, ends, 2, 1, m.arena);
	assert_true(fabs(e.gbps - 50) < 0.01);
	/* what is not seen from here shares nothing */
	ends[1] = (struct expect_end) { &elsewhere, 196, NULL };
	e = expect_shared(m.root, ends, 2, 1, m.arena);
	assert_true(fabs(e.gbps - 196) < 0.01);
	close_machine(&m);
}

static void gpu_of_the_same_switch_does_not_cross_the_root_port(void **state)
{
	struct told_machine m = open_machine(machine);
	struct expectation e = loopback(&m, &vf, NAN, "0000:14:00.0");
	struct expect_path path = expect_path_of(m.root, &vf, "0000:14:00.0", m.arena);

	(void)state;
	assert_int_equal(path.n, 4);
	assert_string_equal(path.functions[0], "0000:12:00.0");
	assert_string_equal(path.functions[3], "0000:14:00.0");
	/* the GPU's link sleeps at 2.5 GT/s and wakes up when there is traffic */
	assert_true(fabs(e.gbps - LINK_G5) < 0.1);
	close_machine(&m);
}

static void gpu_of_another_root_port_crosses_both(void **state)
{
	struct told_machine m = open_machine(machine);
	struct expectation e = loopback(&m, &vf, 400, "0000:81:00.0");

	(void)state;
	assert_true(fabs(e.gbps - expect_pcie_gbps(8, 8, 256)) < 0.01);
	assert_string_equal(e.limit,
			    "PCIe x8 8 GT/s of 0000:81:00.0, payload 256, which can x16 8 GT/s");
	close_machine(&m);
}

/* A root port and a switch that could do more; of the NIC's x8 the slot has no more. */
static void a_link_below_both_of_its_ends_is_a_warning(void **state)
{
	static const char slot[] =
		FUNCTION("pci0000:10/", "0000:10:01.0", "0x060400", G4, "8", G5, "8")
			FUNCTION(RP, "0000:13:00.1", "0x020000", G4, "8", G4, "16");
	struct told told = { .vfs = (struct told_vf *)&vf, .n_vfs = 1 };
	struct told_machine m = open_machine(machine);
	struct report r = found_report(m.arena, &told);

	(void)state;
	expect_check_links(m.root, &told, &r);
	found_assert(&r, OUTCOME_SLOW, "pcie-link",
		     "runs at x16 16 GT/s, and both ends can x16 32 GT/s");
	assert_string_equal(r.findings[0].on, "0000:11:00.0");
	assert_int_equal(r.n_findings, 1);
	close_machine(&m);
	m = open_machine(slot);
	r = found_report(m.arena, &told);
	expect_check_links(m.root, &told, &r);
	assert_int_equal(r.n_findings, 0);
	close_machine(&m);
}

static void soft_device_has_no_expectation(void **state)
{
	struct told_machine m = open_machine(machine);
	struct told_vf soft = vf;
	struct expectation e;

	(void)state;
	soft.hca = "soft0";
	e = loopback(&m, &soft, 2.3, NULL);
	assert_true(isnan(e.gbps));
	assert_null(e.limit);
	close_machine(&m);
}

static void unknown_links_say_nothing(void **state)
{
	static const struct {
		const char *text;
	} rows[] = {
		{ "d sys/bus/pci/devices\n" },
		{ "d sys\n" },
		{ FUNCTION("pci0000:10/", "0000:13:00.1", "0x020000", "Unknown", "0", "Unknown",
			   "0") },
		{ FUNCTION("pci0000:10/", "0000:13:00.1", "0x020000", "Unknown speed", "16",
			   "Unknown", "255") },
		{ FUNCTION("pci0000:10/", "0000:13:00.1", "0x020000", "fast", "16", "fast", "16") },
		{ FUNCTION("pci0000:10/", "0000:13:00.1", "0x020000", G4, "63", G4, "63") },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct told_machine m = open_machine(rows[i].text);
		struct expectation e = loopback(&m, &vf, NAN, NULL);

		struct told told = { .vfs = (struct told_vf *)&vf, .n_vfs = 1 };
		struct report r = found_report(m.arena, &told);

		expect_check_links(m.root, &told, &r);
		assert_int_equal(r.n_findings, 0);
		assert_true(isnan(e.gbps));
		assert_null(e.limit);
		/* a port that is known is enough */
		assert_true(fabs(loopback(&m, &vf, 100, NULL).gbps - 100) < 0.01);
		close_machine(&m);
	}
}

/* The capability list begins at 0x40; Device Control is 8 bytes behind its begin. */
#define ZEROES_4  "00000000"
#define ZEROES_12 ZEROES_4 ZEROES_4 ZEROES_4
#define ZEROES_48 ZEROES_12 ZEROES_12 ZEROES_12 ZEROES_12
#define NIC_FILE(type, name, value)                                                                \
	type " sys/devices/pci0000:10/0000:13:00.1/" name " = " value "\n"
#define CONFIG(id, control)                                                                        \
	NIC_FILE("x", "config",                                                                    \
		 ZEROES_48 ZEROES_4 "40000000" ZEROES_4 ZEROES_4 id "000200" ZEROES_4 control      \
				    "0000")

static void payload_size_and_relaxed_ordering_are_read(void **state)
{
	static const struct {
		const char *config, *limit;
		int mps;
	} rows[] = {
		{ CONFIG("10", "1000"), "PCIe x16 16 GT/s of 0000:13:00.1, payload 128", 128 },
		{ CONFIG("10", "4000"),
		  "PCIe x16 16 GT/s of 0000:13:00.1, payload 512, relaxed ordering off", 512 },
		{ CONFIG("05", "5000"), "PCIe x16 16 GT/s of 0000:13:00.1, payload 256", 256 },
		/* only root reads more than 64 bytes */
		{ NIC_FILE("x", "config", ZEROES_48 ZEROES_4 "40000000" ZEROES_4 ZEROES_4),
		  "PCIe x16 16 GT/s of 0000:13:00.1, payload 256", 256 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char *text = xasprintf(
			"%s%s",
			FUNCTION("pci0000:10/", "0000:13:00.1", "0x020000", G4, "16", G4, "16"),
			rows[i].config);
		struct told_machine m = open_machine(text);
		struct expectation e = loopback(&m, &vf, NAN, NULL);

		assert_string_equal(e.limit, rows[i].limit);
		assert_true(fabs(e.gbps - expect_pcie_gbps(16, 16, rows[i].mps)) < 0.01);
		close_machine(&m);
		freep(&text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rate_of_a_link),
		cmocka_unit_test(narrowest_link_above_the_pf_limits),
		cmocka_unit_test(port_and_told_rate_limit_where_they_are_less),
		cmocka_unit_test(ends_at_once_share_links_and_ports_but_no_rate_limit),
		cmocka_unit_test(gpu_of_the_same_switch_does_not_cross_the_root_port),
		cmocka_unit_test(gpu_of_another_root_port_crosses_both),
		cmocka_unit_test(a_link_below_both_of_its_ends_is_a_warning),
		cmocka_unit_test(soft_device_has_no_expectation),
		cmocka_unit_test(unknown_links_say_nothing),
		cmocka_unit_test(payload_size_and_relaxed_ordering_are_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
