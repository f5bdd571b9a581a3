/*
 * fakekubelet: see kubelet.h. Reads commands line by line and hands each to the rpc thread; waits
 * for its answer before it reads the next, unless the line ends in "&". The end of the input is
 * `quit`.
 */
#include "kubelet.h"

#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"

/* What the reader waits for; the only thing that two threads share. */
static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool answered, gone;
} gate = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

static void gate_set(bool *flag)
{
	pthread_mutex_lock(&gate.lock);
	*flag = true;
	pthread_cond_broadcast(&gate.changed);
	pthread_mutex_unlock(&gate.lock);
}

static void gate_wait(bool *flag)
{
	pthread_mutex_lock(&gate.lock);
	while (!*flag)
		pthread_cond_wait(&gate.changed, &gate.lock);
	*flag = false;
	pthread_mutex_unlock(&gate.lock);
}

void command_done(struct command *cmd)
{
	bool background = cmd->background;

	free(cmd->argv);
	free(cmd->line);
	free(cmd);
	if (!background)
		gate_set(&gate.answered);
}

void kubelet_gone(void)
{
	gate_set(&gate.gone);
}

/* line is taken; NULL for one without words */
static struct command *command_new(struct kubelet *k, char *line, uint64_t number)
{
	struct command *cmd = xcalloc(1, sizeof(*cmd));
	size_t cap = 0;
	char *save;

	*cmd = (struct command) { .k = k, .line = line, .number = number };
	for (char *w = strtok_r(line, " \t\r\n", &save); w; w = strtok_r(NULL, " \t\r\n", &save)) {
		cmd->argv = xgrow(cmd->argv, &cap, cmd->argc + 1, sizeof(*cmd->argv));
		cmd->argv[cmd->argc++] = w;
	}
	if (cmd->argc && !strcmp(cmd->argv[cmd->argc - 1], "&")) {
		cmd->background = true;
		cmd->argc--;
	}
	if (cmd->argc && cmd->argv[0][0] != '#')
		return cmd;
	free(cmd->argv);
	free(line);
	free(cmd);
	return NULL;
}

static void run_line(struct kubelet *k, const char *line, uint64_t number)
{
	struct command *cmd = command_new(k, xstrdup(line), number);
	bool background;

	if (!cmd)
		return;
	background = cmd->background;
	rpc_post(k->rpc, turns_take, cmd);
	if (!background)
		gate_wait(&gate.answered);
}

static bool is_quit(const char *line)
{
	return !strncmp(line, "quit", 4) && strchr(" \t\r\n", line[4]);
}

static void run_script(struct kubelet *k)
{
	_cleanup_free_ char *line = NULL;
	uint64_t number = 0;
	size_t cap = 0;

	while (getline(&line, &cap, stdin) >= 0 && !is_quit(line))
		run_line(k, line, ++number);
	run_line(k, "quit", ++number);
	gate_wait(&gate.gone);
}

struct starting {
	struct kubelet *k;
	struct err err;
	int result;
};

static void begun(void)
{
	gate_set(&gate.answered);
}

static void begin(void *arg)
{
	struct starting *s = arg;

	s->result = kubelet_up(s->k, &s->err);
	if (s->result == 0)
		s->result = turns_open(s->k, begun, &s->err);
	if (s->result < 0)
		begun();
}

static int usage(void)
{
	fputs("usage: fakekubelet --kubelet-dir DIR --kubelet-root DIR [--version 1.20|1.28|1.36|1.37] [--seed N]\n"
	      "                   [--policy none|best-effort|restricted|single-numa-node] [--rate-limit]\n"
	      "                   [--pods-api] [--cdi-dir DIR]\n"
	      "Reads commands on standard input, writes one JSON object a line.\n",
	      stderr);
	return 2;
}

static int set_policy(const char *name, struct kubelet_options *opt)
{
	static const char *const names[] = { [NUMA_NONE] = "none",
					     [NUMA_BEST_EFFORT] = "best-effort",
					     [NUMA_RESTRICTED] = "restricted",
					     [NUMA_SINGLE_NODE] = "single-numa-node" };

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		if (strcmp(name, names[i]))
			continue;
		opt->policy = (enum numa_policy)i;
		return 0;
	}
	return -EINVAL;
}

static int set_version(const char *version, struct kubelet_options *opt)
{
	static const struct {
		const char *version, *user_agent;
	} known[] = {
		{ "1.20", "grpc-go/1.27.1" },
		{ "1.28", "grpc-go/1.54.0" }, /* passes no CDI devices on, has Get switched off; in
						 all else as 1.36 */
		{ "1.36", "grpc-go/1.79.3" },
		{ "1.37", "grpc-go/1.82.1" },
	};

	opt->old = !strcmp(version, "1.20");
	opt->no_get = !strcmp(version, "1.28");
	opt->by_path = !strcmp(version, "1.37");
	for (size_t i = 0; i < ARRAY_LEN(known); i++) {
		if (strcmp(version, known[i].version) != 0)
			continue;
		opt->user_agent = known[i].user_agent;
		return 0;
	}
	return -1;
}

static int parse_options(int argc, char **argv, struct kubelet_options *opt)
{
	static const struct option options[] = {
		{ "kubelet-dir", required_argument, NULL, 'd' },
		{ "kubelet-root", required_argument, NULL, 'r' },
		{ "policy", required_argument, NULL, 'p' },
		{ "version", required_argument, NULL, 'v' },
		{ "seed", required_argument, NULL, 's' },
		{ "rate-limit", no_argument, NULL, 'l' },
		{ "cdi-dir", required_argument, NULL, 'c' },
		{ "pods-api", no_argument, NULL, 'a' },
		{ 0 },
	};
	int c, bad = 0;

	while ((c = getopt_long(argc, argv, "", options, NULL)) >= 0) {
		if (c == 'd')
			opt->dir = optarg;
		else if (c == 'r')
			opt->root = optarg;
		else if (c == 'p')
			bad |= set_policy(optarg, opt);
		else if (c == 'v')
			bad |= set_version(optarg, opt);
		else if (c == 's')
			bad |= str_to_u64(optarg, 10, UINT64_MAX, &opt->seed);
		else if (c == 'l')
			opt->rate_limit = true;
		else if (c == 'c')
			opt->cdi_dir = optarg;
		else if (c == 'a')
			opt->pods_api = true;
		else
			bad = -1;
	}
	return bad || optind != argc || !opt->dir || !opt->root ? -1 : 0;
}

int main(int argc, char **argv)
{
	struct kubelet k = { .opt = { .seed = 1, .user_agent = "grpc-go/1.79.3" },
			     .tokens_us = now_us() };
	struct starting s = { .k = &k };
	struct err err = { 0 };

	if (parse_options(argc, argv, &k.opt) < 0)
		return usage();
	k.random = k.opt.seed;
	signal(SIGPIPE, SIG_IGN);
	if (rpc_start(&k.rpc, &err) < 0) {
		fprintf(stderr, "fakekubelet: %s\n", err.msg);
		return 1;
	}
	rpc_set_user_agent(k.rpc, k.opt.user_agent);
	rpc_post(k.rpc, begin, &s);
	gate_wait(&gate.answered);
	if (s.result == 0)
		run_script(&k);
	else
		fprintf(stderr, "fakekubelet: %s\n", s.err.msg);
	rpc_stop(k.rpc);
	free(k.held_calls);
	state_free(&k);
	return s.result == 0 ? 0 : 1;
}
