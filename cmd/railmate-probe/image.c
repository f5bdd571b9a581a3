/*
 * The image's own libibverbs: what the job will use, where the rest of this program uses the one
 * that is linked into it. A child of this program, under the image's own loader, loads it and opens
 * the VFs' devices; each copy in the image is read as a file, too, for a second one is what jobs
 * fall to TCP by.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "checks.h"
#include "document/document.h"
#include "library.h"
#include "nodes.h"
#include "report.h"
#include "sysroot/sysroot.h"
#include "told.h"

#define COPIES_MAX 64
#define ANSWER_MAX ((size_t)256 << 10)
#define WAIT_MS	   10000
#define PATH_SIZE  4096
#define DEVICES	   "RAILMATE_PROBE_DEVICES" /* "mlx5_4/1 mlx5_5/1": names and ports */
#define SELF	   "RAILMATE_PROBE_SELF"    /* this program, where the image's loader runs it */
#if defined(__aarch64__)
#define LOADER "/lib/ld-linux-aarch64.so.1"
#define MUSL   "ld-musl-aarch64.so.1"
#else
#define LOADER "/lib64/ld-linux-x86-64.so.2"
#define MUSL   "ld-musl-x86_64.so.1"
#endif

/* The calls of one libibverbs: of the image, by dlsym(), or of this program. */
struct verbs {
	struct ibv_device **(*list)(int *n);
	void (*free_list)(struct ibv_device **list);
	const char *(*name)(struct ibv_device *device);
	struct ibv_context *(*open)(struct ibv_device *device);
	int (*close)(struct ibv_context *context);
	int (*query)(struct ibv_context *context, uint8_t port, void *attr);
	struct ibv_device **devices; /* listed once: it reads those of the whole machine */
};
/* One port, as that libibverbs shows it. */
struct seen {
	bool listed;
	int error; /* of opening and asking it; 0: the rest is known */
	int state, mtu, link;
};

/* Memory for a port's attributes of a libibverbs that is newer than our header. */
union port {
	struct ibv_port_attr attr;
	char room[512];
};

static struct seen ask(const struct verbs *v, const char *hca, int number)
{
	struct seen seen = { .error = ENODEV };
	struct ibv_device **d = v->devices;
	struct ibv_context *context = NULL;
	union port port = { .attr = { .state = 0 } };

	while (d && *d && strcmp(v->name(*d), hca) != 0)
		d++;
	if (d && *d) {
		seen.listed = true;
		errno = 0;
		context = v->open(*d);
		seen.error = context ? v->query(context, (uint8_t)number, &port) : errno ?: EIO;
	}
	seen.state = port.attr.state;
	seen.mtu = port.attr.active_mtu;
	seen.link = port.attr.link_layer;
	if (context)
		v->close(context);
	return seen;
}

/* --- the child --- */

static void put_seen(struct json *j, const char *hca, const struct seen *s)
{
	json_begin_object(j);
	json_kv_string(j, "name", hca);
	json_kv_bool(j, "listed", s->listed);
	json_kv_int(j, "error", s->error);
	json_kv_int(j, "state", s->state);
	json_kv_int(j, "mtu", s->mtu);
	json_kv_int(j, "link", s->link);
	json_end_object(j);
}

static void put_devices(struct json *j, struct verbs *v)
{
	const char *wanted = getenv(DEVICES);
	char name[64];
	int port;

	v->devices = v->list(NULL);
	json_key(j, "devices");
	json_begin_array(j);
	while (wanted && sscanf(wanted, " %63[^/ ]/%d", name, &port) == 2) {
		struct seen seen = ask(v, name, port);

		put_seen(j, name, &seen);
		wanted = strchr(wanted + 1, ' ');
	}
	json_end_array(j);
	if (v->devices)
		v->free_list(v->devices);
}

static const char *load(struct verbs *v, const char **path)
{
	void *lib = dlopen("libibverbs.so.1", RTLD_NOW);
	Dl_info info;

	if (!lib)
		return dlerror();
	/* POSIX' way to a function: a pointer to data is not converted to one to code. */
	*(void **)&v->list = dlsym(lib, "ibv_get_device_list");
	*(void **)&v->free_list = dlsym(lib, "ibv_free_device_list");
	*(void **)&v->name = dlsym(lib, "ibv_get_device_name");
	*(void **)&v->open = dlsym(lib, "ibv_open_device");
	*(void **)&v->close = dlsym(lib, "ibv_close_device");
	*(void **)&v->query = dlsym(lib, "ibv_query_port");
	if (!v->list || !v->free_list || !v->name || !v->open || !v->close || !v->query)
		return "libibverbs.so.1 lacks functions";
	*path = dladdr(*(void **)&v->list, &info) ? info.dli_fname : NULL;
	return NULL;
}

int image_verbs_main(void)
{
	_cleanup_strbuf_ struct strbuf out = STRBUF_INIT;
	const char *path = NULL, *error;
	struct verbs v;
	struct json j;

	error = load(&v, &path);
	json_init(&j, &out, 0);
	json_begin_object(&j);
	json_kv_string(&j, "library", path);
	json_kv_string(&j, "error", error);
	if (!error)
		put_devices(&j, &v);
	json_end_object(&j);
	puts(strbuf_str(&out));
	return fflush(stdout) == 0 ? PROBE_EXIT_GOOD : PROBE_EXIT_NOT_MEASURED;
}

/* --- its parent --- */

struct answer {
	const struct item *json;  /* NULL: none came */
	char *errors;		  /* what came on standard error */
	const char *why;	  /* no answer: a clause */
	struct ibv_device **ours; /* what this program lists; NULL: it was not asked */
};

static const char *text_of(int fd, struct arena *a)
{
	char *text = arena_alloc(a, ANSWER_MAX + 1);
	ssize_t n = pread(fd, text, ANSWER_MAX, 0);

	text[n < 0 ? 0 : n] = '\0';
	return text;
}

/* Waits at most WAIT_MS; NULL: it ended well, else how it did. */
static const char *wait_for(pid_t pid, struct arena *a)
{
	const struct timespec nap = { .tv_nsec = 10000000 };
	int status;

	for (int ms = 0; waitpid(pid, &status, WNOHANG) == 0; ms += 10) {
		if (ms >= WAIT_MS) {
			kill(pid, SIGKILL);
			waitpid(pid, &status, 0);
			return "it did not end within 10 s";
		}
		nanosleep(&nap, NULL);
	}
	if (WIFSIGNALED(status))
		return arena_printf(a, "signal %d (%s)", WTERMSIG(status),
				    strsignal(WTERMSIG(status)));
	return WEXITSTATUS(status) == 0 ? NULL
					: arena_printf(a, "exit status %d", WEXITSTATUS(status));
}

static char **environment_with(const char *devices, struct arena *a)
{
	size_t n = 0;
	char **env;

	while (environ[n])
		n++;
	env = arena_array(a, n + 3, sizeof(*env));
	memcpy(env, environ, n * sizeof(*env));
	env[n] = arena_printf(a, DEVICES "=%s", devices);
	env[n + 1] = arena_strdup(a, "IBV_SHOW_WARNINGS=1"); /* of rdma-core's match_driver() */
	return env;
}

static struct answer run(char *const *argv, const char *devices, struct arena *a)
{
	_cleanup_close_ int out = memfd_create("out", MFD_CLOEXEC);
	_cleanup_close_ int errors = memfd_create("err", MFD_CLOEXEC);
	struct answer answer = { .json = NULL };
	posix_spawn_file_actions_t actions;
	const char *text;
	pid_t pid;
	int r;

	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
	posix_spawn_file_actions_adddup2(&actions, errors, STDERR_FILENO);
	r = posix_spawn(&pid, argv[0], &actions, NULL, argv, environment_with(devices, a));
	posix_spawn_file_actions_destroy(&actions);
	if (r) {
		answer.why = strerror(r);
		return answer;
	}
	answer.why = wait_for(pid, a);
	text = text_of(out, a);
	answer.errors = arena_strdup(a, text_of(errors, a));
	str_printable(answer.errors, strlen(answer.errors), "\n");
	if (!answer.why && document_parse(text, strlen(text), "answer", a, &answer.json, NULL) < 0)
		answer.why = "its answer is not JSON";
	return answer;
}

/* The loader that has glibc's name is musl's (gcompat): ours would load the image's libraries, and
 * musl with them, into glibc. */
static bool is_of_musl(const struct sysroot *root, const struct answer *answer)
{
	return sysroot_exists(root, "lib/" MUSL) &&
	       !(answer->errors && strstr(answer->errors, "GLIBC_"));
}

static char *own_path(struct arena *a)
{
	char *self = arena_strdup(a, getenv(SELF));
	ssize_t n;

	if (self)
		return self;
	self = arena_alloc(a, PATH_SIZE);
	n = readlink("/proc/self/exe", self, PATH_SIZE - 1);
	self[n < 0 ? 0 : n] = '\0';
	return self;
}

/*
 * This program under the image's own loader, which has its libc. A loader that is called as a
 * program knows that one without a name, so that an empty element of the list keeps it from our
 * DT_RPATH, and from our libc with it.
 */
static char **under_image(char *self, char **words, struct arena *a)
{
	size_t n = 0;
	char **v;

	while (words[n])
		n++;
	v = arena_array(a, n + 5, sizeof(*v));
	v[0] = arena_strdup(a, LOADER);
	v[1] = arena_strdup(a, "--inhibit-rpath");
	v[2] = arena_printf(a, ":%s", self);
	v[3] = self;
	memcpy(v + 4, words, n * sizeof(*v));
	return v;
}

/* Where the image's loader does not run us (glibc before 2.34), ours. */
static struct answer ask_child(const struct sysroot *root, const struct told *told, struct arena *a)
{
	char *devices = arena_strdup(a, ""), *self = own_path(a);
	char *verbs[] = { arena_strdup(a, "--image-verbs"), NULL };
	struct answer answer;

	for (size_t i = 0; i < told->n_vfs; i++) {
		if (told->vfs[i].hca)
			devices = arena_printf(a, "%s %s/%d", devices, told->vfs[i].hca,
					       told->vfs[i].port);
	}
	answer = run(under_image(self, verbs, a), devices, a);
	if (answer.json)
		return answer;
	if (is_of_musl(root, &answer))
		return (struct answer) { .json = NULL };
	return run((char *const[]) { self, verbs[0], NULL }, devices, a);
}

void image_become(char **argv)
{
	_cleanup_arena_ struct arena *a = arena_new(1 << 14);
	char *self = own_path(a), *name = strrchr(self, '/');
	char *verbs[] = { arena_strdup(a, "--image-verbs"), NULL };

	if (getenv(SELF) || !name ||
	    access(arena_printf(a, "%.*s/ld.so", (int)(name - self), self), F_OK) < 0 ||
	    !run(under_image(self, verbs, a), "", a).json)
		return;
	setenv(SELF, self, 1);
	execv(LOADER, under_image(self, argv + 1, a));
	unsetenv(SELF);
}

/* --- judgement --- */

/* A copy of libibverbs without the provider of a VF. second: not the one that programs get. */
static void judge_copy(const struct sysroot *root, const struct library *l, const char *provider,
		       bool second, struct report *r)
{
	const char *where, *which = second ? "a second libibverbs" : "a libibverbs";
	const char *id = second ? "image-second-libibverbs" : "image-provider";
	enum outcome outcome = second ? OUTCOME_SLOW : OUTCOME_BROKEN;

	switch (library_provider(root, l, provider, r->arena, &where)) {
	case PROVIDER_THERE:
		return;
	case PROVIDER_ABSENT:
		report_finding(r, outcome, id, l->path,
			       "Your image has %s, which has no %s provider: no %s", which,
			       provider, where);
		return;
	case PROVIDER_OTHER_ABI:
		report_finding(r, outcome, id, l->path,
			       "Your image has %s of provider ABI %d, and its %s provider is %s",
			       which, l->abi, provider, where);
		return;
	case PROVIDER_NOT_NAMED:
		report_finding(r, outcome, id, l->path,
			       "Your image has %s, and no file in %s names its %s provider", which,
			       l->config_dir, provider);
	}
}

static bool is_about(const char *line, const char *hca, const char *provider)
{
	return strstr(line, hca) || strstr(line, provider);
}

/* It leaves the device out, or all: libibverbs/init.c of rdma-core, match_device() and
 * check_abi_version(). */
static bool is_of_abi(const char *line, const char *hca, const char *provider)
{
	const char *name = strrchr(line, '/');

	(void)provider;
	return strstr(line, " kernel ABI version ") ||
	       (strstr(line, " the kernel ABI of ") && name && str_eq(name + 1, hca));
}

/* The first line of the library's own words that is of this kind; NULL: none. */
static const char *own_words(const struct answer *answer,
			     bool (*is)(const char *line, const char *hca, const char *provider),
			     const char *hca, const char *provider, struct arena *a)
{
	const char *next;

	for (const char *at = answer->errors; at && *at; at = next) {
		const char *line = arena_printf(a, "%.*s", (int)strcspn(at, "\n"), at);

		next = str_next_line(at);
		if (str_starts(line, "libibverbs: ") && is(line, hca, provider))
			return line;
	}
	return NULL;
}

static const char *seen_as(const struct seen *s, struct arena *a)
{
	if (!s->listed)
		return "does not see it";
	return s->error ? arena_printf(a, "cannot open it (%s)", strerror(s->error))
			: arena_printf(a, "sees state %d, MTU %d, link layer %d", s->state, s->mtu,
				       s->link);
}

static struct seen seen_of(const struct answer *answer, const char *hca)
{
	const struct item *devices = item_get(answer->json, "devices");

	for (size_t i = 0; devices && i < devices->n_kids; i++) {
		const struct item *d = &devices->kids[i], *listed = item_get(d, "listed");

		if (str_eq(item_string(d, "name"), hca))
			return (struct seen) { listed && listed->boolean,
					       (int)item_number(d, "error", EIO),
					       (int)item_number(d, "state", -1),
					       (int)item_number(d, "mtu", -1),
					       (int)item_number(d, "link", -1) };
	}
	return (struct seen) { .error = ENODEV };
}

static int our_query(struct ibv_context *context, uint8_t port, void *attr)
{
	return ibv_query_port(context, port, attr);
}

/* The image's against ours: what neither can is not the image's fault. */
static void compare(const struct told_vf *vf, const char *provider, const struct answer *answer,
		    const struct seen *theirs, struct report *r)
{
	const struct verbs ours = {
		.name = ibv_get_device_name,
		.open = ibv_open_device,
		.close = ibv_close_device,
		.query = our_query,
		.devices = answer->ours,
	};
	const char *words = own_words(answer, is_about, vf->hca, provider, r->arena);
	struct seen ok = ask(&ours, vf->hca, vf->port);

	if (ok.error || (!theirs->error && theirs->state == ok.state && theirs->mtu == ok.mtu &&
			 theirs->link == ok.link))
		return;
	report_finding(r, theirs->error ? OUTCOME_BROKEN : OUTCOME_SLOW, "image-differs", vf->hca,
		       "The image's libibverbs (%s) %s, and railmate's %s%s%s",
		       item_string(answer->json, "library"), seen_as(theirs, r->arena),
		       seen_as(&ok, r->arena), words ? ": " : "", words ? words : "");
}

static bool is_named_before(const struct told *told, size_t n, const struct sysroot *root,
			    const char *provider)
{
	char other[64];

	for (size_t i = 0; i < n; i++) {
		if (node_provider(root, &told->vfs[i], other, sizeof(other)) == 0 &&
		    str_eq(other, provider))
			return true;
	}
	return false;
}

/* No answer of the child: why, and is that a fault? */
static void explain_no_answer(const struct answer *answer, struct report *r)
{
	const char *words = answer->errors ? answer->errors : "";

	if (answer->why)
		report_finding(r, OUTCOME_NOT_MEASURED, "image-not-asked", NULL,
			       "The image's libibverbs could not be loaded: %s%s%.*s", answer->why,
			       *words ? ": " : "", (int)strcspn(words, "\n"), words);
	else
		report_finding(r, OUTCOME_GOOD, "image-not-asked", NULL,
			       "The image has no glibc: its libibverbs was read as a file");
}

/* No copy in the image: error is the loader's own word, NULL: it was not asked. */
static void explain_no_copy(const struct sysroot *root, const char *error, struct report *r)
{
	if (error)
		report_finding(r, OUTCOME_BROKEN, "image-no-libibverbs", NULL,
			       "Programs of this image cannot load libibverbs: %s",
			       document_shown(error, r->arena));
	else if (sysroot_exists(root, "%s", LOADER) || sysroot_exists(root, "lib/" MUSL))
		report_finding(r, OUTCOME_BROKEN, "image-no-libibverbs", NULL,
			       "This image has no libibverbs.so.1 in the usual places");
	else
		report_finding(r, OUTCOME_GOOD, "image-static", NULL,
			       "This image has no loader: its programs are static");
}

/* The first copy is the one that programs get. Where it works, its files do not matter; where it
 * does not, they say why, or the comparison does. */
static void judge_default(const struct sysroot *root, const struct told_vf *vf,
			  const char *provider, bool first, const struct answer *answer,
			  const struct library *l, struct report *r)
{
	struct seen theirs = seen_of(answer, vf->hca);
	const char *where, *abi = own_words(answer, is_of_abi, vf->hca, provider, r->arena);

	if (!theirs.listed && abi) {
		if (first)
			report_finding(r, OUTCOME_BROKEN, "image-abi", vf->hca,
				       "The image's libibverbs (%s) leaves it out: %s", l->path,
				       strchr(strchr(abi, ' ') + 1, ' ') + 1);
	} else if (theirs.error &&
		   library_provider(root, l, provider, r->arena, &where) != PROVIDER_THERE) {
		if (first)
			judge_copy(root, l, provider, false, r);
	} else if (item_string(answer->json, "library")) {
		compare(vf, provider, answer, &theirs, r);
	}
}

static void judge_copies(const struct sysroot *root, const struct told *told,
			 const struct answer *answer, const struct library *copies, size_t n,
			 struct report *r)
{
	char provider[64];
	bool first;

	for (size_t i = 0; i < told->n_vfs; i++) {
		if (node_provider(root, &told->vfs[i], provider, sizeof(provider)) < 0)
			continue;
		first = !is_named_before(told, i, root, provider);
		if (n)
			judge_default(root, &told->vfs[i], provider, first, answer, &copies[0], r);
		for (size_t k = 1; k < n && first; k++)
			judge_copy(root, &copies[k], provider, true, r);
	}
}

void check_image(const struct sysroot *root, const struct told *told, struct report *r)
{
	struct library *copies = arena_array(r->arena, COPIES_MAX, sizeof(*copies));
	struct answer answer = { .json = NULL };
	const char *error;
	size_t n;

	if (sysroot_is_live(root) && sysroot_exists(root, "%s", LOADER))
		answer = ask_child(root, told, r->arena);
	error = item_string(answer.json, "error");
	n = library_find_all(root, item_string(answer.json, "library"), r->arena, copies,
			     COPIES_MAX);
	if (!n || error)
		explain_no_copy(root, error, r);
	else if (!answer.json)
		explain_no_answer(&answer, r);
	if (answer.json)
		answer.ours = ibv_get_device_list(NULL);
	judge_copies(root, told, &answer, copies, n, r);
	if (answer.ours)
		ibv_free_device_list(answer.ours);
}
