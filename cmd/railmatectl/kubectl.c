#include "kubectl.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"

#define STDERR_MAX 4096
#define LOOK_MS	   50	    /* at time and lengths; the end of a process is seen at once */
#define BLANK	   ". \t\r" /* a line of these only counts as empty */

/* --- one process: its output goes to files, so that nothing here waits for it --- */

struct process {
	struct kubectl_call *call; /* NULL: this place is free */
	pid_t pid;
	int out, err;
	int64_t deadline_ms;
};

/* In the process. A command line can be read by others, its standard input cannot. */
static int open_input(const char *text)
{
	int fd = text ? memfd_create("in", 0) : open("/dev/null", O_RDONLY);

	if (text && (write(fd, text, strlen(text)) < 0 || lseek(fd, 0, SEEK_SET) < 0))
		_exit(127);
	return fd;
}

/* mask: the process's signal mask. */
static pid_t begin_kubectl(const struct kubectl *k, const struct kubectl_call *call, int out,
			   int err, const sigset_t *mask)
{
	const char *const options[] = { k->context ? "--context" : NULL, k->context,
					k->kubeconfig ? "--kubeconfig" : NULL, k->kubeconfig };
	const char *argv[1 + ARRAY_LEN(options) + KUBECTL_ARGS + 1] = { "kubectl" };
	size_t n = 1;
	pid_t pid = fork();

	if (pid != 0)
		return pid;
	for (size_t i = 0; i < ARRAY_LEN(options); i++)
		argv[n += argv[n] != NULL] = options[i];
	for (size_t i = 0; i < KUBECTL_ARGS; i++)
		argv[n += argv[n] != NULL] = call->args[i];
	sigprocmask(SIG_SETMASK, mask, NULL);
	dup2(open_input(call->input), 0);
	dup2(out, 1);
	dup2(err, 2);
	execvp(argv[0], (char *const *)argv);
	fprintf(stderr, "cannot run kubectl: %m\n");
	_exit(127);
}

/* Unlinked; in a directory for temporary files, maybe on a disk. */
static int open_file(void)
{
	const char *top = getenv("TMPDIR");
	_cleanup_free_ char *path = xasprintf("%s/railmate-XXXXXX", top && *top ? top : "/tmp");
	int fd = mkostemp(path, O_CLOEXEC);

	if (fd >= 0)
		unlink(path);
	return fd;
}

/* False: the call has ended without a process. */
static bool begin(const struct kubectl *k, struct process *p, struct kubectl_call *call,
		  const sigset_t *mask, bool interrupted)
{
	call->status = -1;
	call->most = call->most ? call->most : KUBECTL_OUTPUT_MAX;
	if (*call->args && interrupted)
		strcpy(call->why, "interrupted before it was asked");
	if (!*call->args || interrupted)
		return false;
	*p = (struct process) {
		.call = call,
		.out = call->to_file ? open_file() : memfd_create("out", MFD_CLOEXEC),
		.err = memfd_create("err", MFD_CLOEXEC),
		.deadline_ms = clock_mono_ms() + (int64_t)k->timeout_s * 1000,
	};
	p->pid = p->out < 0 || p->err < 0 ? -1 : begin_kubectl(k, call, p->out, p->err, mask);
	if (p->pid > 0)
		return true;
	snprintf(call->why, sizeof(call->why), "cannot run kubectl: %m");
	closep(&p->out);
	closep(&p->err);
	p->call = NULL;
	return false;
}

static size_t length_of(int fd)
{
	struct stat st;

	return fstat(fd, &st) < 0 ? 0 : (size_t)st.st_size;
}

/* Kills a process that is too late or prints too much; of an ended one its length counts. */
static void limit(struct process *p, unsigned timeout_s, bool interrupted, bool ended)
{
	struct kubectl_call *call = p->call;

	if (*call->why)
		return;
	if (length_of(p->out) > call->most || length_of(p->err) > call->most)
		snprintf(call->why, sizeof(call->why), "its output is longer than %zu MiB",
			 call->most >> 20);
	else if (!ended && interrupted)
		strcpy(call->why, "interrupted");
	else if (!ended && clock_mono_ms() >= p->deadline_ms)
		snprintf(call->why, sizeof(call->why), "did not end within %u s", timeout_s);
	if (*call->why && !ended)
		kill(p->pid, SIGKILL);
}

static void read_back(int fd, size_t len, struct strbuf *out)
{
	void *text = mmap(NULL, len, PROT_READ, MAP_PRIVATE, fd, 0);

	if (text == MAP_FAILED)
		return; /* len is 0, too */
	strbuf_add(out, text, len);
	munmap(text, len);
}

static void finish(struct process *p, int status)
{
	struct kubectl_call *call = p->call;
	size_t err = length_of(p->err);

	call->bytes = length_of(p->out);
	if (call->bytes > call->most) {
		call->bytes = call->most;
		(void)!ftruncate(p->out, (off_t)call->most);
	}
	if (call->to_file && call->bytes && !lseek(p->out, 0, SEEK_SET)) {
		call->fd = p->out;
		p->out = -1;
	} else {
		read_back(p->out, call->bytes, &call->out);
	}
	read_back(p->err, err < STDERR_MAX ? err : STDERR_MAX, &call->err);
	if (!*call->why && WIFEXITED(status))
		call->status = WEXITSTATUS(status);
	else if (!*call->why)
		snprintf(call->why, sizeof(call->why), "kubectl was ended by signal %d",
			 WTERMSIG(status));
	kubectl_find_why(call);
	closep(&p->out);
	closep(&p->err);
	*p = (struct process) { 0 };
}

/* --- all processes --- */

/* True: the process has ended. */
static bool look(struct process *p, unsigned timeout_s, bool interrupted)
{
	int status;
	bool ended = p->call && waitpid(p->pid, &status, WNOHANG) == p->pid;

	if (p->call)
		limit(p, timeout_s, interrupted, ended);
	if (ended)
		finish(p, status);
	return ended;
}

void kubectl_run(const struct kubectl *k, struct kubectl_call *calls, size_t n)
{
	_cleanup_free_ struct process *processes = xcalloc(k->parallel, sizeof(*processes));
	const struct timespec time = { 0, LOOK_MS * 1000000 };
	size_t next = 0, running = 0;
	bool interrupted = false;
	sigset_t waited, before;

	/* Signals are blocked, so that none is lost between look() and the wait. */
	sigemptyset(&waited);
	sigaddset(&waited, SIGCHLD);
	sigaddset(&waited, SIGINT);
	sigaddset(&waited, SIGTERM);
	signal(SIGCHLD, SIG_DFL);
	sigprocmask(SIG_BLOCK, &waited, &before);
	while (next < n || running) {
		int sig = running ? sigtimedwait(&waited, NULL, &time) : 0;

		interrupted = interrupted || sig == SIGINT || sig == SIGTERM;
		for (unsigned i = 0; i < k->parallel; i++) {
			struct process *p = &processes[i];

			running -= look(p, k->timeout_s, interrupted);
			while (next < n && !p->call)
				running += begin(k, p, &calls[next++], &before, interrupted);
		}
	}
	sigprocmask(SIG_SETMASK, &before, NULL);
}

void kubectl_call_done(struct kubectl_call *call)
{
	strbuf_done(&call->out);
	strbuf_done(&call->err);
	if (call->to_file && call->bytes)
		closep(&call->fd);
}

/* --- reasons --- */

#define TERMINATED "command terminated with exit code"

/* Is the line kubectl's own, beside the program's in the container, or of no interest? */
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

/* kubectl's line on an exit status other than 0 comes last: lost where the program wrote much. */
bool kubectl_has_run(const struct kubectl_call *call)
{
	return call->status == 0 ||
	       (call->status > 0 &&
		(call->err.len == STDERR_MAX || strstr(strbuf_str(&call->err), TERMINATED)));
}

static const char *skip_noise(const char *line)
{
	while (line && is_noise(line, strcspn(line, "\n")))
		line = str_next_line(line);
	return line;
}

void kubectl_print_error(struct kubectl_call *call)
{
	const char *line = skip_noise(strbuf_str(&call->err));

	if (line)
		str_printable(call->err.s, call->err.len, "\n\t");
	for (; line; line = skip_noise(str_next_line(line)))
		fprintf(stderr, "%.*s\n", (int)strcspn(line, "\n"), line);
}

void kubectl_find_why(struct kubectl_call *call)
{
	static const char ours[] = "railmatectl: ";
	const char *line = skip_noise(strbuf_str(&call->err));
	size_t len = line ? strcspn(line, "\n") : 0;

	if (*call->why)
		return;
	while (len && strchr(BLANK, line[len - 1]))
		len--;
	if (len > strlen(ours) && str_starts(line, ours)) {
		line += strlen(ours);
		len -= strlen(ours);
	}
	if (line)
		snprintf(call->why, sizeof(call->why), "%.*s", (int)len, line);
	else
		snprintf(call->why, sizeof(call->why), "exit status %d", call->status);
	str_utf8_trim(call->why);
}
