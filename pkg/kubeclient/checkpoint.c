#include "kubeclient/checkpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "document/document.h"

#define CHECKPOINT_BYTES_MAX (64 << 20)

static const struct item *read_checkpoint(const char *path, struct arena *a, struct err *err)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	const struct item *doc;
	struct stat st;
	size_t len = 0;
	char *text;
	ssize_t n;

	if (fd < 0 || fstat(fd, &st) < 0) {
		err_sys(err, "%s", path);
		return NULL;
	}
	if (!S_ISREG(st.st_mode) || st.st_size > CHECKPOINT_BYTES_MAX) {
		err_set(err, EINVAL, "%s is not a file of at most %d bytes", path,
			CHECKPOINT_BYTES_MAX);
		return NULL;
	}
	text = arena_alloc(a, (size_t)st.st_size + 1);
	while (len < (size_t)st.st_size && (n = read(fd, text + len, (size_t)st.st_size - len)) > 0)
		len += (size_t)n;
	return document_parse(text, len, path, a, &doc, err) < 0 ? NULL : doc;
}

static void add_ids(const struct item *list, struct ids *ids)
{
	for (size_t i = 0; list->type == ITEM_LIST && i < list->n_kids; i++) {
		if (list->kids[i].string)
			ids->v[ids->n++] = list->kids[i].string;
	}
}

/* {"<NUMA node>": [ids]}; before 1.20 a plain list. */
static struct ids ids_of(const struct item *devices, struct arena *a)
{
	struct ids ids = { NULL, 0 };
	size_t most;

	if (!devices)
		return ids;
	most = devices->n_kids;
	for (size_t i = 0; i < devices->n_kids; i++)
		most += devices->kids[i].n_kids;
	ids.v = arena_array(a, most, sizeof(*ids.v));
	add_ids(devices, &ids);
	for (size_t i = 0; devices->type == ITEM_OBJECT && i < devices->n_kids; i++)
		add_ids(&devices->kids[i], &ids);
	return ids;
}

static struct pod *pod_of(struct pod_list *pods, const char *uid, size_t room, struct arena *a)
{
	for (size_t i = 0; i < pods->n; i++) {
		if (!strcmp(pods->v[i].name, uid))
			return &pods->v[i];
	}
	pods->v[pods->n] =
		(struct pod) { "", uid, arena_array(a, room, sizeof(struct pod_container)), 0 };
	return &pods->v[pods->n++];
}

static struct pod_container *container_of(struct pod *pod, const char *name, size_t room,
					  struct arena *a)
{
	for (size_t i = 0; i < pod->n_containers; i++) {
		if (!strcmp(pod->containers[i].name, name))
			return &pod->containers[i];
	}
	pod->containers[pod->n_containers] =
		(struct pod_container) { .name = name,
					 .held = arena_array(a, room, sizeof(struct held)) };
	return &pod->containers[pod->n_containers++];
}

struct pod_list kubeclient_checkpoint(const char *path, struct arena *a, struct err *err)
{
	const struct item *doc = path ? read_checkpoint(path, a, err) : NULL;
	const struct item *entries =
		item_get(doc ? item_get(doc, "Data") : NULL, "PodDeviceEntries");
	struct pod_list pods = { NULL, 0 };

	if (doc && !entries)
		err_set(err, EBADMSG, "%s has no Data.PodDeviceEntries", path);
	if (!entries || entries->type != ITEM_LIST)
		return pods; /* null: no container has a device */
	pods.v = arena_array(a, entries->n_kids, sizeof(*pods.v));
	for (size_t i = 0; i < entries->n_kids; i++) {
		const struct item *e = &entries->kids[i];
		const char *uid = item_string(e, "PodUID"), *name = item_string(e, "ContainerName");
		const char *resource = item_string(e, "ResourceName");
		struct pod_container *c;
		size_t room = 0;

		if (!uid || !name || !resource)
			continue;
		for (size_t k = 0; k < entries->n_kids; k++)
			room += str_eq(item_string(&entries->kids[k], "PodUID"), uid);
		c = container_of(pod_of(&pods, uid, room, a), name, room, a);
		c->held[c->n_held++] =
			(struct held) { resource, ids_of(item_get(e, "DeviceIDs"), a) };
	}
	return pods;
}
