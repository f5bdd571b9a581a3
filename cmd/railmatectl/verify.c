/* railmatectl verify: did NCCL use the VFs that it was given, and how? From its log, and from port
 * counters. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "railmatectl.h"
#include "verify.h"
#include "verify/counters.h"
#include "verify/verify.h"

#define CHUNK	  (256 * 1024)
#define MAX_SMALL (4 * 1024 * 1024) /* of a map or a counters file */

struct request {
	const char *root, *maps, *counters;
	bool json;
	const char *counters_file;
	char **logs; /* none, and no counters: standard input */
	int n_logs;
};

struct verification {
	const struct request *req;
	struct arena *arena;
	struct verify *v;
	bool has_log, has_diff, warn;
	struct counters_diff diff;
};

int verify_read_file(const char *path, struct strbuf *out, struct err *err)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	char buf[16384];
	ssize_t n;

	if (fd < 0)
		return err_sys(err, "%s", path);
	while ((n = read(fd, buf, sizeof(buf))) > 0) {
		strbuf_add(out, buf, (size_t)n);
		if (out->len > MAX_SMALL)
			return err_set(err, EFBIG, "%s: longer than 4 MiB", path);
	}
	return n < 0 ? err_sys(err, "%s", path) : 0;
}

/* --- logs --- */

static volatile sig_atomic_t interrupted;

static void on_signal(int sig)
{
	(void)sig;
	interrupted = 1;
}

static int feed(struct verify *v, int fd, const char *name)
{
	_cleanup_free_ char *buf = xcalloc(1, CHUNK);
	ssize_t n = 1;

	verify_begin(v, name);
	while (!interrupted && n > 0) {
		n = read(fd, buf, CHUNK);
		if (n > 0)
			verify_feed(v, buf, (size_t)n);
		else if (n < 0 && errno != EINTR)
			return fail(EXIT_FAILED, "%s: %m", name);
	}
	verify_end(v);
	return EXIT_DONE;
}

static int feed_file(struct verify *v, const char *path)
{
	_cleanup_close_ int fd = -1;

	if (!strcmp(path, "-"))
		return feed(v, STDIN_FILENO, "stdin");
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return fail(EXIT_FAILED, "%s: %m", path);
	return feed(v, fd, path);
}

/* --- maps --- */

/* "FILE" or "HOST=FILE"; a host name has no slash. */
static int add_map(struct verification *t, const char *word)
{
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;
	size_t host_len = strcspn(word, "=/");
	const char *host = NULL, *path = word;
	struct err err = { 0 };

	if (word[host_len] == '=') {
		host = arena_printf(t->arena, "%.*s", (int)host_len, word);
		path = word + host_len + 1;
	}
	if (verify_read_file(path, &text, &err) < 0)
		return fail(EXIT_FAILED, "%s", err.msg);
	if (verify_add_map(t->v, host, strbuf_str(&text), text.len, path, &err) < 0)
		return fail(EXIT_REFUSED, "%s", err.msg);
	return EXIT_DONE;
}

/* --- the answer --- */

static void put_text(const struct verification *t, struct strbuf *out)
{
	if (t->has_log)
		verify_text(t->v, out);
	if (t->has_log && t->has_diff)
		strbuf_putc(out, '\n');
	if (t->has_diff)
		verify_counters_text(&t->diff, t->v, out);
}

static void put_json(const struct verification *t, struct strbuf *out)
{
	struct json j;

	json_init(&j, out, 2);
	json_begin_object(&j);
	if (t->has_log)
		verify_json(t->v, &j);
	if (t->has_diff)
		verify_counters_json(&t->diff, t->v, &j);
	json_end_object(&j);
	strbuf_putc(out, '\n');
}

static int answer(const struct verification *t, enum verdict verdict)
{
	static const int codes[VERDICT_MAX] = {
		[VERDICT_PASS] = EXIT_DONE, [VERDICT_NOGDR] = 4,	[VERDICT_WARN] = 5,
		[VERDICT_FAIL] = 6,	    [VERDICT_INCONCLUSIVE] = 7,
	};
	_cleanup_strbuf_ struct strbuf out = STRBUF_INIT;
	int r;

	(t->req->json ? put_json : put_text)(t, &out);
	r = print_out(&out);
	return r == EXIT_DONE ? codes[verdict] : r;
}

int verify_logs(struct verify *v, const struct verify_log *logs, size_t n, bool json)
{
	const struct request req = { .json = json };
	const struct verification t = { .req = &req, .v = v, .has_log = true };
	int r = EXIT_DONE;

	for (size_t i = 0; r == EXIT_DONE && i < n; i++)
		r = feed(v, logs[i].fd, logs[i].name);
	return r == EXIT_DONE ? answer(&t, verify_judge(v)) : r;
}

static int run(struct verification *t)
{
	const struct request *req = t->req;
	const struct sigaction action = { .sa_handler = on_signal };
	char *words = req->maps ? arena_strdup(t->arena, req->maps) : NULL, *save, *word;
	int r = EXIT_DONE;

	for (word = words ? strtok_r(words, ",", &save) : NULL; word && r == EXIT_DONE;
	     word = strtok_r(NULL, ",", &save))
		r = add_map(t, word);
	if (r == EXIT_DONE && req->counters) {
		r = verify_counters_end(req->root, req->counters_file, t->v, t->arena, &t->diff,
					&t->warn);
		t->has_diff = true;
	}
	if (r != EXIT_DONE)
		return r;
	t->has_log = !req->counters || req->n_logs;
	if (t->has_log) {
		/* Ctrl-C ends the log, not the verdict: the job may never end by itself. */
		sigaction(SIGINT, &action, NULL);
		sigaction(SIGTERM, &action, NULL);
		if (!req->n_logs)
			r = feed_file(t->v, "-");
	}
	for (int i = 0; r == EXIT_DONE && !interrupted && i < req->n_logs; i++)
		r = feed_file(t->v, req->logs[i]);
	if (r != EXIT_DONE)
		return r;
	if (t->has_log)
		return answer(t, verify_judge(t->v));
	return answer(t, t->warn ? VERDICT_WARN : VERDICT_PASS);
}

/* --- command line --- */

/* With --counters the first argument is its file. */
static int read_counters(struct request *req)
{
	if (strcmp(req->counters, "begin") != 0 && strcmp(req->counters, "end") != 0)
		return fail(EXIT_USAGE, "--counters: '%s' is neither begin nor end", req->counters);
	if (!req->n_logs)
		return fail(EXIT_USAGE, "--counters %s needs a file", req->counters);
	req->counters_file = *req->logs++;
	req->n_logs--;
	if (!strcmp(req->counters, "begin") && (req->n_logs || req->maps))
		return fail(EXIT_USAGE, "--counters begin takes a file and nothing else");
	return EXIT_DONE;
}

int cmd_verify(int argc, char **argv)
{
	struct request req = { .root = "/" };
	const struct word words[] = {
		{ "root", .value = &req.root },
		{ "map", .value = &req.maps },
		{ "counters", .value = &req.counters },
		{ "json", .flag = &req.json },
	};
	_cleanup_arena_ struct arena *arena = arena_new(4096);
	_cleanup_verify_ struct verify *v = verify_new();
	struct verification t = { .req = &req, .arena = arena, .v = v };
	int r = read_options(argc, argv, words, ARRAY_LEN(words));

	req.logs = argv + optind;
	req.n_logs = argc - optind;
	if (r == EXIT_DONE && req.counters)
		r = read_counters(&req);
	if (r != EXIT_DONE)
		return r;
	if (req.counters && !strcmp(req.counters, "begin"))
		return verify_counters_begin(req.root, req.counters_file, req.json);
	return run(&t);
}
