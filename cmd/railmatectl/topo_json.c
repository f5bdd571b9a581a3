/* railmatectl topo --json: the schema is in railmatectl(1); fields may be added, none renamed. */
#include <stdio.h>

#include "base/arena.h"
#include "base/json.h"
#include "base/str.h"
#include "config/config.h"
#include "discover/discover.h"
#include "doctor/doctor.h"
#include "hw/inventory.h"
#include "pool/node.h"
#include "railmatectl.h"
#include "topo/topo.h"
#include "topo/rails.h"

static void kv_bdf(struct json *j, const char *key, const struct hw_inventory *inv, int pci)
{
	char buf[BDF_STRLEN];

	json_kv_string(j, key, pci < 0 ? NULL : bdf_format(inv->pci[pci].bdf, buf));
}

static void kv_hex4(struct json *j, const char *key, unsigned v)
{
	char buf[8];

	snprintf(buf, sizeof(buf), "%04x", v);
	json_kv_string(j, key, buf);
}

static void put_pools(struct json *j, const struct node *node)
{
	json_key(j, "pools");
	json_begin_array(j);
	for (size_t i = 0; i < node->n_pools; i++) {
		json_begin_object(j);
		json_kv_string(j, "resource", node->pools[i].cfg->resource);
		json_key(j, "devices");
		json_begin_array(j);
		for (size_t k = 0; k < node->pools[i].n_devs; k++)
			json_put_string(j, node->pools[i].devs[k].id);
		json_end_array(j);
		json_key(j, "unhealthy");
		json_begin_object(j);
		for (size_t k = 0; k < node->pools[i].n_devs; k++) {
			if (!node->pools[i].devs[k].healthy)
				json_kv_string(j, node->pools[i].devs[k].id,
					       node->pools[i].devs[k].reason);
		}
		json_end_object(j);
		json_end_object(j);
	}
	json_end_array(j);
}

static void put_gpus(struct json *j, const struct hw_inventory *inv)
{
	json_key(j, "gpus");
	json_begin_array(j);
	for (size_t i = 0; i < inv->n_gpu; i++) {
		const struct hw_gpu *g = &inv->gpu[i];

		json_begin_object(j);
		kv_bdf(j, "pci", inv, g->pci);
		kv_hex4(j, "vendor", inv->pci[g->pci].vendor);
		kv_hex4(j, "device", inv->pci[g->pci].device);
		json_kv_int(j, "numa", inv->pci[g->pci].numa);
		json_kv_string(j, "uuid", g->uuid);
		json_kv_string(j, "vendor_name", g->vendor);
		json_kv_string(j, "model", g->model);
		json_end_object(j);
	}
	json_end_array(j);
}

/* name, port, link, state and verbs node of a function's RDMA device; nulls without one */
static void put_rdma(struct json *j, const struct hw_inventory *inv, int pci)
{
	int i = hw_find_rdma(inv, pci);
	const struct hw_rdma *r = i < 0 ? NULL : &inv->rdma[i];
	const struct hw_port *port = r && r->n_ports ? &r->ports[0] : NULL;

	json_kv_string(j, "rdma", r ? r->name : NULL);
	json_kv_int_if(j, "port", port ? port->number : 0, port);
	json_kv_string(j, "link", port ? hw_link_name(port->link) : NULL);
	json_kv_string(j, "state", port ? port->state : NULL);
	json_kv_int_if(j, "rate_mbps", port ? port->rate_mbps : 0, port && port->rate_mbps);
	json_kv_string(j, "uverbs", r ? r->uverbs : NULL);
}

static void put_rail(struct json *j, const struct machine *m, int pci)
{
	struct topo_rail at = topo_rails_of(m->node->rails, pci);

	json_kv_int_if(j, "rail", at.rail, at.rail >= 0);
	json_kv_int_if(j, "plane", at.plane, at.plane >= 0);
}

/* Its VPD, where that is read. */
static void put_card(struct json *j, const struct hw_card *card)
{
	if (card && card->name)
		json_kv_string(j, "product", card->name);
	if (card && card->serial)
		json_kv_string(j, "serial", card->serial);
}

static void put_pfs(struct json *j, const struct machine *m)
{
	const struct hw_inventory *inv = m->node->inv;
	const struct hw_neighbor *neighbor;

	json_key(j, "pfs");
	json_begin_array(j);
	for (size_t i = 0; i < inv->n_pci; i++) {
		const struct hw_pci *f = &inv->pci[i];

		if (!hw_is_pf(f))
			continue;
		json_begin_object(j);
		kv_bdf(j, "pci", inv, (int)i);
		json_kv_string(j, "netdev", f->netdev);
		json_kv_int(j, "numa", f->numa);
		json_kv_int(j, "vfs", f->sriov_num);
		json_kv_int(j, "total_vfs", f->sriov_total);
		json_kv_string(j, "driver", f->driver);
		put_rdma(j, inv, (int)i);
		json_key(j, "pcie");
		json_begin_object(j);
		json_kv_int(j, "mts", f->link_mts);
		json_kv_int(j, "width", f->link_width);
		json_kv_int(j, "max_mts", f->link_mts_max);
		json_kv_int(j, "max_width", f->link_width_max);
		json_end_object(j);
		kv_bdf(j, "data_direct", inv, topo_direct(m->node->topo, (int)i));
		put_card(j, hw_find_card(inv, (int)i));
		put_rail(j, m, (int)i);
		neighbor = hw_find_neighbor(inv, (int)i);
		json_kv_string(j, "switch", neighbor ? neighbor->name : NULL);
		json_kv_string(j, "switch_port", neighbor ? neighbor->port : NULL);
		json_end_object(j);
	}
	json_end_array(j);
}

static void put_vfs(struct json *j, const struct machine *m)
{
	const struct hw_inventory *inv = m->node->inv;

	json_key(j, "vfs");
	json_begin_array(j);
	for (size_t i = 0; i < inv->n_pci; i++) {
		const struct hw_pci *f = &inv->pci[i];

		if (!hw_is_nic_vf(inv, (int)i))
			continue;
		json_begin_object(j);
		kv_bdf(j, "pci", inv, (int)i);
		kv_bdf(j, "pf", inv, f->physfn);
		json_kv_int_if(j, "index", f->vf_index, f->vf_index >= 0);
		json_kv_string(j, "driver", f->driver);
		put_rdma(j, inv, (int)i);
		json_kv_int(j, "numa", f->numa);
		json_kv_string(j, "netdev", f->netdev);
		put_rail(j, m, (int)i);
		json_end_object(j);
	}
	json_end_array(j);
}

static void put_gpu_links(struct json *j, const struct machine *m)
{
	static const char *const names[] = {
		[GPU_LINK_UNKNOWN] = NULL,
		[GPU_LINK_PCIE] = "pcie",
		[GPU_LINK_XGMI] = "xgmi",
		[GPU_LINK_NVLINK] = "nvlink",
	};
	_cleanup_arena_ struct arena *a = arena_new(1024);
	const struct hw_inventory *inv = m->node->inv;
	struct gpu_links l = discover_gpu_links(m->root, inv, a);

	json_key(j, "gpu_links");
	json_begin_array(j);
	for (size_t one = 0; one < l.n; one++) {
		for (size_t other = one + 1; other < l.n; other++) {
			json_begin_object(j);
			kv_bdf(j, "gpu", inv, inv->gpu[one].pci);
			kv_bdf(j, "other", inv, inv->gpu[other].pci);
			json_kv_string(j, "link", names[l.link[one * l.n + other]]);
			json_end_object(j);
		}
	}
	json_end_array(j);
}

void topo_json(const struct machine *m, struct strbuf *out)
{
	const struct topo_hints *hints = topo_hints_used(m->node->topo);
	const struct hw_inventory *inv = m->node->inv;
	struct json j;

	json_init(&j, out, 1);
	json_begin_object(&j);
	put_pools(&j, m->node);
	put_gpus(&j, inv);
	put_pfs(&j, m);
	put_vfs(&j, m);
	json_key(&j, "paths");
	json_begin_array(&j);
	for (size_t g = 0; g < inv->n_gpu; g++) {
		for (size_t i = 0; i < inv->n_pci; i++) {
			int gpu = inv->gpu[g].pci, nic = (int)i;
			struct topo_path path;

			if (!hw_is_pf(&inv->pci[i]) && !hw_is_nic_vf(inv, nic))
				continue;
			path = topo_between(m->node->topo, gpu, nic);
			json_begin_object(&j);
			kv_bdf(&j, "gpu", inv, gpu);
			kv_bdf(&j, "nic", inv, nic);
			json_kv_string(&j, "class", topo_class_name(path.class));
			json_kv_int_if(&j, "bridges", path.bridges, path.bridges >= 0);
			kv_bdf(&j, "data_direct", inv,
			       path.direct ? topo_direct(m->node->topo, nic) : -1);
			json_end_object(&j);
		}
	}
	json_end_array(&j);
	put_gpu_links(&j, m);
	json_key(&j, "numa_nodes");
	json_begin_array(&j);
	for (size_t i = 0; i < inv->n_numa; i++)
		json_put_int(&j, inv->numa[i].id);
	json_end_array(&j);
	json_kv_string(&j, "board", doctor_board_of_gpus(inv));
	json_kv_bool(&j, "flattened_vm", topo_flattened_vm(m->node->topo));
	json_kv_string(&j, "hints", hints ? hints->source : NULL);
	json_kv_bool(&j, "rdma_cm", inv->has_rdma_cm);
	json_end_object(&j);
	strbuf_putc(out, '\n');
}
