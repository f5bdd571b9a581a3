#include "unit/plugin/caller.h"

#include <dirent.h>
#include <string.h>

static void replied(void *arg, enum rpc_status status, const char *message, struct bytes body)
{
	struct client_call *c = arg;

	c->reply.status = status;
	c->reply.message = arena_strdup(c->arena, message ? message : "");
	c->reply.body = (struct bytes) { arena_copy(c->arena, body.data, body.len), body.len };
	rpc_channel_close(c->channel);
	sem_post(&c->done);
}

static void call_fn(void *arg)
{
	struct client_call *c = arg;

	c->channel = rpc_channel_open(rpc, c->socket, 4 << 20);
	rpc_call_unary(c->channel, c->path, c->request, 30000, replied, c);
}

void call_begin(struct client_call *c)
{
	sem_init(&c->done, 0, 0);
	on_rpc(call_fn, c);
}

struct reply call_end(struct client_call *c)
{
	while (sem_wait(&c->done) < 0)
		;
	sem_destroy(&c->done);
	return c->reply;
}

struct reply call_whole(struct client_call c)
{
	call_begin(&c);
	return call_end(&c);
}

const char *caller_socket_in(const char *dir, struct arena *a)
{
	const char *found = arena_printf(a, "%s/none", dir);
	DIR *d = opendir(dir);
	struct dirent *e;

	while (d && (e = readdir(d))) {
		if (!strncmp(e->d_name, "rdma_vf.", 8))
			found = arena_printf(a, "%s/%s", dir, e->d_name);
	}
	if (d)
		closedir(d);
	return found;
}
