/*
 * kubelet_internal_checkpoint, for the noise it makes in the directory and for readers that want a
 * hint. The checksum is a constant: the real one hashes Go's own dump of the struct
 * (docs/design/kubelet.md §1.6).
 */
#include "kubelet.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/mem.h"

static void base64(struct bytes in, struct strbuf *out)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	for (size_t i = 0; i < in.len; i += 3) {
		uint32_t v = (uint32_t)in.data[i] << 16;

		v |= i + 1 < in.len ? (uint32_t)in.data[i + 1] << 8 : 0;
		v |= i + 2 < in.len ? in.data[i + 2] : 0;
		strbuf_putc(out, digits[v >> 18]);
		strbuf_putc(out, digits[v >> 12 & 63]);
		strbuf_putc(out, i + 1 < in.len ? digits[v >> 6 & 63] : '=');
		strbuf_putc(out, i + 2 < in.len ? digits[v & 63] : '=');
	}
}

static long long node_of(struct kubelet *k, const char *resource, const char *id)
{
	const struct resource *r = resource_find(k, resource);
	const struct device *d = r ? resource_device(r, id) : NULL;

	if (!d || !d->n_nodes)
		return k->opt.old ? 0 : -1;
	return d->nodes[0];
}

/* {"<node>": [ids]}, each node once */
static void put_ids_by_node(struct kubelet *k, const struct allocation *a, struct json *j)
{
	json_begin_object(j);
	for (size_t i = 0; i < a->ids.n; i++) {
		long long node = node_of(k, a->resource, a->ids.v[i]);
		char key[24];
		bool seen = false;

		for (size_t before = 0; before < i; before++)
			seen = seen || node_of(k, a->resource, a->ids.v[before]) == node;
		if (seen)
			continue;
		snprintf(key, sizeof(key), "%lld", node);
		json_key(j, key);
		json_begin_array(j);
		for (size_t with = i; with < a->ids.n; with++) {
			if (node_of(k, a->resource, a->ids.v[with]) == node)
				json_put_string(j, a->ids.v[with]);
		}
		json_end_array(j);
	}
	json_end_object(j);
}

static void put_entry(struct kubelet *k, const struct pod_entry *p, const struct fake_container *c,
		      const struct allocation *a, struct json *j)
{
	_cleanup_strbuf_ struct strbuf response = STRBUF_INIT;

	base64(a->response, &response);
	json_begin_object(j);
	json_kv_string(j, "PodUID", p->uid);
	json_kv_string(j, "ContainerName", c->name);
	json_kv_string(j, "ResourceName", a->resource);
	json_key(j, "DeviceIDs");
	put_ids_by_node(k, a, j);
	json_kv_string(j, "AllocResp", strbuf_str(&response));
	json_end_object(j);
}

static void put_entries(struct kubelet *k, struct json *j)
{
	json_begin_array(j);
	for (const struct pod_entry *p = k->pods; p; p = p->next) {
		for (size_t c = 0; c < p->n_containers; c++) {
			for (size_t h = 0; h < p->containers[c].n_held; h++)
				put_entry(k, p, &p->containers[c], &p->containers[c].held[h], j);
		}
	}
	json_end_array(j);
}

static void put_registered(const struct kubelet *k, struct json *j)
{
	json_begin_object(j);
	for (const struct resource *r = k->resources; r; r = r->next) {
		json_key(j, r->name);
		json_begin_array(j);
		for (size_t i = 0; i < r->devices.n; i++) {
			if (r->devices.v[i].healthy)
				json_put_string(j, r->devices.v[i].id);
		}
		json_end_array(j);
	}
	json_end_object(j);
}

static void put_file(const char *path, const struct strbuf *text)
{
	_cleanup_close_ int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd >= 0 && write(fd, strbuf_str(text), text->len) != (ssize_t)text->len)
		fprintf(stderr, "fakekubelet: %s was cut short\n", path);
}

void checkpoint_write(struct kubelet *k)
{
	_cleanup_free_ char *temporary =
		xasprintf("%s/.%09u", k->opt.dir, (unsigned)(now_us() % 1000000000));
	_cleanup_free_ char *final = xasprintf("%s/kubelet_internal_checkpoint", k->opt.dir);
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;
	struct json j;

	json_init(&j, &text, 0);
	json_begin_object(&j);
	json_key(&j, "Data");
	json_begin_object(&j);
	json_key(&j, "PodDeviceEntries");
	put_entries(k, &j);
	json_key(&j, "RegisteredDevices");
	put_registered(k, &j);
	json_end_object(&j);
	json_kv_int(&j, "Checksum", 2166136261);
	json_end_object(&j);
	put_file(temporary, &text);
	if (rename(temporary, final) < 0)
		perror("fakekubelet: rename of the checkpoint");
}
