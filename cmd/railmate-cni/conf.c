#include "cni.h"

#include <ctype.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "document/document.h"
#include "hw/bdf.h"

#define DEV_PREFIX "cni.dev/"

const char *const conf_versions[] = { "0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0", NULL };

bool conf_version_known(const char *version)
{
	for (size_t i = 0; conf_versions[i]; i++) {
		if (str_eq(version, conf_versions[i]))
			return true;
	}
	return false;
}

bool conf_is_pci_address(const char *id)
{
	struct bdf bdf;

	return bdf_parse(id, &bdf) == 0;
}

/* A string, or absent: otherwise it is refused rather than passed over. */
static int get_string(const struct item *object, const char *key, const char **ret,
		      struct cni_error *e)
{
	const struct item *item = item_get(object, key);

	if (!item || item->type == ITEM_NULL)
		return 0;
	if (item->type != ITEM_STRING)
		return cni_set(e, CNI_CONFIG,
			       "network configuration, line %d: \"%s\" is not a string", item->line,
			       key);
	if (*item->string)
		*ret = item->string;
	return 0;
}

bool conf_is_name(const char *s)
{
	static const char legal[] =
		"_.-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

	return *s && !strchr("_.-", *s) && !s[strspn(s, legal)];
}

static int read_names(struct conf *c, struct cni_error *e)
{
	if (c->top->type != ITEM_OBJECT)
		return cni_set(e, CNI_DECODE, "the network configuration is not an object");
	if (get_string(c->top, "cniVersion", &c->version, e) < 0)
		return -1;
	if (!c->version || !conf_version_known(c->version))
		return cni_set(e, CNI_INCOMPATIBLE,
			       "cniVersion %s is not one of 0.3.0, 0.3.1, 0.4.0, 1.0.0, 1.1.0",
			       c->version ? c->version : "is missing: it");
	if (get_string(c->top, "name", &c->name, e) < 0)
		return -1;
	if (!c->name || !conf_is_name(c->name))
		return cni_set(e, CNI_CONFIG, "the network configuration has no proper \"name\"");
	return 0;
}

static int read_delegate(struct conf *c, struct cni_error *e)
{
	c->delegate = item_get(c->top, "delegate");
	if (!c->delegate || c->delegate->type != ITEM_OBJECT)
		return cni_set(
			e, CNI_CONFIG,
			"network %s: \"delegate\" has to be an object: the plugin that attaches the VF, as {\"type\": \"sriov\"}",
			c->name);
	if (get_string(c->delegate, "type", &c->type, e) < 0)
		return -1;
	if (!c->type || !plugin_is_name(c->type))
		return cni_set(e, CNI_CONFIG, "network %s: \"delegate\" has no proper \"type\"",
			       c->name);
	if (str_eq(c->type, "railmate-cni"))
		return cni_set(e, CNI_CONFIG, "network %s: railmate-cni cannot be its own delegate",
			       c->name);
	if (item_get(c->top, "ipam"))
		return cni_set(e, CNI_CONFIG, "network %s: \"ipam\" belongs into \"delegate\"",
			       c->name);
	return 0;
}

/*
 * Multus writes the device twice: for every plugin, and for those with the capability. It names a
 * file of the directory for device-info files; a file elsewhere is none of ours.
 */
static int read_device(struct conf *c, const struct settings *s, struct cni_error *e)
{
	const struct item *runtime = item_get(c->top, "runtimeConfig");
	const char *also = NULL, *path = NULL;

	if (get_string(c->top, "deviceID", &c->id, e) < 0 ||
	    get_string(runtime, "deviceID", &also, e) < 0)
		return -1;
	if (c->id && also && !str_eq(c->id, also))
		return cni_set(e, CNI_CONFIG,
			       "network %s: \"deviceID\" and that of \"runtimeConfig\" differ",
			       c->name);
	if (!c->id)
		c->id = also;
	if (get_string(runtime, "CNIDeviceInfoFile", &path, e) < 0)
		return -1;
	if (path && devinfo_name(s->devinfo_dir, path))
		c->devinfo = path;
	else
		c->devinfo_refused = path;
	return 0;
}

int conf_read(const char *text, size_t len, const struct settings *s, struct arena *a,
	      struct conf *ret, struct cni_error *e)
{
	static const char *const misplaced[] = { "controlSocket", "stateDir" };
	struct err err = { 0 };

	*ret = (struct conf) { 0 };
	if (document_parse(text, len, "network configuration", a, &ret->top, &err) < 0)
		return cni_from(e, CNI_DECODE, &err);
	if (read_names(ret, e) < 0 || read_delegate(ret, e) < 0 || read_device(ret, s, e) < 0)
		return -1;

	/* Paths that a network could name before: they are the node's. One that equals the node's
	 * does no harm. */
	for (size_t i = 0; i < ARRAY_LEN(misplaced) && !ret->misplaced; i++) {
		const char *key = misplaced[i], *here = settings_get(s, key);
		const struct item *item = item_get(ret->top, key);

		if (!item || item->type == ITEM_NULL || str_eq(item_string(ret->top, key), here))
			continue;
		ret->misplaced = arena_printf(
			a,
			"network %s: a network does not name paths of the node: take \"%s\" out of it; on this node it is %s, which root can change in %s",
			ret->name, key, here, settings_path());
	}
	return 0;
}

/* --- the delegate's --- */

bool conf_is_field(const char *key, const char *name)
{
	for (; *name; name++) {
		int c = tolower((unsigned char)*name);

		if (c == 's' && str_starts(key, "\u017f"))
			key += strlen("\u017f");
		else if (c == 'k' && str_starts(key, "\u212a"))
			key += strlen("\u212a");
		else if (tolower((unsigned char)*key++) != c)
			return false;
	}
	return !*key;
}

static bool is_one_of(const char *key, const char *const *names)
{
	for (; *names; names++) {
		if (conf_is_field(key, *names))
			return true;
	}
	return false;
}

/* Keys that the runtime adds to a configuration: they go to the plugin of "delegate". */
static bool is_of_runtime(const char *key)
{
	return str_eq(key, "runtimeConfig") || str_eq(key, "prevResult") || str_eq(key, "args") ||
	       str_starts(key, DEV_PREFIX);
}

static void pass_on(struct json *j, const struct item *item)
{
	json_key(j, item->key);
	json_put_raw(j, item->text, item->text_len);
}

/* "runtimeConfig" with the VF in the slot's place, and only the file that may be one. */
static void pass_of_runtime(struct json *j, const struct conf *c, const struct item *item,
			    const char *vf)
{
	bool has_id = false;

	if (!conf_is_field(item->key, "runtimeConfig") || item->type != ITEM_OBJECT) {
		pass_on(j, item);
		return;
	}
	json_kv_object(j, item->key);
	for (size_t i = 0; i < item->n_kids; i++) {
		const struct item *kid = &item->kids[i];

		if (conf_is_field(kid->key, "deviceID"))
			has_id = true;
		else if (!conf_is_field(kid->key, "CNIDeviceInfoFile") ||
			 (c->devinfo && str_eq(kid->string, c->devinfo)))
			pass_on(j, kid);
	}
	if (has_id && vf)
		json_kv_string(j, "deviceID", vf);
	json_end_object(j);
}

void conf_for_delegate(const struct conf *c, const char *vf, struct strbuf *out)
{
	static const char *const always[] = { "cniVersion", "name", "deviceID", "pciBusID", NULL };
	static const char *const host_device[] = { "device", "hwaddr", "kernelpath", NULL };
	struct json j;

	json_init(&j, out, 0);
	json_begin_object(&j);
	json_kv_string(&j, "cniVersion", c->version);
	json_kv_string(&j, "name", c->name);
	for (size_t i = 0; i < c->delegate->n_kids; i++) {
		const struct item *kid = &c->delegate->kids[i];
		/* The VF is railmated's answer. host-device looks at its own keys before it looks
		 * at pciBusID. */
		bool is_ours = is_one_of(kid->key, always) ||
			       (str_eq(c->type, "host-device") && is_one_of(kid->key, host_device));

		for (size_t k = 0; k < c->top->n_kids; k++)
			is_ours |= is_of_runtime(c->top->kids[k].key) &&
				   conf_is_field(kid->key, c->top->kids[k].key);
		if (!is_ours)
			pass_of_runtime(&j, c, kid, vf);
	}
	for (size_t i = 0; i < c->top->n_kids; i++) {
		if (is_of_runtime(c->top->kids[i].key))
			pass_of_runtime(&j, c, &c->top->kids[i], vf);
	}
	if (vf) {
		json_kv_string(&j, "deviceID", vf);
		json_kv_string(&j, "pciBusID", vf);
	}
	json_end_object(&j);
}
