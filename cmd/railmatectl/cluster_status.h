/* The answers of `railmatectl status --json` of many nodes, as rows of a table. Whatever a node
 * says becomes a row; one without an answer becomes a row that says why. */
#ifndef RAILMATE_CMD_CLUSTER_STATUS_H
#define RAILMATE_CMD_CLUSTER_STATUS_H

#include <stddef.h>
#include <stdint.h>

#include "cluster_switches.h"

struct strbuf;

enum fleet_level { FLEET_PASS, FLEET_WARN, FLEET_FAIL, FLEET_SILENT, FLEET_LEVELS };

struct fleet_row {
	const char *node;
	enum fleet_level level;
	const char
		*error;	  /* FLEET_SILENT: why there is no answer, a sentence without a full stop */
	const char *text; /* the answer, JSON */
	size_t len;
	const char *version, *doctor; /* NULL: not known */
	const char *trouble;	      /* the first of them; NULL */
	size_t n_trouble;
	int64_t vfs, free, held;
	int64_t unusable; /* draining, in use by no container, unhealthy */
	int64_t links, down, checked, best;
};

struct fleet {
	struct arena *arena;
	struct fleet_row *rows; /* heap */
	size_t n, cap;
	struct fabric fabric;
	struct fabric_finding *findings; /* of the fabric: a WARN */
	size_t n_findings;
};

/* text: what a node answered, or what --record has written of it. */
void fleet_add(struct fleet *f, const char *node, const char *text, size_t len);
void fleet_add_error(struct fleet *f, const char *node, const char *why);
/* A WARN of a node that was added. */
void fleet_add_trouble(struct fleet *f, const char *node, const char *sentence);
/* Compares the nodes; the worst first. */
void fleet_judge(struct fleet *f);
enum fleet_level fleet_level(const struct fleet *f); /* of the worst */
void fleet_text(const struct fleet *f, struct strbuf *out);
void fleet_json(const struct fleet *f, struct strbuf *out);
/* One row: {"node", "error", "status"}, with a line feed. */
void fleet_row_json(const struct fleet_row *row, struct strbuf *out);

#endif
