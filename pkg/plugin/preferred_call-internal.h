/* A GetPreferredAllocation under way: which container asks, and which GPUs it has or will have. */
#ifndef RAILMATE_PLUGIN_PREFERRED_CALL_INTERNAL_H
#define RAILMATE_PLUGIN_PREFERRED_CALL_INTERNAL_H

#include "kubemsg/podspec.h"
#include "ledger/ledger.h"
#include "plugin/plugin-internal.h"
#include "pods/gpuquestion.h"
#include "pods/identify.h"

#define PREFERRED_GETS_MAX 4

/* Lives until the call is answered. */
struct preferred_call {
	LIST_ENTRY(preferred_call) link;
	struct plugin *plugin;
	struct pending *specs_asked, *pods_asked, *gpus_asked;
	struct rpc_call *call; /* the kubelet's */
	struct arena *arena;   /* of the call */
	struct preferred_request request;
	int64_t until_ms;

	bool listed; /* a List was answered just now */
	bool has_specs;
	struct spec_list specs;
	const struct spec_pod *gets[PREFERRED_GETS_MAX]; /* pods that were asked for by Get */
	bool got[PREFERRED_GETS_MAX];			 /* and found */
	size_t n_gets;

	struct identified who;
	struct gpu_question question;
	size_t n_wanted; /* GPUs */
};

unsigned plugin_preferred_half_time(
	const struct preferred_call *pc); /* for an optional question: the other half is left */
/* Choose and answer; pc is freed. source: how the GPUs are known, or why not. */
void plugin_preferred_answer(struct preferred_call *pc, enum ledger_gpus known, const char *source);
/* Without GPUs yet: ask the GPU plugin. why: the source if it has no answer. */
void plugin_preferred_predict(struct preferred_call *pc, const char *why);

#endif
