/* What the files of the ledger share. */
#ifndef RAILMATE_LEDGER_LEDGER_INTERNAL_H
#define RAILMATE_LEDGER_LEDGER_INTERNAL_H

#include "ledger/ledger.h"

struct arena;

/* Each lies in an arena of its own, as large as it is: holds and decisions come and go one by one. */
struct hold_entry {
	struct ledger_hold hold;
	struct arena *arena;
};
struct decision_entry {
	struct ledger_decision d;
	struct arena *arena;
	unsigned holds; /* live ones that it chose */
};

struct ledger {
	struct hold_entry **holds; /* sorted by address */
	size_t n_holds, cap_holds;
	struct decision_entry **decisions; /* sorted by number */
	size_t n_decisions, cap_decisions;
	uint64_t next; /* number of the next decision */
	uint64_t generation;
};

/* Appends a decision under its own number, which is greater than that of any other. */
void ledger_append(struct ledger *l, const struct ledger_decision *d);
/* FNV-1a, 64 bits: every step is one to one, so that no change of a single byte goes unseen. */
uint64_t ledger_checksum(const char *text, size_t len);

/* A text of this version begins with it; 16 hexadecimal digits and LEDGER_HEAD_END follow. */
#define LEDGER_HEAD	"{\"railmate\":\"ledger\",\"version\":1,\"checksum\":\""
#define LEDGER_HEAD_END "\",\n"
#define LEDGER_SUM_LEN	16

extern const char *const ledger_gpus_names[LEDGER_GPUS_MAX];

#endif
