#include "kubectl.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"

#define ARGS_MAX   64
#define STDERR_MAX 4096
#define CHUNK	   65536
#define BLANK	   ". \t\r" /* a line of these only is as good as empty */
#define CHUNKS_MAX 64 /* read at once from one process: the others and the time have their turn */

extern char **environ;

/* --- signals --- */

static volatile sig_atomic_t interrupted;

static void on_interrupt(int sig)
{
	(void)sig;
	interrupted = 1;
}

/* That a child has ended: it has to interrupt ppoll(), no more. */
static void on_child(int sig)
{
	(void)sig;
}

static const int caught[] = { SIGINT, SIGTERM, SIGCHLD };

struct signals {
	struct sigaction before[ARRAY_LEN(caught)];
	sigset_t mask; /* that of the process, for ppoll() and for the children */
};

/* From here on they arrive in ppoll() only, so that none is lost between a look and the wait. */
static void signals_take(struct signals *s, bool must_finish)
{
	sigset_t blocked;

	sigemptyset(&blocked);
	for (size_t i = 0; i < ARRAY_LEN(caught); i++) {
		bool child = caught[i] == SIGCHLD;
		struct sigaction action = { .sa_handler = child		? on_child
							  : must_finish ? SIG_IGN
									: on_interrupt };

		sigaddset(&blocked, caught[i]);
		sigaction(caught[i], &action, &s->before[i]);
	}
	sigprocmask(SIG_BLOCK, &blocked, &s->mask);
	for (size_t i = 0; i < ARRAY_LEN(caught); i++)
		sigdelset(&s->mask, caught[i]);
}

static void signals_give_back(const struct signals *s)
{
	sigprocmask(SIG_SETMASK, &s->mask, NULL);
	for (size_t i = 0; i < ARRAY_LEN(caught); i++)
		sigaction(caught[i], &s->before[i], NULL);
}

/* --- one process --- */

struct process {
	struct kubectl_call *call; /* NULL: this place is free */
	size_t index;
	pid_t pid;
	int out, err; /* our ends; -1: at its end */
	int file;     /* call->path; -1 */
	int64_t deadline_ms;
	bool killed;
};

struct loop {
	const struct kubectl *k;
	struct process *processes;
	struct pollfd *fds; /* two a process */
	unsigned n, running;
	struct signals signals;
	kubectl_done_fn done;
	void *arg;
};

static void say_why(struct kubectl_call *call, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
static void say_why(struct kubectl_call *call, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(call->why, sizeof(call->why), fmt, ap);
	va_end(ap);
	str_utf8_trim(call->why);
	call->status = -1;
}

static void fill_argv(const struct kubectl *k, const struct kubectl_call *call, const char **argv)
{
	size_t n = 0;

	argv[n++] = "kubectl";
	if (k->context) {
		argv[n++] = "--context";
		argv[n++] = k->context;
	}
	if (k->kubeconfig) {
		argv[n++] = "--kubeconfig";
		argv[n++] = k->kubeconfig;
	}
	for (size_t i = 0; call->args[i] && n < ARGS_MAX; i++)
		argv[n++] = call->args[i];
	argv[n] = NULL;
}

/* A file in memory: written whole before the process begins, so that nothing here waits for it. */
static int open_input(const char *text)
{
	int fd =
		text ? memfd_create("input", MFD_CLOEXEC) : open("/dev/null", O_RDONLY | O_CLOEXEC);
	size_t len = text ? strlen(text) : 0, at = 0;

	while (fd >= 0 && at < len) {
		ssize_t n = write(fd, text + at, len - at);

		if (n < 0 && errno != EINTR) {
			closep(&fd);
			return -1;
		}
		at += n > 0 ? (size_t)n : 0;
	}
	if (fd >= 0 && text)
		lseek(fd, 0, SEEK_SET);
	return fd;
}

/* It begins with the signals as they were for us, whatever we do with them meanwhile. */
static int spawn(const struct loop *l, const char *const *argv, const int stdio[3], pid_t *ret)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t defaults;
	int e;

	sigemptyset(&defaults);
	for (size_t i = 0; i < ARRAY_LEN(caught) && !l->k->must_finish; i++)
		sigaddset(&defaults, caught[i]);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	posix_spawnattr_setsigmask(&attributes, &l->signals.mask);
	posix_spawnattr_setsigdefault(&attributes, &defaults);
	posix_spawn_file_actions_init(&actions);
	for (int i = 0; i < 3; i++)
		posix_spawn_file_actions_adddup2(&actions, stdio[i], i);
	e = posix_spawnp(ret, argv[0], &actions, &attributes, (char *const *)argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attributes);
	return e;
}

static int open_pipes(int out[2], int err[2])
{
	if (pipe2(out, O_CLOEXEC) < 0)
		return -1;
	if (pipe2(err, O_CLOEXEC) < 0)
		return -1;
	fcntl(out[0], F_SETFL, O_NONBLOCK);
	fcntl(err[0], F_SETFL, O_NONBLOCK);
	return 0;
}

static bool begin(struct loop *l, struct process *p, struct kubectl_call *call, size_t index)
{
	int out[2] = { -1, -1 }, err[2] = { -1, -1 }, input = open_input(call->input), e;
	const char *argv[ARGS_MAX + 1];

	fill_argv(l->k, call, argv);
	*p = (struct process) { .call = call, .index = index, .file = -1 };
	if (call->path)
		p->file = open(call->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (input < 0 || (call->path && p->file < 0) || open_pipes(out, err) < 0)
		e = errno;
	else
		e = spawn(l, argv, (int[3]) { input, out[1], err[1] }, &p->pid);
	closep(&input);
	closep(&out[1]);
	closep(&err[1]);
	if (e) {
		closep(&out[0]);
		closep(&err[0]);
		closep(&p->file);
		say_why(call, "cannot run kubectl: %s", strerror(e));
		return false;
	}
	p->out = out[0];
	p->err = err[0];
	p->deadline_ms = l->k->timeout_s ? clock_mono_ms() + (int64_t)l->k->timeout_s * 1000 : 0;
	return true;
}

static void kill_it(struct process *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void kill_it(struct process *p, const char *fmt, ...)
{
	va_list ap;

	if (p->killed)
		return;
	va_start(ap, fmt);
	vsnprintf(p->call->why, sizeof(p->call->why), fmt, ap);
	va_end(ap);
	kill(p->pid, SIGKILL);
	p->killed = true;
}

static bool write_whole(int fd, const char *data, size_t len)
{
	while (len) {
		ssize_t n = write(fd, data, len);

		if (n < 0 && errno != EINTR)
			return false;
		if (n > 0) {
			data += n;
			len -= (size_t)n;
		}
	}
	return true;
}

static void take_output(struct process *p, const char *data, size_t len)
{
	size_t most = p->call->most ? p->call->most : KUBECTL_OUTPUT_MAX;
	size_t room = most - p->call->bytes, n = len < room ? len : room;

	p->call->bytes += n;
	if (!p->call->path)
		strbuf_add(&p->call->out, data, n);
	else if (!write_whole(p->file, data, n))
		kill_it(p, "cannot store its output: %s", strerror(errno));
	if (n < len && most >= 1 << 20)
		kill_it(p, "its output is longer than %zu MiB", most >> 20);
	else if (n < len)
		kill_it(p, "its output is longer than %zu bytes", most);
}

static void take_error(struct process *p, const char *data, size_t len)
{
	size_t room = STDERR_MAX - p->call->err.len;

	strbuf_add(&p->call->err, data, len < room ? len : room);
}

/* What is there now. What an ended process has left in a pipe is less than CHUNKS_MAX chunks. */
static void read_all(struct process *p, int *fd,
		     void (*take)(struct process *, const char *, size_t))
{
	static char chunk[CHUNK];
	ssize_t n = 1;

	for (int i = 0; i < CHUNKS_MAX && *fd >= 0 && !p->killed; i++) {
		n = read(*fd, chunk, sizeof(chunk));
		if (n > 0)
			take(p, chunk, (size_t)n);
		else if (n == 0 || errno != EINTR)
			break;
	}
	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
		closep(fd);
		*fd = -1;
	}
}

/* --- all of them --- */

static void hand_over(struct loop *l, struct kubectl_call *call, size_t index)
{
	l->done(l->arg, call, index);
	kubectl_call_done(call);
}

static void finish(struct loop *l, struct process *p, int status)
{
	struct kubectl_call *call = p->call;
	size_t index = p->index;

	read_all(p, &p->out, take_output);
	read_all(p, &p->err, take_error);
	closep(&p->out);
	closep(&p->err);
	closep(&p->file);
	if (p->killed)
		call->status = -1;
	else if (WIFEXITED(status))
		call->status = WEXITSTATUS(status);
	else
		say_why(call, "kubectl was ended by signal %d", WTERMSIG(status));
	*p = (struct process) { 0 };
	l->running--;
	hand_over(l, call, index);
}

/* For output, a signal, or the next one that is too late. */
static void wait_for_something(struct loop *l)
{
	int64_t now = clock_mono_ms(), next_ms = -1;
	struct timespec time;

	for (unsigned i = 0; i < l->n; i++) {
		struct process *p = &l->processes[i];

		l->fds[2 * i] = (struct pollfd) { p->call ? p->out : -1, POLLIN, 0 };
		l->fds[2 * i + 1] = (struct pollfd) { p->call ? p->err : -1, POLLIN, 0 };
		if (!p->call || p->killed || !p->deadline_ms)
			continue;
		if (p->deadline_ms <= now)
			kill_it(p, "did not end within %u s", l->k->timeout_s);
		else if (next_ms < 0 || p->deadline_ms - now < next_ms)
			next_ms = p->deadline_ms - now;
	}
	time = (struct timespec) { next_ms / 1000, (long)(next_ms % 1000) * 1000000 };
	if (ppoll(l->fds, (nfds_t)l->n * 2, next_ms < 0 ? NULL : &time, &l->signals.mask) <= 0)
		return;
	for (unsigned i = 0; i < l->n; i++) {
		if (l->fds[2 * i].revents)
			read_all(&l->processes[i], &l->processes[i].out, take_output);
		if (l->fds[2 * i + 1].revents)
			read_all(&l->processes[i], &l->processes[i].err, take_error);
	}
}

/* The next call takes a free place; one that cannot begin is over at once. */
static void begin_next(struct loop *l, struct kubectl_call *calls, size_t index)
{
	unsigned at = 0;

	while (l->processes[at].call)
		at++;
	if (interrupted) {
		say_why(&calls[index], "interrupted before it was asked");
	} else if (begin(l, &l->processes[at], &calls[index], index)) {
		l->running++;
		return;
	}
	l->processes[at] = (struct process) { 0 };
	hand_over(l, &calls[index], index);
}

bool kubectl_run(const struct kubectl *k, struct kubectl_call *calls, size_t n,
		 kubectl_done_fn done, void *arg)
{
	struct loop l = { .k = k, .n = k->parallel, .done = done, .arg = arg };
	size_t next = 0;

	l.processes = xcalloc(l.n, sizeof(*l.processes));
	l.fds = xcalloc((size_t)l.n * 2, sizeof(*l.fds));
	signals_take(&l.signals, k->must_finish);
	interrupted = 0;
	while (next < n || l.running) {
		if (next < n && l.running < l.n) {
			begin_next(&l, calls, next++);
			continue;
		}
		wait_for_something(&l);
		for (unsigned i = 0; i < l.n; i++) {
			struct process *p = &l.processes[i];
			int status;

			if (p->call && interrupted)
				kill_it(p, "interrupted");
			if (p->call && waitpid(p->pid, &status, WNOHANG) == p->pid)
				finish(&l, p, status);
		}
	}
	signals_give_back(&l.signals);
	free(l.processes);
	free(l.fds);
	return !interrupted;
}

void kubectl_keep(void *arg, struct kubectl_call *call, size_t index)
{
	struct kubectl_call *kept = arg;

	kept[index] = *call;
	call->out = call->err = (struct strbuf)STRBUF_INIT;
}

bool kubectl_run_one(const struct kubectl *k, struct kubectl_call *call)
{
	struct kubectl_call run = *call;

	return kubectl_run(k, &run, 1, kubectl_keep, call);
}

void kubectl_call_done(struct kubectl_call *call)
{
	strbuf_done(&call->out);
	strbuf_done(&call->err);
}

/* --- why --- */

#define TERMINATED "command terminated with exit code"

/* What kubectl adds to what the program in the container said, or says of no interest. */
static bool is_noise(const char *line, size_t len)
{
	static const char *const begins[] = { TERMINATED, "Defaulted container", "Warning: " };

	for (size_t i = 0; i < ARRAY_LEN(begins); i++) {
		if (len >= strlen(begins[i]) && !strncmp(line, begins[i], strlen(begins[i])))
			return true;
	}
	/* "E1123 07:00:00.000000    1234 memcache.go:265] …": the log of kubectl's libraries */
	return strspn(line, BLANK) >= len ||
	       (len > 5 && strchr("EFIW", line[0]) && strspn(line + 1, "0123456789") == 4 &&
		line[5] == ' ');
}

/* Of an exit status that is not 0, kubectl says so last: not kept where the program said much. */
bool kubectl_has_run(const struct kubectl_call *call)
{
	return call->status == 0 ||
	       (call->status > 0 &&
		(call->err.len == STDERR_MAX || strstr(strbuf_str(&call->err), TERMINATED)));
}

void kubectl_print_error(struct kubectl_call *call)
{
	if (call->err.len)
		str_printable(call->err.s, call->err.len, "\n\t");
	for (const char *line = call->err.len ? call->err.s : NULL; line;
	     line = str_next_line(line)) {
		size_t len = strcspn(line, "\n");

		if (!is_noise(line, len))
			fprintf(stderr, "%.*s\n", (int)len, line);
	}
}

void kubectl_put_why(const struct kubectl_call *call, struct strbuf *out)
{
	static const char ours[] = "railmatectl: ";
	const char *line = call->err.len ? call->err.s : NULL;
	size_t len = line ? strcspn(line, "\n") : 0;

	if (call->status < 0) {
		strbuf_puts(out, call->why);
		return;
	}
	while (line && is_noise(line, len)) {
		line = str_next_line(line);
		len = line ? strcspn(line, "\n") : 0;
	}
	if (!line) {
		strbuf_printf(out, "exit status %d", call->status);
		return;
	}
	while (len && strchr(BLANK, line[len - 1]))
		len--;
	if (len > strlen(ours) && !strncmp(line, ours, strlen(ours))) {
		line += strlen(ours);
		len -= strlen(ours);
	}
	strbuf_add(out, line, len);
}
