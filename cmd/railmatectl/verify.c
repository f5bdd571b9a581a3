/* railmatectl verify: did NCCL use the VFs that it was given, and how? From its log, and from port
 * counters. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "railmatectl.h"
#include "sysroot/sysroot.h"
#include "verify/counters.h"
#include "verify/verify.h"

#define CLASS	  "sys/class/infiniband"
#define LINKS	  "sys/class/net"
#define MAX_PORTS 4096
#define MAX_LINKS 4096

#define MAX_SMALL (4 * 1024 * 1024) /* of a map or a counters file */

static int read_file(const char *path, struct strbuf *out, struct err *err)
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

struct sampling {
	const struct sysroot *root;
	struct arena *arena;
	const char *hca;
	struct counters out;
};

static int sample_port(void *arg, const char *name)
{
	struct sampling *s = arg;
	struct port_counters *p = &s->out.ports[s->out.n_ports];
	char pci[256];

	if (s->out.n_ports == MAX_PORTS || str_to_u64(name, 10, 255, &p->port) < 0)
		return 0;
	p->hca = s->hca;
	if (sysroot_link_name(s->root, pci, sizeof(pci), CLASS "/%s/device", s->hca) == 0)
		p->pci = arena_strdup(s->arena, pci);
	for (int k = 0; k < COUNTER_MAX; k++)
		p->has[k] = sysroot_read_u64(s->root, 10, &p->value[k], CLASS "/%s/ports/%s/%s",
					     s->hca, name, counter_names[k].file) == 0;
	s->out.n_ports++;
	return 0;
}

static int sample_hca(void *arg, const char *name)
{
	struct sampling *s = arg;

	s->hca = arena_strdup(s->arena, name);
	sysroot_each(s->root, arena_printf(s->arena, CLASS "/%s/ports", name), sample_port, s);
	return 0;
}

static int by_name(const void *a, const void *b)
{
	const struct port_counters *x = a, *y = b;
	int r = strverscmp(x->hca, y->hca);

	return r ? r : (x->port > y->port) - (x->port < y->port);
}

static int sample_link(void *arg, const char *name)
{
	struct sampling *s = arg;
	struct link_counters *l = &s->out.links[s->out.n_links];

	if (s->out.n_links == MAX_LINKS || !strcmp(name, "lo") ||
	    sysroot_read_u64(s->root, 10, &l->sent, LINKS "/%s/statistics/tx_bytes", name) < 0 ||
	    sysroot_read_u64(s->root, 10, &l->received, LINKS "/%s/statistics/rx_bytes", name) < 0)
		return 0;
	l->name = arena_strdup(s->arena, name);
	l->rdma = sysroot_exists(s->root, LINKS "/%s/device/infiniband", name);
	s->out.n_links++;
	return 0;
}

static int link_by_name(const void *a, const void *b)
{
	return strverscmp(((const struct link_counters *)a)->name,
			  ((const struct link_counters *)b)->name);
}

static int sample(const char *path, struct arena *arena, struct counters *ret)
{
	struct sampling s = { .arena = arena };
	struct sysroot *root;
	struct err err = { 0 };

	if (sysroot_open(path, &root, &err) < 0)
		return fail(EXIT_FAILED, "%s", err.msg);
	s.root = root;
	s.out.ports = arena_array(arena, MAX_PORTS + 1, sizeof(*s.out.ports));
	s.out.links = arena_array(arena, MAX_LINKS + 1, sizeof(*s.out.links));
	sysroot_each(root, CLASS, sample_hca, &s);
	sysroot_each(root, LINKS, sample_link, &s);
	sysroot_close(root);
	if (!s.out.n_ports)
		return fail(EXIT_FAILED, "%s/" CLASS ": no port of an RDMA device",
			    str_eq(path, "/") ? "" : path);
	qsort(s.out.ports, s.out.n_ports, sizeof(*s.out.ports), by_name);
	qsort(s.out.links, s.out.n_links, sizeof(*s.out.links), link_by_name);
	*ret = s.out;
	return EXIT_DONE;
}

static int write_file(const char *path, const struct strbuf *text)
{
	FILE *f = fopen(path, "we");
	bool ok;

	if (!f)
		return fail(EXIT_FAILED, "%s: %m", path);
	ok = fwrite(strbuf_str(text), 1, text->len, f) == text->len;
	if (fclose(f) != 0 || !ok)
		return fail(EXIT_FAILED, "%s: %m", path);
	return EXIT_DONE;
}

static int begin_counting(const char *root, const char *path, bool json)
{
	_cleanup_arena_ struct arena *arena = arena_new(65536);
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;
	struct counters c;
	int r = sample(root, arena, &c);
	_cleanup_strbuf_ struct strbuf out = STRBUF_INIT;
	struct json j;

	if (r != EXIT_DONE)
		return r;
	counters_write(&c, &text);
	r = write_file(path, &text);
	if (r != EXIT_DONE)
		return r;
	if (json) {
		json_init(&j, &out, 0);
		json_begin_object(&j);
		json_kv_string(&j, "file", path);
		json_kv_int(&j, "ports", (int64_t)c.n_ports);
		json_end_object(&j);
		strbuf_putc(&out, '\n');
	} else {
		strbuf_printf(
			&out,
			"counters of %zu ports in %s; run the job, then: verify --counters end %s\n",
			c.n_ports, path, path);
	}
	return print_out(&out);
}

/* Where nothing was sent at all, one VF is no finding. */
static bool any_sent(const struct counters_diff *diff)
{
	for (size_t i = 0; i < diff->n_ports; i++) {
		if (diff->ports[i].sent)
			return true;
	}
	return false;
}

static int end_counting(const char *root, const char *path, struct verify *v, struct arena *arena,
			struct counters_diff *ret, bool *ret_warn)
{
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;
	const struct link_counters *tcp;
	struct counters before, after;
	struct err err = { 0 };
	int r;

	if (read_file(path, &text, &err) < 0)
		return fail(EXIT_FAILED, "%s", err.msg);
	if (counters_read(strbuf_str(&text), text.len, path, arena, &before, &err) < 0)
		return fail(EXIT_REFUSED, "%s", err.msg);
	r = sample(root, arena, &after);
	if (r != EXIT_DONE)
		return r;
	counters_compare(&before, &after, arena, ret);
	tcp = counters_tcp(ret);
	if (tcp)
		verify_counted(v, true, tcp->name, tcp->sent);
	*ret_warn = tcp != NULL;
	for (size_t i = 0; any_sent(ret) && i < ret->n_ports; i++) {
		const struct port_diff *d = &ret->ports[i];
		const char *gpu, *vf;

		if (d->change != PORT_COUNTED || d->sent ||
		    !verify_mapped(v, d->hca, d->port, &gpu, &vf))
			continue;
		verify_counted(v, false, d->hca, d->port);
		*ret_warn = true;
	}
	return EXIT_DONE;
}

/* --- the answer --- */

static const char *const change_words[] = {
	[PORT_GONE] = "is gone (moved to another namespace, or removed)",
	[PORT_NEW] = "was not there at the beginning",
	[PORT_RESET] = "was reset or is another device now: the difference is not known",
	[PORT_UNCOUNTED] = "has no counter of bytes",
};

static void put_counters(const struct counters_diff *diff, const struct verify *v,
			 struct strbuf *out)
{
	const struct link_counters *tcp;

	strbuf_puts(out, "port counters:\n");
	for (size_t i = 0; i < diff->n_ports; i++) {
		const struct port_diff *d = &diff->ports[i];
		const char *gpu = NULL, *vf = NULL;

		strbuf_printf(out, "  %s:%llu", d->hca, (unsigned long long)d->port);
		if (d->pci)
			strbuf_printf(out, " %s", d->pci);
		if (verify_mapped(v, d->hca, d->port, &gpu, &vf) && gpu)
			strbuf_printf(out, " (GPU %s)", gpu);
		if (d->change != PORT_COUNTED) {
			strbuf_printf(out, " %s\n", change_words[d->change]);
		} else {
			strbuf_printf(out,
				      "  sent %llu bytes (%.3f GB), received %llu bytes (%.3f GB)",
				      (unsigned long long)d->sent, (double)d->sent / 1e9,
				      (unsigned long long)d->received, (double)d->received / 1e9);
			for (int k = 0; k < COUNTER_MAX; k++) {
				if (d->trouble[k])
					strbuf_printf(out, "  %s +%llu", counter_names[k].key,
						      (unsigned long long)d->trouble[k]);
			}
			strbuf_putc(out, '\n');
		}
	}
	if (!any_sent(diff))
		strbuf_puts(
			out,
			"  no port counted a byte: nothing was sent, or these drivers do not count for VFs (look at the PF on the host)\n");
	tcp = counters_tcp(diff);
	if (diff->n_links)
		strbuf_puts(out, "interfaces (TCP/IP):\n");
	for (size_t i = 0; i < diff->n_links; i++) {
		const struct link_counters *l = &diff->links[i];

		strbuf_printf(out,
			      "  %s  sent %llu bytes (%.3f GB), received %llu bytes (%.3f GB)%s\n",
			      l->name, (unsigned long long)l->sent, (double)l->sent / 1e9,
			      (unsigned long long)l->received, (double)l->received / 1e9,
			      l == tcp ? ": WARN, much for a job over RDMA" : "");
	}
}

static void json_counters(const struct counters_diff *diff, const struct verify *v, struct json *j)
{
	json_kv_array(j, "counters");
	for (size_t i = 0; i < diff->n_ports; i++) {
		const struct port_diff *d = &diff->ports[i];
		const char *gpu = NULL, *vf = NULL;
		bool mapped = verify_mapped(v, d->hca, d->port, &gpu, &vf);

		json_begin_object(j);
		json_kv_string(j, "hca", d->hca);
		json_kv_int(j, "port", (int64_t)d->port);
		json_kv_string(j, "pci", d->pci);
		json_kv_bool(j, "mapped", mapped);
		json_kv_string(j, "gpu", gpu);
		json_kv_string(j, "change", counters_change_name(d->change));
		json_kv_int(j, "sent_bytes", (int64_t)d->sent);
		json_kv_int(j, "received_bytes", (int64_t)d->received);
		for (enum counter k = COUNTER_XMIT_DISCARDS; k < COUNTER_MAX; k++)
			json_kv_int(j, counter_names[k].key, (int64_t)d->trouble[k]);
		json_end_object(j);
	}
	json_end_array(j);
	json_kv_array(j, "interfaces");
	for (size_t i = 0; i < diff->n_links; i++) {
		json_begin_object(j);
		json_kv_string(j, "name", diff->links[i].name);
		json_kv_bool(j, "rdma", diff->links[i].rdma);
		json_kv_int(j, "sent_bytes", (int64_t)diff->links[i].sent);
		json_kv_int(j, "received_bytes", (int64_t)diff->links[i].received);
		json_end_object(j);
	}
	json_end_array(j);
}

#define CHUNK (256 * 1024)

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
	if (read_file(path, &text, &err) < 0)
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
		put_counters(&t->diff, t->v, out);
}

static void put_json(const struct verification *t, struct strbuf *out)
{
	struct json j;

	json_init(&j, out, 2);
	json_begin_object(&j);
	if (t->has_log)
		verify_json(t->v, &j);
	if (t->has_diff)
		json_counters(&t->diff, t->v, &j);
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
		r = end_counting(req->root, req->counters_file, t->v, t->arena, &t->diff, &t->warn);
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
		return begin_counting(req.root, req.counters_file, req.json);
	return run(&t);
}
