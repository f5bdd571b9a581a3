/*
 * How often did the link of a PF go down, and how many errors does it count? A handful of files
 * rather than all of them: some drivers ask the firmware for each.
 * Documentation/ABI/testing/sysfs-class-net, Documentation/ABI/stable/sysfs-class-infiniband.
 */
#include "base/mem.h"
#include "devstate/devstate.h"
#include "sysroot/sysroot.h"

static const char *const error_files[] = {
	"counters/symbol_error",
	"counters/link_error_recovery",
	"counters/port_rcv_errors",
	"counters/local_link_integrity_errors",
	"counters/excessive_buffer_overrun_errors",
	"hw_counters/rx_icrc_encapsulated",
};

static int64_t read_port(const struct sysroot *root, const struct hw_rdma *rdma, size_t port,
			 const char *file)
{
	uint64_t value;

	if (sysroot_read_u64(root, 10, &value, "sys/class/infiniband/%s/ports/%d/%s", rdma->name,
			     rdma->ports[port].number, file) < 0 ||
	    value > INT64_MAX)
		return -1;
	return (int64_t)value;
}

struct link_counts devstate_link_counts(const struct sysroot *root, const struct hw_inventory *inv,
					int pci, size_t port)
{
	const struct hw_pci *pf = &inv->pci[pci];
	struct link_counts ret = { -1, -1, -1 };
	int rdma = hw_find_rdma(inv, pci);
	uint64_t downs;

	if (!port && pf->netdev &&
	    sysroot_read_u64(root, 10, &downs, "sys/class/net/%s/carrier_down_count", pf->netdev) ==
		    0)
		ret.netdev_downs = (int64_t)downs;
	if (rdma >= 0 && port < inv->rdma[rdma].n_ports) {
		ret.port_downs = read_port(root, &inv->rdma[rdma], port, "counters/link_downed");
		for (size_t i = 0; i < ARRAY_LEN(error_files); i++) {
			int64_t value = read_port(root, &inv->rdma[rdma], port, error_files[i]);

			if (value >= 0)
				ret.errors = ret.errors < 0		      ? value
					     : value > INT64_MAX - ret.errors ? INT64_MAX
									      : ret.errors + value;
		}
	}
	return ret;
}
