/* What Events say of links. Sending is ours here: what would be sent is written down. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/mem.h"
#include "base/str.h"
#include "config/config.h"
#include "kubeapi/events.h"
#include "hw/inventory.h"
#include "ledger/ledger.h"
#include "pool/node.h"
#include "support/nodes.h"
#include "support/synth.h"

static struct strbuf said = STRBUF_INIT;

/* "Node LinkDown!", '!' as it is a warning. */
void events_send(struct events *e, const struct event *event)
{
	(void)e;
	assert_non_null(event->about);
	strbuf_printf(&said, "%s %s%s: %s\n", event->pod ? event->pod : "Node", event->reason,
		      event->normal ? "" : "!", event->note);
}

void events_forget(struct events *e, const struct event *event)
{
	(void)e;
	assert_null(event->reason);
	assert_non_null(event->about);
}

void events_condition(struct events *e, enum condition_status status, const char *message)
{
	static const char *const words[] = { "False", "True", "Unknown" };

	(void)e;
	strbuf_printf(&said, "%s: %s\n", words[status], message);
}

struct fixture {
	struct config *cfg;
	struct ledger *ledger;
	struct node *node;
	char pf[BDF_STRLEN], vf[BDF_STRLEN];
};

static struct hw_inventory *inventory(void)
{
	return synth_inventory("switch:2 gpu:1 pf:1 vf:2");
}

static int setup(void **state)
{
	struct fixture *f = xcalloc(1, sizeof(*f));
	struct hw_inventory *inv = inventory();

	f->cfg = config_default();
	f->node = node_new(inv, f->cfg, NULL);
	f->ledger = ledger_new();
	bdf_format(inv->pci[synth_pf(inv, 0)].bdf, f->pf);
	bdf_format(inv->pci[synth_vf(inv, 0)].bdf, f->vf);
	ledger_put(f->ledger,
		   &(struct ledger_hold) { .vf = f->vf,
					   .resource = "rdma/vf",
					   .owner = { "ns", "p", "uid", "main", NULL } });
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	node_unref(f->node);
	ledger_free(f->ledger);
	config_free(f->cfg);
	strbuf_done(&said);
	said = (struct strbuf)STRBUF_INIT;
	free(f);
	return 0;
}

/* The node after it: what is said of its links, %s the first PF and VF, and of all of them. */
static void next(struct fixture *f, struct hw_inventory *inv, const struct node_link *link,
		 const char *expected)
{
	struct events *some = (struct events *)f; /* not looked into */
	struct node_parts parts = {
		.cfg = f->cfg, .previous = f->node, .links = link, .n_links = link ? 1 : 0
	};
	struct node *now = node_make(inv, &parts);

	said.len = 0;
	events_of_links(some, f->ledger, f->node, now);
	events_condition_of_links(some, now);
	node_unref(f->node);
	f->node = now;
	assert_string_equal(strbuf_str(&said), expected);
}

#define WELL "True: the link of every PF of a pool is up\n"

static void a_link_that_is_degraded_is_told_and_told_when_it_is_not(void **state)
{
	struct fixture *f = *state;
	struct node_link link = {
		"rdma/vf", f->pf, "goes down too often", false, 1, LINK_FLAPS, 0
	};
	_cleanup_free_ char *what =
		xasprintf("the link of PF %s (eth0) goes down too often", f->pf);
	_cleanup_free_ char *degraded =
		xasprintf("Node LinkDegraded!: %s: 2 VFs of rdma/vf; pods that have one: ns/p\n"
			  "p LinkDegraded!: %s; the pod has its VF %s\n"
			  "False: %s\n",
			  what, what, f->vf, what);
	_cleanup_free_ char *still = xasprintf("False: %s\n", what);
	_cleanup_free_ char *well = xasprintf(
		"Node LinkRecovered: the link of PF %s (eth0) is not degraded any more: 2 VFs of rdma/vf; pods that have one: ns/p\n"
		"p LinkRecovered: the link of PF %s (eth0) is not degraded any more; the pod has its VF %s\n" WELL,
		f->pf, f->pf, f->vf);

	next(f, inventory(), &link, degraded);
	next(f, inventory(), &link, still);
	next(f, inventory(), NULL, well);
	next(f, inventory(), NULL, WELL);
}

/* As where a reset fails: its driver is gone. */
static struct hw_inventory *lost(void)
{
	struct hw_inventory *inv = inventory();
	int pf = synth_pf(inv, 0);

	inv->rdma[hw_find_rdma(inv, pf)].pci = -1;
	inv->pci[pf].driver = inv->pci[pf].netdev = NULL;
	inv->pci[pf].carrier = -1;
	return inv;
}

static void a_degraded_link_that_is_lost_is_not_said_to_recover(void **state)
{
	struct fixture *f = *state;
	struct node_link link = {
		"rdma/vf", f->pf, "goes down too often", false, 1, LINK_FLAPS, 0
	};
	struct node_parts parts = {
		.cfg = f->cfg, .previous = f->node, .links = &link, .n_links = 1
	};
	struct node *degraded = node_make(inventory(), &parts);
	_cleanup_free_ char *gone = xasprintf(
		"Node PFLost!: PF %s (eth0) has no driver: 2 VFs of rdma/vf; pods that have one: ns/p\n"
		"p PFLost!: PF %s (eth0) has no driver; the pod has its VF %s\n"
		"False: PF %s (eth0) has no driver\n",
		f->pf, f->pf, f->vf, f->pf);
	_cleanup_free_ char *back = xasprintf(
		"Node PFFound: PF %s (eth0) is there again: 2 VFs of rdma/vf; pods that have one: ns/p\n"
		"p PFFound: PF %s (eth0) is there again; the pod has its VF %s\n" WELL,
		f->pf, f->pf, f->vf);

	node_unref(f->node);
	f->node = degraded;
	next(f, lost(), NULL, gone);
	next(f, inventory(), NULL, back);
}

/* A PF with a second port, in this state. */
static struct hw_inventory *two_ports(const char *second)
{
	struct hw_inventory *inv = inventory();
	struct hw_port *ports = arena_array(inv->arena, 2, sizeof(*ports));
	struct hw_rdma *rdma = &inv->rdma[hw_find_rdma(inv, synth_pf(inv, 0))];

	ports[0] = ports[1] = rdma->ports[0];
	ports[1].number = 2;
	ports[1].state = second;
	rdma->ports = ports;
	rdma->n_ports = 2;
	return inv;
}

static void of_several_ports_the_one_that_is_down_is_named(void **state)
{
	struct fixture *f = *state;
	_cleanup_free_ char *down = xasprintf(
		"Node LinkDown!: the link of port 2 of PF %s (eth0) is down: 2 VFs of rdma/vf; pods that have one: ns/p\n"
		"p LinkDown!: the link of port 2 of PF %s (eth0) is down; the pod has its VF %s\n"
		"False: the link of port 2 of PF %s (eth0) is down\n",
		f->pf, f->pf, f->vf, f->pf);

	next(f, two_ports("DOWN"), NULL, WELL); /* not used */
	next(f, two_ports("ACTIVE"), NULL, WELL);
	next(f, two_ports("DOWN"), NULL, down);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_link_that_is_degraded_is_told_and_told_when_it_is_not),
		TEST(a_degraded_link_that_is_lost_is_not_said_to_recover),
		TEST(of_several_ports_the_one_that_is_down_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
