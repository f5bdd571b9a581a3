/* NUMA nodes as the firmware cut them: parts of sockets (NPS, SNC), memory of GPUs, and how many
 * the kubelet takes. */
#include <string.h>

#include "base/mem.h"
#include "doctor/doctor-internal.h"
#include "hw/inventory.h"

/* --- numa-clusters --- */

/* A node of the same socket is 11 to 15 away; of another 16 and more (AMD 32, Intel 20 and 21). */
#define OTHER_SOCKET 16

static const struct diagnosis_advice clusters_bare = {
	"Topology Manager keeps a container's CPUs, GPUs and VFs on one node: this node's CPUs are never near a GPU, and pods with GPUs have only a part of the socket's CPUs and memory.",
	{ "Set NPS to 1 (AMD) or SNC off (Intel) in the BIOS, unless the node's CPUs are meant for pods without GPUs; or use the Topology Manager policy option prefer-closest-numa-nodes." },
};
static const struct diagnosis_advice clusters_fine = {
	"Topology Manager takes each part of a socket for a node: a container with more GPUs than one part has spans several, which the policy single-numa-node refuses.",
	{ NULL },
};

static bool has_cpus(const struct hw_numa *n)
{
	return n->cpumap && n->cpumap[strspn(n->cpumap, "0,")];
}

static bool is_same_socket(const struct hw_inventory *inv, size_t a, size_t b)
{
	return a == b || (inv->numa[a].distance && inv->numa[a].distance[b] < OTHER_SOCKET);
}

/* CPU nodes of this node's socket; *ret_first: the first of them, which stands for it. */
static size_t parts_of(const struct hw_inventory *inv, size_t node, size_t *ret_first)
{
	size_t n = 0;

	*ret_first = node;
	for (size_t i = 0; i < inv->n_numa; i++) {
		if (!has_cpus(&inv->numa[i]) || !is_same_socket(inv, node, i))
			continue;
		if (i < *ret_first)
			*ret_first = i;
		n++;
	}
	return n;
}

static size_t gpus_on(const struct facts *f, size_t node, bool whole_socket)
{
	size_t n = 0;

	for (size_t i = 0; i < f->inv->n_gpu; i++) {
		int id = topo_numa(f->topo, f->inv->gpu[i].pci);

		for (size_t k = 0; k < f->inv->n_numa; k++)
			n += f->inv->numa[k].id == id &&
			     (k == node || (whole_socket && is_same_socket(f->inv, node, k)));
	}
	return n;
}

static void run_clusters(const struct facts *f, struct diagnosis *r)
{
	const struct hw_inventory *inv = f->inv;
	size_t nodes = 0, sockets = 0, split = 0;

	for (size_t i = 0; i < inv->n_numa; i++) {
		size_t first, parts;

		if (!has_cpus(&inv->numa[i]))
			continue;
		parts = parts_of(inv, i, &first);
		nodes++;
		sockets += first == i;
		split += parts > 1;
		if (parts > 1 && !gpus_on(f, i, false) && gpus_on(f, i, true))
			diagnosis_add(
				r, DIAGNOSIS_WARN, &clusters_bare, "host",
				"NUMA node %d is a part of a socket (NPS, SNC) and has no GPU; other parts have.",
				inv->numa[i].id);
	}
	if (split && inv->n_gpu && diagnosis_worst_so_far(r) == DIAGNOSIS_PASS)
		diagnosis_add(
			r, DIAGNOSIS_PASS, &clusters_fine, "host",
			"Sockets are split into NUMA nodes (NPS, SNC): sockets %zu, nodes %zu.",
			sockets, nodes);
}

/* --- numa-nodes --- */

#define KUBELET_NODES 8

static const struct diagnosis_advice nodes_many = {
	"A kubelet with a Topology Manager policy other than none does not start on a machine with more than 8 NUMA nodes.",
	{ "In the kubelet's configuration: topologyManagerPolicyOptions: max-allowable-numa-nodes: \"N\" (Kubernetes 1.31 and later), or topologyManagerPolicy: none.",
	  "A KubeletConfig with topologyManagerPolicyOptions: max-allowable-numa-nodes: \"N\", or with topologyManagerPolicy: none.",
	  "machine.kubelet.extraConfig: topologyManagerPolicyOptions: max-allowable-numa-nodes: \"N\", or topologyManagerPolicy: none." },
};
static const struct diagnosis_advice nodes_fine = {
	"Memory of GPUs counts as NUMA nodes for the kubelet's Topology Manager, which takes 8; MIG adds more.",
	{ NULL },
};

static void run_nodes(const struct facts *f, struct diagnosis *r)
{
	size_t memory = facts_n_memory_nodes(f->inv), n = f->inv->n_numa;

	if (n > KUBELET_NODES)
		diagnosis_add(r, DIAGNOSIS_WARN, &nodes_many, "host",
			      "There are %zu NUMA nodes, %zu of them memory without CPUs.", n,
			      memory);
	else if (memory)
		diagnosis_add(r, DIAGNOSIS_PASS, &nodes_fine, "host",
			      "NUMA nodes: %zu, of them memory without CPUs: %zu.", n, memory);
}

const struct diagnosis_check doctor_node_checks[] = {
	{ "numa-clusters", "sockets split into NUMA nodes (NPS, SNC)",
	  "Nodes that are less than 16 from one another, as the kernel's table of distances has it, are taken for parts of one socket. WARN: a part without a GPU on a socket whose other parts have some. Sockets that are not split: not applicable.",
	  .run = run_clusters },
	{ "numa-nodes", "number of NUMA nodes for the kubelet",
	  "Counts NUMA nodes, also those of GPU memory (Grace; several for each GPU with MIG). WARN: more than 8, which the kubelet's Topology Manager refuses without max-allowable-numa-nodes. Machines with 8 or less and no such memory: not applicable.",
	  .run = run_nodes },
};
const size_t doctor_node_checks_n = ARRAY_LEN(doctor_node_checks);
