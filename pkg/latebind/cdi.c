/*
 * What a bound container is started with: its grant as specs in the runtime's CDI directory, or
 * the VF that a CNI plugin names. latebind.c asks.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
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
#include "choice/choice.h"
#include "config/config.h"
#include "document/document.h"
#include "grant/records.h"
#include "grant/grant.h"
#include "latebind/latebind-internal.h"
#include "pool/node.h"
#include "pool/slots.h"
#include "render/cdi.h"
#include "tracker/tracker.h"

/* --- specs --- */

/*
 * Our files in the runtime's CDI directory. They are renamed into place from the same directory,
 * under a name that no runtime reads: only then every runtime notices (docs/design/kubelet.md §4).
 * Nothing is synced to the disk: the directory is emptied by a reboot, and PreStartContainer writes
 * missing specs.
 */

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

/* The spec of a container: its slots of late pools, the lowest first. ret_written: the file was not
 * there, or had another text. */
static int spec_write(struct latebind *b, const struct ids *slots, const char *text,
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

/* --- the container's grant --- */

/* Bound VFs → the grant of the container, as with early binding, for all its pools together. */
/* --- the container's VFs --- */

/* Late pools as they are bound here; early ones as the kubelet lists them. */
void latebind_note_pool_vfs(struct request *r, const struct target *t)
{
	struct pool_vfs *held = NULL;
	size_t n_held = 0;

	if (t->container)
		n_held = grant_held_vfs(r->node, tracker_ledger(r->b->env.tracker), t->container,
					r->arena, &held);
	r->c.pool_vfs = arena_array(r->arena, r->n_bindings + n_held, sizeof(*r->c.pool_vfs));
	for (size_t i = 0; i < r->n_bindings; i++) {
		const struct pool *pool = r->bindings[i].pool;
		struct pool_vfs *vfs = r->c.pool_vfs;

		while (vfs < r->c.pool_vfs + r->c.n_pool_vfs && vfs->pool != pool)
			vfs++;
		if (vfs == r->c.pool_vfs + r->c.n_pool_vfs) {
			vfs->pool = pool;
			vfs->vfs.v = arena_array(r->arena, r->n_bindings, sizeof(*vfs->vfs.v));
			r->c.n_pool_vfs++;
		}
		vfs->vfs.v[vfs->vfs.n++] = r->bindings[i].dev->id;
	}
	for (size_t i = 0; i < n_held; i++) {
		if (held[i].pool->cfg->binding != BINDING_LATE)
			r->c.pool_vfs[r->c.n_pool_vfs++] = held[i];
	}
}

/* --- files --- */

/* --- specs --- */

static int by_slot(const void *x, const void *y)
{
	const struct cdi_entry *a = x, *b = y;

	return strcmp(a->slot, b->slot);
}

/*
 * Claims are prepared before CNI gives VFs their addresses: the hook lets railmated look again when
 * the container is made (latebind_refresh()). It lies beside the probe, which containers have
 * mounted from there. NULL: it is not there, or PreStartContainer follows.
 */
static const char *const *hook_of(const struct request *r)
{
	const char **words = arena_array(r->arena, 4, sizeof(*words));

	if (!r->b->env.probe || !r->n_mounts || !pool_slot_claim(r->bindings[0].id, r->arena))
		return NULL;
	words[0] = arena_printf(r->arena, "%s/railmate-cni", r->b->env.probe);
	words[1] = "--hook";
	words[2] = r->bindings[0].dev->id;
	return access(words[0], X_OK) == 0 ? words : NULL;
}

static int write_spec(struct request *r, const struct contents_in *in, const struct edits *env,
		      struct err *err)
{
	struct cdi_entry *v = arena_array(r->arena, r->n_bindings, sizeof(*v));
	struct ids slots = { arena_array(r->arena, r->n_bindings, sizeof(*slots.v)),
			     r->n_bindings };
	struct edits common;
	bool written = false;
	int result = 0;

	for (size_t i = 0; result == 0 && i < r->n_bindings; i++) {
		const struct binding_slot *slot = &r->bindings[i];

		v[i].slot = slot->id;
		result = grant_nodes(in, slot->pool, slot->dev->id, r->arena, &v[i].edits, err);
	}
	if (result < 0 || !r->n_bindings)
		return result;
	qsort(v, r->n_bindings, sizeof(*v), by_slot);
	for (size_t i = 0; i < r->n_bindings; i++)
		slots.v[i] = v[i].slot;
	/* The edits that the container has once, for any device that the runtime takes first. */
	common = (struct edits) { .envs = env->envs,
				  .n_envs = env->n_envs,
				  .mounts = r->mounts,
				  .n_mounts = r->n_mounts,
				  .hook = hook_of(r) };
	result = spec_write(r->b, &slots, render_cdi(&common, v, r->n_bindings, r->arena), &written,
			    err);
	r->written |= written;
	return result;
}

/* The spec's claim: the pod that has it. */
static struct edits record_of(const struct request *r, const struct ledger *l)
{
	struct claims claims = { .owner = r->c.owner,
				 .v = arena_array(r->arena, r->n_bindings, sizeof(*claims.v)) };

	claims.owner.container = r->c.owner.container ? r->c.owner.container : "";
	claims.owner.uid = r->c.owner.uid ? r->c.owner.uid : "";
	for (size_t i = 0; i < r->n_bindings; i++) {
		const char *vf = r->bindings[i].dev->id;
		const struct ledger_hold *hold = ledger_find(l, vf);

		claims.v[claims.n++] = (struct claimed_vf) { .vf = vf,
							     .slot = r->bindings[i].id,
							     .number = hold ? hold->decision : 0 };
	}
	return grant_claims_to_spec(&claims, r->arena);
}

static int write_all(struct request *r, const struct contents_in *in, struct err *err)
{
	struct latebind *b = r->b;
	struct edits parts[2], env;
	struct err warning = { 0 };
	struct contents c;
	int result = grant_render(in, r->arena, &c, err);

	if (result < 0)
		return result;
	if (in->rundir && grant_write(b->env.rundir, &r->c, &c, &warning) < 0)
		latebind_say(
			b,
			"the container starts with files that are not complete pod=%s/%s container=%s error=%s",
			r->c.owner.ns, r->c.owner.pod, r->c.owner.container, warning.msg);
	parts[0] = c.env;
	parts[1] = record_of(r, in->ledger);
	env = cdi_join(parts, 2, r->arena);
	result = write_spec(r, in, &env, err);
	if (result < 0 || !c.doubt || (!in->states && !in->why) || log_rate_count(&b->doubted) > 1)
		return result;
	latebind_say(
		b,
		"the container starts, but some details of its VFs could not be read pod=%s/%s container=%s reason=%s",
		r->c.owner.ns, r->c.owner.pod, r->c.owner.container, c.doubt);
	return 0;
}

/* The slots of the spec that has this one; NULL: there is none. */
static const struct spec_file *spec_of(const struct latebind *b, const char *slot)
{
	for (size_t i = 0; slot && i < b->n_specs; i++) {
		if (has_slot(&b->specs[i], slot))
			return &b->specs[i];
	}
	return NULL;
}

/* The slots of the spec that have VFs, behind those that r has. */
static void add_live(struct request *r, const struct spec_file *spec)
{
	struct binding_slot *v = arena_array(r->arena, r->n_bindings + spec->n_slots, sizeof(*v));
	size_t n = r->n_bindings;

	if (n)
		memcpy(v, r->bindings, n * sizeof(*v));
	for (size_t i = 0; i < spec->n_slots; i++) {
		const struct ledger_hold *h = latebind_live_hold(r->b, spec->slots[i]);
		const struct pool *pool = h ? node_pool(r->node, h->resource) : NULL;
		const struct pool_dev *dev = pool ? pool_find(pool, h->vf) : NULL;
		size_t k = 0;

		while (k < n && strcmp(v[k].id, spec->slots[i]) != 0)
			k++;
		if (dev && k == n)
			v[n++] = (struct binding_slot) { .id = arena_strdup(r->arena, h->slot),
							 .pool = pool,
							 .dev = dev };
	}
	r->bindings = v;
	r->n_bindings = n;
}

/* A claim that pods share is in one spec with what each of them has beside it: a device that is in
 * none cannot be given to a container that restarts. */
static void join_specs(struct request *r)
{
	const struct target t = { 0 };
	size_t n = r->n_bindings;

	for (size_t i = 0; r->claim && i < n; i++) {
		const struct spec_file *spec = spec_of(r->b, r->bindings[i].id);

		if (spec)
			add_live(r, spec);
	}
	if (r->n_bindings == n)
		return;
	r->c.n_pool_vfs = 0;
	latebind_note_pool_vfs(r, &t);
}

int latebind_render(struct request *r, const struct vf_state *states, size_t n, const char *why,
		    struct err *err)
{
	struct contents_in in = { .node = r->node,
				  .root = r->b->env.root,
				  .ledger = tracker_ledger(r->b->env.tracker),
				  .container = &r->c,
				  .states = states,
				  .n_states = states ? n : 0,
				  .why = why,
				  .cdi = true };
	struct err warning = { 0 };
	int made;

	join_specs(r);
	made = r->b->env.rundir ? grant_make_directory(r->b->env.rundir, r->b->env.probe, &r->c,
						       r->arena, r->mounts, &warning)
				: 0;

	/* Without its directory a container starts too. */
	if (made < 0)
		latebind_say(
			r->b,
			"the container starts without /run/railmate pod=%s/%s container=%s error=%s",
			r->c.owner.ns, r->c.owner.pod, r->c.owner.container, warning.msg);
	else if (made)
		in.rundir = r->b->env.rundir;
	r->n_mounts = made > 0 ? (size_t)made : 0;
	if (write_all(r, &in, err) == 0)
		return 0;
	/* The kubelet tries again, whatever it was. */
	return err_set(err, EAGAIN, "%s", arena_strdup(r->arena, err->msg));
}

/* --- a VF that a CNI plugin names --- */

/* A network names a VF by its PCI address: may the pod have it? Who holds it is the answer of
 * holds, to whom the kubelet gave it is that of its checkpoint and of PodResources. */

static struct gpu_set gpus_of(const struct ledger_decision *d, const struct node *node,
			      struct arena *a)
{
	struct gpu_set gpus = { 0 };
	int *v = arena_array(a, d ? d->n_gpus : 0, sizeof(*v));
	struct bdf bdf;

	for (size_t i = 0; d && i < d->n_gpus; i++) {
		int pci = bdf_parse(d->gpus[i], &bdf) == 0 ? hw_find_pci(node->inv, bdf) : -1;

		if (pci >= 0)
			v[gpus.n++] = pci;
	}
	gpus.n = list_unique_int(v, gpus.n);
	gpus.v = v;
	return gpus;
}

bool latebind_recall(struct request *r, const char *vf)
{
	const struct ledger *l = tracker_ledger(r->b->env.tracker);
	const struct ledger_hold *hold = ledger_find(l, vf);
	const struct spec_file *spec = hold ? spec_of(r->b, hold->slot) : NULL;
	const struct target t = { 0 };

	if (!spec || hold->draining || !*hold->owner.claim)
		return false;
	r->node = node_ref(r->b->node);
	r->c.owner = ledger_copy_owner(&hold->owner, r->arena);
	r->c.gpus = gpus_of(ledger_decision(l, hold->decision), r->node, r->arena);
	add_live(r, spec);
	latebind_note_pool_vfs(r, &t);
	return r->n_bindings > 0;
}

static bool is_named(const struct request *r, const struct ledger_hold *hold)
{
	const char *resource = hold->resource, *id = r->slots.v[0];
	const struct pool *pool = node_pool(r->b->node, resource);
	const struct pool_dev *dev = pool ? pool_find(pool, hold->vf) : NULL;
	unsigned asked, number;
	int numa;

	if (hold->slot && pool_slot_parse(resource, id, &numa, &asked) && numa == SLOT_ANY)
		return pool_slot_parse(resource, hold->slot, &numa, &number) && number == asked;
	return dev && strcmp(dev->id, id) != 0 && !strcmp(pool_dev_place(dev), id);
}

bool latebind_find_claimed(struct request *r)
{
	const struct ledger_owner pod = { .ns = r->pod.ns, .pod = r->pod.name, .uid = r->pod.uid };
	const struct ledger *l = tracker_ledger(r->b->env.tracker);
	const struct ledger_hold *found = NULL;
	size_t n = 0;

	for (size_t i = 0; r->slots.n == 1 && i < ledger_holds(l); i++) {
		const struct ledger_hold *hold = ledger_hold_at(l, i);

		if (!*hold->owner.claim || hold->draining || !is_named(r, hold) ||
		    holds_whose(latebind_holds(r->b), hold->vf, &pod) != HOLDS_OF_POD)
			continue;
		found = hold;
		n++;
	}
	if (n != 1)
		return false;
	r->n_bound = 1;
	r->bound = arena_array(r->arena, 1, sizeof(*r->bound));
	*r->bound = (struct bound) { r->slots.v[0], arena_strdup(r->arena, found->resource),
				     arena_strdup(r->arena, found->vf) };
	return true;
}

bool latebind_names_vf(const struct request *r)
{
	struct bdf bdf;

	return r->pod.name && r->slots.n == 1 && bdf_parse(r->slots.v[0], &bdf) == 0;
}

static bool shows(const struct pod_list *pods, const struct pod_ref *pod, const char *resource,
		  const char *id)
{
	for (size_t i = 0; i < pods->n; i++) {
		const struct pod *p = &pods->v[i];

		for (size_t c = 0;
		     str_eq(p->ns, pod->ns) && str_eq(p->name, pod->name) && c < p->n_containers;
		     c++) {
			for (size_t k = 0; k < p->containers[c].n_held; k++) {
				const struct held *held = &p->containers[c].held[k];

				if (str_eq(held->resource, resource) &&
				    list_has(held->ids.v, held->ids.n, id))
					return true;
			}
		}
	}
	return false;
}

/* Has the kubelet given it to this pod? PodResources, which knows no UIDs, shows no init container.
 */
static bool is_given(const struct request *r, const struct pod_list *pods, const char *resource,
		     const char *id)
{
	const struct holds_entry *v;
	size_t n = tracker_checkpoint(r->b->env.tracker, &v);
	const char *uid = holds_checkpoint_uid(v, n, resource, &id, 1);

	if (*uid && *r->pod.uid)
		return str_eq(uid, r->pod.uid);
	return shows(pods, &r->pod, resource, id);
}

/* NULL: of none. */
static const struct pool *pool_with(const struct node *node, const char *vf)
{
	for (size_t i = 0; i < node->n_pools; i++) {
		if (pool_find(&node->pools[i], vf))
			return &node->pools[i];
	}
	return NULL;
}

int latebind_decide_vf(struct request *r, const struct pod_list *pods, struct err *err)
{
	const struct ledger_owner asks = { .ns = r->pod.ns, .pod = r->pod.name, .uid = r->pod.uid };
	const struct node *node = r->b->node;
	char vf[BDF_STRLEN];
	const struct ledger_hold *hold;
	const struct pool *pool;
	const char *resource;
	struct bdf bdf;
	bool given;
	int pci;

	bdf_parse(r->slots.v[0], &bdf);
	bdf_format(bdf, vf);
	hold = ledger_find(tracker_ledger(r->b->env.tracker), vf);
	pool = pool_with(node, vf);
	resource = hold ? hold->resource : pool ? pool->cfg->resource : NULL;
	pci = hw_find_pci(node->inv, bdf);
	if (pci >= 0 && hw_is_pf(&node->inv->pci[pci]))
		return err_set(
			err, EPERM,
			"%s is a PF, which serves the whole node: railmate-cni attaches VFs only",
			vf);
	if (!resource)
		return err_set(
			err, EPERM,
			"%s is in no pool of railmate, which gave it to no pod: its network has to name the plugin itself, without railmate-cni",
			vf);
	given = is_given(r, pods, resource, hold && hold->slot ? hold->slot : vf);
	switch (holds_whose(latebind_holds(r->b), vf, &asks)) {
	case HOLDS_OF_UNKNOWN:
	case HOLDS_OF_POD:
		if (!given)
			return err_set(err, EPERM, "the kubelet has not given VF %s to pod %s/%s",
				       vf, asks.ns, asks.pod);
		break;
	case HOLDS_OF_ANOTHER:
		return err_set(err, given ? EAGAIN : EPERM,
			       "VF %s is held by pod %s/%s, not by pod %s/%s", vf, hold->owner.ns,
			       hold->owner.pod, asks.ns, asks.pod);
	case HOLDS_OF_NOBODY:
		return err_set(err, given ? EAGAIN : EPERM,
			       "VF %s of %s is given to no container, also none of pod %s/%s", vf,
			       resource, asks.ns, asks.pod);
	}
	r->n_bound = 1;
	r->bound = arena_array(r->arena, 1, sizeof(*r->bound));
	*r->bound = (struct bound) { r->slots.v[0], arena_strdup(r->arena, resource),
				     arena_strdup(r->arena, vf) };
	return 0;
}
