/* The composition root: threads, wiring, rescans, shutdown. */
#ifndef RAILMATE_DAEMON_DAEMON_H
#define RAILMATE_DAEMON_DAEMON_H

#include <stdbool.h>

#include "kubelet/plugin.h"

struct err;

struct daemon_options {
	const char *root;	     /* "/" */
	const char *config_file;     /* NULL: the built-in pool */
	bool config_required;	     /* named on the command line: wait for it to appear */
	const char *resource_prefix; /* "intel.com", as the peer */
	const char *kubelet_dir;     /* /var/lib/kubelet/device-plugins */
	const char *kubelet_root;    /* /var/lib/kubelet */
	const char *devinfo_dir;     /* NULL: none */
	enum plugin_registration registration;
	bool pod_resources;	     /* ask the kubelet which GPUs a container got */
	unsigned rescan_seconds;     /* safety net beside the events; 0 never */
};

/* Runs until SIGTERM or SIGINT. 0, or a negative errno with a sentence. */
int daemon_run(const struct daemon_options *opt, struct err *err);

#endif
