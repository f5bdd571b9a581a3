/*
 * `start POD [CONTAINER [TIMEOUT_MS]]`: what happens when containers start. PreStartContainer for
 * every resource whose plugin asked for it, then the runtime resolves the CDI devices in its
 * directory (--cdi-dir), as containerd does at CreateContainer. An error, and a device that cannot
 * be resolved, are tried again, as the kubelet's pod worker does. Tells what the container gets.
 */
#include "kubelet.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "document/document.h"
#include "kubepeer/kubepeer.h"
#include "render/render.h"

#define PRE_START_TIMEOUT_MS 30000
#define AGAIN_MS	     20 /* the real one waits longer */
#define SPEC_BYTES_MAX	     (1u << 20)

struct starting {
	struct kubelet *k;
	struct command *cmd;
	struct pod_entry *pod;
	const char *only; /* this container; NULL: all */
	int64_t until_us;
	size_t c, h; /* container, and its next allocation to call for */
	unsigned attempts;
	int64_t container_us, attempt_us;
	char *problem; /* of the last attempt */
	struct report report;
};

static void begin_attempt(struct starting *s);
static void call_next(struct starting *s);

static const struct fake_container *container_of(const struct starting *s)
{
	return &s->pod->containers[s->c];
}

/* --- the runtime: CDI names → edits --- */

struct specs {
	const struct item **v;
	size_t n;
	struct arena *arena;
};

static const struct item *read_spec(const char *path, struct arena *a)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	const struct item *spec;
	struct stat st;
	char *text;
	ssize_t n;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > SPEC_BYTES_MAX)
		return NULL;
	text = arena_alloc(a, (size_t)st.st_size + 1);
	n = read(fd, text, (size_t)st.st_size);
	return n < 0 || document_parse(text, (size_t)n, path, a, &spec, NULL) < 0 ? NULL : spec;
}

static bool is_spec_name(const char *name)
{
	const char *dot = strrchr(name, '.');

	return dot && !strcmp(dot, ".json");
}

/* Only the directory itself: runtimes do not look into folders in it. */
static void read_specs(const char *path, struct specs *s)
{
	DIR *dir = opendir(path);
	size_t room = 0;

	for (struct dirent *e = dir ? readdir(dir) : NULL; e; e = readdir(dir))
		room += is_spec_name(e->d_name);
	s->v = arena_array(s->arena, room, sizeof(*s->v));
	if (dir)
		rewinddir(dir);
	for (struct dirent *e = dir ? readdir(dir) : NULL; e && s->n < room; e = readdir(dir)) {
		const struct item *spec =
			is_spec_name(e->d_name)
				? read_spec(arena_printf(s->arena, "%s/%s", path, e->d_name),
					    s->arena)
				: NULL;

		if (spec)
			s->v[s->n++] = spec;
	}
	if (dir)
		closedir(dir);
}

static const struct item *device_in(const struct item *spec, const char *cdi)
{
	const struct item *devices = item_get(spec, "devices");
	const char *kind = item_string(spec, "kind"), *equals = strchr(cdi, '=');
	size_t len = equals ? (size_t)(equals - cdi) : 0;

	if (!kind || !len || strlen(kind) != len || strncmp(kind, cdi, len) != 0)
		return NULL;
	for (size_t i = 0; devices && i < devices->n_kids; i++) {
		if (str_eq(item_string(&devices->kids[i], "name"), equals + 1))
			return &devices->kids[i];
	}
	return NULL;
}

/* One that two specs define is a conflict, and nobody's. */
static const struct item *find_device(const struct specs *s, const char *cdi)
{
	const struct item *found = NULL;

	for (size_t i = 0; i < s->n; i++) {
		const struct item *device = device_in(s->v[i], cdi);

		if (device && found)
			return NULL;
		if (device)
			found = device;
	}
	return found;
}

/* What the container gets; the allocations' own edits first. */
struct outcome {
	struct arena *arena;
	struct kv *envs;
	struct devnode *devs;
	struct bindmount *mounts;
	size_t n_envs, cap_envs, n_devs, cap_devs, n_mounts, cap_mounts;
};

static void outcome_done(struct outcome *o)
{
	free(o->envs);
	free(o->devs);
	free(o->mounts);
}

static void set_env(struct outcome *o, const char *key, const char *value)
{
	size_t i = 0;

	while (i < o->n_envs && strcmp(o->envs[i].key, key) != 0)
		i++;
	if (i == o->n_envs) {
		o->envs = xgrow(o->envs, &o->cap_envs, o->n_envs + 1, sizeof(*o->envs));
		o->n_envs++;
	}
	o->envs[i] = (struct kv) { key, value };
}

static void add_node(struct outcome *o, struct devnode node)
{
	for (size_t i = 0; i < o->n_devs; i++) {
		if (!strcmp(o->devs[i].container, node.container))
			return;
	}
	o->devs = xgrow(o->devs, &o->cap_devs, o->n_devs + 1, sizeof(*o->devs));
	o->devs[o->n_devs++] = node;
}

/* The kubelet keeps the first of two mounts at one place; a runtime lets a CDI device replace it.
 */
static void add_mount(struct outcome *o, struct bindmount mount, bool replace)
{
	for (size_t i = 0; i < o->n_mounts; i++) {
		if (strcmp(o->mounts[i].container, mount.container) != 0)
			continue;
		if (replace)
			o->mounts[i] = mount;
		return;
	}
	o->mounts = xgrow(o->mounts, &o->cap_mounts, o->n_mounts + 1, sizeof(*o->mounts));
	o->mounts[o->n_mounts++] = mount;
}

static void apply_edits(struct outcome *o, const struct edits *e)
{
	for (size_t i = 0; i < e->n_envs; i++)
		set_env(o, e->envs[i].key, e->envs[i].value);
	for (size_t i = 0; i < e->n_devs; i++)
		add_node(o, e->devs[i]);
	for (size_t i = 0; i < e->n_mounts; i++)
		add_mount(o, e->mounts[i], false);
}

static bool has_option(const struct item *options, const char *option)
{
	for (size_t i = 0; options && i < options->n_kids; i++) {
		if (str_eq(options->kids[i].string, option))
			return true;
	}
	return false;
}

static void apply_mounts(struct outcome *o, const struct item *mounts)
{
	for (size_t i = 0; mounts && i < mounts->n_kids; i++) {
		const struct item *mount = &mounts->kids[i];
		const char *host = item_string(mount, "hostPath"),
			   *path = item_string(mount, "containerPath");

		if (host && path)
			add_mount(
				o,
				(struct bindmount) { host, path,
						     has_option(item_get(mount, "options"), "ro") },
				true);
	}
}

/* Of a device, or of the whole spec. */
static void apply_container_edits(struct outcome *o, const struct item *of)
{
	const struct item *edits = item_get(of, "containerEdits");
	const struct item *env = item_get(edits, "env"), *nodes = item_get(edits, "deviceNodes");

	for (size_t i = 0; env && i < env->n_kids; i++) {
		char *key = arena_strdup(o->arena, env->kids[i].string ? env->kids[i].string : ""),
		     *equals;

		equals = strchr(key, '=');
		if (!equals)
			continue;
		*equals = '\0';
		set_env(o, key, equals + 1);
	}
	for (size_t i = 0; nodes && i < nodes->n_kids; i++) {
		const char *path = item_string(&nodes->kids[i], "path");
		const char *host = item_string(&nodes->kids[i], "hostPath");
		const char *permissions = item_string(&nodes->kids[i], "permissions");

		if (path)
			add_node(o, (struct devnode) { host ? host : path, path,
						       permissions ? permissions : "rwm" });
	}
	apply_mounts(o, item_get(edits, "mounts"));
}

/* NULL, or what cannot be resolved. */
static const char *resolve(const struct starting *s, struct outcome *o)
{
	struct specs specs = { .arena = o->arena };
	const struct fake_container *c = container_of(s);
	const struct item *spec = NULL; /* whose own edits came last */

	if (s->k->opt.cdi_dir)
		read_specs(s->k->opt.cdi_dir, &specs);
	for (size_t h = 0; h < c->n_held; h++)
		apply_edits(o, &c->held[h].edits);
	for (size_t h = 0; h < c->n_held; h++) {
		for (size_t i = 0; i < c->held[h].edits.n_cdi; i++) {
			const char *cdi = c->held[h].edits.cdi[i];
			const struct item *device = find_device(&specs, cdi);

			if (!device)
				return cdi;
			if (device->parent->parent != spec)
				apply_container_edits(o, device->parent->parent);
			spec = device->parent->parent;
			apply_container_edits(o, device);
		}
	}
	return NULL;
}

/* --- what came of a container --- */

static void report_outcome(struct starting *s, const struct outcome *o, bool started)
{
	const struct edits edits = {
		.devs = o->devs, .n_devs = o->n_devs, .mounts = o->mounts, .n_mounts = o->n_mounts
	};
	struct json *j = &s->report.json;

	json_begin_object(j);
	json_kv_string(j, "name", container_of(s)->name);
	json_kv_bool(j, "started", started);
	json_kv_int(j, "attempts", s->attempts);
	json_kv_int(j, "us", now_us() - s->container_us);
	json_kv_int(j, "attempt_us", now_us() - s->attempt_us);
	json_kv_string(j, "message", started ? "" : s->problem);
	json_key(j, "env");
	json_begin_object(j);
	for (size_t i = 0; i < o->n_envs; i++)
		json_kv_string(j, o->envs[i].key, o->envs[i].value);
	json_end_object(j);
	json_key(j, "device_nodes");
	json_begin_array(j);
	render_json_devices(&edits, j);
	json_end_array(j);
	json_key(j, "mounts");
	json_begin_array(j);
	render_json_mounts(&edits, j);
	json_end_array(j);
	json_end_object(j);
}

static void next_container(struct starting *s)
{
	s->c++;
	s->attempts = 0;
	while (s->c < s->pod->n_containers && s->only &&
	       strcmp(s->only, container_of(s)->name) != 0)
		s->c++;
	if (s->c < s->pod->n_containers) {
		s->container_us = now_us();
		begin_attempt(s);
		return;
	}
	json_end_array(&s->report.json);
	report_end(&s->report);
	s->pod->admitting = false;
	command_done(s->cmd);
	free(s->problem);
	free(s);
}

static void again(void *arg)
{
	begin_attempt(arg);
}

static void failed(struct starting *s, char *problem)
{
	struct outcome nothing = { 0 };

	free(s->problem);
	s->problem = problem;
	if (now_us() < s->until_us && !s->k->leaving) {
		rpc_after(s->k->rpc, AGAIN_MS, again, s);
		return;
	}
	report_outcome(s, &nothing, false);
	next_container(s);
}

static void create(struct starting *s)
{
	_cleanup_arena_ struct arena *a = arena_new(64 * 1024);
	struct outcome o = { .arena = a };
	const char *missing = resolve(s, &o);

	if (missing) {
		failed(s,
		       xasprintf(
			       "CreateContainerError: CDI device injection failed: unresolvable CDI devices %s",
			       missing));
	} else {
		report_outcome(s, &o, true);
		next_container(s);
	}
	outcome_done(&o);
}

/* --- PreStartContainer --- */

static void on_pre_started(void *arg, enum rpc_status status, const char *message,
			   struct bytes body)
{
	struct starting *s = arg;

	(void)body;
	if (status == RPC_OK)
		call_next(s);
	else
		failed(s, xasprintf("CreateContainerConfigError: rpc error: code = %s desc = %s",
				    status_name(status), message));
}

/*
 * The plugin that wants to be called before a container with this allocation starts; NULL: none
 * does. While its stream is down, or has not come back since the kubelet restarted, a container
 * waits: *ret_why (devicemanager callPreStartContainerIfNeeded, endpoint.go).
 */
static struct client *who_wants_it(struct kubelet *k, const struct allocation *a, char **ret_why)
{
	const struct resource *r = resource_find(k, a->resource);

	*ret_why = NULL;
	if (!r || !r->endpoint) {
		*ret_why = xasprintf("endpoint not found in cache for a registered resource: %s",
				     a->resource);
		return NULL;
	}
	if (!r->endpoint->options.pre_start_required)
		return NULL;
	if (r->stopped || !r->endpoint->channel)
		*ret_why = xasprintf("endpoint %s has been stopped", a->resource);
	return *ret_why ? NULL : r->endpoint;
}

static void call_next(struct starting *s)
{
	_cleanup_arena_ struct arena *a = arena_new(1024);
	const struct fake_container *c = container_of(s);

	while (s->h < c->n_held) {
		const struct allocation *held = &c->held[s->h++];
		_cleanup_free_ char *why = NULL;
		struct client *e = who_wants_it(s->k, held, &why);

		if (why) {
			failed(s, xasprintf("CreateContainerConfigError: %s", why));
			return;
		}
		if (!e)
			continue;
		rpc_call_unary(e->channel, PATH_PRE_START, peer_encode_pre_start(&held->ids, a),
			       PRE_START_TIMEOUT_MS, on_pre_started, s);
		return;
	}
	create(s);
}

static void begin_attempt(struct starting *s)
{
	s->attempts++;
	s->attempt_us = now_us();
	s->h = 0;
	call_next(s);
}

void start(struct command *cmd, struct pod_entry *pod, const char *container, unsigned timeout_ms)
{
	struct starting *s = xcalloc(1, sizeof(*s));
	struct json *j = report_answer(&s->report, cmd, "started");

	s->k = cmd->k;
	s->cmd = cmd;
	s->pod = pod;
	s->only = container;
	s->until_us = now_us() + (int64_t)timeout_ms * 1000;
	s->c = SIZE_MAX;       /* the next one is the first */
	pod->admitting = true; /* its records must outlive the calls */
	pod->prepared = true;
	json_kv_string(j, "pod", pod->name);
	json_key(j, "containers");
	json_begin_array(j);
	next_container(s);
}
