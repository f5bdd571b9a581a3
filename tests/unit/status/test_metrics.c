#include "facts.h"

#include "hw/portstats.h"
#include "support/nodes.h"
#include "support/synth.h"

static bool has(struct world *w, const char *text)
{
	_cleanup_free_ char *got = world_metrics(w);

	return strstr(got, text) != NULL;
}

#define assert_sample(w, text) assert_true(has(w, "\n" text "\n"))
#define assert_no(w, text)     assert_false(has(w, "\n" text))

static void devices_are_in_one_state_each(void **state)
{
	struct world *w = *state;
	struct ledger_hold gone = world_hold(w, 1, "old");

	world_hold(w, 0, "train");
	gone.draining = true;
	ledger_put(w->ledger, &gone);
	assert_sample(w, "railmate_pool_devices{resource=\"rdma/vf\",state=\"free\"} 6");
	assert_sample(w, "railmate_pool_devices{resource=\"rdma/vf\",state=\"held\"} 1");
	assert_sample(w, "railmate_pool_devices{resource=\"rdma/vf\",state=\"draining\"} 1");
	assert_sample(w, "railmate_pool_devices{resource=\"rdma/vf\",state=\"unhealthy\"} 0");
}

/* The PF of the first two VFs has no carrier: one of them is held, and counts as held. */
static void shares_are_those_of_each_container(void **state)
{
	static const struct status_share shares[] = { { "rdma/hca", "ml", "train", "main", 3 },
						      { "rdma/hca", "ml", "train", "side", 1 } };
	struct world *w = *state;
	_cleanup_free_ char *before = world_metrics(w), *after = NULL;

	assert_null(strstr(before, "railmate_pool_shares_held{"));
	w->service.shares = shares;
	w->service.n_shares = ARRAY_LEN(shares);
	after = world_metrics(w);
	assert_non_null(strstr(
		after,
		"\nrailmate_pool_shares_held{resource=\"rdma/hca\",namespace=\"ml\",pod=\"train\",container=\"main\"} 3\n"
		"railmate_pool_shares_held{resource=\"rdma/hca\",namespace=\"ml\",pod=\"train\",container=\"side\"} 1\n"));
}

static void an_unhealthy_device_is_counted_by_its_reason(void **state)
{
	static const struct hw_port down = { .number = 1, .state = "DOWN" };
	struct world *w = *state;
	struct hw_inventory *inv = synth_inventory("numa:2 switch:2 gpu:1 pf:1 vf:2");
	int pf = synth_pf(inv, 0), gone = synth_vf(inv, 7);
	struct node *node;

	inv->pci[pf].carrier = 0;
	for (size_t i = 0; i < inv->n_rdma; i++) {
		if (inv->rdma[i].pci == pf)
			inv->rdma[i].ports = &down;
	}
	inv->pci[gone].driver = NULL;
	node = node_new(inv, w->cfg, w->node);
	w->facts.node = node;
	world_hold(w, 0, "train");
	assert_sample(w, "railmate_pool_devices{resource=\"rdma/vf\",state=\"held\"} 1");
	assert_sample(w, "railmate_pool_devices{resource=\"rdma/vf\",state=\"unhealthy\"} 2");
	assert_sample(
		w, "railmate_pool_unhealthy_devices{resource=\"rdma/vf\",reason=\"link_down\"} 2");
	assert_sample(
		w, "railmate_pool_unhealthy_devices{resource=\"rdma/vf\",reason=\"no_driver\"} 1");
	assert_sample(w, "railmate_pool_unhealthy_devices{resource=\"rdma/vf\",reason=\"gone\"} 0");
	node_unref(node);
}

static void a_degraded_link_counts_its_devices_healthy_or_not(void **state)
{
	struct world *w = *state;
	struct node_link link = { RESOURCE, NULL, "goes down too often", true, 1, LINK_FLAPS, 0 };
	struct hw_inventory *inv = synth_inventory("numa:2 switch:2 gpu:1 pf:1 vf:2");
	char pf[BDF_STRLEN];
	struct node_parts parts = { .cfg = w->cfg, .links = &link, .n_links = 1 };
	struct node *node;

	link.pf = bdf_format(inv->pci[synth_pf(inv, 0)].bdf, pf);
	node = node_make(inv, &parts);
	w->facts.node = node;
	assert_sample(w, "railmate_pool_degraded_devices{resource=\"rdma/vf\"} 2");
	assert_sample(
		w,
		"railmate_pool_unhealthy_devices{resource=\"rdma/vf\",reason=\"link_degraded\"} 2");
	node_unref(node);
}

static void a_degraded_port_is_told_with_its_reason(void **state)
{
	struct world *w = *state;
	struct node_link link = { RESOURCE, NULL, "goes down too often", false, 1, LINK_FLAPS, 0 };
	struct hw_inventory *inv = synth_inventory("numa:2 switch:2 gpu:1 pf:1 vf:2");
	struct hw_port_stats port = { .pci = synth_pf(inv, 0),
				      .rdma = hw_find_rdma(inv, synth_pf(inv, 0)),
				      .port = 1,
				      .carrier_changes = -1 };
	struct node_parts parts = { .cfg = w->cfg, .links = &link, .n_links = 1 };
	char pf[BDF_STRLEN], text[256];
	struct node *node;

	link.pf = bdf_format(inv->pci[synth_pf(inv, 0)].bdf, pf);
	node = node_make(inv, &parts);
	w->facts.node = node;
	w->facts.ports = &port;
	w->facts.n_ports = 1;
#define DEGRADED(reason, value)                                                                    \
	(snprintf(text, sizeof(text),                                                              \
		  "\nrailmate_port_degraded{pf=\"%s\",rdma=\"%s\",port=\"1\",reason=\"" reason     \
		  "\"} " value "\n",                                                               \
		  pf, inv->rdma[port.rdma].name),                                                  \
	 text)
	assert_true(has(w, DEGRADED("flaps", "1")));
	assert_true(has(w, DEGRADED("errors", "0")));
	assert_true(has(w, DEGRADED("slow", "0")));
	node_unref(node);
}

/* Its VFs are there, as where it is reset: whom it hurts is found by the same label. */
static void a_pf_that_is_missing_is_not_up(void **state)
{
	struct world *w = *state;
	struct hw_inventory *inv = synth_inventory("numa:2 switch:2 gpu:1 pf:1 vf:2");
	int pf = synth_pf(inv, 0), rdma = hw_find_rdma(inv, pf);
	char address[BDF_STRLEN], text[256];
	struct node *node;

	snprintf(text, sizeof(text), "railmate_port_up{pf=\"%s\",rdma=\"%s\",port=\"1\"} 0",
		 bdf_format(inv->pci[pf].bdf, address), inv->rdma[rdma].name);
	assert_false(has(w, text));
	inv->pci[pf].driver = NULL;
	inv->rdma[rdma].pci = -1;
	node = node_new(inv, w->cfg, w->node);
	w->facts.node = node;
	assert_true(has(w, text));
	node_unref(node);
}

static void put_decision(struct world *w, struct ledger_hold *hold, const char *chosen_for,
			 const char *got)
{
	const char *const *for_gpus = &chosen_for, *const *real = &got;
	const struct ledger_pair pair = { chosen_for, hold->vf, "PIX" };
	const struct ledger_decision d = { .resource = RESOURCE,
					   .asked = 1,
					   .known = LEDGER_GPUS_KNOWN,
					   .source = "PodResources Get",
					   .gpus = for_gpus,
					   .n_gpus = 1,
					   .chosen = &hold->vf,
					   .n_chosen = 1,
					   .pairs = &pair,
					   .n_pairs = 1,
					   .checked = got != NULL,
					   .real_gpus = real,
					   .n_real_gpus = got != NULL };

	hold->decision = ledger_decide(w->ledger, &d);
	ledger_put(w->ledger, hold);
}

static char *vf_sample(struct world *w, const char *vf)
{
	return arena_printf(w->arena, "railmate_vf_info{resource=\"rdma/vf\",vf=\"%s\"", vf);
}

static const char *vf_line(struct world *w, const char *vf)
{
	_cleanup_free_ char *text = world_metrics(w);
	const char *line = strstr(text, vf_sample(w, vf));

	assert_non_null(line);
	return arena_printf(w->arena, "%.*s", (int)strcspn(line, "\n"), line);
}

static void a_held_vf_is_shown_with_its_pod_and_gpus(void **state)
{
	struct world *w = *state;
	struct ledger_hold a = world_hold(w, 0, "as-chosen"), b = world_hold(w, 2, "other-gpu"),
			   c = world_hold(w, 4, "no-decision");
	const char *line;
	char expected[512];

	put_decision(w, &a, world_gpu(w, 0), NULL);
	put_decision(w, &b, world_gpu(w, 1), world_gpu(w, 3));
	line = vf_line(w, a.vf);
	snprintf(expected, sizeof(expected),
		 ",namespace=\"default\",pod=\"as-chosen\",container=\"main\",state=\"held\",pf=");
	assert_non_null(strstr(line, expected));
	snprintf(expected, sizeof(expected), ",rail=\"0\",rdma=\"%s\",gpu=\"%s\",class=\"PIX\"} 1",
		 a.rdma, world_gpu(w, 0));
	assert_non_null(strstr(line, expected));
	snprintf(expected, sizeof(expected), ",gpu=\"%s\",class=\"SYS\"} 1", world_gpu(w, 3));
	assert_non_null(strstr(vf_line(w, b.vf), expected));
	assert_non_null(strstr(vf_line(w, c.vf), ",gpu=\"\",class=\"\"} 1"));
}

static void two_gpus_of_one_vf_are_shown_with_the_farther_class(void **state)
{
	struct world *w = *state;
	struct ledger_hold hold = world_hold(w, 0, "train");
	const char *gpus[] = { world_gpu(w, 0), world_gpu(w, 1) };
	const struct ledger_pair pairs[] = { { gpus[0], hold.vf, "PIX" },
					     { gpus[1], hold.vf, "NODE" } };
	const struct ledger_decision d = { .resource = RESOURCE,
					   .asked = 1,
					   .known = LEDGER_GPUS_KNOWN,
					   .source = "PodResources Get",
					   .gpus = gpus,
					   .n_gpus = 2,
					   .chosen = &hold.vf,
					   .n_chosen = 1,
					   .pairs = pairs,
					   .n_pairs = 2 };
	char expected[128];

	hold.decision = ledger_decide(w->ledger, &d);
	ledger_put(w->ledger, &hold);
	snprintf(expected, sizeof(expected), ",gpu=\"%s,%s\",class=\"NODE\"} 1", gpus[0], gpus[1]);
	assert_non_null(strstr(vf_line(w, hold.vf), expected));
}

/* A hold may outlive its pool, and the function. */
static void a_vf_that_no_pool_lists_is_shown_all_the_same(void **state)
{
	struct world *w = *state;
	const struct ledger_hold hold = { .vf = "0000:ff:00.7",
					  .resource = "other/vf",
					  .owner = { "default", "train", "uid", "main", NULL } };

	ledger_put(w->ledger, &hold);
	assert_sample(
		w,
		"railmate_vf_info{resource=\"other/vf\",vf=\"0000:ff:00.7\",namespace=\"default\",pod=\"train\",container=\"main\",state=\"leaving\",pf=\"\",rail=\"\",rdma=\"\",gpu=\"\",class=\"\"} 1");
}

static void a_name_cannot_end_its_label(void **state)
{
	struct world *w = *state;
	struct ledger_hold hold = world_hold(w, 0, "x");

	hold.owner.pod = "a\"} 1\nrailmate_forged{x=\"\\\xff\x1b[1m";
	ledger_put(w->ledger, &hold);
	assert_non_null(strstr(vf_line(w, hold.vf),
			       ",pod=\"a\\\"} 1?railmate_forged{x=\\\"\\\\??[1m\",container="));
	assert_no(w, "railmate_forged");
}

static void a_free_gpu_and_a_free_vf_are_a_pair(void **state)
{
	struct world *w = *state;
	int busy[] = { synth_gpu(w->node->inv, 3) };

	assert_sample(w, "railmate_pool_free_pairs{resource=\"rdma/vf\",class=\"PIX\"} 4");
	w->service.busy_gpus = busy;
	w->service.n_busy_gpus = 1;
	assert_sample(w, "railmate_pool_free_pairs{resource=\"rdma/vf\",class=\"PIX\"} 3");
	world_hold(w, 0, "train");
	assert_sample(w, "railmate_pool_free_pairs{resource=\"rdma/vf\",class=\"PIX\"} 3");
	world_hold(w, 1, "train"); /* nothing is left beside the first GPU */
	assert_sample(w, "railmate_pool_free_pairs{resource=\"rdma/vf\",class=\"PIX\"} 2");
	assert_sample(w, "railmate_pool_free_pairs{resource=\"rdma/vf\",class=\"SYS\"} 0");
	for (size_t i = 2; i < 8; i++)
		world_hold(w, i, "train");
	assert_sample(w, "railmate_pool_free_pairs{resource=\"rdma/vf\",class=\"PIX\"} 0");
	w->service.gpus_known = false;
	assert_no(w, "railmate_pool_free_pairs{");
}

static void calls_are_counted_by_their_code_and_cumulated_by_time(void **state)
{
	struct world *w = *state;
	struct stats_pool *p = stats_of(w->stats, RESOURCE);

	stats_count_call(p, STATS_ALLOCATE, 0, 200000);
	stats_count_call(p, STATS_ALLOCATE, 0, 300000);
	stats_count_call(p, STATS_ALLOCATE, 14, 1600000000);
	w->service.stats = stats_copy(w->stats, w->arena, &w->service.n_stats);
#define CALL "{resource=\"rdma/vf\",method=\"Allocate\","
	assert_sample(w, "railmate_pool_calls_total" CALL "code=\"OK\"} 2");
	assert_sample(w, "railmate_pool_calls_total" CALL "code=\"UNAVAILABLE\"} 1");
	/* increase() does not see a series that begins with 1. */
	assert_sample(w, "railmate_pool_calls_total" CALL "code=\"INVALID_ARGUMENT\"} 0");
	assert_sample(w, "railmate_pool_calls_total" CALL "code=\"NOT_FOUND\"} 0");
	assert_sample(w, "railmate_pool_calls_total" CALL "code=\"RESOURCE_EXHAUSTED\"} 0");
	assert_sample(w, "railmate_pool_calls_total" CALL "code=\"FAILED_PRECONDITION\"} 0");
	assert_sample(w, "railmate_pool_calls_total" CALL "code=\"UNIMPLEMENTED\"} 0");
	assert_sample(w, "railmate_pool_calls_total" CALL "code=\"INTERNAL\"} 0");
	assert_no(w, "railmate_pool_calls_total" CALL "code=\"DATA_LOSS\"}");
	assert_sample(w, "railmate_pool_call_duration_seconds_bucket" CALL "le=\"0.0001\"} 0");
	assert_sample(w, "railmate_pool_call_duration_seconds_bucket" CALL "le=\"0.00025\"} 1");
	assert_sample(w, "railmate_pool_call_duration_seconds_bucket" CALL "le=\"1.0\"} 2");
	assert_sample(w, "railmate_pool_call_duration_seconds_bucket" CALL "le=\"+Inf\"} 3");
	assert_sample(
		w,
		"railmate_pool_call_duration_seconds_sum{resource=\"rdma/vf\",method=\"Allocate\"} 1.600500000");
	assert_sample(
		w,
		"railmate_pool_call_duration_seconds_count{resource=\"rdma/vf\",method=\"Allocate\"} 3");
}

static void ports_are_counted_in_bytes_and_by_name(void **state)
{
	struct world *w = *state;
	struct hw_counter standard[] = { { "link_downed", 2 },
					 { "port_rcv_data", 100 },
					 { "port_xmit_wait", 60 },
					 { "symbol_error", 9 },
					 { "unicast_rcv_packets", 5 } };
	struct hw_counter driver[] = { { "rx_icrc_encapsulated", 4 } };
	struct hw_port_stats port = { .pci = synth_pf(w->node->inv, 0),
				      .rdma = hw_find_rdma(w->node->inv, synth_pf(w->node->inv, 0)),
				      .port = 1,
				      .standard = standard,
				      .n_standard = ARRAY_LEN(standard),
				      .driver = driver,
				      .n_driver = 1,
				      .carrier_changes = -1 };
	char pf[BDF_STRLEN], text[256];

	w->facts.ports = &port;
	w->facts.n_ports = 1;
	bdf_format(w->node->inv->pci[synth_pf(w->node->inv, 0)].bdf, pf);
#define PORT(metric, rest)                                                                         \
	(snprintf(text, sizeof(text), "\n" metric "{pf=\"%s\",rdma=\"%s\",port=\"1\"" rest, pf,    \
		  w->node->inv->rdma[port.rdma].name),                                             \
	 text)
	assert_true(has(w, PORT("railmate_port_received_bytes_total", "} 400\n")));
	assert_true(has(w, PORT("railmate_port_link_down_total", "} 2\n")));
	assert_true(has(w, PORT("railmate_port_errors_total", ",counter=\"symbol_error\"} 9\n")));
	assert_true(has(w, PORT("railmate_port_transmit_wait_ticks_total", "} 60\n")));
	assert_false(has(w, "counter=\"port_xmit_wait\""));
	assert_true(has(w, PORT("railmate_port_hw_counter_total",
				",counter=\"rx_icrc_encapsulated\"} 4\n")));
	assert_true(has(w, PORT("railmate_port_up", "} 1\n")));
	assert_true(has(w, PORT("railmate_port_state", ",state=\"ACTIVE\"} 1\n")));
	assert_no(w, "railmate_port_transmitted_bytes_total{");
	assert_no(w, "railmate_port_carrier_changes_total{");
	assert_false(has(w, "unicast_rcv_packets"));
	port.carrier_changes = 12;
	assert_true(has(w, PORT("railmate_port_carrier_changes_total", "} 12\n")));
}

static void a_pf_without_rdma_has_a_port_too(void **state)
{
	struct world *w = *state;
	struct hw_inventory *inv = synth_inventory("numa:2 switch:2 gpu:1 pf:1 vf:2");
	int pf = synth_pf(inv, 0);
	struct hw_port_stats port = { .pci = pf, .rdma = -1, .port = 1, .carrier_changes = 3 };
	char address[BDF_STRLEN], text[256];
	struct node *node;

	inv->pci[pf].carrier = 1;
	node = node_new(inv, w->cfg, NULL);
	w->facts.node = node;
	w->facts.ports = &port;
	w->facts.n_ports = 1;
	bdf_format(inv->pci[pf].bdf, address);
#define PLAIN(metric, value)                                                                       \
	(snprintf(text, sizeof(text), "\n" metric "{pf=\"%s\",rdma=\"\",port=\"1\"} " value "\n",  \
		  address),                                                                        \
	 text)
	assert_true(has(w, PLAIN("railmate_port_up", "1")));
	assert_true(has(w, PLAIN("railmate_port_carrier_changes_total", "3")));
	assert_no(w, "railmate_port_state{");
	inv->pci[pf].carrier = 0;
	assert_true(has(w, PLAIN("railmate_port_up", "0")));
	inv->pci[pf].carrier = -1;
	assert_no(w, "railmate_port_up{");
	node_unref(node);
}

static void pause_frames_are_counted_by_priority(void **state)
{
	struct world *w = *state;
	struct hw_pauses pauses;
	struct hw_port_stats port = { .pci = synth_pf(w->node->inv, 0),
				      .rdma = hw_find_rdma(w->node->inv, synth_pf(w->node->inv, 0)),
				      .port = 1,
				      .carrier_changes = -1,
				      .pauses = &pauses };
	char pf[BDF_STRLEN], text[256];

	memset(&pauses, 0xff, sizeof(pauses)); /* -1 each */
	pauses.received[3] = (struct hw_pause) { 17, 2500000 };
	pauses.sent[HW_PAUSES - 1].frames = 5;
	pauses.dropped[5] = 9;
	w->facts.ports = &port;
	w->facts.n_ports = 1;
	bdf_format(w->node->inv->pci[synth_pf(w->node->inv, 0)].bdf, pf);
	assert_true(
		has(w, PORT("railmate_port_received_pause_frames_total", ",priority=\"3\"} 17\n")));
	assert_true(has(w, PORT("railmate_port_received_pause_seconds_total",
				",priority=\"3\"} 2.500000000\n")));
	assert_true(has(w, PORT("railmate_port_transmitted_pause_frames_total",
				",priority=\"link\"} 5\n")));
	assert_true(has(w, PORT("railmate_port_received_discards_total", ",priority=\"5\"} 9\n")));
	assert_no(w, "railmate_port_transmitted_pause_seconds_total{");
	assert_false(has(w, "priority=\"4\""));
	port.pauses = NULL;
	assert_false(has(w, "priority="));
}

static void traffic_and_errors_of_vfs_are_counted(void **state)
{
	struct world *w = *state;
	struct hw_counter errors = { "out_of_sequence", 6 };
	struct hw_vf_stats v[] = {
		{ .pci = synth_vf(w->node->inv, 0),
		  .has_traffic = true,
		  .received = { 100, 10, 1 },
		  .sent = { 200, 20, 2 } },
		{ .pci = synth_vf(w->node->inv, 1), .driver = &errors, .n_driver = 1 }
	};
	const char *first = w->pool->devs[0].id, *second = w->pool->devs[1].id;

	w->facts.vf_stats = v;
	w->facts.n_vf_stats = ARRAY_LEN(v);
#define OF_VF(metric, vf, rest) arena_printf(w->arena, "\n" metric "{vf=\"%s\"" rest "\n", vf)
	assert_true(has(w, OF_VF("railmate_vf_received_bytes_total", first, "} 100")));
	assert_true(has(w, OF_VF("railmate_vf_transmitted_packets_total", first, "} 20")));
	assert_true(has(w, OF_VF("railmate_vf_transmitted_drops_total", first, "} 2")));
	assert_true(has(w, OF_VF("railmate_vf_hw_counter_total", second,
				 ",counter=\"out_of_sequence\"} 6")));
	assert_false(has(w, OF_VF("railmate_vf_received_bytes_total", second, "} 0")));
}

#define MANY_VFS   1024
#define MANY_PORTS 8
/* What mlx5_core has of a port: names alone count here. */
#define STANDARD 24
#define DRIVER	 40

static size_t count_series(struct world *w)
{
	_cleanup_free_ char *text = world_metrics(w);
	size_t n = 0;

	for (const char *line = text; *line; line = str_next_line(line))
		n += *line != '#';
	return n;
}

static struct hw_counter *many_counters(struct world *w, const char *prefix, size_t n)
{
	struct hw_counter *v = arena_array(w->arena, n, sizeof(*v));

	for (size_t i = 0; i < n; i++)
		v[i].name = arena_printf(w->arena, "%s_%zu", prefix, i);
	return v;
}

static void put_many_ports(struct world *w, const struct hw_inventory *inv)
{
	static struct hw_pauses pauses;
	struct hw_port_stats *v = arena_array(w->arena, MANY_PORTS, sizeof(*v));

	for (size_t i = 0; i < MANY_PORTS; i++)
		v[i] = (struct hw_port_stats) {
			.pci = synth_pf(inv, i),
			.rdma = hw_find_rdma(inv, synth_pf(inv, i)),
			.port = 1,
			.standard = many_counters(w, "standard", STANDARD),
			.n_standard = STANDARD,
			.driver = many_counters(w, "driver", DRIVER),
			.n_driver = DRIVER,
			.pauses = &pauses,
		};
	w->facts.ports = v;
	w->facts.n_ports = MANY_PORTS;
}

static void hold_all(struct world *w, const struct node *node, const char *pod)
{
	for (size_t i = 0; i < MANY_VFS; i++)
		ledger_put(w->ledger,
			   &(struct ledger_hold) {
				   .vf = node->pools[0].devs[i].id,
				   .resource = RESOURCE,
				   .owner = { "default", arena_printf(w->arena, "%s-%zu", pod, i),
					      "uid", "main", NULL } });
}

/* docs/metrics.md promises it: some 2,000, and 6,000 more with the traffic of VFs. */
static void series_are_as_many_as_documented_and_do_not_grow_with_pods(void **state)
{
	struct world *w = *state;
	struct hw_inventory *inv = synth_inventory("switch:8 gpu:1 pf:1 vf:128");
	struct node *node = node_new(inv, w->cfg, NULL);
	struct hw_vf_stats *traffic = arena_array(w->arena, MANY_VFS, sizeof(*traffic));
	size_t n;

	assert_int_equal(node->pools[0].n_devs, MANY_VFS);
	w->facts.node = node;
	put_many_ports(w, inv);
	hold_all(w, node, "first");
	n = count_series(w);
	assert_in_range(n, MANY_VFS, 2200);
	hold_all(w, node, "second");
	assert_int_equal(count_series(w), n);
	for (size_t i = 0; i < MANY_VFS; i++)
		traffic[i] = (struct hw_vf_stats) { .pci = synth_vf(inv, i), .has_traffic = true };
	w->facts.vf_stats = traffic;
	w->facts.n_vf_stats = MANY_VFS;
	assert_int_equal(count_series(w), n + 6 * MANY_VFS);
	node_unref(node);
}

static void a_disk_that_hangs_is_no_better_than_one_that_refuses(void **state)
{
	struct world *w = *state;

	assert_sample(w, "railmate_ledger_failing 0");
	w->service.ledger_late = true;
	assert_sample(w, "railmate_ledger_failing 1");
	w->service.ledger_late = false;
	w->service.ledger_failing = true;
	assert_sample(w, "railmate_ledger_failing 1");
}

static void before_the_first_scan_there_is_what_is_known(void **state)
{
	struct world *w = *state;

	w->facts.node = NULL;
	w->facts.ledger = NULL;
	w->facts.service = NULL;
	assert_sample(w, "railmate_scans_total 7");
	assert_no(w, "railmate_pool_devices{");
	assert_no(w, "railmate_ledger_stored ");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define WORLD(f) cmocka_unit_test_setup_teardown(f, world_set_up, world_tear_down)
		WORLD(devices_are_in_one_state_each),
		WORLD(shares_are_those_of_each_container),
		WORLD(an_unhealthy_device_is_counted_by_its_reason),
		WORLD(a_degraded_port_is_told_with_its_reason),
		WORLD(a_pf_that_is_missing_is_not_up),
		WORLD(a_degraded_link_counts_its_devices_healthy_or_not),
		WORLD(a_held_vf_is_shown_with_its_pod_and_gpus),
		WORLD(two_gpus_of_one_vf_are_shown_with_the_farther_class),
		WORLD(a_vf_that_no_pool_lists_is_shown_all_the_same),
		WORLD(a_name_cannot_end_its_label),
		WORLD(a_free_gpu_and_a_free_vf_are_a_pair),
		WORLD(calls_are_counted_by_their_code_and_cumulated_by_time),
		WORLD(ports_are_counted_in_bytes_and_by_name),
		WORLD(a_pf_without_rdma_has_a_port_too),
		WORLD(pause_frames_are_counted_by_priority),
		WORLD(traffic_and_errors_of_vfs_are_counted),
		WORLD(series_are_as_many_as_documented_and_do_not_grow_with_pods),
		WORLD(a_disk_that_hangs_is_no_better_than_one_that_refuses),
		WORLD(before_the_first_scan_there_is_what_is_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
