/*
 * The kubelet as a process that comes and goes. What survives is what the real one's checkpoint
 * holds: which pod has which devices, and which resources were registered (without their devices).
 */
#include "kubelet.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"

#define BACK_TIMEOUT_MS 35000 /* less than a test waits for an answer */

static int make_dir(const char *parent, const char *name, struct err *err)
{
	_cleanup_free_ char *path = name ? xasprintf("%s/%s", parent, name) : xstrdup(parent);

	if (mkdir(path, 0755) < 0 && errno != EEXIST)
		return err_sys(err, "%s", path);
	return 0;
}

/* 1.36 removes every socket in its directory, 1.20 every file but the checkpoint. */
static void wipe(const struct kubelet *k)
{
	DIR *d = opendir(k->opt.dir);
	struct dirent *e;

	while (d && (e = readdir(d))) {
		_cleanup_free_ char *path = xasprintf("%s/%s", k->opt.dir, e->d_name);
		struct stat st;

		if (lstat(path, &st) < 0 || S_ISDIR(st.st_mode) ||
		    !strcmp(e->d_name, "kubelet_internal_checkpoint"))
			continue;
		if (k->opt.old || S_ISSOCK(st.st_mode))
			unlink(path);
	}
	if (d)
		closedir(d);
}

static int make_dirs(const struct kubelet *k, struct err *err)
{
	int r = make_dir(k->opt.dir, NULL, err);

	r = r < 0 ? r : make_dir(k->opt.root, NULL, err);
	r = r < 0 ? r : make_dir(k->opt.root, "pod-resources", err);
	r = r < 0 ? r : make_dir(k->opt.root, "pods-api", err);
	return r < 0 ? r : make_dir(k->opt.root, "plugins_registry", err);
}

int kubelet_up(struct kubelet *k, struct err *err)
{
	struct report r;
	int rc = make_dirs(k, err);

	if (rc < 0)
		return rc;
	wipe(k);
	if (pod_resources_open(k, err) < 0 || pods_api_open(k, err) < 0)
		return -err->code;
	k->since_us = now_us();
	if (registration_open(k, err) < 0)
		return -err->code;
	k->down = false;
	report_begin(&r, "up");
	json_kv_int(&r.json, "since", k->since_us);
	report_end(&r);
	registry_start(k);
	return 0;
}

/* --- the list that a `restart` waits for --- */

static bool all_back(const struct kubelet *k)
{
	for (const struct resource *r = k->resources; r; r = r->next) {
		if (r->awaited && r->back_us < 0)
			return false;
	}
	return true;
}

static void answer_restart(struct kubelet *k)
{
	struct command *cmd = STEAL(k->restarting);
	struct report rep;
	struct json *j = report_answer(&rep, cmd, "restarted");

	json_kv_int(j, "since", k->since_us);
	json_key(j, "us");
	json_begin_object(j);
	for (struct resource *r = k->resources; r; r = r->next) {
		if (r->awaited)
			json_kv_int(j, r->name, r->back_us);
		r->awaited = false;
	}
	json_end_object(j);
	report_end(&rep);
	command_done(cmd);
}

void kubelet_list_came(struct kubelet *k, struct resource *r)
{
	if (r->back_us < 0)
		r->back_us = now_us() - k->since_us;
	if (!k->restarting || k->down || !all_back(k))
		return;
	rpc_timer_cancel(STEAL(k->restart_timer));
	answer_restart(k);
}

static void on_back_timeout(void *arg)
{
	struct kubelet *k = arg;

	k->restart_timer = NULL;
	answer_restart(k);
}

static void on_gap_over(void *arg)
{
	struct kubelet *k = arg;
	struct command *cmd = k->restarting;
	struct err err = { 0 };

	k->restart_timer = NULL;
	if (kubelet_up(k, &err) < 0) {
		k->restarting = NULL;
		answer_error(cmd, "%s", err.msg);
	} else if (all_back(k)) {
		answer_restart(k);
	} else {
		k->restart_timer = rpc_after(k->rpc, BACK_TIMEOUT_MS, on_back_timeout, k);
	}
}

/* --- going down --- */

static void forget_devices(struct kubelet *k)
{
	for (struct resource *r = k->resources; r; r = r->next) {
		r->awaited = r->endpoint && !r->stopped;
		r->back_us = -1;
		arena_free(r->arena);
		r->arena = NULL;
		r->devices = (struct device_list) { 0 };
	}
}

static void try_leave(void *arg)
{
	struct kubelet *k = arg;

	plugin_sweep(k);
	if (k->clients || k->watched || k->admitting)
		rpc_after(k->rpc, 1, try_leave, k);
	else
		kubelet_gone();
}

/* A kubelet that ends leaves its sockets, which refuse until the next one wipes them: as 1.33
 * and 1.36 do. */
static void leave_dead_socket(const char *dir, const char *name)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int n = snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/%s", dir, name);
	_cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || n < 0 || (size_t)n >= sizeof(addr.sun_path) ||
	    bind(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0)
		fprintf(stderr, "fakekubelet: %s/%s: %s\n", dir, name, strerror(errno));
}

static void on_server_gone(void *arg)
{
	struct kubelet *k = arg;

	if (--k->closing)
		return;
	if (!k->leaving) {
		leave_dead_socket(k->opt.dir, "kubelet.sock");
		leave_dead_socket(k->opt.root, "pod-resources/kubelet.sock");
	}
	if (k->going_down)
		answer_simple(STEAL(k->going_down), "down", NULL, NULL);
	if (k->leaving)
		try_leave(k);
	else if (k->restarting)
		k->restart_timer = rpc_after(k->rpc, k->restart_gap_ms, on_gap_over, k);
}

static void close_servers(struct kubelet *k)
{
	struct rpc_server *const servers[] = { STEAL(k->registration), STEAL(k->pod_resources),
					       STEAL(k->pods_api) };

	k->closing++; /* so that it cannot reach zero in between */
	for (size_t i = 0; i < ARRAY_LEN(servers); i++) {
		if (!servers[i])
			continue;
		k->closing++;
		rpc_server_close(servers[i], on_server_gone, k);
	}
	on_server_gone(k);
}

void kubelet_down(struct kubelet *k, struct command *cmd)
{
	k->down = true;
	k->going_down = cmd;
	registry_stop(k);
	forget_devices(k);
	plugin_forget_all(k);
	plugin_release_ends(k);
	rebuild_allocated(k);
	close_servers(k);
	registration_release_calls(k);
}

void kubelet_restart(struct kubelet *k, struct command *cmd, unsigned gap_ms)
{
	k->restarting = cmd;
	k->restart_gap_ms = gap_ms;
	kubelet_down(k, NULL);
}

void kubelet_quit(struct kubelet *k)
{
	k->leaving = true;
	wait_cancel_all(k);
	pod_resources_answer_all(k);
	if (k->restart_timer)
		rpc_timer_cancel(STEAL(k->restart_timer));
	if (k->restarting)
		answer_restart(k);
	if (k->down && !k->closing)
		try_leave(k);
	else if (!k->down)
		kubelet_down(k, NULL);
}
