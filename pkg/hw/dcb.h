/*
 * Data Center Bridging of a port (IEEE 802.1Qaz, Qbb): on which priority a packet travels, and
 * which priorities are lossless. It is the PF's; VFs have none of their own. Pure.
 */
#ifndef RAILMATE_HW_DCB_H
#define RAILMATE_HW_DCB_H

#include <stdbool.h>
#include <stdint.h>

struct strbuf;

#define HW_DCB_PRIORITIES 8
#define HW_DCB_DSCPS	  64

enum hw_dcb_trust { HW_DCB_TRUST_UNKNOWN, HW_DCB_TRUST_PCP, HW_DCB_TRUST_DSCP };

struct hw_dcb {
	int pfc; /* bit n: PFC on priority n; -1 unknown */
	/* The source of the priority; unknown to the driver: DSCP when it has a table for it */
	enum hw_dcb_trust trust;
	int8_t priority_of_dscp[HW_DCB_DSCPS]; /* -1: no entry */
	bool has_ets;
	uint8_t tc_of_priority[HW_DCB_PRIORITIES];  /* has_ets */
	uint8_t bandwidth_of_tc[HW_DCB_PRIORITIES]; /* percent; has_ets */
};

struct hw_dcb hw_dcb_unknown(void);
/* Priority of an untagged RoCE v2 packet of this traffic class (DSCP << 2 | ECN); -1 unknown. */
int hw_dcb_priority(const struct hw_dcb *dcb, int tc);
/* "3, 4", "no priority"; pfc >= 0. */
void hw_dcb_put_priorities(int pfc, struct strbuf *out);
/*
 * A policy of NCCL's environment against the port it goes through: NCCL_IB_TC (0 ... 255) and
 * NCCL_IB_SL (0 ... 15), -1 where not set. True: they contradict, and out got the clause with the
 * contradiction ("NCCL_IB_TC 106 is DSCP 26, ..."). An unknown value contradicts nothing.
 */
bool hw_dcb_contradicts(const struct hw_dcb *dcb, int tc, int sl, struct strbuf *out);
/* hw_dcb_contradicts() of another variable with a traffic class. */
bool hw_dcb_class_contradicts(const struct hw_dcb *dcb, const char *name, int tc,
			      struct strbuf *out);

#endif
