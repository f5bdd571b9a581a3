/* Shared by the files of the room. */
#ifndef RAILMATE_LEDGER_LEDGER_INTERNAL_H
#define RAILMATE_LEDGER_LEDGER_INTERNAL_H

#include "ledger/ledger.h"

struct arena;

/* Lies in an arena of its own, as large as it is: holds come and go one by one. */
struct hold_entry {
	struct ledger_hold hold;
	struct arena *arena;
};

/*
 * A decision is kept as its line of text: a quarter of the size of the struct with its strings, and
 * the file is written often. The struct is made when it is asked for, and lives until the next
 * change of the ledger.
 */
struct decision_entry {
	uint64_t number;
	unsigned holds; /* live ones that it chose */
	char *text;
	size_t len;
	struct ledger_decision *view; /* NULL: not made yet */
	struct arena *view_arena;
	struct decision_entry *next_view;
};
struct views {
	struct decision_entry *first;
};

struct ledger {
	struct hold_entry **holds; /* sorted by address */
	size_t n_holds, cap_holds;
	struct decision_entry **decisions; /* sorted by number */
	size_t n_decisions, cap_decisions;
	struct views *views; /* may change in a const ledger: that is no change of it */
	uint64_t next;	     /* number of the next decision */
	uint64_t generation;
	struct arena *copied; /* of a copy: its holds; NULL */
};

/* A text of this version begins with it; 16 hexadecimal digits and LEDGER_HEAD_END follow. */
#define LEDGER_HEAD	"{\"railmate\":\"ledger\",\"version\":1,\"checksum\":\""
#define LEDGER_HEAD_END "\",\n"

#endif
