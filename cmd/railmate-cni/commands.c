#include "cni.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "control/control.h"
#include "document/document.h"

/* More than railmated takes at most; less than the container runtime waits. */
#define BIND_TIMEOUT_MS	   15000
#define STATUS_TIMEOUT_MS  2000
#define WHOSE_TIMEOUT_MS   5000
#define REFRESH_TIMEOUT_MS 2000

int print_result(const struct plugin_result *r, struct cni_error *e)
{
	if (fwrite(r->out, 1, r->len, stdout) != r->len || fflush(stdout) != 0)
		return cni_set(e, CNI_IO, "cannot write to standard output: %m");
	return r->status;
}

static int run_delegate(const struct invocation *in, const char *vf, struct plugin_result *ret,
			struct cni_error *e)
{
	_cleanup_strbuf_ struct strbuf conf = STRBUF_INIT;
	const char *program;

	if (plugin_find(in->conf.type, in->env.path, in->arena, &program, e) < 0)
		return -1;
	conf_for_delegate(&in->conf, vf, &conf);
	return plugin_run(program, &in->env, conf.s, conf.len, in->arena, ret, e);
}

static int forward(const struct invocation *in, const char *vf, struct cni_error *e)
{
	struct plugin_result result;

	if (run_delegate(in, vf, &result, e) < 0)
		return -1;
	return print_result(&result, e);
}

/* A value of CNI_ARGS: "IgnoreUnknown=1;K8S_POD_NAMESPACE=team;K8S_POD_NAME=trainer". */
static const char *arg(const char *args, const char *name, struct arena *a)
{
	char *rest = arena_strdup(a, args ? args : ""), *pair;
	size_t len = strlen(name);

	while ((pair = strsep(&rest, ";"))) {
		if (!strncmp(pair, name, len) && pair[len] == '=')
			return pair + len + 1;
	}
	return "";
}

/* The pod is that of CNI_ARGS. */
static int ask_for(const struct invocation *in, struct control_request request, const char *args,
		   unsigned timeout_ms, struct control_reply *ret, struct err *err)
{
	request.ns = arg(args, "K8S_POD_NAMESPACE", in->arena);
	request.pod = arg(args, "K8S_POD_NAME", in->arena);
	request.uid = arg(args, "K8S_POD_UID", in->arena);
	return control_ask(in->settings.control_socket, &request, timeout_ms, in->arena, ret, err);
}

static int refused(int r, const struct err *err, struct cni_error *e)
{
	bool again = r == -ECONNREFUSED || r == -ECONNRESET || r == -ETIMEDOUT || r == -EAGAIN ||
		     r == -EBUSY;

	return cni_from(e,
			again	       ? CNI_TRY_AGAIN
			: r == -ENOENT ? CNI_NO_SLOT
			: r == -EPERM  ? CNI_NOT_THIS_PODS
				       : CNI_IO,
			err);
}

static int ask_whose(const struct invocation *in, const char *vf, const char *args, struct err *err)
{
	struct control_reply reply;

	return ask_for(in, (struct control_request) { .op = CONTROL_WHOSE, .vf = vf }, args,
		       WHOSE_TIMEOUT_MS, &reply, err);
}

/* --- ADD --- */

static int bind_slot(const struct invocation *in, struct control_bound *ret, struct cni_error *e)
{
	const struct control_request request = { .op = CONTROL_BIND, .slot = in->conf.id };
	struct control_reply reply;
	struct err err = { 0 };
	int r;

	r = ask_for(in, request, in->env.args, BIND_TIMEOUT_MS, &reply, &err);
	if (r < 0)
		return refused(r, &err, e);
	for (size_t i = 0; i < reply.n_bound; i++) {
		if (str_eq(reply.bound[i].slot, in->conf.id) &&
		    conf_is_pci_address(reply.bound[i].vf)) {
			*ret = reply.bound[i];
			return 0;
		}
	}
	return cni_set(e, CNI_IO, "railmated bound the container, but names no VF for %s",
		       in->conf.id);
}

/* The files that ADD made here for an attachment, beside its delegate's work. */
struct made {
	const char *vf;
	const char *devinfo; /* NULL: no file */
};

/* The file is for Multus' status annotation; the network works without it. NULL: it was not made.
 */
static const char *write_device(const struct invocation *in, const struct control_bound *bound)
{
	const char *dir = in->settings.devinfo_dir, *path = in->conf.devinfo, *owner;
	struct err err = { 0 };

	if (in->conf.devinfo_refused)
		fprintf(stderr,
			"railmate-cni: network %s: %s is not a file of %s: no device-info file is written\n",
			in->conf.name, document_shown(in->conf.devinfo_refused, in->arena), dir);
	if (!path)
		return NULL;
	owner = arena_printf(in->arena, "%s@%s", in->env.container, in->env.ifname);
	if (devinfo_create(dir, devinfo_name(dir, path), owner, bound, &err) == 0)
		return path;
	fprintf(stderr, "railmate-cni: %s\n", err.msg);
	return NULL;
}

static void remove_devinfo(const struct invocation *in, const char *path)
{
	const char *name = path ? devinfo_name(in->settings.devinfo_dir, path) : NULL;
	struct err err = { 0 };

	if (name && devinfo_remove(in->settings.devinfo_dir, name, &err) < 0)
		fprintf(stderr, "railmate-cni: %s\n", err.msg);
}

/* From here on DEL finds these files. */
static int claim(const struct invocation *in, const struct made *made, struct cni_error *e)
{
	_cleanup_strbuf_ struct strbuf conf = STRBUF_INIT;
	struct state s = { .network = in->conf.name,
			   .slot = in->conf.id,
			   .vf = made->vf,
			   .args = in->env.args,
			   .type = in->conf.type,
			   .devinfo = made->devinfo };
	struct err err = { 0 };
	int r;

	conf_for_delegate(&in->conf, made->vf, &conf);
	s.conf = conf.s;
	s.conf_len = conf.len;
	r = state_create(in->settings.state_dir, in->env.container, in->env.ifname, &s, &err);
	if (r == -EEXIST)
		return cni_set(e, CNI_TWICE,
			       "container %s has its %s already: ADD came twice without a DEL",
			       in->env.container, in->env.ifname);
	return r < 0 ? cni_from(e, CNI_IO, &err) : 0;
}

int forget(const struct invocation *in, const char *container, const char *ifname,
	   const char *devinfo, struct err *err)
{
	remove_devinfo(in, devinfo);
	return state_remove(in->settings.state_dir, container, ifname, err);
}

static void forget_ours(const struct invocation *in, const struct made *made)
{
	struct err err = { 0 };

	if (forget(in, in->env.container, in->env.ifname, made->devinfo, &err) < 0)
		fprintf(stderr, "railmate-cni: %s\n", err.msg);
}

/* The delegate's own DEL takes back the half of its ADD. If that fails too, the runtime's DEL finds
 * our file. */
static void undo(const struct invocation *in, const struct made *made)
{
	struct invocation del = *in;
	struct plugin_result result;
	struct cni_error e;

	del.env.command = "DEL";
	if (run_delegate(&del, made->vf, &result, &e) < 0)
		fprintf(stderr, "railmate-cni: %s was not undone: %s\n", in->conf.type, e.msg);
	else if (result.status)
		fprintf(stderr, "railmate-cni: %s was not undone: %s\n", in->conf.type,
			document_shown(result.out, in->arena));
	else
		forget_ours(in, made);
}

/* A VF of a claim was prepared before it had its addresses: the container's files have them from
 * now on. The container starts all the same where that fails, with those of before. */
static int refresh(const char *socket, const char *vf, struct arena *a, struct err *err)
{
	const struct control_request request = { .op = CONTROL_REFRESH, .vf = vf };
	struct control_reply reply;

	return control_ask(socket, &request, REFRESH_TIMEOUT_MS, a, &reply, err);
}

int command_hook(const char *vf, struct err *err)
{
	_cleanup_arena_ struct arena *a = arena_new(4096);
	struct settings settings;
	int r = settings_read(a, &settings, err);

	return r < 0 ? r : refresh(settings.control_socket, vf, a, err);
}

static int attach(const struct invocation *in, struct cni_error *e)
{
	struct control_bound bound;
	struct plugin_result result;
	struct made made;
	const char *program;

	if (plugin_find(in->conf.type, in->env.path, in->arena, &program, e) < 0 ||
	    bind_slot(in, &bound, e) < 0)
		return -1;
	/* The file first: the state then has a file that was made, not one that would be. Of a VF
	 * that the kubelet knows Multus has made it. */
	made = (struct made) { bound.vf, NULL };
	if (!conf_is_pci_address(in->conf.id))
		made.devinfo = write_device(in, &bound);
	if (claim(in, &made, e) < 0) {
		remove_devinfo(in, made.devinfo);
		return -1;
	}
	if (run_delegate(in, made.vf, &result, e) < 0) {
		undo(in, &made);
		return -1;
	}
	if (result.status || !result.json)
		undo(in, &made);
	else if (bound.claim)
		refresh(in->settings.control_socket, made.vf, in->arena, NULL);
	if (!result.status && !result.json)
		return cni_set(e, CNI_DELEGATE, "%s says it is done, but prints no result",
			       in->conf.type);
	return print_result(&result, e);
}

int command_add(const struct invocation *in, struct cni_error *e)
{
	if (in->conf.misplaced)
		return cni_set(e, CNI_CONFIG, "%s", in->conf.misplaced);
	if (!in->conf.id)
		return cni_set(
			e, CNI_CONFIG,
			"network %s: no \"deviceID\" came; its NetworkAttachmentDefinition needs the annotation k8s.v1.cni.cncf.io/resourceName, and the pod the resource",
			in->conf.name);
	return attach(in, e);
}

/* --- DEL, CHECK, STATUS --- */

/* The VF that this attachment got is NULL: ADD never came to an end here, or everything is undone.
 */
static int find_made(const struct invocation *in, struct made *ret, struct cni_error *e)
{
	struct err err = { 0 };
	struct state s;
	int r;

	r = state_read(in->settings.state_dir, in->env.container, in->env.ifname, in->arena, &s,
		       &err);
	if (r < 0 && r != -ENOENT)
		return cni_from(e, CNI_IO, &err);
	*ret = r == 0 ? (struct made) { s.vf, s.devinfo } : (struct made) { 0 };
	return 0;
}

bool is_anothers(const struct invocation *in, const char *vf, const char *args)
{
	struct err err = { 0 };

	if (ask_whose(in, vf, args, &err) != -EPERM)
		return false;
	fprintf(stderr, "railmate-cni: %s: it is left alone\n", err.msg);
	return true;
}

int command_del(const struct invocation *in, struct cni_error *e)
{
	struct plugin_result result;
	struct made made;

	if (find_made(in, &made, e) < 0)
		return -1;
	if (made.vf && is_anothers(in, made.vf, in->env.args)) {
		forget_ours(in, &made);
		return 0;
	}
	if (!made.vf)
		return 0;
	if (run_delegate(in, made.vf, &result, e) < 0)
		return -1;
	if (!result.status)
		forget_ours(in, &made);
	return print_result(&result, e);
}

int command_check(const struct invocation *in, struct cni_error *e)
{
	struct made made;

	if (find_made(in, &made, e) < 0)
		return -1;
	if (!made.vf)
		return cni_set(e, CNI_NO_CONTAINER, "container %s has no %s of network %s",
			       in->env.container, in->env.ifname, in->conf.name);
	return forward(in, made.vf, e);
}

int command_status(const struct invocation *in, struct cni_error *e)
{
	const struct control_request request = { .op = CONTROL_STATUS };
	struct control_reply reply;
	struct err err = { 0 };

	if (control_ask(in->settings.control_socket, &request, STATUS_TIMEOUT_MS, in->arena, &reply,
			&err) < 0)
		return cni_from(e, CNI_NOT_AVAILABLE, &err);
	return forward(in, NULL, e);
}
