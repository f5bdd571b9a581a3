/*
 * The NPWG device-info file of an attachment. Multus would copy the device plugin's, but that one is written
 * before the VF of a slot is known; so the CNI plugin writes it, where "runtimeConfig" says.
 */
#include "cni.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"

#define DEVINFO_VERSION "1.1.0"

static void put_devinfo(const char *vf, const char *rdma, struct strbuf *out)
{
	struct json j;

	json_init(&j, out, 0);
	json_begin_object(&j);
	json_kv_string(&j, "type", "pci");
	json_kv_string(&j, "version", DEVINFO_VERSION);
	json_key(&j, "pci");
	json_begin_object(&j);
	json_kv_string(&j, "pci-address", vf);
	if (rdma && *rdma)
		json_kv_string(&j, "rdma-device", rdma);
	json_end_object(&j);
	json_end_object(&j);
}

static void make_parent(const char *path)
{
	_cleanup_free_ char *dir = xstrdup(path);
	char *slash = strrchr(dir, '/');

	if (slash && slash != dir) {
		*slash = '\0';
		mkdir(dir, 0755); /* what is wrong with it, the file will say */
	}
}

int devinfo_write(const char *path, const char *vf, const char *rdma, struct err *err)
{
	_cleanup_free_ char *temporary = xasprintf("%s.%d", path, (int)getpid());
	const struct file_new f = { .dir = AT_FDCWD, .name = path, .temporary = temporary, .mode = 0444 };
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;

	put_devinfo(vf, rdma, &text);
	make_parent(path);
	return file_write(&f, text.s, text.len, err);
}
