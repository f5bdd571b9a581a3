/*
 * What client and server of the exchange share: the devices of this container, the ends of its
 * connections, and the words about them. For peer.c, peer_client.c and peer_server.c.
 */
#ifndef RAILMATE_PROBE_PEER_INTERNAL_H
#define RAILMATE_PROBE_PEER_INTERNAL_H

#include <sys/types.h>

#include "exchange-internal.h"
#include "expect.h"
#include "told.h"

struct gpu;
struct sysroot;

#define PEER_SLACK_MS 20000 /* of a run: what it may take beside its seconds */
#define PEER_TYPE(t)  (1u << EXCHANGE_##t)

struct peer_end {  /* a connection of this side */
	size_t vf; /* of told->vfs */
	struct wire_memory memory;
	struct wire *wire;
	bool host; /* the memory is */
};

struct peer_gpu { /* of a VF */
	struct gpu *gpu;
	const char *bdf; /* NULL: it was given for no GPU */
	struct wire_memory memory;
};

struct peer_side {
	const struct told *told;
	const struct peer_options *options;
	struct report *report;
	struct sysroot *root;
	struct wire_device **devices; /* of told->vfs; NULL: it has none, or it cannot be opened */
	struct peer_gpu *gpus;	      /* of told->vfs; opened where they are asked for */
	struct exchange x;
};

/* The token is checked, and the root opened. A finding where it fails. */
int peer_open(struct peer_side *s);
void peer_open_devices(struct peer_side *s);
void peer_close_devices(struct peer_side *s);
/* The VF that is open and has this RDMA device; -1: there is none. */
ssize_t peer_find_vf(const struct peer_side *s, const char *hca);
/* The network of its address, as text; NULL: not known. */
const char *peer_subnet_of(const struct told_vf *vf, struct arena *a);
/* What the port and the links of ends[of] carry to its memory while all n ends of the run move
 * bytes. */
struct expectation peer_own_rate(const struct peer_side *s, const struct peer_end *ends, size_t n,
				 size_t of);
struct exchange_message peer_hello(const struct peer_side *s, const char *token);

/* Memory, of the VF's GPU or not, that is full of the bytes of `seed`, and a connection over it
 * that is not connected yet. A finding where it fails. */
int peer_make_end(const struct peer_side *s, size_t vf, size_t size, bool gpu, int pkey_index,
		  uint64_t seed, struct peer_end *ret);
/* What the other side has to know of ends[of]. */
void peer_put_end(const struct peer_side *s, const struct peer_end *ends, size_t n, size_t of,
		  struct exchange_end *ret);
void peer_end_end(struct peer_end *e);
void peer_end_ends(struct peer_end *ends, size_t n);
/* Each end of a run has bytes of its own. */
uint64_t peer_client_seed(uint64_t seed, size_t i);
uint64_t peer_server_seed(uint64_t seed, size_t i);

/* A run has a report of its own, by which it is judged: in the report of all a finding is there
 * once. */
struct report peer_report_of_run(const struct report *r);
void peer_merge(struct report *r, const struct report *of_run);

/* Of the sentence, for a step of the exchange that failed. */
const char *peer_id_of_error(int error);

#endif
