/* Claims of a DRA driver that the plugin watcher has found: prepared and unprepared as the script
 * says. */
#include "kubelet.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"
#include "kubepeer/kubepeer.h"

#define CALL_MS		  45000
#define MESSAGE_MAX_BYTES (4u << 20)

struct dra_call {
	struct command *cmd;
	struct rpc_channel *channel;
	bool prepares;
};

static void report_device(struct json *j, const struct dra_device *d)
{
	json_begin_object(j);
	json_kv_string(j, "pool", d->pool);
	json_kv_string(j, "device", d->device);
	json_kv_string(j, "share", d->share);
	report_ids(j, "requests", &d->requests);
	report_ids(j, "cdi", &d->cdi);
	json_end_object(j);
}

static void report_results(struct json *j, const struct dra_results *results)
{
	json_kv_object(j, "claims");
	for (size_t i = 0; i < results->n; i++) {
		const struct dra_result *r = &results->v[i];

		json_kv_object(j, r->uid);
		json_kv_string(j, "error", r->error);
		json_kv_array(j, "devices");
		for (size_t k = 0; k < r->n; k++)
			report_device(j, &r->v[k]);
		json_end_array(j);
		json_end_object(j);
	}
	json_end_object(j);
}

static void on_answer(void *arg, enum rpc_status status, const char *message, struct bytes body)
{
	_cleanup_arena_ struct arena *a = arena_new(4096);
	struct dra_call *c = arg;
	struct dra_results results;
	struct err err = { 0 };
	struct report r;

	if (status != RPC_OK)
		answer_error(c->cmd, "%s: %s", status_name(status), message);
	else if ((c->prepares ? peer_decode_dra_prepare_reply
			      : peer_decode_dra_unprepare_reply)(body, a, &results, &err) < 0)
		answer_error(c->cmd, "%s", err.msg);
	else {
		report_results(report_answer(&r, c->cmd, "claims"), &results);
		report_end(&r);
		command_done(c->cmd);
	}
	rpc_channel_close(c->channel);
	free(c);
}

/* "default/c=UID", in place; false: it is not that. */
static bool parse_ref(char *text, struct dra_claim_ref *ret)
{
	char *name = strchr(text, '/'), *uid = name ? strchr(name, '=') : NULL;

	if (!uid)
		return false;
	*name++ = *uid++ = '\0';
	*ret = (struct dra_claim_ref) { .ns = text, .name = name, .uid = uid };
	return true;
}

void dra_call(struct command *cmd)
{
	_cleanup_arena_ struct arena *a = arena_new(1024);
	const char *socket = registry_driver(cmd->k, cmd->argv[1]);
	struct dra_claim_refs refs = { arena_array(a, cmd->argc, sizeof(*refs.v)), 0 };
	bool prepares = !strcmp(cmd->argv[2], "prepare");
	struct dra_call *c;

	for (size_t i = 3; i < cmd->argc; i++) {
		if (!parse_ref(cmd->argv[i], &refs.v[refs.n++])) {
			answer_error(cmd, "dra: '%s' is not NAMESPACE/NAME=UID", cmd->argv[i]);
			return;
		}
	}
	if (!socket || (!prepares && strcmp(cmd->argv[2], "unprepare") != 0)) {
		answer_error(cmd, "dra: no driver %s, or neither prepare nor unprepare",
			     cmd->argv[1]);
		return;
	}
	c = xcalloc(1, sizeof(*c));
	*c = (struct dra_call) { cmd, rpc_channel_open(cmd->k->rpc, socket, MESSAGE_MAX_BYTES),
				 prepares };
	rpc_call_unary(c->channel, prepares ? PATH_DRA_PREPARE : PATH_DRA_UNPREPARE,
		       peer_encode_dra_claims(&refs, a), CALL_MS, on_answer, c);
}
