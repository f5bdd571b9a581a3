/*
 * The paths of our sockets: the resource's name, this instance, a number. No path is used twice,
 * neither by one process nor by the next one.
 */
#include "plugin/plugin-internal.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"

#define PATH_MOST 107 /* sun_path */
#define TAIL_MOST 24  /* ".01234567.4294967295.sock" */

void plugin_endpoint_init(struct endpoint *e, const char *dir, const char *resource)
{
	int64_t now = clock_wall_ms();
	size_t room = PATH_MOST - TAIL_MOST - 1;

	*e = (struct endpoint) { .dir = xstrdup(dir), .name = xstrdup(resource) };
	for (char *c = e->name; *c; c++) {
		if (*c == '/')
			*c = '_';
	}
	/* A name that the address cannot hold gives way to its checksum. */
	if (strlen(dir) + strlen(e->name) > room) {
		uint64_t sum = str_checksum(e->name, strlen(e->name));

		free(e->name);
		e->name = xasprintf("%08x", (unsigned)(sum ^ sum >> 32));
	}
	e->instance = (uint32_t)now ^ (uint32_t)getpid() << 16;
}

void plugin_endpoint_next(struct endpoint *e)
{
	free(e->path);
	e->path = xasprintf("%s/%s.%08x.%u.sock", e->dir, e->name, (unsigned)e->instance,
			    (unsigned)e->number++);
	e->known = false;
}

static bool is_ours(const struct endpoint *e, const char *file)
{
	size_t len = strlen(e->name);
	unsigned instance, number;
	int end = 0;

	return !strncmp(file, e->name, len) &&
	       sscanf(file + len, ".%8x.%u.sock%n", &instance, &number, &end) == 2 && end &&
	       !file[len + (size_t)end];
}

void plugin_endpoint_sweep(const struct endpoint *e)
{
	DIR *d = opendir(e->dir);
	struct dirent *entry;

	while (d && (entry = readdir(d))) {
		_cleanup_free_ char *path = xasprintf("%s/%s", e->dir, entry->d_name);
		struct rpc_peer peer;
		struct socket_id id;

		if (is_ours(e, entry->d_name) && rpc_socket_id(path, &id) &&
		    !rpc_socket_accepts(path, &peer))
			unlink(path);
	}
	if (d)
		closedir(d);
}

void plugin_endpoint_done(struct endpoint *e)
{
	free(e->dir);
	free(e->name);
	free(e->path);
	*e = (struct endpoint) { 0 };
}
