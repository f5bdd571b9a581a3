/* Counters of VFs, of their PFs and of their own RDMA devices. */
#include <stdio.h>

#include "base/arena.h"
#include "base/mem.h"
#include "base/str.h"
#include "devstate/devstate.h"
#include "hw/inventory.h"
#include "hw/portstats.h"
#include "netlink/netlink.h"
#include "sysroot/dir.h"
#include "sysroot/sysroot.h"

/*
 * Of some 60 counters of a driver those that show which containers a bad link or a congested
 * network affects. Most drivers read all of them at once (lifespan), but each is a file. Names of:
 * drivers/infiniband/hw (mlx5/counters.c, bnxt_re/hw_counters.c, irdma/verbs.c).
 */
static const char *const names[] = {
	"RetransSegs",
	"RxECNMrkd",
	"cnpHandled",
	"cnpSent",
	"duplicate_request",
	"implied_nak_seq_err",
	"local_ack_timeout_err",
	"max_retry_exceeded",
	"np_cnp_sent",
	"np_ecn_marked_roce_packets",
	"out_of_buffer",
	"out_of_sequence",
	"packet_seq_err",
	"res_oos_drop_count",
	"rnr_nak_retry_err",
	"rnr_naks_rcvd",
	"roce_adp_retrans",
	"rp_cnp_handled",
	"rx_cnp_pkts",
	"rx_ecn_marked_pkts",
	"rx_icrc_encapsulated",
	"seq_err_naks_rcvd",
	"to_retransmits",
	"tx_cnp_pkts",
};

static void read_counters(const struct sysroot *root, const struct hw_rdma *rdma,
			  struct hw_vf_stats *s, struct arena *arena)
{
	struct hw_counter found[ARRAY_LEN(names)];
	_cleanup_dir_ struct dir dir = DIR_CLOSED;
	char path[256], text[32];

	snprintf(path, sizeof(path), "sys/class/infiniband/%s/ports/%d/hw_counters", rdma->name,
		 rdma->ports[0].number);
	if (dir_open_path(root, path, &dir) < 0)
		return;
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		uint64_t value;

		if (dir_read(&dir, names[i], text, sizeof(text)) > 0 &&
		    str_to_u64(text, 10, UINT64_MAX, &value) == 0)
			found[s->n_driver++] = (struct hw_counter) { names[i], value };
	}
	s->driver = arena_copy(arena, found, s->n_driver * sizeof(*found));
}

/* Of all VFs of this PF that are asked for. */
static void read_traffic(const struct hw_inventory *inv, int pf, struct hw_vf_stats *v, size_t n,
			 struct arena *arena)
{
	const struct netlink_vf_traffic *traffic;
	size_t n_traffic;

	if (!inv->pci[pf].netdev ||
	    netlink_vf_traffic(inv->pci[pf].netdev, (size_t)inv->pci[pf].sriov_num, arena, &traffic,
			       &n_traffic, NULL) < 0)
		return;
	for (size_t i = 0; i < n; i++) {
		const struct hw_pci *f = &inv->pci[v[i].pci];

		for (size_t k = 0; f->physfn == pf && k < n_traffic; k++) {
			if (traffic[k].index != f->vf_index)
				continue;
			v[i].has_traffic = true;
			v[i].received = traffic[k].received;
			v[i].sent = traffic[k].sent;
		}
	}
}

struct hw_vf_stats *devstate_vf_stats(const struct sysroot *root, const struct hw_inventory *inv,
				      const int *vfs, size_t n, struct arena *arena)
{
	struct hw_vf_stats *v = arena_array(arena, n, sizeof(*v));
	bool *asked = arena_array(arena, inv->n_pci, sizeof(*asked));

	for (size_t i = 0; i < n; i++)
		v[i].pci = vfs[i];
	for (size_t i = 0; i < n; i++) {
		int pf = inv->pci[vfs[i]].physfn, rdma = hw_find_rdma(inv, vfs[i]);

		if (pf >= 0 && !asked[pf] && sysroot_is_live(root)) {
			asked[pf] = true;
			read_traffic(inv, pf, v, n, arena);
		}
		if (rdma >= 0 && inv->rdma[rdma].n_ports && n <= DEVSTATE_VF_COUNTERS)
			read_counters(root, &inv->rdma[rdma], &v[i], arena);
	}
	return v;
}
