/* railmatectl explain: the ledger as chapters, and their text. */
#ifndef RAILMATE_CMD_EXPLAIN_H
#define RAILMATE_CMD_EXPLAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ledger_decision;
struct ledger_hold;
struct strbuf;

/* One decision with the VFs that are still held by it; or VFs whose choice is not recorded. */
struct chapter {
	const struct ledger_decision *d; /* NULL: not recorded */
	const struct ledger_hold **holds;
	size_t n_holds;
};

struct explanation {
	const char *from; /* "railmated at …", "…/ledger.json" */
	bool running;	  /* the daemon answered, not the ledger's file */
	struct chapter *chapters;
	size_t n_chapters;
	/* Of a pod that has shares of HCAs: lines, and the same as JSON objects; NULL: it has none,
	 * or the daemon does not answer */
	const char *shares, *shares_json;
};

void explain_time(struct strbuf *out, int64_t ms); /* Unix time; 0: not known */
void explain_text(const struct explanation *s, struct strbuf *out);
void explain_json(const struct explanation *s, struct strbuf *out);

#endif
