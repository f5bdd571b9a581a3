/* Shared by the files of the room. */
#ifndef RAILMATE_RENDER_TOPOFILE_INTERNAL_H
#define RAILMATE_RENDER_TOPOFILE_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hw/bdf.h"
#include "hw/inventory.h"
#include "topo/rails.h"

struct arena;
struct hw_cpu;
struct hw_pci;
struct strbuf;
struct topofile_in;

/* NCCL reads up to 256 elements per process, and adds its own (docs/design/nccl.md §2.2). */
#define TOPOFILE_ELEMENTS_MAX 199
#define TOPOFILE_KIDS_MAX     128 /* of one element, in older releases; 640 since */
#define TOPOFILE_STRING_MAX   253 /* of a value */

/* May it stand as a value: printable ASCII without quotes and the special characters of XML, as
 * NCCL knows no entities? */
bool topofile_is_plain(const char *value);

/*
 * By PCI index: is it a NIC that NCCL could use, which is a PF or VF where it or a VF of the same
 * PF has an RDMA device? So it does not change while containers have some of them. A heap array.
 */
bool *topofile_nics(const struct topofile_in *in);

struct element {
	struct bdf bdf;
	uint32_t class_code;
	struct hw_pcie link;
	const struct hw_pci *ids; /* of a switch; NULL: not known */
	int group;		  /* of the hints, if it is their switch; -1 */
	int parent;		  /* element; -1: directly at the CPU */
	int cpu;		  /* index, if parent is -1 */
};

struct net {
	int element;
	const char *name;
	int speed_mbps;	     /* 0: not known */
	struct topo_rail at; /* rail -1: not known */
};

/* A NUMA node. Devices without a known node get a number below zero, one for each root complex. */
struct cpu {
	int id;
	int pci; /* with id < 0: a function of the root complex */
};

struct topofile_build {
	const struct topofile_in *in;
	struct arena *arena;
	struct element v[TOPOFILE_ELEMENTS_MAX + 1];
	struct net nets[TOPOFILE_ELEMENTS_MAX + 1];
	struct cpu cpus[TOPOFILE_ELEMENTS_MAX + 1];
	size_t n, n_nets, n_cpus;
	bool full; /* one of the tables */
	const char **notes;
	size_t n_notes, cap_notes;
};

/* Are all attributes known that NCCL wants of a <cpu>? It completes only that of a rank's own GPU.
 */
bool topofile_knows_cpu(const struct hw_cpu *cpu);
/* Every element, as text. */
void topofile_put(struct topofile_build *b, struct strbuf *out);

#endif
