#include "report/child.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#include "base/mem.h"
#include "base/str.h"
#include "load/configfiles.h"

#define SAID_MAX  512
#define CHUNK	  8192
#define WORDS_MAX 8

struct child {
	struct uv_loop_s *loop;
	char *program;
	unsigned limit_ms;
	void (*ended)(void *ctx, const struct child_end *end);
	void *ctx;

	uv_timer_t limit;
	uv_process_t process;
	uv_pipe_t out, err;
	unsigned open; /* of the three above */
	bool told;     /* ended() was called, or nobody waits for it */
	int status, signal;
	char why[64]; /* it has no status */
	struct strbuf text, said;
	char chunk[CHUNK];
};

char *child_program(void)
{
	char path[PATH_MAX];
	size_t len = sizeof(path);
	char *slash, *beside;

	if (uv_exepath(path, &len) < 0 || !(slash = strrchr(path, '/')))
		return xstrdup("railmatectl");
	beside = xasprintf("%.*s/railmatectl", (int)(slash - path), path);
	if (access(beside, X_OK) == 0)
		return beside;
	free(beside);
	return xstrdup("railmatectl");
}

static void tell(struct child *c)
{
	struct child_end end = { .status = c->status };

	uv_timer_stop(&c->limit);
	if (c->told)
		return;
	c->told = true;
	end.failure = *c->why ? c->why : NULL;
	end.out = strbuf_str(&c->text);
	end.len = c->text.len;
	if (c->said.len)
		c->said.s[strcspn(c->said.s, "\n")] = '\0';
	end.said = strbuf_str(&c->said);
	c->ended(c->ctx, &end);
	strbuf_done(&c->text);
	strbuf_done(&c->said);
}

static void on_closed(uv_handle_t *handle)
{
	struct child *c = handle->data;

	if (--c->open == 0)
		tell(c);
}

static void close_one(uv_handle_t *handle)
{
	if (!uv_is_closing(handle))
		uv_close(handle, on_closed);
}

/* Its number is another process's once it was waited for. */
static void kill_it(struct child *c)
{
	if (uv_is_active((uv_handle_t *)&c->process))
		uv_process_kill(&c->process, SIGKILL);
}

/* It has no answer: this is the end of the run, also where the process does not end (a device that
 * does not answer its driver keeps it). */
static void give_up(struct child *c, const char *why)
{
	if (!*c->why)
		snprintf(c->why, sizeof(c->why), "%s", why);
	kill_it(c);
	close_one((uv_handle_t *)&c->out);
	close_one((uv_handle_t *)&c->err);
	tell(c);
}

static void on_limit(uv_timer_t *timer)
{
	struct child *c = timer->data;
	char why[64];

	snprintf(why, sizeof(why), "did not end within %u s", c->limit_ms / 1000);
	give_up(c, why);
}

static void on_exit_status(uv_process_t *process, int64_t status, int signo)
{
	struct child *c = process->data;

	c->status = (int)status;
	if (signo && !*c->why)
		snprintf(c->why, sizeof(c->why), "was ended by signal %d", signo);
	close_one((uv_handle_t *)process);
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *ret)
{
	struct child *c = handle->data;

	*ret = uv_buf_init(c->chunk, sizeof(c->chunk));
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
	struct child *c = stream->data;
	bool is_err = stream == (uv_stream_t *)&c->err;
	struct strbuf *to = is_err ? &c->said : &c->text;
	size_t room = (is_err ? SAID_MAX : CHILD_OUTPUT_MAX) - to->len;

	if (n < 0) {
		close_one((uv_handle_t *)stream);
		return;
	}
	strbuf_add(to, buf->base, (size_t)n < room ? (size_t)n : room);
	if (!is_err && (size_t)n > room)
		give_up(c, "printed too much");
}

/* Where memory runs out it goes before us: no container waits for it. */
static void offer_to_oom(int pid)
{
	_cleanup_free_ char *path = xasprintf("/proc/%d/oom_score_adj", pid);
	_cleanup_close_ int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd >= 0 && write(fd, "1000", 4) < 0)
		return; /* it is as dear as we are then */
}

struct child *child_new(struct uv_loop_s *loop, const char *program, unsigned limit_ms,
			void (*ended)(void *ctx, const struct child_end *end), void *ctx)
{
	struct child *c = xcalloc(1, sizeof(*c));

	c->loop = loop;
	c->program = xstrdup(program);
	c->limit_ms = limit_ms;
	c->ended = ended;
	c->ctx = ctx;
	uv_timer_init(loop, &c->limit);
	c->limit.data = c;
	return c;
}

static int spawn(struct child *c, const char *const *argv)
{
	uv_stdio_container_t stdio[3] = {
		{ .flags = UV_IGNORE },
		{ .flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE,
		  .data.stream = (uv_stream_t *)&c->out },
		{ .flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE,
		  .data.stream = (uv_stream_t *)&c->err },
	};
	const uv_process_options_t options = { .exit_cb = on_exit_status,
					       .file = c->program,
					       .args = (char **)argv,
					       .stdio = stdio,
					       .stdio_count = ARRAY_LEN(stdio) };

	uv_pipe_init(c->loop, &c->out, 0);
	uv_pipe_init(c->loop, &c->err, 0);
	c->process.data = c->out.data = c->err.data = c;
	c->open = 3;
	return uv_spawn(c->loop, &c->process, &options);
}

static void add_option(const char **argv, size_t *n, const char *name, const char *value)
{
	if (!value)
		return;
	argv[(*n)++] = name;
	argv[(*n)++] = value;
}

bool child_run(struct child *c, const struct child_machine *machine, const char *const *words)
{
	_cleanup_free_ char *config = configfiles_path(machine->files);
	const char *argv[WORDS_MAX + 8] = { "railmatectl" };
	size_t n = 1;
	int r;

	if (c->open)
		return false;
	for (size_t i = 0; words[i] && i < WORDS_MAX; i++)
		argv[n++] = words[i];
	add_option(argv, &n, "--root", machine->root);
	add_option(argv, &n, "--config", config);
	add_option(argv, &n, "--topology-hints", machine->files->hints);
	c->told = false;
	c->status = 0;
	*c->why = '\0';
	r = spawn(c, argv);
	if (r < 0) {
		snprintf(c->why, sizeof(c->why), "cannot be run: %s", uv_strerror(r));
		close_one((uv_handle_t *)&c->process);
		close_one((uv_handle_t *)&c->out);
		close_one((uv_handle_t *)&c->err);
		return true;
	}
	offer_to_oom(c->process.pid);
	uv_read_start((uv_stream_t *)&c->out, on_alloc, on_read);
	uv_read_start((uv_stream_t *)&c->err, on_alloc, on_read);
	uv_timer_start(&c->limit, on_limit, c->limit_ms, 0);
	return true;
}

void child_close(struct child *c)
{
	if (!c)
		return;
	c->told = true;
	if (c->open) {
		kill_it(c);
		close_one((uv_handle_t *)&c->process);
		close_one((uv_handle_t *)&c->out);
		close_one((uv_handle_t *)&c->err);
	}
	uv_close((uv_handle_t *)&c->limit, NULL);
}

void child_free(struct child *c)
{
	if (!c)
		return;
	strbuf_done(&c->text);
	strbuf_done(&c->said);
	free(c->program);
	free(c);
}
