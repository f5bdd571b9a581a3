/* railmatectl status: one node in short, as text and as JSON. */
#ifndef RAILMATE_CMD_STATUS_H
#define RAILMATE_CMD_STATUS_H

#include <stdbool.h>
#include <stddef.h>

struct arena;
struct diagnosis;
struct item;
struct ledger;
struct machine;
struct strbuf;

extern const char *const status_verdicts[]; /* "PASS" … */

struct pool_status {
	const struct item *item; /* of railmated's answer */
	const char *resource, *binding;
	size_t vfs, unhealthy;
	const char *why; /* of the first VF that is unhealthy; NULL */
};

#define STATUS_RANKS 5
extern const char *const status_ranks[STATUS_RANKS]; /* "PIX" … "SYS" */
struct status_placement {
	bool known;		    /* there is a ledger */
	size_t pairs[STATUS_RANKS]; /* GPU and VF of containers that hold VFs now: PIX … SYS */
	size_t unknown;		    /* VFs that are held, for GPUs that are not known */
	size_t checked, best; /* recorded choices whose GPUs are known; those that were the best */
};

enum status_verdict { STATUS_PASS, STATUS_WARN, STATUS_FAIL, STATUS_VERDICTS };

struct status {
	struct arena *arena;
	const struct machine *machine;
	const char *node;
	const char *version;	   /* of railmated; NULL: not known */
	const char *silent;	   /* why railmated did not answer; NULL: it did */
	struct pool_status *pools; /* pools of VFs, then those whose HCAs are shared */
	size_t n_pools, n_all, n_unknown_slots;
	const struct item *shared;     /* of railmated's document: a list; NULL: no answer */
	const struct item *conditions; /* of railmated; a list */
	const struct item *links;      /* of railmated's document, or of own_document(): a list */
	struct status_placement placement;
	const struct diagnosis *doctor; /* NULL: doctor was not asked for */
	enum status_verdict verdict;
	const char **trouble; /* reasons of the verdict, sentences without a full stop */
	size_t n_trouble;
};

/* Each fills in its part. */
void status_read_pools(struct status *s, const struct item *answer);
void status_read_placement(struct status *s, const struct ledger *ledger);
/* The verdict: after all parts. */
void status_judge(struct status *s);

void status_text(const struct status *s, struct strbuf *out);
void status_json(const struct status *s, struct strbuf *out);

#endif
