/* NPWG device-info files, spec 1.1.0, as sriov-network-device-plugin writes them; `pf-pci-address`
 * is the spec's own field. */
#include "base/arena.h"
#include "base/json.h"
#include "base/str.h"
#include "config/config.h"
#include "hw/inventory.h"
#include "pool/node.h"
#include "render/render.h"

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

/* "mlx5_4" or, for a function with several devices, "mlx5_4,mlx5_5"; empty without one. */
static void put_rdma_names(struct strbuf *b, const struct hw_inventory *inv,
			   const struct pool_dev *dev)
{
	size_t first = dev->rdma < 0 ? inv->n_rdma : (size_t)dev->rdma;

	for (size_t i = first; i < inv->n_rdma && inv->rdma[i].pci == dev->pci; i++)
		strbuf_printf(b, "%s%s", b->len ? "," : "", inv->rdma[i].name);
}

const char *render_devinfo(const struct node *node, const struct pool *pool,
			   const struct pool_dev *dev, struct arena *arena)
{
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT, names = STRBUF_INIT;
	const struct hw_inventory *inv = node->inv;
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
	if (pool_dev_is_rdma(pool, dev) && dev->pci >= 0)
		put_rdma_names(&names, inv, dev);
	if (names.len)
		json_kv_string(&j, "rdma-device", strbuf_str(&names));
	json_end_object(&j);
	json_end_object(&j);
	return arena_strdup(arena, strbuf_str(&text));
}
