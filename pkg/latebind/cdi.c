/*
 * Our files in the runtime's CDI directory. They are renamed into place from the same directory,
 * under a name that no runtime reads: only then every runtime notices (docs/design/kubelet.md §4).
 * Nothing is synced to the disk: the directory is emptied by a reboot, and PreStartContainer writes
 * missing specs.
 */
#include "latebind/latebind-internal.h"

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
#include "base/list.h"
#include "base/mem.h"
#include "base/str.h"
#include "document/document.h"
#include "grant/claims.h"
#include "pool/node.h"
#include "render/cdi.h"
#include "tracker/tracker.h"

#define SPEC_BYTES_MAX (4u << 20)
#define DIR_MODE       0755
#define FILE_MODE      0644

/* --- the specs that are known --- */

static void forget(struct spec_file *s)
{
	for (size_t i = 0; i < s->n_slots; i++)
		free(s->slots[i]);
	free(s->slots);
	free(s->file);
	free(s->text);
}

static bool has_slot(const struct spec_file *s, const char *slot)
{
	return list_has((const char *const *)s->slots, s->n_slots, slot);
}

static struct spec_file *find_spec(const struct latebind *b, const char *file)
{
	for (size_t i = 0; i < b->n_specs; i++) {
		if (!strcmp(b->specs[i].file, file))
			return &b->specs[i];
	}
	return NULL;
}

/* file: the slot that names it. */
static void remember(struct latebind *b, const char *file, const struct ids *slots,
		     const char *text)
{
	struct spec_file s = { .file = xstrdup(file),
			       .slots = xcalloc(slots->n, sizeof(*s.slots)),
			       .n_slots = slots->n,
			       .text = xstrdup(text) };
	struct spec_file *at = find_spec(b, file);

	for (size_t i = 0; i < slots->n; i++)
		s.slots[i] = xstrdup(slots->v[i]);
	if (at) {
		forget(at);
	} else {
		b->specs = xgrow(b->specs, &b->cap_specs, b->n_specs + 1, sizeof(*b->specs));
		at = &b->specs[b->n_specs++];
	}
	*at = s;
	latebind_restore_later(b);
}

void latebind_specs_done(struct latebind *b)
{
	for (size_t i = 0; i < b->n_specs; i++)
		forget(&b->specs[i]);
	free(b->specs);
}

/* --- files --- */

static const char *spec_path(const struct latebind *b, const char *slot, struct arena *a)
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
	while (len < (size_t)st.st_size &&
	       (n = read(fd, text + len, (size_t)st.st_size - len)) != 0) {
		if (n < 0 && errno != EINTR)
			return -errno;
		len += n > 0 ? (size_t)n : 0;
	}
	*ret = text;
	return 0;
}

bool latebind_spec_exists(const struct latebind *b, const char *slot)
{
	_cleanup_arena_ struct arena *a = arena_new(512);

	for (size_t i = 0; i < b->n_specs; i++) {
		if (has_slot(&b->specs[i], slot) &&
		    access(spec_path(b, b->specs[i].file, a), F_OK) == 0)
			return true;
	}
	return false;
}

/* Is a file of our name another program's? Its kind tells. One that does not parse, or has our
 * text, is ours. */
static bool is_foreign(const char *ours, const char *text, const char *path, struct arena *a)
{
	const struct item *spec;
	const char *kind;

	if (ours && !strcmp(ours, text))
		return false;
	if (document_parse(text, strlen(text), path, a, &spec, NULL) < 0)
		return false;
	kind = item_string(spec, "kind");
	return kind && strcmp(kind, CDI_KIND) != 0;
}

static void remove_at(struct latebind *b, size_t i)
{
	_cleanup_arena_ struct arena *a = arena_new(8192);
	struct spec_file *s = &b->specs[i];
	const char *path = spec_path(b, s->file, a), *old = NULL;

	if (read_file(path, a, &old) == 0 && !is_foreign(s->text, old, path, a) &&
	    unlink(path) < 0 && errno != ENOENT)
		latebind_say(b, "the CDI spec of a free slot cannot be removed path=%s error=%s",
			     path, strerror(errno));
	forget(s);
	*s = b->specs[--b->n_specs];
}

static int write_text(const struct latebind *b, const char *slot, const char *text, struct err *err)
{
	_cleanup_arena_ struct arena *a = arena_new(512);
	const char *path = spec_path(b, slot, a);
	const struct file_new f = {
		.dir = AT_FDCWD,
		.name = path,
		.temporary = arena_printf(a, "%s/.%s.tmp", b->env.cdi_dir, cdi_file_name(slot, a)),
		.mode = FILE_MODE,
	};
	int r;

	if (mkdir(b->env.cdi_dir, DIR_MODE) < 0 && errno != EEXIST)
		return err_sys(err, "make the CDI directory %s", b->env.cdi_dir);
	r = file_write(&f, text, strlen(text), NULL);
	return r < 0 ? err_set(err, -r, "write CDI spec %s: %s", path, strerror(-r)) : 0;
}

int latebind_spec_write(struct latebind *b, const struct ids *slots, const char *text,
			bool *ret_written, struct err *err)
{
	_cleanup_arena_ struct arena *a = arena_new(8192);
	const char *path = spec_path(b, slots->v[0], a), *old = NULL, *ours;
	const struct spec_file *before;
	int r = read_file(path, a, &old);

	/* Two specs with one device make both unusable: those that share a slot with the new one go
	 * first, but the one that it replaces. */
	for (size_t i = b->n_specs; i-- > 0;) {
		bool shares = false;

		for (size_t k = 0; k < slots->n; k++)
			shares |= has_slot(&b->specs[i], slots->v[k]);
		if (shares && strcmp(b->specs[i].file, slots->v[0]) != 0)
			remove_at(b, i);
	}
	before = find_spec(b, slots->v[0]);
	ours = before ? before->text : NULL;
	if (r == -EISDIR)
		return err_set(err, EISDIR, "CDI spec %s: exists and is not a regular file", path);
	if (old && is_foreign(ours, old, path, a))
		return err_set(err, EEXIST, "CDI spec %s: exists and was not written by railmated",
			       path);
	if (old && ours && strcmp(ours, old) != 0)
		latebind_say(
			b, "a CDI spec was changed by another program; it is written again path=%s",
			path);
	*ret_written = !old || strcmp(old, text) != 0;
	r = *ret_written ? write_text(b, slots->v[0], text, err) : 0;
	if (r == 0)
		remember(b, slots->v[0], slots, text);
	return r;
}

static bool is_needed(const struct latebind *b, const struct spec_file *s)
{
	for (size_t i = 0; i < s->n_slots; i++) {
		if (holds_needs_record(tracker_holds(b->env.tracker), NULL, s->slots[i]))
			return true;
	}
	return false;
}

void latebind_specs_tidy(struct latebind *b)
{
	for (size_t i = b->n_specs; i-- > 0;) {
		if (!is_needed(b, &b->specs[i]))
			remove_at(b, i);
	}
}

void latebind_specs_restore(struct latebind *b)
{
	for (size_t i = 0; i < b->n_specs; i++) {
		_cleanup_arena_ struct arena *a = arena_new(512);
		const struct spec_file *s = &b->specs[i];
		struct err err = { 0 };

		if (access(spec_path(b, s->file, a), F_OK) == 0 || !is_needed(b, s))
			continue;
		if (write_text(b, s->file, s->text, &err) == 0)
			latebind_say(b, "a CDI spec was removed; it is written again path=%s",
				     s->file);
		else
			latebind_say(b, "a CDI spec cannot be written again error=%s", err.msg);
	}
}

/* --- at the start --- */

/* False: it could not be read, which may pass. */
static bool scan_one(struct latebind *b, const char *name,
		     void (*found)(struct latebind *b, const struct claims *claims,
				   const char *path),
		     struct arena *a)
{
	const char *path = arena_printf(a, "%s/%s", b->env.cdi_dir, name), *text;
	const struct item *spec;
	struct claims claims;
	struct err err = { 0 };
	int r = read_file(path, a, &text);

	if (r == -EISDIR || r == -ENOENT)
		return true;
	if (r < 0) {
		latebind_say(b, "a CDI spec cannot be read path=%s error=%s", path, strerror(-r));
		return r == -EFBIG || r == -ELOOP;
	}
	if (document_parse(text, strlen(text), path, a, &spec, &err) < 0) {
		latebind_say(
			b,
			"a CDI spec is damaged; it is written anew when its container starts error=%s",
			err.msg);
	} else if (!str_eq(item_string(spec, "kind"), CDI_KIND)) {
		return true;
	} else if (!grant_claims_of_spec(spec, &claims, a)) {
		latebind_say(
			b,
			"a CDI spec does not say whose it is; it is written anew when its container starts path=%s",
			path);
	} else {
		struct ids slots = { .v = arena_array(a, claims.n, sizeof(*slots.v)) };

		for (size_t i = 0; i < claims.n; i++)
			slots.v[slots.n++] = claims.v[i].slot;
		remember(b, cdi_slot_of_file(name, a), &slots, text);
		found(b, &claims, path);
	}
	return true;
}

bool latebind_spec_scan(struct latebind *b,
			void (*found)(struct latebind *b, const struct claims *claims,
				      const char *path))
{
	DIR *dir = opendir(b->env.cdi_dir);
	const struct dirent *e;
	bool complete = true;

	if (!dir && (errno == ENOENT || errno == ENOTDIR))
		return true; /* made with the first spec, if it can be */
	if (!dir) {
		latebind_say(b, "the CDI directory cannot be read path=%s error=%s", b->env.cdi_dir,
			     strerror(errno));
		return false;
	}
	while (errno = 0, (e = readdir(dir))) {
		_cleanup_arena_ struct arena *a = arena_new(8192);
		const char *name = e->d_name;
		size_t len = strlen(name), suffix = strlen(".tmp");

		if (cdi_slot_of_file(name, a)) {
			complete &= scan_one(b, name, found, a);
			continue;
		}
		/* Left over by a daemon that ended while it wrote. */
		if (name[0] == '.' && len > suffix && !strcmp(name + len - suffix, ".tmp") &&
		    cdi_slot_of_file(arena_printf(a, "%.*s", (int)(len - suffix - 1), name + 1), a))
			unlink(arena_printf(a, "%s/%s", b->env.cdi_dir, name));
	}
	complete &= errno == 0;
	closedir(dir);
	return complete;
}
