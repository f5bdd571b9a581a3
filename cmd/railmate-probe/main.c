/*
 * railmate-probe: does it really run over RDMA, from GPU memory, at full speed? Asked and answered
 * inside the job's own container, with the devices that railmate gave it (railmate-probe(1)).
 * Command line → checks, traffic, peers → one report.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "checks.h"
#include "exchange.h"
#include "gds.h"
#include "report.h"
#include "sysroot/sysroot.h"
#include "told.h"
#include "traffic.h"
#include "wire.h"

#define TOKEN_MAX 256

static const char usage_text[] =
	"usage: railmate-probe [OPTION…]\n"
	"\n"
	"In a container with VFs of railmate: checks of its limits, nodes and libibverbs, then traffic\n"
	"over each VF, between each two of them, and all at once.\n"
	"\n"
	"  --checks                only the checks, no traffic; with --gpu: is memory exported\n"
	"  --gpu                   from the memory of the container's GPUs, each with its VF\n"
	"  --far                   each GPU also with a VF that is not the nearest\n"
	"  --gds FILE              is this file read into the first GPU directly, or through the host?\n"
	"  --ops LIST              write, read, send, separated by commas (all)\n"
	"  --seconds S             for all transfers together, about (8)\n"
	"  --memory MIB            registered at most, of all VFs together (64)\n"
	"  --serve                 wait for a --peer in another container\n"
	"  --peer HOST             traffic to the railmate-probe that serves there: rail by rail, all at once\n"
	"  --port N                of the exchange with the peer, TCP (18525)\n"
	"  --token TOKEN           the secret that both ends know; '-': a line of standard input\n"
	"  --once                  with --serve: end after one peer\n"
	"  --wait S                for the peer to come or to be there (30)\n"
	"  --crossed               with --peer: to other rails, too\n"
	"  --isolation             with --peer: another P_Key and a foreign GID, which have to fail\n"
	"  --pid PID               a process of the job: its libibverbs, its devices, its traffic\n"
	"  --process NAME          the same, by name\n"
	"  --expect PERCENT        of the computed expectation; less is slow (80)\n"
	"  --map DIR               with map.json (/run/railmate)\n"
	"  --json                  the report as JSON\n"
	"  --html FILE             the report as a page, too\n"
	"  --metrics FILE          the report as metrics for a text file collector, too\n"
	"  --quiet                 no progress\n"
	"  --help, --version\n"
	"\n"
	"exit status: 0 good, 1 broken, 2 wrong command line, 3 slow, 4 not measured, 5 no GPU library\n";

struct command_line {
	struct traffic_options traffic;
	struct peer_options peer;
	const char *map, *html, *metrics, *process, *gds;
	double seconds; /* 0: not given */
	int pid, expect, memory_mib;
	bool checks, serve, json, quiet;
	char token[TOKEN_MAX];
};

__attribute__((format(printf, 1, 2))) static int refuse(const char *fmt, ...)
{
	_cleanup_free_ char *sentence = NULL;
	va_list ap;

	va_start(ap, fmt);
	sentence = xvasprintf(fmt, ap);
	va_end(ap);
	str_printable(sentence, strlen(sentence), "");
	fprintf(stderr, "railmate-probe: %s\n", sentence);
	return PROBE_EXIT_USAGE;
}

/* --- options: the place of a value in struct command_line, and its bounds --- */

enum kind { FLAG, TEXT, WHOLE, SECONDS, OPS };

struct word {
	const char *name;
	enum kind kind;
	size_t field;
	int min, max;
};
#define AT(member) offsetof(struct command_line, member)

static const struct word words[] = {
	{ "checks", FLAG, AT(checks), 0, 0 },
	{ "gpu", FLAG, AT(traffic.gpu), 0, 0 },
	{ "far", FLAG, AT(traffic.far), 0, 0 },
	{ "gds", TEXT, AT(gds), 0, 0 },
	{ "ops", OPS, AT(traffic.ops), 0, 0 },
	{ "seconds", SECONDS, AT(seconds), 0, 0 },
	{ "memory", WHOLE, AT(memory_mib), 1, 65536 },
	{ "serve", FLAG, AT(serve), 0, 0 },
	{ "peer", TEXT, AT(peer.host), 0, 0 },
	{ "port", WHOLE, AT(peer.port), 1, 65535 },
	{ "token", TEXT, AT(peer.token), 0, 0 },
	{ "once", FLAG, AT(peer.once), 0, 0 },
	{ "wait", WHOLE, AT(peer.wait_s), 1, 86400 },
	{ "crossed", FLAG, AT(peer.crossed), 0, 0 },
	{ "isolation", FLAG, AT(peer.isolation), 0, 0 },
	{ "pid", WHOLE, AT(pid), 1, 1 << 30 },
	{ "process", TEXT, AT(process), 0, 0 },
	{ "expect", WHOLE, AT(expect), 1, 100 },
	{ "map", TEXT, AT(map), 0, 0 },
	{ "json", FLAG, AT(json), 0, 0 },
	{ "html", TEXT, AT(html), 0, 0 },
	{ "metrics", TEXT, AT(metrics), 0, 0 },
	{ "quiet", FLAG, AT(quiet), 0, 0 },
	{ "help", FLAG, 0, 0, 0 },
	{ "version", FLAG, 0, 0, 0 },
};

/* "write,send" → bits by enum wire_op */
static int take_ops(const char *list, unsigned *ret)
{
	_cleanup_free_ char *copy = xstrdup(list);
	unsigned ops = 0;
	char *rest;

	for (char *one = strtok_r(copy, ",", &rest); one; one = strtok_r(NULL, ",", &rest)) {
		int op = 0;

		while (op < WIRE_OP_MAX && strcmp(one, wire_op_name((enum wire_op)op)) != 0)
			op++;
		if (op == WIRE_OP_MAX)
			return refuse("--ops: '%s' is not write, read or send", one);
		ops |= 1u << op;
	}
	if (!ops)
		return refuse("--ops: '%s' names none of write, read, send", list);
	*ret = ops;
	return 0;
}

static int take_option(struct command_line *cl, const struct word *w, const char *value)
{
	void *field = (char *)cl + w->field;
	char *end;

	switch (w->kind) {
	case FLAG:
		*(bool *)field = true;
		return 0;
	case TEXT:
		if (!*value)
			return refuse("--%s: the value is empty", w->name);
		*(const char **)field = value;
		return 0;
	case OPS:
		return take_ops(value, field);
	case WHOLE:
		if (str_to_int(value, field) < 0 || *(int *)field < w->min ||
		    *(int *)field > w->max)
			return refuse("--%s: '%s' is not a whole number from %d to %d", w->name,
				      value, w->min, w->max);
		return 0;
	default:
		*(double *)field = strtod(value, &end);
		if (end == value || *end || !(*(double *)field >= 0.01 && *(double *)field <= 3600))
			return refuse("--%s: '%s' is not a number of seconds from 0.01 to 3600",
				      w->name, value);
		return 0;
	}
}

static int read_token(struct command_line *cl)
{
	if (!str_eq(cl->peer.token, "-"))
		return 0;
	if (!fgets(cl->token, sizeof(cl->token), stdin) || !*str_trim(cl->token))
		return refuse("--token -: standard input has no line with a token");
	cl->peer.token = str_trim(cl->token);
	return 0;
}

/* Options that need or exclude each other. */
static int check_options(struct command_line *cl, char **argv)
{
	bool peer = cl->serve || cl->peer.host;

	if (cl->serve && cl->peer.host)
		return refuse("--serve and --peer exclude each other");
	if (peer && !cl->peer.token)
		return refuse("--serve and --peer need --token: a secret that both ends know");
	if (!peer && (cl->peer.token || cl->peer.crossed || cl->peer.isolation || cl->peer.once))
		return refuse(
			"--token, --once, --crossed and --isolation go with --serve or --peer");
	if (cl->pid && cl->process)
		return refuse("--pid and --process exclude each other");
	if ((cl->pid || cl->process) && (peer || cl->traffic.gpu))
		return refuse(
			"--pid and --process only look at a process: no --gpu, --serve or --peer beside them");
	if (cl->checks && peer)
		return refuse("--checks makes no traffic: no --serve or --peer beside it");
	if (cl->gds && (peer || cl->pid || cl->process || cl->traffic.gpu))
		return refuse(
			"--gds only reads a file: no --gpu, --serve, --peer, --pid or --process beside it");
	if (cl->gds && cl->gds[0] != '/')
		return refuse("--gds: '%s' is not an absolute path", cl->gds);
	if (cl->traffic.far && !cl->traffic.gpu)
		return refuse("--far goes with --gpu");
	if (peer && (cl->traffic.ops || cl->traffic.far))
		return refuse(
			"--ops and --far choose among the VFs of one container: no --serve or --peer beside them");
	if (cl->traffic.gpu || cl->gds || cl->serve) /* a client may ask for memory of GPUs */
		image_become(argv);
	return read_token(cl);
}

static int read_command_line(int argc, char **argv, struct command_line *cl)
{
	struct option options[sizeof(words) / sizeof(*words) + 1] = { { NULL, 0, NULL, 0 } };
	int found, r;

	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		options[i] =
			(struct option) { words[i].name, words[i].kind != FLAG, NULL, (int)i + 1 };
	opterr = 0;
	while ((found = getopt_long(argc, argv, ":", options, NULL)) != -1) {
		const struct word *w;

		if (found == ':')
			return refuse("option '%s' requires an argument", argv[optind - 1]);
		if (found == '?')
			return refuse("unrecognized option '%s'; see railmate-probe --help",
				      argv[optind - 1]);
		w = &words[found - 1];
		if (!strcmp(w->name, "help") || !strcmp(w->name, "version")) {
			fputs(w->name[0] == 'h' ? usage_text
						: "railmate-probe " RAILMATE_VERSION "\n",
			      stdout);
			exit(PROBE_EXIT_GOOD);
		}
		r = take_option(cl, w, optarg);
		if (r)
			return r;
	}
	if (optind < argc)
		return refuse("unexpected argument '%s'; see railmate-probe --help", argv[optind]);
	return check_options(cl, argv);
}

/* --- the run --- */

static void run(const struct sysroot *root, const struct command_line *cl, const struct told *told,
		struct report *r)
{
	pid_t pid = cl->pid;

	if (cl->process)
		pid = check_process_find(root, cl->process, r);
	if (cl->process && pid < 0)
		return;
	if (pid > 0) {
		check_process(root, pid, cl->seconds > 0 ? cl->seconds : 2, told, r);
		return;
	}
	if (cl->gds && told->n_gpus) {
		gds_check(root, told->gpus[0].bdf, cl->gds, r);
		return;
	}
	if (cl->gds) {
		report_finding(r, OUTCOME_NOT_MEASURED, "no-gpu", NULL,
			       "map.json names no GPU of this container");
		return;
	}
	check_container(root, told, r);
	if (cl->serve) {
		peer_serve(told, &cl->peer, r);
		return;
	}
	check_image(root, told, r);
	if (cl->checks) {
		if (cl->traffic.gpu)
			traffic_gpu_exports(root, told, r);
		return;
	}
	if (cl->peer.host)
		peer_run(told, &cl->peer, r);
	else
		traffic_local(told, &cl->traffic, r);
}

static void form_of_metrics(const struct report *r, FILE *out)
{
	report_metrics(r, (int64_t)time(NULL), out);
}

/* Written whole: a collector never reads a part of it. */
static int write_form(const char *path, void (*form)(const struct report *r, FILE *out),
		      const struct report *r)
{
	_cleanup_free_ char *text = NULL, *temporary = xasprintf("%s.tmp", path);
	const struct file_new file = { AT_FDCWD, NULL, path, temporary, 0644, false, false };
	struct err err = { 0 };
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);

	if (!out)
		return refuse("%s: %s", path, strerror(errno));
	form(r, out);
	fclose(out);
	if (file_write(&file, text, len, &err) == 0)
		return 0;
	fprintf(stderr, "railmate-probe: %s\n", err.msg);
	return PROBE_EXIT_NOT_MEASURED;
}

static int print(const struct command_line *cl, const struct report *r)
{
	int status = (int)report_exit(r), failed = 0;

	report_progress(r, "%s", "");
	if (cl->json)
		report_json(r, stdout);
	else
		report_text(r, stdout);
	if (cl->html)
		failed = write_form(cl->html, report_html, r);
	if (cl->metrics && !failed)
		failed = write_form(cl->metrics, form_of_metrics, r);
	if (fflush(stdout) != 0 || ferror(stdout)) {
		fprintf(stderr, "railmate-probe: standard output: %s\n", strerror(errno));
		failed = PROBE_EXIT_NOT_MEASURED;
	}
	return status ? status : failed;
}

int main(int argc, char **argv)
{
	struct command_line cl = {
		.map = TOLD_DIR,
		.expect = 80,
		.memory_mib = (int)(WIRE_MEMORY_MAX >> 20),
		.peer = { .port = EXCHANGE_PORT, .wait_s = 30 },
	};
	_cleanup_arena_ struct arena *a = arena_new(1 << 16);
	struct report report = { .arena = a };
	struct sysroot *root;
	struct told told;
	struct err err = { 0 };
	int r;

	if (argc == 2 && strcmp(argv[1], "--image-verbs") == 0)
		return image_verbs_main();
	r = read_command_line(argc, argv, &cl);
	if (r)
		return r;
	if (sysroot_open("/", &root, &err) < 0) {
		fprintf(stderr, "railmate-probe: %s\n", err.msg);
		return PROBE_EXIT_NOT_MEASURED;
	}
	report.slow = cl.expect / 100.0;
	report.broken = report.slow < 0.5 ? report.slow : 0.5;
	report.quiet = cl.quiet;
	cl.traffic.seconds = cl.peer.seconds = cl.seconds;
	cl.peer.gpu = cl.traffic.gpu;
	cl.traffic.memory = (size_t)cl.memory_mib << 20;
	r = told_read(root, cl.map, a, &told, &err);
	if (r < 0) {
		report_finding(&report, OUTCOME_NOT_MEASURED, r == -ENOENT ? "no-map" : "bad-map",
			       NULL, "%s", err.msg);
	} else {
		report.told = &told;
		run(root, &cl, &told, &report);
	}
	r = print(&cl, &report);
	sysroot_close(root);
	return r;
}
