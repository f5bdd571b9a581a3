/*
 * railmatectl cluster verify: the logs and the map.json of all pods of a job, in a temporary
 * directory, and then what `railmatectl verify` does with such files.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"
#include "cluster.h"
#include "verify.h"
#include "verify/verify.h"

#define LOG_MAX	 (512u << 20) /* bytes of a log; NCCL says what counts at its start */
#define MAP_MAX	 (4u << 20)
#define SAID_MAX 8 /* complaints of one kind */
#define MAP_PATH "/run/railmate/map.json"

/* The label that a job's controller puts on its pods. */
static const char *const job_labels[] = {
	"batch.kubernetes.io/job-name",	    /* Job, JobSet; Kubernetes 1.27 and later */
	"job-name",			    /* the same before */
	"jobset.sigs.k8s.io/jobset-name",   /* JobSet */
	"training.kubeflow.org/job-name",   /* MPIJob, PyTorchJob … */
	"leaderworkerset.sigs.k8s.io/name", /* LeaderWorkerSet */
};

struct member {
	const char *name, *phase,
		*host;	       /* host: as its processes call theirs, up to the first dot */
	const char *container; /* the one that kubectl takes for exec */
	const char *log, *map; /* names of files */
	bool has_log, has_map;
};

struct job {
	struct cluster cluster;
	const char *name, *selector, *ns, *container; /* of the command line; NULL */
	struct arena *arena;
	struct member *v;
	size_t n, n_ended, n_said, n_unsaid;
	char dir[4096];
	int before; /* the directory that was the current one */
};

/* --- its pods --- */

enum column { POD, PHASE, HOSTNAME, HOST_NETWORK, NODE, FIRST, DEFAULT, COLUMNS };

static const char *const columns[COLUMNS] = {
	[POD] = "{.metadata.name}",
	[PHASE] = "{.status.phase}",
	[HOSTNAME] = "{.spec.hostname}",
	[HOST_NETWORK] = "{.spec.hostNetwork}",
	[NODE] = "{.spec.nodeName}",
	[FIRST] = "{.spec.containers[0].name}",
	[DEFAULT] = "{.metadata.annotations.kubectl\\.kubernetes\\.io/default-container}",
};

static void add_member(struct job *job, const struct cluster_lines *lines, char *line)
{
	char *cells[COLUMNS];
	struct member *m;
	const char *name;
	size_t len;

	/* It becomes the name of a file, too. */
	if (!cluster_split(lines, line, cells) || !cluster_is_name(cells[POD]))
		return;
	for (size_t i = 0; i < job->n; i++) {
		if (!strcmp(job->v[i].name, cells[POD]))
			return;
	}
	m = &job->v[job->n++];
	m->name = arena_strdup(job->arena, cells[POD]);
	m->phase = arena_strdup(job->arena, cells[PHASE]);
	m->container = job->container ? job->container
				      : arena_strdup(job->arena, *cells[DEFAULT] ? cells[DEFAULT]
										 : cells[FIRST]);
	/* A pod is called as itself, unless its spec says otherwise; 63 characters at most. */
	name = !strcmp(cells[HOST_NETWORK], "true") ? cells[NODE]
	       : *cells[HOSTNAME]		    ? cells[HOSTNAME]
						    : cells[POD];
	/* It becomes a part of an argument. */
	name = cluster_is_name(name) ? name : cells[POD];
	len = strcspn(name, ".");
	len = len > 63 ? 63 : len;
	while (len && name[len - 1] == '-')
		len--;
	m->host = arena_printf(job->arena, "%.*s", (int)len, name);
	m->log = arena_printf(job->arena, "%s.log", m->name);
	m->map = arena_printf(job->arena, "%s.map.json", m->name);
}

static int by_name(const void *a, const void *b)
{
	const struct member *x = a, *y = b;

	return cluster_node_cmp(x->name, y->name);
}

static int read_members(struct job *job, const struct cluster_lines *lines,
			struct kubectl_call *calls, size_t n)
{
	_cleanup_strbuf_ struct strbuf why = STRBUF_INIT;
	const struct kubectl_call *failed = NULL;
	size_t most = 1;
	char *line;

	for (size_t i = 0; i < n; i++) {
		for (const char *p = strbuf_str(&calls[i].out); *p; p++)
			most += *p == '\n';
	}
	job->v = arena_array(job->arena, most, sizeof(*job->v));
	for (size_t i = 0; i < n; i++) {
		char *text = calls[i].out.len ? calls[i].out.s : NULL;

		if (calls[i].status != 0)
			failed = failed ? failed : &calls[i];
		while ((line = strsep(&text, "\n")))
			add_member(job, lines, line);
	}
	qsort(job->v, job->n, sizeof(*job->v), by_name);
	if (job->n)
		return EXIT_DONE;
	if (failed) {
		kubectl_put_why(failed, &why);
		return fail(EXIT_FAILED, "kubectl get pods: %s", strbuf_str(&why));
	}
	return fail(EXIT_REFUSED, "no pod of %s %s%s%s; -l names other labels, -n the namespace",
		    job->name ? "a job" : "labels", job->name ? job->name : job->selector,
		    job->ns ? " is in namespace " : " is there", job->ns ? job->ns : "");
}

static int find_members(struct job *job)
{
	struct kubectl_call calls[ARRAY_LEN(job_labels)] = { 0 },
			    kept[ARRAY_LEN(job_labels)] = { 0 };
	const struct cluster_lines lines = cluster_lines(columns, COLUMNS, job->arena);
	size_t n = job->selector ? 1 : ARRAY_LEN(job_labels);
	int r;

	for (size_t i = 0; i < n; i++) {
		const char *selector =
			job->selector ? job->selector
				      : arena_printf(job->arena, "%s=%s", job_labels[i], job->name);
		const char *const args[] = {
			"get",	 "pods", "-l", selector, "-o", lines.args, job->ns ? "-n" : NULL,
			job->ns, NULL
		};

		calls[i].args = arena_copy(job->arena, args, sizeof(args));
	}
	kubectl_run(&job->cluster.k, calls, n, kubectl_keep, kept);
	r = read_members(job, &lines, kept, n);
	for (size_t i = 0; i < n; i++)
		kubectl_call_done(&kept[i]);
	return r;
}

/* --- their files --- */

static void complain(struct job *job, const struct member *m, const char *what, const char *why)
{
	_cleanup_free_ char *line = xasprintf("pod %s: %s: %s", m->name, what, why);

	str_printable(line, strlen(line), "");
	if (job->n_said++ < SAID_MAX)
		fail(0, "%s", line);
	else
		job->n_unsaid++;
}

struct fetch {
	struct job *job;
	struct {
		struct member *m;
		bool map;
	} * of; /* each call */
};

/* As the runtimes say it, or the exit status that stands for it: cat itself has neither. */
static bool has_no_cat(const struct kubectl_call *call)
{
	return call->status == 126 || call->status == 127 ||
	       (call->status > 0 && strstr(strbuf_str(&call->err), "executable file not found"));
}

static void take(void *arg, struct kubectl_call *call, size_t i)
{
	const struct fetch *f = arg;
	struct member *m = f->of[i].m;
	_cleanup_strbuf_ struct strbuf why = STRBUF_INIT;

	if (f->of[i].map && has_no_cat(call))
		strbuf_printf(
			&why,
			"its container %s has no program 'cat', which reads it; -c names another container",
			m->container);
	else if (call->status != 0)
		kubectl_put_why(call, &why);
	if (f->of[i].map) {
		m->has_map = call->status == 0 && call->bytes;
		if (!m->has_map)
			complain(f->job, m, "what it was given (map.json) is not known",
				 why.len ? strbuf_str(&why) : "the file is empty");
		return;
	}
	m->has_log = call->bytes > 0;
	if (why.len || !m->has_log)
		complain(f->job, m, m->has_log ? "its log is not complete" : "it has no log",
			 why.len ? strbuf_str(&why) : "the log is empty");
}

static const char *const *args_of(const struct job *job, const struct member *m, bool map)
{
	const char **args = arena_array(job->arena, 12, sizeof(*args));
	size_t n = 0;

	args[n++] = map ? "exec" : "logs";
	if (job->ns) {
		args[n++] = "-n";
		args[n++] = job->ns;
	}
	args[n++] = m->name;
	if (job->container) {
		args[n++] = "-c";
		args[n++] = job->container;
	} else if (!map) {
		args[n++] = "--all-containers";
	}
	if (map) {
		args[n++] = "--";
		args[n++] = "cat";
		args[n++] = MAP_PATH;
	}
	return args;
}

static void plan(struct fetch *f, struct kubectl_call *calls, size_t *n, struct member *m, bool map)
{
	f->of[*n].m = m;
	f->of[*n].map = map;
	calls[*n] = (struct kubectl_call) { .args = args_of(f->job, m, map),
					    .path = map ? m->map : m->log,
					    .most = map ? MAP_MAX : LOG_MAX };
	++*n;
}

static int fetch_files(struct job *job)
{
	struct kubectl_call *calls = arena_array(job->arena, 2 * job->n, sizeof(*calls));
	struct fetch f = { job, arena_array(job->arena, 2 * job->n, sizeof(*f.of)) };
	size_t n = 0, logs = 0;

	for (size_t i = 0; i < job->n; i++) {
		struct member *m = &job->v[i];

		if (!strcmp(m->phase, "Pending")) {
			complain(job, m, "it has no log", "it is Pending");
			continue;
		}
		plan(&f, calls, &n, m, false);
		if (!strcmp(m->phase, "Running"))
			plan(&f, calls, &n, m, true);
		else
			job->n_ended++;
	}
	kubectl_run(&job->cluster.k, calls, n, take, &f);
	for (size_t i = 0; i < job->n; i++)
		logs += job->v[i].has_log;
	return logs ? EXIT_DONE : fail(EXIT_FAILED, "no log of the %zu pods could be read", job->n);
}

/* A map that verify would refuse is left out: the others count. */
static void check_maps(struct job *job)
{
	_cleanup_verify_ struct verify *scratch = verify_new();

	for (size_t i = 0; i < job->n; i++) {
		struct member *m = &job->v[i];
		_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;
		struct err err = { 0 };

		if (!m->has_map)
			continue;
		if (verify_read_file(m->map, &text, &err) == 0 &&
		    verify_add_map(scratch, m->host, strbuf_str(&text), text.len, m->map, &err) ==
			    0)
			continue;
		m->has_map = false;
		complain(job, m, "its map.json is left out", err.msg);
	}
}

/* --- verify --- */

static int judge(const struct job *job)
{
	char **argv = arena_array(job->arena, job->n + 6, sizeof(*argv));
	_cleanup_strbuf_ struct strbuf maps = STRBUF_INIT;
	int n = 0;

	for (size_t i = 0; i < job->n; i++) {
		if (job->v[i].has_map)
			strbuf_printf(&maps, "%s%s=%s", maps.len ? "," : "", job->v[i].host,
				      job->v[i].map);
	}
	argv[n++] = arena_strdup(job->arena, "railmatectl: verify");
	if (job->cluster.json)
		argv[n++] = arena_strdup(job->arena, "--json");
	if (maps.len) {
		argv[n++] = arena_strdup(job->arena, "--map");
		argv[n++] = arena_strdup(job->arena, strbuf_str(&maps));
	}
	for (size_t i = 0; i < job->n; i++) {
		if (job->v[i].has_log)
			argv[n++] = arena_strdup(job->arena, job->v[i].log);
	}
	optind = 0; /* getopt begins anew (glibc) */
	return cmd_verify(n, argv);
}

static int enter_directory(struct job *job)
{
	const char *top = getenv("TMPDIR");

	snprintf(job->dir, sizeof(job->dir), "%s/railmate-verify-XXXXXX",
		 top && *top ? top : "/tmp");
	job->before = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (!mkdtemp(job->dir))
		return fail(EXIT_FAILED, "%s: %m", job->dir);
	if (chdir(job->dir) < 0) {
		rmdir(job->dir);
		return fail(EXIT_FAILED, "%s: %m", job->dir);
	}
	return EXIT_DONE;
}

static void leave_directory(struct job *job)
{
	for (size_t i = 0; i < job->n; i++) {
		unlink(job->v[i].log);
		unlink(job->v[i].map);
	}
	if (job->before < 0 || fchdir(job->before) < 0)
		(void)!chdir("/");
	rmdir(job->dir);
	closep(&job->before);
}

static int run(struct job *job)
{
	int r = find_members(job);

	if (r == EXIT_DONE)
		r = enter_directory(job);
	if (r != EXIT_DONE)
		return r;
	r = fetch_files(job);
	if (r == EXIT_DONE) {
		check_maps(job);
		if (job->n_unsaid)
			fail(0, "and %zu more of that kind", job->n_unsaid);
		if (job->n_ended)
			fail(0,
			     "%zu of %zu pods have ended: what they were given (map.json) is gone with them, and is not compared with the log",
			     job->n_ended, job->n);
		r = judge(job);
	}
	leave_directory(job);
	return r;
}

int cluster_verify(int argc, char **argv)
{
	_cleanup_arena_ struct arena *a = arena_new(64 * 1024);
	struct job job = { .cluster = CLUSTER_INIT, .arena = a, .before = -1 };
	const struct word words[] = {
		CLUSTER_WORDS(&job.cluster),
		{ "namespace", .value = &job.ns },
		{ "selector", .value = &job.selector },
		{ "container", .value = &job.container },
	};
	int r = cluster_read(&job.cluster, argc, argv, words, ARRAY_LEN(words), 0, 1);

	if (r != EXIT_DONE)
		return r;
	job.name = argv[optind];
	if (!job.name == !job.selector)
		return fail(EXIT_USAGE, "cluster verify: name the job, or its pods by -l");
	if (job.name && !cluster_is_name(job.name))
		return fail(EXIT_USAGE, "cluster verify: '%s' is not the name of a job", job.name);
	return run(&job);
}
