/*
 * Device-info files of the Network Plumbing Working Group, one per device, for Multus and CNI
 * plugins. They are written in slices beside the kubelet's calls; soon after Allocate's reply, long
 * before a CNI plugin starts, their presence is checked. They outlive railmated, as running pods
 * use them. Files of devices that left the pool, and of removed pools, are deleted.
 */
#include "plugin/plugin-internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "ledger/ledger.h"
#include "pool/node.h"
#include "render/render.h"

#define SLICE	 32
#define SLICE_MS 1
#define GIVEN_MS 10

struct file {
	char *vf, *path;
	uint64_t hash; /* of the content that we wrote; 0: none written */
	bool given;    /* by Allocate: its presence is to be checked */
};

struct devinfo {
	struct plugin *plugin;
	struct file *files; /* in the order of the pool: by address */
	size_t n, next;
	struct rpc_timer *timer, *given_timer;
};

static int replace_file(const char *dir, const char *path, const char *text)
{
	_cleanup_free_ char *temp =
		xasprintf("%s/.%s.%d", dir, path + strlen(dir) + 1, (int)getpid());
	const struct file_new f = {
		.dir = AT_FDCWD, .name = path, .temporary = temp, .mode = 0444
	};
	int r = file_write(&f, text, strlen(text), NULL);

	if (r == -ENOENT) {
		r = file_make_dirs(dir, 0755, NULL);
		if (r == 0)
			r = file_write(&f, text, strlen(text), NULL);
	}
	return r;
}

static void write_file(struct devinfo *d, struct file *file, const struct pool_dev *dev, bool force)
{
	_cleanup_arena_ struct arena *a = arena_new(1024);
	struct plugin *p = d->plugin;
	const struct pool *pool = plugin_pool(p);
	const char *text = render_devinfo(p->node, pool, dev, a);
	uint64_t hash = str_hash(text);
	int r;

	if (file->hash == hash && !force)
		return;
	r = replace_file(p->env->devinfo_dir, file->path, text);
	if (r < 0) {
		plugin_warn(p, WARN_DEVINFO, "a device-info file is not written path=%s error=%s",
			    file->path, strerror(-r));
		return;
	}
	plugin_warn_reset(p, WARN_DEVINFO);
	file->hash = hash;
}

static void write_slice(void *arg)
{
	struct devinfo *d = arg;
	const struct pool *pool = plugin_pool(d->plugin);

	d->timer = NULL;
	for (size_t n = 0; n < SLICE && d->next < d->n; n++, d->next++) {
		if (pool->devs[d->next].pci >= 0)
			write_file(d, &d->files[d->next], &pool->devs[d->next], false);
	}
	if (d->next < d->n)
		d->timer = rpc_after(d->plugin->env->endpoint.rpc, SLICE_MS, write_slice, d);
}

static void files_free(struct file *files, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(files[i].vf);
		free(files[i].path);
	}
	free(files);
}

/* Removes files that we wrote and whose VFs no container holds. */
static void remove_files(const struct devinfo *d, const struct file *files, size_t n)
{
	const struct ledger *l = plugin_ledger(d->plugin);

	for (size_t i = 0; i < n; i++) {
		if (files[i].hash && !(l && ledger_find(l, files[i].vf)))
			unlink(files[i].path);
	}
}

/* The new list takes over hashes and marks; both lists are sorted alike but for devices that came
 * or went. */
static void follow_pool(struct devinfo *d, const struct pool *pool)
{
	_cleanup_arena_ struct arena *a = arena_new(4096);
	struct file *old = d->files;
	size_t n_old = d->n, k = 0;

	d->n = pool ? pool->n_devs : 0;
	d->files = xcalloc(d->n + 1, sizeof(*d->files));
	for (size_t i = 0; i < d->n; i++) {
		const char *name = render_devinfo_name(pool, &pool->devs[i], a);
		char *path = xasprintf("%s/%s", d->plugin->env->devinfo_dir, name);
		size_t at = k;

		while (at < n_old && strcmp(old[at].path, path) != 0)
			at++;
		d->files[i].vf = xstrdup(pool->devs[i].id);
		d->files[i].path = path;
		if (at == n_old)
			continue;
		d->files[i].hash = old[at].hash;
		d->files[i].given = old[at].given;
		old[at].hash = 0;
		k = at + 1;
	}
	if (pool)
		remove_files(d, old, n_old);
	files_free(old, n_old);
}

struct devinfo *plugin_devinfo_new(struct plugin *p)
{
	struct devinfo *d = xcalloc(1, sizeof(*d));

	d->plugin = p;
	return d;
}

void plugin_devinfo_update(struct devinfo *d)
{
	follow_pool(d, plugin_pool(d->plugin));
	d->next = 0;
	if (!d->timer && d->n)
		d->timer = rpc_after(d->plugin->env->endpoint.rpc, SLICE_MS, write_slice, d);
}

static void ensure_given(void *arg)
{
	struct devinfo *d = arg;
	const struct pool *pool = plugin_pool(d->plugin);

	d->given_timer = NULL;
	for (size_t i = 0; i < d->n; i++) {
		struct file *file = &d->files[i];

		if (file->given && pool->devs[i].pci >= 0 &&
		    (!file->hash || access(file->path, F_OK) < 0))
			write_file(d, file, &pool->devs[i], true);
		file->given = false;
	}
}

void plugin_devinfo_ensure(struct devinfo *d, const struct pool_dev *const *devs, size_t n)
{
	const struct pool *pool = plugin_pool(d->plugin);

	for (size_t i = 0; i < n; i++)
		d->files[devs[i] - pool->devs].given = true;
	if (!d->given_timer && n)
		d->given_timer = rpc_after(d->plugin->env->endpoint.rpc, GIVEN_MS, ensure_given, d);
}

void plugin_devinfo_remove(struct devinfo *d)
{
	if (d)
		remove_files(d, d->files, d->n);
}

void plugin_devinfo_free(struct devinfo *d)
{
	if (!d)
		return;
	rpc_timer_cancel(d->timer);
	rpc_timer_cancel(d->given_timer);
	files_free(d->files, d->n);
	free(d);
}
