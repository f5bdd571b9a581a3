/* railmatectl: a machine as railmate sees it, its choices there, and its decisions. Only explain,
 * status, release and topo --svg ask the daemon; cluster asks those of a cluster. */
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "config/config.h"
#include "discover/discover.h"
#include "load/load.h"
#include "pool/node.h"
#include "railmatectl.h"
#include "sysroot/sysroot.h"

static const char usage_text[] =
	"usage: railmatectl COMMAND [OPTION…]\n"
	"\n"
	"commands:\n"
	"  topo                    GPUs, NICs, VFs and the PCIe path class of every pair\n"
	"  plan                    the VFs, variables and files that a container would get\n"
	"  explain pod NAMESPACE/NAME\n"
	"  explain claim NAMESPACE/NAME\n"
	"  explain vf BDF\n"
	"  explain last            why a container has its VFs: what was known, free, chosen, the\n"
	"                          next best, and what came; asks railmated, or reads its ledger\n"
	"  explain pool [RESOURCE] which container holds which VF, since when; what is free; what frees the rest\n"
	"  release BDF             free a VF by hand: the next container may get it although a process uses it\n"
	"  status                  the state of this node in ten lines: VFs, links, placement, doctor's verdict\n"
	"  simulate                a day of pods on this machine: how often each policy gives a container\n"
	"                          the nearest VFs that were free\n"
	"  doctor                  what keeps NCCL from being fast or right here: IOMMU, ACS, modules, links, ports\n"
	"                          …, with the fix on Ubuntu, RHEL, OpenShift and Talos; changes nothing\n"
	"  verify [LOG…]           which HCAs did NCCL or RCCL use, with GPUDirect RDMA, and if not, why: from its\n"
	"                          log (NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,NET,ENV), files or standard input\n"
	"  probe [OPTION…]         railmate-probe here: in a container with VFs, or --pid PID from its node\n"
	"  cluster status          status of every node: a line each, the worst first. All cluster commands use\n"
	"                          kubectl; with a link kubectl-railmate in PATH they are `kubectl railmate …`, too\n"
	"  cluster topo NODE       topo of that node\n"
	"  cluster explain POD     explain of that pod, on its node; pool [RESOURCE], vf BDF and last: of all\n"
	"                          nodes, or of those of --node\n"
	"  cluster doctor          doctor of every node, findings of many nodes once\n"
	"  cluster verify JOB      verify of the logs and maps of all pods of a job\n"
	"  cluster probe POD…      railmate-probe in that pod; of several pods, or those of a JOB, between the\n"
	"                          first one and each other. After -- come options of railmate-probe\n"
	"  ready FILE              is the railmated ready that writes FILE? The probe of deploy/base\n"
	"  snapshot                capture this machine as host.tree text\n"
	"  snapshot unpack FILE DIR\n"
	"                          write the files of a host.tree into an empty or new directory\n"
	"\n"
	"options of topo, plan, simulate and doctor:\n"
	"  --root DIR              the machine below DIR instead of / (nothing outside DIR is read)\n"
	"  --config FILE           the daemon's config.json; default: one pool, rdma/vf\n"
	"  --topology-hints FILE   which GPUs and NICs share a switch, where a virtual machine hides it\n"
	"  --json                  one JSON object on standard output\n"
	"options of topo:\n"
	"  --wide                  tables as wide as the machine, with slots and the VFs' RDMA devices\n"
	"  --svg                   a picture: NUMA nodes, switches, GPUs, NICs, VFs, and the pods that hold them\n"
	"  --control-socket PATH, --state-dir DIR\n"
	"                          with --svg: where to read which pod holds a VF, as with explain\n"
	"  --nccl-xml              the topology file that NCCL would be given (NCCL_TOPO_FILE)\n"
	"  --rccl                  that of RCCL\n"
	"options of plan:\n"
	"  --gpus GPU,…            the container's GPUs: PCI address, UUID, or number as in topo\n"
	"  --vfs N                 how many VFs it asks for\n"
	"  --pool RESOURCE         the pool, when the configuration has several\n"
	"  --free ID,…             the VFs that are free; default: all of the pool\n"
	"  --must ID,…             VFs that have to be among the chosen\n"
	"options of simulate:\n"
	"  --pods N                how many pods come (1000)\n"
	"  --seed N                random seed (1)\n"
	"  --load MIN-MAX          per cent of the GPUs that are in use when a pod arrives (60-95)\n"
	"  --pool RESOURCE         the pool, when the configuration has several\n"
	"options of explain:\n"
	"  --control-socket PATH   railmated's; none: read the ledger (/run/railmate/railmate.sock)\n"
	"  --state-dir DIR         where its ledger is (/var/lib/railmate)\n"
	"  --json                  one JSON object on standard output\n"
	"options of status:\n"
	"  --root DIR              the links and doctor's checks of the machine below DIR\n"
	"  --topology-hints FILE   as of topo\n"
	"  --control-socket PATH   railmated's (/run/railmate/railmate.sock); none: it is not asked\n"
	"  --state-dir DIR         where its ledger is (/var/lib/railmate), read when it is down\n"
	"  --no-doctor             without doctor's checks\n"
	"  --json                  one JSON object on standard output\n"
	"options of release:\n"
	"  --control-socket PATH   railmated's (/run/railmate/railmate.sock)\n"
	"  --yes                   confirm: a process that still uses the VF will share it with another container\n"
	"options of doctor:\n"
	"  --only ID,…             these checks only\n"
	"  --node-only             without what is only this process's: devices, limits, mounts\n"
	"  --list                  list the checks\n"
	"  --fix-manifest PLATFORM the change of the host that the findings ask for, ready to apply: grub,\n"
	"                          openshift or talos\n"
	"  --role ROLE             of --fix-manifest openshift: the pool of nodes; default: worker\n"
	"options of cluster:\n"
	"  --context NAME, --kubeconfig FILE\n"
	"                          kubectl's\n"
	"  --railmate-namespace NS where the railmate pods are (kube-system)\n"
	"  -n, --namespace NS      explain, verify, probe: where the pod or the job is; default: kubectl's\n"
	"  -l, --selector LABELS   verify, probe: of the pods with these labels, in place of a job\n"
	"  -c, --container NAME    verify: this container's; default: the logs of all, map.json of the first.\n"
	"                          probe: in this container; default: kubectl's\n"
	"  --node NAME,…           status, doctor, explain pool, vf, last: these nodes only\n"
	"  --parallel N            how many nodes at once (16)\n"
	"  --timeout SECONDS       time limit for each node (30), or of probe for each pair of pods (120)\n"
	"  --no-doctor             status: without doctor's checks\n"
	"  --only ID,…             doctor: these checks only\n"
	"  --svg, --nccl-xml, --rccl, --wide\n"
	"                          as of topo\n"
	"  --json                  one JSON object on standard output\n"
	"options of verify:\n"
	"  --map [HOST=]FILE,…     what containers were given (map.json); HOST: of that host's ranks only\n"
	"  --counters begin FILE   keep the byte counters of all RDMA ports in FILE\n"
	"  --counters end FILE     what every port has sent since; a LOG after it is judged together with them\n"
	"  --root DIR              the ports below DIR\n"
	"  --json                  one JSON object on standard output\n"
	"options of snapshot:\n"
	"  --root DIR              capture what lies below DIR\n"
	"  --scrub                 replace GUIDs, MACs, serial numbers, UUIDs and host names\n"
	"  -o, --output FILE       write there instead of standard output\n"
	"\n"
	"  --help, --version\n"
	"\n"
	"exit status: 0 done, 1 failed, 2 wrong command line, 3 refused configuration or request\n"
	"and of verify: 0 PASS, 4 PASS-noGDR, 5 WARN, 6 FAIL, 7 INCONCLUSIVE\n"
	"and of doctor: 0 PASS, 5 WARN, 6 FAIL, 7 UNKNOWN and nothing worse\n"
	"and of probe: 0 good, 1 broken, 3 slow, 4 could not be measured, 5 no GPU library in the image\n"
	"and of status: 0 PASS, 5 WARN, 6 FAIL; of cluster those of the same command, of the worst node\n";

int fail(int code, const char *fmt, ...)
{
	_cleanup_free_ char *sentence = NULL;
	va_list ap;

	va_start(ap, fmt);
	sentence = xvasprintf(fmt, ap);
	va_end(ap);
	str_printable(sentence, strlen(sentence), "\n");
	fprintf(stderr, "railmatectl: %s\n", sentence);
	return code;
}

/* Others made the names of devices, pods and hosts: none reaches the terminal as a control
 * character. */
int print_out(struct strbuf *text)
{
	if (text->len)
		str_printable(text->s, text->len, "\n\t");
	if (fwrite(strbuf_str(text), 1, text->len, stdout) != text->len || fflush(stdout) != 0)
		return fail(EXIT_FAILED, "cannot write to standard output: %m");
	return EXIT_DONE;
}

static int print_text(const char *text)
{
	_cleanup_strbuf_ struct strbuf out = STRBUF_INIT;

	strbuf_puts(&out, text);
	return print_out(&out);
}

int print_help(void)
{
	return print_text(usage_text);
}

static bool is_help(const char *word)
{
	return !strcmp(word, "--help") || !strcmp(word, "-h");
}

/* --- options of the commands --- */

/* For options of that name; all but one are kubectl's. */
static const struct {
	const char *name;
	char letter;
} letters[] = {
	{ "namespace", 'n' }, { "selector", 'l' }, { "container", 'c' }, { "output", 'o' }
};

/* The option of that letter, from 1; 0: there is none. */
static int find_letter(const struct word *words, size_t n, int letter)
{
	for (size_t i = 0; i < n; i++) {
		for (size_t k = 0; k < ARRAY_LEN(letters); k++) {
			if (letters[k].letter == letter && !strcmp(words[i].name, letters[k].name))
				return (int)i + 1;
		}
	}
	return 0;
}

/* The sentence that getopt would write, without characters that a terminal obeys. */
int refuse_option(char **argv, int found)
{
	const char *space = strchr(argv[0], ' '), *word = argv[optind - 1];
	_cleanup_free_ char *command = space ? xasprintf("%s: ", space + 1) : xstrdup("");

	if (optopt == 'h' || !strcmp(word, "--help"))
		exit(print_help());
	if (found == ':')
		return fail(EXIT_USAGE, "%soption '%s' requires an argument", command, word);
	if (word[0] != '-' || word[1] != '-')
		return fail(EXIT_USAGE, "%sinvalid option '-%c'", command, optopt);
	if (optopt)
		return fail(EXIT_USAGE, "%soption '%s' takes no argument", command, word);
	return fail(EXIT_USAGE, "%sunrecognized option '%s'; see railmatectl --help", command,
		    word);
}

/* getopt_long returns the place of the option in the table, from 1. */
int read_options(int argc, char **argv, const struct word *words, size_t n)
{
	_cleanup_free_ struct option *options = xcalloc(n + 1, sizeof(*options));
	char shorts[1 + 2 * ARRAY_LEN(letters) + 1] = ":", *end = shorts + 1;
	int opt;

	for (size_t k = 0; k < ARRAY_LEN(letters); k++) {
		if (!find_letter(words, n, letters[k].letter))
			continue;
		*end++ = letters[k].letter;
		*end++ = ':';
	}
	for (size_t i = 0; i < n; i++)
		options[i] = (struct option) { words[i].name,
					       words[i].value ? required_argument : no_argument,
					       NULL, (int)i + 1 };
	opterr = 0;
	while ((opt = getopt_long(argc, argv, shorts, options, NULL)) != -1) {
		if (opt == '?' || opt == ':')
			return refuse_option(argv, opt);
		if (opt > (int)n)
			opt = find_letter(words, n, opt);
		if (words[opt - 1].value)
			*words[opt - 1].value = optarg;
		else
			*words[opt - 1].flag = true;
	}
	return EXIT_DONE;
}

int read_only_options(int argc, char **argv, const struct word *words, size_t n)
{
	int r = read_options(argc, argv, words, n);

	if (r != EXIT_DONE || optind == argc)
		return r;
	return fail(EXIT_USAGE, "%s takes no argument '%s'", strchr(argv[0], ' ') + 1,
		    argv[optind]);
}

/* --- the machine of a command line --- */

int machine_open(struct machine *m)
{
	_cleanup_strbuf_ struct strbuf also = STRBUF_INIT;
	struct err err = { 0 };
	_cleanup_strbuf_ struct strbuf numa = STRBUF_INIT;

	if (load_config(m->config_path, "intel.com", &m->cfg, &also, &err) < 0 ||
	    load_hints(m->hints_path, m->cfg, &also, &err) < 0) {
		/* All faults of the file are printed at once. */
		fail(0, "%s", err.msg);
		for (char *rest = also.s, *line; rest && *rest;) {
			line = strsep(&rest, "\n");
			fail(0, "%s", line);
		}
		return EXIT_REFUSED;
	}
	if (sysroot_open(m->root_path, &m->root, &err) < 0)
		return fail(EXIT_FAILED, "%s", err.msg);
	if (load_node(m->root, m->cfg, NULL, &m->node, &err) < 0)
		return fail(EXIT_FAILED, "%s", err.msg);
	for (size_t i = 0; i < m->cfg->n_errors; i++)
		fail(0, "%s", m->cfg->errors[i]);
	for (size_t i = 0; i < m->cfg->n_warnings; i++)
		fail(0, "%s", m->cfg->warnings[i]);
	for (size_t i = 0; i < m->node->inv->n_notes; i++)
		fail(0, "%s", m->node->inv->notes[i]);
	for (size_t i = 0; i < m->node->n_notes; i++)
		fail(0, "%s", m->node->notes[i]);
	discover_check_numa(m->root, m->node->inv, &numa);
	if (numa.len)
		fail(0, "%s", strbuf_str(&numa));
	return EXIT_DONE;
}

void machine_close(struct machine *m)
{
	node_unref(m->node);
	config_free(m->cfg);
	sysroot_close(m->root);
}

int machine_pool(const struct machine *m, const char *resource, const struct pool **ret,
		 struct err *err)
{
	_cleanup_strbuf_ struct strbuf names = STRBUF_INIT;
	const struct node *node = m->node;
	const struct pool *pool = resource ? node_pool(node, resource) : NULL;

	if (!resource && node->n_pools == 1)
		pool = &node->pools[0];
	if (pool) {
		*ret = pool;
		return 0;
	}
	for (size_t i = 0; i < node->n_pools; i++)
		strbuf_printf(&names, "%s%s", i ? ", " : "", node->pools[i].cfg->resource);
	if (!resource)
		return err_set(err, EINVAL, "name the pool with --pool: %s", strbuf_str(&names));
	return err_set(err, EINVAL, "there is no pool %s; there is: %s", resource,
		       strbuf_str(&names));
}

/* --- commands --- */

struct command {
	const char *name;
	int (*run)(int argc, char **argv);
};

static const struct command commands[] = {
	{ "topo", cmd_topo },	    { "plan", cmd_plan },	  { "explain", cmd_explain },
	{ "release", cmd_release }, { "simulate", cmd_simulate }, { "snapshot", cmd_snapshot },
	{ "verify", cmd_verify },   { "doctor", cmd_doctor },	  { "ready", cmd_ready },
	{ "status", cmd_status },   { "cluster", cmd_cluster },	  { "probe", cmd_probe },
};

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "", *slash = argc ? strrchr(argv[0], '/') : NULL;

	if (is_help(name) || !strcmp(name, "help"))
		return print_help();
	if (!strcmp(name, "--version"))
		return print_text("railmatectl " RAILMATE_VERSION "\n");
	/* kubectl runs a program of this name for `kubectl railmate …`. */
	if (argc && str_eq(slash ? slash + 1 : argv[0], "kubectl-railmate"))
		return cmd_cluster(argc, argv);
	for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
		if (!strcmp(name, commands[i].name)) {
			/* sentences about its options begin with argv[0] */
			_cleanup_free_ char *shown = xasprintf("railmatectl: %s", name);

			if (argc > 2 && is_help(argv[2]))
				return print_help();
			argv[1] = shown;
			return commands[i].run(argc - 1, argv + 1);
		}
	}
	if (*name)
		return fail(EXIT_USAGE, "unknown command '%s'; see railmatectl --help", name);
	fputs(usage_text, stderr);
	return EXIT_USAGE;
}
