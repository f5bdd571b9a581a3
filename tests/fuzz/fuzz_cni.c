/* room: cni */
/*
 * Any bytes as a network configuration, as a state file, as the settings of the node, as what a
 * delegate printed and as the path of a device-info file. What is accepted names no file outside
 * the one directory, no program by a path, and no device but our VF.
 */
#include <assert.h>
#include <ctype.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "document/document.h"
#include "railmate-cni/cni.h"

#define VF "0000:18:00.1"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct settings node = { "/run/railmate/railmate.sock", "/var/lib/cni/railmate",
				      "/var/run/k8s.cni.cncf.io/devinfo/cni" };

/* --- what has to hold, in other words than the program's --- */

static void check_plugin(const char *type)
{
	assert(*type && *type != '.' && !strchr(type, '/') && !strchr(type, '\n'));
}

static void check_file(const char *path)
{
	static const char *const places[] = { "/run/k8s.cni.cncf.io/devinfo/cni/",
					      "/var/run/k8s.cni.cncf.io/devinfo/cni/" };
	const char *name = strrchr(path, '/') + 1;
	bool is_there = false;

	for (size_t i = 0; i < ARRAY_LEN(places); i++)
		is_there |=
			str_starts(path, places[i]) && strlen(places[i]) == (size_t)(name - path);
	assert(is_there && *name && *name != '.' && strlen(name) <= 255);
	assert(str_eq(devinfo_name(node.devinfo_dir, path), name));
}

/* The letters of a key as a plugin in Go compares them. */
static void fold(const char *key, struct strbuf *out)
{
	for (; *key; key++) {
		if (!strncmp(key, "\xc5\xbf", 2) || !strncmp(key, "\xe2\x84\xaa", 3)) {
			bool is_s = *key == '\xc5';

			strbuf_putc(out, is_s ? 's' : 'k');
			key += is_s ? 1 : 2;
		} else {
			strbuf_putc(out, (char)tolower((unsigned char)*key));
		}
	}
}

/* Every value that a plugin may take for that field of the object: the VF, or there is none. */
static void check_values(const struct item *object, const char *field, const char *vf, bool needed)
{
	bool found = false;

	for (size_t i = 0; i < object->n_kids; i++) {
		_cleanup_strbuf_ struct strbuf key = STRBUF_INIT;

		fold(object->kids[i].key, &key);
		if (strcmp(strbuf_str(&key), field))
			continue;
		assert(vf && str_eq(object->kids[i].string, vf));
		found = true;
	}
	assert(found || !needed);
}

static void check_runtime(const struct item *top, const struct conf *c, const char *vf)
{
	for (size_t i = 0; i < top->n_kids; i++) {
		const struct item *kid = &top->kids[i];
		_cleanup_strbuf_ struct strbuf key = STRBUF_INIT;

		fold(kid->key, &key);
		if (strcmp(strbuf_str(&key), "runtimeconfig") || kid->type != ITEM_OBJECT)
			continue;
		check_values(kid, "deviceid", vf, false);
		check_values(kid, "cnideviceinfofile", c->devinfo, false);
	}
}

static void check_delegate(const struct conf *c, const char *vf, struct arena *a)
{
	static const char *const none[] = { "device", "hwaddr", "kernelpath" };
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;
	const struct item *top;

	conf_for_delegate(c, vf, &text);
	assert(document_parse(text.s, text.len, "delegate", a, &top, NULL) == 0 &&
	       top->type == ITEM_OBJECT);
	check_values(top, "deviceid", vf, vf != NULL);
	check_values(top, "pcibusid", vf, vf != NULL);
	check_runtime(top, c, vf);
	for (size_t i = 0; str_eq(c->type, "host-device") && i < ARRAY_LEN(none); i++)
		check_values(top, none[i], NULL, false);
}

/* --- --- */

static void check_state(const struct state *s)
{
	check_plugin(s->type);
	assert(conf_is_pci_address(s->vf) && s->network && s->slot && s->conf[0] == '{');
	if (s->devinfo && devinfo_name(node.devinfo_dir, s->devinfo))
		check_file(s->devinfo);
}

/* What ADD remembers is what DEL finds. */
static void remember(const struct conf *c, struct arena *a)
{
	_cleanup_strbuf_ struct strbuf conf = STRBUF_INIT, text = STRBUF_INIT;
	struct state s = {
		.network = c->name, .slot = "slot", .vf = VF, .type = c->type, .devinfo = c->devinfo
	};
	struct state back;

	conf_for_delegate(c, VF, &conf);
	s.conf = conf.s;
	s.conf_len = conf.len;
	state_write(&s, &text);
	assert(state_parse(text.s, text.len, "state", a, &back, NULL) == 0);
	check_state(&back);
	assert(str_eq(back.network, s.network) && str_eq(back.type, s.type) &&
	       str_eq(back.devinfo, s.devinfo));
	assert(back.conf_len == s.conf_len && !memcmp(back.conf, s.conf, s.conf_len));
}

static void read_network(const char *text, size_t size, struct arena *a)
{
	struct cni_error e = { 0 };
	struct conf c;

	if (conf_read(text, size, &node, a, &c, &e) < 0) {
		assert(e.code && *e.msg && str_utf8_valid(e.msg, strlen(e.msg)));
		return;
	}
	check_plugin(c.type);
	if (c.devinfo)
		check_file(c.devinfo);
	check_delegate(&c, VF, a);
	check_delegate(&c, NULL, a);
	remember(&c, a);
}

static void read_state(const char *text, size_t size, struct arena *a)
{
	struct err err = { 0 };
	struct state s;

	if (state_parse(text, size, "state", a, &s, &err) == 0)
		check_state(&s);
	else
		assert(str_starts(err.msg, "state "));
}

static void read_settings(const char *text, size_t size, struct arena *a)
{
	struct err err = { 0 };
	struct settings s;

	if (settings_parse(text, size, "cni.json", a, &s, &err) < 0) {
		assert(str_starts(err.msg, "cni.json:") && !strchr(err.msg, '\n'));
		return;
	}
	for (size_t i = 0; i < 3; i++) {
		const char *path =
			((const char *const[]) { s.control_socket, s.state_dir, s.devinfo_dir })[i];

		assert(path[0] == '/' && path[1] && path[strlen(path) - 1] != '/');
	}
}

static void read_output(const char *text, size_t size, struct arena *a)
{
	for (int status = 0; status < 2; status++) {
		struct plugin_result r = { 0 };
		struct cni_error e = { 0 };

		if (plugin_judge("plugin", status, text, size, a, &r, &e) < 0)
			assert(status && e.code == CNI_DELEGATE && !strchr(e.msg, '\n'));
		else
			assert(r.status == status && (!status || r.json) &&
			       (!r.json || r.json->type == ITEM_OBJECT));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_arena_ struct arena *a = arena_new(4096);
	char *text = arena_alloc(a, size + 1);

	memcpy(text, data, size);
	read_network(text, size, a);
	read_state(text, size, a);
	read_settings(text, size, a);
	read_output(text, size, a);
	if (devinfo_name(node.devinfo_dir, text))
		check_file(text);
	return 0;
}
