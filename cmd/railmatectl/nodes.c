#include "nodes.h"

#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "document/document.h"
#include "railmatectl.h"

#define LABEL	 "app.kubernetes.io/name=railmate"
#define ARGS_MAX 32

extern char **environ;

static int wait_for(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0) {
		if (errno != EINTR)
			return -1;
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Its standard output goes to out; NULL: to ours. The exit status; -1: it could not be run, a
 * sentence was printed. */
static int run_kubectl(const char *const *argv, struct strbuf *out)
{
	posix_spawn_file_actions_t actions;
	char chunk[4096];
	int pipes[2] = { -1, -1 }, e;
	ssize_t n;
	pid_t pid;

	if (out && pipe(pipes) < 0)
		return fail(-1, "kubectl: %m");
	posix_spawn_file_actions_init(&actions);
	if (out) {
		posix_spawn_file_actions_adddup2(&actions, pipes[1], STDOUT_FILENO);
		posix_spawn_file_actions_addclose(&actions, pipes[0]);
		posix_spawn_file_actions_addclose(&actions, pipes[1]);
	}
	e = posix_spawnp(&pid, "kubectl", &actions, NULL, (char *const *)argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	if (out)
		close(pipes[1]);
	while (e == 0 && out && (n = read(pipes[0], chunk, sizeof(chunk))) != 0) {
		if (n > 0)
			strbuf_add(out, chunk, (size_t)n);
		else if (errno != EINTR)
			break;
	}
	if (out)
		close(pipes[0]);
	return e ? fail(-1, "cannot run kubectl, which --node needs: %s", strerror(e))
		 : wait_for(pid);
}

static int run_in(const char *ns, const char *pod, const char *const *args)
{
	const char *argv[ARGS_MAX + 12] = { "kubectl", "exec",	    "-n", ns,		pod,
					    "-c",      "railmated", "--", "railmatectl" };
	size_t n = 9;

	for (size_t i = 0; args[i] && i < ARGS_MAX; i++)
		argv[n++] = args[i];
	argv[n] = NULL;
	return run_kubectl(argv, NULL);
}

static const char *node_of(const struct item *pod)
{
	const char *node = item_string(item_get(pod, "spec"), "nodeName");

	return node ? node : "";
}

/* One node after the other; the lowest exit status counts: it is there somewhere. */
static int run_each(const struct item *pods, const char *node, const char *ns,
		    const char *const *args)
{
	int least = -1;
	size_t n = 0;

	for (size_t i = 0; i < pods->n_kids; i++) {
		const char *name = item_string(item_get(&pods->kids[i], "metadata"), "name");
		int status;

		if (!name || !*node_of(&pods->kids[i]) ||
		    (strcmp(node, "all") != 0 && strcmp(node, node_of(&pods->kids[i])) != 0))
			continue;
		n++;
		fprintf(stderr, "--- node %s\n", node_of(&pods->kids[i]));
		status = run_in(ns, name, args);
		if (status >= 0 && (least < 0 || status < least))
			least = status;
	}
	if (!n)
		return fail(EXIT_REFUSED,
			    "no railmate pod (label " LABEL ") in namespace %s runs on %s%s", ns,
			    strcmp(node, "all") ? "node " : "any node",
			    strcmp(node, "all") ? node : "");
	return least < 0 ? EXIT_FAILED : least;
}

int nodes_run(const char *node, const char *ns, const char *const *args)
{
	const char *const list[] = { "kubectl", "get", "pods", "-n",   ns,
				     "-l",	LABEL, "-o",   "json", NULL };
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;
	_cleanup_arena_ struct arena *a = arena_new(64 * 1024);
	const struct item *top, *pods;
	struct err err = { 0 };
	int status = run_kubectl(list, &text);

	if (status != 0)
		return status < 0 ? EXIT_FAILED
				  : fail(EXIT_FAILED, "kubectl get pods: exit status %d", status);
	if (document_parse(strbuf_str(&text), text.len, "kubectl's answer", a, &top, &err) < 0)
		return fail(EXIT_FAILED, "%s", err.msg);
	pods = item_get(top, "items");
	if (!pods || pods->type != ITEM_LIST)
		return fail(EXIT_FAILED, "kubectl's answer lists no pods");
	return run_each(pods, node, ns, args);
}
