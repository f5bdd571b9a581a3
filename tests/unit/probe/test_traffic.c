/*
 * The plan of a local run, with VFs and GPUs whose rates are made here: what is run, with what
 * memory, and what is made of it.
 */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/mem.h"
#include "railmate-probe/gpu.h"
#include "railmate-probe/report.h"
#include "railmate-probe/told.h"
#include "railmate-probe/traffic.h"
#include "railmate-probe/wire.h"
#include "support/fixture.h"

#define VFS_MAX 8

/* --- the devices --- */

struct wire_device {
	size_t vf;
};

static struct {
	const struct told *told;
	double port_gbps;
	double gbps[VFS_MAX], shared_gbps; /* of a VF; of all together, NAN: no limit */
	int open[VFS_MAX];		   /* errors */
	const char *broken_id;		   /* of pairs of two VFs; NULL: they work */
	unsigned ways, works;		   /* of the GPUs' memory */
	size_t memory, memory_max, runs, largest, gpus;
	double seconds;
	bool sleeps;
	struct wire_device devices[VFS_MAX];
} lab;

int wire_open(const struct told_vf *vf, struct report *r, struct wire_device **ret)
{
	size_t i = (size_t)(vf - lab.told->vfs);

	if (lab.open[i]) {
		report_finding(r, OUTCOME_BROKEN, "hca-gone", vf->hca, "it is not here");
		return lab.open[i];
	}
	lab.devices[i].vf = i;
	*ret = &lab.devices[i];
	return 0;
}

void wire_close(struct wire_device *d)
{
	(void)d;
}

double wire_port_gbps(const struct wire_device *d)
{
	(void)d;
	return lab.port_gbps;
}

const char *wire_op_name(enum wire_op op)
{
	return op == WIRE_WRITE ? "write" : op == WIRE_READ ? "read" : "send";
}

static void count_memory(size_t size)
{
	lab.memory += size;
	if (lab.memory > lab.memory_max)
		lab.memory_max = lab.memory;
}

int wire_memory_host(size_t size, struct wire_memory *ret)
{
	count_memory(size);
	*ret = (struct wire_memory) { .address = &lab, .size = size, .dmabuf_fd = -1 };
	return 0;
}

void wire_memory_free(struct wire_memory *m)
{
	lab.memory -= m->size;
}

int wire_memory_check(struct wire_device *d, struct wire_memory *m, struct report *r)
{
	(void)d;
	if (strcmp(m->way, "works") == 0)
		return 0;
	report_finding(r, OUTCOME_GOOD, "dmabuf", m->name, "%s does not work", m->way);
	return -EOPNOTSUPP;
}

int wire_local(const struct wire_pairing *pairings, size_t n, const struct wire_run *run,
	       struct report *r, struct wire_result *results)
{
	int error = 0;

	lab.runs++;
	lab.seconds += run->seconds;
	if (lab.sleeps)
		nanosleep(&(struct timespec) { .tv_nsec = (long)(run->seconds * 999999999) }, NULL);
	if (n > lab.largest)
		lab.largest = n;
	for (size_t i = 0; i < n; i++) {
		double gbps = lab.gbps[pairings[i].from->vf];

		assert_true(pairings[i].from_memory->size >= run->message);
		assert_int_equal(pairings[i].from_memory->size % run->message, 0);
		assert_ptr_not_equal(pairings[i].from_memory, pairings[i].to_memory);
		if (lab.broken_id && pairings[i].from != pairings[i].to) {
			report_finding(r, OUTCOME_BROKEN, lab.broken_id, "it", "is broken");
			results[i] = (struct wire_result) { NAN, NAN, error = -EIO };
			continue;
		}
		if (n > 1 && gbps > lab.shared_gbps / (double)n)
			gbps = lab.shared_gbps / (double)n;
		results[i] = (struct wire_result) { gbps, run->latency ? 2 : NAN, 0 };
	}
	return error;
}

/* --- GPUs --- */

int gpu_open(const struct sysroot *root, const char *bdf, struct report *r, struct gpu **ret)
{
	(void)root;
	if (!lab.ways) {
		report_finding(r, OUTCOME_NOT_MEASURED, "gpu-library", bdf, "there is none");
		return -ENOSYS;
	}
	lab.gpus++;
	*ret = (struct gpu *)&lab;
	return 0;
}

void gpu_close(struct gpu *g)
{
	lab.gpus -= g != NULL;
}

int gpu_memory(struct gpu *g, size_t size, unsigned way, struct report *r, struct wire_memory *ret)
{
	(void)g;
	(void)r;
	if (way >= lab.ways)
		return -ENOTSUP;
	*ret = (struct wire_memory) { .size = size,
				      .dmabuf_fd = 1,
				      .name = "gpu",
				      .way = way == lab.works ? "works" : "fails" };
	return 0;
}

/* --- the machine --- */

/* clang-format off */
#define FUNCTION(at, bdf, class, gts)                                                              \
	"l sys/bus/pci/devices/" bdf " -> ../../../devices/" at bdf "\n"                            \
	"f sys/devices/" at bdf "/class = " class "\\n\n"                                          \
	"f sys/devices/" at bdf "/current_link_speed = " gts " GT/s PCIe\\n\n"                     \
	"f sys/devices/" at bdf "/current_link_width = 16\\n\n"                                    \
	"f sys/devices/" at bdf "/max_link_speed = " gts " GT/s PCIe\\n\n"                         \
	"f sys/devices/" at bdf "/max_link_width = 16\\n\n"
#define RP "pci0000:10/0000:10:01.0/"
#define UP RP "0000:11:00.0/"
/* A root port of 16 GT/s; below its switch two NICs and a GPU of 32 GT/s; a NIC below another root port. */
static const char machine[] =
	FUNCTION("pci0000:10/", "0000:10:01.0", "0x060400", "16.0")
	FUNCTION(RP, "0000:11:00.0", "0x060400", "16.0")
	FUNCTION(UP "0000:12:00.0/", "0000:13:00.0", "0x020000", "32.0")
	FUNCTION(UP "0000:12:01.0/", "0000:14:00.0", "0x020000", "32.0")
	FUNCTION(UP "0000:12:02.0/", "0000:15:00.0", "0x030200", "32.0")
	FUNCTION("pci0000:80/0000:80:01.0/", "0000:81:00.0", "0x020000", "32.0");
/* clang-format on */

static struct told_vf vfs[VFS_MAX];
static struct told_gpu gpus[] = { { "0000:15:00.0" } };
static struct told_pair pairs[] = { { 0, 0 }, { 0, 1 } };
static struct told told = { .vfs = vfs, .gpus = gpus, .pairs = pairs };

static struct report report;

static int set_up(void **state)
{
	static const char *const functions[] = { "0000:13:00.0", "0000:14:00.0", "0000:81:00.0" };

	(void)state;
	memset(&lab, 0, sizeof(lab));
	for (size_t i = 0; i < VFS_MAX; i++) {
		static const char *const names[] = { "hca0", "hca1", "hca2", "hca3",
						     "hca4", "hca5", "hca6", "hca7" };

		vfs[i] = (struct told_vf) {
			.bdf = functions[i % 3], .hca = names[i], .port = 1, .rail = -1, .mbps = -1
		};
		lab.gbps[i] = 190;
	}
	lab.told = &told;
	lab.port_gbps = 196;
	lab.shared_gbps = INFINITY;
	told.n_vfs = 2;
	told.n_gpus = told.n_pairs = 0;
	report = (struct report) {
		.arena = arena_new(4096), .told = &told, .quiet = true, .slow = 0.8, .broken = 0.5
	};
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	arena_free(report.arena);
	assert_int_equal(lab.memory, 0);
	assert_int_equal(lab.gpus, 0);
	return 0;
}

static int run(struct traffic_options o)
{
	struct sysroot *root = fixture_text(machine);
	int error;

	o.root = root;
	error = traffic_local(&told, &o, &report);
	fixture_close(root);
	return error;
}

static const struct finding *finding(const char *id)
{
	for (size_t i = 0; i < report.n_findings; i++) {
		if (strcmp(report.findings[i].sentence->id, id) == 0)
			return &report.findings[i];
	}
	return NULL;
}

static size_t n_measures(bool together, enum outcome outcome)
{
	size_t n = 0;

	for (size_t i = 0; i < report.n_measures; i++)
		n += report.measures[i].together == together &&
		     report.measures[i].outcome == outcome;
	return n;
}

/* --- the tests --- */

static void each_vf_each_pair_then_all_at_once(void **state)
{
	(void)state;
	assert_int_equal(run((struct traffic_options) { .seconds = 1 }), 0);
	/* 2 loopbacks and a pair, 3 operations each; a ring of 2 */
	assert_int_equal(lab.runs, 10);
	assert_int_equal(lab.largest, 2);
	assert_int_equal(n_measures(false, OUTCOME_GOOD), 9);
	assert_int_equal(n_measures(true, OUTCOME_GOOD), 2);
	assert_int_equal(report.measures[2].path, PATH_SAME_HOST);
	assert_string_equal(report.measures[2].limit, "port 1 of hca0");
	assert_int_equal(report_exit(&report), PROBE_EXIT_GOOD);
}

static void eight_vfs_keep_to_time_and_memory(void **state)
{
	(void)state;
	told.n_vfs = 8;
	lab.sleeps = true;
	assert_int_equal(run((struct traffic_options) { .seconds = 2 }), 0);
	assert_int_equal(lab.runs, 3 * 36 + 1);
	assert_true(lab.seconds > 0.5 && lab.seconds <= 2.1);
	assert_true(lab.memory_max <= WIRE_MEMORY_MAX);
	assert_int_equal(lab.largest, 8);
}

static void message_and_memory_of_the_options(void **state)
{
	(void)state;
	assert_int_equal(run((struct traffic_options) {
				 .memory = 1 << 20, .message = 3 << 16, .ops = 1 << WIRE_READ }),
			 0);
	assert_int_equal(lab.memory_max, 4 * (3 << 16));
	assert_int_equal(lab.runs, 4);
	assert_string_equal(report.measures[0].op, "read");
}

static void contention_that_a_shared_link_explains_is_a_note(void **state)
{
	const struct finding *contention;

	(void)state;
	lab.shared_gbps = 200;
	assert_int_equal(run((struct traffic_options) { .seconds = 1 }), 0);
	contention = finding("contention");
	assert_non_null(contention);
	assert_int_equal(contention->outcome, OUTCOME_GOOD);
	assert_non_null(strstr(contention->what, "190 Gb/s alone and 100 with all others"));
	assert_non_null(strstr(contention->what, "0000:"));
	assert_non_null(strstr(contention->what, ", shared by 2"));
	assert_int_equal(report_exit(&report), PROBE_EXIT_GOOD);
}

static void contention_beyond_the_shared_link_is_a_warning(void **state)
{
	(void)state;
	lab.shared_gbps = 120;
	run((struct traffic_options) { .seconds = 1 });
	assert_int_equal(finding("contention")->outcome, OUTCOME_SLOW);
	assert_int_equal(report_outcome(&report) >= OUTCOME_SLOW, 1);
}

static void contention_without_a_shared_link_tells_so(void **state)
{
	(void)state;
	vfs[1].bdf = "0000:81:00.0";
	lab.shared_gbps = 200;
	run((struct traffic_options) { .seconds = 1 });
	assert_non_null(strstr(finding("contention")->what,
			       "no port or link whose rate is known is shared"));
	assert_int_equal(finding("contention")->outcome, OUTCOME_SLOW);
}

static void soft_devices_have_no_contention(void **state)
{
	(void)state;
	lab.port_gbps = NAN;
	vfs[0].bdf = vfs[1].bdf = "0000:ff:00.0";
	lab.shared_gbps = 20;
	run((struct traffic_options) { .seconds = 1 });
	assert_null(finding("contention"));
	assert_non_null(finding("no-rate"));
	assert_int_equal(report_exit(&report), PROBE_EXIT_GOOD);
}

static void vf_that_does_not_open_is_not_measured(void **state)
{
	(void)state;
	lab.open[1] = -ENOENT;
	assert_int_equal(run((struct traffic_options) { .seconds = 1 }), -ENOENT);
	assert_int_equal(n_measures(false, OUTCOME_NOT_MEASURED), 2);
	assert_int_equal(n_measures(false, OUTCOME_GOOD), 3);
	assert_int_equal(report_exit(&report), PROBE_EXIT_BROKEN);
}

static void pair_that_fails_is_tried_once(void **state)
{
	(void)state;
	lab.broken_id = "retry-exceeded";
	assert_int_equal(run((struct traffic_options) { .seconds = 1 }), -EIO);
	assert_int_equal(lab.runs, 7);
	assert_int_equal(n_measures(false, OUTCOME_BROKEN), 1);
	assert_int_equal(report_exit(&report), PROBE_EXIT_BROKEN);
}

static void rails_apart_are_no_fault_and_tried_twice(void **state)
{
	(void)state;
	told.n_vfs = 8;
	for (int i = 0; i < 8; i++)
		vfs[i].rail = i;
	lab.broken_id = "no-route";
	assert_int_equal(run((struct traffic_options) { .seconds = 1 }), 0);
	assert_int_equal(lab.runs, 3 * 8 + 2);
	assert_null(finding("no-route"));
	assert_int_equal(finding("rails-apart")->outcome, OUTCOME_GOOD);
	assert_int_equal(report_exit(&report), PROBE_EXIT_GOOD);
}

static void bytes_that_differ_are_a_fault_between_rails_too(void **state)
{
	(void)state;
	vfs[0].rail = 0;
	vfs[1].rail = 1;
	lab.broken_id = "bytes-differ";
	assert_int_equal(run((struct traffic_options) { .seconds = 1 }), -EIO);
	assert_int_equal(report_exit(&report), PROBE_EXIT_BROKEN);
}

static void runs_without_time_are_not_measured(void **state)
{
	(void)state;
	run((struct traffic_options) { .seconds = 1e-9 });
	assert_int_equal(lab.runs, 0);
	assert_non_null(strstr(finding("out-of-time")->what, "9 runs"));
	assert_int_equal(report_exit(&report), PROBE_EXIT_NOT_MEASURED);
}

static void no_vf_is_not_measured(void **state)
{
	(void)state;
	told.n_vfs = 0;
	assert_int_equal(run((struct traffic_options) { 0 }), -ENODEV);
	assert_int_equal(report_exit(&report), PROBE_EXIT_NOT_MEASURED);
}

static void gpu_memory_by_the_first_way_that_registers(void **state)
{
	const struct measure *m;

	(void)state;
	told.n_gpus = 1;
	told.n_pairs = 2;
	lab.ways = 3;
	lab.works = 1;
	assert_int_equal(run((struct traffic_options) { .seconds = 1, .gpu = true }), 0);
	m = &report.measures[report.n_measures - 1];
	assert_string_equal(m->from_memory, "0000:15:00.0");
	assert_string_equal(m->memory_way, "works");
	/* GPU and VF are below one switch: its root port is not crossed */
	assert_string_equal(m->limit, "port 1 of hca1");
	assert_int_equal(finding("dmabuf")->outcome, OUTCOME_GOOD);
	assert_int_equal(report_exit(&report), PROBE_EXIT_GOOD);
}

static void far_vf_is_the_one_with_the_longest_way(void **state)
{
	const struct measure *m;

	(void)state;
	told.n_vfs = 3;
	told.n_gpus = 1;
	told.n_pairs = 2;
	lab.ways = 1;
	assert_int_equal(run((struct traffic_options) { .seconds = 1, .gpu = true, .far = true }),
			 0);
	m = &report.measures[report.n_measures - 1];
	assert_string_equal(m->from_memory, "0000:15:00.0");
	assert_string_equal(m->from, "hca2");
}

static void gpu_memory_that_nothing_registers_is_broken(void **state)
{
	(void)state;
	told.n_gpus = 1;
	told.n_pairs = 1;
	lab.ways = 2;
	lab.works = 5;
	run((struct traffic_options) { .seconds = 1, .gpu = true });
	assert_int_equal(finding("gpu-not-direct")->outcome, OUTCOME_BROKEN);
}

static void no_gpu_library_is_not_measured(void **state)
{
	(void)state;
	told.n_gpus = 1;
	told.n_pairs = 1;
	assert_int_equal(run((struct traffic_options) { .seconds = 1, .gpu = true }), -ENOSYS);
	assert_non_null(finding("gpu-library"));
	assert_int_equal(report.n_measures, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(each_vf_each_pair_then_all_at_once),
		TEST(eight_vfs_keep_to_time_and_memory),
		TEST(message_and_memory_of_the_options),
		TEST(contention_that_a_shared_link_explains_is_a_note),
		TEST(contention_beyond_the_shared_link_is_a_warning),
		TEST(contention_without_a_shared_link_tells_so),
		TEST(soft_devices_have_no_contention),
		TEST(vf_that_does_not_open_is_not_measured),
		TEST(pair_that_fails_is_tried_once),
		TEST(rails_apart_are_no_fault_and_tried_twice),
		TEST(bytes_that_differ_are_a_fault_between_rails_too),
		TEST(runs_without_time_are_not_measured),
		TEST(no_vf_is_not_measured),
		TEST(gpu_memory_by_the_first_way_that_registers),
		TEST(far_vf_is_the_one_with_the_longest_way),
		TEST(gpu_memory_that_nothing_registers_is_broken),
		TEST(no_gpu_library_is_not_measured),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
