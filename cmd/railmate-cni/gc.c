/* GC: the runtime names the attachments of a network that are alive; the others are taken down as
 * DEL would. */
#include "cni.h"

#include <errno.h>

#include "base/err.h"
#include "base/str.h"
#include "document/document.h"

#define VALID "cni.dev/valid-attachments"

struct collection {
	const struct invocation *in;
	const struct item *valid;
	struct cni_error *e;
	bool failed;
};

/* The first failure is reported; the others do not stop it. */
static void note_failure(struct collection *c, const struct cni_error *e)
{
	if (!c->failed)
		*c->e = *e;
	c->failed = true;
}

static int take_down(struct collection *c, const char *container, const char *ifname,
		     const struct state *s, struct cni_error *e)
{
	const struct cni_env env = { "DEL", container, NULL, ifname, s->args, c->in->env.path };
	struct arena *a = c->in->arena;
	struct plugin_result result;
	struct err err = { 0 };
	const char *program;

	if (is_anothers(c->in, s->vf, s->args))
		return forget(c->in, container, ifname, s->devinfo, &err) < 0
			       ? cni_from(e, CNI_IO, &err)
			       : 0;
	if (plugin_find(s->type, env.path, a, &program, e) < 0 ||
	    plugin_run(program, &env, s->conf, s->conf_len, a, &result, e) < 0)
		return -1;
	if (result.status)
		return cni_set(e, CNI_DELEGATE, "%s cannot take down %s of container %s: %s",
			       s->type, ifname, container,
			       item_string(result.json, "msg") ? item_string(result.json, "msg")
							       : "no reason given");
	if (forget(c->in, container, ifname, s->devinfo, &err) < 0)
		return cni_from(e, CNI_IO, &err);
	return 0;
}

static int check_one(void *arg, const char *container, const char *ifname)
{
	struct collection *c = arg;
	struct cni_error e = { 0 };
	struct err err = { 0 };
	bool valid = false;
	struct state s;
	int r;

	r = state_read(c->in->settings.state_dir, container, ifname, c->in->arena, &s, &err);
	if (r == -ENOENT)
		return 0;
	if (r < 0) {
		cni_from(&e, CNI_IO, &err);
		note_failure(c, &e);
		return 0;
	}
	for (size_t i = 0; i < c->valid->n_kids; i++)
		valid |= str_eq(item_string(&c->valid->kids[i], "containerID"), container) &&
			 str_eq(item_string(&c->valid->kids[i], "ifname"), ifname);
	if (str_eq(s.network, c->in->conf.name) && !valid &&
	    take_down(c, container, ifname, &s, &e) < 0)
		note_failure(c, &e);
	return 0;
}

int command_gc(const struct invocation *in, struct cni_error *e)
{
	struct collection c = { .in = in, .e = e, .valid = item_get(in->conf.top, VALID) };
	_cleanup_strbuf_ struct strbuf conf = STRBUF_INIT;
	struct cni_error own = { 0 };
	struct plugin_result result;
	struct err err = { 0 };
	const char *program;

	/* Without the list everything would be taken down. */
	if (!c.valid || c.valid->type != ITEM_LIST)
		return cni_set(e, CNI_CONFIG, "network %s: GC came without the list \"" VALID "\"",
			       in->conf.name);
	if (state_each(in->settings.state_dir, check_one, &c, &err) < 0)
		return cni_from(e, CNI_IO, &err);
	/* The delegate keeps books, too. */
	conf_for_delegate(&in->conf, NULL, &conf);
	if (plugin_find(in->conf.type, in->env.path, in->arena, &program, &own) < 0 ||
	    plugin_run(program, &in->env, conf.s, conf.len, in->arena, &result, &own) < 0)
		note_failure(&c, &own);
	return c.failed ? -1 : print_result(&result, e);
}
