/*
 * The API server as far as ResourceSlices of one node go: names, resourceVersions, generations,
 * preconditions, in memory. A script makes it fail. On the rpc thread.
 */
#ifndef RAILMATE_TESTS_UNIT_DRA_APISERVER_H
#define RAILMATE_TESTS_UNIT_DRA_APISERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kubeapi/objects.h"

struct rpc;

struct fake_object {
	char *name, *uid, *mark, *owner; /* mark NULL: none */
	int64_t version, generation, pool_generation;
	size_t count, n_devices;
	bool is_changed; /* by somebody else */
};

enum fake_way {
	FAKE_WELL,
	FAKE_REFUSE, /* with the status, and nothing is done; 0: no answer */
	FAKE_LOSE,   /* it is done, and the answer is lost */
	FAKE_GARBLE, /* it is done, and the answer is no protobuf */
	FAKE_TWICE,  /* it is done twice */
};

/* From the request with this number on, so often. */
struct fake_script {
	enum fake_way way;
	const char *method; /* NULL: any; others do not count */
	int from, times;
	long status;
};

struct fake_api {
	struct rpc *rpc;
	struct fake_object *v;
	size_t n, cap;
	const char *node_uid, *minor; /* of its version */
	struct fake_script script;
	/* writes: those that were let through or refused; a test may read these at any time */
	_Atomic int asked, writes, created;
	int open; /* not answered yet */
	int64_t clock;
};

struct fake_api *fake_api_new(struct rpc *rpc);
void fake_api_free(struct fake_api *api);
void fake_api_ask(void *api, const struct api_request *request, api_done_fn done, void *arg);
/* For on_rpc(). */
void fake_api_add_stray(void *api);
void fake_api_change_first(void *api);
void fake_api_wipe(void *api);
void fake_api_heal(void *api);

#endif
