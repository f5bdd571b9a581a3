/* The composition root: threads, wiring, rescans, shutdown. An error at the start is one sentence;
 * later ones are logged, and the service goes on. */
#ifndef RAILMATE_DAEMON_DAEMON_H
#define RAILMATE_DAEMON_DAEMON_H

#include <stdbool.h>

#include "kubeapi/events.h"
#include "kubeapi/specs.h"
#include "plugin/plugin.h"

#define CDI_DIR_DEFAULT "/var/run/cdi" /* where runtimes look */

struct config;
struct config_files;
struct config_text;
struct err;

struct daemon_options {
	const char *root;	  /* "/" */
	const char *kubelet_dir;  /* /var/lib/kubelet/device-plugins */
	const char *kubelet_root; /* /var/lib/kubelet */
	const char *cgroup_dir;	 /* /sys/fs/cgroup; NULL: whether containers run is not looked at */
	const char *devinfo_dir; /* NULL: no device-info files */
	const char *control_socket; /* for railmatectl explain and railmate-cni; NULL: none */
	/* /run/railmate: files that are mounted into containers; the same path on the host; NULL:
	 * none */
	const char *run_dir;
	/* /run/netns: the network namespaces of pods; NULL: they are not looked into */
	const char *netns_dir;
	const char *state_dir; /* /var/lib/railmate: the ledger; NULL: memory only */
	const char *probe;     /* railmate-probe, for containers; NULL: they get none */
	const char *cdi_dir;   /* the runtime's, for pools that bind late: /var/run/cdi */
	enum plugin_cdi cdi;
	bool ask_runtime;	    /* does it do CDI? */
	const char *runtime_socket; /* NULL: where runtimes usually have it, below root */
	const char *dra_driver;	    /* our name, where config_files has by_claims */
	enum endpoint_registration registration;
	bool pod_resources; /* ask the kubelet which GPUs a container got */
	/* The kubelet's sync loop waits meanwhile (docs/design/kubelet.md §1.1) */
	unsigned pod_resources_timeout_ms;
	bool predict_gpus;	     /* ask the GPU plugin which GPUs will come */
	const char *gpu_plugin;	     /* its socket; NULL: found by its name */
	struct specs_options specs;  /* the source of pods' requests */
	const char *metrics_address; /* for report/web.h; NULL: nothing is served there */
	const char *nfd_file; /* a feature file of node-feature-discovery (nfdfile.h); NULL: none */
	const char *ready_file;	  /* there while this daemon is ready (ready.h); NULL: none */
	enum events_about events; /* the subjects of Events */
	bool node_condition;	  /* RDMALinksHealthy is kept */
	/* An Event reports a pool that is empty so long after the start; 0 never */
	unsigned empty_pool_seconds;
	unsigned rescan_seconds;		 /* the safety net beside the events; 0 never */
	const struct config_files *config_files; /* where cfg is from */
	bool cdi_dir_missing; /* cdi_dir is not a folder of the host: late pools are not served */
};

/* The signals below wait for daemon_run(), or no longer. First of all in main(): SIGHUP would end a
 * process that is not ready for it, and the first process of a container would never get one that
 * came before it was. */
void daemon_hold_signals(bool hold);

/*
 * Runs until SIGTERM or SIGINT; SIGHUP reads the configuration and scans again. cfg is the
 * configuration of text; pools that leave their binding open get one. cfg stays the caller's, text
 * is taken. Called before any other thread runs. 0, or a negative errno with a sentence.
 */
int daemon_run(const struct daemon_options *opt, struct config *cfg, struct config_text *text,
	       struct err *err);

#endif
