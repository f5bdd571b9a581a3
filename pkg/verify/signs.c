/* The catalogue, and which line is which failure. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "verify/signs-internal.h"

static const struct sign
	signs[SIGN_MAX] = {
		[SIGN_SOCKET] = { "socket", LEVEL_FAIL,
				  "traffic between nodes goes through TCP sockets",
				  "NCCL found no usable HCA, or was configured to use none, and fell back to sockets.",
				  "Look for the lines about NET/IB below; unset NCCL_IB_DISABLE and NCCL_NET=Socket; NCCL_NET=IB turns this silent fallback into an error." },
		[SIGN_TCP_PLUGIN] = { "tcp-plugin", LEVEL_FAIL,
				      "a network plugin carries traffic between nodes over TCP",
				      "The plugin is made for TCP, or found no RDMA provider (libfabric: tcp;ofi_rxm).",
				      "Remove the plugin from the image or set NCCL_NET_PLUGIN=none, so that NCCL takes its own IB transport; with libfabric set FI_PROVIDER." },
		[SIGN_NO_DEVICE] = { "no-device", LEVEL_FAIL, NULL,
				     "No HCA with an ACTIVE port passes NCCL_IB_HCA: no verbs node in the container, port down, or a wrong name.",
				     "Check that the pod asks for the VF resource, that the port is ACTIVE in the container (rdma link), and that NCCL_IB_HCA is not set by hand." },
		[SIGN_NO_IP] = { "no-ip-interface", LEVEL_FAIL, NULL,
				 "NCCL needs an IP interface that is up for its out-of-band connections and found none.",
				 "Give the pod a network with an address, or correct NCCL_SOCKET_IFNAME." },
		[SIGN_NO_IFNAME] = { "no-socket-interface", LEVEL_FAIL, NULL,
				     "No interface that is up matches NCCL_SOCKET_IFNAME; NCCL does not fall back to another one.",
				     "Unset NCCL_SOCKET_IFNAME, or name the pod's interface (most often eth0)." },
		[SIGN_NO_PLUGIN] = { "no-net-plugin", LEVEL_FAIL, NULL,
				     "NCCL_NET asks for a network that cannot start here, for instance IB without any HCA.",
				     "Find out why there is no HCA (the lines before), or correct NCCL_NET." },
		[SIGN_XML] = { "topology-xml", LEVEL_FAIL, NULL,
			       "The topology file is not in NCCL's dialect; every communicator fails with it.",
			       "Remove NCCL_TOPO_FILE, or replace the file; RCCL wants version 2, NCCL version 1." },
		[SIGN_QP_EINVAL] = { "modify-qp-einval", LEVEL_FAIL, NULL,
				     "The GID slot is empty, of the wrong type, or beyond the table: most often a fixed NCCL_IB_GID_INDEX.",
				     "Unset NCCL_IB_GID_INDEX (NCCL 2.21.5 and newer choose themselves), and give the VF an address." },
		[SIGN_QP_ENODEV] = { "modify-qp-enodev", LEVEL_FAIL, NULL,
				     "The network interface of this GID is gone or is in another network namespace.",
				     "Attach the VF's interface to this pod (CNI), or use rdma-cni with the exclusive RDMA namespace mode." },
		[SIGN_QP_UNREACHABLE] = { "modify-qp-enetunreach", LEVEL_FAIL, NULL,
					  "There is no route from this VF's address to the peer's.",
					  "Add the route in the network attachment (IPAM), or restrict the addresses with NCCL_IB_ADDR_RANGE." },
		[SIGN_QP_TIMEOUT] = { "modify-qp-etimedout", LEVEL_FAIL, NULL,
				      "The peer does not answer neighbour discovery: rails that are not connected to each other, or a wrong VLAN.",
				      "Ping the peer's address from this interface; check the VLAN; NCCL_CROSS_NIC=0 keeps to rails." },
		[SIGN_QP_OTHER] = { "modify-qp", LEVEL_FAIL, NULL,
				    "The kernel or the HCA refused a connection's parameters.",
				    "Look up the error in the line; check GID table, port state and MTU at both ends." },
		[SIGN_WC_RETRY] = { "completion-retry-exceeded", LEVEL_FAIL, NULL,
				    "The peer acknowledged nothing: packet loss (PFC, ECN), a firewall, a wrong GID or MTU, or the peer died.",
				    "Look at the peer's log first; then at PFC and DSCP trust on the PF and the switch, and the MTU at both ends." },
		[SIGN_WC_RNR] = { "completion-rnr", LEVEL_FAIL, NULL,
				  "The peer posted no receive buffer in time: its process hangs or died.",
				  "Look at the peer's log." },
		[SIGN_WC_FLUSH] = { "completion-flushed", LEVEL_FAIL, NULL,
				    "The connection was in error already: this line is a consequence.",
				    "Look for the first error, in this log or the peer's." },
		[SIGN_WC_OTHER] = { "completion-error", LEVEL_FAIL, NULL,
				    "The HCA reports that a transfer failed.",
				    "The status in the line says how; look at the peer's log, and at the kernel log of both nodes." },
		[SIGN_ASYNC_FATAL] = { "async-fatal", LEVEL_FAIL, NULL,
				       "The HCA reported a fatal event: firmware, driver, or the VF was taken away.",
				       "Look at the kernel log of the node; reset or replace the VF." },
		[SIGN_REG_MR] = { "register-memory", LEVEL_FAIL, NULL,
				  "Memory could not be registered with the HCA: a small memlock limit, or no way to GPU memory.",
				  "Raise memlock (IPC_LOCK or the runtime's ulimit); check nvidia_peermem, or dmabuf with the open kernel modules." },
		[SIGN_CREATE_QP] = { "create-qp", LEVEL_FAIL, NULL,
				     "The VF has no queue pair left, or memory for it could not be locked.",
				     "Lower NCCL_IB_QPS_PER_CONNECTION, give VFs more queue pairs, or raise memlock." },
		[SIGN_ROCE_VERSION] = { "roce-version", LEVEL_FAIL, NULL,
					"NCCL 2.21 to 2.25 fail on a GID table with empty slots, as containers have.",
					"Use NCCL 2.26.2 or newer." },
		[SIGN_BANDWIDTH_HALF] = { "bandwidth-half", LEVEL_FAIL,
					  "the benchmark reaches less than half of what the VFs can send",
					  "Most often GPUDirect RDMA is off, or part of the VFs is not used.",
					  "Settle the other findings first; then railmatectl doctor on the nodes, and ib_write_bw between two pods." },
		[SIGN_BANDWIDTH_LOW] = { "bandwidth-low", LEVEL_WARN,
					 "the benchmark reaches less than 90 % of what the VFs can send",
					 "A far VF, a narrow PCIe link, redirection by ACS, or packets lost in the fabric.",
					 "Settle the other findings first; then railmatectl doctor on the nodes, and verify --counters for lost packets." },
		[SIGN_BANDWIDTH_GOOD] = { "bandwidth", LEVEL_NOTE,
					  "the benchmark reaches what the VFs can send",
					  "Bus bandwidth is held against the rate of the VFs of one node, by the map or by NCCL.",
					  "Nothing to do." },
		[SIGN_BANDWIDTH_SMALL] = { "bandwidth-of-small-messages", LEVEL_NOTE,
					   "the benchmark's messages are too small to judge bandwidth by",
					   "Below 32 MB latency decides.",
					   "Run it up to 1 GB at least (nccl-tests: -e 4G -f 2)." },
		[SIGN_BANDWIDTH_UNTOLD] = { "bandwidth-not-judged", LEVEL_UNKNOWN,
					    "how fast the VFs are is not known",
					    "Neither a map with mbps nor the log has it.",
					    "Give --map map.json." },
		[SIGN_ONE_NODE] = { "one-node", LEVEL_UNKNOWN, "all ranks are on one node",
				    "Within a node NCCL takes NVLink, PCIe or shared memory: the network was not exercised.",
				    "Run on two nodes, or with NCCL_P2P_DISABLE=1 NCCL_SHM_DISABLE=1." },
		[SIGN_NODES_UNTOLD] = { "nodes-untold", LEVEL_UNKNOWN,
					"how many nodes the job has is not in this log",
					"NCCL 2.21 and newer log it (nNodes, subsystem INIT); one node alone can use its HCAs too, with peer-to-peer and shared memory disabled.",
					"Give the whole log of a run with NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,NET,ENV, or the logs of two nodes." },
		[SIGN_RANKS_UNSEEN] = { "ranks-unseen", LEVEL_UNKNOWN,
					"not every rank of the job is in these logs",
					"Each rank writes of itself only: what the others used is not known.",
					"Give the logs of all pods: verify a.log b.log ...; every one with NCCL_DEBUG=INFO." },
		[SIGN_NO_CHANNELS] = { "no-channels", LEVEL_UNKNOWN,
				       "no channel between nodes is in this log",
				       "The log ends before the first collective, or lacks the subsystem INIT; NCCL 2.22 and newer connect lazily.",
				       "Run one all-reduce over all ranks with NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,NET,ENV." },
		[SIGN_NO_LINES] = { "no-nccl-lines", LEVEL_UNKNOWN,
				    "no line of NCCL or RCCL is in this log",
				    "NCCL wrote nothing, or into a file of its own (NCCL_DEBUG_FILE).",
				    "Set NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,NET,ENV and run again." },
		[SIGN_HCA_MISSING] = { "hca-missing", LEVEL_WARN,
				       "NCCL takes fewer HCAs than were allocated",
				       "A port that is not ACTIVE, or a name that does not exist, is left out without an error.",
				       "Check the port's state in the container, and who else sets NCCL_IB_HCA." },
		[SIGN_HCA_FOREIGN] = { "hca-foreign", LEVEL_WARN,
				       "NCCL takes HCAs that were not allocated",
				       "NCCL_IB_HCA is unset, a prefix instead of =name:port, or was overridden, and foreign verbs nodes are visible.",
				       "Unset what overrides NCCL_IB_HCA; do not run privileged." },
		[SIGN_HCA_UNUSED] = { "hca-unused", LEVEL_WARN,
				      "channels use fewer HCAs than were allocated",
				      "NCCL sees the HCA but judges it too far or too slow, or has fewer GPUs than HCAs.",
				      "Compare with railmatectl topo; NCCL_DEBUG_SUBSYS=GRAPH shows NCCL's reasons." },
		[SIGN_HCA_FAR] = { "hca-of-another-gpu", LEVEL_WARN,
				   "a GPU uses other HCAs than the map has for it", "NCCL places the HCA elsewhere than railmate does: flattened PCI, a foreign topology file, or fewer channels.", "Compare railmatectl topo with NCCL_DEBUG_SUBSYS=GRAPH; check NCCL_TOPO_FILE and NCCL_IB_MERGE_VFS." },
		[SIGN_IDLE_PORT] = { "port-idle", LEVEL_WARN,
				     "an allocated VF sent nothing by its port counters",
				     "NCCL does not use it, or its driver does not count for VFs.",
				     "Compare with the HCAs of the log; look at the counters of the PF." },
		[SIGN_TCP_TRAFFIC] = { "tcp-traffic", LEVEL_WARN,
				       "an interface without RDMA sent much while the job ran",
				       "Some ranks or libraries use TCP, or something else on this interface does: storage, checkpoints, images.",
				       "Look at the logs of all ranks for NET/Socket; run again while nothing else does." },
		[SIGN_FUSED] = { "fused", LEVEL_WARN,
				 "NCCL fused several HCAs into one and adds their speeds",
				 "They are functions or ports of one card; two VFs of one port share its wire, so NCCL expects too much of it.",
				 "Give a container one VF of a port, or set NCCL_IB_MERGE_NICS=0; harmless for two ports if the slot carries both." },
		[SIGN_PLUGIN_UNPROVEN] = { "plugin-unproven", LEVEL_WARN,
					   "nothing in the log proves that the network plugin uses RDMA",
					   "Without GPUDirect RDMA a plugin's channels look the same over RDMA and over TCP.",
					   "Use verify --counters, or NCCL_NET_PLUGIN=none to take NCCL's own IB transport." },
		[SIGN_NOT_PCI] = { "not-a-pci-device", LEVEL_WARN, NULL,
				   "NCCL looks for the VF at its PF's place, and nothing is there: it takes the first CPU, and GDR goes off.",
				   "Set NCCL_IB_MERGE_VFS=0, or give a topology file that names the VF." },
		[SIGN_NO_REALPATH] = { "no-pci-path", LEVEL_WARN, NULL,
				       "The container's /sys does not lead to the HCA's PCI device: masked, or the host's mounted over it.",
				       "Do not mount the host's /sys; or give a topology file that names the VF." },
		[SIGN_GID_CHANGED] = { "gid-table-changed", LEVEL_WARN, NULL,
				       "An address of the interface changed while the job ran; connections may break.",
				       "Find what changes addresses: DHCP renewal, CNI, an operator." },
		[SIGN_GID_OTHER] = { "gid-not-of-map", LEVEL_WARN,
				     "NCCL uses another GID than the map has",
				     "The pod or the image sets NCCL_IB_GID_INDEX, NCCL is older than 2.21.5, or an address changed since the container started.",
				     "Unset NCCL_IB_GID_INDEX; restart the container if its addresses changed; use a newer NCCL or late binding." },
		[SIGN_ASYNC] = { "async-event", LEVEL_WARN, NULL,
				 "The HCA reported an event while the job ran, for instance a link that went down and up.",
				 "Look at the kernel log and the switch port." },
		[SIGN_LINK_LOCAL] = { "link-local-gid", LEVEL_WARN, NULL,
				      "The GID in use is link-local: it works inside one layer-2 network only, and at index 0 is often RoCE v1.",
				      "Give the VF an IP address; IPv6 only: NCCL_IB_ADDR_FAMILY=AF_INET6; before NCCL 2.21.5 set the index by policy." },
		[SIGN_NO_TOPO_FILE] = { "no-topology-file", LEVEL_WARN, NULL,
					"The topology file that NCCL_TOPO_FILE names cannot be opened; NCCL detects by itself.",
					"Mount the file, or unset NCCL_TOPO_FILE." },
		[SIGN_OTHER_WARN] = { "nccl-warn", LEVEL_WARN,
				      "NCCL wrote warnings that are not in this catalogue",
				      "NCCL warns of what fails or may fail; a known failure has a finding of its own.",
				      "Read them, the first one first: what follows is often its consequence." },
		[SIGN_IOMMU_PT] = { "iommu", LEVEL_NOTE, NULL,
				    "RCCL wants the IOMMU in pass-through mode; translated peer-to-peer traffic is slow or fails.",
				    "Add iommu=pt to the kernel's command line." },
		[SIGN_OPEN_DEVICE_OURS] = { "open-allocated-device", LEVEL_WARN, NULL,
					    "An HCA that was allocated cannot be opened: its verbs node is not in the container, or it is in another namespace.",
					    "Check /dev/infiniband and the RDMA namespace mode (rdma system)." },
		[SIGN_NOGDR_ENV] = { "gdr-off-by-variable", LEVEL_NOGDR,
				     "GPUDirect RDMA is switched off by a variable",
				     "NCCL_NET_GDR_LEVEL=LOC (or 0) means never.",
				     "Unset NCCL_NET_GDR_LEVEL." },
		[SIGN_NOGDR_HOST] = { "gdr-unsupported", LEVEL_NOGDR,
				      "GPUDirect RDMA is not available on the host",
				      "Neither nvidia_peermem nor dmabuf works here (AMD: no peer memory in the kernel).",
				      "Load nvidia_peermem, or use the open kernel modules with Linux 5.12 or newer; unset NCCL_DMABUF_ENABLE=0." },
		[SIGN_NOGDR_FAR] = { "gdr-too-far", LEVEL_NOGDR,
				     "GPU and HCA are too far from each other for GPUDirect RDMA",
				     "Traffic would cross the host bridge or a socket; NCCL leaves GDR off there.",
				     "Ask for VFs next to the GPU; in a VM or after bus spill give NCCL a topology file." },
		[SIGN_NOGDR_PLACE] = { "gdr-misplaced", LEVEL_NOGDR,
				       "NCCL does not know where the VF is, so it is far from every GPU",
				       "The VF's place was not found (see the finding about it), and NCCL attached it to the first CPU.",
				       "Set NCCL_IB_MERGE_VFS=0, or give a topology file that names the VF." },
		[SIGN_NOGDR_READ] = { "gdr-sends-off", LEVEL_NOGDR,
				      "receives use GPUDirect RDMA, sends do not",
				      "NCCL_NET_GDR_READ=0, or a GPU older than Ampere, for which NCCL decides so.",
				      "Unset NCCL_NET_GDR_READ; on older GPUs this is NCCL's choice." },
		[SIGN_NOGDR_MAP] = { "gdr-path", LEVEL_NOGDR,
				     "the map has no nearer VF for this GPU",
				     "The path class in the map is beyond what NCCL takes for GDR (PXB; with 2.27 and newer also P2C).",
				     "Ask for VFs next to the GPU, or use late binding." },
		[SIGN_NOGDR_UNKNOWN] = { "gdr-off", LEVEL_NOGDR,
					 "channels do not use GPUDirect RDMA, and the log does not say why",
					 "The lines about GDR are of the subsystems NET and GRAPH.",
					 "Run again with NCCL_DEBUG_SUBSYS=INIT,NET,ENV,GRAPH; railmatectl topo shows the distances." },
		[SIGN_OPEN_DEVICE] = { "open-foreign-device", LEVEL_NOTE, NULL,
				       "NCCL tries HCAs whose verbs node is not in the container; rdma-core before 32 lists them.",
				       "Harmless when it is not an allocated HCA." },
		[SIGN_NUMA_BALANCING] = { "numa-balancing", LEVEL_NOTE, NULL,
					  "Automatic NUMA balancing moves pages under GPUs.",
					  "sysctl kernel.numa_balancing=0." },
		[SIGN_GID_FIXED] = { "gid-index-fixed", LEVEL_NOTE, NULL,
				     "One index is used for every HCA, unchecked; NCCL 2.21.5 and newer choose by themselves.",
				     "Give --map: where railmate set it, the map has it; else unset NCCL_IB_GID_INDEX." },
		[SIGN_GDR_FORCED] = { "gdr-level-forced", LEVEL_NOTE, NULL,
				      "GPUDirect RDMA is forced through the host bridge or across sockets: often slower than without.",
				      "Unset NCCL_NET_GDR_LEVEL unless it was measured." },
		[SIGN_P2P] = { "p2p-disabled", LEVEL_NOTE, NULL,
			       "GPUs that are connected may not use peer-to-peer transfers.",
			       "Check NCCL_P2P_DISABLE, NCCL_P2P_LEVEL, ACS and the driver." },
		[SIGN_SHM] = { "shared-memory", LEVEL_NOTE,
			       "GPUs of one node exchange data through shared memory",
			       "NCCL finds no peer-to-peer way between them: no NVLink, GPUs of two sockets or containers, or NCCL_P2P_DISABLE.",
			       "On a machine with NVLink check nvidia-smi topo -m, and NCCL_P2P_DISABLE and _LEVEL." },
		[SIGN_BOOTSTRAP] = { "bootstrap-on-a-rail", LEVEL_NOTE,
				     "NCCL's own connections go through the interface of an allocated VF",
				     "They need every rank to reach every other one; rails that are not connected to each other do not give that.",
				     "Set NCCL_SOCKET_IFNAME to the pod's first interface (most often eth0)." },
		[SIGN_PLUGIN] = { "plugin", LEVEL_NOTE, "a network plugin is in use",
				  "It names no HCAs in this log, so they were not compared.",
				  "Use verify --counters." },
		[SIGN_NO_SET] = { "set-not-compared", LEVEL_NOTE,
				  "which HCAs were allocated is not known",
				  "There is no --map for these ranks, and no exact NCCL_IB_HCA in the log.",
				  "Give --map map.json." },
		[SIGN_ONE_NODE_LOOP] = { "one-node-loop", LEVEL_NOTE,
					 "one node, peer-to-peer and shared memory disabled",
					 "Traffic went through the HCAs and back; the fabric was hardly tested.",
					 "Run on two nodes as well." },
		[SIGN_DAMAGED] = { "damaged-lines", LEVEL_NOTE,
				   "some channel lines are cut or run into each other",
				   "Several processes write into one stream, or the log ends within a line; those lines were left out.",
				   "NCCL_DEBUG_FILE=/tmp/nccl.%h.%p gives every process a file." },
		[SIGN_TOO_MANY] = { "too-many-gpus", LEVEL_NOTE,
				    "more GPUs or processes than can be distinguished",
				    "Those beyond the first 4096 were looked through for failures only.",
				    "Verify the nodes in parts." },
	};

const struct sign *verify_sign_of(enum sign_id id)
{
	return &signs[id];
}

const char *verify_level_name(enum level level)
{
	static const char *const names[] = {
		[LEVEL_NOTE] = "note", [LEVEL_NOGDR] = "no GDR",	 [LEVEL_WARN] = "WARN",
		[LEVEL_FAIL] = "FAIL", [LEVEL_UNKNOWN] = "INCONCLUSIVE",
	};

	return names[level];
}

/* --- failures that carry a number --- */

struct numbered {
	unsigned long number;
	enum sign_id id;
};

static enum sign_id by_number(const struct numbered *table, size_t n, unsigned long number,
			      enum sign_id other)
{
	for (size_t i = 0; i < n; i++) {
		if (table[i].number == number)
			return table[i].id;
	}
	return other;
}

/* "failed with 110 Connection timed out, on dev …"; before 2.24.3 "failed with error Connection
 * timed out errno 110". */
static enum sign_id match_modify_qp(const char *text)
{
	static const struct numbered errnos[] = {
		{ EINVAL, SIGN_QP_EINVAL },	      { ENODEV, SIGN_QP_ENODEV },
		{ ENETUNREACH, SIGN_QP_UNREACHABLE }, { EHOSTUNREACH, SIGN_QP_UNREACHABLE },
		{ ETIMEDOUT, SIGN_QP_TIMEOUT },
	};
	const char *at = strstr(text, " errno ");

	at = at ? at + strlen(" errno ") : strstr(text, "failed with ") + strlen("failed with ");
	return by_number(errnos, ARRAY_LEN(errnos), strtoul(at, NULL, 10), SIGN_QP_OTHER);
}

/*
 * Since 2.28 "with status=IBV_WC_RETRY_EXC_ERR(12) …", since 2.20 "with status=12 …", from 2.12
 * to 2.19 "from peer … with error 12, opcode …"; before, "Got completion with error 12, opcode …",
 * and RCCL's of those days.
 */
static enum sign_id match_completion(const char *text)
{
	static const struct numbered statuses[] = {
		{ 5, SIGN_WC_FLUSH },
		{ 12, SIGN_WC_RETRY },
		{ 13, SIGN_WC_RNR },
	};
	const char *status = strstr(text, "status="), *error = strstr(text, "with error ");
	const char *at = status	 ? status + strlen("status=")
			 : error ? error + strlen("with error ")
				 : "";

	if (*at < '0' || *at > '9')
		at += strcspn(at, "( ");
	if (*at == '(')
		at++;
	return by_number(statuses, ARRAY_LEN(statuses), strtoul(at, NULL, 10), SIGN_WC_OTHER);
}

/* Every part has to be in the line. `info` also when NCCL wrote it as INFO: many lines are, so
 * these are few.
 */
static const struct pattern {
	const char *part, *also;
	enum sign_id id;
	bool info;
	enum sign_id (*refine)(const char *text);
} patterns[] = {
	{ .part = "NET/IB : No device found", .id = SIGN_NO_DEVICE, .info = true },
	{ .part = "is not a PCI device",
	  .also = "opology detection",
	  .id = SIGN_NOT_PCI,
	  .info = true },
	{ .part = "Could not open XML topology file", .id = SIGN_NO_TOPO_FILE, .info = true },
	{ .part = "P2P is disabled between connected GPUs", .id = SIGN_P2P, .info = true },
	{ .part = "GDRDMA not enabled", .id = SIGN_NOGDR_HOST, .info = true },
	{ .part = "Missing \"iommu=pt\"", .id = SIGN_IOMMU_PT, .info = true },
	{ .part = "NUMA auto balancing",
	  .also = "nabled",
	  .id = SIGN_NUMA_BALANCING,
	  .info = true },
	{ .part = "No IP interface found", .id = SIGN_NO_IP },
	{ .part = "o socket interface found", .id = SIGN_NO_IFNAME },
	{ .part = "Failed to initialize any NET plugin", .id = SIGN_NO_PLUGIN },
	{ .part = "XML Parse error", .id = SIGN_XML },
	{ .part = "ncclIbRoceGetVersionNum", .also = "failed", .id = SIGN_ROCE_VERSION },
	{ .part = "Call to ibv_modify_qp failed",
	  .also = "failed with ",
	  .id = SIGN_QP_OTHER,
	  .refine = match_modify_qp },
	{ .part = "Got completion ", .id = SIGN_WC_OTHER, .refine = match_completion },
	{ .part = "async fatal event", .id = SIGN_ASYNC_FATAL },
	{ .part = "GID table changed", .id = SIGN_GID_CHANGED },
	{ .part = "async event", .id = SIGN_ASYNC },
	{ .part = "Call to ibv_reg_", .also = "failed", .id = SIGN_REG_MR },
	{ .part = "Call to ibv_create_qp", .also = "failed", .id = SIGN_CREATE_QP },
	{ .part = "Could not find real path of", .id = SIGN_NO_REALPATH },
	{ .part = "Unable to open device", .id = SIGN_OPEN_DEVICE },
};

enum sign_id verify_sign_match(const char *text, bool warn)
{
	for (size_t i = 0; i < ARRAY_LEN(patterns); i++) {
		const struct pattern *p = &patterns[i];

		if ((!warn && !p->info) || !strstr(text, p->part) ||
		    (p->also && !strstr(text, p->also)))
			continue;
		return p->refine ? p->refine(text) : p->id;
	}
	return SIGN_MAX;
}
