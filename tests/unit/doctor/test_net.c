/* The checks of networks, on small machines; what only a running kernel tells is put into the facts
 * by hand.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "diagnosis/diagnosis.h"
#include "doctor/doctor.h"
#include "facts/gather.h"
#include "facts/net.h"
#include "support/fixture.h"
#include "sysroot/sysroot.h"
#include "topo/topo.h"

#define LINK(addr, name) "l sys/bus/pci/devices/" addr " -> ../../../devices/pci0000:3a/" name "\n"
#define IDS(path, device)                                                                          \
	"f " path "/vendor = 0x15b3\\n\n"                                                          \
	"f " path "/device = " device "\\n\n"                                                      \
	"f " path "/class = 0x020000\\n\n"
#define DIR(addr) "sys/devices/pci0000:3a/" addr
#define PF	  DIR("0000:3b:00.0")
#define VF0	  DIR("0000:3b:00.1")
#define VF1	  DIR("0000:3b:00.2")
#define PF2	  DIR("0000:3c:00.0")
#define VF2	  DIR("0000:3c:00.1")

#define RDMA(dir, name, link, state)                                                               \
	"f " dir "/infiniband/" name "/ports/1/state = " state "\\n\n"                             \
	"f " dir "/infiniband/" name "/ports/1/phys_state = 5: LinkUp\\n\n"                        \
	"f " dir "/infiniband/" name "/ports/1/link_layer = " link "\\n\n"                         \
	"l sys/class/infiniband/" name " -> ../../../" dir "/infiniband/" name "\n"
#define RATE(dir, name, rate) "f " dir "/infiniband/" name "/ports/1/rate = " rate "\\n\n"
#define GUID(dir, name, guid) "f " dir "/infiniband/" name "/node_guid = " guid "\\n\n"
#define NET(dir, name, file, value)                                                                \
	"f " dir "/net/" name "/" file " = " value "\\n\n"                                         \
	"l sys/class/net/" name " -> ../../../" dir "/net/" name "\n"
#define VERBS(dir, n, name)                                                                        \
	"f " dir "/infiniband_verbs/" n "/dev = 231:0\\n\n"                                        \
	"f " dir "/infiniband_verbs/" n "/ibdev = " name "\\n\n"
#define GID(dir, name, slot, gid, type)                                                            \
	"f " dir "/infiniband/" name "/ports/1/gids/" slot " = " gid "\\n\n"                       \
	"f " dir "/infiniband/" name "/ports/1/gid_attrs/types/" slot " = " type "\\n\n"
#define PKEY(dir, name, slot, key)                                                                 \
	"f " dir "/infiniband/" name "/ports/1/pkeys/" slot " = " key "\\n\n"
#define A_PF                                                                                       \
	LINK("0000:3b:00.0", "0000:3b:00.0")                                                       \
	IDS(PF, "0x1021")                                                                          \
	"f " PF "/sriov_totalvfs = 8\\n\n"                                                         \
	"f " PF "/sriov_numvfs = 2\\n\n"
#define A_VF(dir, addr, index)                                                                     \
	LINK(addr, addr)                                                                           \
	IDS(dir, "0x101e")                                                                         \
	"l " dir "/physfn -> ../0000:3b:00.0\nl " PF "/virtfn" index " -> ../" addr "\n"
#define MACHINE A_PF A_VF(VF0, "0000:3b:00.1", "0") A_VF(VF1, "0000:3b:00.2", "1")
#define OTHER_PF                                                                                   \
	LINK("0000:3c:00.0", "0000:3c:00.0")                                                       \
	IDS(PF2, "0x1021")                                                                         \
	"f " PF2 "/sriov_totalvfs = 8\\n\n"                                                        \
	"f " PF2 "/sriov_numvfs = 1\\n\n" LINK("0000:3c:00.1", "0000:3c:00.1")                     \
		IDS(VF2, "0x101e") "l " VF2 "/physfn -> ../0000:3c:00.0\nl " PF2                   \
				   "/virtfn0 -> ../0000:3c:00.1\n"
#define ACTIVE "4: ACTIVE"
#define DOWN   "1: DOWN"
#define IB     "InfiniBand"
#define ETH    "Ethernet"

#define IB_MACHINE(state0, state1)                                                                 \
	MACHINE RDMA(PF, "mlx5_0", IB, ACTIVE) RDMA(VF0, "mlx5_1", IB, state0)                     \
		RDMA(VF1, "mlx5_2", IB, state1)
#define ETH_MACHINE(pf, state0, state1)                                                            \
	MACHINE RDMA(PF, "mlx5_0", ETH, pf) RDMA(VF0, "mlx5_1", ETH, state0)                       \
		RDMA(VF1, "mlx5_2", ETH, state1)

struct visit {
	struct sysroot *root;
	struct hw_inventory *inv;
	struct topo *topo;
	struct facts *f;
	struct diagnosis *r;
	struct facts_net net;	   /* a copy to change */
	struct facts_rdma rdma[8]; /* the same */
	struct facts_netdev netdev[8];
};

static void arrive(struct visit *v, const char *text)
{
	memset(v, 0, sizeof(*v));
	v->root = fixture_text(text);
	v->inv = fixture_discover(v->root);
	assert_int_equal(v->inv->n_notes, 0);
	v->topo = topo_new(v->inv, NULL);
	v->f = facts_gather(v->root, v->inv, v->topo, FACTS_OF_HERE);
	v->net = *v->f->net;
	assert_true(v->inv->n_rdma <= ARRAY_LEN(v->rdma) && v->inv->n_pci <= ARRAY_LEN(v->netdev));
	memcpy(v->rdma, v->net.rdma, v->inv->n_rdma * sizeof(*v->rdma));
	memcpy(v->netdev, v->net.netdev, v->inv->n_pci * sizeof(*v->netdev));
	v->net.rdma = v->rdma;
	v->net.netdev = v->netdev;
	v->f->net = &v->net;
}

static void run(struct visit *v, const char *only)
{
	struct err err = { 0 };

	diagnosis_free(STEAL(v->r));
	assert_int_equal(doctor_run(v->f, only, &v->r, &err), 0);
}

static void leave(struct visit *v)
{
	diagnosis_free(v->r);
	facts_free(v->f);
	topo_free(v->topo);
	hw_inventory_free(v->inv);
	fixture_close(v->root);
}

/* Exactly one finding of this verdict, with these words; and it says what it means. */
static void assert_found(const struct visit *v, enum diagnosis_verdict verdict,
			 const char *sentence)
{
	const struct diagnosis_finding *found = NULL;

	for (size_t i = 0; i < diagnosis_n(v->r); i++) {
		const struct diagnosis_finding *one = diagnosis_at(v->r, i);

		if (one->verdict == verdict && str_eq(one->sentence, sentence))
			found = one;
	}
	if (!found) {
		for (size_t i = 0; i < diagnosis_n(v->r); i++)
			print_message("%s %s\n",
				      diagnosis_verdict_name(diagnosis_at(v->r, i)->verdict),
				      diagnosis_at(v->r, i)->sentence);
		fail_msg("not said: %s %s", diagnosis_verdict_name(verdict), sentence);
	}
	if (verdict != DIAGNOSIS_PASS) {
		assert_non_null(found->advice->meaning);
		assert_non_null(found->advice->fix[DIAGNOSIS_GRUB]);
	}
}

/* One finding, this one. */
static void assert_only(struct visit *v, const char *check, enum diagnosis_verdict verdict,
			const char *sentence)
{
	run(v, check);
	assert_found(v, verdict, sentence);
	assert_int_equal(diagnosis_n(v->r), 1);
}

static void once(const char *text, const char *check, enum diagnosis_verdict verdict,
		 const char *sentence)
{
	struct visit v;

	arrive(&v, text);
	assert_only(&v, check, verdict, sentence);
	leave(&v);
}

#define ALL_VERBS                                                                                  \
	RDMA(PF, "mlx5_0", IB, ACTIVE)                                                             \
	RDMA(VF0, "mlx5_1", IB, ACTIVE)                                                            \
	RDMA(VF1, "mlx5_2", IB, ACTIVE) VERBS(VF0, "uverbs1", "mlx5_1")

static void an_infiniband_vf_needs_its_guids(void **state)
{
	struct visit v;

	(void)state;
	once(IB_MACHINE(ACTIVE, ACTIVE) GUID(VF0, "mlx5_1", "0011:2233:4455:6677")
		     GUID(VF1, "mlx5_2", "0011:2233:4455:6678"),
	     "vf-identity", DIAGNOSIS_PASS, "2 VFs have GUIDs or MAC addresses of their own.");
	once(IB_MACHINE(DOWN, DOWN) GUID(VF0, "mlx5_1", "0000:0000:0000:0000")
		     GUID(VF1, "mlx5_2", "0000:0000:0000:0000"),
	     "vf-identity", DIAGNOSIS_FAIL,
	     "2 of the 2 VFs of 0000:3b:00.0 (mlx5_0) have no GUID (node GUID zero): 0000:3b:00.1, 0000:3b:00.2.");
	arrive(&v, IB_MACHINE(DOWN, ACTIVE) GUID(VF0, "mlx5_1", "0011:2233:4455:6677")
			   GID(VF0, "mlx5_1", "0", "fe80:0000:0000:0000:0000:0000:0000:0000",
			       "IB/RoCE v1"));
	run(&v, "vf-identity");
	assert_found(&v, DIAGNOSIS_FAIL, "VF 0000:3b:00.1 (mlx5_1) has no port GUID (it is zero).");
	assert_found(&v, DIAGNOSIS_UNKNOWN,
		     "VF 0000:3b:00.2 (mlx5_2) does not show its GUID or MAC address here.");
	leave(&v);
}

/* Where the VF itself does not show, what the administrator set counts. */
static void guids_that_nobody_set_are_seen_at_the_pf(void **state)
{
	static const struct hw_vf_admin vfs[] = {
		{ .index = 0, .has_guids = true, .node_guid = 1, .port_guid = 2 },
		{ .index = 1, .has_guids = true }
	};
	struct visit v;

	(void)state;
	arrive(&v, IB_MACHINE(ACTIVE, DOWN));
	v.netdev[0].vfs = vfs;
	v.netdev[0].n_vfs = 2;
	run(&v, "vf-identity");
	assert_found(&v, DIAGNOSIS_FAIL,
		     "VF 0000:3b:00.2 (mlx5_2) has no GUID (its node GUID is zero).");
	assert_found(&v, DIAGNOSIS_PASS, "1 VF has a GUID or MAC address of its own.");
	leave(&v);
}

static void no_two_vfs_have_one_address(void **state)
{
	struct visit v;

	(void)state;
	once(ETH_MACHINE(ACTIVE, ACTIVE, ACTIVE) NET(VF0, "eth1", "address", "02:00:00:00:00:01")
		     NET(VF1, "eth2", "address", "02:00:00:00:00:01"),
	     "vf-identity", DIAGNOSIS_FAIL,
	     "2 of the 2 VFs of 0000:3b:00.0 (mlx5_0) have MAC addresses that other VFs have, too: 0000:3b:00.1, 0000:3b:00.2.");
	once(ETH_MACHINE(ACTIVE, ACTIVE, ACTIVE) NET(VF0, "eth1", "address", "02:00:00:00:00:01")
		     NET(VF1, "eth2", "address", "02:00:00:00:00:02")
			     GUID(VF0, "mlx5_1", "0011:2233:4455:6677")
				     GUID(VF1, "mlx5_2", "0011:2233:4455:6677"),
	     "vf-identity", DIAGNOSIS_FAIL,
	     "2 of the 2 VFs of 0000:3b:00.0 (mlx5_0) have node GUIDs that other VFs have, too: 0000:3b:00.1, 0000:3b:00.2.");
	once(IB_MACHINE(ACTIVE, ACTIVE) GUID(VF0, "mlx5_1", "0011:2233:4455:6677")
		     GUID(VF1, "mlx5_2", "0011:2233:4455:6677"),
	     "vf-identity", DIAGNOSIS_FAIL,
	     "2 of the 2 VFs of 0000:3b:00.0 (mlx5_0) have node GUIDs that other VFs have, too: 0000:3b:00.1, 0000:3b:00.2.");
	arrive(&v, IB_MACHINE(ACTIVE, ACTIVE) GUID(VF0, "mlx5_1", "ffff:ffff:ffff:ffff")
			   GUID(VF1, "mlx5_2", "0011:2233:4455:6677"));
	run(&v, "vf-identity");
	assert_found(&v, DIAGNOSIS_FAIL,
		     "VF 0000:3b:00.1 (mlx5_1) has a GUID or MAC address of all ones.");
	assert_found(&v, DIAGNOSIS_PASS, "1 VF has a GUID or MAC address of its own.");
	leave(&v);
}

#define CONF(netdev, file, value) "f proc/sys/net/ipv4/conf/" netdev "/" file " = " value "\\n\n"
#define CONFS(netdev, ignore, announce, filter)                                                    \
	CONF(netdev, "arp_ignore", ignore)                                                         \
	CONF(netdev, "arp_announce", announce) CONF(netdev, "rp_filter", filter)
#define ROUTE(netdev, to, gateway, mask)                                                           \
	netdev "\\x09" to "\\x09" gateway "\\x090001\\x090\\x090\\x090\\x09" mask "\\n"
#define ROUTES(first, second)                                                                      \
	"f proc/net/route = Iface\\x09Destination\\x09Gateway\\n" ROUTE("eth0", "00000000",        \
									"0100A8C0", "00000000")    \
		ROUTE("eth1", first, "00000000", "00FFFFFF")                                       \
			ROUTE("eth2", "05010A0A", "00000000", "FFFFFFFF")                          \
				ROUTE("eth2", second, "00000000", "00FFFFFF") "\n"
#define TWO_RAILS                                                                                  \
	ETH_MACHINE(ACTIVE, ACTIVE, ACTIVE)                                                        \
	NET(VF0, "eth1", "mtu", "4200") NET(VF1, "eth2", "mtu", "4200")
#define ONE_SUBNET TWO_RAILS ROUTES("0001000A", "0001000A")

static void rails_in_one_subnet_answer_for_themselves(void **state)
{
	struct visit v;

	(void)state;
	once(ONE_SUBNET CONFS("all", "0", "0", "0") CONFS("eth1", "0", "0", "0")
		     CONFS("eth2", "1", "2", "0"),
	     "arp", DIAGNOSIS_WARN,
	     "eth1, eth2 are in one subnet, 10.0.1.0/24, with arp_ignore=0 and arp_announce=0.");
	once(ONE_SUBNET CONFS("all", "1", "0", "0") CONFS("eth1", "0", "2", "0")
		     CONFS("eth2", "0", "0", "0"),
	     "arp", DIAGNOSIS_WARN,
	     "eth1, eth2 are in one subnet, 10.0.1.0/24, with arp_ignore=1 and arp_announce=0.");
	/* 1 keeps the address of another interface if it is of the peer's subnet; 3 answers all. */
	once(ONE_SUBNET CONFS("all", "1", "1", "0") CONFS("eth1", "0", "2", "0")
		     CONFS("eth2", "0", "0", "0"),
	     "arp", DIAGNOSIS_WARN,
	     "eth1, eth2 are in one subnet, 10.0.1.0/24, with arp_ignore=1 and arp_announce=1.");
	once(ONE_SUBNET CONFS("all", "3", "2", "0") CONFS("eth1", "0", "0", "0")
		     CONFS("eth2", "0", "0", "0"),
	     "arp", DIAGNOSIS_WARN,
	     "eth1, eth2 are in one subnet, 10.0.1.0/24, with arp_ignore=3 and arp_announce=2.");
	once(ONE_SUBNET CONFS("all", "1", "2", "0") CONFS("eth1", "0", "0", "1")
		     CONFS("eth2", "0", "0", "2"),
	     "arp", DIAGNOSIS_WARN, "eth1, eth2 are in one subnet, 10.0.1.0/24, with rp_filter=1.");
	once(ONE_SUBNET CONFS("all", "1", "2", "2") CONFS("eth1", "0", "0", "1")
		     CONFS("eth2", "0", "0", "1"),
	     "arp", DIAGNOSIS_PASS,
	     "eth1, eth2 are in one subnet, 10.0.1.0/24, with arp_ignore=1 and arp_announce=2.");
	once(ONE_SUBNET CONFS("all", "1", "2", "0"), "arp", DIAGNOSIS_UNKNOWN,
	     "eth1, eth2 are in one subnet, 10.0.1.0/24, and how they answer ARP is not visible.");
	/* A second RDMA device of a function is no second interface. */
	arrive(&v, TWO_RAILS RDMA(VF0, "rxe0", ETH, ACTIVE) ROUTES("0001000A", "0002000A")
			   CONFS("all", "0", "0", "0") CONFS("eth1", "0", "0", "0")
				   CONFS("eth2", "0", "0", "0"));
	run(&v, "arp");
	assert_int_equal(diagnosis_n(v.r), 0);
	leave(&v);
	arrive(&v, TWO_RAILS ROUTES("0001000A", "0002000A") CONFS("all", "0", "0", "0")
			   CONFS("eth1", "0", "0", "0") CONFS("eth2", "0", "0", "0"));
	run(&v, "arp");
	assert_int_equal(diagnosis_n(v.r), 0);
	leave(&v);
}

static void a_vf_on_ethernet_needs_an_address(void **state)
{
	struct visit v;

	(void)state;
	arrive(&v,
	       ETH_MACHINE(ACTIVE, DOWN, ACTIVE) NET(VF0, "eth1", "address", "00:00:00:00:00:00")
		       NET(VF1, "eth2", "address", "02:00:00:00:00:01")
			       GUID(VF1, "mlx5_2", "0000:0000:0000:0000"));
	run(&v, "vf-identity");
	assert_found(&v, DIAGNOSIS_FAIL,
		     "VF 0000:3b:00.1 (mlx5_1, eth1) has no MAC address (it is zero).");
	assert_found(&v, DIAGNOSIS_WARN, "VF 0000:3b:00.2 (mlx5_2, eth2) has the node GUID zero.");
	leave(&v);
}

static void what_the_administrator_set_is_told(void **state)
{
	static const struct hw_vf_admin vfs[] = {
		{ .index = 0, .link = HW_VF_LINK_AUTO, .trust = 1, .spoofchk = -1 },
		{ .index = 1, .link = HW_VF_LINK_ENABLE, .trust = 0, .spoofchk = 1 },
	};
	static const struct hw_vf_admin disabled[] = { { .index = 0, .link = HW_VF_LINK_DISABLE },
						       { .index = 1, .link = HW_VF_LINK_AUTO } };
	struct visit v;

	(void)state;
	arrive(&v, IB_MACHINE(ACTIVE, ACTIVE));
	assert_only(
		&v, "vf-admin", DIAGNOSIS_UNKNOWN,
		"What the administrator set for the VFs of 0000:3b:00.0 (mlx5_0) is not known: this is not the running machine.");
	v.netdev[0].why_no_vfs = NULL;
	v.netdev[0].vfs = vfs;
	v.netdev[0].n_vfs = 2;
	assert_only(
		&v, "vf-admin", DIAGNOSIS_PASS,
		"No link of the 2 VFs of 0000:3b:00.0 (mlx5_0) is disabled (1 always up, the others follow the port); 1 are trusted, 1 have spoof checking.");
	v.inv->pci[1].rate_mbps = 10000;
	run(&v, "vf-admin");
	assert_found(&v, DIAGNOSIS_PASS,
		     "1 of the 2 VFs of 0000:3b:00.0 (mlx5_0) may send 10000 Mb/s at most.");
	v.inv->pci[2].rate_mbps = 25000;
	run(&v, "vf-admin");
	assert_found(
		&v, DIAGNOSIS_PASS,
		"2 of the 2 VFs of 0000:3b:00.0 (mlx5_0) may send 10000 to 25000 Mb/s at most.");
	v.inv->pci[1].rate_mbps = v.inv->pci[2].rate_mbps = 0;
	v.netdev[0].vfs = disabled;
	assert_only(
		&v, "vf-admin", DIAGNOSIS_FAIL,
		"1 of the 2 VFs of 0000:3b:00.0 (mlx5_0) have their link state set to disable: VF 0.");
	leave(&v);
}

static void every_vf_needs_a_verbs_device_and_its_node(void **state)
{
	struct visit v;

	(void)state;
	arrive(&v, MACHINE ALL_VERBS);
	run(&v, "uverbs");
	assert_found(&v, DIAGNOSIS_PASS, "1 VF has its verbs device.");
	assert_found(&v, DIAGNOSIS_FAIL, "VF 0000:3b:00.2 (mlx5_2) has no verbs device (uverbsN).");
	v.rdma[1].node = FACTS_NO;
	run(&v, "uverbs");
	assert_found(
		&v, DIAGNOSIS_FAIL,
		"VF 0000:3b:00.1 (mlx5_1) has a verbs device, but no node of it in /dev/infiniband.");
	leave(&v);
}

/* Seen from a container, a VF without a node is another container's. */
static void a_container_is_about_its_own_vfs(void **state)
{
	struct visit v;

	(void)state;
	arrive(&v, MACHINE ALL_VERBS VERBS(VF1, "uverbs2", "mlx5_2"));
	v.f->container = FACTS_YES;
	v.rdma[1].node = FACTS_YES;
	v.rdma[2].node = FACTS_NO;
	assert_only(&v, "uverbs", DIAGNOSIS_PASS, "1 VF has its verbs device.");
	v.rdma[1].node = FACTS_NO;
	assert_only(&v, "uverbs", DIAGNOSIS_FAIL,
		    "This container has the node of none of the 2 VFs that it sees in /sys.");
	v.f->container = FACTS_NO; /* railmate's, which judges the node and has no nodes in /dev */
	v.rdma[1].node = v.rdma[2].node = FACTS_UNKNOWN;
	assert_only(&v, "uverbs", DIAGNOSIS_PASS, "2 VFs have their verbs devices.");
	leave(&v);
}

static void ports_have_to_be_active(void **state)
{
	(void)state;
	once(IB_MACHINE(ACTIVE, ACTIVE), "port", DIAGNOSIS_PASS, "2 VFs have ACTIVE ports.");
	once(IB_MACHINE(DOWN, DOWN), "port", DIAGNOSIS_FAIL,
	     "2 of the 2 VFs of 0000:3b:00.0 (mlx5_0) have ports that are not ACTIVE: 0000:3b:00.1, 0000:3b:00.2.");
	once(IB_MACHINE("2: INIT", "3: ARMED"), "port", DIAGNOSIS_FAIL,
	     "2 of the 2 VFs of 0000:3b:00.0 (mlx5_0) have ports that the subnet manager has not made ACTIVE: 0000:3b:00.1, 0000:3b:00.2.");
	/* The PF's port is the reason, and it is said once. */
	once(ETH_MACHINE(DOWN, DOWN, DOWN), "port", DIAGNOSIS_FAIL,
	     "Port 1 of 0000:3b:00.0 (mlx5_0) is DOWN (LinkUp).");
}

static void an_idle_vf_on_the_host_is_no_failure(void **state)
{
	static const char text[] = ETH_MACHINE(ACTIVE, DOWN, DOWN)
		NET(VF0, "eth1", "flags", "0x1002") NET(VF1, "eth2", "flags", "0x1003");
	struct visit v;

	(void)state;
	arrive(&v, text);
	run(&v, "port");
	assert_found(
		&v, DIAGNOSIS_PASS,
		"VF 0000:3b:00.1 (mlx5_1, eth1) is idle: its interface is switched off, so its port is down.");
	assert_found(&v, DIAGNOSIS_FAIL,
		     "VF 0000:3b:00.2 (mlx5_2, eth2) has a port that is not ACTIVE.");
	v.f->container = FACTS_YES;
	v.rdma[1].node = v.rdma[2].node = FACTS_YES;
	run(&v, "port");
	assert_found(
		&v, DIAGNOSIS_FAIL,
		"VF 0000:3b:00.1 (mlx5_1, eth1) has a port that is not ACTIVE: its interface is switched off.");
	leave(&v);
}

/* A capture of before `flags` was captured: what the kernel says of a carrier then. */
static void an_interface_without_flags_is_off_when_it_has_no_carrier_to_tell(void **state)
{
	struct visit v;

	(void)state;
	arrive(&v, ETH_MACHINE(ACTIVE, DOWN, DOWN) "f " VF0 "/net/eth1/carrier = \n"
						   "l sys/class/net/eth1 -> ../../../" VF0
						   "/net/eth1\n" NET(VF1, "eth2", "carrier", "0"));
	run(&v, "port");
	assert_found(
		&v, DIAGNOSIS_PASS,
		"VF 0000:3b:00.1 (mlx5_1, eth1) is idle: its interface is switched off, so its port is down.");
	assert_found(&v, DIAGNOSIS_FAIL,
		     "VF 0000:3b:00.2 (mlx5_2, eth2) has a port that is not ACTIVE.");
	leave(&v);
}

static void a_port_without_a_state_is_unknown(void **state)
{
	struct visit v;

	(void)state;
	arrive(&v, MACHINE RDMA(PF, "mlx5_0", IB, ACTIVE) RDMA(
			   VF0, "mlx5_1", IB,
			   ACTIVE) "f " VF1 "/infiniband/mlx5_2/ports/1/link_layer = " IB "\\n\n");
	run(&v, "port");
	assert_found(&v, DIAGNOSIS_UNKNOWN,
		     "VF 0000:3b:00.2 (mlx5_2) does not show the state of its port.");
	leave(&v);
	once(MACHINE RDMA(PF, "mlx5_0", IB, ACTIVE) "d " VF0 "/infiniband/mlx5_1\n", "port",
	     DIAGNOSIS_FAIL, "VF 0000:3b:00.1 (mlx5_1) has no port.");
}

static void a_pf_slower_than_its_like_is_told(void **state)
{
	struct visit v;

	(void)state;
	arrive(&v, ETH_MACHINE(ACTIVE, ACTIVE, ACTIVE) OTHER_PF RDMA(PF2, "mlx5_3", ETH, ACTIVE)
			   RATE(PF, "mlx5_0", "400 Gb/sec (4X NDR)")
				   RATE(PF2, "mlx5_3", "100 Gb/sec (4X EDR)"));
	run(&v, "port");
	assert_found(
		&v, DIAGNOSIS_WARN,
		"Port 1 of 0000:3c:00.0 (mlx5_3) runs at 100 Gb/s, others of its model at 400.");
	leave(&v);
}

static void roce_needs_large_frames(void **state)
{
	static const struct {
		const char *text;
		enum diagnosis_verdict verdict;
		const char *sentence;
	} rows[] = {
#define PF_MTU(mtu) ETH_MACHINE(ACTIVE, ACTIVE, ACTIVE) NET(PF, "eth0", "mtu", mtu)
		{ PF_MTU("9000"), DIAGNOSIS_PASS,
		  "0000:3b:00.0 (mlx5_0, eth0) has the MTU 9000: RoCE packets carry 4096 bytes." },
		{ PF_MTU("4192"), DIAGNOSIS_PASS,
		  "0000:3b:00.0 (mlx5_0, eth0) has the MTU 4192: RoCE packets carry 4096 bytes." },
		{ PF_MTU("4191"), DIAGNOSIS_WARN,
		  "0000:3b:00.0 (mlx5_0, eth0) has the MTU 4191, so RoCE packets carry 2048 bytes." },
		{ PF_MTU("1500"), DIAGNOSIS_WARN,
		  "0000:3b:00.0 (mlx5_0, eth0) has the MTU 1500, so RoCE packets carry 1024 bytes." },
		{ PF_MTU("68"), DIAGNOSIS_WARN,
		  "0000:3b:00.0 (mlx5_0, eth0) has the MTU 68, so RoCE packets carry 256 bytes." },
		{ ETH_MACHINE(ACTIVE, ACTIVE, ACTIVE), DIAGNOSIS_UNKNOWN,
		  "The MTU of 0000:3b:00.0 (mlx5_0) is not known." },
	};
	struct visit v;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		once(rows[i].text, "mtu", rows[i].verdict, rows[i].sentence);
	arrive(&v, PF_MTU("9000") NET(VF0, "eth1", "mtu", "1500") NET(VF1, "eth2", "mtu", "9000"));
	run(&v, "mtu");
	assert_found(&v, DIAGNOSIS_WARN,
		     "VF 0000:3b:00.1 (mlx5_1, eth1) has a smaller MTU than its PF.");
	assert_found(&v, DIAGNOSIS_PASS, "1 VF has an MTU for full RoCE packets, or its PF's.");
	leave(&v);
	arrive(&v, IB_MACHINE(ACTIVE, ACTIVE) NET(PF, "ib0", "mtu", "2044"));
	run(&v, "mtu");
	assert_int_equal(diagnosis_n(v.r), 0); /* InfiniBand's own is not in sysfs */
	leave(&v);
}

static void pfs_with_different_mtus_are_told(void **state)
{
	struct visit v;

	(void)state;
	arrive(&v, PF_MTU("9000") OTHER_PF RDMA(PF2, "mlx5_3", ETH, ACTIVE)
			   NET(PF2, "eth9", "mtu", "4500"));
	run(&v, "mtu");
	assert_found(&v, DIAGNOSIS_WARN,
		     "PFs have different MTUs: 0000:3b:00.0 9000, 0000:3c:00.0 4500.");
	leave(&v);
}

static struct hw_dcb lossless(int pfc, enum hw_dcb_trust trust)
{
	struct hw_dcb dcb = hw_dcb_unknown();

	dcb.pfc = pfc;
	dcb.trust = trust;
	for (int i = 24; trust == HW_DCB_TRUST_DSCP && i < 32; i++)
		dcb.priority_of_dscp[i] = 3;
	return dcb;
}

static void qos_of_the_pf_is_told(void **state)
{
	static const struct {
		int pfc;
		enum hw_dcb_trust trust;
		int mark;
		enum diagnosis_verdict verdict;
		const char *sentence;
	} rows[] = {
		{ 8, HW_DCB_TRUST_DSCP, -1, DIAGNOSIS_PASS,
		  "0000:3b:00.0 (mlx5_0) has PFC on priority 3, which DSCP 24-31 leads to (NCCL_IB_TC is the DSCP times 4)." },
		{ 8, HW_DCB_TRUST_DSCP, 106, DIAGNOSIS_PASS,
		  "0000:3b:00.0 (mlx5_0) has PFC on priority 3, which DSCP 24-31 leads to (NCCL_IB_TC is the DSCP times 4)." },
		{ 9, HW_DCB_TRUST_DSCP, -1, DIAGNOSIS_PASS,
		  "0000:3b:00.0 (mlx5_0) has PFC on priority 0, 3, which DSCP 0-63 leads to (NCCL_IB_TC is the DSCP times 4)." },
		{ 0, HW_DCB_TRUST_DSCP, -1, DIAGNOSIS_WARN,
		  "0000:3b:00.0 (mlx5_0) has PFC on no priority: its port is lossy." },
		{ 8, HW_DCB_TRUST_PCP, -1, DIAGNOSIS_WARN,
		  "0000:3b:00.0 (mlx5_0) has PFC on priority 3, but trusts the VLAN priority and looks at no DSCP." },
		{ 16, HW_DCB_TRUST_DSCP, -1, DIAGNOSIS_WARN,
		  "0000:3b:00.0 (mlx5_0) has PFC on priority 4, but its map leads no DSCP there." },
		{ 16, HW_DCB_TRUST_DSCP, 106, DIAGNOSIS_WARN,
		  "0000:3b:00.0 (mlx5_0): the host marks all packets with the traffic class 106, whatever NCCL asks for; NCCL_IB_TC 106 is DSCP 26, which it puts on priority 3, but PFC is enabled on priority 4 only." },
		{ -1, HW_DCB_TRUST_DSCP, -1, DIAGNOSIS_UNKNOWN,
		  "PFC and trust of 0000:3b:00.0 (mlx5_0) are not known: not reported by the driver." },
	};
	struct visit v;

	(void)state;
	arrive(&v, ETH_MACHINE(ACTIVE, ACTIVE, ACTIVE));
	assert_only(
		&v, "qos", DIAGNOSIS_UNKNOWN,
		"PFC and trust of 0000:3b:00.0 (mlx5_0) are not known: this is not the running machine.");
	v.netdev[0].why_no_dcb = NULL;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		v.netdev[0].dcb = lossless(rows[i].pfc, rows[i].trust);
		v.rdma[0].traffic_class = rows[i].mark;
		assert_only(&v, "qos", rows[i].verdict, rows[i].sentence);
	}
	leave(&v);
}

static void congestion_control_is_held_against_pfc(void **state)
{
	static const struct {
		int notify, react, pfc;
		enum diagnosis_verdict verdict;
		const char *sentence;
	} rows[] = {
		{ 8, 8, 8, DIAGNOSIS_PASS, "0000:3b:00.0 (mlx5_0) has ECN on priority 3." },
		{ 255, 8, -1, DIAGNOSIS_PASS, "0000:3b:00.0 (mlx5_0) has ECN on priority 3." },
		{ 1, 8, 8, DIAGNOSIS_WARN,
		  "0000:3b:00.0 (mlx5_0) does not report ECN marks on the priority that PFC makes lossless." },
		{ 8, 0, 8, DIAGNOSIS_WARN,
		  "0000:3b:00.0 (mlx5_0) does not slow down for ECN marks on the priority that PFC makes lossless." },
		{ 0, 0, 0, DIAGNOSIS_WARN,
		  "0000:3b:00.0 (mlx5_0) does not report ECN marks on any priority." },
		{ -1, -1, 8, DIAGNOSIS_UNKNOWN,
		  "ECN of 0000:3b:00.0 (mlx5_0) is not known: its driver does not report it." },
	};
	struct visit v;

	(void)state;
	arrive(&v, ETH_MACHINE(ACTIVE, ACTIVE, ACTIVE));
	v.inv->pci[0].driver = "mlx5_core";
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		v.netdev[0].dcb = lossless(rows[i].pfc, HW_DCB_TRUST_DSCP);
		v.netdev[0].ecn_notify = rows[i].notify;
		v.netdev[0].ecn_react = rows[i].react;
		assert_only(&v, "ecn", rows[i].verdict, rows[i].sentence);
	}
	v.inv->pci[0].driver = "ice";
	run(&v, "ecn");
	assert_int_equal(diagnosis_n(v.r), 0);
	leave(&v);
}

#define ECN(end, priority, value)                                                                  \
	"f " PF "/net/eth0/ecn/" end "/enable/" priority " = " value "\\n\n"

static void congestion_control_is_read(void **state)
{
	struct visit v;

	(void)state;
	arrive(&v, PF_MTU("9000") ECN("roce_np", "0", "1") ECN("roce_np", "3", "1")
			   ECN("roce_rp", "3", "0") ECN("roce_rp", "4", "odd"));
	assert_int_equal(v.netdev[0].ecn_notify, 9);
	assert_int_equal(v.netdev[0].ecn_react, 0);
	leave(&v);
	arrive(&v, PF_MTU("9000"));
	assert_int_equal(v.netdev[0].ecn_notify, -1);
	assert_int_equal(v.netdev[0].ecn_react, -1);
	leave(&v);
}

static void pfs_with_different_pfc_are_told(void **state)
{
	struct visit v;

	(void)state;
	arrive(&v, ETH_MACHINE(ACTIVE, ACTIVE, ACTIVE) OTHER_PF RDMA(PF2, "mlx5_3", ETH, ACTIVE));
	v.netdev[0].dcb = lossless(8, HW_DCB_TRUST_DSCP);
	v.netdev[3].dcb = lossless(0, HW_DCB_TRUST_DSCP);
	run(&v, "qos");
	assert_found(
		&v, DIAGNOSIS_WARN,
		"PFs have PFC on different priorities: 0000:3b:00.0 on 3, 0000:3c:00.0 on no priority.");
	leave(&v);
}

static void the_mark_of_the_host_is_read(void **state)
{
	struct visit v;

	(void)state;
	arrive(&v,
	       ETH_MACHINE(
		       ACTIVE, ACTIVE,
		       ACTIVE) "f " PF
			       "/infiniband/mlx5_0/tc/1/traffic_class = Global tclass=106\\n\n");
	assert_int_equal(v.rdma[0].traffic_class, 106);
	assert_int_equal(v.rdma[1].traffic_class, -1);
	leave(&v);
	arrive(&v,
	       ETH_MACHINE(
		       ACTIVE, ACTIVE,
		       ACTIVE) "f " PF
			       "/infiniband/mlx5_0/tc/1/traffic_class = Global tclass=1006\\n\n");
	assert_int_equal(v.rdma[0].traffic_class, -1);
	leave(&v);
}

#define FW(dir, name, fw, board)                                                                   \
	"f " dir "/infiniband/" name "/fw_ver = " fw "\\n\n"                                       \
	"f " dir "/infiniband/" name "/board_id = " board "\\n\n"

static void cards_of_one_model_have_one_firmware(void **state)
{
	struct visit v;

	(void)state;
	arrive(&v, IB_MACHINE(ACTIVE, ACTIVE) OTHER_PF RDMA(PF2, "mlx5_3", IB, ACTIVE)
			   FW(PF, "mlx5_0", "28.39.1002", "MT_01")
				   FW(PF2, "mlx5_3", "28.36.1010", "MT_02"));
	run(&v, "firmware");
	assert_found(
		&v, DIAGNOSIS_WARN,
		"PFs 15b3:1021 have different firmware: 28.39.1002 (0000:3b:00.0), 28.36.1010 (0000:3c:00.0).");
	assert_found(
		&v, DIAGNOSIS_WARN,
		"PFs 15b3:1021 have different boards: MT_01 (0000:3b:00.0), MT_02 (0000:3c:00.0).");
	leave(&v);
	once(IB_MACHINE(ACTIVE, ACTIVE) OTHER_PF RDMA(PF2, "mlx5_3", IB, ACTIVE)
		     FW(PF, "mlx5_0", "28.39.1002", "MT_01")
			     FW(PF2, "mlx5_3", "28.39.1002", "MT_01"),
	     "firmware", DIAGNOSIS_PASS, "PFs of one model have the same firmware and board.");
}

#define REP(name, port)                                                                            \
	NET(PF, name, "phys_port_name", port)                                                      \
	"f " PF "/net/" name "/flags = 0x1003\\n\n"

static void vfs_of_a_switchdev_pf_need_representors(void **state)
{
	static const char text[] =
		ETH_MACHINE(ACTIVE, ACTIVE, ACTIVE) NET(PF, "eth0", "phys_port_name", "p0")
			REP("eth0_0", "pf0vf0") REP("eth0_1", "c1pf0vf1") REP("eth0_s", "pf0sf7");
	struct facts_representor reps[2];
	struct visit v;

	(void)state;
	arrive(&v, text);
	assert_int_equal(v.netdev[0].n_reps, 2);
	assert_only(
		&v, "switchdev", DIAGNOSIS_UNKNOWN,
		"0000:3b:00.0 (mlx5_0, eth0) is in switchdev mode; what its representors are attached to is not known.");
	memcpy(reps, v.netdev[0].reps, sizeof(reps));
	reps[0].attached = reps[1].attached = FACTS_YES;
	v.netdev[0].reps = reps;
	assert_only(
		&v, "switchdev", DIAGNOSIS_PASS,
		"0000:3b:00.0 (mlx5_0, eth0) is in switchdev mode, and every VF has a representor that is attached.");
	reps[0].up = FACTS_NO;
	reps[1].attached = FACTS_NO;
	assert_only(
		&v, "switchdev", DIAGNOSIS_WARN,
		"Representors of 0000:3b:00.0 (mlx5_0, eth0) (switchdev): that of VF 0 is switched off, that of VF 1 is attached to nothing.");
	v.netdev[0].n_reps = 1;
	run(&v, "switchdev");
	assert_found(
		&v, DIAGNOSIS_WARN,
		"Representors of 0000:3b:00.0 (mlx5_0, eth0) (switchdev): that of VF 0 is switched off, that of VF 1 is missing.");
	leave(&v);
}

#define LOCAL(v) "fe80:0000:0000:0000:0200:00ff:fe00:000" v
#define IPV4(v)	 "0000:0000:0000:0000:0000:ffff:0a00:000" v
#define V1	 "IB/RoCE v1"
#define V2	 "RoCE v2"
#define ONE_VF	 A_PF A_VF(VF0, "0000:3b:00.1", "0") RDMA(VF0, "mlx5_1", ETH, ACTIVE)

static void gid_tables_are_judged_as_nccl_reads_them(void **state)
{
	static const struct {
		const char *text;
		enum diagnosis_verdict verdict;
		const char *sentence;
	} rows[] = {
#define SLOT(n, gid, type) GID(VF0, "mlx5_1", n, gid, type)
#define USUAL		   SLOT("0", LOCAL("1"), V1) SLOT("1", LOCAL("1"), V2) SLOT("2", IPV4("1"), V1)
		{ ONE_VF USUAL SLOT("3", IPV4("1"), V2), DIAGNOSIS_PASS,
		  "1 VF has a routable RoCE v2 GID." },
		{ ONE_VF SLOT("0", "2001:0db8:0000:0000:0000:0000:0000:0001", V2), DIAGNOSIS_PASS,
		  "1 VF has a routable RoCE v2 GID." },
		{ ONE_VF USUAL, DIAGNOSIS_UNKNOWN,
		  "VF 0000:3b:00.1 (mlx5_1) has no IP address yet, so no routable RoCE v2 GID." },
		{ ONE_VF SLOT("0", "0000:0000:0000:0000:0000:ffff:a9fe:0101", V2),
		  DIAGNOSIS_UNKNOWN,
		  "VF 0000:3b:00.1 (mlx5_1) has no IP address yet, so no routable RoCE v2 GID." },
		{ ONE_VF SLOT("0", IPV4("1"), V1), DIAGNOSIS_WARN,
		  "VF 0000:3b:00.1 (mlx5_1) has GIDs of RoCE v1 only." },
		{ ONE_VF USUAL SLOT("5", IPV4("1"), V2), DIAGNOSIS_WARN,
		  "VF 0000:3b:00.1 (mlx5_1) has holes in its GID table." },
		{ ONE_VF USUAL SLOT("3", IPV4("1"), V2) SLOT("4", IPV4("2"), ""), DIAGNOSIS_WARN,
		  "VF 0000:3b:00.1 (mlx5_1) has holes in its GID table." },
		{ ONE_VF USUAL SLOT("3", IPV4("1"), V2) SLOT("4", IPV4("2"), V2), DIAGNOSIS_WARN,
		  "VF 0000:3b:00.1 (mlx5_1) has several routable RoCE v2 GIDs of IPv4." },
		{ ONE_VF, DIAGNOSIS_UNKNOWN,
		  "VF 0000:3b:00.1 (mlx5_1) does not show its GID table." },
	};
	struct visit v;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		once(rows[i].text, "gid", rows[i].verdict, rows[i].sentence);
	arrive(&v, ONE_VF USUAL);
	v.f->container = FACTS_YES;
	assert_only(&v, "gid", DIAGNOSIS_FAIL,
		    "VF 0000:3b:00.1 (mlx5_1) has no routable RoCE v2 GID.");
	leave(&v);
}

static void partitions_need_a_full_member(void **state)
{
	static const struct {
		const char *text;
		enum diagnosis_verdict verdict;
		const char *sentence;
	} rows[] = {
#define IB_VF	    A_PF A_VF(VF0, "0000:3b:00.1", "0") RDMA(VF0, "mlx5_1", IB, ACTIVE)
#define KEY(n, key) PKEY(VF0, "mlx5_1", n, key)
		{ IB_VF KEY("0", "0xffff") KEY("1", "0x0000"), DIAGNOSIS_PASS,
		  "1 VF has the key of a full member at index 0." },
		{ IB_VF KEY("0", "0x7fff") KEY("1", "0x0001"), DIAGNOSIS_FAIL,
		  "VF 0000:3b:00.1 (mlx5_1) is a limited member of all its partitions." },
		{ IB_VF KEY("0", "0x0000") KEY("1", "0x0000"), DIAGNOSIS_FAIL,
		  "VF 0000:3b:00.1 (mlx5_1) has no partition key." },
		{ IB_VF KEY("0", "0x7fff") KEY("1", "0x8001"), DIAGNOSIS_WARN,
		  "VF 0000:3b:00.1 (mlx5_1) has no key of a full member at index 0, but a later one." },
		{ IB_VF, DIAGNOSIS_UNKNOWN,
		  "VF 0000:3b:00.1 (mlx5_1) does not show its partition keys." },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		once(rows[i].text, "pkey", rows[i].verdict, rows[i].sentence);
}

static void the_mode_of_rdma_namespaces_is_told(void **state)
{
#define MODE(letter)                                                                               \
	ONE_VF                                                                                     \
	"f sys/module/ib_core/parameters/netns_mode = " letter "\\n\n"
	struct visit v;

	(void)state;
	once(MODE("Y"), "rdma-netns", DIAGNOSIS_PASS,
	     "RDMA devices are shared by all network namespaces.");
	once(MODE("N"), "rdma-netns", DIAGNOSIS_WARN,
	     "RDMA devices are in one network namespace each (mode exclusive).");
	once(MODE("?"), "rdma-netns", DIAGNOSIS_UNKNOWN,
	     "Whether RDMA devices are shared by all network namespaces is not known.");
	arrive(&v, MODE("N"));
	v.f->container = FACTS_YES;
	assert_only(&v, "rdma-netns", DIAGNOSIS_PASS,
		    "RDMA devices are in one network namespace each (mode exclusive).");
	leave(&v);
}

static void limits_mean_something_in_a_container(void **state)
{
	struct visit v;

	(void)state;
	arrive(&v, ONE_VF);
	run(&v, "memlock,shm");
	assert_int_equal(diagnosis_n(v.r), 0); /* a tree has no limits */
	v.f->live = true;
	v.f->container = FACTS_NO;
	run(&v, "memlock,shm");
	assert_int_equal(diagnosis_n(v.r),
			 0); /* those of a shell on the host are not a container's */
	v.f->container = FACTS_UNKNOWN;
	assert_only(&v, "memlock", DIAGNOSIS_UNKNOWN,
		    "Whether this is a container is not known, nor what it may lock in memory.");
	assert_only(&v, "shm", DIAGNOSIS_UNKNOWN,
		    "Whether this is a container, and has its own /dev/shm, is not known.");
	v.f->container = FACTS_YES;
	v.net.memlock = 65536;
	v.net.ipc_lock = FACTS_NO;
	assert_only(&v, "memlock", DIAGNOSIS_WARN,
		    "This container may lock 64 KiB of memory and has no IPC_LOCK.");
	v.net.ipc_lock = FACTS_YES;
	assert_only(&v, "memlock", DIAGNOSIS_PASS,
		    "This container may lock any amount of memory (it has IPC_LOCK).");
	v.net.ipc_lock = FACTS_UNKNOWN;
	assert_only(&v, "memlock", DIAGNOSIS_UNKNOWN,
		    "How much memory this container may lock is not known.");
	v.net.memlock = -1;
	assert_only(&v, "memlock", DIAGNOSIS_PASS, "This container may lock any amount of memory.");
	v.net.shm = (int64_t)64 << 20;
	assert_only(&v, "shm", DIAGNOSIS_WARN, "/dev/shm has 64 MiB.");
	v.net.shm = (int64_t)8 << 30;
	assert_only(&v, "shm", DIAGNOSIS_PASS, "/dev/shm has 8192 MiB.");
	v.net.shm = -1;
	assert_only(&v, "shm", DIAGNOSIS_UNKNOWN, "The size of /dev/shm is not known.");
	leave(&v);
}

/* Seven VFs of one PF in the same trouble are one sentence. */
static void many_vfs_in_one_trouble_are_one_finding(void **state)
{
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;
	struct visit v;

	(void)state;
	strbuf_puts(&text, A_PF RDMA(PF, "mlx5_0", IB, ACTIVE));
	for (int i = 0; i < 7; i++) {
		char addr[16];

		snprintf(addr, sizeof(addr), "0000:3b:00.%d", i + 1);
		strbuf_printf(
			&text,
			"l sys/bus/pci/devices/%s -> ../../../devices/pci0000:3a/%s\n"
			"f " DIR("%s") "/vendor = 0x15b3\\n\nf " DIR(
				"%s") "/device = 0x101e\\n\n"
				      "f " DIR("%s") "/class = 0x020700\\n\nl " DIR(
					      "%s") "/physfn -> ../0000:3b:00.0\n"
						    "l " PF "/virtfn%d -> ../%s\n"
						    "f " DIR(
							    "%s") "/infiniband/mlx5_%d/ports/1/state = 1: DOWN\\n\n"
								  "f " DIR(
									  "%s") "/infiniband/mlx5_%d/ports/1/link_layer = InfiniBand\\n\n",
			addr, addr, addr, addr, addr, addr, i, addr, addr, i + 1, addr, i + 1);
	}
	arrive(&v, strbuf_str(&text));
	assert_only(
		&v, "port", DIAGNOSIS_FAIL,
		"7 of the 7 VFs of 0000:3b:00.0 (mlx5_0) have ports that are not ACTIVE: 0000:3b:00.1, 0000:3b:00.2, 0000:3b:00.3, 0000:3b:00.4 and 3 more.");
	leave(&v);
}

static void a_machine_without_rdma_has_nothing_to_say(void **state)
{
	struct visit v;

	(void)state;
	arrive(&v, "");
	run(&v,
	    "vf-identity,vf-admin,uverbs,port,mtu,qos,firmware,switchdev,gid,pkey,rdma-netns,memlock,shm");
	assert_int_equal(diagnosis_n(v.r), 0);
	leave(&v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_infiniband_vf_needs_its_guids),
		cmocka_unit_test(guids_that_nobody_set_are_seen_at_the_pf),
		cmocka_unit_test(no_two_vfs_have_one_address),
		cmocka_unit_test(rails_in_one_subnet_answer_for_themselves),
		cmocka_unit_test(a_vf_on_ethernet_needs_an_address),
		cmocka_unit_test(what_the_administrator_set_is_told),
		cmocka_unit_test(every_vf_needs_a_verbs_device_and_its_node),
		cmocka_unit_test(a_container_is_about_its_own_vfs),
		cmocka_unit_test(ports_have_to_be_active),
		cmocka_unit_test(an_idle_vf_on_the_host_is_no_failure),
		cmocka_unit_test(an_interface_without_flags_is_off_when_it_has_no_carrier_to_tell),
		cmocka_unit_test(a_port_without_a_state_is_unknown),
		cmocka_unit_test(a_pf_slower_than_its_like_is_told),
		cmocka_unit_test(roce_needs_large_frames),
		cmocka_unit_test(pfs_with_different_mtus_are_told),
		cmocka_unit_test(qos_of_the_pf_is_told),
		cmocka_unit_test(congestion_control_is_held_against_pfc),
		cmocka_unit_test(congestion_control_is_read),
		cmocka_unit_test(pfs_with_different_pfc_are_told),
		cmocka_unit_test(the_mark_of_the_host_is_read),
		cmocka_unit_test(cards_of_one_model_have_one_firmware),
		cmocka_unit_test(vfs_of_a_switchdev_pf_need_representors),
		cmocka_unit_test(gid_tables_are_judged_as_nccl_reads_them),
		cmocka_unit_test(partitions_need_a_full_member),
		cmocka_unit_test(the_mode_of_rdma_namespaces_is_told),
		cmocka_unit_test(limits_mean_something_in_a_container),
		cmocka_unit_test(many_vfs_in_one_trouble_are_one_finding),
		cmocka_unit_test(a_machine_without_rdma_has_nothing_to_say),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
