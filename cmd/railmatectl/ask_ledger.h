/* The ledger of this machine: the running daemon's, or the one that a stopped daemon left on the
 * disk. */
#ifndef RAILMATE_CMD_ASK_LEDGER_H
#define RAILMATE_CMD_ASK_LEDGER_H

#include <stdbool.h>

#include "ledger/file.h"

struct arena;
struct err;
struct ledger;

struct ledger_source {
	const char *socket,
		*state_dir; /* of the command line; socket "none": the daemon is not asked */
};

struct ledger_answer {
	struct ledger *ledger; /* ledger_free() */
	const char *from;      /* "railmated at …", "…/ledger.json"; in the arena */
	bool running;	       /* the daemon answered */
};

/* Where the ledger is from the disk, a line on standard error has the reason. Negative: neither is
 * to be had. */
int ask_ledger(const struct ledger_source *source, struct arena *a, struct ledger_answer *ret,
	       struct err *err);

#endif
