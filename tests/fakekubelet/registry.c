/*
 * The plugin watcher: sockets in plugins_registry are asked who they are and connected to. A socket
 * that stays is never asked twice, whatever became of its plugin; only a new one (another inode) is
 * (docs/design/kubelet.md §5).
 */
#include "kubelet.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"
#include "kubepeer/kubepeer.h"

#define SCAN_MS		  10
#define GET_INFO_MS	  1000
#define NOTIFY_MS	  5000
#define RETRY_US	  500000 /* a socket that did not answer is asked again */
#define MESSAGE_MAX_BYTES (4u << 20)

struct watched {
	struct watched *next;
	struct kubelet *k;
	char *path, *resource;	 /* resource NULL until it said so */
	char *driver, *endpoint; /* of one that serves claims; NULL */
	ino_t inode;
	bool seen; /* in this scan */
	bool gone; /* left the directory, or the kubelet died */
	struct rpc_channel *channel;
	unsigned in_flight;
	int64_t failed_us; /* 0: did not fail */
};

static void release(struct watched *w)
{
	struct watched **at = &w->k->watched;

	if (w->in_flight || !w->gone)
		return;
	while (*at != w)
		at = &(*at)->next;
	*at = w->next;
	rpc_channel_close(w->channel);
	free(w->path);
	free(w->resource);
	free(w->driver);
	free(w->endpoint);
	free(w);
}

static void report_watched(const struct watched *w, const char *event, const char *text)
{
	struct report r;
	struct json *j = report_begin(&r, event);

	json_kv_string(j, "socket", w->path);
	json_kv_string(j, "resource", w->resource);
	json_kv_string(j, "message", text);
	report_end(&r);
}

static void on_notified(void *arg, enum rpc_status status, const char *message, struct bytes body)
{
	struct watched *w = arg;

	(void)body;
	w->in_flight--;
	report_watched(w, status == RPC_OK ? "watcher-notified" : "watcher-failed", message);
	release(w);
}

static void notify(struct watched *w, const char *error)
{
	_cleanup_arena_ struct arena *a = arena_new(512);
	struct registration_status status = { .registered = !error, .error = error ? error : "" };

	w->in_flight++;
	rpc_call_unary(w->channel, PATH_NOTIFY_STATUS, peer_encode_registration_status(&status, a),
		       NOTIFY_MS, on_notified, w);
}

static void on_connected(void *arg, const char *error)
{
	struct watched *w = arg;

	w->in_flight--;
	if (!w->gone)
		notify(w, error);
	release(w);
}

static bool speaks(const struct plugin_info *info, const char *version)
{
	for (size_t i = 0; i < info->versions.n; i++) {
		if (!strcmp(info->versions.v[i], version))
			return true;
	}
	return false;
}

static void use_info(struct watched *w, const struct plugin_info *info)
{
	if (!strcmp(info->type, "DRAPlugin") && speaks(info, "v1.DRAPlugin")) {
		w->driver = xstrdup(info->name);
		w->endpoint = xstrdup(info->endpoint);
		report_watched(w, "driver-found", info->name);
		notify(w, NULL);
		return;
	}
	if (strcmp(info->type, "DevicePlugin") || !speaks(info, "v1beta1")) {
		report_watched(w, "watcher-failed", "no DevicePlugin of version v1beta1");
		notify(w, "no handler registered for plugin type");
		return;
	}
	w->resource = xstrdup(info->name);
	report_watched(w, "watcher-found", NULL);
	w->in_flight++;
	plugin_connect(w->k, info->name, info->endpoint[0] ? info->endpoint : w->path, NULL,
		       on_connected, w);
}

static void on_info(void *arg, enum rpc_status status, const char *message, struct bytes body)
{
	_cleanup_arena_ struct arena *a = arena_new(1024);
	struct watched *w = arg;
	struct plugin_info info;
	struct err err = { 0 };

	w->in_flight--;
	if (w->gone) {
		release(w);
	} else if (status != RPC_OK || peer_decode_plugin_info(body, a, &info, &err) < 0) {
		report_watched(w, "watcher-failed", status != RPC_OK ? message : err.msg);
		w->failed_us = now_us();
	} else {
		use_info(w, &info);
	}
}

/* A channel that failed once would back off: a fresh one for every try. */
static void ask(struct watched *w)
{
	rpc_channel_close(w->channel);
	w->channel = rpc_channel_open(w->k->rpc, w->path, MESSAGE_MAX_BYTES);
	w->failed_us = 0;
	w->in_flight++;
	rpc_call_unary(w->channel, PATH_GET_INFO, (struct bytes) { 0 }, GET_INFO_MS, on_info, w);
}

static void add(struct kubelet *k, const char *path, ino_t inode)
{
	struct watched *w = xcalloc(1, sizeof(*w));

	*w = (struct watched) {
		.next = k->watched, .k = k, .path = xstrdup(path), .inode = inode, .seen = true
	};
	k->watched = w;
	ask(w);
}

static void look_at(struct kubelet *k, const char *name)
{
	_cleanup_free_ char *path = xasprintf("%s/plugins_registry/%s", k->opt.root, name);
	struct stat st;

	if (name[0] == '.' || stat(path, &st) < 0 || !S_ISSOCK(st.st_mode))
		return;
	for (struct watched *w = k->watched; w; w = w->next) {
		if (w->gone || w->inode != st.st_ino || strcmp(w->path, path))
			continue;
		w->seen = true;
		if (w->failed_us && now_us() - w->failed_us > RETRY_US)
			ask(w);
		return;
	}
	add(k, path, st.st_ino);
}

static void scan(struct kubelet *k)
{
	_cleanup_free_ char *dir = xasprintf("%s/plugins_registry", k->opt.root);
	DIR *d = opendir(dir);
	struct dirent *e;

	while (d && (e = readdir(d)))
		look_at(k, e->d_name);
	if (d)
		closedir(d);
}

/* A socket that went takes its plugin along. */
static void drop_unseen(struct kubelet *k)
{
	for (struct watched *w = k->watched, *next; w; w = next) {
		struct resource *r = w->resource ? resource_find(k, w->resource) : NULL;

		next = w->next;
		if (w->seen || w->gone)
			continue;
		w->gone = true;
		report_watched(w, "watcher-gone", NULL);
		if (r)
			plugin_disconnect(k, r, w->path);
		release(w);
	}
}

static void on_scan(void *arg)
{
	struct kubelet *k = arg;

	for (struct watched *w = k->watched; w; w = w->next)
		w->seen = false;
	scan(k);
	drop_unseen(k);
	k->scan_timer = rpc_after(k->rpc, SCAN_MS, on_scan, k);
}

const char *registry_driver(struct kubelet *k, const char *name)
{
	for (struct watched *w = k->watched; w; w = w->next) {
		if (!w->gone && w->driver && !strcmp(w->driver, name))
			return w->endpoint;
	}
	return NULL;
}

void registry_start(struct kubelet *k)
{
	on_scan(k);
}

void registry_stop(struct kubelet *k)
{
	if (k->scan_timer)
		rpc_timer_cancel(k->scan_timer);
	k->scan_timer = NULL;
	for (struct watched *w = k->watched, *next; w; w = next) {
		next = w->next;
		w->gone = true;
		rpc_channel_close(w->channel);
		w->channel = NULL;
		release(w);
	}
}
