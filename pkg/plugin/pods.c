/* What every resource asks of PodResources beside the kubelet's calls, and who is told what it
 * said. */
#include "plugin/plugin-internal.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "kubeclient/podres.h"
#include "pods/holders.h"
#include "pods/identify.h"
#include "pool/node.h"
#include "tracker/tracker.h"

#define ADMISSION_MS 50 /* from one call of the kubelet to the next, and to its record */

void plugin_saw_list(struct plugin *p, const struct pod_list *pods, int64_t asked_ms)
{
	if (asked_ms >= p->listed_ms) {
		holders_list(p->holders, pods);
		p->listed_ms = asked_ms;
	}
	if (p->env->keeper)
		keeper_reconcile(p->env->keeper, pods, asked_ms);
}

void plugin_saw_pod(struct plugin *p, const char *ns, const char *name, const struct pod *pod,
		    int64_t asked_ms)
{
	bool is_news = asked_ms >= p->listed_ms;

	if (is_news && pod)
		holders_pod(p->holders, pod);
	else if (is_news)
		holders_gone(p->holders, ns, name);
	if (p->env->keeper)
		keeper_reconcile_pod(p->env->keeper, ns, name, pod, asked_ms);
}

/* A question on our own account under way. Outlives the plugin if that goes first. */
struct ask {
	LIST_ENTRY(ask) link;
	struct plugin *plugin;	   /* NULL: gone */
	uint64_t preferred_before; /* calls so far */
	int64_t asked_ms;
};

static struct ask *ask_new(struct plugin *p)
{
	struct ask *ask = xcalloc(1, sizeof(*ask));

	ask->plugin = p;
	ask->preferred_before = p->stats.preferred;
	ask->asked_ms = clock_mono_ms();
	LIST_INSERT_HEAD(&p->asks, ask, link);
	return ask;
}

static void ask_free(struct ask *ask)
{
	if (ask->plugin)
		LIST_REMOVE(ask, link);
	free(ask);
}

void plugin_note_admission(struct plugin *p)
{
	if (p->env->podres)
		podres_note_admission(p->env->podres, ADMISSION_MS);
}

void plugin_pods_tell_old(struct plugin *p)
{
	if (p->told_old)
		return;
	p->told_old = true;
	log_info("kubelet",
		 "%s: this kubelet is older than 1.27: VFs are chosen without knowing the GPUs",
		 p->resource);
}

static void tell_if_old(struct plugin *p)
{
	if (podres_support(p->env->podres) == PODRES_NOTHING)
		plugin_pods_tell_old(p);
}

static void primed(void *arg, enum podres_result result, const struct pod_list *pods,
		   const char *why)
{
	struct ask *ask = arg;
	struct plugin *p = ask->plugin;

	(void)why;
	if (p && result == PODRES_OK) {
		plugin_saw_list(p, pods, ask->asked_ms);
		/* A container may be under admission by now: then it must not pass for old. */
		if (p->stats.preferred == ask->preferred_before)
			seen_pods_note(p->seen, pods, p->resource, p->node->inv);
		p->primed = true;
		p->primed_ms = clock_mono_ms();
	} else if (p) {
		tell_if_old(p);
	}
	ask_free(ask);
}

static void probed(void *arg, enum podres_result result, const struct pod_list *pods,
		   const char *why)
{
	struct ask *ask = arg;

	(void)result;
	(void)pods;
	(void)why;
	if (ask->plugin)
		tell_if_old(ask->plugin);
	ask_free(ask);
}

void plugin_pods_reset(struct plugin *p)
{
	p->told_old = false;
	p->allocatable_ms = 0;
	if (p->env->podres)
		podres_reset(p->env->podres);
}

/* Find out in advance what kubelet this is, and, once, who has GPUs without ever asking for ours.
 */
void plugin_pods_prime(struct plugin *p)
{
	struct podres *pods = p->env->podres;

	if (!pods)
		return;
	if (!p->primed) {
		p->stats.pod_lists++;
		podres_list_quietly(pods, p->env->pod_resources_timeout_ms, primed, ask_new(p));
	} else if (podres_support(pods) == PODRES_UNKNOWN) {
		podres_get(pods, "", "", p->env->pod_resources_timeout_ms, probed, ask_new(p));
	}
}

void plugin_pods_done(struct plugin *p)
{
	struct ask *ask;

	while ((ask = LIST_FIRST(&p->asks))) {
		LIST_REMOVE(ask, link);
		ask->plugin = NULL;
	}
}
