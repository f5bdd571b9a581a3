/* railmate-cni: one invocation of a CNI plugin, shared by its files. A slot becomes the VF that
 * railmated binds, and a delegate does the rest; a failed ADD is undone. Strings live in the
 * invocation's arena. */
#ifndef RAILMATE_CMD_CNI_H
#define RAILMATE_CMD_CNI_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct arena;
struct control_bound;
struct err;
struct item;
struct strbuf;

/* The CNI specification's error codes; from 100 on they are ours. railmate-cni(8) lists them. */
enum cni_code {
	CNI_INCOMPATIBLE = 1,
	CNI_NO_CONTAINER = 3,
	CNI_ENVIRONMENT = 4,
	CNI_IO = 5,
	CNI_DECODE = 6,
	CNI_CONFIG = 7,
	CNI_TRY_AGAIN = 11,
	CNI_NOT_AVAILABLE = 50,
	CNI_NO_SLOT = 100,
	CNI_DELEGATE = 101,
	CNI_TWICE = 102,
	CNI_NOT_THIS_PODS = 103,
};

/* --- error.c: errors, as the container runtime reads them --- */

struct cni_error {
	enum cni_code code;
	char msg[480];
};
/* Returns -1. */
int cni_set(struct cni_error *e, enum cni_code code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
int cni_from(struct cni_error *e, enum cni_code code, const struct err *err);

/* --- trusted.c: files that only root can have written --- */

/*
 * -EPERM: the owner is neither root nor the user of this process, others may write, or the file is
 * a symbolic link; -EBADMSG: no directory, no regular file, or too large; else open()'s own.
 */
int trusted_open_dir(const char *path, struct err *err);
/* name below dir, path for sentences. The text ends with a NUL and lives in the arena. */
int trusted_read(int dir, const char *name, const char *path, struct arena *a, const char **ret,
		 size_t *ret_len, struct err *err);

/* --- settings.c: the paths of this node --- */

/* Absolute; no slash at the end. */
struct settings {
	const char *control_socket, *state_dir, *devinfo_dir;
};

const char *settings_path(void); /* of the file */
/* By its key in the file; NULL: there is none. */
const char *settings_get(const struct settings *s, const char *key);
int settings_parse(const char *text, size_t len, const char *name, struct arena *a,
		   struct settings *ret, struct err *err);
/* The defaults where there is no file. */
int settings_read(struct arena *a, struct settings *ret, struct err *err);

/* --- conf.c: the network configuration on standard input --- */

struct conf {
	const struct item *top, *delegate;
	const char *version, *name;
	const char *type;	     /* the delegate's */
	const char *id;		     /* deviceID: a slot, or a PCI address; NULL: none is given */
	const char *misplaced;	     /* a sentence: it names paths of the node; NULL: it does not */
	const char *devinfo;	     /* where Multus wants a device-info file; NULL: nowhere */
	const char *devinfo_refused; /* that other place */
};

bool conf_version_known(const char *version);
extern const char *const conf_versions[]; /* ends with NULL */
/* ret->version is set as soon as it is known, also on failure: errors carry it. */
int conf_read(const char *text, size_t len, const struct settings *s, struct arena *a,
	      struct conf *ret, struct cni_error *e);
/* A name of the specification: a letter or digit, then these and "_.-". */
bool conf_is_name(const char *s);
/*
 * Does a plugin find this field under that key? Those in Go do in any case, and take a long s
 * (U+017F) for an s, a Kelvin sign (U+212A) for a k.
 */
bool conf_is_field(const char *key, const char *name);
/*
 * The delegate's configuration: its own object with name, version and runtime's additions, for this
 * VF (NULL: for none). No key of it names another device.
 */
void conf_for_delegate(const struct conf *c, const char *vf, struct strbuf *out);
bool conf_is_pci_address(const char *id);

/* --- plugin.c: another plugin, executed --- */

/* CNI_*; NULL: not set. */
struct cni_env {
	const char *command, *container, *netns, *ifname, *args, *path;
};

struct plugin_result {
	int status; /* exit status; 0 done */
	const char *out;
	size_t len;
	const struct item *json; /* of out; NULL: it is none, or empty */
};

/* May it be the name of a program? It is not a path and does not begin with a dot. */
bool plugin_is_name(const char *type);
/* The program in CNI_PATH. */
int plugin_find(const char *type, const char *dirs, struct arena *a, const char **ret,
		struct cni_error *e);
/*
 * Reads the output of a plugin, path for sentences. A plugin that fails has the reason in an error
 * object; one that fails otherwise is none, or broken: -1. The text ends with a NUL and is
 * borrowed.
 */
int plugin_judge(const char *path, int status, const char *text, size_t len, struct arena *a,
		 struct plugin_result *ret, struct cni_error *e);
/* -1: it could not be run, was killed, or failed without a CNI error object on its output. */
int plugin_run(const char *program, const struct cni_env *env, const char *conf, size_t len,
	       struct arena *a, struct plugin_result *ret, struct cni_error *e);

/* --- state.c: the memory for DEL, one file an attachment --- */

struct state {
	const char *network, *slot, *vf, *args, *type;
	const char *devinfo; /* the device-info file that ADD made; NULL: it made none */
	const char *conf;
	size_t conf_len; /* the delegate's */
};

void state_write(const struct state *s, struct strbuf *out);
/* Durable when it returns 0. -EEXIST: there is one already, which stays. */
int state_create(const char *dir, const char *container, const char *ifname, const struct state *s,
		 struct err *err);
int state_parse(const char *text, size_t len, const char *path, struct arena *a, struct state *ret,
		struct err *err);
/* -ENOENT: none. -EBADMSG: not ours, or torn. -EPERM: others than root may have written it. */
int state_read(const char *dir, const char *container, const char *ifname, struct arena *a,
	       struct state *ret, struct err *err);
int state_remove(const char *dir, const char *container, const char *ifname,
		 struct err *err); /* nothing to remove is fine */
/* fn returns non-zero to stop; that is returned. */
int state_each(const char *dir, int (*fn)(void *arg, const char *container, const char *ifname),
	       void *arg, struct err *err);

/* --- devinfo.c --- */

/* The name that path has in dir; NULL: it is not directly in there, or no proper name. */
const char *devinfo_name(const char *dir, const char *path);
/* owner: a name that no other attachment has. -EEXIST: there is one already, which stays. */
int devinfo_create(const char *dir, const char *name, const char *owner,
		   const struct control_bound *bound, struct err *err);
/* Nothing to remove is fine. */
int devinfo_remove(const char *dir, const char *name, struct err *err);

/* --- commands.c --- */

struct invocation {
	struct cni_env env;
	struct settings settings;
	struct conf conf;
	struct arena *arena;
};

/* Print the runtime's result on standard output. Return the exit status, or -1 with e. */
/* The hook of a container whose VF this is (latebind/cdi.c). */
int command_hook(const char *vf, struct err *err);
int command_add(const struct invocation *in, struct cni_error *e);
int command_del(const struct invocation *in, struct cni_error *e);
int command_check(const struct invocation *in, struct cni_error *e);
int command_status(const struct invocation *in, struct cni_error *e);
int command_gc(const struct invocation *in, struct cni_error *e); /* gc.c */

/* The delegate has taken it down: the device-info file (NULL: none of ours) and the state go. */
int forget(const struct invocation *in, const char *container, const char *ifname,
	   const char *devinfo, struct err *err);
/* Does another pod hold this VF now, by railmated? Not while it cannot be asked. args: CNI_ARGS of
 * the attachment. */
bool is_anothers(const struct invocation *in, const char *vf, const char *args);
/* The delegate's words are ours. */
int print_result(const struct plugin_result *r, struct cni_error *e);

/* --- install.c --- */

/* Copies this program into dir, replacing an older one at once. */
int install_into(const char *dir, struct err *err);
/* Makes this file the settings of the node, if it can be. */
int install_settings(const char *file, struct err *err);

#endif
