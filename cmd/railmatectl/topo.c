/* railmatectl topo: the machine as JSON, as a picture, as NCCL's topology file; topo_text.c has its
 * tables. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ask_ledger.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "config/config.h"
#include "control/control.h"
#include "discover/discover.h"
#include "doctor/doctor.h"
#include "draw/draw.h"
#include "hw/inventory.h"
#include "ledger/ledger.h"
#include "pool/node.h"
#include "railmatectl.h"
#include "render/topofile.h"
#include "topo/rails.h"
#include "topo/topo.h"

/* --- JSON: the schema is in railmatectl(1); fields may be added, none renamed --- */

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
	json_kv_array(j, "pools");
	for (size_t i = 0; i < node->n_pools; i++) {
		json_begin_object(j);
		json_kv_string(j, "resource", node->pools[i].cfg->resource);
		json_kv_array(j, "devices");
		for (size_t k = 0; k < node->pools[i].n_devs; k++)
			json_put_string(j, node->pools[i].devs[k].id);
		json_end_array(j);
		json_kv_object(j, "unhealthy");
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
	json_kv_array(j, "gpus");
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

	json_kv_array(j, "pfs");
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
		json_kv_object(j, "pcie");
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

	json_kv_array(j, "vfs");
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

	json_kv_array(j, "gpu_links");
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

static void put_json(const struct machine *m, struct strbuf *out)
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
	json_kv_array(&j, "paths");
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
	json_kv_array(&j, "numa_nodes");
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

/* --- the picture, with the pods that hold VFs where that can be known --- */

/* The holders, with the GPUs that the container really has, once that is known; before, those that
 * its VFs were chosen for. In the arena, with strings of the ledger, which stays as it is. */
static size_t holds_of(const struct ledger *l, struct arena *a, const struct draw_hold **ret)
{
	struct draw_hold *v = arena_array(a, ledger_holds(l), sizeof(*v));

	for (size_t i = 0; i < ledger_holds(l); i++) {
		const struct ledger_hold *h = ledger_hold_at(l, i);
		const struct ledger_decision *d = ledger_decision_read(l, h->decision, a);

		v[i] = (struct draw_hold) { .vf = h->vf,
					    .ns = h->owner.ns,
					    .pod = h->owner.pod,
					    .uid = h->owner.uid,
					    .draining = h->draining };
		if (d && d->checked) {
			v[i].gpus = d->real_gpus;
			v[i].n_gpus = d->n_real_gpus;
		} else if (d && d->known == LEDGER_GPUS_KNOWN) {
			v[i].gpus = d->gpus;
			v[i].n_gpus = d->n_gpus;
		}
	}
	*ret = v;
	return ledger_holds(l);
}

static void put_svg(const struct machine *m, const struct ledger_source *holders,
		    struct strbuf *out)
{
	_cleanup_arena_ struct arena *a = arena_new(64 * 1024);
	const struct hw_inventory *inv = m->node->inv;
	const char **names = arena_array(a, inv->n_gpu, sizeof(*names));
	struct draw_in in = { .inv = inv, .topo = m->node->topo, .gpu_names = names };
	struct ledger_answer answer = { 0 };
	struct err err = { 0 };

	for (size_t i = 0; i < inv->n_gpu; i++)
		names[i] = gpu_name(m, &inv->gpu[i], a);
	if (holders && ask_ledger(holders, a, &answer, &err) < 0)
		fail(0, "the picture does not show who holds VFs: %s", err.msg);
	in.holds_known = answer.ledger != NULL;
	if (answer.ledger)
		in.n_holds = holds_of(answer.ledger, a, &in.holds);
	draw_svg(&in, out);
	ledger_free(answer.ledger);
}

/* --- the topology file, whether or not railmated would use it --- */

static int put_xml(const struct machine *m, bool rccl, struct strbuf *out)
{
	_cleanup_arena_ struct arena *arena = arena_new(64 * 1024);
	_cleanup_strbuf_ struct strbuf why = STRBUF_INIT;
	const struct topofile_in in = topofile_in(m->node, rccl ? 2 : 1);
	struct topofile_out file;
	struct err err = { 0 };
	bool needed;

	if (topofile_render(&in, arena, &file, &err) < 0)
		return fail(EXIT_FAILED, "%s", err.msg);
	for (size_t i = 0; i < file.n_notes; i++)
		fail(0, "%s", file.notes[i]);
	needed = topofile_needed(&in, &why);
	fail(0, "topologyFile \"auto\" would %s this file: %s", needed ? "use" : "not use",
	     strbuf_str(&why));
	strbuf_puts(out, file.text);
	return EXIT_DONE;
}

/* --- the command --- */

int cmd_topo(int argc, char **argv)
{
	_cleanup_(machine_close) struct machine m = { .root_path = "/" };
	_cleanup_strbuf_ struct strbuf out = STRBUF_INIT;
	bool json = false, svg = false, xml = false, rccl = false, wide = false, foreign;
	struct ledger_source source = { 0 };
	const struct word words[] = {
		{ "root", &m.root_path, NULL },
		{ "config", &m.config_path, NULL },
		{ "topology-hints", &m.hints_path, NULL },
		{ "json", NULL, &json },
		{ "svg", NULL, &svg },
		{ "control-socket", &source.socket, NULL },
		{ "state-dir", &source.state_dir, NULL },
		{ "nccl-xml", NULL, &xml },
		{ "rccl", NULL, &rccl },
		{ "wide", NULL, &wide },
	};
	int r = read_only_options(argc, argv, words, ARRAY_LEN(words));

	if (r != EXIT_DONE)
		return r;
	if (json + svg + xml > 1)
		return fail(EXIT_USAGE,
			    "--json, --svg and --nccl-xml exclude each other: one at a time");
	if (rccl && !xml)
		return fail(EXIT_USAGE, "--rccl is for --nccl-xml");
	if (wide && json + svg + xml)
		return fail(EXIT_USAGE, "--wide is for text, not for --json, --svg or --nccl-xml");
	if ((source.socket || source.state_dir) && !svg)
		return fail(EXIT_USAGE, "--control-socket and --state-dir are for --svg");
	r = machine_open(&m);
	if (r == EXIT_DONE && xml)
		r = put_xml(&m, rccl, &out);
	if (r != EXIT_DONE)
		return r;
	/* --root names another machine: the daemon of this one is asked of it only if it is named,
	 * too. */
	foreign = !source.socket && !source.state_dir && strcmp(m.root_path, "/") != 0;
	source.socket = source.socket ? source.socket : CONTROL_SOCKET;
	source.state_dir = source.state_dir ? source.state_dir : STATE_DIR;
	if (svg)
		put_svg(&m, foreign ? NULL : &source, &out);
	else if (json)
		put_json(&m, &out);
	else if (!xml)
		topo_text(&m, wide, &out);
	return print_out(&out);
}
