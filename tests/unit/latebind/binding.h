/*
 * Late binding with holds, a tracker and a PodResources server of the test's own. All of it lives
 * on the rpc thread, the test looks from outside.
 */
#ifndef RAILMATE_TESTS_UNIT_LATEBIND_BINDING_H
#define RAILMATE_TESTS_UNIT_LATEBIND_BINDING_H

#include "support/machine.h"
#include "support/onrpc.h"
#include "support/fakevfs.h"
#include "support/testarena.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/event.h"
#include "base/str.h"
#include "grant/records.h"
#include "grant/rundir.h"
#include "grant/vfprobe.h"
#include "holds/holds.h"
#include "kubeclient/podres.h"
#include "kubemsg/podspec.h"
#include "kubepeer/kubepeer.h"
#include "latebind/latebind-internal.h"
#include "tracker/tracker-internal.h"

/* Two NUMA nodes, each with two switches; below each switch two GPUs and a PF with four VFs. */
#define MACHINE "numa:2 switch:2 gpu:2 pf:1 vf:4"
#define ONE_POOL                                                                                   \
	"{\"resourceList\": [{\"resourcePrefix\": \"rdma\", \"resourceName\": \"vf\", \"selectors\": {\"isRdma\": true}, \"railmate\": {\"binding\": \"late\"}}]}"
#define GPU "nvidia.com/gpu"

/* Of the test that runs. */
extern struct machine machine;
extern struct tracker *tracker;
extern struct latebind *latebind;
extern struct podres *podres;
extern struct rpc_server *server;
extern char *cdi_dir, *checkpoint;
extern struct vfprobe *vfprobe; /* NULL: VFs are not looked at when a container starts */
extern const char *rundir, *probe;
extern unsigned restore_ms; /* between looks at the specs; 0: seldom */

/* What late binding and its tracker say. */
extern unsigned notes, changes;
extern char last_note[EVENT_SIZE];

/* What they are answered. */
extern const char *open_device; /* a process uses it */
extern const char *running;	/* UID of the pod whose containers run */
void show_cgroups(void *arg);	/* from now on the cgroups of pods are seen */

#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
int set_up(void **state);
int set_up_with(const char *text);
int set_up_mixed_pools(void **state);
int set_up_two_pools(void **state);
int tear_down(void **state);

/* All of it, and its parts; on the rpc thread. The test itself lists pods, when it wants to;
 * nothing is young. ledger is taken; NULL: it was lost.
 */
void begin_all(void *arg);
void end_all(void *arg);
void open_server(void);
void make_tracker(struct ledger *ledger);
void make_latebind(void);
void end_latebind(void);
void free_latebind(void *arg);

/* --- the kubelet --- */

/* What PodResources says. */
extern struct pod pods[16];
extern struct pod_list all_pods;
extern unsigned lists, gets;
extern bool silent, hangs;
extern struct rpc_call *hung;

/* holds: "resource=id,id resource=id" */
struct pod_container container(const char *name, const char *holds);
void pod(const char *name, const char *holds);
void pod_with(const char *name, const char *holds, const char *side_holds);
void remove_pod(const char *name);
#define HOLDS(fmt, ...) arena_printf(arena, fmt, __VA_ARGS__)

/* GPUs by number, as a list of UUIDs; slots of a NUMA node. */
const char *gpus(int first, int last);
const char *slots(int numa, int first, int last);

/* A plugin lists pods: what was bound before is in the answer. */
void list_pods(void);

/* --- binding --- */

extern struct outcome {
	bool done;
	unsigned times;
	int code;
	char why[480];
	size_t n;
	const char *slot[16], *vf[16], *resource[16];
} got, other;
bool is_done(void);
bool other_is_done(void);

struct wish {
	struct ids ids;
	const struct pod_ref *pod;
	struct outcome *outcome;
};
void bind_fn(void *wish);
void prepare_fn(void *claim); /* a struct latebind_claim */

struct ids ids_of(const char *list);
/* Waits until it is got; bind_slots() fails the test when that is an error. */
void bind_pod(const char *list, const struct pod_ref *who);
void bind_slots(const char *list);
void bind_fails(const char *list, int code, const char *why);
void allocated(const char *list);

/* --- what came of it --- */

const struct pool_dev *dev_of(const char *vf);
/* Which of the four PFs a VF belongs to; how many of got do. */
int pf_of(const char *vf);
int count_of_pf(int pf);

/* Where the spec of a container is whose lowest slot this is; the one that has it, NULL: none. */
const char *spec_path_of(const char *slot);
const char *spec(const char *slot);
const char *text_of_file(const char *path);
void sweep_fn(void *arg);

const struct ledger_hold *hold_of(const char *vf);
size_t n_holds(void);

/* --- the node --- */

void move_to(struct hw_inventory *inv);
void unbind_driver(void *bdf);

#endif
