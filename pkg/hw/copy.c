#include "hw/copy.h"

#include "base/arena.h"
#include "hw/inventory.h"

/* Mostly names of a dozen bytes, some of a function's and more of an RDMA device's. */
#define BLOCK (64 * 1024)

static void *table(struct arena *a, const void *v, size_t n, size_t size)
{
	return n ? arena_copy(a, v, n * size) : NULL;
}

static void copy_pci(struct hw_inventory *inv, const struct hw_inventory *of)
{
	inv->pci = table(inv->arena, of->pci, of->n_pci, sizeof(*of->pci));
	for (size_t i = 0; i < inv->n_pci; i++) {
		struct hw_pci *p = &inv->pci[i];

		p->driver = arena_strdup(inv->arena, p->driver);
		p->netdev = arena_strdup(inv->arena, p->netdev);
	}
}

static const struct hw_port *copy_ports(struct arena *a, const struct hw_rdma *of)
{
	struct hw_port *ports = table(a, of->ports, of->n_ports, sizeof(*ports));

	for (size_t i = 0; i < of->n_ports; i++) {
		ports[i].state = arena_strdup(a, ports[i].state);
		ports[i].phys_state = arena_strdup(a, ports[i].phys_state);
	}
	return ports;
}

static void copy_rdma(struct hw_inventory *inv, const struct hw_inventory *of)
{
	inv->rdma = table(inv->arena, of->rdma, of->n_rdma, sizeof(*of->rdma));
	for (size_t i = 0; i < inv->n_rdma; i++) {
		struct hw_rdma *r = &inv->rdma[i];

		r->name = arena_strdup(inv->arena, r->name);
		r->dir = arena_strdup(inv->arena, r->dir);
		r->uverbs = arena_strdup(inv->arena, r->uverbs);
		r->netdev = arena_strdup(inv->arena, r->netdev);
		r->ports = copy_ports(inv->arena, r);
	}
}

static void copy_gpus(struct hw_inventory *inv, const struct hw_inventory *of)
{
	inv->part = table(inv->arena, of->part, of->n_part, sizeof(*of->part));
	inv->mig = table(inv->arena, of->mig, of->n_mig, sizeof(*of->mig));
	for (size_t i = 0; i < inv->n_mig; i++)
		inv->mig[i].id = arena_strdup(inv->arena, inv->mig[i].id);
	inv->gpu = table(inv->arena, of->gpu, of->n_gpu, sizeof(*of->gpu));
	for (size_t i = 0; i < inv->n_gpu; i++) {
		struct hw_gpu *g = &inv->gpu[i];

		g->vendor = arena_strdup(inv->arena, g->vendor);
		g->model = arena_strdup(inv->arena, g->model);
		g->uuid = arena_strdup(inv->arena, g->uuid);
	}
}

static void copy_nics(struct hw_inventory *inv, const struct hw_inventory *of)
{
	inv->card = table(inv->arena, of->card, of->n_card, sizeof(*of->card));
	for (size_t i = 0; i < inv->n_card; i++) {
		struct hw_card *c = &inv->card[i];

		c->name = arena_strdup(inv->arena, c->name);
		c->serial = arena_strdup(inv->arena, c->serial);
		c->board = arena_strdup(inv->arena, c->board);
		c->vuid = arena_strdup(inv->arena, c->vuid);
		c->problem = arena_strdup(inv->arena, c->problem);
	}
	inv->neighbor = table(inv->arena, of->neighbor, of->n_neighbor, sizeof(*of->neighbor));
	for (size_t i = 0; i < inv->n_neighbor; i++) {
		struct hw_neighbor *n = &inv->neighbor[i];

		n->name = arena_strdup(inv->arena, n->name);
		n->port = arena_strdup(inv->arena, n->port);
	}
}

static void copy_numa(struct hw_inventory *inv, const struct hw_inventory *of)
{
	inv->numa = table(inv->arena, of->numa, of->n_numa, sizeof(*of->numa));
	for (size_t i = 0; i < inv->n_numa; i++) {
		struct hw_numa *n = &inv->numa[i];

		if (n->distance)
			n->distance =
				table(inv->arena, n->distance, inv->n_numa, sizeof(*n->distance));
		n->cpumap = arena_strdup(inv->arena, n->cpumap);
	}
}

static void copy_notes(struct hw_inventory *inv, const struct hw_inventory *of)
{
	inv->notes = table(inv->arena, of->notes, of->n_notes, sizeof(*of->notes));
	for (size_t i = 0; i < inv->n_notes; i++)
		inv->notes[i] = arena_strdup(inv->arena, inv->notes[i]);
}

struct hw_inventory *hw_inventory_copy(const struct hw_inventory *of)
{
	struct arena *a = arena_new(BLOCK);
	struct hw_inventory *inv = arena_copy(a, of, sizeof(*of));

	inv->arena = a;
	copy_pci(inv, of);
	copy_rdma(inv, of);
	copy_gpus(inv, of);
	copy_nics(inv, of);
	copy_numa(inv, of);
	inv->cpu.arch = arena_strdup(a, of->cpu.arch);
	inv->cpu.vendor = arena_strdup(a, of->cpu.vendor);
	copy_notes(inv, of);
	return inv;
}
