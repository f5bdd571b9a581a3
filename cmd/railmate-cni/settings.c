/*
 * The paths of this node. They come from a file of root's and never from the network configuration,
 * whose author may be a tenant of the cluster, while this program runs as root on the host.
 */
#include "cni.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "control/control.h"
#include "document/document.h"

#define SETTINGS_FILE "/etc/railmate/cni.json"
#define STATE_DIR     "/var/lib/cni/railmate"
#define DEVINFO_DIR   "/var/run/k8s.cni.cncf.io/devinfo/cni" /* the device-info specification's */

static const struct {
	const char *key;
	size_t at;
} settings[] = {
	{ "controlSocket", offsetof(struct settings, control_socket) },
	{ "stateDir", offsetof(struct settings, state_dir) },
	{ "deviceInfoDir", offsetof(struct settings, devinfo_dir) },
};

static const char **find(struct settings *s, const char *key)
{
	for (size_t i = 0; i < ARRAY_LEN(settings); i++) {
		if (str_eq(key, settings[i].key))
			return (const char **)((char *)s + settings[i].at);
	}
	return NULL;
}

const char *settings_get(const struct settings *s, const char *key)
{
	struct settings copy = *s;
	const char **value = find(&copy, key);

	return value ? *value : NULL;
}

const char *settings_path(void)
{
	const char *path = getenv("RAILMATE_CNI_CONFIG");

	return path && *path ? path : SETTINGS_FILE;
}

int settings_parse(const char *text, size_t len, const char *name, struct arena *a,
		   struct settings *ret, struct err *err)
{
	struct settings s = { CONTROL_SOCKET, STATE_DIR, DEVINFO_DIR };
	const struct item *top;
	int r;

	r = document_parse(text, len, name, a, &top, err);
	if (r < 0)
		return r;
	if (top->type != ITEM_OBJECT)
		return err_set(err, EINVAL, "%s: not an object", name);
	for (size_t i = 0; i < top->n_kids; i++) {
		const struct item *kid = &top->kids[i];
		const char **value = find(&s, kid->key);
		size_t n = kid->type == ITEM_STRING ? strlen(kid->string) : 0;

		if (!value)
			return err_set(
				err, EINVAL,
				"%s:%d: there is no key \"%s\", only controlSocket, stateDir and deviceInfoDir",
				name, kid->line, document_shown(kid->key, a));
		while (n > 1 && kid->string[n - 1] == '/')
			n--;
		if (n < 2 || kid->string[0] != '/')
			return err_set(err, EINVAL, "%s:%d: \"%s\" has to be an absolute path",
				       name, kid->line, kid->key);
		*value = arena_printf(a, "%.*s", (int)n, kid->string);
	}
	*ret = s;
	return 0;
}

int settings_read(struct arena *a, struct settings *ret, struct err *err)
{
	const char *path = settings_path(), *text;
	size_t len;
	int r;

	r = trusted_read(AT_FDCWD, path, path, a, &text, &len, err);
	if (r == -ENOENT && !strcmp(path, SETTINGS_FILE)) {
		*ret = (struct settings) { CONTROL_SOCKET, STATE_DIR, DEVINFO_DIR };
		return 0;
	}
	return r < 0 ? r : settings_parse(text, len, path, a, ret, err);
}
