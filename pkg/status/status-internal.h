/* Shared by the files of status. */
#ifndef RAILMATE_STATUS_STATUS_INTERNAL_H
#define RAILMATE_STATUS_STATUS_INTERNAL_H

#include "holds/holds.h"
#include "hw/bdf.h"
#include "ledger/ledger.h"
#include "pool/node.h"
#include "status/exposition-internal.h"
#include "status/status.h"

struct arena;
struct pool_dev;

/* One text under way. */
struct writer {
	struct exposition e;
	const struct status_facts *f;
	struct arena *a;
};

struct metric {
	const char *name; /* without _total and _info */
	enum exposition_type type;
	void (*put)(struct writer *w, const struct metric *m);
	size_t field; /* of the value, for a put() of a type */
	const char *help;
};

/* metrics_pools.c */
void status_put_pool_info(struct writer *w, const struct metric *m);
void status_put_devices(struct writer *w, const struct metric *m);
void status_put_shares(struct writer *w, const struct metric *m);
void status_put_shares_held(struct writer *w, const struct metric *m);
void status_put_unhealthy(struct writer *w, const struct metric *m);
void status_put_degraded(struct writer *w, const struct metric *m);
void status_put_registered(struct writer *w, const struct metric *m);
void status_put_offer_differs(struct writer *w, const struct metric *m);
void status_put_pool_count(struct writer *w, const struct metric *m);  /* of struct status_pool */
void status_put_stats_count(struct writer *w, const struct metric *m); /* of struct stats_pool */
void status_put_calls(struct writer *w, const struct metric *m);
void status_put_durations(struct writer *w, const struct metric *m);
void status_put_choices(struct writer *w, const struct metric *m);
void status_put_pairs(struct writer *w, const struct metric *m);
void status_put_free_pairs(struct writer *w, const struct metric *m);

/* metrics_vfs.c */
void status_put_vfs(struct writer *w, const struct metric *m);
void status_put_vf_traffic(struct writer *w, const struct metric *m);
void status_put_vf_counters(struct writer *w, const struct metric *m);

/* metrics_ports.c */
void status_put_port_info(struct writer *w, const struct metric *m);
void status_put_port_up(struct writer *w, const struct metric *m);
void status_put_port_state(struct writer *w, const struct metric *m);
void status_put_port_degraded(struct writer *w, const struct metric *m);
void status_put_port_rate(struct writer *w, const struct metric *m);
void status_put_port_carrier(struct writer *w, const struct metric *m);
void status_put_port_counter(struct writer *w, const struct metric *m);
void status_put_port_errors(struct writer *w, const struct metric *m);
void status_put_port_driver(struct writer *w, const struct metric *m);
#define PAUSES_SENT    1
#define PAUSES_TIME    2 /* rather than frames */
#define PAUSES_DROPPED 4 /* packets instead */
void status_put_port_pauses(struct writer *w, const struct metric *m);

/* links.c */

/* A port of a PF that devices of pools have. */
struct status_link {
	const struct node_pf *pf;
	const struct hw_port *port; /* NULL: the PF is missing, or has no RDMA device */
	int number, up;		    /* as in node_port */
	bool down;
	const char *wrong;		  /* a clause; NULL: nothing */
	const struct node_link *degraded; /* NULL: it is not */
};
/* By address; PFs that are gone from the bus at the end. */
size_t status_links(const struct node *node, struct arena *a, struct status_link **ret);
/* The pods that hold VFs of a PF, "NAMESPACE/NAME", each once. */
size_t status_pods_of(const struct status_facts *f, const char *pf, struct arena *a,
		      const char *const **ret);

/* devices.c */

/* How many of the pool's devices are in each state. */
void status_count_states(const struct status_facts *f, const struct pool *pool,
			 uint64_t n[HOLDS_STATES]);
/* dev: of that pool. */
struct holds_verdict status_verdict(const struct status_facts *f, const struct pool *pool,
				    const struct pool_dev *dev);
const char *status_binding(const struct pool *pool); /* "early", "late", "shared" */
/* The fault in one of few words, so that series stay few; dev->reason is the sentence. */
extern const char *const status_fault_names[POOL_FAULT_MAX];
/* The PCI address of a function, of a device's PF; "" where it is not known. */
const char *status_device_address(const struct status_facts *f, int pci, char buf[BDF_STRLEN]);

/* holders.c */

/* A VF that a container has, with the GPUs of that container that it serves. */
struct holder {
	const struct ledger_hold *hold;
	const struct pool_dev *dev; /* NULL: no pool lists it any more */
	const char *state;
	const char *gpus;  /* PCI addresses with commas between; "": not known, or none */
	const char *class; /* of the farthest; "" */
};
/* All holders, by address of the VF. */
size_t status_holders(const struct status_facts *f, struct arena *a, struct holder **ret);

#endif
