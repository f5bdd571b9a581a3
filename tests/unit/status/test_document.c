#include "facts.h"

#include "hw/bdf.h"
#include "support/nodes.h"
#include "support/synth.h"

/* The port of a PF as it is now, and a node of that. */
struct machine {
	struct hw_inventory *inv;
	struct hw_port ports[2];
	int pf;
};

static struct machine machine(const char *state, int carrier)
{
	struct machine m = { .inv = synth_inventory("numa:2 switch:2 gpu:1 pf:1 vf:2") };

	m.pf = synth_pf(m.inv, 0);
	m.ports[0] = m.inv->rdma[hw_find_rdma(m.inv, m.pf)].ports[0];
	m.ports[0].state = state;
	m.inv->pci[m.pf].carrier = carrier;
	return m;
}

static char *document(struct world *w)
{
	struct strbuf out = STRBUF_INIT;

	w->facts.node_name = "node-1";
	status_write_document(&w->facts, &out);
	return strbuf_steal(&out);
}

static void assert_has(struct world *w, const char *text)
{
	_cleanup_free_ char *all = document(w);

	if (!strstr(all, text))
		fail_msg("%s is not in %s", text, all);
}

static char *of_machine(struct world *w, struct machine *m, size_t n_ports)
{
	struct hw_rdma *rdma = &m->inv->rdma[hw_find_rdma(m->inv, m->pf)];
	struct node *node;
	char *text;

	rdma->ports = m->ports;
	rdma->n_ports = n_ports;
	node = node_new(m->inv, w->cfg, NULL);
	w->facts.node = node;
	world_judge(w);
	text = document(w);
	node_unref(node);
	w->facts.node = w->node;
	return text;
}

/* How many times it is in the text. */
static size_t count(const char *text, const char *what)
{
	size_t n = 0;

	for (text = strstr(text, what); text; text = strstr(text + 1, what))
		n++;
	return n;
}

static void a_node_at_rest_is_version_1_with_its_links(void **state)
{
	_cleanup_free_ char *text = document(*state);

	assert_ptr_equal(strstr(text, "{\"document\":1,\"node\":\"node-1\""), text);
	assert_int_equal(count(text, "\"wrong\":null"), 4);
	assert_int_equal(count(text, "\"down\":false"), 4);
	assert_int_equal(count(text, "\"state\":\"free\""), 8);
	assert_non_null(strstr(text, "{\"what\":\"config\",\"problem\":null,\"serves\":false}"));
}

static void a_vf_has_its_holder_and_its_link_the_pod(void **state)
{
	struct world *w = *state;

	world_hold(w, 0, "train");
	world_hold(w, 1, "train");
	assert_has(w, "\"state\":\"held\",\"offered\":true,\"why\":null,\"namespace\":"
		      "\"default\",\"pod\":\"train\",\"uid\":\"uid\",\"container\":\"main\"");
	assert_has(w, "\"pods\":[\"default/train\"],\"rail\":0");
}

static void a_slot_whose_vf_is_not_known_is_named(void **state)
{
	struct world *w = *state;
	const struct ledger_hold unknown = { .slot = "rdma_vf-n0-3",
					     .owner = { "ml", "train", "", "main", NULL } };

	w->service.unknown = &unknown;
	w->service.n_unknown = 1;
	assert_has(w, "\"unknown_slots\":[{\"slot\":\"rdma_vf-n0-3\",\"namespace\":\"ml\","
		      "\"pod\":\"train\",\"uid\":\"\",\"container\":\"main\"}]");
}

/* State of the port, carrier of the interface → is the link down? */
static void a_link_is_down_when_neither_port_nor_interface_is_up(void **state)
{
	static const struct {
		const char *state;
		int carrier;
		const char *wrong; /* NULL: nothing */
	} cases[] = {
		{ "ACTIVE", 0, NULL }, /* IPoIB is switched off */
		{ "ACTIVE", -1, NULL },
		{ "DOWN", 1, NULL }, /* closed by the operator */
		{ "DOWN", 0, "is down, its RDMA port is DOWN" },
		{ "DOWN", -1, "is down, its RDMA port is DOWN" },
		{ "INIT", -1, "is down, its RDMA port is INIT" },
		{ NULL, 0, "is down" },
		{ NULL, -1, NULL }, /* nothing is known */
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct machine m = machine(cases[i].state, cases[i].carrier);
		_cleanup_free_ char *text = of_machine(*state, &m, 1);

		assert_int_equal(count(text, "\"down\":true"), cases[i].wrong ? 1 : 0);
		if (cases[i].wrong)
			assert_non_null(strstr(text, cases[i].wrong));
	}
}

static void of_two_ports_one_that_was_never_used_is_not_down(void **state)
{
	struct machine m = machine("ACTIVE", -1);
	_cleanup_free_ char *text = NULL;

	m.ports[1] = m.ports[0];
	m.ports[1].number = 2;
	m.ports[1].state = "DOWN";
	text = of_machine(*state, &m, 2);
	assert_int_equal(count(text, "\"down\":true"), 0);
	assert_non_null(strstr(text, "\"port\":2"));
}

static void a_link_slower_than_others_of_its_kind_is_named(void **state)
{
	struct machine m = machine("ACTIVE", 1);
	_cleanup_free_ char *text = NULL;

	m.ports[0].rate_mbps /= 4;
	text = of_machine(*state, &m, 1);
	assert_int_equal(count(text, "\"wrong\":\"runs at"), 1);
	assert_non_null(strstr(text, ", others of its kind at "));
	assert_int_equal(count(text, "\"down\":true"), 0);
}

/* What containers hold of it goes on; the pool wants it. */
static void a_pf_that_is_gone_is_a_link_that_is_missing(void **state)
{
	struct world *w = *state;
	struct hw_inventory *inv = synth_inventory("numa:2 switch:2 gpu:1 pf:1 vf:2");
	int gone = synth_pf(inv, 1);
	struct node *node;

	inv->pci[gone].driver = NULL;
	node = node_new(inv, w->cfg, w->node);
	w->facts.node = node;
	world_judge(w);
	assert_has(w, "\"down\":true,\"missing\":true,\"wrong\":\"has no driver\"");
	node_unref(node);
	w->facts.node = w->node;
}

static void a_degraded_link_says_why_and_whom_it_hurts(void **state)
{
	struct world *w = *state;
	struct hw_inventory *inv = synth_inventory("numa:2 switch:2 gpu:1 pf:1 vf:2");
	char pf[BDF_STRLEN];
	struct node_link link = { RESOURCE,
				  bdf_format(inv->pci[synth_pf(inv, 0)].bdf, pf),
				  "goes down too often",
				  false,
				  1,
				  LINK_FLAPS,
				  5 };
	struct node_parts parts = { .cfg = w->cfg, .links = &link, .n_links = 1 };
	struct node *node = node_make(inv, &parts);

	w->facts.node = node;
	world_hold(w, 0, "train");
	assert_has(w, "\"degraded\":{\"why\":\"goes down too often\",\"reasons\":[\"flaps\"],"
		      "\"pods\":[\"default/train\"]},\"pods\":[\"default/train\"]");
	assert_has(w, "\"pods\":[\"default/train\"],\"unhealthy\":false,\"since_ms\":5}");
	node_unref(node);
	w->facts.node = w->node;
}

/* railmatectl makes it of the machine when railmated is away. */
static void without_a_service_there_are_links(void **state)
{
	struct world *w = *state;
	_cleanup_free_ char *text = NULL;

	w->facts.service = NULL;
	w->facts.ledger = NULL;
	text = document(w);
	assert_non_null(strstr(text, "\"pools\":[],"));
	assert_int_equal(count(text, "\"down\":false"), 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define WORLD(f) cmocka_unit_test_setup_teardown(f, world_set_up, world_tear_down)
		WORLD(a_node_at_rest_is_version_1_with_its_links),
		WORLD(a_vf_has_its_holder_and_its_link_the_pod),
		WORLD(a_slot_whose_vf_is_not_known_is_named),
		WORLD(a_link_is_down_when_neither_port_nor_interface_is_up),
		WORLD(of_two_ports_one_that_was_never_used_is_not_down),
		WORLD(a_link_slower_than_others_of_its_kind_is_named),
		WORLD(a_pf_that_is_gone_is_a_link_that_is_missing),
		WORLD(a_degraded_link_says_why_and_whom_it_hurts),
		WORLD(without_a_service_there_are_links),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
