/*
 * NPWG device-info files, spec 1.1.0, as sriov-network-device-plugin writes them; `pf-pci-address`
 * is the spec's own field. `railmate` is not: the spec has no place for more than it names, and
 * forbids none. Multus reads the file into a structure of the spec's fields
 * (network-attachment-definition-client, pkg/utils), so it is for programs that read the file
 * itself.
 */
#include "base/arena.h"
#include "base/json.h"
#include "base/str.h"
#include "config/config.h"
#include "hw/inventory.h"
#include "pool/node.h"
#include "render/render.h"
#include "topo/rails.h"

const char *render_devinfo_name(const struct pool *pool, const struct pool_dev *dev,
				struct arena *arena)
{
	char *name = arena_printf(arena, "%s-%s-device.json", pool->cfg->resource, dev->id);

	for (char *p = name; *p; p++) {
		if (*p == '/')
			*p = '-';
	}
	return name;
}

const char *render_devinfo(const struct node *node, const struct pool *pool,
			   const struct pool_dev *dev, struct arena *arena)
{
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT, names = STRBUF_INIT;
	const struct hw_inventory *inv = node->inv;
	struct topo_rail at = topo_rails_of(node->rails, dev->pci);
	char buf[BDF_STRLEN];
	struct json j;

	json_init(&j, &text, 0);
	json_begin_object(&j);
	json_kv_string(&j, "type", "pci");
	json_kv_string(&j, "version", "1.1.0");
	json_key(&j, "pci");
	json_begin_object(&j);
	json_kv_string(&j, "pci-address", dev->id);
	if (dev->pci >= 0 && inv->pci[dev->pci].physfn >= 0)
		json_kv_string(&j, "pf-pci-address",
			       bdf_format(inv->pci[inv->pci[dev->pci].physfn].bdf, buf));
	/* "mlx5_4" or, for a function with several devices, "mlx5_4,mlx5_5" */
	if (pool_dev_is_rdma(pool, dev) && dev->pci >= 0 && dev->rdma >= 0) {
		for (size_t i = (size_t)dev->rdma; i < inv->n_rdma && inv->rdma[i].pci == dev->pci;
		     i++)
			strbuf_printf(&names, "%s%s", names.len ? "," : "", inv->rdma[i].name);
	}
	if (names.len)
		json_kv_string(&j, "rdma-device", strbuf_str(&names));
	json_end_object(&j);
	if (at.rail >= 0) {
		json_key(&j, "railmate");
		json_begin_object(&j);
		json_kv_int(&j, "rail", at.rail);
		if (at.plane >= 0)
			json_kv_int(&j, "plane", at.plane);
		json_end_object(&j);
	}
	json_end_object(&j);
	return arena_strdup(arena, strbuf_str(&text));
}
