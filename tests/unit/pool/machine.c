#include "unit/pool/machine.h"

int machine_find(const struct hw_inventory *inv, const char *address)
{
	struct bdf bdf;

	assert_int_equal(bdf_parse(address, &bdf), 0);
	return hw_find_pci(inv, bdf);
}

struct hw_pci *machine_fn(struct hw_inventory *inv, const char *address)
{
	int pci = machine_find(inv, address);

	assert_true(pci >= 0);
	return &inv->pci[pci];
}

struct hw_rdma *machine_rdma(struct hw_inventory *inv, const char *address)
{
	int rdma = hw_find_rdma(inv, machine_find(inv, address));

	assert_true(rdma >= 0);
	return &inv->rdma[rdma];
}

void machine_take_rdma(struct hw_inventory *inv, const char *address)
{
	int at = hw_find_rdma(inv, machine_find(inv, address));

	assert_true(at >= 0);
	inv->n_rdma--;
	memmove(&inv->rdma[at], &inv->rdma[at + 1],
		(inv->n_rdma - (size_t)at) * sizeof(*inv->rdma));
}

void machine_take_pci(struct hw_inventory *inv, const char *address)
{
	int at = machine_find(inv, address);

	assert_true(at >= 0);
	if (hw_find_rdma(inv, at) >= 0)
		machine_take_rdma(inv, address);
	inv->n_pci--;
	memmove(&inv->pci[at], &inv->pci[at + 1], (inv->n_pci - (size_t)at) * sizeof(*inv->pci));
	for (size_t i = 0; i < inv->n_pci; i++)
		inv->pci[i].physfn -= inv->pci[i].physfn > at;
	for (size_t i = 0; i < inv->n_rdma; i++)
		inv->rdma[i].pci -= inv->rdma[i].pci > at;
}

static void machine_add(struct hw_inventory *inv, const char *address, uint32_t class_code,
			int physfn, int vf_index, enum hw_link link)
{
	struct hw_port port = {
		.number = 1, .state = "ACTIVE", .phys_state = "LinkUp", .link = link
	};
	struct hw_pci *fn = &inv->pci[inv->n_pci++];

	*fn = (struct hw_pci) {
		.class_code = class_code,
		.vendor = 0x15b3,
		.device = physfn >= 0 ? 0x101e : 0x101d,
		.parent = -1,
		.root_bus = 0x3a,
		.has_root = true,
		.physfn = physfn,
		.is_vf = physfn >= 0,
		.vf_index = vf_index,
		.driver = class_code == 0x010802 ? "nvme" : "mlx5_core",
		.carrier = -1,
		.acpi_index = -1,
		.acs_ctrl = -1,
	};
	assert_int_equal(bdf_parse(address, &fn->bdf), 0);
	if (class_code >> 16 != 0x02)
		return;
	inv->rdma[inv->n_rdma] = (struct hw_rdma) {
		.name = arena_printf(inv->arena, "mlx5_%zu", inv->n_rdma),
		.pci = (int)inv->n_pci - 1,
		.uverbs = arena_printf(inv->arena, "uverbs%zu", inv->n_rdma),
		.ports = arena_copy(inv->arena, &port, sizeof(port)),
		.n_ports = 1,
	};
	inv->n_rdma++;
}

/* A function that is found below a bridge, so that it does not look passed through to a VM. */
static void machine_pf(struct hw_inventory *inv, const char *address, const char *netdev,
		       enum hw_link link)
{
	struct hw_pci *fn = machine_fn(inv, address);

	fn->netdev = netdev;
	fn->parent = 0;
	fn->carrier = 1;
	fn->net_type = link == HW_LINK_IB ? 32 : 1;
}

struct hw_inventory *machine(void)
{
	struct arena *arena = arena_new(1024);
	struct hw_inventory *inv = arena_alloc(arena, sizeof(*inv));

	inv->arena = arena;
	inv->pci = arena_array(arena, 16, sizeof(*inv->pci));
	inv->rdma = arena_array(arena, 16, sizeof(*inv->rdma));
	machine_add(inv, "0000:3a:00.0", 0x060400, -1, -1, HW_LINK_UNKNOWN);
	machine_add(inv, "0000:3b:00.0", 0x020700, -1, -1, HW_LINK_IB);
	machine_add(inv, "0000:3b:00.1", 0x020700, 1, 0, HW_LINK_IB);
	machine_add(inv, "0000:3b:00.2", 0x020700, 1, 1, HW_LINK_IB);
	machine_add(inv, "0000:3b:00.3", 0x020700, 1, 2, HW_LINK_IB);
	machine_add(inv, "0000:5e:00.0", 0x020000, -1, -1, HW_LINK_ETHERNET);
	machine_add(inv, "0000:5e:00.1", 0x020000, 5, 0, HW_LINK_ETHERNET);
	machine_add(inv, "0000:5e:00.2", 0x020000, 5, 1, HW_LINK_ETHERNET);
	machine_add(inv, "0000:af:00.0", 0x020000, -1, -1, HW_LINK_ETHERNET);
	machine_add(inv, "0000:b0:00.0", 0x010802, -1, -1, HW_LINK_UNKNOWN);
	machine_pf(inv, "0000:3b:00.0", "ens1f0", HW_LINK_IB);
	machine_pf(inv, "0000:5e:00.0", "ens2f0", HW_LINK_ETHERNET);
	machine_pf(inv, "0000:af:00.0", "eno1", HW_LINK_ETHERNET);
	machine_fn(inv, "0000:3b:00.0")->sriov_total = 8;
	machine_fn(inv, "0000:3b:00.0")->sriov_num = 3;
	machine_fn(inv, "0000:5e:00.0")->sriov_total = 8;
	machine_fn(inv, "0000:5e:00.0")->sriov_num = 2;
	machine_fn(inv, "0000:5e:00.0")->acpi_index = 101;
	machine_fn(inv, "0000:af:00.0")->sriov_total = 8;
	machine_fn(inv, "0000:b0:00.0")->sriov_total = 8;
	return inv;
}

struct config *machine_config(const char *text)
{
	struct config *cfg = NULL;
	struct err err = { 0 };

	if (config_parse(text, strlen(text), "config.json", "rdma", &cfg, NULL, &err) < 0)
		fail_msg("%s", err.msg);
	return cfg;
}

void assert_pool(const struct node *node, const char *resource, const char *expected)
{
	const struct pool *pool = node_pool(node, resource);
	_cleanup_strbuf_ struct strbuf got = STRBUF_INIT;

	assert_non_null(pool);
	for (size_t i = 0; i < pool->n_devs; i++) {
		strbuf_printf(&got, "%s%s%s", i ? " " : "", pool->devs[i].id + strlen("0000:"),
			      pool->devs[i].healthy ? "" : "!");
		assert_int_equal(pool->devs[i].healthy, !pool->devs[i].reason);
	}
	assert_string_equal(strbuf_str(&got), expected);
}

void assert_note(const struct node *node, const char *text)
{
	for (size_t i = 0; i < node->n_notes; i++) {
		if (str_eq(node->notes[i], text))
			return;
	}
	fail_msg("no note '%s' among %zu", text, node->n_notes);
}

void node_unrefp(struct node **node)
{
	node_unref(*node);
}

void config_freep(struct config **cfg)
{
	config_free(*cfg);
}
