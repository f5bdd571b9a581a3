#include "support/bigtree.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/str.h"

#define MAX_PFS 64

/* Per socket a root complex each: buses 0x00 and 0x80 in domain = socket. */
struct spot {
	int socket, bus;
	char bridge[96]; /* path of the downstream side below sys/devices */
};

static struct spot spot_of(int i)
{
	struct spot s = { .socket = i % 2, .bus = 4 + i / 2 * 4 };

	snprintf(s.bridge, sizeof(s.bridge), "pci%04x:00/%04x:00:%02x.%d/%04x:%02x:00.0", s.socket,
		 s.socket, 1 + i / 2 / 8, i / 2 % 8, s.socket, s.bus);
	return s;
}

static void link_line(struct strbuf *out, const char *addr, const char *below)
{
	strbuf_printf(out, "l sys/bus/pci/devices/%s -> ../../../devices/%s/%s\n", addr, below,
		      addr);
}

struct ids {
	const char *vendor, *device, *class;
};

static void common(struct strbuf *out, const char *path, const struct ids *ids, int numa)
{
	strbuf_printf(out, "f sys/devices/%s/vendor = %s\\n\n", path, ids->vendor);
	strbuf_printf(out, "f sys/devices/%s/device = %s\\n\n", path, ids->device);
	strbuf_printf(out, "f sys/devices/%s/class = %s\\n\n", path, ids->class);
	strbuf_printf(
		out,
		"f sys/devices/%s/modalias = pci:v%08lXd%08lXsv%08Xsd%08Xbc%.2ssc%.2si%.2s\\n\n",
		path, strtoul(ids->vendor, NULL, 16), strtoul(ids->device, NULL, 16), 0, 0,
		ids->class + 2, ids->class + 4, ids->class + 6);
	strbuf_printf(out, "f sys/devices/%s/numa_node = %d\\n\n", path, numa);
}

static void physical(struct strbuf *out, const char *path)
{
	strbuf_printf(out, "f sys/devices/%s/current_link_speed = 32.0 GT/s PCIe\\n\n", path);
	strbuf_printf(out, "f sys/devices/%s/current_link_width = 16\\n\n", path);
	strbuf_printf(out, "f sys/devices/%s/max_link_speed = 32.0 GT/s PCIe\\n\n", path);
	strbuf_printf(out, "f sys/devices/%s/max_link_width = 16\\n\n", path);
}

static void add_bridges(struct strbuf *out, int i)
{
	static const struct ids port = { "0x8086", "0x352a", "0x060400" },
				sw = { "0x1000", "0xc030", "0x060400" };
	struct spot s = spot_of(i);
	char addr[32], below[128], path[192];

	snprintf(addr, sizeof(addr), "%04x:00:%02x.%d", s.socket, 1 + i / 2 / 8, i / 2 % 8);
	snprintf(below, sizeof(below), "pci%04x:00", s.socket);
	snprintf(path, sizeof(path), "%s/%s", below, addr);
	link_line(out, addr, below);
	common(out, path, &port, s.socket);
	physical(out, path);
	snprintf(addr, sizeof(addr), "%04x:%02x:00.0", s.socket, s.bus);
	link_line(out, addr, path);
	common(out, s.bridge, &sw, s.socket);
	physical(out, s.bridge);
	for (int port_no = 0; port_no < 2; port_no++) {
		snprintf(addr, sizeof(addr), "%04x:%02x:%02x.0", s.socket, s.bus + 1, port_no);
		snprintf(path, sizeof(path), "%s/%s", s.bridge, addr);
		link_line(out, addr, s.bridge);
		common(out, path, &sw, s.socket);
		physical(out, path);
	}
}

static void add_rdma(struct strbuf *out, const char *addr, const char *path, const char *netdev,
		     int number)
{
	char ib[256];

	snprintf(ib, sizeof(ib), "sys/devices/%s/infiniband/mlx5_%d", path, number);
	strbuf_printf(out,
		      "l sys/devices/%s/driver -> ../../../../../../bus/pci/drivers/mlx5_core\n",
		      path);
	strbuf_printf(out,
		      "l sys/devices/%s/iommu_group -> ../../../../../../kernel/iommu_groups/%d\n",
		      path, number);
	strbuf_printf(out, "f sys/devices/%s/net/%s/type = 1\\n\n", path, netdev);
	strbuf_printf(out, "f sys/devices/%s/net/%s/carrier = 1\\n\n", path, netdev);
	strbuf_printf(out, "l sys/class/net/%s -> ../../devices/%s/net/%s\n", netdev, path, netdev);
	strbuf_printf(out, "l %s/device -> ../../../%s\n", ib, addr);
	strbuf_printf(out, "f %s/ports/1/state = 4: ACTIVE\\n\n", ib);
	strbuf_printf(out, "f %s/ports/1/phys_state = 5: LinkUp\\n\n", ib);
	strbuf_printf(out, "f %s/ports/1/rate = 400 Gb/sec (4X NDR)\\n\n", ib);
	strbuf_printf(out, "f %s/ports/1/link_layer = Ethernet\\n\n", ib);
	strbuf_printf(out,
		      "l sys/class/infiniband/mlx5_%d -> ../../devices/%s/infiniband/mlx5_%d\n",
		      number, path, number);
	strbuf_printf(out, "f sys/devices/%s/infiniband_verbs/uverbs%d/dev = 231:%d\\n\n", path,
		      number, 192 + number);
	strbuf_printf(out, "f sys/devices/%s/infiniband_verbs/uverbs%d/ibdev = mlx5_%d\\n\n", path,
		      number, number);
	strbuf_printf(
		out,
		"l sys/class/infiniband_verbs/uverbs%d -> ../../devices/%s/infiniband_verbs/uverbs%d\n",
		number, path, number);
}

static void add_pf(struct strbuf *out, int i, int vfs)
{
	static const struct ids pf = { "0x15b3", "0x1021", "0x020000" },
				vf = { "0x15b3", "0x101e", "0x020000" };
	struct spot s = spot_of(i);
	char below[128], addr[32], pf_addr[32], path[192], netdev[32];

	snprintf(below, sizeof(below), "%s/%04x:%02x:00.0", s.bridge, s.socket, s.bus + 1);
	for (int n = -1; n < vfs; n++) {
		int rid = n + 1;

		snprintf(addr, sizeof(addr), "%04x:%02x:%02x.%d", s.socket, s.bus + 2, rid / 8,
			 rid % 8);
		snprintf(path, sizeof(path), "%s/%s", below, addr);
		snprintf(netdev, sizeof(netdev), n < 0 ? "ens%d" : "ens%dv%d", i, n);
		link_line(out, addr, below);
		common(out, path, n < 0 ? &pf : &vf, s.socket);
		add_rdma(out, addr, path, netdev, i * (vfs + 1) + rid);
		if (n < 0) {
			snprintf(pf_addr, sizeof(pf_addr), "%s", addr);
			physical(out, path);
			strbuf_printf(out, "f sys/devices/%s/sriov_totalvfs = 127\\n\n", path);
			strbuf_printf(out, "f sys/devices/%s/sriov_numvfs = %d\\n\n", path, vfs);
			strbuf_printf(out, "f sys/devices/%s/sriov_offset = 1\\n\n", path);
			strbuf_printf(out, "f sys/devices/%s/sriov_stride = 1\\n\n", path);
			continue;
		}
		strbuf_printf(out, "l sys/devices/%s/physfn -> ../%s\n", path, pf_addr);
		strbuf_printf(out, "l sys/devices/%s/%s/virtfn%d -> ../%s\n", below, pf_addr, n,
			      addr);
	}
}

static void add_gpu(struct strbuf *out, int i, int pfs)
{
	static const struct ids gpu = { "0x10de", "0x2330", "0x030200" };
	struct spot s = spot_of(i % pfs);
	char below[128], addr[32], path[192];

	snprintf(below, sizeof(below), "%s/%04x:%02x:01.0", s.bridge, s.socket, s.bus + 1);
	snprintf(addr, sizeof(addr), "%04x:%02x:%02x.0", s.socket, s.bus + 3, i / pfs);
	snprintf(path, sizeof(path), "%s/%s", below, addr);
	link_line(out, addr, below);
	common(out, path, &gpu, s.socket);
	physical(out, path);
	strbuf_printf(out, "l sys/devices/%s/driver -> ../../../../../../bus/pci/drivers/nvidia\n",
		      path);
	strbuf_printf(
		out,
		"f proc/driver/nvidia/gpus/%s/information = Model: \\x09\\x09 NVIDIA H100 80GB HBM3\\n"
		"GPU UUID: \\x09 GPU-00000000-0000-0000-0000-%012x\\nBus Location: \\x09 %s\\n"
		"Device Minor: \\x09 %d\\n\n",
		addr, i, addr, i);
}

void bigtree_write(int pfs, int vfs, int gpus, struct strbuf *out)
{
	assert(pfs > 0 && pfs <= MAX_PFS && vfs >= 0 && vfs <= 127);
	strbuf_puts(out, "f sys/devices/system/node/node0/distance = 10 21\\n\n"
			 "f sys/devices/system/node/node1/distance = 21 10\\n\n");
	for (int i = 0; i < pfs; i++)
		add_bridges(out, i);
	for (int i = 0; i < pfs; i++)
		add_pf(out, i, vfs);
	for (int i = 0; i < gpus; i++)
		add_gpu(out, i, pfs);
}
