/*
 * Views of the running daemon. Pure: facts in, text out, for metrics, for the probes and for
 * people. The facts are values of one owner; report/facts.h makes them.
 */
#ifndef RAILMATE_STATUS_STATUS_H
#define RAILMATE_STATUS_STATUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct holds_verdict;
struct hw_port_stats;
struct hw_vf_stats;
struct ledger;
struct ledger_hold;
struct node;
struct stats_pool;
struct strbuf;

/* One resource as the kubelet knows it. */
struct status_pool {
	const char *resource;
	bool served;	     /* its pool has devices, or had: to be registered */
	bool registered;     /* and its list was sent */
	const char *problem; /* why the kubelet does not have the list; NULL: it has */
	bool refused;	     /* Allocate was refused within the last ten minutes */
	uint64_t registrations, register_failures, pod_resources_failures;
};

/* Shares of a resource whose HCAs containers share, by the newest answer of PodResources. */
struct status_share {
	const char *resource, *ns, *pod, *container;
	size_t n;
};

/* Facts of the rpc thread. */
struct status_service {
	const struct status_pool *pools;
	size_t n_pools;
	const struct stats_pool *const *stats;
	size_t n_stats;
	bool gpus_known; /* the kubelet has named the GPUs of containers */
	const int *busy_gpus;
	size_t n_busy_gpus; /* PCI indices of GPUs that containers have */
	/* Of the devices of each pool of the node, then of each shared one (holds/holds.h) */
	const struct holds_verdict *const *verdicts;
	/* Slot and owner of each slot whose VF is not known (holds_unknown()) */
	const struct ledger_hold *unknown;
	size_t n_unknown;
	const struct status_share *shares; /* NULL: the holders are not known */
	size_t n_shares;
	bool settled; /* holds_is_settled() */
	/* Limits of the daemon's sight, sentences; NULL: none. pods: which pods run (cgroups, the
	 * checkpoint); gpus: the GPUs that a container has */
	const char *pods_unseen, *gpus_unknown;
	bool ledger_has_file; /* false: --state-dir=none */
	bool ledger_stored;   /* the disk has the newest state */
	bool ledger_failing;  /* the disk refuses writes */
	bool ledger_late;     /* the disk has not stored it in time */
};

/* Facts of the main thread. */
struct status_machine {
	uint64_t scans, scan_failures;
	int64_t scan_ns; /* duration of the last scan */
	uint64_t config_generation;
	uint64_t config_errors;	  /* of the present file: parts left out, or all refused */
	const char *config_error; /* why the file is refused; NULL: it is in use */
	/* The first part that is left out of the file in use; NULL: none */
	const char *config_left_out;
};

struct status_process {
	int64_t cpu_ns, started_ns; /* started: since 1970 */
	uint64_t resident_bytes;
};

/* Verdicts of `railmatectl doctor`, from good to bad. */
enum status_found {
	STATUS_FOUND_PASS,
	STATUS_FOUND_UNKNOWN,
	STATUS_FOUND_WARN,
	STATUS_FOUND_FAIL,
	STATUS_FOUND_MAX
};
extern const char *const status_found_names[STATUS_FOUND_MAX]; /* "pass", for labels */

struct status_fix {
	const char *where; /* the kind of host; NULL: everywhere */
	const char *what;
};

/* Findings of one check that are shown together. */
struct status_finding {
	enum status_found verdict;
	const char *check, *title;
	size_t n;
	const char *const *shown; /* the sentences of the first */
	size_t n_shown;
	const char *meaning; /* for NCCL */
	const struct status_fix *fixes;
	size_t n_fixes;
};

struct status_doctor {
	const char *failure;	   /* why doctor failed; NULL: it ran */
	enum status_found verdict; /* the worst */
	uint64_t n_by_verdict[STATUS_FOUND_MAX];
	bool confined;			/* seen from within a container */
	const struct status_finding *v; /* the worst first */
	size_t n;
};

struct status_facts {
	const char *node_name;
	const struct node *node;	      /* NULL: not scanned yet */
	const struct ledger *ledger;	      /* NULL: not read yet, or another daemon has it */
	const struct status_service *service; /* NULL likewise */
	struct status_machine machine;
	struct status_process process;
	const struct hw_port_stats *ports;
	size_t n_ports;
	const struct hw_vf_stats *vf_stats; /* of VFs that containers have */
	size_t n_vf_stats;
	int64_t age_ns;			    /* of node, ledger and service */
	const struct status_doctor *doctor; /* NULL: doctor has not ended yet */
	const char *picture;		    /* an SVG element; NULL: there is none */
	const char *picture_failure;	    /* why not; NULL: it is being made */
	int64_t now_ms;			    /* since 1970 */
};

/* Prometheus' text format 0.0.4. */
void status_write_metrics(const struct status_facts *f, struct strbuf *out);
struct status_condition {
	const char *what;    /* "registered rdma/vf" */
	const char *problem; /* NULL: it holds */
	bool serves;	     /* a limit only: pods are served */
};
/* Both in the arena, or of the facts. */
size_t status_conditions(const struct status_facts *f, struct arena *a,
			 const struct status_condition **ret);
/* May the daemon be relied on? A line for each condition; false: one does not hold. */
bool status_write_ready(const struct status_facts *f, struct strbuf *out);

/* The node's status document, one JSON object (docs/compatibility.md); node is not NULL. */
void status_write_document(const struct status_facts *f, struct strbuf *out);

/* One HTML page for people, without any other resource; it reads itself again every few seconds.
 * nonce: of its script, for the policy below. */
void status_write_page(const struct status_facts *f, const char *nonce, struct strbuf *out);
/* For Content-Security-Policy: only the page's own resources. In the arena. */
const char *status_page_policy(const char *nonce, struct arena *a);

#endif
