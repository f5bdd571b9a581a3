/*
 * What became of a ResourceClaim, in its status: the VFs behind each device of ours. An "apply" of
 * our entries alone, so that those of other drivers stay as they are. Pure.
 */
#ifndef RAILMATE_DRA_CLAIMSTATUS_H
#define RAILMATE_DRA_CLAIMSTATUS_H

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
/* The same VFs give the same bytes: applied again they change nothing. result: a good one. */
void claimstatus_write(const struct node *node, const struct ledger *ledger, const char *driver,
		       const struct dra_claim_ref *claim, const struct dra_result *result,
		       struct strbuf *out);

#endif
