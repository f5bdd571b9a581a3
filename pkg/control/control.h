/*
 * railmated's local socket: its requests and replies. One request and one reply a connection, each
 * one JSON object and a line feed. Keys that are not known are ignored, so that programs of
 * neighbouring versions understand each other.
 *
 *   {"op": "bind", "slot": "…", "namespace": "…", "pod": "…", "uid": "…"}
 *       {"bound": [{"slot", "resource", "vf", "rdma", "pf", "rail", "plane", "claim"}, …]}
 *   {"op": "ledger"}
 *       {"ledger": "the text of the ledger"}
 *   {"op": "pools"}
 *       {"pools": "JSON: the state of every VF of this node"}
 *   {"op": "release", "vf": "…"}
 *       {}
 *   {"op": "whose", "vf": "…", "namespace": "…", "pod": "…", "uid": "…"}
 *       {}: that pod holds it; ENOENT: no container does; EPERM: another pod does
 *   {"op": "refresh", "vf": "…"}
 *       {}: the files of its container, where a claim has it, are as its VFs are now
 *   {"op": "status"}
 *       {}
 *   anything that goes wrong
 *       {"error": {"code": "EAGAIN", "message": "…"}}
 */
#ifndef RAILMATE_CONTROL_CONTROL_H
#define RAILMATE_CONTROL_CONTROL_H

#include <stddef.h>

struct arena;
struct err;
struct strbuf;

#define CONTROL_SOCKET	    "/run/railmate/railmate.sock"
#define CONTROL_REQUEST_MAX 8192 /* bytes of a line */
#define CONTROL_REPLY_MAX   (16u << 20)

enum control_op {
	CONTROL_STATUS,
	CONTROL_LEDGER,
	CONTROL_BIND,
	CONTROL_POOLS,
	CONTROL_RELEASE,
	CONTROL_WHOSE,
	CONTROL_REFRESH,
	CONTROL_OP_MAX
};

/* ns, pod and uid: "" where it is not known. */
struct control_request {
	enum control_op op;
	const char *slot, *ns, *pod, *uid; /* slot: of bind, also the PCI address of a VF */
	const char *vf;			   /* release, whose, refresh */
};

struct control_bound {
	const char *slot, *resource, *vf;
	const char *rdma;  /* the VF's RDMA device; NULL: not known */
	const char *pf;	   /* PCI address of its PF; NULL: not known */
	int rail, plane;   /* as in topo/rails.h; -1: not known */
	const char *claim; /* the UID of the ResourceClaim that has it; NULL: none */
};

struct control_reply {
	const struct control_bound *bound;
	size_t n_bound;
	const char *ledger; /* NULL: was not asked for */
	const char *pools;  /* likewise; see railmatectl(1), explain pool */
};

void control_write_request(const struct control_request *r, struct strbuf *out);
/* Without the line feed. -EINVAL: no request; -ENOSYS: an op that this version does not know. */
int control_read_request(const char *text, size_t len, struct arena *a, struct control_request *ret,
			 struct err *err);

void control_write_reply(const struct control_reply *r, struct strbuf *out);
void control_write_error(const struct err *why, struct strbuf *out);
/* A refusal of the daemon comes back as this function's own failure, with its sentence. -EBADMSG:
 * no reply. */
int control_read_reply(const char *text, size_t len, struct arena *a, struct control_reply *ret,
		       struct err *err);

/*
 * Ask and wait. -ECONNREFUSED: no daemon is there; -ETIMEDOUT and -ECONNRESET: it did not answer;
 * -EACCES: one has to be root; any other: the daemon's. The reply lives in the arena.
 */
int control_ask(const char *socket, const struct control_request *r, unsigned timeout_ms,
		struct arena *a, struct control_reply *ret, struct err *err);

#endif
