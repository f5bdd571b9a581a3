/*
 * railmatectl cluster verify: the logs and the map.json of all pods of a job go through
 * `railmatectl verify`. A file that cannot be read is reported, and the rest is judged.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"
#include "cluster.h"
#include "verify/verify.h"

#define LOG_MAX	 (512u << 20) /* bytes of a log; NCCL logs its setup at the start */
#define MAP_MAX	 (4u << 20)
#define SAID_MAX 8 /* complaints of one kind */

struct member {
	const char *name, *phase, *host; /* host: as the pod's processes name it */
};

struct job {
	struct cluster cluster;
	const char *name, *selector, *ns, *container; /* of the command line; NULL */
	struct member *v;			      /* heap */
	size_t n, cap, n_said;
};

/* --- pods --- */

enum { POD, PHASE, HOSTNAME, HOST_NETWORK, NODE, LABELS };

static const char *const columns[] = {
	[POD] = "{.metadata.name}",
	[PHASE] = "{.status.phase}",
	[HOSTNAME] = "{.spec.hostname}",
	[HOST_NETWORK] = "{.spec.hostNetwork}",
	[NODE] = "{.spec.nodeName}",
	CLUSTER_JOB_LABELS,
	NULL,
};

static void add_member(void *arg, char **cells)
{
	struct job *job = arg;
	/* The host name is the pod's name, unless its spec has another; 63 characters at most. */
	const char *host = !strcmp(cells[HOST_NETWORK], "true") ? cells[NODE]
			   : *cells[HOSTNAME]			? cells[HOSTNAME]
								: cells[POD];
	size_t len = strcspn(host, ".");

	if (job->name && !cluster_is_of_job(&cells[LABELS], job->name))
		return;
	len = len > 63 ? 63 : len;
	while (len && host[len - 1] == '-')
		len--;
	job->v = xgrow(job->v, &job->cap, job->n + 1, sizeof(*job->v));
	job->v[job->n++] =
		(struct member) { arena_strdup(job->cluster.arena, cells[POD]),
				  arena_strdup(job->cluster.arena, cells[PHASE]),
				  arena_printf(job->cluster.arena, "%.*s", (int)len, host) };
}

/* --- maps and logs --- */

static void complain(struct job *job, const struct member *m, const char *what, const char *why)
{
	_cleanup_free_ char *line = xasprintf("pod %s: %s: %s", m->name, what, why);

	str_printable(line, strlen(line), "");
	if (job->n_said++ < SAID_MAX)
		fail(0, "%s", line);
}

static void add_map(struct job *job, const struct member *m, const struct kubectl_call *call,
		    struct verify *v)
{
	_cleanup_free_ char *name = xasprintf("%s.map.json", m->name);
	struct err err = { 0 };
	const char *why = call->status ? call->why : "the file is empty";

	/* The runtimes' words for a missing program, or their exit status: cat itself has neither.
	 */
	if (call->status == 126 || call->status == 127 ||
	    strstr(strbuf_str(&call->err), "executable file not found"))
		why = "its container has no program 'cat', which reads it; -c names another container";
	if (call->status != 0 || !call->bytes)
		complain(job, m, "what it was given (map.json) is not known", why);
	else if (verify_add_map(v, m->host, call->out.s, call->out.len, name, &err) < 0)
		complain(job, m, "its map.json is left out", err.msg);
}

/* Gives verify the maps, and then the logs. An exit code. */
static int judge(struct job *job, struct kubectl_call *logs, struct kubectl_call *maps)
{
	_cleanup_verify_ struct verify *v = verify_new();
	struct verify_log *files = arena_array(job->cluster.arena, job->n, sizeof(*files));
	size_t n = 0, n_ended = 0;

	for (size_t i = 0; i < job->n; i++) {
		const struct member *m = &job->v[i];

		if (*maps[i].args)
			add_map(job, m, &maps[i], v);
		else
			n_ended += *logs[i].args != NULL;
		if (logs[i].status != 0 || !logs[i].bytes)
			complain(job, m,
				 logs[i].bytes ? "its log is not complete" : "it has no log",
				 logs[i].status ? logs[i].why : "the log is empty");
		if (logs[i].bytes)
			files[n++] =
				(struct verify_log) { logs[i].fd, arena_printf(job->cluster.arena,
									       "%s.log", m->name) };
	}
	if (!n)
		return fail(EXIT_FAILED, "no log of the %zu pods could be read", job->n);
	if (job->n_said > SAID_MAX)
		fail(0, "and %zu more of that kind", job->n_said - SAID_MAX);
	if (n_ended)
		fail(0,
		     "%zu of %zu pods have ended: what they were given (map.json) is gone with them, and is not compared with the log",
		     n_ended, job->n);
	return verify_logs(v, files, n, job->cluster.json);
}

static int run(struct job *job)
{
	struct kubectl_call *calls, *logs, *maps;
	struct rlimit files;
	int r = cluster_list_pods(&job->cluster.k, job->ns, job->selector, columns, add_member,
				  job);

	if (r == EXIT_DONE && !job->n)
		r = fail(EXIT_REFUSED,
			 "no pod of %s %s%s%s; -l names other labels, -n the namespace",
			 job->name ? "a job" : "labels", job->name ? job->name : job->selector,
			 job->ns ? " is in namespace " : " is there", job->ns ? job->ns : "");
	if (r != EXIT_DONE)
		return r;
	/* Every log is an open file. */
	if (!getrlimit(RLIMIT_NOFILE, &files)) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
	logs = calls = arena_array(job->cluster.arena, 2 * job->n, sizeof(*calls));
	maps = calls + job->n;
	for (size_t i = 0; i < job->n; i++) {
		const struct member *m = &job->v[i];

		if (!strcmp(m->phase, "Pending"))
			strcpy(logs[i].why, "it is Pending");
		else
			logs[i] = (struct kubectl_call) {
				.args = { "logs", job->ns ? "-n" : NULL, job->ns, m->name,
					  job->container ? "-c" : "--all-containers",
					  job->container },
				.to_file = true,
				.most = LOG_MAX,
			};
		if (!strcmp(m->phase, "Running"))
			maps[i] = (struct kubectl_call) {
				.args = { "exec", job->ns ? "-n" : NULL, job->ns, m->name,
					  job->container ? "-c" : NULL, job->container, "--", "cat",
					  "/run/railmate/map.json" },
				.most = MAP_MAX,
			};
	}
	kubectl_run(&job->cluster.k, calls, 2 * job->n);
	r = judge(job, logs, maps);
	for (size_t i = 0; i < 2 * job->n; i++)
		kubectl_call_done(&calls[i]);
	return r;
}

int cluster_verify(int argc, char **argv)
{
	struct job job = { .cluster = CLUSTER_INIT };
	const struct word words[] = {
		CLUSTER_WORDS(&job.cluster),
		{ "namespace", .value = &job.ns },
		{ "selector", .value = &job.selector },
		{ "container", .value = &job.container },
	};
	int r = cluster_read(&job.cluster, argc, argv, words, ARRAY_LEN(words), 0, 1);

	job.name = argv[optind];
	if (r == EXIT_DONE && !job.name == !job.selector)
		r = fail(EXIT_USAGE, "cluster verify: name the job, or its pods by -l");
	else if (r == EXIT_DONE && job.name && !cluster_is_name(job.name))
		r = fail(EXIT_USAGE, "cluster verify: '%s' is not the name of a job", job.name);
	if (r == EXIT_DONE)
		r = run(&job);
	cluster_done(&job.cluster);
	free(job.v);
	return r;
}
