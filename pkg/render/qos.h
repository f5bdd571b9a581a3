/* What of a PF's priorities (DCB) can be held against the operator's NCCL_IB_TC. Whoever can ask the kernel fills it; -1 is unknown. */
#ifndef RAILMATE_RENDER_QOS_H
#define RAILMATE_RENDER_QOS_H

#include <stdint.h>

struct qos_facts {
	int trust_dscp;		/* 1: the priority comes from the DSCP, 0: from the VLAN tag */
	int8_t dscp_prio[64];	/* DSCP → priority 0 … 7 */
	int pfc;		/* priorities with flow control (PFC), one bit each */
};

#endif
