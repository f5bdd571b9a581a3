/*
 * What became of a ResourceClaim, in its status: the VFs behind each device of ours. An "apply" of
 * our entries alone, so that those of other drivers stay as they are. Pure.
 */
#ifndef RAILMATE_DRA_CLAIMSTATUS_H
#define RAILMATE_DRA_CLAIMSTATUS_H

#include <stddef.h>

struct arena;
struct dra_claim_ref;
struct dra_result;
struct ledger;
struct node;
struct strbuf;

#define CLAIMSTATUS_TYPE "application/apply-patch+yaml" /* JSON is YAML */

/* The path of the PATCH; NULL: the claim cannot have that name. In the arena. */
const char *claimstatus_path(const char *driver, const struct dra_claim_ref *claim,
			     struct arena *a);

/* Where a CNI plugin has moved a VF. */
struct claimstatus_net {
	const char *vf;		/* PCI address */
	const char *netdev;	/* there */
	const char *const *ips; /* "10.1.0.2/24" */
	size_t n_ips;
};

struct claimstatus {
	const struct node *node;
	const struct ledger *ledger;
	const char *driver;
	const struct dra_claim_ref *claim;
	const struct dra_result *result; /* a good one */
	const struct claimstatus_net *nets;
	size_t n_nets;
};

/* The same VFs give the same bytes: applied again they change nothing. */
void claimstatus_write(const struct claimstatus *c, struct strbuf *out);

#endif
