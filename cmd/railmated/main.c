/* railmated: command line → configuration → daemon_run(). */
#include <getopt.h>
#include <malloc.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "config/config.h"
#include "control/control.h"
#include "daemon/daemon.h"
#include "grant/rundir.h"
#include "kubeapi/kubeapi.h"
#include "ledger/file.h"
#include "ledger/ledger.h"
#include "load/configfiles.h"
#include "report/web.h"

/* Exit codes; railmated(8) lists them. */
enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_REFUSED = 3 };

#define DEFAULT_CONFIG	CONFIG_DIR "/" CONFIG_NAME_DEFAULT
#define METRICS_ADDRESS "127.0.0.1:9835"
#define PROBE_DIR	"/usr/lib/railmate/probe"
#define LINES_A_MINUTE	250 /* of one message of the log: as many as a node has pods */

static const char usage_text[] =
	"usage: railmated [OPTION…]\n"
	"\n"
	"  --config-file FILE      pools, as for sriov-network-device-plugin; default " CONFIG_DIR
	"/$NODE_NAME\n"
	"                          if it exists, else " DEFAULT_CONFIG " if that exists,\n"
	"                          else one pool rdma/vf of every VF with an RDMA device\n"
	"  --shared-config FILE    HCAs that containers share, as for k8s-rdma-shared-dev-plugin\n"
	"  --resource-prefix P     prefix of pools that name none (intel.com)\n"
	"  --check-config          read the configuration, print its resources and exit\n"
	"  --strict-config         do not start with a configuration of which something has to be left out\n"
	"  --topology-hints FILE   which GPUs and NICs share a switch, where a virtual machine hides it\n"
	"  --kubelet-dir DIR       the kubelet's plugin directory (/var/lib/kubelet/device-plugins)\n"
	"  --kubelet-root DIR      the kubelet's root directory (/var/lib/kubelet)\n"
	"  --serve MODE            plugin: pools are device plugins; dra: their VFs are for ResourceClaims;\n"
	"                          auto: dra where the installation has what that needs, and no container\n"
	"                          holds a VF of the device plugin (plugin)\n"
	"  --dra-driver NAME       the driver's name in DeviceClasses, with --serve=dra (vf.railmate.io)\n"
	"  --registration MODE     classic: call the kubelet's Register; watcher: a socket in\n"
	"                          plugins_registry; auto: watcher if that directory is there (classic)\n"
	"  --pod-resources MODE    auto: ask the kubelet which GPUs a container got; off: never,\n"
	"                          for kubelets before 1.30 (auto)\n"
	"  --pod-resources-timeout MS  how long to wait for the kubelet to report the container's GPUs;\n"
	"                          after that VFs are chosen without them; admissions wait meanwhile (200)\n"
	"  --pod-specs SOURCE      where to read the requests of pods: pods-api, api-server; off;\n"
	"                          auto: the first of these that answers (auto)\n"
	"  --gpu-plugin-socket PATH  GPU plugin that predicts the GPUs when VFs are requested first; auto:\n"
	"                          the socket beside ours whose name fits; none: no prediction (auto)\n"
	"  --node-name NAME        for --pod-specs=api-server ($NODE_NAME)\n"
	"  --service-account DIR   token and ca.crt (/var/run/secrets/kubernetes.io/serviceaccount)\n"
	"  --cgroup-dir DIR        the node's cgroups: a pod that runs keeps its VFs, whatever the kubelet\n"
	"                          says; none: do not look (/sys/fs/cgroup)\n"
	"  --devinfo-dir DIR       NPWG device-info files; none: write none\n"
	"                          (/var/run/k8s.cni.cncf.io/devinfo/dp)\n"
	"  --control-socket PATH   for railmatectl explain and railmate-cni, root only; none: no socket\n"
	"                          (" CONTROL_SOCKET ")\n"
	"  --run-dir DIR           files of containers, mounted into them as /run/railmate; the same path\n"
	"                          on the host; none: no files (/run/railmate)\n"
	"  --netns-dir DIR         network namespaces of pods, to see a VF's addresses and GIDs when its\n"
	"                          container starts; none: only what the host sees (/run/netns)\n"
	"  --state-dir DIR         the ledger: which VF is held by which container; none: memory only\n"
	"                          (" STATE_DIR ")\n"
	"  --probe DIR             railmate-probe and its libraries: copied into the state directory, which\n"
	"                          needs the same path on the host, and mounted into containers as\n"
	"                          /run/railmate/probe; none: not done (" PROBE_DIR ")\n"
	"  --cdi-dir DIR           where the runtime looks for CDI specs, for pools that bind late\n"
	"                          (" CDI_DIR_DEFAULT ")\n"
	"  --cdi MODE              on: kubelet and runtime do CDI; off: they do not, pools that bind late are\n"
	"                          not served; auto: if the kubelet is 1.29 or later and\n"
	"                          the runtime does not say otherwise (auto)\n"
	"  --runtime-socket PATH   socket of the container runtime, to learn whether it supports CDI, for\n"
	"                          pools that bind late; auto: the first usual one that exists; none: do\n"
	"                          not ask (auto)\n"
	"  --metrics-address IP:PORT  /metrics, /healthz and /readyz over HTTP, without TLS; none: not served\n"
	"                          (" METRICS_ADDRESS ")\n"
	"  --ready-file FILE       written when this railmated serves, or could as soon as another one ends;\n"
	"                          for railmatectl ready; none: no file (none)\n"
	"  --events WHAT           send Events to the API server: about the node, such as a link that is down;\n"
	"                          pods: about its pods, too; off: none (node)\n"
	"  --node-condition        keep the condition RDMALinksHealthy of the node\n"
	"  --nfd-file FILE         what does not change about the node, as a feature file of\n"
	"                          node-feature-discovery; none: no file (none)\n"
	"  --empty-pool-event SECONDS  create an Event on the node for each pool without a device\n"
	"                          SECONDS after the start; 0 never (60)\n"
	"  --rescan SECONDS        look at the hardware again this often, beside events; 0 never (60)\n"
	"  --root DIR              the machine below DIR instead of / (for tests and captured machines)\n"
	"  --use-cdi               accepted: containers get the same device nodes without CDI\n"
	"  --log-level LEVEL       error, warning, info or debug; a number means info (info)\n"
	"  --log-format FORMAT     text, or json: an object per line (text)\n"
	"  --help, --version\n"
	"\n"
	"Options may be written with one or two dashes, with a space or '='. An empty value counts as not\n"
	"given. Accepted and ignored, for\n"
	"manifests written for sriov-network-device-plugin: --log-dir, -v, -logtostderr,\n"
	"-alsologtostderr, -log_dir, -vmodule, -stderrthreshold, -log_backtrace_at.\n"
	"\n"
	"signals: SIGTERM, SIGINT stop; SIGHUP reads the configuration and looks at the hardware now\n"
	"exit status: 0 stopped, 1 failed, 2 wrong command line, 3 refused configuration\n";

struct command_line {
	struct daemon_options daemon;
	struct config_files files;
	enum log_level level;
	enum log_format log_format;
	bool check, use_cdi, serve_auto;
};

/* One option: the place of its value, or the function that takes it. */
struct flag {
	const char *name;
	int argument; /* of getopt: no_argument, required_argument, optional_argument */
	int (*set)(struct command_line *cl, const struct flag *flag, const char *value);
	size_t field; /* of struct command_line, for the setters that know only a type */
};

/* Without characters that a terminal obeys: words of the command line are in it. */
__attribute__((format(printf, 1, 2))) static int refuse(const char *fmt, ...)
{
	_cleanup_free_ char *sentence = NULL;
	va_list ap;

	va_start(ap, fmt);
	sentence = xvasprintf(fmt, ap);
	va_end(ap);
	str_printable(sentence, strlen(sentence), "");
	fprintf(stderr, "railmated: %s\n", sentence);
	return EXIT_USAGE;
}

static int usage_error(const struct flag *flag, const char *value, const char *legal)
{
	return refuse("--%s: '%s' is not %s", flag->name, value, legal);
}

static void *field_of(struct command_line *cl, const struct flag *flag)
{
	return (char *)cl + flag->field;
}

static int set_text(struct command_line *cl, const struct flag *flag, const char *value)
{
	*(const char **)field_of(cl, flag) = value;
	return EXIT_DONE;
}

static int set_text_or_none(struct command_line *cl, const struct flag *flag, const char *value)
{
	return set_text(cl, flag, strcmp(value, "none") ? value : NULL);
}

/* The container runtime gets the path in an answer, and knows no working directory of ours. */
static int set_absolute_or_none(struct command_line *cl, const struct flag *flag, const char *value)
{
	if (*value != '/' && strcmp(value, "none"))
		return usage_error(flag, value, "an absolute path or none");
	return set_text_or_none(cl, flag, value);
}

static int set_true(struct command_line *cl, const struct flag *flag, const char *value)
{
	*(bool *)field_of(cl, flag) = true;
	return EXIT_DONE;
}

/* Of words that stand at the place of their value; n if it is none of them. */
static size_t word_index(const char *const *words, size_t n, const char *value)
{
	size_t i = 0;

	while (i < n && strcmp(words[i], value))
		i++;
	return i;
}

static int set_registration(struct command_line *cl, const struct flag *flag, const char *value)
{
	static const char *const words[] = {
		[REGISTER_CLASSIC] = "classic",
		[REGISTER_WATCHER] = "watcher",
		[REGISTER_AUTO] = "auto",
	};
	size_t i = word_index(words, ARRAY_LEN(words), value);

	if (i == ARRAY_LEN(words))
		return usage_error(flag, value, "classic, watcher or auto");
	cl->daemon.registration = (enum endpoint_registration)i;
	return EXIT_DONE;
}

static int set_serve(struct command_line *cl, const struct flag *flag, const char *value)
{
	if (strcmp(value, "plugin") && strcmp(value, "dra") && strcmp(value, "auto"))
		return usage_error(flag, value, "plugin, dra or auto");
	cl->files.by_claims = !strcmp(value, "dra");
	cl->serve_auto = !strcmp(value, "auto");
	return EXIT_DONE;
}

/* A DNS subdomain, as the API server wants a driver's name (k8s.io/api/resource/v1). */
static int set_dra_driver(struct command_line *cl, const struct flag *flag, const char *value)
{
	size_t len = strlen(value);

	if (!len || len > 63 || strspn(value, "abcdefghijklmnopqrstuvwxyz0123456789.-") != len ||
	    strchr(".-", value[0]) || strchr(".-", value[len - 1]) || strstr(value, "..") ||
	    strstr(value, ".-") || strstr(value, "-."))
		return usage_error(flag, value, "a DNS name of 63 characters at most");
	cl->daemon.dra_driver = value;
	return EXIT_DONE;
}

static int set_pod_resources(struct command_line *cl, const struct flag *flag, const char *value)
{
	if (strcmp(value, "auto") && strcmp(value, "off"))
		return usage_error(flag, value, "auto or off");
	cl->daemon.pod_resources = !strcmp(value, "auto");
	return EXIT_DONE;
}

static int set_pod_specs(struct command_line *cl, const struct flag *flag, const char *value)
{
	static const char *const words[] = {
		[SPECS_OFF] = "off",
		[SPECS_PODS_API] = "pods-api",
		[SPECS_API_SERVER] = "api-server",
		[SPECS_AUTO] = "auto",
	};
	size_t i = word_index(words, ARRAY_LEN(words), value);

	if (i == ARRAY_LEN(words))
		return usage_error(flag, value, "off, pods-api, api-server or auto");
	cl->daemon.specs.mode = (enum specs_mode)i;
	return EXIT_DONE;
}

static int set_events(struct command_line *cl, const struct flag *flag, const char *value)
{
	static const char *const words[] = {
		[EVENTS_OFF] = "off", [EVENTS_NODE] = "node", [EVENTS_PODS] = "pods"
	};
	size_t i = word_index(words, ARRAY_LEN(words), value);

	if (i == ARRAY_LEN(words))
		return usage_error(flag, value, "off, node or pods");
	cl->daemon.events = (enum events_about)i;
	return EXIT_DONE;
}

static int set_gpu_plugin(struct command_line *cl, const struct flag *flag, const char *value)
{
	cl->daemon.predict_gpus = strcmp(value, "none") != 0;
	cl->daemon.gpu_plugin = strcmp(value, "auto") && strcmp(value, "none") ? value : NULL;
	return EXIT_DONE;
}

static int set_metrics_address(struct command_line *cl, const struct flag *flag, const char *value)
{
	if (strcmp(value, "none") && web_check_address(value, NULL) < 0)
		return usage_error(flag, value,
				   "an IP address and a port, as in " METRICS_ADDRESS ", or none");
	cl->daemon.metrics_address = strcmp(value, "none") ? value : NULL;
	return EXIT_DONE;
}

static int set_cdi(struct command_line *cl, const struct flag *flag, const char *value)
{
	static const char *const words[] = {
		[CDI_AUTO] = "auto", [CDI_ON] = "on", [CDI_OFF] = "off"
	};
	size_t i = word_index(words, ARRAY_LEN(words), value);

	if (i == ARRAY_LEN(words))
		return usage_error(flag, value, "auto, on or off");
	cl->daemon.cdi = (enum plugin_cdi)i;
	return EXIT_DONE;
}

static int set_runtime_socket(struct command_line *cl, const struct flag *flag, const char *value)
{
	cl->daemon.ask_runtime = strcmp(value, "none") != 0;
	cl->daemon.runtime_socket = strcmp(value, "auto") && strcmp(value, "none") ? value : NULL;
	return EXIT_DONE;
}

static int set_seconds(struct command_line *cl, const struct flag *flag, const char *value)
{
	uint64_t seconds;

	if (str_to_u64(value, 10, 86400, &seconds) < 0)
		return usage_error(flag, value, "a number of seconds up to 86400");
	*(unsigned *)field_of(cl, flag) = (unsigned)seconds;
	return EXIT_DONE;
}

static int set_pod_resources_timeout(struct command_line *cl, const struct flag *flag,
				     const char *value)
{
	uint64_t ms;

	if (str_to_u64(value, 10, 60000, &ms) < 0 || ms == 0)
		return usage_error(flag, value, "a number of milliseconds from 1 to 60000");
	cl->daemon.pod_resources_timeout_ms = (unsigned)ms;
	return EXIT_DONE;
}

static int set_log_level(struct command_line *cl, const struct flag *flag, const char *value)
{
	static const char *const words[] = {
		[LOG_LEVEL_ERROR] = "error",
		[LOG_LEVEL_WARN] = "warning",
		[LOG_LEVEL_INFO] = "info",
		[LOG_LEVEL_DEBUG] = "debug",
	};
	size_t i = word_index(words, ARRAY_LEN(words), value);
	uint64_t number;

	if (i < ARRAY_LEN(words))
		cl->level = (enum log_level)i;
	else if (str_to_u64(value, 10, 1000, &number) == 0)
		cl->level = LOG_LEVEL_INFO; /* glog's verbosity, as the peer's manifests set it */
	else
		return usage_error(flag, value, "error, warning, info, debug or a number");
	return EXIT_DONE;
}

static int set_log_format(struct command_line *cl, const struct flag *flag, const char *value)
{
	static const char *const words[] = {
		[LOG_FORMAT_TEXT] = "text",
		[LOG_FORMAT_JSON] = "json",
	};
	size_t i = word_index(words, ARRAY_LEN(words), value);

	if (i == ARRAY_LEN(words))
		return usage_error(flag, value, "text or json");
	cl->log_format = (enum log_format)i;
	return EXIT_DONE;
}

/* The peer's way to hand out device nodes by CDI. The container gets the same nodes without. */
static int set_use_cdi(struct command_line *cl, const struct flag *flag, const char *value)
{
	if (value && strcmp(value, "true") && strcmp(value, "false"))
		return usage_error(flag, value, "true or false");
	cl->use_cdi = !value || !strcmp(value, "true");
	return EXIT_DONE;
}

static int ignore(struct command_line *cl, const struct flag *flag, const char *value)
{
	(void)cl, (void)flag, (void)value;
	return EXIT_DONE;
}

static int end_output(void)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return EXIT_DONE;
	fprintf(stderr, "railmated: cannot write to standard output: %m\n");
	return EXIT_FAILED;
}

static int print_and_exit(const char *text)
{
	fputs(text, stdout);
	exit(end_output());
}

static int print_help(struct command_line *cl, const struct flag *flag, const char *value)
{
	(void)cl, (void)flag, (void)value;
	return print_and_exit(usage_text);
}

static int print_version(struct command_line *cl, const struct flag *flag, const char *value)
{
	(void)cl, (void)flag, (void)value;
	return print_and_exit("railmated " RAILMATE_VERSION "\n");
}

#define FIELD(name) offsetof(struct command_line, name)

static const struct flag flags[] = {
	{ "config-file", required_argument, set_text, FIELD(files.config) },
	{ "shared-config", required_argument, set_text, FIELD(files.shared) },
	{ "resource-prefix", required_argument, set_text, FIELD(files.prefix) },
	{ "check-config", no_argument, set_true, FIELD(check) },
	{ "strict-config", no_argument, set_true, FIELD(files.strict) },
	{ "topology-hints", required_argument, set_text, FIELD(files.hints) },
	{ "kubelet-dir", required_argument, set_text, FIELD(daemon.kubelet_dir) },
	{ "kubelet-root", required_argument, set_text, FIELD(daemon.kubelet_root) },
	{ "serve", required_argument, set_serve, 0 },
	{ "dra-driver", required_argument, set_dra_driver, 0 },
	{ "registration", required_argument, set_registration, 0 },
	{ "pod-resources", required_argument, set_pod_resources, 0 },
	{ "pod-resources-timeout", required_argument, set_pod_resources_timeout, 0 },
	{ "pod-specs", required_argument, set_pod_specs, 0 },
	{ "gpu-plugin-socket", required_argument, set_gpu_plugin, 0 },
	{ "node-name", required_argument, set_text, FIELD(daemon.specs.node_name) },
	{ "service-account", required_argument, set_text, FIELD(daemon.specs.service_account) },
	{ "cgroup-dir", required_argument, set_text_or_none, FIELD(daemon.cgroup_dir) },
	{ "devinfo-dir", required_argument, set_text_or_none, FIELD(daemon.devinfo_dir) },
	{ "control-socket", required_argument, set_text_or_none, FIELD(daemon.control_socket) },
	{ "run-dir", required_argument, set_absolute_or_none, FIELD(daemon.run_dir) },
	{ "netns-dir", required_argument, set_text_or_none, FIELD(daemon.netns_dir) },
	{ "state-dir", required_argument, set_text_or_none, FIELD(daemon.state_dir) },
	{ "probe", required_argument, set_text_or_none, FIELD(daemon.probe) },
	{ "cdi-dir", required_argument, set_text, FIELD(daemon.cdi_dir) },
	{ "cdi", required_argument, set_cdi, 0 },
	{ "runtime-socket", required_argument, set_runtime_socket, 0 },
	{ "metrics-address", required_argument, set_metrics_address, 0 },
	{ "ready-file", required_argument, set_text_or_none, FIELD(daemon.ready_file) },
	{ "nfd-file", required_argument, set_text_or_none, FIELD(daemon.nfd_file) },
	{ "events", required_argument, set_events, 0 },
	{ "node-condition", no_argument, set_true, FIELD(daemon.node_condition) },
	{ "empty-pool-event", required_argument, set_seconds, FIELD(daemon.empty_pool_seconds) },
	{ "rescan", required_argument, set_seconds, FIELD(daemon.rescan_seconds) },
	{ "root", required_argument, set_text, FIELD(daemon.root) },
	{ "log-level", required_argument, set_log_level, 0 },
	{ "log-format", required_argument, set_log_format, 0 },
	{ "help", no_argument, print_help, 0 },
	{ "h", no_argument, print_help, 0 },
	{ "version", no_argument, print_version, 0 },
	{ "use-cdi", optional_argument, set_use_cdi, 0 },
	{ "log-dir", required_argument, ignore, 0 },
	{ "log_dir", required_argument, ignore, 0 },
	{ "v", required_argument, ignore, 0 },
	{ "vmodule", required_argument, ignore, 0 },
	{ "stderrthreshold", required_argument, ignore, 0 },
	{ "log_backtrace_at", required_argument, ignore, 0 },
	{ "logtostderr", optional_argument, ignore, 0 },
	{ "alsologtostderr", optional_argument, ignore, 0 },
};

static int refuse_option(const char *word, int found)
{
	if (found == ':')
		return refuse("option '%s' requires an argument", word);
	if (optopt)
		return refuse("option '%s' takes no argument", word);
	return refuse("unrecognized option '%s'; see railmated --help", word);
}

static int parse_command_line(int argc, char **argv, struct command_line *cl)
{
	enum {
		FIRST = 256
	}; /* getopt's results, no characters; each its own, or abbreviations mix */
	struct option options[ARRAY_LEN(flags) + 1] = { 0 };
	int found, r;

	for (size_t i = 0; i < ARRAY_LEN(flags); i++)
		options[i] =
			(struct option) { flags[i].name, flags[i].argument, NULL, FIRST + (int)i };
	opterr = 0;
	while ((found = getopt_long_only(argc, argv, ":", options, NULL)) != -1) {
		const struct flag *flag;

		if (found == '?' || found == ':')
			return refuse_option(argv[optind - 1], found);
		flag = &flags[found - FIRST];
		if (optarg && !*optarg)
			continue; /* a template's variable that is empty: the default holds, as with
				   * the peer */
		r = flag->set(cl, flag, optarg);
		if (r != EXIT_DONE)
			return r;
	}
	if (optind < argc)
		return refuse("unexpected argument '%s'; see railmated --help", argv[optind]);
	if (apiserver_node(cl->daemon.specs.node_name, &cl->files.node, NULL) < 0)
		cl->files.node = NULL;
	return EXIT_DONE;
}

static int print_pools(const struct config *cfg, bool built_in)
{
	for (size_t i = 0; i < cfg->n_pools; i++) {
		if (cfg->pools[i].binding_auto && !built_in)
			log_info(
				"binding",
				"binding auto is decided when railmated starts on a node resource=%s",
				cfg->pools[i].resource);
		puts(cfg->pools[i].resource);
	}
	for (size_t i = 0; i < cfg->n_shared; i++)
		puts(cfg->shared[i].resource);
	return end_output();
}

static int serve(const struct command_line *cl, struct config *cfg, struct config_text *text)
{
	struct err err = { 0 };

	signal(SIGPIPE, SIG_IGN); /* the reader of the log may be gone */
	log_info("daemon",
		 "railmated starts version=" RAILMATE_VERSION " config=%s root=%s kubelet_dir=%s",
		 text->path ? text->path : "built-in pool rdma/vf", cl->daemon.root,
		 cl->daemon.kubelet_dir);
	if (daemon_run(&cl->daemon, cfg, text, &err) < 0) {
		log_error("daemon", "railmated cannot run error=%s", err.msg);
		return EXIT_FAILED;
	}
	return EXIT_DONE;
}

/* Without the host's folder the files of containers would be written where none is shown them.
 * Another path was chosen by the operator. */
static void check_run_dir(struct daemon_options *o)
{
	if (!str_eq(o->run_dir, RUNDIR_DEFAULT) || !file_is_in_image("/", o->run_dir))
		return;
	log_warn(
		"daemon",
		"the run directory is not a folder of the host: containers are given no files path=%s",
		o->run_dir);
	o->run_dir = NULL;
}

static bool binds_late(const struct config *cfg)
{
	for (size_t i = 0; i < cfg->n_pools; i++) {
		if (cfg->pools[i].binding == BINDING_LATE)
			return true;
	}
	return false;
}

/* The runtime would not see specs that are written into the image. Another configuration may want
 * them later. */
static void check_cdi_dir(const struct config *cfg, struct daemon_options *o)
{
	o->cdi_dir_missing =
		str_eq(o->cdi_dir, CDI_DIR_DEFAULT) && file_is_in_image("/", o->cdi_dir);
	if (!o->cdi_dir_missing || !binds_late(cfg) || o->cdi == CDI_OFF)
		return;
	log_warn(
		"daemon",
		"the CDI directory is not a folder of the host: pools that bind late are not served path=%s",
		o->cdi_dir);
}

/* --- which API serves pods, with --serve=auto --- */

/* What DRA lacks here, a clause; NULL: nothing. */
static const char *lacks_for_dra(const struct command_line *cl, struct arena *a)
{
	const struct daemon_options *o = &cl->daemon;
	const char *const folders[] = {
		arena_printf(a, "%s/plugins/%s", o->kubelet_root, o->dra_driver),
		arena_printf(a, "%s/plugins_registry", o->kubelet_root),
		o->cdi_dir,
	};
	const char *token = arena_printf(a, "%s/token", o->specs.service_account);
	_cleanup_free_ char *url = NULL;
	struct err err = { 0 };

	if (!o->pod_resources || o->cdi == CDI_OFF || o->specs.mode == SPECS_OFF ||
	    o->specs.mode == SPECS_PODS_API)
		return "--pod-resources, --cdi or --pod-specs rules out what it needs";
	if (apiserver_url(&url, &err) < 0 || access(token, R_OK) < 0)
		return "no API server is known, or there is no token for it";
	for (size_t i = 0; i < ARRAY_LEN(folders); i++) {
		if (access(folders[i], W_OK) < 0 || file_is_in_image("/", folders[i]))
			return arena_printf(a, "%s is not a folder of the host", folders[i]);
	}
	return NULL;
}

/* A hold of the device plugin: its pod would be refused by a kubelet that admits it again. */
static bool holds_by_plugin(const char *state_dir)
{
	struct ledger *l = NULL;
	bool any = false;

	if (!state_dir || ledger_file_peek(state_dir, &l, NULL) < 0)
		return false;
	for (size_t i = 0; i < ledger_holds(l); i++)
		any |= !*ledger_hold_at(l, i)->owner.claim;
	ledger_free(l);
	return any;
}

static void decide_serve(struct command_line *cl)
{
	_cleanup_arena_ struct arena *a = arena_new(1024);
	const char *why = lacks_for_dra(cl, a);

	if (!why && holds_by_plugin(cl->daemon.state_dir))
		why = "containers hold VFs that the device plugin gave: drain the node, and restart railmated";
	cl->files.by_claims = !why;
	log_info("daemon", "serve auto was decided serve=%s reason=%s", why ? "plugin" : "dra",
		 why ? why : "the installation has what DRA needs");
}

/* The file is refused; all its faults are printed at once. */
static void say_refused(const struct err *err, const struct strbuf *also)
{
	log_error("config", "%s", err->msg);
	for (char *rest = also->s, *line; rest && *rest;) {
		line = strsep(&rest, "\n");
		log_error("config", "%s", line);
	}
}

static void say_sentences(const struct config *cfg)
{
	for (size_t i = 0; i < cfg->n_warnings; i++)
		log_warn("config", "%s", cfg->warnings[i]);
	for (size_t i = 0; i < cfg->n_errors; i++)
		log_error("config", "%s", cfg->errors[i]);
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
			    .run_dir = RUNDIR_DEFAULT,
			    .netns_dir = "/run/netns",
			    .state_dir = STATE_DIR,
			    .probe = PROBE_DIR,
			    .cdi_dir = CDI_DIR_DEFAULT,
			    .dra_driver = "vf.railmate.io",
			    .registration = REGISTER_CLASSIC,
			    .pod_resources = true,
			    .pod_resources_timeout_ms = 200,
			    .predict_gpus = true,
			    .ask_runtime = true,
			    .specs = { .mode = SPECS_AUTO,
				       .service_account =
					       "/var/run/secrets/kubernetes.io/serviceaccount" },
			    .metrics_address = METRICS_ADDRESS,
			    .events = EVENTS_NODE,
			    .empty_pool_seconds = 60,
			    .rescan_seconds = 60 },
		.files = { .dir = CONFIG_DIR, .prefix = "intel.com" },
		.level = LOG_LEVEL_INFO,
	};
	_cleanup_strbuf_ struct strbuf also = STRBUF_INIT;
	struct config_text text = { 0 };
	struct err err = { 0 };
	struct config *cfg = NULL;
	int r;

	cl.daemon.config_files = &cl.files;
	daemon_hold_signals(true);
	r = parse_command_line(argc, argv, &cl);
	if (r != EXIT_DONE)
		return r;
	if (cl.check)
		daemon_hold_signals(false);
	/* One heap: most of the dozen threads are gRPC's and idle, and each would keep one of its
	 * own. */
	mallopt(M_ARENA_MAX, 1);
	log_setup(cl.level, NULL, NULL);
	log_set_format(cl.log_format);
	cl.files.once = cl.check;
	if (cl.serve_auto)
		decide_serve(&cl);
	configfiles_read(&cl.files, &text);
	if (configfiles_parse(&cl.files, &text, &cfg, &also, &err) < 0) {
		say_refused(&err, &also);
		configfiles_done(&text);
		return EXIT_REFUSED;
	}
	say_sentences(cfg);
	if (cfg->n_errors && (cl.check || cl.files.strict)) {
		configfiles_done(&text);
		config_free(cfg);
		return EXIT_REFUSED;
	}
	if (cl.use_cdi)
		log_info(
			"daemon",
			"--use-cdi is accepted: containers get the same device nodes without a CDI spec");
	check_run_dir(&cl.daemon);
	if (!cl.check) {
		check_cdi_dir(cfg, &cl.daemon);
		if (cl.level < LOG_LEVEL_DEBUG)
			log_limit(LINES_A_MINUTE);
	}
	r = cl.check ? print_pools(cfg, !text.path) : serve(&cl, cfg, &text);
	configfiles_done(&text);
	config_free(cfg);
	return r;
}
