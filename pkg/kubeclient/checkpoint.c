#include "kubeclient/checkpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"
#include "document/document.h"

/* Read as a tree it takes six times as much. Two thousand containers with devices fit. */
#define CHECKPOINT_BYTES_MAX (4 << 20)

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

/* Of a container, for one resource. */
struct entry {
	const char *uid, *container, *resource;
	const struct item *ids;
	size_t index;
};

static int by_container(const void *x, const void *y)
{
	const struct entry *a = x, *b = y;
	int r = strcmp(a->uid, b->uid);

	r = r ? r : strcmp(a->container, b->container);
	return r ? r : (a->index > b->index) - (a->index < b->index);
}

static size_t sorted_entries(const struct item *list, struct entry *v)
{
	size_t n = 0;

	for (size_t i = 0; i < list->n_kids; i++) {
		const struct item *e = &list->kids[i];

		v[n] = (struct entry) { item_string(e, "PodUID"), item_string(e, "ContainerName"),
					item_string(e, "ResourceName"), item_get(e, "DeviceIDs"),
					i };
		n += v[n].uid && v[n].container && v[n].resource;
	}
	if (n)
		qsort(v, n, sizeof(*v), by_container);
	return n;
}

/* One array for all, so that a pod of a thousand containers costs no more than its devices. */
static struct pod_list group(const struct entry *v, size_t n, struct arena *a)
{
	struct pod_list pods = { arena_array(a, n, sizeof(*pods.v)), 0 };
	struct pod_container *c = arena_array(a, n, sizeof(*c));
	struct held *held = arena_array(a, n, sizeof(*held));
	size_t n_containers = 0;

	for (size_t i = 0; i < n; i++) {
		bool same_pod = i && !strcmp(v[i].uid, v[i - 1].uid);
		struct pod_container *now;

		if (!same_pod)
			pods.v[pods.n++] = (struct pod) { "", v[i].uid, &c[n_containers], 0 };
		if (!same_pod || strcmp(v[i].container, v[i - 1].container) != 0) {
			c[n_containers++] =
				(struct pod_container) { .name = v[i].container, .held = &held[i] };
			pods.v[pods.n - 1].n_containers++;
		}
		now = &c[n_containers - 1];
		now->held[now->n_held++] = (struct held) { v[i].resource, ids_of(v[i].ids, a) };
	}
	return pods;
}

struct pod_list kubeclient_checkpoint(const char *path, struct arena *a, struct err *err)
{
	const struct item *doc = path ? read_checkpoint(path, a, err) : NULL;
	const struct item *entries =
		item_get(doc ? item_get(doc, "Data") : NULL, "PodDeviceEntries");
	struct entry *v;

	if (doc && !entries)
		err_set(err, EBADMSG, "%s has no Data.PodDeviceEntries", path);
	if (!entries || entries->type != ITEM_LIST)
		return (struct pod_list) { NULL, 0 }; /* null: no container has a device */
	v = arena_array(a, entries->n_kids, sizeof(*v));
	return group(v, sorted_entries(entries, v), a);
}

/* --- the other one, of claims --- */

static struct ids keys_of(const struct item *set, struct arena *a)
{
	struct ids ids = { arena_array(a, set ? set->n_kids : 0, sizeof(*ids.v)), 0 };

	for (size_t i = 0; set && set->type == ITEM_OBJECT && i < set->n_kids; i++)
		ids.v[ids.n++] = set->kids[i].key;
	return ids;
}

/* {"Data": "{\"ClaimInfoStateList\": [{\"ClaimUID\": …, \"PodUIDs\": {UID: {}}}]}"} */
bool kubeclient_prepared(const char *path, struct arena *a, struct prepared_list *ret,
			 struct err *err)
{
	const struct item *doc = read_checkpoint(path, a, err), *data, *list;
	const char *text = doc ? item_string(doc, "Data") : NULL;
	struct prepared *v;

	if (!doc)
		return false;
	list = text && document_parse(text, strlen(text), path, a, &data, NULL) >= 0
		       ? item_get(data, "ClaimInfoStateList")
		       : NULL;
	if (!list || (list->type != ITEM_LIST && list->type != ITEM_NULL)) {
		err_set(err, EBADMSG, "%s has no ClaimInfoStateList", path);
		return false;
	}
	v = arena_array(a, list->n_kids, sizeof(*v));
	for (size_t i = 0; i < list->n_kids; i++) {
		v[i] = (struct prepared) { item_string(&list->kids[i], "ClaimUID"),
					   keys_of(item_get(&list->kids[i], "PodUIDs"), a) };
		if (!v[i].claim) {
			err_set(err, EBADMSG, "%s has a claim without a UID", path);
			return false;
		}
	}
	*ret = (struct prepared_list) { v, list->n_kids };
	return true;
}
