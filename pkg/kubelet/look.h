/* A GetPreferredAllocation that is being thought about: whose turn is it, which GPUs has it, or will it have? */
#ifndef RAILMATE_KUBELET_LOOK_H
#define RAILMATE_KUBELET_LOOK_H

#include "kubelet/gpuplugin.h"
#include "kubelet/identify.h"
#include "kubelet/plugin-internal.h"
#include "kubelet/podspec.h"
#include "ledger/ledger.h"

#define LOOK_GETS_MAX 4

/* Outlives the plugin if that goes first. */
struct look {
	LIST_ENTRY(look) link;
	struct plugin *plugin;	/* NULL: gone, and the call has been answered */
	struct rpc_call *call;	/* the kubelet's */
	struct arena *arena;	/* of the call */
	struct preferred_request request;
	int64_t until_ms, asked_ms; /* asked: the question to PodResources that is under way */

	bool has_specs;
	struct spec_list specs;
	const struct spec_pod *gets[LOOK_GETS_MAX]; /* pods that were asked for by Get */
	bool got[LOOK_GETS_MAX];			/* and were there */
	size_t n_gets;

	struct identified who;
	struct gpu_question question;
	size_t n_wanted; /* GPUs */
};

bool look_is_over(struct look *look); /* the plugin went: then look is freed */
unsigned look_time_left(const struct look *look);
unsigned look_half_time(const struct look *look); /* for what can be done without: as much is left then */
/* Choose, answer, and free. source: how the GPUs are known, or why not. */
void look_answer(struct look *look, enum ledger_gpus known, const char *source);
/* The GPUs are not there yet: ask the GPU plugin. why: to tell when that is no use. */
void look_predict(struct look *look, const char *why);

#endif
