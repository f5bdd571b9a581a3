/* railmated: command line → configuration → daemon_run(). */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "config/config.h"
#include "control/control.h"
#include "daemon/daemon.h"
#include "daemon/load.h"

/* Exit codes; railmated(8) lists them. */
enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_REFUSED = 3 };

#define DEFAULT_CONFIG "/etc/pcidp/config.json"

static const char usage_text[] =
	"usage: railmated [OPTION…]\n"
	"\n"
	"  --config-file FILE      pools, as for sriov-network-device-plugin; default " DEFAULT_CONFIG "\n"
	"                          if it exists, else one pool rdma/vf of every VF with an RDMA device\n"
	"  --resource-prefix P     prefix of pools that name none (intel.com)\n"
	"  --check-config          read the configuration, print its resources and exit\n"
	"  --kubelet-dir DIR       the kubelet's plugin directory (/var/lib/kubelet/device-plugins)\n"
	"  --kubelet-root DIR      the kubelet's root directory (/var/lib/kubelet)\n"
	"  --registration WAY      classic: call the kubelet's Register; watcher: a socket in\n"
	"                          plugins_registry; auto: watcher if that directory is there (classic)\n"
	"  --pod-resources WAY     auto: ask the kubelet which GPUs a container got; off: never,\n"
	"                          for kubelets before 1.30 (auto)\n"
	"  --pod-specs WAY         who tells what pods ask for: pods-api, kubelet, api-server; off; auto:\n"
	"                          the first of these that answers (auto)\n"
	"  --gpu-plugin-socket PATH  who is asked which GPUs will come when VFs are asked for first; auto:\n"
	"                          the socket of a fitting name beside ours; none: nobody (auto)\n"
	"  --kubelet-url URL       for --pod-specs=kubelet (https://$NODE_IP:10250, else 127.0.0.1)\n"
	"  --kubelet-ca FILE       who signed the kubelet's certificate (ca.crt of the service account)\n"
	"  --kubelet-insecure      take any certificate for the kubelet's\n"
	"  --node-name NAME        for --pod-specs=api-server ($NODE_NAME)\n"
	"  --service-account DIR   token and ca.crt (/var/run/secrets/kubernetes.io/serviceaccount)\n"
	"  --cgroup-dir DIR        the node's cgroups: a pod that runs keeps its VFs, whatever the kubelet\n"
	"                          says; none: do not look (/sys/fs/cgroup)\n"
	"  --devinfo-dir DIR       NPWG device-info files; none: write none\n"
	"                          (/var/run/k8s.cni.cncf.io/devinfo/dp)\n"
	"  --control-socket PATH   for railmatectl explain and railmate-cni, root only; none: no socket\n"
	"                          (" CONTROL_SOCKET ")\n"
	"  --state-dir DIR         the ledger: which VF is held by which container; none: memory only\n"
	"                          (/var/lib/railmate)\n"
	"  --cdi-dir DIR           where the runtime looks for CDI specs, for pools that bind late\n"
	"                          (/var/run/cdi)\n"
	"  --cdi WAY               on: kubelet and runtime do CDI; off: they do not, pools that bind late "
	"are\n"
	"                          not served; auto: if the kubelet is 1.29 or later (auto)\n"
	"  --rescan SECONDS        look at the hardware again this often, beside events; 0 never (60)\n"
	"  --root DIR              the machine below DIR instead of / (for tests and captured machines)\n"
	"  --log-level LEVEL       error, warning, info or debug; a number means info (info)\n"
	"  --help, --version\n"
	"\n"
	"Options may be written with one or two dashes, with a space or '='. Accepted and ignored, for\n"
	"manifests written for sriov-network-device-plugin: --log-dir, -v, -logtostderr,\n"
	"-alsologtostderr, -log_dir, -vmodule, -stderrthreshold, -log_backtrace_at.\n"
	"\n"
	"signals: SIGTERM, SIGINT stop; SIGHUP looks at the hardware now\n"
	"exit status: 0 stopped, 1 failed, 2 wrong command line, 3 refused configuration\n";

struct command_line {
	struct daemon_options daemon;
	const char *config_file, *prefix;
	enum log_level level;
	bool check;
};

enum option_id {
	OPT_CONFIG = 1,
	OPT_PREFIX,
	OPT_CHECK,
	OPT_KUBELET_DIR,
	OPT_KUBELET_ROOT,
	OPT_REGISTRATION,
	OPT_POD_RESOURCES,
	OPT_POD_SPECS,
	OPT_GPU_PLUGIN,
	OPT_KUBELET_URL,
	OPT_KUBELET_CA,
	OPT_KUBELET_INSECURE,
	OPT_NODE_NAME,
	OPT_SERVICE_ACCOUNT,
	OPT_CGROUP,
	OPT_DEVINFO,
	OPT_CONTROL,
	OPT_STATE,
	OPT_CDI_DIR,
	OPT_CDI_WAY,
	OPT_RESCAN,
	OPT_ROOT,
	OPT_LOG_LEVEL,
	OPT_HELP,
	OPT_VERSION,
	OPT_CDI,
	OPT_IGNORED,
};

static const struct option options[] = {
	{ "config-file", required_argument, NULL, OPT_CONFIG },
	{ "resource-prefix", required_argument, NULL, OPT_PREFIX },
	{ "check-config", no_argument, NULL, OPT_CHECK },
	{ "kubelet-dir", required_argument, NULL, OPT_KUBELET_DIR },
	{ "kubelet-root", required_argument, NULL, OPT_KUBELET_ROOT },
	{ "registration", required_argument, NULL, OPT_REGISTRATION },
	{ "pod-resources", required_argument, NULL, OPT_POD_RESOURCES },
	{ "pod-specs", required_argument, NULL, OPT_POD_SPECS },
	{ "gpu-plugin-socket", required_argument, NULL, OPT_GPU_PLUGIN },
	{ "kubelet-url", required_argument, NULL, OPT_KUBELET_URL },
	{ "kubelet-ca", required_argument, NULL, OPT_KUBELET_CA },
	{ "kubelet-insecure", no_argument, NULL, OPT_KUBELET_INSECURE },
	{ "node-name", required_argument, NULL, OPT_NODE_NAME },
	{ "service-account", required_argument, NULL, OPT_SERVICE_ACCOUNT },
	{ "cgroup-dir", required_argument, NULL, OPT_CGROUP },
	{ "devinfo-dir", required_argument, NULL, OPT_DEVINFO },
	{ "control-socket", required_argument, NULL, OPT_CONTROL },
	{ "state-dir", required_argument, NULL, OPT_STATE },
	{ "cdi-dir", required_argument, NULL, OPT_CDI_DIR },
	{ "cdi", required_argument, NULL, OPT_CDI_WAY },
	{ "rescan", required_argument, NULL, OPT_RESCAN },
	{ "root", required_argument, NULL, OPT_ROOT },
	{ "log-level", required_argument, NULL, OPT_LOG_LEVEL },
	{ "help", no_argument, NULL, OPT_HELP },
	{ "h", no_argument, NULL, OPT_HELP },
	{ "version", no_argument, NULL, OPT_VERSION },
	{ "use-cdi", optional_argument, NULL, OPT_CDI },
	{ "log-dir", required_argument, NULL, OPT_IGNORED },
	{ "log_dir", required_argument, NULL, OPT_IGNORED },
	{ "v", required_argument, NULL, OPT_IGNORED },
	{ "vmodule", required_argument, NULL, OPT_IGNORED },
	{ "stderrthreshold", required_argument, NULL, OPT_IGNORED },
	{ "log_backtrace_at", required_argument, NULL, OPT_IGNORED },
	{ "logtostderr", optional_argument, NULL, OPT_IGNORED },
	{ "alsologtostderr", optional_argument, NULL, OPT_IGNORED },
	{ 0 },
};

static int usage_error(const char *option, const char *value, const char *legal)
{
	fprintf(stderr, "railmated: --%s: '%s' is not %s\n", option, value, legal);
	return EXIT_USAGE;
}

static int set_registration(struct command_line *cl, const char *value)
{
	static const char *const names[] = {
		[REGISTER_CLASSIC] = "classic",
		[REGISTER_WATCHER] = "watcher",
		[REGISTER_AUTO] = "auto",
	};

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		if (!strcmp(value, names[i])) {
			cl->daemon.registration = (enum plugin_registration)i;
			return EXIT_DONE;
		}
	}
	return usage_error("registration", value, "classic, watcher or auto");
}

static int set_pod_resources(struct command_line *cl, const char *value)
{
	if (strcmp(value, "auto") && strcmp(value, "off"))
		return usage_error("pod-resources", value, "auto or off");
	cl->daemon.pod_resources = !strcmp(value, "auto");
	return EXIT_DONE;
}

static int set_pod_specs(struct command_line *cl, const char *value)
{
	static const char *const names[] = {
		[SPECS_OFF] = "off",	     [SPECS_PODS_API] = "pods-api",
		[SPECS_KUBELET] = "kubelet", [SPECS_API_SERVER] = "api-server",
		[SPECS_AUTO] = "auto",
	};

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		if (!strcmp(value, names[i])) {
			cl->daemon.specs.way = (enum specs_way)i;
			return EXIT_DONE;
		}
	}
	return usage_error("pod-specs", value, "off, pods-api, kubelet, api-server or auto");
}

static int set_kubelet_url(struct command_line *cl, const char *value)
{
	if (!str_starts(value, "https://"))
		return usage_error("kubelet-url", value, "an https:// URL");
	cl->daemon.specs.kubelet_url = value;
	return EXIT_DONE;
}

static int set_cdi(struct command_line *cl, const char *value)
{
	static const char *const names[] = { [CDI_AUTO] = "auto", [CDI_ON] = "on", [CDI_OFF] = "off" };

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		if (!strcmp(value, names[i])) {
			cl->daemon.cdi = (enum plugin_cdi)i;
			return EXIT_DONE;
		}
	}
	return usage_error("cdi", value, "auto, on or off");
}

static int set_rescan(struct command_line *cl, const char *value)
{
	uint64_t seconds;

	if (str_to_u64(value, 10, 86400, &seconds) < 0)
		return usage_error("rescan", value, "a number of seconds up to 86400");
	cl->daemon.rescan_seconds = (unsigned)seconds;
	return EXIT_DONE;
}

static int set_log_level(struct command_line *cl, const char *value)
{
	static const char *const names[] = {
		[LOG_LEVEL_ERROR] = "error",
		[LOG_LEVEL_WARN] = "warning",
		[LOG_LEVEL_INFO] = "info",
		[LOG_LEVEL_DEBUG] = "debug",
	};
	uint64_t number;

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		if (!strcmp(value, names[i])) {
			cl->level = (enum log_level)i;
			return EXIT_DONE;
		}
	}
	if (str_to_u64(value, 10, 1000, &number) == 0) {
		cl->level = LOG_LEVEL_INFO; /* glog's verbosity, as the peer's manifests set it */
		return EXIT_DONE;
	}
	return usage_error("log-level", value, "error, warning, info, debug or a number");
}

static int refuse_cdi(void)
{
	if (!str_eq(optarg, "false")) {
		fputs("railmated: --use-cdi: device nodes come in the Allocate answer, or by CDI for pools "
		      "with binding: late\n",
		      stderr);
		return EXIT_USAGE;
	}
	return EXIT_DONE;
}

static int set_option(struct command_line *cl, int id)
{
	switch ((enum option_id)id) {
	case OPT_CONFIG:
		cl->config_file = optarg;
		return EXIT_DONE;
	case OPT_PREFIX:
		cl->prefix = optarg;
		return EXIT_DONE;
	case OPT_CHECK:
		cl->check = true;
		return EXIT_DONE;
	case OPT_KUBELET_DIR:
		cl->daemon.kubelet_dir = optarg;
		return EXIT_DONE;
	case OPT_KUBELET_ROOT:
		cl->daemon.kubelet_root = optarg;
		return EXIT_DONE;
	case OPT_REGISTRATION:
		return set_registration(cl, optarg);
	case OPT_POD_RESOURCES:
		return set_pod_resources(cl, optarg);
	case OPT_POD_SPECS:
		return set_pod_specs(cl, optarg);
	case OPT_GPU_PLUGIN:
		cl->daemon.predict_gpus = strcmp(optarg, "none") != 0;
		cl->daemon.gpu_plugin = strcmp(optarg, "auto") && strcmp(optarg, "none") ? optarg : NULL;
		return EXIT_DONE;
	case OPT_KUBELET_URL:
		return set_kubelet_url(cl, optarg);
	case OPT_KUBELET_CA:
		cl->daemon.specs.kubelet_ca = optarg;
		return EXIT_DONE;
	case OPT_KUBELET_INSECURE:
		cl->daemon.specs.kubelet_insecure = true;
		return EXIT_DONE;
	case OPT_NODE_NAME:
		cl->daemon.specs.node_name = optarg;
		return EXIT_DONE;
	case OPT_SERVICE_ACCOUNT:
		cl->daemon.specs.service_account = optarg;
		return EXIT_DONE;
	case OPT_CGROUP:
		cl->daemon.cgroup_dir = strcmp(optarg, "none") ? optarg : NULL;
		return EXIT_DONE;
	case OPT_DEVINFO:
		cl->daemon.devinfo_dir = strcmp(optarg, "none") ? optarg : NULL;
		return EXIT_DONE;
	case OPT_CONTROL:
		cl->daemon.control_socket = strcmp(optarg, "none") ? optarg : NULL;
		return EXIT_DONE;
	case OPT_STATE:
		cl->daemon.state_dir = strcmp(optarg, "none") ? optarg : NULL;
		return EXIT_DONE;
	case OPT_CDI_DIR:
		cl->daemon.cdi_dir = optarg;
		return EXIT_DONE;
	case OPT_CDI_WAY:
		return set_cdi(cl, optarg);
	case OPT_RESCAN:
		return set_rescan(cl, optarg);
	case OPT_ROOT:
		cl->daemon.root = optarg;
		return EXIT_DONE;
	case OPT_LOG_LEVEL:
		return set_log_level(cl, optarg);
	case OPT_CDI:
		return refuse_cdi();
	case OPT_HELP:
	case OPT_VERSION:
	case OPT_IGNORED:
		break;
	}
	return EXIT_DONE;
}

static void print_and_exit(int id)
{
	if (id == OPT_HELP)
		fputs(usage_text, stdout);
	else if (id == OPT_VERSION)
		puts("railmated " RAILMATE_VERSION);
	else
		return;
	exit(fflush(stdout) == 0 ? EXIT_DONE : EXIT_FAILED);
}

static int parse_command_line(int argc, char **argv, struct command_line *cl)
{
	int id, r;

	while ((id = getopt_long_only(argc, argv, "", options, NULL)) != -1) {
		if (id == '?')
			return EXIT_USAGE; /* getopt has said why */
		print_and_exit(id);
		r = set_option(cl, id);
		if (r != EXIT_DONE)
			return r;
	}
	if (optind < argc) {
		fprintf(stderr, "railmated: unexpected argument '%s'; see railmated --help\n", argv[optind]);
		return EXIT_USAGE;
	}
	if (!cl->config_file && access(DEFAULT_CONFIG, F_OK) == 0)
		cl->config_file = DEFAULT_CONFIG;
	return EXIT_DONE;
}

static int print_pools(const struct config *cfg)
{
	for (size_t i = 0; i < cfg->n_pools; i++)
		puts(cfg->pools[i].resource);
	return fflush(stdout) == 0 ? EXIT_DONE : EXIT_FAILED;
}

static int serve(const struct command_line *cl, const struct config *cfg)
{
	struct err err = { 0 };

	log_info("daemon", "railmated " RAILMATE_VERSION " starts: %s, machine below %s, kubelet in %s",
		 cl->config_file ? cl->config_file : "built-in pool rdma/vf", cl->daemon.root,
		 cl->daemon.kubelet_dir);
	if (daemon_run(&cl->daemon, cfg, &err) < 0) {
		log_error("daemon", "%s", err.msg);
		return EXIT_FAILED;
	}
	return EXIT_DONE;
}

int main(int argc, char **argv)
{
	struct command_line cl = {
		.daemon = { .root = "/",
			    .kubelet_dir = "/var/lib/kubelet/device-plugins",
			    .kubelet_root = "/var/lib/kubelet",
			    .cgroup_dir = "/sys/fs/cgroup",
			    .devinfo_dir = "/var/run/k8s.cni.cncf.io/devinfo/dp",
			    .control_socket = CONTROL_SOCKET,
			    .state_dir = "/var/lib/railmate",
			    .cdi_dir = "/var/run/cdi",
			    .registration = REGISTER_CLASSIC,
			    .pod_resources = true,
			    .predict_gpus = true,
			    .specs = { .way = SPECS_AUTO,
				       .service_account = "/var/run/secrets/kubernetes.io/serviceaccount" },
			    .rescan_seconds = 60 },
		.prefix = "intel.com",
		.level = LOG_LEVEL_INFO,
	};
	struct err err = { 0 };
	struct config *cfg;
	int r;

	r = parse_command_line(argc, argv, &cl);
	if (r != EXIT_DONE)
		return r;
	log_setup(cl.level, NULL, NULL);
	if (load_config(cl.config_file, cl.prefix, &cfg, &err) < 0) {
		log_error("config", "%s", err.msg);
		return EXIT_REFUSED;
	}
	for (size_t i = 0; i < cfg->n_warnings; i++)
		log_warn("config", "%s", cfg->warnings[i]);
	r = cl.check ? print_pools(cfg) : serve(&cl, cfg);
	config_free(cfg);
	return r;
}
