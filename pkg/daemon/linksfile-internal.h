/* The history of one link, and the file that keeps it. */
#ifndef RAILMATE_DAEMON_LINKSFILE_INTERNAL_H
#define RAILMATE_DAEMON_LINKSFILE_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hw/bdf.h"
#include "pool/link.h"

struct err;
struct strbuf;

/* A port of a PF of a pool. Pools may have limits of their own, so each judges for itself. */
struct link_entry {
	char *resource;
	char pf[BDF_STRLEN];
	int port; /* from 1; 1 also while the PF has no RDMA device */
	struct link_history history;
	char *degraded;	  /* a clause; NULL: it is well */
	int64_t since_ms; /* Unix time */
	bool unhealthy;
	bool seen; /* by the check under way */
};

void links_free_entry(struct link_entry *e);

/* boot: an id of this start of the machine, for times are monotonic and counters begin anew. */
void links_write(const struct link_entry *const *v, size_t n, const char *boot, struct strbuf *out);
/* The text of an earlier railmated; of another start of the machine: nothing. Errors for the rate
 * are counted from now_ms on. -errno: it is not such a text, *ret and *ret_n are untouched. */
int links_read(const char *text, size_t len, const char *path, const char *boot, int64_t now_ms,
	       struct link_entry ***ret, size_t *ret_n, struct err *err);

#endif
