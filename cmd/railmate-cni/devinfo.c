/*
 * The NPWG device-info file of an attachment. Multus would copy the device plugin's, but that one
 * is written before the VF of a slot is known; so the CNI plugin writes it, where "runtimeConfig"
 * asks for it. A network can ask for it as well: only a new file in the one directory for them is
 * made, and only one that was made is removed.
 */
#include "cni.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "control/control.h"

#define DEVINFO_VERSION "1.1.0"

/* As render_devinfo() of pkg/render has it, which this static program is too small for. */
static void put_devinfo(const struct control_bound *bound, struct strbuf *out)
{
	struct json j;

	json_init(&j, out, 0);
	json_begin_object(&j);
	json_kv_string(&j, "type", "pci");
	json_kv_string(&j, "version", DEVINFO_VERSION);
	json_kv_object(&j, "pci");
	json_kv_string(&j, "pci-address", bound->vf);
	if (bound->pf && conf_is_pci_address(bound->pf))
		json_kv_string(&j, "pf-pci-address", bound->pf);
	if (bound->rdma && *bound->rdma)
		json_kv_string(&j, "rdma-device", bound->rdma);
	json_end_object(&j);
	if (bound->rail >= 0) {
		json_kv_object(&j, "railmate");
		json_kv_int(&j, "rail", bound->rail);
		if (bound->plane >= 0)
			json_kv_int(&j, "plane", bound->plane);
		json_end_object(&j);
	}
	json_end_object(&j);
}

/* /var/run is a link to /run. */
static const char *without_var(const char *path)
{
	return str_starts(path, "/var/run/") ? path + strlen("/var") : path;
}

const char *devinfo_name(const char *dir, const char *path)
{
	const char *below = without_var(dir), *name = without_var(path);
	size_t len = strlen(below);

	if (strncmp(name, below, len) || name[len] != '/')
		return NULL;
	name += len + 1;
	if (!*name || *name == '.' || strlen(name) > NAME_MAX)
		return NULL;
	for (const char *c = name; *c; c++) {
		if ((unsigned char)*c <= ' ' || *c == '/' || *c == 0x7f)
			return NULL;
	}
	return name;
}

int devinfo_create(const char *dir, const char *name, const char *owner,
		   const struct control_bound *bound, struct err *err)
{
	_cleanup_free_ char *temporary = xasprintf(".%s.%d", owner, (int)getpid());
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;
	_cleanup_close_ int fd = -1;
	struct file_new f = { .dir_name = dir,
			      .name = name,
			      .temporary = temporary,
			      .mode = 0444,
			      .only_new = true };
	int r;

	put_devinfo(bound, &text);
	r = file_make_dirs(dir, 0755, err);
	if (r < 0)
		return r;
	f.dir = fd = trusted_open_dir(dir, err);
	return fd < 0 ? fd : file_write(&f, text.s, text.len, err);
}

int devinfo_remove(const char *dir, const char *name, struct err *err)
{
	_cleanup_close_ int fd = trusted_open_dir(dir, err);

	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	if (unlinkat(fd, name, 0) < 0 && errno != ENOENT)
		return err_sys(err, "remove %s/%s", dir, name);
	return 0;
}
