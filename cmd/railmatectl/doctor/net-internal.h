/* Shared by the checks of networks: VFs in the same trouble are one finding for each PF, not a
 * thousand. */
#ifndef RAILMATE_DOCTOR_NET_INTERNAL_H
#define RAILMATE_DOCTOR_NET_INTERNAL_H

#include "doctor/doctor-internal.h"
#include "facts/net.h"
#include "hw/inventory.h"

struct strbuf;

/* The judgements of a VF: "VF 0000:17:00.2 (mlx5_4) <one>.", "3 of the 16 VFs of 0000:17:00.0
 * (mlx5_0) <many>: ...". */
struct net_kind {
	enum diagnosis_verdict verdict;
	const struct diagnosis_advice *advice;
	const char *one, *many;
};
#define NET_NOT_ABOUT (-1)
#define NET_SHOWN     4 /* VFs of a group that are named */
/* The row of kinds that an RDMA device (index of inv->rdma) is, or NET_NOT_ABOUT. */
typedef int net_judge(const struct facts *f, size_t rdma);
/* Row 0 is the right state, reported once for all VFs. No finding when it is about no VF. */
void net_judge_vfs(const struct facts *f, struct diagnosis *r, net_judge *judge,
		   const struct net_kind *kinds);

/* VFs that are for containers; seen from within one: for this one. */
bool net_is_our_vf(const struct facts *f, size_t rdma);
/* The port that doctor_rdma is about; NULL: it has none. */
const struct hw_port *net_port(const struct facts *f, size_t rdma);
enum hw_link net_link(const struct facts *f, size_t rdma);
/* The RDMA device of a PF that containers' VFs are on (element of f->nic); -1: none, or the element
 * is a VF itself. */
int net_pf_rdma(const struct facts *f, int pci);
/* "0000:17:00.0 (mlx5_0, eth2)": an arena string. */
const char *net_name(const struct facts *f, int pci);
bool net_same_model(const struct hw_pci *a, const struct hw_pci *b);
bool net_is_zero(const char *guid_or_mac); /* NULL is not */
/* ", " between the elements of a list. */
void net_add(struct strbuf *list, const char *element);

#endif
