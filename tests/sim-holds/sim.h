/*
 * A small node in memory: kubelet, API server, runtime, processes, disk, and the edge of railmated
 * that drives `holds`. Written from what real kubelets do (README.md names the sources), not from
 * the code under test, which is pkg/holds and pkg/ledger, linked as they are.
 *
 * A world is one plain struct. What it points to is memory of `holds`, which lies in one region of
 * its own (heap.h), so a world can be copied away and brought back. All of it happens in one
 * thread, and nothing depends on anything but the steps taken: a schedule (struct config, struct
 * step[]) gives the same run each time.
 */
#ifndef SIM_HOLDS_SIM_H
#define SIM_HOLDS_SIM_H

#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "holds/holds.h"

enum {
	VFS_MAX = 8, /* ids as well: slot n has no more to do with VF n than that both are of one
			pool */
	POOLS_MAX = 2,
	PODS_MAX = 16, /* ever, in one world: a pod's index is its UID */
	/* Of each claim; their slots are numbered behind the others */
	CLAIMS_MAX = 8,
	CLAIM_VFS = 3,
	SLOTS_MAX = VFS_MAX + CLAIMS_MAX * CLAIM_VFS,
	CTRS = 3,      /* containers of a pod, in the order of its spec: init containers first */
	OPS_MAX = 6,   /* calls that railmated works at */
	ASKED_MAX = 3, /* Lists on their way */
	ALL = (1 << VFS_MAX) - 1,
};

typedef uint32_t set; /* of VFs or slots: bit n */

/* --- what a schedule is --- */

struct pool {
	bool late, moves, dra;
	unsigned first, n;
}; /* dra: for ResourceClaims, and for no device plugin; moves: a CNI plugin moves netdev and RDMA
    device into the pod; late: railmate-cni, which asks which VF a slot has */
struct config {
	unsigned n_pools;
	struct pool pools[POOLS_MAX];
	bool active_only;  /* kubelet ≥ 1.34 */
	bool counts_users; /* kubelet ≥ 1.37: no claim is unprepared that another pod has */
	bool names_once;   /* no name comes back; then the checkpoint may be unreadable */
	bool sickens;	   /* VFs of late pools may; then the state directory stays */
	bool mixed;	/* the kubelet gives VFs of the claims' pool as well: --serve was another */
	bool strangers; /* other programs take VFs that no container has */
};
struct step {
	uint8_t kind, a;
	uint32_t r;
}; /* enum step_kind; on what; what else had to be chosen */

/* --- kubelet's and runtime's side --- */

enum ctr_state {
	CTR_WAITS,
	CTR_CALLED /* PreStartContainer is on its way */,
	CTR_CREATES,
	CTR_RUNS,
	CTR_DONE
};
struct ctr {
	bool there, init; /* init: an ordinary one */
	bool side;	  /* a restartable init container */
	bool started;	  /* once, in this sandbox */
	bool unlisted;	  /* PodResources was silent at its PreStartContainer */
	uint8_t want[POOLS_MAX];
	enum ctr_state state;
	uint8_t pool;	     /* that PreStartContainer is called for next */
	bool refused;	     /* at its last call */
	int64_t ok_ms;	     /* CREATES: since then */
	set ids;	     /* with which it is started */
	bool alive;	     /* processes exist: all that counts */
	set opened;	     /* VFs that it got though they were open when railmated looked */
	set vfs, open;	     /* theirs; that they have opened */
	set had;	     /* VFs that it was given, while the pod exists */
	set unseen;	     /* VFs that nothing shows that it has: README.md */
	uint8_t claims;	     /* of the pod's: that it has */
	uint8_t of[VFS_MAX]; /* by VF: 1 + the claim that it has it by */
};
struct pod {
	bool there;	       /* this entry was ever used */
	uint8_t name;	       /* pods of one name: a StatefulSet's */
	bool fixed;	       /* a static pod: no API server */
	bool in_api, deleting; /* desired; being deleted gracefully */
	bool known, admitted, rejected,
		over;	/* the kubelet's pod manager has it; ...; its containers ended for good */
	bool dying;	/* the kubelet kills it, whatever else it knows of it */
	bool lingers;	/* in fair weather it ends only when it has to */
	bool sandbox;	/* its cgroup and network namespace exist */
	set away;	/* VFs whose devices are in that namespace */
	set had;	/* VFs that CNI plugins were given for it, while it exists */
	uint8_t claims; /* bit n: claim n */
	bool ready;	/* its claims are prepared, for all that the kubelet knows */
	bool released;	/* they were unprepared for it */
	bool preparing; /* NodePrepareResources is on its way */
	struct ctr c[CTRS];
};
/* A ResourceClaim and what the kubelet knows of it (claimInfo). */
struct claim {
	bool there, shared; /* shared: no pod's own */
	uint8_t n;	    /* VFs */
	bool cached, prepared, unpreparing;
	bool known;	 /* its CDI devices are */
	uint16_t refs;	 /* pods */
	bool file_known; /* on disk */
	bool file_cached;
	uint16_t file_refs;
	bool kept; /* the kubelet got the answer, and has not unprepared it since */
	int8_t vf[CLAIM_VFS];
};
enum admit_step { ADMIT_RESERVE, ADMIT_ALLOCATE, ADMIT_INSERT, ADMIT_WRITE };
struct kubelet {
	bool up, sources, pluggedin; /* runs; sources ready; our stream is there */
	bool registered;	     /* a device list ever came */
	uint64_t epoch;
	set healthy, allocated;
	set devs[PODS_MAX][CTRS]; /* podDevices */
	set file[PODS_MAX][CTRS]; /* the checkpoint, on disk */
	int pod;		  /* in admission; -1 */
	unsigned c, pool;
	enum admit_step step;
	set reuse, ids;
};

/* --- records on disk --- */

/* An owner as far as it is known: its name (struct pod), its UID, its container (enum ctr_kind);
 * -1: not known. */
enum ctr_kind { CTR_UNKNOWN, CTR_INIT, CTR_MAIN, CTR_SIDE, CTR_OTHER, CTR_KINDS };
struct who {
	int8_t name, uid, container;
};
struct record {
	bool there;
	uint8_t vf, pool;
	int8_t slot;
	struct who who;
	uint64_t number;
};
enum disk { DISK_WELL, DISK_FULL, DISK_READONLY, DISK_HANGS };
struct text {
	char *s;
	size_t len;
};
struct storage {
	enum disk disk;
	bool away;     /* the state directory cannot be opened */
	bool run_full; /* nothing can be written below /run */
	bool cdi_unreadable;
	struct text ledger, older;     /* s NULL: no such file */
	struct record spec[SLOTS_MAX]; /* by slot */
	struct record map[VFS_MAX];    /* by VF */
};

/* --- railmated --- */

struct answer {
	bool asked, here; /* on its way; the kubelet has made it */
	uint64_t epoch;
	int64_t asked_ms;
	uint32_t pods;
	set devs[PODS_MAX][CTRS];
};
enum op_kind { OP_PRESTART, OP_PREPARE, OP_UNPREPARE };
struct op { /* one call */
	enum op_kind kind;
	uint8_t claims, left; /* of the call; that are not bound yet */
	bool lost;	      /* nobody waits for its answer, and the work goes on */
	bool stale;	      /* one of its claims was unprepared since */
	bool there, cancelled;
	bool unfiled; /* the checkpoint could not be read for it */
	uint8_t step, pool, c;
	int pod; /* whose call it is: the kubelet knows, railmated does not */
	set ids;
	struct who who; /* as far as it was found out */
	struct answer answer;
	set entries[PODS_MAX][CTRS]; /* the checkpoint, as it was read */
	struct {
		bool open, away, unreadable;
		uint8_t cgroup;
		int8_t uid;
	} facts[VFS_MAX];
	set bound;	      /* slots that this call bound */
	int8_t vf[SLOTS_MAX]; /* by slot */
	uint64_t number, generation;
	int64_t since_ms;
};
struct us {
	bool up;
	struct holds *h;
	struct arena *a;
	uint64_t epoch, number_of[VFS_MAX]; /* early: the newest decision of each VF */
	bool claims_read, state_open;
	bool listed; /* a List came since the records were read */
	bool storing;
	uint64_t generation;
	struct text text;
	struct op op[OPS_MAX];
	struct answer asked[ASKED_MAX];
	int64_t next_probe_ms;
	uint16_t users[CLAIMS_MAX]; /* pods that have the claim, as far as is known */
	set used; /* VFs that no container has and something uses, when the list was made */
};

/* What a hold was when last looked at: for "every action explained". */
struct past {
	bool there, draining, pending;
	int8_t uid, slot, claim;
	uint64_t number;
};

struct world {
	struct config cfg;
	unsigned n_vfs;
	int64_t now_ms, boot_ms;
	set sick;	     /* VFs of late pools that lost their driver, or their link */
	set strange;	     /* VFs that something else has */
	bool strangers_open; /* open; else their devices are in a namespace that nobody knows */
	bool api, podres, cgroups_unreadable, scan_incomplete, checkpoint_unreadable;
	unsigned n_pods;
	struct pod pods[PODS_MAX];
	unsigned n_claims;
	struct claim claims[CLAIMS_MAX];
	struct kubelet k;
	struct storage s;
	struct us u;
	struct past past[VFS_MAX];
	set said; /* VFs and slots that sentences of this event named */
	set said_slots;
	/* The death of railmated: at the n-th of its next actions; 0: not. */
	unsigned fuse, actions;
	jmp_buf *dead;
	bool forgetful; /* every record is lost, and the kubelet has not been asked yet */
	bool lost;	/* every record was, once */
	bool trace;
	char broken[512]; /* the first invariant that did not hold; "" */
};

/* --- names (names.c) --- */

const char *vf_name(unsigned vf);
const char *slot_name(unsigned slot);
const char *rdma_name(unsigned vf);
const char *resource_name(unsigned pool);
const char *pod_name(const struct world *w, int pod);
const char *uid_name(int pod);
enum ctr_kind ctr_kind(const struct world *w, int pod, int c);
const char *ctr_name(const struct world *w, int pod, int c);
int vf_number(const char *vf); /* -1: none of ours */
int slot_number(const char *slot);
int uid_number(const char *uid);
const char *claim_name(unsigned claim); /* its UID */
int claim_number(const char *uid);
int claim_of(unsigned slot);				 /* -1: no claim's */
set claim_slots(const struct world *w, unsigned claims); /* bits */
struct who who_of(const struct ledger_owner *o);
struct ledger_owner owner_of(struct who who); /* "" and NULL where nothing is known */
struct holds_now now_of(const struct world *w);
set pool_set(const struct world *w, unsigned pool);
unsigned pool_of(const struct world *w, unsigned id);
int lowest(set s); /* -1: empty */
unsigned count(set s);
unsigned mix(uint32_t r, unsigned salt);    /* further choices out of one number */
set some_of(set s, unsigned n, uint32_t r); /* n of them */

/* --- what went wrong (check.c) --- */

void broken(struct world *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void say(struct world *w, const char *fmt, ...)
	__attribute__((format(printf, 2, 3))); /* only when traced */
/* After every event that railmated took in. event: for sentences. */
void check_explained(struct world *w, const char *event);
void check_live(struct world *w, const char *event);
bool is_given_twice(const struct world *w, unsigned id); /* to two containers */
void check_created(struct world *w, int pod, int c);
void check_healthy(struct world *w, set healthy);
void check_offer(struct world *w, set healthy, set used, set waits);
void check_why(struct world *w, const char *why, set vfs, set slots);
void check_spec_removed(struct world *w, unsigned slot);
void check_map_removed(struct world *w, unsigned vf);
/* Fair weather at last: everything is served, everything is freed. */
void check_fair(struct world *w);

/* --- the machine (machine.c) --- */

bool pod_is_active(const struct pod *p);
bool pod_has_ends(const struct pod *p);		      /* the kubelet ends its containers */
bool pod_is_nameless(const struct world *w, int pod); /* nothing has given it a UID */
bool has_processes(const struct pod *p);
bool pod_lives(const struct pod *p);		/* a container of it does */
set pod_devs(const set (*devs)[CTRS], int pod); /* of all its containers */
set pod_had(const struct pod *p);		/* VFs that it was given, while it exists */
set used_by_live(const struct world *w);	/* VFs of live containers */
set had_by_running(const struct world *w);	/* VFs that pods were given that have processes */
bool is_recorded(const struct world *w, unsigned vf,
		 int pod); /* map.json says that it is this pod's */
enum holds_cgroup machine_cgroup(const struct world *w, int uid);
void machine_look(const struct world *w, unsigned vf, int uid, struct holds_facts *ret);
void ctr_open(struct world *w, int pod, int c, uint32_t r);
void ctr_exit(struct world *w, int pod, int c, bool done);
void pod_stop(struct world *w, int pod);
void pod_teardown(struct world *w, int pod);
bool can_sandbox(const struct world *w, int pod);
void pod_sandbox(struct world *w, int pod);
bool can_create(const struct world *w, int pod, int c);
void ctr_create(struct world *w, int pod, int c);
void node_reboot(struct world *w);

/* --- the kubelet (kubelet.c) --- */

int pod_create(struct world *w, uint32_t shape);
int pod_create_as(struct world *w, uint8_t name, bool fixed, const struct ctr *c, unsigned n);
bool can_delete(const struct world *w, int pod);
void pod_delete(struct world *w, int pod, bool force);
void kubelet_kill(struct world *w);
void kubelet_start(struct world *w);
void kubelet_sync(struct world *w); /* sources are ready */
bool can_admit(const struct world *w);
void kubelet_admit(struct world *w, uint32_t r); /* the next small step of the admission */
void kubelet_failed(struct world *w);		 /* railmated died in a call of the admission */
void kubelet_gc(struct world *w);
void kubelet_list(struct world *w, set healthy);
void kubelet_unplug(struct world *w); /* our stream ended */
void kubelet_answer(const struct world *w, struct answer *ret);
bool kubelet_is_next(const struct pod *p, int c); /* containers before it let it start */
bool can_call(const struct world *w, int pod, int c);
void kubelet_call(struct world *w, int pod, int c); /* PreStartContainer */
void kubelet_called(struct world *w, int pod, int c, bool ok, const char *why);

/* --- ResourceClaims (dra.c) --- */

int dra_pool(const struct world *w); /* -1: none */
int claim_create(struct world *w, unsigned n, bool shared);
bool claim_is_allocated(const struct world *w, unsigned claim);
void claims_of_shape(struct world *w, struct pod *p, uint32_t shape);
set claim_vfs(const struct world *w, unsigned claim);	       /* that the kubelet counts on */
bool claims_are_known(const struct world *w, unsigned claims); /* GetResources */
bool can_prepare(const struct world *w, int pod);
void kubelet_prepare(struct world *w, int pod);
bool kubelet_unprepare(struct world *w, int pod); /* true: nothing is to be waited for */
void kubelet_reconcile(struct world *w);	  /* once a minute */
void dra_kubelet_killed(struct world *w);
void dra_kubelet_started(struct world *w);
void dra_disconnected(struct world *w); /* railmated died */
void dra_op(struct world *w, struct op *op, uint32_t r);
void dra_answer(struct world *w, struct op *op, bool ok, const char *why);
void us_read_state(struct world *w);
void note_unseen(struct world *w, int pod, int c);
void check_claims(struct world *w, const char *event);

/* --- records (disk.c) --- */

void disk_write_ledger(struct world *w, struct text text);
bool disk_remove_ledger(struct world *w);
void disk_tear_ledger(struct world *w);
void disk_remove_specs(struct world *w);
void disk_remove_maps(struct world *w);

/* --- railmated (us.c, calls.c) --- */

void cut(struct world *w); /* one action more: the last, perhaps */
void us_start(struct world *w);
void us_stop(struct world *w);
void us_kill(struct world *w);
void us_settle(struct world *w, const char *event); /* fetches actions, keeps records */
void us_register(struct world *w);
void us_ask(struct world *w);
void us_take(struct world *w, struct answer *a);
void us_timer(struct world *w);
void us_release(struct world *w, unsigned vf); /* railmatectl release */
bool can_store(const struct world *w);
void us_store(struct world *w);
void us_stored(struct world *w);
void us_claims_again(struct world *w);
void us_read_checkpoint(struct world *w);
void us_list(struct world *w);
set us_preferred(struct world *w, unsigned pool, set available, set must, unsigned n, uint32_t r);
void us_allocate(struct world *w, unsigned pool, set ids, int pod, int c, uint32_t r);
void us_prestart(struct world *w, int pod, int c, unsigned pool, set ids);
void us_op(struct world *w, struct op *op, uint32_t r); /* its next step */
void us_cancel(struct world *w, int pod, int c); /* the kubelet does not wait for it any more */
bool us_is_filed(const struct world *w, unsigned vf); /* early: a pod has it by the checkpoint */
struct holds_verdict us_judge(const struct world *w, unsigned vf, struct arena *a);
void us_look(const struct world *w, unsigned vf, struct holds_facts *ret);
const struct ledger_hold *us_hold(const struct world *w, unsigned vf);
bool us_works_at(const struct world *w, unsigned slot); /* a call is about to write its files */
void look_around(struct world *w, struct op *op);
void op_answer(struct world *w, struct op *op, bool ok, const char *why);
void op_facts(const struct world *w, const struct op *op, unsigned vf, struct holds_facts *ret);
bool record_names(const struct record *r);
bool record_write(struct world *w, struct record *to,
		  const struct ledger_hold *hold); /* false: it cannot be */
/* Whose it is was guessed, and is not written. */
void record_write_allocated(struct world *w, struct record *to, const struct ledger_hold *hold);
void early_start(struct world *w, struct op *op);
void sim_late_bind(struct world *w, struct op *op);
void late_write(struct world *w, struct op *op);
void late_answer(struct world *w, struct op *op);
bool us_cni_add(struct world *w, int pod, set *ret_moved); /* VFs */

/* --- steps (steps.c) --- */

enum step_kind {
	STEP_POD,
	STEP_PLAIN,
	STEP_CLAIM_POD,
	STEP_DELETE,
	STEP_FORCE,
	STEP_ADMIT,
	STEP_ADMIT_ALL,
	STEP_PREPARE,
	STEP_SANDBOX,
	STEP_CALL,
	STEP_OP,
	STEP_START,
	STEP_CREATE,
	STEP_CREATE_FAILS,
	STEP_OPEN,
	STEP_CRASH,
	STEP_STOP,
	STEP_TEARDOWN,
	STEP_RUN,
	STEP_WAIT,
	STEP_TIMER,
	STEP_ASK,
	STEP_ANSWER,
	STEP_TAKE,
	STEP_POLL,
	STEP_STORE,
	STEP_STORED,
	STEP_REGISTER,
	STEP_UP,
	STEP_KUBELET_UP,
	STEP_SYNC,
	STEP_RECONCILE,
	/* faults */
	STEP_KILL,
	STEP_FUSE,
	STEP_RESTART,
	STEP_KUBELET_KILL,
	STEP_API,
	STEP_STREAM,
	STEP_PODRES,
	STEP_LISTED,
	STEP_DISK,
	STEP_TEAR,
	STEP_LEDGER_GONE,
	STEP_LEDGER_OLD,
	STEP_SPECS_GONE,
	STEP_RECORDS,
	STEP_CDI,
	STEP_STATE,
	STEP_RUN_FULL,
	STEP_CGROUPS,
	STEP_SCAN,
	STEP_CHECKPOINT,
	STEP_SICK,
	STEP_STRANGER,
	STEP_RELEASE,
	STEP_REBOOT,
	STEPS,
};
extern const char *const step_names[STEPS];
/* Also when railmated dies in it. False: it cannot be done now, and nothing was. */
bool step_do(struct world *w, const struct step *s);
bool step_can(const struct world *w, const struct step *s);
void world_begin(struct world *w, const struct config *cfg, bool trace);
/* One that can be done. */
struct step step_random(const struct world *w, uint64_t *rng, bool faults);
uint64_t next_random(uint64_t *rng);

#endif
