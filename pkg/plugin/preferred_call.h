/* A GetPreferredAllocation that is being thought about: whose turn is it, which GPUs has it, or
 * will it have? */
#ifndef RAILMATE_PLUGIN_PREFERRED_CALL_H
#define RAILMATE_PLUGIN_PREFERRED_CALL_H

#include "kubeclient/gpuplugin.h"
#include "kubemsg/podspec.h"
#include "ledger/ledger.h"
#include "plugin/plugin-internal.h"
#include "pods/gpuquestion.h"
#include "pods/identify.h"

#define LOOK_GETS_MAX 4

/* Lives until the last question that is under way has come back, whether or not the call has been
 * answered by then. */
struct look {
	LIST_ENTRY(look) link;
	struct plugin *plugin; /* NULL: the call has been answered */
	unsigned pending;      /* questions under way; each is begun with look_begin() and ends with
				  look_is_over() */
	struct rpc_call *call; /* the kubelet's */
	struct arena *arena;   /* of the call */
	struct preferred_request request;
	int64_t until_ms, asked_ms; /* asked: the question to PodResources that is under way */

	bool fetching, listing; /* specs, a List */
	bool listed;		/* it came, and the plugin's holders are fresh */
	bool has_specs;
	struct spec_list specs;
	const struct spec_pod *gets[LOOK_GETS_MAX]; /* pods that were asked for by Get */
	bool got[LOOK_GETS_MAX];		    /* and were there */
	size_t n_gets;

	struct identified who;
	struct gpu_question question;
	size_t n_wanted; /* GPUs */
};

struct look *look_begin(struct look *look);
bool look_is_over(struct look *look); /* the call has been answered already: look may be gone */
unsigned
look_half_time(const struct look *look); /* for what can be done without: as much is left then */
/* Choose and answer. source: how the GPUs are known, or why not. */
void look_answer(struct look *look, enum ledger_gpus known, const char *source);
/* The GPUs are not there yet: ask the GPU plugin. why: to tell when that is no use. */
void look_predict(struct look *look, const char *why);

#endif
