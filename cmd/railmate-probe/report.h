/*
 * What a run found: measures and findings, in the order in which they were made, and the three
 * forms they are printed in (text of at most 100 columns, JSON, a page). Filled on one thread.
 */
#ifndef RAILMATE_PROBE_REPORT_H
#define RAILMATE_PROBE_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct arena;
struct told;

/* Of a finding, a measure, a run: the worst counts, in this order. A tool's failure is never a
 * pass. */
enum outcome {
	OUTCOME_GOOD,
	OUTCOME_NOT_MEASURED, /* could not be measured: neither good nor broken */
	OUTCOME_SLOW,	      /* works, below the expectation; of a check: a warning */
	OUTCOME_BROKEN,
	OUTCOME_MAX
};
const char *outcome_name(enum outcome o); /* "good", "not measured", "slow", "broken" */

/* Exit statuses of railmate-probe. 2 is a wrong command line, as of all programs of railmate. */
enum probe_exit {
	PROBE_EXIT_GOOD = 0,
	PROBE_EXIT_BROKEN = 1,
	PROBE_EXIT_USAGE = 2,
	PROBE_EXIT_SLOW = 3,
	PROBE_EXIT_NOT_MEASURED = 4,
	PROBE_EXIT_NO_GPU_LIBRARY = 5, /* --gpu alone: nothing else is wrong */
};

/* The kinds of trouble, each with its cause and its fix: sentences.c, docs/probe.md. */
struct sentence {
	const char *id;	    /* "memlock" */
	const char *likely; /* why it is so, as a rule; NULL: `what` has it */
	const char *fix;    /* an order to the reader; NULL: nothing is to be done */
};
const struct sentence *sentence_of(const char *id); /* asserts that there is one */
extern const struct sentence sentences[];
extern const size_t n_sentences;

struct finding {
	enum outcome outcome;
	const struct sentence *sentence;
	const char
		*on; /* "mlx5_4 port 1", "0000:1b:00.0 with mlx5_4", a path; NULL: the container */
	const char *what; /* one sentence, with the kernel's own word where there is one */
};

/* The cells of the path matrix. */
enum measure_path {
	PATH_LOOPBACK,	/* a VF with itself */
	PATH_SAME_CARD, /* two VFs of one PF or one card */
	PATH_SAME_HOST, /* two VFs of one node, other cards */
	PATH_SAME_RAIL, /* two nodes */
	PATH_OTHER_RAIL,
	PATH_OTHER_SUBNET,
	PATH_MAX
};
const char *measure_path_name(enum measure_path p); /* "loopback", … "other subnet" */

/* One transfer. NAN: not measured. */
struct measure {
	enum measure_path path;
	const char *from, *to;		     /* "mlx5_4", "gpu-2/mlx5_4" */
	const char *from_memory, *to_memory; /* "host", or a GPU's address */
	const char *memory_way; /* "dmabuf", "dmabuf pcie", "data direct", "peer memory"; NULL: host
				   memory */
	const char *op;		/* "write", "read", "send" */
	bool together;		/* with all other pairs at once, not alone */
	double gbps, usec;	/* payload in 10^9 bit/s; half a round trip of 8 bytes */
	double expect_gbps;	/* computed (expect.h); NAN: no link of the path has a known rate */
	const char *
		limit; /* the link that limits: "PCIe x8 8 GT/s of 0000:3b:00.0"; NULL: not known */
	bool verified; /* the bytes that came were compared */
	enum outcome outcome;
};

struct report {
	struct arena *arena; /* of all strings */
	const struct told *told;
	struct finding *findings;
	size_t n_findings;
	struct measure *measures;
	size_t n_measures;
	bool no_gpu_library;
	bool quiet;	     /* no progress */
	double slow, broken; /* shares of the expectation: below slow is OUTCOME_SLOW; defaults 0.8,
				0.5 */
};

/* on: copied. The outcome of the run is the worst of all findings and measures. */
void report_finding(struct report *r, enum outcome outcome, const char *id, const char *on,
		    const char *what, ...) __attribute__((format(printf, 5, 6)));
/* Copies m; judges m.outcome by gbps and expect_gbps where it is OUTCOME_GOOD. Without a rate it is
 * not measured. */
void report_measure(struct report *r, const struct measure *m);
/* A line on standard error that the next one replaces on a terminal; "" ends it. */
void report_progress(const struct report *r, const char *what, ...)
	__attribute__((format(printf, 2, 3)));

enum outcome report_outcome(const struct report *r);
enum probe_exit report_exit(const struct report *r);

void report_text(const struct report *r, FILE *out);
void report_json(const struct report *r, FILE *out);
void report_html(const struct report *r, FILE *out);
/* For node_exporter's text file collector; at: seconds since 1970. */
void report_metrics(const struct report *r, int64_t at, FILE *out);

#endif
