/*
 * Who holds which VF, and why it was chosen. Pure: a value in memory with a text form;
 * ledger/file.h keeps it on disk. Owned by one thread (rpc). Strings that go in are copied; those
 * that come out live until the next change of the ledger.
 *
 * A VF has at most one hold. Code that gives a VF to a container looks here first: the kubelet may
 * give a held one (docs/design/kubelet.md §2.2, §1.4).
 */
#ifndef RAILMATE_LEDGER_LEDGER_H
#define RAILMATE_LEDGER_LEDGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct err;
struct ledger;
struct strbuf;

#define LEDGER_VERSION	 1
#define LEDGER_DECISIONS 256 /* the newest ones are kept, beside those of every live hold */

enum ledger_gpus { LEDGER_GPUS_UNKNOWN, LEDGER_GPUS_PREDICTED, LEDGER_GPUS_KNOWN, LEDGER_GPUS_MAX };

/* NULL or "": not known (Allocate names no pod). uid: by which the kubelet knows the pod (its
 * checkpoint, cgroup names, CNI): the identity. The API server knows a static pod by another one.
 */
struct ledger_owner {
	const char *ns, *pod, *uid, *container;
	/* The UID of the ResourceClaim that has the VF (DRA): it holds it, and not the container,
	 * which is the first of its pods */
	const char *claim;
};

struct ledger_owner ledger_copy_owner(const struct ledger_owner *owner, struct arena *a);

struct ledger_hold {
	const char *vf; /* PCI address: the key */
	const char *resource;
	/* Late binding: the device id the kubelet knows; NULL: the id is the PCI address */
	const char *slot;
	struct ledger_owner owner;
	bool pending; /* Allocate gave it, and no container has started with it since */
	/* The kubelet thinks the VF free; a process or a network namespace still has it */
	bool draining;
	/* Draining, and the container has started again with another VF: a running pod does not use
	 * this one */
	bool replaced;
	bool seen_cgroup; /* the pod's cgroup was there: an absent one means an end */
	/* The VF's RDMA device when it was given: known again while it is away in a pod; NULL */
	const char *rdma;
	const char *netdev; /* the VF's network interface then; NULL */
	/* The VF's driver when rdma and netdev were filled in: with another driver neither is away,
	 * but gone; NULL */
	const char *driver;
	/* The number of the kubelet process that has shown the pod with the VF, which no other
	 * process has; 0: none */
	uint64_t kubelet;
	int64_t since_ms; /* wall clock, Unix time */
	/* The number of the decision that chose it; 0: none (rebuilt, or not ours) */
	uint64_t decision;
};

struct ledger_pair {
	const char *gpu, *vf; /* PCI addresses */
	const char *path;     /* "PIX" … "SYS" */
};

/* A PF, or a VF's own place, and how many VFs were free there at that moment. */
struct ledger_place {
	const char *pf;
	int free;
};

/* The record that `railmatectl explain` prints. */
struct ledger_decision {
	uint64_t number; /* from 1; given by ledger_decide() */
	int64_t at_ms;	 /* wall clock */
	const char *resource;
	bool late;
	struct ledger_owner owner; /* filled in at PreStartContainer when it was not known before */
	/* Names of the ResourceClaims that it was made for, in the pod's namespace, with commas;
	 * NULL or "": none */
	const char *claims;
	int asked; /* VFs */
	enum ledger_gpus known;
	/* How the GPUs were known, a phrase: "PodResources Get", "nvidia.com/gpu's
	 * GetPreferredAllocation" */
	const char *source;
	/* The GPUs it was chosen for. */
	const char *const *gpus;
	size_t n_gpus;
	const struct ledger_place *free;
	size_t n_free;
	const char *const *chosen;
	size_t n_chosen;
	/* "uverbs5" of each, that Allocate gave for good (early binding); none: not known */
	const char *const *nodes;
	size_t n_nodes;
	const struct ledger_pair *pairs;
	size_t n_pairs;
	int cost; /* sum of ranks, PIX 0 … SYS 4 */
	/* The best other choice; 0: there was none. */
	const char *const *alternative;
	size_t n_alternative;
	int alternative_cost;
	/* At PreStartContainer: the GPUs that really came. */
	bool checked;
	const char *const *real_gpus;
	size_t n_real_gpus;
	/* Of the chosen VFs for these GPUs; of the best choice among the VFs that were free then */
	int real_cost, best_cost;
};

struct ledger *ledger_new(void);
/* A copy, for another thread to read. */
struct ledger *ledger_copy(const struct ledger *l);
void ledger_free(struct ledger *l); /* NULL is fine */

const struct ledger_hold *ledger_find(const struct ledger *l, const char *vf); /* NULL: free */
const struct ledger_hold *ledger_find_slot(const struct ledger *l,
					   const char *slot); /* NULL: not bound */
size_t ledger_holds(const struct ledger *l);
const struct ledger_hold *ledger_hold_at(const struct ledger *l,
					 size_t i); /* in the order of the addresses */
int ledger_vf_cmp(const char *a,
		  const char *b); /* the order of addresses: a longer domain is a greater one */
/* Replaces the hold of the VF, and frees the slot from any other VF, which drains then. Equal to
 * the hold that is there: no change. */
void ledger_put(struct ledger *l, const struct ledger_hold *hold);
void ledger_drop(struct ledger *l, const char *vf); /* nothing to drop is fine */

/* Returns the decision's number; d->number does not count. */
uint64_t ledger_decide(struct ledger *l, const struct ledger_decision *d);
const struct ledger_decision *ledger_decision(const struct ledger *l,
					      uint64_t number); /* NULL: forgotten */
/* ledger_decision() into an arena: for reading many. */
const struct ledger_decision *ledger_decision_read(const struct ledger *l, uint64_t number,
						   struct arena *a);
/* The number of the next decision; ledger_skip() makes it greater than number. */
uint64_t ledger_next(const struct ledger *l);
void ledger_skip(struct ledger *l, uint64_t number);
void ledger_undecide(struct ledger *l,
		     uint64_t number); /* forgets the decision, unless a live hold has it */
size_t ledger_decisions(const struct ledger *l);
const struct ledger_decision *ledger_decision_at(const struct ledger *l,
						 size_t i); /* oldest first */
/* Does decision i mention this VF, GPU or PF? Much cheaper than reading the decision. */
bool ledger_decision_mentions(const struct ledger *l, size_t i, const char *address);
/* A decision with facts that became known later; its number stays. Unknown ones are ignored. */
void ledger_amend(struct ledger *l, uint64_t number, const struct ledger_decision *d);

/* Grows with every change: the text on disk is that of one such number. */
uint64_t ledger_generation(const struct ledger *l);

/* JSON with a version and a checksum of the rest: a text cut anywhere, or edited, is refused. */
void ledger_write(const struct ledger *l, struct strbuf *out);
/* -EBADMSG: torn or foreign; -ENOTSUP: of a later version; with a sentence that begins with name.
 */
int ledger_read(const char *text, size_t len, const char *name, struct ledger **ret,
		struct err *err);

#endif
