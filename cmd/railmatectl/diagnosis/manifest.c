/*
 * The kernel arguments and modules that findings ask for, in the form that each platform takes.
 * Several devices of one pci= option are joined by ';', which ends a command in GRUB's own
 * language, so such a value is quoted: GRUB takes the quotes off, else the kernel does.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/list.h"
#include "base/mem.h"
#include "base/str.h"
#include "diagnosis/diagnosis.h"
#include "facts/facts.h"

/* Options of pci= that have a list of devices; `may`: the characters of such a list. */
static const struct list_option {
	const char *name, *may;
} list_options[] = {
	{ "disable_acs_redir=", "0123456789abcdefABCDEFpci:./;" },
	{ "config_acs=", "0123456789abcdefABCDEFpcix@:./;" },
};

struct args {
	char **v;
	size_t n, cap;
};

static void args_done(struct args *a)
{
	for (size_t i = 0; i < a->n; i++)
		free(a->v[i]);
	free(a->v);
}

/* The parts of a manifest. */
struct wants {
	struct args kernel, modules;
	const char *role;
};

static void wants_done(struct wants *w)
{
	args_done(&w->kernel);
	args_done(&w->modules);
}

static void add(struct args *a, char *arg)
{
	a->v = xgrow(a->v, &a->cap, a->n + 1, sizeof(*a->v));
	a->v[a->n++] = arg;
}

/* To "a;b", unless it is there. */
static void add_device(struct strbuf *list, const char *device)
{
	const char *at = strbuf_str(list);
	size_t len = strlen(device);

	for (; at; at = strchr(at, ';') ? strchr(at, ';') + 1 : NULL) {
		if (!strncmp(at, device, len) && (!at[len] || at[len] == ';'))
			return;
	}
	strbuf_printf(list, "%s%s", list->len ? ";" : "", device);
}

/* "pci=config_acs=…" → the value behind it; NULL: another argument. */
static const char *value_of(const char *arg, const struct list_option *o)
{
	if (!arg || !str_starts(arg, "pci=") || !str_starts(arg + strlen("pci="), o->name))
		return NULL;
	return arg + strlen("pci=") + strlen(o->name);
}

/* Does a finding ask for something else at the same place ("MASK@PORT")? */
static bool is_replaced(const struct diagnosis *r, const struct list_option *o, const char *device)
{
	const char *place = strchr(device, '@');

	for (size_t i = 0; place && i < diagnosis_n(r); i++) {
		const char *value = value_of(diagnosis_at(r, i)->kernel_arg, o);

		if (value && str_eq(strchr(value, '@'), place))
			return true;
	}
	return false;
}

/* The option counts once, the last one: values that the command line has already go along, if they
 * are right. */
static void add_present(const struct facts *f, const struct diagnosis *r,
			const struct list_option *o, struct strbuf *list)
{
	const char *options = facts_boot_value(f, "pci="),
		   *at = options ? strstr(options, o->name) : NULL;
	_cleanup_free_ char *devices = at ? xstrdup(at + strlen(o->name)) : NULL;
	char *save, *device;

	if (!devices)
		return;
	devices[strcspn(devices, ",")] = '\0';
	if (devices[strspn(devices, o->may)])
		return;
	for (device = strtok_r(devices, ";", &save); device; device = strtok_r(NULL, ";", &save)) {
		if (!is_replaced(r, o, device))
			add_device(list, device);
	}
}

/* All that findings ask of one option; NULL: nothing. */
static char *list_arg(const struct facts *f, const struct diagnosis *r, const struct list_option *o)
{
	_cleanup_strbuf_ struct strbuf list = STRBUF_INIT;
	bool any = false;

	add_present(f, r, o, &list);
	for (size_t i = 0; i < diagnosis_n(r); i++) {
		const char *value = value_of(diagnosis_at(r, i)->kernel_arg, o);

		if (value)
			add_device(&list, value);
		any = any || value;
	}
	if (!any)
		return NULL;
	return xasprintf(strchr(strbuf_str(&list), ';') ? "pci=\"%s%s\"" : "pci=%s%s", o->name,
			 strbuf_str(&list));
}

static bool has(const struct args *a, const char *arg)
{
	return list_has((const char *const *)a->v, a->n, arg);
}

/* On OpenShift the GPU operator's driver has it, in a container: the host has no such module. */
static bool is_operators(const char *module, enum diagnosis_platform p)
{
	return p == DIAGNOSIS_OPENSHIFT && !strcmp(module, "nvidia_peermem");
}

static void collect(const struct facts *f, const struct diagnosis *r, enum diagnosis_platform p,
		    struct wants *ret)
{
	for (size_t i = 0; i < diagnosis_n(r); i++) {
		const char *arg = diagnosis_at(r, i)->kernel_arg,
			   *module = diagnosis_at(r, i)->module;
		bool listed = false;

		for (size_t k = 0; k < ARRAY_LEN(list_options); k++)
			listed = listed || value_of(arg, &list_options[k]);
		assert((!arg && !module) || diagnosis_at(r, i)->check->in_manifest);
		if (arg && !listed && !has(&ret->kernel, arg))
			add(&ret->kernel, xstrdup(arg));
		if (module && !is_operators(module, p) && !has(&ret->modules, module))
			add(&ret->modules, xstrdup(module));
	}
	for (size_t i = 0; i < ARRAY_LEN(list_options); i++) {
		char *arg = list_arg(f, r, &list_options[i]);

		if (arg)
			add(&ret->kernel, arg);
	}
}

static char *joined(const struct args *a)
{
	_cleanup_strbuf_ struct strbuf all = STRBUF_INIT;

	for (size_t i = 0; i < a->n; i++)
		strbuf_printf(&all, "%s%s", i ? " " : "", a->v[i]);
	return xstrdup(strbuf_str(&all));
}

static void put_grub(const struct wants *w, struct strbuf *out)
{
	_cleanup_free_ char *all = joined(&w->kernel), *modules = joined(&w->modules);

	if (w->modules.n)
		strbuf_printf(
			out,
			"# Modules to load at boot, from railmatectl doctor; they go elsewhere:\n"
			"#   printf '%%s\\n' %s > /etc/modules-load.d/railmate.conf\n",
			modules);
	if (!w->kernel.n)
		return;
	strbuf_puts(
		out,
		"# /etc/default/grub.d/90-railmate.cfg, from railmatectl doctor.\n"
		"# Debian, Ubuntu: put it there, run update-grub, reboot.\n"
		"# RHEL and its derivatives do not read that folder; there it is this, and a reboot:\n");
	strbuf_printf(out, "#   grubby --update-kernel=ALL --args='%s'\n", all);
	strbuf_puts(out, "GRUB_CMDLINE_LINUX=\"$GRUB_CMDLINE_LINUX ");
	for (const char *c = all; *c; c++)
		strbuf_printf(out, "%s%c", *c == '"' ? "\\" : "", *c);
	strbuf_puts(out, "\"\n");
}

/* In single quotes: no argument has one. */
static void put_list(const struct args *a, const char *indent, const char *key, struct strbuf *out)
{
	for (size_t i = 0; i < a->n; i++)
		strbuf_printf(out, "%s- %s'%s'\n", indent, key, a->v[i]);
}

static void put_openshift(const struct wants *w, struct strbuf *out)
{
	strbuf_printf(
		out,
		"# From railmatectl doctor. oc apply -f it: the nodes of the pool reboot one after the other.\n"
		"# The role is the pool: all its nodes get this, so their boards should be alike.\n"
		"apiVersion: machineconfiguration.openshift.io/v1\n"
		"kind: MachineConfig\n"
		"metadata:\n"
		"  name: 99-%s-railmate\n"
		"  labels:\n"
		"    machineconfiguration.openshift.io/role: %s\n"
		"spec:\n"
		"  config:\n"
		"    ignition:\n"
		"      version: 3.2.0\n",
		w->role, w->role);
	/* A file with a module a line, as Ignition takes its contents. */
	if (w->modules.n)
		strbuf_puts(out, "    storage:\n"
				 "      files:\n"
				 "      - path: /etc/modules-load.d/railmate.conf\n"
				 "        mode: 0644\n"
				 "        contents:\n"
				 "          source: 'data:,");
	for (size_t i = 0; i < w->modules.n; i++)
		strbuf_printf(out, "%s%%0A%s", w->modules.v[i], i + 1 < w->modules.n ? "" : "'\n");
	if (w->kernel.n)
		strbuf_puts(out, "  kernelArguments:\n");
	put_list(&w->kernel, "    ", "", out);
}

static void put_talos(const struct wants *w, struct strbuf *out)
{
	strbuf_puts(
		out,
		"# From railmatectl doctor. talosctl patch machineconfig --patch @FILE, then talosctl upgrade with the\n"
		"# node's own installer image, which writes the boot entry. A node that boots by systemd-boot from an\n"
		"# image of the Image Factory takes them from the schematic (customization.extraKernelArgs) instead.\n"
		"# Talos 1.12 and later also wants grubUseUKICmdline: false beside extraKernelArgs; earlier ones do not know it.\n"
		"machine:\n");
	if (w->kernel.n)
		strbuf_puts(out, "  install:\n"
				 "    extraKernelArgs:\n");
	put_list(&w->kernel, "      ", "", out);
	if (w->modules.n)
		strbuf_puts(out, "  kernel:\n"
				 "    modules:\n");
	put_list(&w->modules, "      ", "name: ", out);
}

bool diagnosis_manifest(const struct facts *f, const struct diagnosis *r, enum diagnosis_platform p,
			const char *role, struct strbuf *out)
{
	static void (*const put[])(const struct wants *w, struct strbuf *out) = {
		[DIAGNOSIS_GRUB] = put_grub,
		[DIAGNOSIS_OPENSHIFT] = put_openshift,
		[DIAGNOSIS_TALOS] = put_talos,
	};
	_cleanup_(wants_done) struct wants w = { .role = role ? role : "worker" };

	collect(f, r, p, &w);
	if (w.kernel.n + w.modules.n)
		put[p](&w, out);
	return w.kernel.n + w.modules.n > 0;
}
