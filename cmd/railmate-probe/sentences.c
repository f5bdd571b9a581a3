/*
 * The kinds of trouble that railmate-probe knows, each with its usual cause and its fix.
 * docs/probe.md has them all.
 */
#include <assert.h>
#include <string.h>

#include "report.h"

const struct sentence sentences[] = {
	{ "no-map", "no VF of railmate is in this container, or its image lies over /run/railmate",
	  "Ask for VFs in resources.limits, and mount nothing at /run/railmate" },
	{ "no-hca", "the pool serves VFs without RDMA, or the driver made no RDMA device",
	  "Look at railmatectl doctor on the node" },
	{ "no-gpu",
	  "the container asked for none, or railmate could not know them (notes in map.json)",
	  "Ask for GPUs in resources.limits of the same container" },
	/* wire_device.c: the device, its port and its tables */
	{ "hca-absent",
	  "it was renamed, removed, or moved into another network namespace after the container started",
	  "Look at railmatectl doctor on the node, and start the pod anew" },
	{ "hca-foreign",
	  "RDMA devices were made again, under other numbers, after the container started",
	  "Start the pod anew" },
	{ "node-absent", "the runtime did not add it, or the image's own files lie over /dev",
	  "Look at railmatectl explain, and start the pod anew" },
	{ "node-foreign",
	  "RDMA devices were made again, under other numbers, after the container started",
	  "Start the pod anew" },
	{ "node-refused",
	  "the device cgroup or the file's mode denies it, or the device is in another network namespace",
	  "Look at railmatectl doctor on the node; do not make nodes by hand" },
	{ "provider", "its driver is newer than this release of railmate, or loads no provider",
	  "Run ib_write_bw with the image's own libibverbs" },
	{ "memlock", "memory that a device reaches is locked, and the container may lock no more",
	  "Raise RLIMIT_MEMLOCK in the runtime's service (LimitMEMLOCK=infinity), or give the container IPC_LOCK" },
	{ "verbs-refused", "the driver or the device has no more of it, or is going away",
	  "Look at dmesg on the node" },
	{ "port-down", "the cable, the switch's port, the PF or its netdev is down",
	  "Look at ip link and at railmatectl doctor on the node" },
	{ "port-init", "no subnet manager has configured the port",
	  "Look whether one runs, and whether it allows virtual ports" },
	{ "port-absent", "map.json is of another device", "Start the pod anew" },
	{ "port-slow", "the link trained below its speed, or a lane is lost",
	  "Look at the cable and at ethtool of the PF" },
	{ "link-layer", "the two ends are cards of different kinds, or the port was reconfigured",
	  "Make pools of one kind of link" },
	{ "mtu-small", "the netdev's MTU is below 1024 + 58 bytes", "Raise the MTU of PF and VF" },
	{ "mtu-mismatch", "the netdevs of the two ends have different MTUs",
	  "Give all VFs of a network one MTU" },
	{ "mtu-path",
	  "small messages pass and large ones do not: a switch on the way has a smaller MTU",
	  "Raise the MTU of all switches of the rail to that of the VFs and 100 bytes more" },
	{ "pkey-limited", "limited members of a partition reach only its full members",
	  "Make the port a full member in the subnet manager's partitions" },
	{ "pkey-none", "the subnet manager gave the port no partition",
	  "Add the VF's GUID to a partition" },
	{ "device-limits", "the VF was given few resources by its PF",
	  "Raise them in the firmware's settings" },
	{ "gid-none", "the netdev has no address, or is not in this network namespace",
	  "Give the VF's netdev an address: the network attachment, or network: host" },
	{ "gid-gone", "the address was taken away or changed after the container started",
	  "Look at what changes the netdev's addresses, and start the pod anew" },
	{ "gid-moved", "addresses were added and removed after the container started",
	  "Start the pod anew, or set the pool's gid to auto" },
	{ "gid-index",
	  "NCCL_IB_GID_INDEX is set in the pod or the image, for other ports than these",
	  "Leave NCCL_IB_GID_INDEX to railmate" },
	{ "gid-type", "the index is that of the same address in RoCE v1",
	  "Set the pool's gid to auto" },
	{ "gid-link-local",
	  "the netdev has no address but its own: link-local GIDs and RoCE v1 are not routed",
	  "Give the VF's netdev an IPv4 or a global IPv6 address" },
	/* wire.c: memory, connections, completions */
	{ "dmabuf", "the NIC's driver or the kernel takes no dmabuf of this GPU", NULL },
	{ "data-direct", "the driver, the kernel or this release does not register for data direct",
	  NULL },
	{ "peer-memory", "nvidia_peermem is not loaded", "modprobe nvidia_peermem on the node" },
	{ "no-route",
	  "the routing table of this network namespace has no way between the two addresses, or nobody answers ARP",
	  "Look at ip route get, for the VF's netdev, and at ip neigh" },
	{ "rtr",
	  "the GID index is that of an entry that is empty, or of another kind than the peer's",
	  "Leave the GID index to railmate on both sides" },
	{ "retry-exceeded",
	  "packets or their acknowledgements are lost: VLAN, ACL, firewall, a wrong route or GID, a peer that has gone",
	  "Try ping from the one VF's address to the other; look at the switch's drops" },
	{ "rnr",
	  "the receiver posted no buffers in time: it hangs or has too little of the processor",
	  "Look at the peer's load and limits" },
	{ "local-protection",
	  "the device may not reach memory that was registered: ACS or the IOMMU redirects it, or the region has gone",
	  "Look at railmatectl doctor on the node (acs, iommu)" },
	{ "local-length", "a message was longer than the receive that was posted",
	  "Give both sides one message size" },
	{ "local-operation", "the queue pair was used against its state", "Report it to railmate" },
	{ "remote-access",
	  "the peer's memory is not registered for it, or its key is of another run",
	  "Start both sides anew" },
	{ "remote-request",
	  "the peer refuses the message: its receive is shorter, or the operation not allowed",
	  "Use the same release and the same message size on both sides" },
	{ "remote-operation",
	  "the peer could not do it: its memory cannot be reached by its device",
	  "Look at what the peer reports" },
	{ "flushed", "the connection broke before", "Look at the finding before this one" },
	{ "cqe", NULL, "Look at dmesg on the node, and at the vendor's list of this code" },
	{ "stalled", "the device or its driver hangs, or the host has no processor time",
	  "Look at dmesg on the node" },
	{ "bytes-differ", "memory, card or PCIe link corrupts data",
	  "Take the node out of service: look at its ECC and AER counters" },
	{ "memory-copy", "the GPU's library refused the copy", "Look at dmesg on the node" },
};
const size_t n_sentences = sizeof(sentences) / sizeof(*sentences);

const struct sentence *sentence_of(const char *id)
{
	for (size_t i = 0; i < n_sentences; i++) {
		if (strcmp(sentences[i].id, id) == 0)
			return &sentences[i];
	}
	assert(!"a kind of trouble without a sentence");
	return &sentences[0];
}
