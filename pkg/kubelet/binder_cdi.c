/*
 * Our files in the runtime's CDI directory. They are renamed into place from the same directory, under a name
 * that no runtime reads: only then every runtime notices (reference kubelet.md §4). Nothing is synced to the
 * disk: the directory is emptied by a reboot, and PreStartContainer writes what is missing.
 */
#include "kubelet/binder-internal.h"

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
#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "document/document.h"
#include "pool/node.h"
#include "render/cdi.h"

#define SPEC_BYTES_MAX (256u << 10)
#define DIR_MODE       0755
#define FILE_MODE      0644

#define ENV_BINDING   "RAILMATE_BINDING"
#define ENV_CONTAINER "RAILMATE_CONTAINER"
#define ENV_UID	      "RAILMATE_POD_UID"

static uint64_t hash_of(const char *text)
{
	uint64_t h = UINT64_C(14695981039346656037);

	for (; *text; text++)
		h = (h ^ (uint8_t)*text) * UINT64_C(1099511628211);
	return h;
}

/* --- what we remember --- */

static struct spec_file *remembered(const struct binder *b, const char *slot)
{
	for (size_t i = 0; i < b->n_specs; i++) {
		if (!strcmp(b->specs[i].slot, slot))
			return &b->specs[i];
	}
	return NULL;
}

static void remember(struct binder *b, const char *slot, const char *text)
{
	struct spec_file *s = remembered(b, slot);

	if (!s) {
		b->specs = xgrow(b->specs, &b->cap_specs, b->n_specs + 1, sizeof(*b->specs));
		s = &b->specs[b->n_specs++];
		s->slot = xstrdup(slot);
	}
	s->hash = hash_of(text);
}

static void forget(struct binder *b, const char *slot)
{
	struct spec_file *s = remembered(b, slot);

	if (!s)
		return;
	free(s->slot);
	*s = b->specs[--b->n_specs];
}

void specs_done(struct binder *b)
{
	for (size_t i = 0; i < b->n_specs; i++)
		free(b->specs[i].slot);
	free(b->specs);
}

/* --- what a spec says --- */

struct edits spec_story(const struct ledger_owner *o, const struct binding_slot *slots, size_t n,
			struct arena *a)
{
	_cleanup_strbuf_ struct strbuf binding = STRBUF_INIT;
	struct edits e = { .envs = arena_array(a, 3, sizeof(*e.envs)) };

	for (size_t i = 0; i < n; i++)
		strbuf_printf(&binding, "%s%s=%s", i ? "," : "", slots[i].id, slots[i].dev->id);
	e.envs[e.n_envs++] = (struct kv) { ENV_BINDING, arena_strdup(a, strbuf_str(&binding)) };
	e.envs[e.n_envs++] = (struct kv) { ENV_CONTAINER, arena_printf(a, "%s/%s/%s", o->ns, o->pod,
								       o->container ? o->container : "") };
	if (o->uid && *o->uid)
		e.envs[e.n_envs++] = (struct kv) { ENV_UID, o->uid };
	return e;
}

/* "slot=vf,slot=vf" */
static const char *vf_of_slot(const char *binding, const char *slot, struct arena *a)
{
	size_t len = strlen(slot);

	for (const char *s = binding; *s; s += strspn(s, ",")) {
		size_t n = strcspn(s, ",");

		if (n > len && !strncmp(s, slot, len) && s[len] == '=')
			return arena_printf(a, "%.*s", (int)(n - len - 1), s + len + 1);
		s += n;
	}
	return NULL;
}

static void read_owner(const char *text, struct spec_facts *facts, struct arena *a)
{
	const char *pod = strchr(text, '/'), *container = pod ? strchr(pod + 1, '/') : NULL;

	if (!container)
		return;
	facts->owner.ns = arena_printf(a, "%.*s", (int)(pod - text), text);
	facts->owner.pod = arena_printf(a, "%.*s", (int)(container - pod - 1), pod + 1);
	facts->owner.container = container + 1;
}

static const char *value_of(const struct item *env, const char *key)
{
	size_t len = strlen(key);

	for (size_t i = 0; env && env->type == ITEM_LIST && i < env->n_kids; i++) {
		const char *s = env->kids[i].string;

		if (s && !strncmp(s, key, len) && s[len] == '=')
			return s + len + 1;
	}
	return NULL;
}

static bool read_facts(const struct item *spec, const char *slot, struct spec_facts *ret, struct arena *a)
{
	const struct item *devices = item_get(spec, "devices"), *device, *env;
	const char *binding, *container, *uid;

	if (!devices || devices->type != ITEM_LIST || devices->n_kids != 1)
		return false;
	device = &devices->kids[0];
	env = item_get(item_get(device, "containerEdits"), "env");
	binding = value_of(env, ENV_BINDING);
	container = value_of(env, ENV_CONTAINER);
	if (!str_eq(item_string(device, "name"), slot) || !binding || !container)
		return false;
	*ret = (struct spec_facts) { .slot = slot, .vf = vf_of_slot(binding, slot, a) };
	read_owner(container, ret, a);
	uid = value_of(env, ENV_UID);
	ret->owner.uid = uid ? uid : "";
	return ret->vf && ret->owner.pod;
}

/* --- files --- */

static const char *spec_path(const struct binder *b, const char *slot, struct arena *a)
{
	return arena_printf(a, "%s/%s", b->env.cdi_dir, cdi_file_name(slot, a));
}

/* A regular file's text in the arena; -errno. */
static int read_file(const char *path, struct arena *a, const char **ret)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct stat st;
	size_t len = 0;
	char *text;
	ssize_t n;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EISDIR;
	if ((uint64_t)st.st_size > SPEC_BYTES_MAX)
		return -EFBIG;
	text = arena_alloc(a, (size_t)st.st_size + 1);
	while (len < (size_t)st.st_size && (n = read(fd, text + len, (size_t)st.st_size - len)) != 0) {
		if (n < 0 && errno != EINTR)
			return -errno;
		len += n > 0 ? (size_t)n : 0;
	}
	*ret = text;
	return 0;
}

bool spec_exists(const struct binder *b, const char *slot)
{
	_cleanup_arena_ struct arena *a = arena_new(512);

	return access(spec_path(b, slot, a), F_OK) == 0;
}

static int write_file(const struct binder *b, const char *path, const char *temporary, const char *text,
		      struct err *err)
{
	const struct file_new f = {
		.dir = AT_FDCWD, .name = path, .temporary = temporary, .mode = FILE_MODE
	};
	int r;

	if (mkdir(b->env.cdi_dir, DIR_MODE) < 0 && errno != EEXIST)
		return err_sys(err, "make the CDI directory %s", b->env.cdi_dir);
	r = file_write(&f, text, strlen(text), NULL);
	return r < 0 ? err_set(err, -r, "write CDI spec %s: %s", path, strerror(-r)) : 0;
}

/* It has our name; what it is, it says itself. What does not parse was ours, and what we wrote is. */
static bool is_foreign(const struct spec_file *ours, const char *text, const char *path, struct arena *a)
{
	const struct item *spec;
	const char *kind;

	if (ours && ours->hash == hash_of(text))
		return false;
	if (document_parse(text, strlen(text), path, a, &spec, NULL) < 0)
		return false;
	kind = item_string(spec, "kind");
	return kind && strcmp(kind, CDI_KIND) != 0;
}

int spec_write(struct binder *b, const char *slot, const char *text, bool *ret_replaced, struct err *err)
{
	_cleanup_arena_ struct arena *a = arena_new(8192);
	const char *path = spec_path(b, slot, a), *old = NULL;
	const struct spec_file *ours = remembered(b, slot);
	int r = read_file(path, a, &old);

	if (r == -EISDIR)
		return err_set(err, EISDIR, "CDI spec %s: something that is no file is in its place", path);
	if (old && is_foreign(ours, old, path, a))
		return err_set(err, EEXIST, "CDI spec %s: somebody else's file has its name", path);
	if (old && ours && ours->hash != hash_of(old))
		binder_say(b, "CDI spec %s was changed by somebody else; it is written anew", path);
	*ret_replaced = old && strcmp(old, text) != 0;
	if (!old || *ret_replaced) {
		r = write_file(b, path, arena_printf(a, "%s/.%s.tmp", b->env.cdi_dir, cdi_file_name(slot, a)),
			       text, err);
		if (r < 0)
			return r;
	}
	remember(b, slot, text);
	return 0;
}

void spec_remove(struct binder *b, const char *slot)
{
	_cleanup_arena_ struct arena *a = arena_new(8192);
	const char *path = spec_path(b, slot, a), *old = NULL;
	bool ours = read_file(path, a, &old) == 0 && !is_foreign(remembered(b, slot), old, path, a);

	forget(b, slot);
	if (!ours)
		return;
	if (unlink(path) < 0 && errno != ENOENT)
		binder_say(b, "CDI spec %s of a free slot cannot be removed: %s", path, strerror(errno));
}

/* --- at the start --- */

static void scan_one(struct binder *b, const char *name, const char *slot,
		     void (*found)(struct binder *b, const struct spec_facts *facts), struct arena *a)
{
	const char *path = arena_printf(a, "%s/%s", b->env.cdi_dir, name), *text;
	const struct item *spec;
	struct spec_facts facts;
	struct err err = { 0 };
	int r = read_file(path, a, &text);

	if (r == -EISDIR)
		return;
	if (r < 0) {
		binder_say(b, "CDI spec %s cannot be read: %s", path, strerror(-r));
		return;
	}
	if (document_parse(text, strlen(text), path, a, &spec, &err) < 0)
		binder_say(b, "CDI spec %s; it is written anew when its container starts", err.msg);
	else if (!str_eq(item_string(spec, "kind"), CDI_KIND))
		return;
	else if (!read_facts(spec, slot, &facts, a))
		binder_say(
			b,
			"CDI spec %s does not say whose it is; it is written anew when its container starts",
			path);
	else {
		remember(b, slot, text);
		found(b, &facts);
	}
}

static bool is_left_over(const char *name, struct arena *a)
{
	size_t len = strlen(name), suffix = strlen(".tmp");

	return name[0] == '.' && len > suffix && !strcmp(name + len - suffix, ".tmp") &&
	       cdi_slot_of_file(arena_printf(a, "%.*s", (int)(len - suffix - 1), name + 1), a);
}

void spec_scan(struct binder *b, void (*found)(struct binder *b, const struct spec_facts *facts))
{
	DIR *dir = opendir(b->env.cdi_dir);
	struct dirent *e;

	if (!dir)
		return; /* made with the first spec */
	while ((e = readdir(dir))) {
		_cleanup_arena_ struct arena *a = arena_new(8192);
		const char *slot = cdi_slot_of_file(e->d_name, a);

		if (slot)
			scan_one(b, e->d_name, slot, found, a);
		else if (is_left_over(e->d_name, a))
			unlink(arena_printf(a, "%s/%s", b->env.cdi_dir, e->d_name));
	}
	closedir(dir);
}
