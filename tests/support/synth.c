#include "support/synth.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/mem.h"
#include "hw/inventory.h"

enum key {
	NUMA,
	ROOT,
	SWITCH,
	SUB,
	GPU,
	PF,
	UPF,
	VF,
	BCM4,
	BCM5,
	NOIDS,
	FLAT,
	HYPER,
	NOPF,
	KEY_MAX
};

static const struct {
	const char *word; /* with a colon: a number follows */
	int initial;
} keys[KEY_MAX] = {
	[NUMA] = { "numa:", 1 },  [ROOT] = { "root:", 1 },  [SWITCH] = { "switch:", 0 },
	[SUB] = { "sub:", 0 },	  [GPU] = { "gpu:", 0 },    [PF] = { "pf:", 0 },
	[UPF] = { "upf:", 0 },	  [VF] = { "vf:", 0 },	    [BCM4] = { "bcm4", 0 },
	[BCM5] = { "bcm5", 0 },	  [NOIDS] = { "noids", 0 }, [FLAT] = { "flat", 0 },
	[HYPER] = { "hyper", 0 }, [NOPF] = { "nopf", 0 },
};

struct builder {
	struct hw_inventory *inv;
	struct hw_pci *pci; /* heap, in order of creation */
	size_t n, cap;
	int key[KEY_MAX];
	int numa, n_numa;  /* current node, nodes so far */
	uint32_t domain;   /* current root complex */
	int bus, root_dev; /* last bus given out, next device on the root bus */
};

static void refuse(const char *line, const char *word)
{
	fprintf(stderr, "synth: '%s' is not understood in '%s'\n", word, line);
	abort();
}

static void read_word(struct builder *b, const char *line, const char *word)
{
	for (int k = 0; k < KEY_MAX; k++) {
		size_t len = strlen(keys[k].word);
		bool number = keys[k].word[len - 1] == ':';
		char *end = NULL;

		if (strncmp(word, keys[k].word, len) != 0 || (!number && word[len]))
			continue;
		b->key[k] = number ? (int)strtol(word + len, &end, 10) : 1;
		if (number && (end == word + len || *end || b->key[k] < 0))
			break;
		return;
	}
	refuse(line, word);
}

static int add(struct builder *b, int parent, int bus, int dev, int fn, uint32_t class_code)
{
	struct hw_pci *f;

	b->pci = xgrow(b->pci, &b->cap, b->n + 1, sizeof(*b->pci));
	f = &b->pci[b->n];
	*f = (struct hw_pci) {
		.bdf = { b->domain, (uint8_t)bus, (uint8_t)dev, (uint8_t)fn },
		.class_code = class_code,
		.vendor = 0x8086,
		.device = 0x1234,
		.parent = parent,
		.root_domain = b->domain,
		.has_root = true,
		.numa = b->numa,
		.physfn = -1,
		.vf_index = -1,
		.carrier = -1,
		.acpi_index = -1,
		.acs_ctrl = -1,
	};
	return (int)b->n++;
}

/* A place for one device: below a root port, a downstream port, or on the root bus (parent -1). */
struct slot {
	int parent, bus, dev;
};

static struct slot open_slot(struct builder *b, int upstream, int *next_dev)
{
	struct slot s = { upstream, 0, (*next_dev)++ };
	int bus = upstream >= 0 ? b->pci[upstream].bdf.bus + 1 : 0;

	if (upstream < 0 && b->key[FLAT]) {
		s.bus = 0;
		return s;
	}
	s.parent = add(b, upstream, bus, s.dev, 0, 0x060400);
	s.bus = ++b->bus;
	s.dev = 0;
	return s;
}

static void set_switch_ids(const struct builder *b, struct hw_pci *f, bool lower)
{
	if (!b->key[BCM4] && !b->key[BCM5])
		return;
	f->vendor = 0x1000;
	f->device = b->key[BCM4] ? 0xc010 : 0xc030;
	if (b->key[NOIDS])
		return;
	f->subvendor = 0x1000;
	f->subdevice = b->key[BCM4] ? 0xa024 : lower ? 0x1003 : 0x0003;
}

/* The upstream port; its secondary bus is the next number, so its downstream ports know theirs. */
static int add_switch(struct builder *b, struct slot s, bool lower)
{
	int up = add(b, s.parent, s.bus, s.dev, 0, 0x060400);

	set_switch_ids(b, &b->pci[up], lower);
	++b->bus;
	return up;
}

static void add_gpu(struct builder *b, struct slot s)
{
	int pci = add(b, s.parent, s.bus, s.dev, 0, 0x030200);

	b->pci[pci].vendor = 0x10de;
	b->pci[pci].device = 0x2330;
	b->pci[pci].driver = "nvidia";
}

static void set_nic(struct hw_pci *f, uint16_t device)
{
	f->vendor = 0x15b3;
	f->device = device;
	f->driver = "mlx5_core";
}

static void add_vfs(struct builder *b, struct slot s, int pf)
{
	for (int i = 0; i < b->key[VF]; i++) {
		int at = s.dev * 8 + i + (pf >= 0);
		int vf = add(b, s.parent, s.bus, at / 8, at % 8, 0x020700);

		set_nic(&b->pci[vf], 0x101e);
		if (pf < 0)
			continue;
		b->pci[vf].physfn = pf;
		b->pci[vf].is_vf = true;
		b->pci[vf].vf_index = i;
	}
}

static void add_pf(struct builder *b, struct slot s)
{
	int pf;

	if (b->key[NOPF]) {
		add_vfs(b, s, -1);
		return;
	}
	pf = add(b, s.parent, s.bus, s.dev, 0, 0x020700);
	set_nic(&b->pci[pf], 0x1021);
	b->pci[pf].sriov_total = 127;
	b->pci[pf].sriov_num = b->key[VF];
	b->pci[pf].carrier = 1;
	b->pci[pf].net_type = 32;
	add_vfs(b, s, pf);
}

static void add_devices(struct builder *b, int upstream, int *next_dev)
{
	for (int i = 0; i < b->key[GPU]; i++)
		add_gpu(b, open_slot(b, upstream, next_dev));
	for (int i = 0; i < b->key[PF]; i++) {
		add_pf(b, open_slot(b, upstream, next_dev));
		if (upstream < 0 && b->key[FLAT])
			*next_dev += b->key[VF] / 8; /* its VFs share the root bus */
	}
}

static void add_tree(struct builder *b)
{
	int dev = 0, upper = add_switch(b, open_slot(b, -1, &b->root_dev), false);

	for (int i = 0; i < b->key[UPF]; i++)
		add_pf(b, open_slot(b, upper, &dev));
	for (int i = 0; i < b->key[SUB]; i++) {
		int sub_dev = 0, lower = add_switch(b, open_slot(b, upper, &dev), true);

		add_devices(b, lower, &sub_dev);
	}
	if (b->key[SUB] == 0)
		add_devices(b, upper, &dev);
}

static void add_root(struct builder *b)
{
	b->bus = 0;
	b->root_dev = 1;
	for (int i = 0; i < b->key[SWITCH]; i++)
		add_tree(b);
	if (b->key[SWITCH] == 0)
		add_devices(b, -1, &b->root_dev);
	b->domain++;
}

static void add_segment(struct builder *b, const char *line, char *segment)
{
	char *save = NULL;
	int nodes;

	for (int k = 0; k < KEY_MAX; k++)
		b->key[k] = keys[k].initial;
	for (char *w = strtok_r(segment, " ", &save); w; w = strtok_r(NULL, " ", &save))
		read_word(b, line, w);
	b->inv->hypervisor = b->inv->hypervisor || b->key[HYPER];
	nodes = b->key[NUMA] > 0 ? b->key[NUMA] : 1;
	for (int n = 0; n < nodes; n++) {
		b->numa = b->key[NUMA] > 0 ? b->n_numa++ : -1;
		for (int r = 0; r < b->key[ROOT]; r++)
			add_root(b);
	}
}

static const struct builder *sorting; /* qsort has no argument for it */

static int by_address(const void *a, const void *b)
{
	return bdf_cmp(sorting->pci[*(const int *)a].bdf, sorting->pci[*(const int *)b].bdf);
}

/* Address order: the tables of an inventory are sorted, so indices move. */
static void sort_functions(struct builder *b)
{
	_cleanup_free_ int *order = xcalloc(b->n + 1, sizeof(*order));
	_cleanup_free_ int *moved = xcalloc(b->n + 1, sizeof(*moved));

	for (size_t i = 0; i < b->n; i++)
		order[i] = (int)i;
	sorting = b;
	qsort(order, b->n, sizeof(*order), by_address);
	for (size_t i = 0; i < b->n; i++)
		moved[order[i]] = (int)i;
	b->inv->pci = arena_array(b->inv->arena, b->n, sizeof(*b->inv->pci));
	b->inv->n_pci = b->n;
	for (size_t i = 0; i < b->n; i++) {
		struct hw_pci *f = &b->inv->pci[i];

		*f = b->pci[order[i]];
		f->parent = f->parent >= 0 ? moved[f->parent] : -1;
		f->physfn = f->physfn >= 0 ? moved[f->physfn] : -1;
	}
}

static void fill_gpu(struct hw_inventory *inv, int pci)
{
	int n = (int)inv->n_gpu;

	inv->gpu[inv->n_gpu++] = (struct hw_gpu) {
		.pci = pci,
		.vendor = "NVIDIA",
		.uuid = arena_printf(inv->arena, "GPU-00000000-0000-0000-0000-%012d", n),
		.minor = n,
		.card = -1,
	};
}

static void fill_rdma(struct hw_inventory *inv, int pci)
{
	static const struct hw_port port = { 1, "ACTIVE", "LinkUp", HW_LINK_IB, 400000 };
	int n = (int)inv->n_rdma;
	struct hw_pci *f = &inv->pci[pci];

	if (f->sriov_total > 0)
		f->netdev = arena_printf(inv->arena, "eth%d", n);
	inv->rdma[inv->n_rdma++] = (struct hw_rdma) {
		.name = arena_printf(inv->arena, "mlx5_%d", n),
		.pci = pci,
		.uverbs = arena_printf(inv->arena, "uverbs%d", n),
		.netdev = f->netdev,
		.ports = &port,
		.n_ports = 1,
	};
}

static bool is_nic(const struct hw_pci *f)
{
	return f->class_code >> 16 == 0x02;
}

static void fill_tables(struct hw_inventory *inv, int n_numa)
{
	inv->gpu = arena_array(inv->arena, inv->n_pci, sizeof(*inv->gpu));
	inv->rdma = arena_array(inv->arena, inv->n_pci, sizeof(*inv->rdma));
	inv->cpu = (struct hw_cpu) { "x86_64", "GenuineIntel", 6, 143 };
	inv->numa = arena_array(inv->arena, (size_t)n_numa, sizeof(*inv->numa));
	inv->n_numa = (size_t)n_numa;
	for (int i = 0; i < n_numa; i++)
		inv->numa[i] = (struct hw_numa) { .id = i, .cpumap = "00ff" };
	for (int i = 0; i < (int)inv->n_pci; i++) {
		if (is_nic(&inv->pci[i]))
			fill_rdma(inv, i);
		else if (inv->pci[i].class_code >> 16 == 0x03)
			fill_gpu(inv, i);
	}
}

struct hw_inventory *synth_inventory(const char *line)
{
	_cleanup_free_ char *text = xstrdup(line);
	struct arena *arena = arena_new(1 << 16);
	struct builder b = {
		.inv = arena_alloc(arena, sizeof(*b.inv))
	}; /* an inventory lives in its own arena */
	char *save = NULL;

	b.inv->arena = arena;
	b.inv->has_rdma_cm = true;
	for (char *s = strtok_r(text, ";", &save); s; s = strtok_r(NULL, ";", &save))
		add_segment(&b, line, s);
	sort_functions(&b);
	fill_tables(b.inv, b.n_numa);
	free(b.pci);
	return b.inv;
}

static bool is_pf(const struct hw_pci *f)
{
	return is_nic(f) && f->sriov_total > 0;
}

static bool is_vf(const struct hw_pci *f)
{
	return is_nic(f) && f->sriov_total == 0;
}

static int nth_of(const struct hw_inventory *inv, bool (*is)(const struct hw_pci *), size_t nth,
		  const char *what)
{
	size_t seen = 0;

	for (size_t i = 0; i < inv->n_pci; i++)
		if (is(&inv->pci[i]) && seen++ == nth)
			return (int)i;
	fprintf(stderr, "synth: there is no %s %zu, only %zu\n", what, nth, seen);
	abort();
}

int synth_gpu(const struct hw_inventory *inv, size_t nth)
{
	if (nth < inv->n_gpu)
		return inv->gpu[nth].pci;
	fprintf(stderr, "synth: there is no GPU %zu, only %zu\n", nth, inv->n_gpu);
	abort();
}

int synth_pf(const struct hw_inventory *inv, size_t nth)
{
	return nth_of(inv, is_pf, nth, "PF");
}

int synth_vf(const struct hw_inventory *inv, size_t nth)
{
	return nth_of(inv, is_vf, nth, "VF");
}

size_t synth_count_vfs(const struct hw_inventory *inv)
{
	size_t n = 0;

	for (size_t i = 0; i < inv->n_pci; i++)
		n += is_vf(&inv->pci[i]);
	return n;
}
