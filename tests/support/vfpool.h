/* What tests of a choice and of a grant begin with: a machine with one pool of 16 VFs. */
#ifndef RAILMATE_TESTS_SUPPORT_VFPOOL_H
#define RAILMATE_TESTS_SUPPORT_VFPOOL_H

#include "base/arena.h"
#include "kubemsg/messages.h"
#include "support/machine.h"

/* Two sockets, each with two switches; below each switch two GPUs and a PF with four VFs. */
#define MACHINE "numa:2 switch:2 gpu:2 pf:1 vf:4"

/* Of the test that runs. */
extern struct pool_config pool_cfg; /* "rdma/vf" */
extern struct machine m;
extern struct arena *a;

/* For cmocka_unit_test_setup_teardown(). */
int setup(void **state);
int teardown(void **state);

const char *id(size_t i); /* of the pool's VF i */
struct ids ids_of(size_t n, ...);

#endif
