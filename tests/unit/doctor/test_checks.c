/* Every verdict of every check, from facts that differ from those of a sound machine in one thing.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "doctor/doctor-internal.h"
#include "hw/inventory.h"
#include "support/synth.h"
#include "topo/rails.h"
#include "topo/topo.h"

#define SOUND "numa:2 switch:1 gpu:1 pf:1 vf:2"
#define MINE                                                                                       \
	"driver,vfs,path,numa,link,iommu,acs,relaxed-ordering,payload,gpudirect,gpudirect-amd,rccl-host,storage,boot-args,rails,numa-clusters,numa-nodes,bar,ari,modules,peermem,gpu-options,ibgda"
#define DEVCTL 0x583f /* relaxed ordering, 256 bytes, read requests of 4096 */

struct machine {
	struct hw_inventory *inv;
	struct topo *topo;
	bool names_rails;
	struct topo_rails *rails;
	struct facts f;
};

static void take_ports(struct machine *m)
{
	struct hw_inventory *inv = m->inv;

	for (size_t i = 0; i < inv->n_pci; i++) {
		struct facts_pci *p = &m->f.pci[i];
		int depth = 0;

		*p = (struct facts_pci) { .iommu = FACTS_IOMMU_IDENTITY,
					  .config = FACTS_CONFIG_READ,
					  .config_ext = FACTS_CONFIG_READ,
					  .devctl = DEVCTL,
					  .devcap2 = 0x20,
					  .devctl2 = 0x20,
					  .bars = { .known = FACTS_YES, .largest = 1LL << 37 } };
		for (int up = inv->pci[i].parent; up >= 0; up = inv->pci[up].parent)
			depth++;
		if (inv->pci[i].class_code >> 8 == 0x0604) {
			p->port_type = !depth	   ? FACTS_PORT_ROOT
				       : depth % 2 ? FACTS_PORT_UPSTREAM
						   : FACTS_PORT_DOWNSTREAM;
			p->has_acs = p->port_type != FACTS_PORT_UPSTREAM;
		}
		inv->pci[i].link_mts = inv->pci[i].link_mts_max = 32000;
		inv->pci[i].link_width = inv->pci[i].link_width_max = 16;
		inv->pci[i].driver = "mlx5_core";
	}
}

/* PFs with VFs, as facts/gather.c finds them; the inventory's order is by address. */
static void take_nics(struct machine *m)
{
	int *nic = arena_array(m->f.arena, m->inv->n_pci, sizeof(*nic));

	for (size_t i = 0; i < m->inv->n_pci; i++) {
		if (hw_is_pf(&m->inv->pci[i]) ||
		    (m->inv->pci[i].physfn < 0 && hw_is_nic_vf(m->inv, (int)i)))
			nic[m->f.n_nic++] = (int)i;
	}
	m->f.nic = nic;
}

static void machine_of(struct machine *m, const char *line)
{
	m->inv = synth_inventory(line);
	m->topo = topo_new(m->inv, NULL);
	m->names_rails = false;
	m->rails = NULL;
	m->f = (struct facts) { .arena = arena_new(4096), .inv = m->inv, .topo = m->topo };
	m->f.pci = arena_array(m->f.arena, m->inv->n_pci, sizeof(*m->f.pci));
	m->f.host = (struct facts_host) {
		.cmdline = "root=/dev/sda1 iommu=pt",
		.kernel = "6.8.0",
		.kernel_major = 6,
		.kernel_minor = 8,
		.iommu_units = 2,
		.iommu_kind = "dmar",
		.iommu_groups = 9,
		.peermem = FACTS_YES,
		.nvidia_open = FACTS_YES,
		.amd_peer = FACTS_YES,
		.amd_dmabuf = FACTS_UNKNOWN,
		.nvidia_fs = FACTS_YES,
		.nvidia_version = "550.90.07",
		.peermem_version = "550.90.07",
		.peermem_registered = FACTS_YES,
		.rdma_peers = FACTS_UNKNOWN,
		.numa_balancing = 0,
	};
	take_ports(m);
	take_nics(m);
}

static void machine_done(struct machine *m)
{
	arena_free(m->f.arena);
	topo_rails_free(m->rails);
	topo_free(m->topo);
	hw_inventory_free(m->inv);
}
#define _cleanup_machine_ __attribute__((cleanup(machine_done)))

static int gpu(const struct machine *m)
{
	return synth_gpu(m->inv, 0);
}

static int pf(const struct machine *m)
{
	return synth_pf(m->inv, 0);
}

/* The port of the switch that the first GPU hangs on. */
static struct facts_pci *port(const struct machine *m)
{
	return &m->f.pci[m->inv->pci[gpu(m)].parent];
}

static void amd(struct machine *m)
{
	for (size_t i = 0; i < m->inv->n_gpu; i++)
		m->inv->gpu[i].vendor = "AMD";
}

/* --- what goes wrong --- */

#define CHANGE(name, ...)                                                                          \
	static void name(struct machine *m)                                                        \
	{                                                                                          \
		__VA_ARGS__                                                                        \
	}

CHANGE(nothing, (void)m;)
CHANGE(vf_vfio, m->inv->pci[synth_vf(m->inv, 0)].driver = "vfio-pci";)
CHANGE(vf_without_driver, m->inv->pci[synth_vf(m->inv, 0)].driver = NULL;)
CHANGE(gpu_vfio, m->inv->pci[gpu(m)].driver = "vfio-pci";)
CHANGE(no_rdma, m->inv->n_rdma = 0;)
CHANGE(c2c, for (size_t i = 0; i < m->inv->n_gpu; i++) m->inv->gpu[i].model = "NVIDIA GB200";)
CHANGE(gpu_without_node, m->inv->pci[gpu(m)].numa = -1;)
CHANGE(nic_without_node, m->inv->pci[pf(m)].numa = -1;)
CHANGE(nic_elsewhere, m->inv->pci[pf(m)].numa = 1;)
CHANGE(gpu_narrow, m->inv->pci[gpu(m)].link_width = 8;)
CHANGE(gpu_slow, m->inv->pci[gpu(m)].link_mts = 2500;)
CHANGE(nic_slow, m->inv->pci[pf(m)].link_mts = 8000;)
CHANGE(nic_slow_narrow, m->inv->pci[pf(m)].link_mts = 8000; m->inv->pci[pf(m)].link_width = 8;)
CHANGE(nic_in_an_older_slot, m->inv->pci[pf(m)].link_mts = 16000;
       m->inv->pci[m->inv->pci[pf(m)].parent].link_mts_max = 16000;)
CHANGE(nic_no_speed, m->inv->pci[pf(m)].link_mts = 0;)
CHANGE(gpu_no_link, m->inv->pci[gpu(m)].link_width = 0;)
CHANGE(switch_narrow, m->inv->pci[m->inv->pci[m->inv->pci[gpu(m)].parent].parent].link_width = 4;)
CHANGE(gpu_dma, m->f.pci[gpu(m)].iommu = FACTS_IOMMU_DMA; m->f.host.cmdline = "";)
CHANGE(gpu_dma_fq, m->f.pci[gpu(m)].iommu = FACTS_IOMMU_DMA_FQ; m->f.host.cmdline = NULL;)
CHANGE(gpu_dma_despite, m->f.pci[gpu(m)].iommu = FACTS_IOMMU_DMA;)
CHANGE(gpu_dma_ats, gpu_dma(m); m->f.pci[gpu(m)].has_ats = true;
       m->f.pci[gpu(m)].ats_ctrl = 0x8000;)
CHANGE(gpu_dma_ats_off, gpu_dma(m); m->f.pci[gpu(m)].has_ats = true;)
CHANGE(gpu_dma_ats_hidden, gpu_dma(m); m->f.pci[gpu(m)].config_ext = FACTS_CONFIG_SHORT;)
CHANGE(gpu_group_unknown, m->f.pci[gpu(m)].iommu = FACTS_IOMMU_UNKNOWN;)
CHANGE(gpu_group_other, m->f.pci[gpu(m)].iommu = FACTS_IOMMU_OTHER; m->f.host.cmdline = NULL;)
CHANGE(gpu_blocked, m->f.pci[gpu(m)].iommu = FACTS_IOMMU_BLOCKED;)
CHANGE(no_iommu, for (size_t i = 0; i < m->inv->n_pci; i++) m->f.pci[i].iommu = FACTS_IOMMU_NONE;)
CHANGE(vf_dma, gpu_dma(m); m->f.pci[gpu(m)].iommu = FACTS_IOMMU_IDENTITY;
       m->f.pci[synth_vf(m->inv, 1)].iommu = FACTS_IOMMU_DMA_FQ;)
CHANGE(arm_dma, gpu_dma(m); m->f.host.iommu_kind = "smmu";)
CHANGE(acs_usual, port(m)->acs_ctrl = 0x001d;)
CHANGE(acs_sv_uf, port(m)->acs_ctrl = 0x0011;)
CHANGE(acs_requests, port(m)->acs_ctrl = 0x0004;)
CHANGE(acs_completions, port(m)->acs_ctrl = 0x0008;)
CHANGE(acs_egress, port(m)->acs_ctrl = 0x0020;)
CHANGE(acs_despite, acs_usual(m);
       m->f.host.cmdline = "pci=realloc pci=\"disable_acs_redir=0000:ff:00.0;ADDRESS\"";)
CHANGE(acs_short, port(m)->has_acs = false; port(m)->config_ext = FACTS_CONFIG_SHORT;)
CHANGE(acs_no_file, port(m)->has_acs = false; port(m)->config_ext = FACTS_CONFIG_NONE;)
CHANGE(acs_broken, port(m)->has_acs = false; port(m)->config_ext = FACTS_CONFIG_BROKEN;)
CHANGE(acs_none, port(m)->has_acs = false; port(m)->acs_ctrl = 0x001d;)
CHANGE(acs_above, m->f.pci[m->inv->pci[m->inv->pci[m->inv->pci[gpu(m)].parent].parent].parent]
			  .acs_ctrl = 0x1d;)
CHANGE(acs_of_type_unknown, acs_usual(m); port(m)->port_type = -1;)
CHANGE(acs_ats, port(m)->acs_ctrl = 0x005d;
       m->f.pci[gpu(m)].has_ats = m->f.pci[pf(m)].has_ats = true;
       m->f.pci[gpu(m)].ats_ctrl = m->f.pci[pf(m)].ats_ctrl = 0x8000;)
CHANGE(acs_ats_of_one, acs_ats(m); m->f.pci[pf(m)].ats_ctrl = 0;)
CHANGE(acs_ats_blocked, acs_ats(m); port(m)->acs_ctrl |= 0x0002;)
CHANGE(acs_ats_without_dt, acs_ats(m); port(m)->acs_ctrl = 0x001d;)
CHANGE(acs_common, int up = m->inv->pci[m->inv->pci[gpu(m)].parent].parent;
       m->f.pci[up].port_type = -1; m->f.pci[up].has_acs = true; m->f.pci[up].acs_ctrl = 0x001d;)
static void connect_to(struct machine *m, const char *first, const char *second)
{
	struct hw_neighbor *leaf = arena_array(m->f.arena, 2, sizeof(*leaf));

	leaf[0] = (struct hw_neighbor) { synth_pf(m->inv, 0), first, "swp1" };
	leaf[1] = (struct hw_neighbor) { synth_pf(m->inv, 1), second, "swp1" };
	m->inv->neighbor = leaf;
	m->inv->n_neighbor = 2;
}

CHANGE(leaves_in_order, connect_to(m, "leaf-9", "leaf-10");)
CHANGE(leaves_swapped, connect_to(m, "leaf-10", "leaf-9");)
CHANGE(one_leaf, connect_to(m, "leaf-1", "leaf-1");)
CHANGE(one_leaf_known, connect_to(m, "leaf-1", "leaf-2"); m->inv->n_neighbor = 1;)
CHANGE(rails_named, leaves_swapped(m); m->names_rails = true;)
CHANGE(guest, m->inv->hypervisor = true;)
CHANGE(guest_acs, guest(m); acs_usual(m);)
CHANGE(guest_acs_ats, guest(m); acs_ats(m);)
CHANGE(ro_off, m->f.pci[pf(m)].devctl &= ~0x10;)
CHANGE(config_short, m->f.pci[pf(m)].devctl = -1; m->f.pci[pf(m)].config = FACTS_CONFIG_SHORT;)
CHANGE(config_no_pcie, m->f.pci[pf(m)].devctl = -1;)
CHANGE(small_payload, port(m)->devctl = 0x581f;)
CHANGE(small_requests, m->f.pci[pf(m)].devctl = 0x083f;)
CHANGE(gdr_closed, m->f.host.peermem = FACTS_NO; m->f.host.nvidia_open = FACTS_NO;)
CHANGE(gdr_old_kernel, gdr_closed(m); m->f.host.nvidia_open = FACTS_YES; m->f.host.kernel_major = 5;
       m->f.host.kernel_minor = 11;)
CHANGE(gdr_dmabuf, m->f.host.peermem = FACTS_NO; m->f.host.kernel_major = 5;
       m->f.host.kernel_minor = 12;)
CHANGE(gdr_hidden, m->f.host.peermem = m->f.host.nvidia_open = FACTS_UNKNOWN;)
CHANGE(gdr_flavour_hidden, m->f.host.peermem = FACTS_NO; m->f.host.nvidia_open = FACTS_UNKNOWN;)
CHANGE(gdr_no_version, m->f.host.peermem = FACTS_NO; m->f.host.kernel_major = -1;)
CHANGE(gdr_peer_hidden, m->f.host.peermem = FACTS_UNKNOWN; m->f.host.nvidia_open = FACTS_NO;)
CHANGE(amd_dmabuf, amd(m); m->f.host.amd_peer = FACTS_NO; m->f.host.amd_dmabuf = FACTS_YES;)
CHANGE(amd_neither, amd(m); m->f.host.amd_peer = m->f.host.amd_dmabuf = FACTS_NO;)
CHANGE(amd_hidden, amd(m); m->f.host.amd_peer = m->f.host.amd_dmabuf = FACTS_UNKNOWN;)
CHANGE(amd_half, amd(m); m->f.host.amd_peer = FACTS_NO;)
CHANGE(amd_no_pt, amd(m); m->f.host.cmdline = "iommu=ptx xiommu=pt";)
CHANGE(amd_no_iommu, amd_no_pt(m); m->f.host.iommu_groups = 0;)
CHANGE(amd_no_cmdline, amd(m); m->f.host.cmdline = NULL;)
CHANGE(amd_balancing, amd(m); m->f.host.numa_balancing = 1;)
CHANGE(amd_balancing_hidden, amd(m); m->f.host.numa_balancing = -1;)
CHANGE(amd_guest, amd_no_pt(m); guest(m);)
CHANGE(no_fs, m->f.host.nvidia_fs = FACTS_NO;)
CHANGE(fs_hidden, m->f.host.nvidia_fs = FACTS_UNKNOWN;)
CHANGE(boot_override, m->f.host.cmdline = "pcie_acs_override=downstream";)
CHANGE(boot_amd_pt, m->f.host.cmdline = "quiet amd_iommu=on,pt";)
CHANGE(boot_intel_pt, m->f.host.cmdline = "intel_iommu=pt quiet";)
CHANGE(boot_buses, m->f.host.cmdline = "pci=realloc,assign-busses";)
CHANGE(boot_noats, m->f.host.cmdline = "pci=noats pci=realloc";)
CHANGE(boot_noacs, m->f.host.cmdline = "iommu=pt pci=noacs";)
CHANGE(boot_in_pci, m->f.host.cmdline = "pci=pcie_acs_override=downstream";)
CHANGE(boot_hidden, m->f.host.cmdline = NULL;)
CHANGE(boot_like,
       m->f.host.cmdline = "pci=noatsx intel_iommu=on,ptx mypci=noats \"quoted pci=noats\"";)

/* --- nodes, slots, modules --- */

static const char *const two_cpus[] = { "0000ffff", "ffff0000" };
static const int near[] = { 10, 12, 12, 10 }, apart[] = { 10, 21, 21, 10 };

static void give_nodes(struct machine *m, const int *distance)
{
	for (size_t i = 0; i < 2; i++) {
		m->inv->numa[i].cpumap = two_cpus[i];
		m->inv->numa[i].distance = distance + 2 * i;
	}
}

static void more_nodes(struct machine *m, size_t n)
{
	struct hw_numa *numa = arena_array(m->f.arena, n, sizeof(*numa));

	for (size_t i = 0; i < n; i++)
		numa[i] = (struct hw_numa) { .id = (int)i,
					     .cpumap = i < 2 ? "1" : "00000000,00000000" };
	m->inv->numa = numa;
	m->inv->n_numa = n;
}

CHANGE(clusters, give_nodes(m, near);)
CHANGE(two_sockets, give_nodes(m, apart);)
CHANGE(cluster_without_gpu, give_nodes(m, near); m->inv->n_gpu = 1;)
CHANGE(socket_without_gpu, give_nodes(m, apart); m->inv->n_gpu = 1;)
CHANGE(memory_nodes, more_nodes(m, 6);)
CHANGE(mig_nodes, more_nodes(m, 34);)
CHANGE(gpu_bar_unset, m->f.pci[gpu(m)].bars.unset = true;)
CHANGE(gpu_bar_despite, gpu_bar_unset(m); m->f.host.cmdline = "pci=noaer,realloc=on";)
CHANGE(vf_bar_unset, m->f.pci[pf(m)].bars.vf_unset = true;)
CHANGE(gpu_bar_small, m->f.pci[gpu(m)].bars.largest = 256 << 20;)
CHANGE(bar_hidden, m->f.pci[gpu(m)].bars.known = FACTS_NO;)
CHANGE(many_vfs, m->inv->pci[pf(m)].sriov_total = 16;)
CHANGE(no_ari, many_vfs(m); m->f.pci[m->inv->pci[pf(m)].parent].devctl2 = 0;)
CHANGE(never_ari, no_ari(m); m->f.pci[m->inv->pci[pf(m)].parent].devcap2 = 0;)
CHANGE(ari_hidden, many_vfs(m); m->f.pci[m->inv->pci[pf(m)].parent].devctl2 = -1;
       m->f.pci[m->inv->pci[pf(m)].parent].config = FACTS_CONFIG_SHORT;)
CHANGE(ari_by_vf, ari_hidden(m); struct bdf *vf = &m->inv->pci[synth_vf(m->inv, 0)].bdf;
       *vf = m->inv->pci[pf(m)].bdf; vf->dev = 1;)
CHANGE(few_vfs, m->inv->pci[pf(m)].sriov_total = m->inv->pci[synth_pf(m->inv, 1)].sriov_total = 7;)
CHANGE(guest_bars, gpu_bar_unset(m); many_vfs(m); guest(m);)
CHANGE(rdma_module_missing, m->inv->n_rdma = 0;)
CHANGE(other_driver, rdma_module_missing(m);
       for (size_t i = 0; i < m->inv->n_pci; i++) m->inv->pci[i].driver = "e1000";)
CHANGE(no_cm, m->inv->has_rdma_cm = false;)
CHANGE(with_cm, m->inv->has_rdma_cm = true;)
CHANGE(peer_older, m->f.host.peermem_version = "535.54.03";)
#define PARAMS(ordering, override)                                                                 \
	"EnableMSI: 1\nEnablePCIERelaxedOrderingMode: " ordering                                   \
	"\nGrdmaPciTopoCheckOverride: " override "\nCoherentGPUMemoryMode: \"\""
CHANGE(options_usual, m->f.host.nvidia_params = PARAMS("0", "0");)
CHANGE(options_ordering, m->f.host.nvidia_params = PARAMS("1", "0");)
CHANGE(options_known, m->f.host.nvidia_params = PARAMS("1", "0");
       m->f.host.cmdline = "iommu=pt nvidia.NVreg_EnablePCIERelaxedOrderingMode=1 nvidia.NVreg_";)
CHANGE(options_misspelt, m->f.host.nvidia_params = PARAMS("0", "0");
       m->f.host.cmdline = "iommu=pt nvidia.NVreg_EnablePCIeRelaxedOrderingMode=1";)
CHANGE(options_part, m->f.host.nvidia_params = PARAMS("0", "0");
       m->f.host.cmdline = "nvidia.NVreg_Enable=1";)
CHANGE(options_override, m->f.host.nvidia_params = PARAMS("0", "1");)
CHANGE(options_of_amd, amd(m); m->f.host.nvidia_params = PARAMS("0", "1");)
#define IBGDA(ops, dwords)                                                                         \
	"EnableStreamMemOPs: " ops "\nRegistryDwords: \"" dwords "\"\nRegistryDwordsPerDevice: \"\""
CHANGE(ibgda_none, m->f.host.nvidia_params = IBGDA("0", "");)
CHANGE(ibgda_both, m->f.host.nvidia_params = IBGDA("1", "RmX=2;PeerMappingOverride=1;");)
CHANGE(ibgda_half, m->f.host.nvidia_params = IBGDA("1", "PeerMappingOverride=10;");)
CHANGE(ibgda_booted, m->f.host.nvidia_params = IBGDA("0", "");
       m->f.host.cmdline = "nvidia.NVreg_RegistryDwords=PeerMappingOverride=1";)
CHANGE(ibgda_amd, amd(m); m->f.host.nvidia_params = IBGDA("1", "");)
CHANGE(peer_twice, m->f.host.old_peermem = true;)
CHANGE(peer_unlisted, m->f.host.peermem_registered = FACTS_NO;)
CHANGE(peer_not_loaded, gdr_closed(m); m->f.host.peermem_version = NULL;)
CHANGE(peer_impossible, peer_not_loaded(m); m->f.host.rdma_peers = FACTS_NO;)
CHANGE(peer_possible, peer_not_loaded(m); m->f.host.rdma_peers = FACTS_YES;)

/* Ways are measured again: the change may have moved a device. */
static void change(struct machine *m, void (*how)(struct machine *m))
{
	static const struct topo_rail_name names[] = { { "eth0", 0, false, 0 },
						       { "eth1", 1, false, 0 } };

	how(m);
	topo_free(m->topo);
	m->f.topo = m->topo = topo_new(m->inv, NULL);
	if (m->names_rails)
		m->f.rails = m->rails = topo_rails_new(m->topo, names, ARRAY_LEN(names));
}

/* verdict SILENT: the check does not apply. words: part of a sentence. */
#define SILENT (-1)
static const struct {
	const char *check, *machine;
	void (*change)(struct machine *m);
	int verdict;
	const char *words;
} cases[] = {
	{ "driver", SOUND, nothing, DIAGNOSIS_PASS, "GPUs: 2, VFs: 4" },
	{ "driver", SOUND, vf_vfio, DIAGNOSIS_FAIL, "is bound to vfio-pci" },
	{ "driver", SOUND, vf_without_driver, DIAGNOSIS_WARN, "has no driver" },
	{ "driver", SOUND, gpu_vfio, DIAGNOSIS_WARN, "is bound to vfio-pci" },
	{ "driver", "numa:1 root:1", nothing, SILENT, NULL },
	{ "vfs", SOUND, nothing, DIAGNOSIS_PASS, "VFs: 4, cards: 2" },
	{ "vfs", SOUND, no_rdma, DIAGNOSIS_FAIL, "No RDMA device" },
	{ "vfs", "numa:1 switch:1 gpu:1 pf:1", nothing, DIAGNOSIS_WARN, "has none of its" },
	{ "path", SOUND, nothing, DIAGNOSIS_PASS, "by PIX" },
	{ "path", "switch:1 sub:2 gpu:1 upf:1 vf:1", nothing, DIAGNOSIS_PASS, "by PXB" },
	{ "path", "switch:0 gpu:1 pf:1 vf:1", nothing, DIAGNOSIS_WARN, "by PHB" },
	{ "path", "numa:1 switch:1 gpu:1; numa:1 switch:1 pf:1 vf:1", nothing, DIAGNOSIS_WARN,
	  "by SYS" },
	{ "path", "numa:1 root:1 switch:0 gpu:1 pf:1 vf:1", c2c, DIAGNOSIS_PASS, "by its CPU" },
	{ "path", "numa:1 switch:1 gpu:1; numa:1 switch:1 pf:1 vf:1", c2c, DIAGNOSIS_WARN,
	  "by SYS" },
	{ "path", "flat hyper nopf gpu:2 pf:2 vf:1", nothing, DIAGNOSIS_UNKNOWN, "not visible" },
	{ "path", "gpu:1", nothing, SILENT, NULL },
	{ "numa", SOUND, nothing, DIAGNOSIS_PASS, "there are 2" },
	{ "numa", "numa:1 switch:1 gpu:1 pf:1 vf:1", nothing, DIAGNOSIS_PASS, "One NUMA node" },
	{ "numa", SOUND, gpu_without_node, DIAGNOSIS_WARN, "is on no NUMA node" },
	{ "numa", SOUND, nic_without_node, DIAGNOSIS_WARN, "is on no NUMA node" },
	{ "numa", SOUND, nic_elsewhere, DIAGNOSIS_WARN, "on node 1" },
	{ "numa", "numa:0 switch:1 gpu:1 pf:1 vf:1", nothing, SILENT, NULL },
	{ "link", SOUND, nothing, DIAGNOSIS_PASS, "Links at full width and speed: 4." },
	{ "link", SOUND, gpu_narrow, DIAGNOSIS_WARN, "runs x8 of x16" },
	{ "link", SOUND, switch_narrow, DIAGNOSIS_WARN, "runs x4 of x16" },
	{ "link", SOUND, gpu_slow, DIAGNOSIS_PASS, "below their speed just now: 1." },
	{ "link", SOUND, nic_slow, DIAGNOSIS_WARN, "runs at 8 GT/s, and 32 would go." },
	{ "link", SOUND, nic_slow_narrow, DIAGNOSIS_WARN, "runs x8 of x16" },
	{ "link", SOUND, nic_in_an_older_slot, DIAGNOSIS_PASS,
	  "Links at full width and speed: 4." },
	{ "link", SOUND, nic_no_speed, DIAGNOSIS_PASS, "Links at full width and speed: 4." },
	{ "link", SOUND, gpu_no_link, DIAGNOSIS_UNKNOWN, "is not known" },
	{ "iommu", SOUND, nothing, DIAGNOSIS_PASS, "8 GPUs, NICs and VFs" },
	{ "iommu", SOUND, no_iommu, DIAGNOSIS_PASS, "8 GPUs, NICs and VFs" },
	{ "iommu", SOUND, gpu_dma, DIAGNOSIS_WARN, "DMA (translated, strict), and it has no ATS" },
	{ "iommu", SOUND, gpu_dma_fq, DIAGNOSIS_WARN, "DMA-FQ (translated, lazy)" },
	{ "iommu", SOUND, gpu_dma_ats_off, DIAGNOSIS_WARN, "without ATS" },
	{ "iommu", SOUND, gpu_dma_ats_hidden, DIAGNOSIS_WARN, "whether with ATS is not visible" },
	{ "iommu", SOUND, gpu_dma_despite, DIAGNOSIS_WARN, "although the command line asks" },
	{ "iommu", SOUND, vf_dma, DIAGNOSIS_WARN, "one of 1 of NIC" },
	{ "iommu", SOUND, gpu_dma_ats, DIAGNOSIS_PASS, "with ATS: 1." },
	{ "iommu", SOUND, gpu_group_unknown, DIAGNOSIS_UNKNOWN,
	  "is unknown; the command line asks" },
	{ "iommu", SOUND, gpu_group_other, DIAGNOSIS_UNKNOWN, "neither identity nor DMA." },
	{ "iommu", SOUND, gpu_blocked, DIAGNOSIS_FAIL, "blocked" },
	{ "acs", SOUND, nothing, DIAGNOSIS_PASS, "pairs: 2, ports: 4" },
	{ "acs", SOUND, acs_usual, DIAGNOSIS_WARN, "(ACS SV RR CR UF)" },
	{ "acs", SOUND, acs_requests, DIAGNOSIS_WARN, "(ACS RR)" },
	{ "acs", SOUND, acs_completions, DIAGNOSIS_WARN, "(ACS CR)" },
	{ "acs", SOUND, acs_egress, DIAGNOSIS_WARN, "(ACS EC)" },
	{ "acs", SOUND, acs_sv_uf, DIAGNOSIS_PASS, "Nothing is redirected" },
	{ "acs", SOUND, acs_none, DIAGNOSIS_PASS, "Nothing is redirected" },
	{ "acs", SOUND, acs_above, DIAGNOSIS_PASS, "Nothing is redirected" },
	{ "acs", SOUND, acs_of_type_unknown, DIAGNOSIS_WARN, "redirects" },
	{ "acs", SOUND, acs_short, DIAGNOSIS_UNKNOWN, "CAP_SYS_ADMIN" },
	{ "acs", SOUND, acs_no_file, DIAGNOSIS_UNKNOWN, "cannot be read" },
	{ "acs", SOUND, acs_broken, DIAGNOSIS_UNKNOWN, "makes no sense" },
	{ "acs", SOUND, acs_ats, DIAGNOSIS_PASS, "with DT and ATS: 1." },
	{ "acs", SOUND, acs_ats_of_one, DIAGNOSIS_WARN, "redirects" },
	{ "acs", SOUND, acs_ats_without_dt, DIAGNOSIS_WARN, "redirects" },
	{ "acs", SOUND, acs_common, DIAGNOSIS_PASS, "Nothing is redirected" },
	{ "acs", SOUND, acs_ats_blocked, DIAGNOSIS_WARN, "TB" },
	{ "acs", "switch:1 gpu:2; switch:1 pf:1 vf:1", acs_usual, DIAGNOSIS_WARN, "and GPU " },
	{ "acs", "switch:1 gpu:2; switch:1 pf:1 vf:1", acs_short, DIAGNOSIS_UNKNOWN, "and GPU " },
	{ "acs", "switch:1 gpu:2; switch:1 pf:1 vf:1", nothing, DIAGNOSIS_PASS, "between GPUs (" },
	{ "acs", "switch:1 gpu:2 pf:1 vf:1", acs_usual, DIAGNOSIS_WARN, "and NIC " },
	{ "acs", "switch:1 gpu:1; switch:1 gpu:1", acs_usual, SILENT, NULL },
	{ "acs", SOUND, guest, DIAGNOSIS_UNKNOWN, "the host's are hidden" },
	{ "acs", SOUND, guest_acs, DIAGNOSIS_WARN, "redirects" },
	{ "acs", SOUND, guest_acs_ats, DIAGNOSIS_PASS, "with DT and ATS" },
	{ "acs", "flat hyper nopf gpu:2 pf:2 vf:1", nothing, DIAGNOSIS_UNKNOWN,
	  "does not show the switches" },
	{ "acs", "switch:0 gpu:1 pf:1 vf:1", acs_usual, DIAGNOSIS_WARN, "(PHB)" },
	{ "acs", "numa:1 root:2 switch:0 gpu:0; numa:1 gpu:1; numa:1 pf:1 vf:1", acs_usual,
	  DIAGNOSIS_PASS, "(SYS)" },
	{ "acs", "gpu:1", nothing, SILENT, NULL },
	{ "relaxed-ordering", SOUND, nothing, DIAGNOSIS_PASS, "on: 4." },
	{ "relaxed-ordering", SOUND, ro_off, DIAGNOSIS_WARN, "ordering off" },
	{ "relaxed-ordering", SOUND, config_short, DIAGNOSIS_UNKNOWN, "CAP_SYS_ADMIN" },
	{ "relaxed-ordering", SOUND, config_no_pcie, DIAGNOSIS_UNKNOWN, "no PCIe capability" },
	{ "relaxed-ordering", "flat hyper nopf gpu:2 pf:2 vf:1", nothing, DIAGNOSIS_UNKNOWN,
	  "whose PF is not here" },
	{ "payload", SOUND, nothing, DIAGNOSIS_PASS, "for GPUs: 2." },
	{ "payload", SOUND, small_payload, DIAGNOSIS_WARN, "packets of 256 bytes are accepted" },
	{ "payload", SOUND, small_requests, DIAGNOSIS_WARN, "reads at most 128 bytes" },
	{ "payload", SOUND, config_short, DIAGNOSIS_UNKNOWN, "1 functions do not show" },
	{ "payload", "numa:1 gpu:1; numa:1 pf:1 vf:1", nothing, SILENT, NULL },
	{ "gpudirect", SOUND, nothing, DIAGNOSIS_PASS, "nvidia_peermem) is loaded, and dmabuf" },
	{ "gpudirect", SOUND, gdr_dmabuf, DIAGNOSIS_PASS, "nvidia_peermem is not needed" },
	{ "gpudirect", SOUND, gdr_closed, DIAGNOSIS_WARN, "not the open kernel modules" },
	{ "gpudirect", SOUND, gdr_old_kernel, DIAGNOSIS_WARN, "older than 5.12" },
	{ "gpudirect", SOUND, gdr_hidden, DIAGNOSIS_UNKNOWN, "flavour is not visible" },
	{ "gpudirect", SOUND, gdr_flavour_hidden, DIAGNOSIS_UNKNOWN,
	  "nvidia_peermem is not loaded" },
	{ "gpudirect", SOUND, gdr_no_version, DIAGNOSIS_UNKNOWN, "version is not visible" },
	{ "gpudirect", SOUND, gdr_peer_hidden, DIAGNOSIS_UNKNOWN, "dmabuf is not possible" },
	{ "gpudirect", SOUND, amd, SILENT, NULL },
	{ "gpudirect-amd", SOUND, nothing, SILENT, NULL },
	{ "gpudirect-amd", SOUND, amd, DIAGNOSIS_PASS, "Peer memory" },
	{ "gpudirect-amd", SOUND, amd_dmabuf, DIAGNOSIS_PASS, "dmabuf" },
	{ "gpudirect-amd", SOUND, amd_neither, DIAGNOSIS_WARN, "Neither" },
	{ "gpudirect-amd", SOUND, amd_hidden, DIAGNOSIS_UNKNOWN, "symbols" },
	{ "gpudirect-amd", SOUND, amd_half, DIAGNOSIS_UNKNOWN, "build is unknown" },
	{ "rccl-host", SOUND, nothing, SILENT, NULL },
	{ "rccl-host", SOUND, amd, DIAGNOSIS_PASS, "iommu=pt is on" },
	{ "rccl-host", SOUND, amd_no_pt, DIAGNOSIS_WARN, "no iommu=pt" },
	{ "rccl-host", SOUND, amd_no_iommu, DIAGNOSIS_PASS, "no IOMMU" },
	{ "rccl-host", SOUND, amd_no_cmdline, DIAGNOSIS_UNKNOWN, "command line is not visible" },
	{ "rccl-host", SOUND, amd_balancing, DIAGNOSIS_WARN, "balancing is on" },
	{ "rccl-host", SOUND, amd_balancing_hidden, DIAGNOSIS_UNKNOWN,
	  "balancing is on is not visible" },
	{ "rccl-host", SOUND, amd_guest, SILENT, NULL },
	{ "storage", SOUND, nothing, DIAGNOSIS_PASS, "is loaded" },
	{ "storage", SOUND, no_fs, DIAGNOSIS_PASS, "not loaded" },
	{ "storage", SOUND, fs_hidden, DIAGNOSIS_UNKNOWN, "not visible" },
	{ "storage", SOUND, amd, SILENT, NULL },
	{ "boot-args", SOUND, nothing, DIAGNOSIS_PASS, "none of them" },
	{ "boot-args", SOUND, boot_like, DIAGNOSIS_PASS, "none of them" },
	{ "boot-args", SOUND, boot_override, DIAGNOSIS_WARN, "pcie_acs_override=downstream" },
	{ "boot-args", SOUND, boot_amd_pt, DIAGNOSIS_WARN, "amd_iommu=pt" },
	{ "boot-args", SOUND, boot_intel_pt, DIAGNOSIS_WARN, "intel_iommu=pt" },
	{ "boot-args", SOUND, boot_buses, DIAGNOSIS_WARN, "pci=assign-busses" },
	{ "boot-args", SOUND, boot_noats, DIAGNOSIS_WARN, "pci=noats" },
	{ "boot-args", SOUND, boot_noacs, DIAGNOSIS_WARN, "pci=noacs" },
	{ "boot-args", SOUND, boot_in_pci, DIAGNOSIS_WARN, "pci=pcie_acs_override" },
	{ "boot-args", SOUND, boot_hidden, DIAGNOSIS_UNKNOWN, "not visible" },
	{ "rails", SOUND, nothing, SILENT, NULL },
	{ "rails", SOUND, leaves_in_order, DIAGNOSIS_PASS, "switches of 2 NICs" },
	{ "rails", SOUND, one_leaf, DIAGNOSIS_PASS, "switches of 2 NICs" },
	{ "rails", SOUND, leaves_swapped, DIAGNOSIS_WARN,
	  "on rail 1 by the order of the GPUs, and its switch leaf-9 comes before leaf-10" },
	{ "rails", SOUND, one_leaf_known, SILENT, NULL },
	{ "rails", SOUND, rails_named, SILENT, NULL },
	/* Storage: near no GPU, its rail is of its switch. */
	{ "rails", "numa:1 root:1 pf:1;numa:1 switch:1 gpu:1 pf:1", leaves_in_order, SILENT, NULL },
	{ "rails", "numa:1 root:1 pf:1;numa:1 switch:1 gpu:1 pf:1", leaves_swapped, SILENT, NULL },
	{ "numa-clusters", SOUND, two_sockets, SILENT, NULL },
	{ "numa-clusters", SOUND, nothing, SILENT, NULL },
	{ "numa-clusters", SOUND, clusters, DIAGNOSIS_PASS, "sockets 1, nodes 2" },
	{ "numa-clusters", SOUND, cluster_without_gpu, DIAGNOSIS_WARN, "NUMA node 1 is a part" },
	{ "numa-clusters", SOUND, socket_without_gpu, SILENT, NULL },
	{ "numa-nodes", SOUND, two_sockets, SILENT, NULL },
	{ "numa-nodes", SOUND, memory_nodes, DIAGNOSIS_PASS,
	  "nodes: 6, of them memory without CPUs: 4" },
	{ "numa-nodes", SOUND, mig_nodes, DIAGNOSIS_WARN, "34 NUMA nodes, 32 of them" },
	{ "bar", SOUND, nothing, DIAGNOSIS_PASS, "all their BARs: 4" },
	{ "bar", SOUND, gpu_bar_unset, DIAGNOSIS_WARN, "no place in memory for one of its BARs" },
	{ "bar", SOUND, gpu_bar_despite, DIAGNOSIS_WARN, "no place in memory" },
	{ "bar", SOUND, vf_bar_unset, DIAGNOSIS_WARN, "the BARs of its VFs" },
	{ "bar", SOUND, gpu_bar_small, DIAGNOSIS_WARN, "256 MiB" },
	{ "bar", SOUND, bar_hidden, DIAGNOSIS_UNKNOWN, "1 of 4" },
	{ "bar", SOUND, guest_bars, SILENT, NULL },
	{ "ari", SOUND, many_vfs, DIAGNOSIS_PASS, "with ARI: " },
	{ "ari", SOUND, few_vfs, SILENT, NULL },
	{ "ari", SOUND, no_ari, DIAGNOSIS_WARN, "has ARI forwarding off" },
	{ "ari", SOUND, never_ari, DIAGNOSIS_WARN, "cannot forward ARI" },
	{ "ari", SOUND, ari_hidden, DIAGNOSIS_UNKNOWN, "CAP_SYS_ADMIN" },
	{ "ari", SOUND, ari_by_vf, DIAGNOSIS_PASS, "with ARI: " },
	{ "ari", SOUND, guest_bars, SILENT, NULL },
	{ "modules", SOUND, with_cm, DIAGNOSIS_PASS, "No RDMA module" },
	{ "modules", SOUND, rdma_module_missing, DIAGNOSIS_WARN, "mlx5_ib is not loaded" },
	{ "modules", SOUND, other_driver, SILENT, NULL },
	{ "modules", SOUND, no_cm, DIAGNOSIS_WARN, "rdma_ucm is not loaded" },
	{ "peermem", SOUND, nothing, DIAGNOSIS_PASS, "550.90.07 is loaded once" },
	{ "peermem", SOUND, peer_older, DIAGNOSIS_WARN,
	  "535.54.03, the driver of version 550.90.07" },
	{ "peermem", SOUND, peer_twice, DIAGNOSIS_WARN, "nv_peer_mem" },
	{ "peermem", SOUND, peer_unlisted, DIAGNOSIS_WARN, "does not list it" },
	{ "peermem", SOUND, peer_not_loaded, SILENT, NULL },
	{ "peermem", SOUND, peer_possible, SILENT, NULL },
	{ "peermem", SOUND, peer_impossible, DIAGNOSIS_WARN, "no interface for peer memory" },
	{ "peermem", SOUND, amd, SILENT, NULL },
	{ "ibgda", SOUND, ibgda_none, DIAGNOSIS_PASS, "no PeerMappingOverride" },
	{ "ibgda", SOUND, ibgda_both, DIAGNOSIS_PASS, "can map the doorbells" },
	{ "ibgda", SOUND, ibgda_half, DIAGNOSIS_WARN, "EnableStreamMemOPs=1 is set" },
	{ "ibgda", SOUND, ibgda_booted, DIAGNOSIS_WARN, "was booted with" },
	{ "ibgda", SOUND, ibgda_amd, SILENT, NULL },
	{ "ibgda", SOUND, options_usual, SILENT, NULL },
	{ "gpu-options", SOUND, nothing, SILENT, NULL },
	{ "gpu-options", SOUND, options_usual, DIAGNOSIS_PASS, "GPUs is as they have it" },
	{ "gpu-options", SOUND, options_ordering, DIAGNOSIS_PASS, "GPUs is forced on" },
	{ "gpu-options", SOUND, options_known, DIAGNOSIS_PASS, "knows its options" },
	{ "gpu-options", SOUND, options_misspelt, DIAGNOSIS_WARN,
	  "booted with nvidia.NVreg_EnablePCIeRelaxedOrderingMode, which is not an option" },
	{ "gpu-options", SOUND, options_part, DIAGNOSIS_WARN, "nvidia.NVreg_Enable, which" },
	{ "gpu-options", SOUND, options_override, DIAGNOSIS_WARN, "GrdmaPciTopoCheckOverride=1" },
	{ "gpu-options", SOUND, options_of_amd, SILENT, NULL },
};

static struct diagnosis *run(const struct machine *m, const char *only)
{
	struct diagnosis *r = NULL;
	struct err err = { 0 };

	assert_int_equal(doctor_run(&m->f, only, &r, &err), 0);
	return r;
}

static bool says(const struct diagnosis *r, enum diagnosis_verdict v, const char *words)
{
	for (size_t i = 0; i < diagnosis_n(r); i++) {
		if (diagnosis_at(r, i)->verdict == v && strstr(diagnosis_at(r, i)->sentence, words))
			return true;
	}
	return false;
}

static const struct diagnosis_check *check_of(const char *id)
{
	for (size_t i = 0; i < doctor_n_checks(); i++) {
		if (!strcmp(doctor_check_at(i)->id, id))
			return doctor_check_at(i);
	}
	fail_msg("there is no check %s", id);
	return NULL;
}

static void every_check_finds_what_is_wrong(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		_cleanup_machine_ struct machine m;
		_cleanup_diagnosis_ struct diagnosis *r = NULL;
		bool right;

		machine_of(&m, cases[i].machine);
		change(&m, cases[i].change);
		r = run(&m, cases[i].check);
		right = diagnosis_verdict_of(r, check_of(cases[i].check)) == cases[i].verdict &&
			(!cases[i].words ||
			 says(r, (enum diagnosis_verdict)cases[i].verdict, cases[i].words));
		if (right)
			continue;
		for (size_t k = 0; k < diagnosis_n(r); k++)
			print_error("  %s %s\n",
				    diagnosis_verdict_name(diagnosis_at(r, k)->verdict),
				    diagnosis_at(r, k)->sentence);
		fail_msg("case %zu: %s on '%s' is not %s '%s'", i, cases[i].check, cases[i].machine,
			 cases[i].verdict < 0
				 ? "silent"
				 : diagnosis_verdict_name((enum diagnosis_verdict)cases[i].verdict),
			 cases[i].words ? cases[i].words : "");
	}
}

/* What a check cannot see is never what is right: no fact that is unknown may end as a PASS or a
 * WARN. */
static void on_a_machine_of_which_nothing_is_known_nothing_passes(void **state)
{
	static const char *const about_unknown[] = {
		"link",	     "iommu", "acs", "relaxed-ordering", "payload", "gpudirect", "storage",
		"boot-args", "bar",   "ari"
	};
	_cleanup_machine_ struct machine m;

	(void)state;
	machine_of(&m, SOUND);
	for (size_t i = 0; i < m.inv->n_pci; i++) {
		m.f.pci[i] = (struct facts_pci) {
			.port_type = -1, .devctl = -1, .devcap2 = -1, .devctl2 = -1
		};
		if (hw_is_pf(&m.inv->pci[i]))
			m.inv->pci[i].sriov_total = 16;
		m.inv->pci[i].link_width = m.inv->pci[i].link_mts = 0;
	}
	m.f.host = (struct facts_host) { .kernel_major = -1,
					 .kernel_minor = -1,
					 .iommu_units = -1,
					 .iommu_groups = -1,
					 .peermem = FACTS_UNKNOWN,
					 .nvidia_open = FACTS_UNKNOWN,
					 .amd_peer = FACTS_UNKNOWN,
					 .amd_dmabuf = FACTS_UNKNOWN,
					 .nvidia_fs = FACTS_UNKNOWN,
					 .numa_balancing = -1 };
	for (size_t i = 0; i < ARRAY_LEN(about_unknown); i++) {
		_cleanup_diagnosis_ struct diagnosis *r = run(&m, about_unknown[i]);

		for (size_t k = 0; k < diagnosis_n(r); k++)
			assert_int_equal(diagnosis_at(r, k)->verdict, DIAGNOSIS_UNKNOWN);
		assert_true(diagnosis_n(r) > 0);
	}
}

/* A pair's own bridge can be named only after it is known. */
static void a_bridge_that_is_named_already_is_not_asked_for_again(void **state)
{
	_cleanup_machine_ struct machine m;
	_cleanup_diagnosis_ struct diagnosis *r = NULL;
	_cleanup_strbuf_ struct strbuf out = STRBUF_INIT;

	(void)state;
	machine_of(&m, SOUND);
	acs_despite(&m);
	m.f.host.cmdline =
		arena_printf(m.f.arena, "pci=realloc pci=\"disable_acs_redir=0000:ff:00.0;%s\"",
			     facts_address(&m.f, m.inv->pci[gpu(&m)].parent));
	r = run(&m, "acs");
	assert_int_equal(diagnosis_n(r), 1);
	assert_null(diagnosis_at(r, 0)->kernel_arg);
	assert_non_null(strstr(diagnosis_at(r, 0)->advice->fix[DIAGNOSIS_GRUB], "already"));
	assert_false(diagnosis_manifest(&m.f, r, DIAGNOSIS_GRUB, NULL, &out));
}

/* --- the report --- */

static void the_worst_verdict_counts(void **state)
{
	static void (*const changes[])(struct machine * m) = { nothing, fs_hidden, ro_off,
							       vf_vfio };
	static const enum diagnosis_verdict worst[] = { DIAGNOSIS_PASS, DIAGNOSIS_UNKNOWN,
							DIAGNOSIS_WARN, DIAGNOSIS_FAIL };
	_cleanup_machine_ struct machine m;

	(void)state;
	machine_of(&m, SOUND);
	for (size_t i = 0; i < ARRAY_LEN(changes); i++) {
		_cleanup_diagnosis_ struct diagnosis *r = NULL;

		changes[i](&m);
		r = run(&m, "driver,relaxed-ordering,storage");
		assert_int_equal(diagnosis_worst(r), worst[i]);
	}
}

static void names_that_no_check_has_are_refused(void **state)
{
	static const char *const bad[] = { "",		 "nothing", "acs,", ",acs",
					   "acs,,iommu", "ACS",	    "acs " };
	_cleanup_machine_ struct machine m;
	struct diagnosis *r = NULL;

	(void)state;
	machine_of(&m, SOUND);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct err err = { 0 };

		assert_int_equal(doctor_run(&m.f, bad[i], &r, &err), -EINVAL);
		assert_non_null(strstr(err.msg, "relaxed-ordering"));
	}
	assert_null(r);
}

static void only_runs_what_is_named_in_the_order_of_the_table(void **state)
{
	_cleanup_machine_ struct machine m;
	_cleanup_diagnosis_ struct diagnosis *r = NULL;

	(void)state;
	machine_of(&m, SOUND);
	r = run(&m, "storage,driver,driver");
	assert_int_equal(diagnosis_n(r), 2);
	assert_string_equal(diagnosis_at(r, 0)->check->id, "driver");
	assert_string_equal(diagnosis_at(r, 1)->check->id, "storage");
}

/* NULL for a platform: that of GRUB. */
static const char *fix_on(const struct diagnosis_advice *a, enum diagnosis_platform p)
{
	return a->fix[p] ? a->fix[p] : a->fix[DIAGNOSIS_GRUB];
}

static bool is_sentence(const char *text)
{
	size_t len = strlen(text);

	return len > 1 && text[len - 1] == '.' && str_utf8_valid(text, len) &&
	       !strpbrk(text, "\n\t");
}

/* What is said of any machine above: whole sentences, and a meaning and a fix for all but a PASS.
 */
static void every_finding_has_a_meaning_and_a_fix(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		_cleanup_machine_ struct machine m;
		_cleanup_diagnosis_ struct diagnosis *r = NULL;

		machine_of(&m, cases[i].machine);
		change(&m, cases[i].change);
		r = run(&m, MINE);
		for (size_t k = 0; k < diagnosis_n(r); k++) {
			const struct diagnosis_finding *f = diagnosis_at(r, k);

			assert_true(is_sentence(f->sentence));
			assert_true((f->verdict == DIAGNOSIS_PASS && !f->advice->meaning) ||
				    is_sentence(f->advice->meaning));
			for (int p = 0; f->verdict != DIAGNOSIS_PASS && p < DIAGNOSIS_PLATFORM_MAX;
			     p++)
				assert_true(
					is_sentence(fix_on(f->advice, (enum diagnosis_platform)p)));
			assert_true(f->verdict != DIAGNOSIS_PASS || !f->kernel_arg);
		}
	}
}

static void every_check_has_a_name_and_a_title(void **state)
{
	(void)state;
	for (size_t i = 0; i < doctor_n_checks(); i++) {
		const struct diagnosis_check *c = doctor_check_at(i);

		assert_true(*c->id && strspn(c->id, "abcdefghijklmnopqrstuvwxyz0123456789-") ==
					      strlen(c->id));
		assert_true(strlen(c->title) > 10);
	}
	assert_null(doctor_check_at(doctor_n_checks()));
}

/* --- the manifest --- */

static void expect_manifest(const struct machine *m, enum diagnosis_platform p, const char *words)
{
	_cleanup_diagnosis_ struct diagnosis *r = run(m, MINE);
	_cleanup_strbuf_ struct strbuf out = STRBUF_INIT;

	assert_int_equal(diagnosis_manifest(&m->f, r, p, NULL, &out), words != NULL);
	if (words && !strstr(strbuf_str(&out), words))
		fail_msg("no '%s' in:\n%s", words, strbuf_str(&out));
	assert_true(words || !out.len);
}

static void the_manifest_has_each_argument_once(void **state)
{
	_cleanup_machine_ struct machine m;
	const char *one, *two;

	(void)state;
	machine_of(&m, SOUND);
	with_cm(&m);
	expect_manifest(&m, DIAGNOSIS_GRUB, NULL);
	gpu_dma(&m);
	m.f.pci[pf(&m)].iommu = FACTS_IOMMU_DMA;
	expect_manifest(&m, DIAGNOSIS_GRUB, "\"$GRUB_CMDLINE_LINUX iommu=pt\"\n");
	expect_manifest(&m, DIAGNOSIS_OPENSHIFT, "  kernelArguments:\n    - 'iommu=pt'\n");
	expect_manifest(&m, DIAGNOSIS_TALOS, "    extraKernelArgs:\n      - 'iommu=pt'\n");
	arm_dma(&m);
	expect_manifest(&m, DIAGNOSIS_TALOS, "- 'iommu.passthrough=1'\n");
	nothing(&m);
	m.f.pci[gpu(&m)].iommu = m.f.pci[pf(&m)].iommu = FACTS_IOMMU_IDENTITY;
	acs_usual(&m);
	one = facts_address(&m.f, m.inv->pci[gpu(&m)].parent);
	two = facts_address(&m.f, m.inv->pci[pf(&m)].parent);
	expect_manifest(&m, DIAGNOSIS_TALOS,
			arena_printf(m.f.arena, "- 'pci=disable_acs_redir=%s'\n", one));
	m.f.pci[m.inv->pci[pf(&m)].parent].acs_ctrl = 0x001d;
	expect_manifest(&m, DIAGNOSIS_TALOS,
			arena_printf(m.f.arena, "- 'pci=\"disable_acs_redir=%s;%s\"'\n", one, two));
	expect_manifest(
		&m, DIAGNOSIS_GRUB,
		arena_printf(m.f.arena, " pci=\\\"disable_acs_redir=%s;%s\\\"\"\n", one, two));
}

/* A reader of the fix and the one who applies the manifest come to the same command line. */
static void the_fix_names_the_argument_of_the_manifest(void **state)
{
	static const struct {
		void (*change)(struct machine *m);
		const char *arg, *other;
	} rows[] = { { gpu_dma, "iommu=pt", "passthrough" },
		     { arm_dma, "iommu.passthrough=1", "iommu=pt" } };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		_cleanup_machine_ struct machine m;
		_cleanup_diagnosis_ struct diagnosis *r = NULL;
		const struct diagnosis_finding *found;

		machine_of(&m, SOUND);
		rows[i].change(&m);
		r = run(&m, "iommu");
		found = diagnosis_at(r, 0);
		assert_string_equal(found->kernel_arg, rows[i].arg);
		for (int p = 0; p < DIAGNOSIS_PLATFORM_MAX; p++) {
			const char *fix = fix_on(found->advice, (enum diagnosis_platform)p);

			assert_non_null(strstr(fix, rows[i].arg));
			assert_null(strstr(fix, rows[i].other));
		}
	}
}

static void devices_that_are_named_already_go_along(void **state)
{
	_cleanup_machine_ struct machine m;
	const char *one;

	(void)state;
	machine_of(&m, SOUND);
	acs_usual(&m);
	one = facts_address(&m.f, m.inv->pci[gpu(&m)].parent);
	m.f.host.cmdline = "pci=realloc,disable_acs_redir=pci:1000:c030;pci:1000:c030,noaer";
	expect_manifest(
		&m, DIAGNOSIS_TALOS,
		arena_printf(m.f.arena, "'pci=\"disable_acs_redir=pci:1000:c030;%s\"'\n", one));
	m.f.host.cmdline = "pci=disable_acs_redir=$(reboot)";
	expect_manifest(&m, DIAGNOSIS_TALOS,
			arena_printf(m.f.arena, "'pci=disable_acs_redir=%s'\n", one));
}

static void numa_balancing_becomes_an_argument(void **state)
{
	_cleanup_machine_ struct machine m;

	(void)state;
	machine_of(&m, SOUND);
	amd_balancing(&m);
	m.f.host.cmdline = "quiet";
	expect_manifest(&m, DIAGNOSIS_OPENSHIFT,
			"    - 'iommu=pt'\n    - 'numa_balancing=disable'\n");
}

static void modules_and_realloc_are_in_the_manifest(void **state)
{
	_cleanup_machine_ struct machine m;

	(void)state;
	machine_of(&m, SOUND);
	no_cm(&m);
	expect_manifest(&m, DIAGNOSIS_TALOS,
			"machine:\n  kernel:\n    modules:\n      - name: 'rdma_ucm'\n");
	expect_manifest(&m, DIAGNOSIS_OPENSHIFT, "source: 'data:,rdma_ucm%0A'\n");
	expect_manifest(&m, DIAGNOSIS_GRUB,
			"'%s\\n' rdma_ucm > /etc/modules-load.d/railmate.conf\n");
	vf_bar_unset(&m);
	gpu_bar_unset(&m);
	rdma_module_missing(&m);
	expect_manifest(&m, DIAGNOSIS_TALOS,
			"    extraKernelArgs:\n      - 'pci=realloc'\n  kernel:\n    modules:\n"
			"      - name: 'mlx5_ib'\n");
}

static void the_role_is_openshifts(void **state)
{
	_cleanup_machine_ struct machine m;
	_cleanup_diagnosis_ struct diagnosis *r = NULL;
	_cleanup_strbuf_ struct strbuf out = STRBUF_INIT;

	(void)state;
	machine_of(&m, SOUND);
	gpu_dma(&m);
	r = run(&m, "iommu");
	assert_true(diagnosis_manifest(&m.f, r, DIAGNOSIS_OPENSHIFT, "gpu-h100", &out));
	assert_non_null(strstr(strbuf_str(&out), "name: 99-gpu-h100-railmate\n"));
	assert_non_null(strstr(strbuf_str(&out), "openshift.io/role: gpu-h100\n"));
	assert_null(strstr(strbuf_str(&out), "worker"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_check_finds_what_is_wrong),
		cmocka_unit_test(on_a_machine_of_which_nothing_is_known_nothing_passes),
		cmocka_unit_test(a_bridge_that_is_named_already_is_not_asked_for_again),
		cmocka_unit_test(the_worst_verdict_counts),
		cmocka_unit_test(names_that_no_check_has_are_refused),
		cmocka_unit_test(only_runs_what_is_named_in_the_order_of_the_table),
		cmocka_unit_test(every_finding_has_a_meaning_and_a_fix),
		cmocka_unit_test(every_check_has_a_name_and_a_title),
		cmocka_unit_test(the_manifest_has_each_argument_once),
		cmocka_unit_test(the_fix_names_the_argument_of_the_manifest),
		cmocka_unit_test(devices_that_are_named_already_go_along),
		cmocka_unit_test(numa_balancing_becomes_an_argument),
		cmocka_unit_test(modules_and_realloc_are_in_the_manifest),
		cmocka_unit_test(the_role_is_openshifts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
