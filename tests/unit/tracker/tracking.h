/* A tracker over a synthetic machine; the bodies of tests run on the rpc thread, as the tracker
 * does.
 */
#ifndef RAILMATE_TESTS_UNIT_TRACKER_TRACKING_H
#define RAILMATE_TESTS_UNIT_TRACKER_TRACKING_H

#include "support/onrpc.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/event.h"
#include "base/mem.h"
#include "base/str.h"
#include "config/config.h"
#include "holds/holds.h"
#include "hw/inventory.h"
#include "kubemsg/messages.h"
#include "ledger/file.h"
#include "pool/node.h"
#include "support/fixture.h"
#include "support/nodes.h"
#include "support/synth.h"
#include "support/testarena.h"
#include "sysroot/sysroot.h"
#include "tracker/cgroup.h"
#include "tracker/tracker-internal.h"

#define N_VFS 6

/* Of the test that runs. */
extern struct config *cfg;
extern struct node *node;
extern struct sysroot *root; /* an empty folder: what the node does not show is not there */
extern struct tracker *tracker;
extern const char *vf[N_VFS];
extern char *folder;

/* What the tracker says. */
extern unsigned changes, notes, bad_notes;
extern char last_note[EVENT_SIZE];

/* What it is answered. */
extern const char *open_device; /* with so many users */
extern unsigned open_users;
extern unsigned host_users; /* of every device, besides */
extern const char *running; /* UID of the pod whose containers run */
extern int runs_error;	    /* 0: none */
int users(void *ctx, const char *rdma, tracker_user_fn seen, void *arg);
int runs(void *ctx, const char *uid);

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
int set_up(void **state);
int tear_down(void **state);

extern unsigned store_ms; /* how long a container waits for the disk */
/* The tracker alone; file may be NULL. Both on the rpc thread. */
void make_tracker(struct ledger *ledger, struct ledger_file *file);
void end_tracker(void *arg);

/* --- the machine: N_VFS VFs that have netdevs --- */

struct hw_inventory *inventory(void);
struct hw_pci *fn_of(struct hw_inventory *inv, size_t i);
void take_rdma_away(struct hw_inventory *inv, size_t i);
void set_node(struct hw_inventory *inv);
/* Of the VF, as it is now; lives as long as the test. */
const char *rdma_of(size_t i);

/* --- what the kubelet says and does --- */

/* Pods of one container "main" that hold one id each. */
struct says {
	const char *pod, *id;
};
struct pod_list list_of(const struct says *says, size_t n);

#define SAYS(...)                                                                                  \
	list_of((const struct says[]) { __VA_ARGS__ },                                             \
		sizeof((const struct says[]) { __VA_ARGS__ }) / sizeof(struct says))

/* A List that is asked for now, and everything before is older. */
void told(struct pod_list list);
const struct ledger_hold *hold_of(size_t i);
bool is_draining(size_t i);
struct holds_facts facts_of(size_t i);

/* What the plugin does when it gives a VF, and when the container starts. */
void give(size_t i, const char *pod, const char *uid);

#endif
