/*
 * The host's kernel: modules for GPUDirect, the command line, NUMA balancing; modules of RDMA that
 * are missing, peer memory that does not fit its driver. Options of NVIDIA's GPU driver:
 * /proc/driver/nvidia/params has every option that it knows, a line each
 * ("EnablePCIERelaxedOrderingMode: 0"); their meaning is in the open kernel modules' nv-reg.h. A
 * misspelt one is ignored with a line in the kernel's log, and guides misspell them.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "doctor/doctor-internal.h"
#include "hw/driver.h"
#include "hw/inventory.h"

/* --- gpudirect: NVIDIA --- */

/* dmabuf came to the verbs with 5.12. */
static enum facts_answer has_dmabuf(const struct facts_host *h)
{
	bool old = h->kernel_major < 5 || (h->kernel_major == 5 && h->kernel_minor < 12);

	if (h->nvidia_open == FACTS_NO || (h->kernel_major >= 0 && old))
		return FACTS_NO;
	return h->nvidia_open == FACTS_YES && !old ? FACTS_YES : FACTS_UNKNOWN;
}

static void run_gpudirect(const struct facts *f, struct diagnosis *r)
{
	const struct facts_host *h = &f->host;
	enum facts_answer dmabuf = has_dmabuf(h);

	if (!facts_has_vendor(f, "NVIDIA"))
		return;
	if (h->peermem == FACTS_YES)
		diagnosis_fine(r, "Peer memory (nvidia_peermem) is loaded%s.",
			       dmabuf == FACTS_YES ? ", and dmabuf is possible" : "");
	else if (dmabuf == FACTS_YES)
		diagnosis_fine(
			r,
			"The open kernel modules on kernel %s have dmabuf; nvidia_peermem is not needed.",
			h->kernel);
	else if (h->peermem == FACTS_NO && dmabuf == FACTS_NO)
		doctor_warn(r, gdr_none, "host", "nvidia_peermem is not loaded, and %s.",
			    h->nvidia_open == FACTS_NO ? "the driver is not the open kernel modules"
						       : "the kernel is older than 5.12")
			->module = h->rdma_peers == FACTS_NO ? NULL : "nvidia_peermem";
	else
		doctor_unknown(
			r, gdr_unknown, "host", "%s, and %s.",
			h->peermem == FACTS_NO ? "nvidia_peermem is not loaded"
					       : "Whether nvidia_peermem is loaded is not visible",
			h->nvidia_open == FACTS_UNKNOWN ? "the driver's flavour is not visible"
			: dmabuf == FACTS_NO		? "dmabuf is not possible"
							: "the kernel's version is not visible");
}

/* --- gpudirect-amd --- */

static void run_gpudirect_amd(const struct facts *f, struct diagnosis *r)
{
	const struct facts_host *h = &f->host;

	if (!facts_has_vendor(f, "AMD"))
		return;
	if (h->amd_peer == FACTS_YES)
		diagnosis_fine(r, "Peer memory of amdkfd is there.");
	else if (h->amd_dmabuf == FACTS_YES)
		diagnosis_fine(
			r,
			"The kernel is built for dmabuf; older RCCL (2024) needs NCCL_DMABUF_ENABLE=1 for it.");
	else if (h->amd_peer == FACTS_NO && h->amd_dmabuf == FACTS_NO)
		doctor_warn(r, amd_none, "host",
			    "Neither amdkfd's peer memory nor a kernel built for dmabuf.");
	else
		doctor_unknown(r, amd_unknown, "host",
			       "Whether NICs reach GPU memory is not visible: %s.",
			       h->amd_peer == FACTS_NO
				       ? "no peer memory, and the kernel's build is unknown"
				       : "the kernel's symbols cannot be read");
}

/* --- rccl-host --- */

static void run_rccl_host(const struct facts *f, struct diagnosis *r)
{
	const struct facts_host *h = &f->host;
	bool no_iommu = h->iommu_groups == 0 || (h->iommu_groups < 0 && h->iommu_units == 0);

	if (!facts_has_vendor(f, "AMD") || f->inv->hypervisor)
		return;
	if (facts_boot_word(h, "iommu=pt") == FACTS_UNKNOWN)
		doctor_unknown(r, rccl_unknown, "host",
			       "The kernel's command line is not visible.");
	else if (facts_boot_word(h, "iommu=pt") == FACTS_NO && !no_iommu)
		doctor_warn(r, rccl_iommu, "host", "The kernel's command line has no iommu=pt.")
			->kernel_arg = "iommu=pt";
	if (h->numa_balancing > 0)
		doctor_warn(r, rccl_balancing, "host",
			    "NUMA balancing is on (kernel.numa_balancing=%d).", h->numa_balancing)
			->kernel_arg = "numa_balancing=disable";
	else if (h->numa_balancing < 0 && f->inv->n_numa > 1)
		doctor_unknown(r, rccl_unknown, "host",
			       "Whether NUMA balancing is on is not visible.");
	diagnosis_fine(r, "%s, and NUMA balancing is off or has one node.",
		       no_iommu ? "There is no IOMMU" : "iommu=pt is on the command line");
}

/* --- storage --- */

static void run_storage(const struct facts *f, struct diagnosis *r)
{
	static const struct {
		enum diagnosis_verdict verdict;
		const struct diagnosis_advice *advice;
		const char *sentence;
	} answers[] = {
		[FACTS_NO] = { DIAGNOSIS_PASS, &doctor_storage_none, "nvidia_fs is not loaded." },
		[FACTS_YES] = { DIAGNOSIS_PASS, &doctor_storage_fine, "nvidia_fs is loaded." },
		[FACTS_UNKNOWN] = { DIAGNOSIS_UNKNOWN, &doctor_storage_unknown,
				    "Whether nvidia_fs is loaded is not visible." },
	};
	enum facts_answer a = f->host.nvidia_fs;

	if (facts_has_vendor(f, "NVIDIA"))
		diagnosis_add(r, answers[a].verdict, answers[a].advice, "host", "%s",
			      answers[a].sentence);
}

/* --- boot-args --- */

/* `key`: of arguments with a list behind it, one element of which is meant. */
static const struct {
	const char *key, *element;
	const struct diagnosis_advice *advice;
} mistakes[] = {
	{ "pcie_acs_override=", NULL, &doctor_boot_override },
	{ "amd_iommu=", "pt", &doctor_boot_no_such_value },
	{ "intel_iommu=", "pt", &doctor_boot_no_such_value },
	{ "pci=", "assign-busses", &doctor_boot_buses },
	{ "pci=", "noats", &doctor_boot_no_ats },
	{ "pci=", "noacs", &doctor_boot_no_acs },
	{ "pci=", "pcie_acs_override", &doctor_boot_override },
};

static void run_boot_args(const struct facts *f, struct diagnosis *r)
{
	if (!f->host.cmdline) {
		doctor_unknown(r, boot_unknown, "host",
			       "The kernel's command line is not visible.");
		return;
	}
	for (size_t i = 0; i < ARRAY_LEN(mistakes); i++) {
		const char *list = facts_boot_value(f, mistakes[i].key),
			   *element = mistakes[i].element;

		if (list && (!element || facts_boot_list_has(f, mistakes[i].key, element)))
			diagnosis_add(r, DIAGNOSIS_WARN, mistakes[i].advice, "host",
				      "The kernel was booted with %s%s.", mistakes[i].key,
				      element ? element : list);
	}
	diagnosis_fine(r, "The kernel's command line has none of them.");
}

/* --- modules --- */

/* Is there an RDMA device of any function of this driver? Then its module is loaded. */
static bool is_served(const struct hw_inventory *inv, const char *driver)
{
	for (size_t i = 0; i < inv->n_rdma; i++) {
		if (inv->rdma[i].pci >= 0 && str_eq(inv->pci[inv->rdma[i].pci].driver, driver))
			return true;
	}
	return false;
}

static bool was_said(const struct diagnosis *r, const char *module)
{
	for (size_t i = diagnosis_n_before(r); i < diagnosis_n(r); i++) {
		if (str_eq(diagnosis_at(r, i)->module, module))
			return true;
	}
	return false;
}

static void run_modules(const struct facts *f, struct diagnosis *r)
{
	const struct hw_inventory *inv = f->inv;

	for (size_t i = 0; i < inv->n_pci; i++) {
		const struct hw_driver *driver =
			hw_is_pf(&inv->pci[i]) ? hw_driver_find(inv->pci[i].driver) : NULL;
		const char *module = driver ? driver->rdma_module : NULL;

		if (!module || is_served(inv, inv->pci[i].driver) || was_said(r, module))
			continue;
		doctor_warn(
			r, module_rdma, facts_address(f, (int)i),
			"%s has the driver %s, and no card of it has an RDMA device: %s is not loaded.",
			facts_nic_name(f, (int)i), inv->pci[i].driver, module)
			->module = module;
	}
	if (inv->n_rdma && !inv->has_rdma_cm)
		doctor_warn(r, module_cm, "host",
			    "There are RDMA devices and no rdma_cm: rdma_ucm is not loaded.")
			->module = "rdma_ucm";
	if (inv->n_rdma)
		diagnosis_fine(r, "No RDMA module is missing.");
}

/* --- peermem --- */

static void run_peermem(const struct facts *f, struct diagnosis *r)
{
	const struct facts_host *h = &f->host;

	if (!facts_has_vendor(f, "NVIDIA"))
		return;
	if (h->peermem_version && h->nvidia_version &&
	    strcmp(h->peermem_version, h->nvidia_version) != 0)
		doctor_warn(r, peer_other_version, "host",
			    "nvidia_peermem is of version %s, the driver of version %s.",
			    h->peermem_version, h->nvidia_version);
	if (h->peermem_version && h->old_peermem)
		doctor_warn(r, peer_two, "host", "Both nvidia_peermem and nv_peer_mem are loaded.");
	if (h->peermem_version && h->peermem_registered == FACTS_NO)
		doctor_warn(r, peer_silent, "host",
			    "nvidia_peermem is loaded, and the RDMA core does not list it.");
	if (h->peermem == FACTS_NO && h->rdma_peers == FACTS_NO && h->nvidia_open == FACTS_NO)
		doctor_warn(
			r, peer_impossible, "host",
			"The RDMA core of this kernel has no interface for peer memory, and the driver is not the open kernel modules.");
	if (h->peermem_version)
		diagnosis_fine(r, "nvidia_peermem %s is loaded once, beside its driver.",
			       h->peermem_version);
}

/* --- gpu-options --- */

#define PREFIX "nvidia.NVreg_"

/* The text behind "KEY: "; NULL: the driver has no such option. */
static const char *param(const char *params, const char *key, size_t len)
{
	for (const char *line = params; line; line = str_next_line(line)) {
		if (!strncmp(line, key, len) && line[len] == ':')
			return line + len + 1 + strspn(line + len + 1, " ");
	}
	return NULL;
}

static bool is_set(const char *params, const char *key)
{
	const char *value = param(params, key, strlen(key));

	return value && strtol(value, NULL, 0) != 0;
}

static void judge_words(const struct facts *f, struct diagnosis *r)
{
	const char *word = f->host.cmdline ? f->host.cmdline : "";

	for (size_t len; *word; word += len, word += strspn(word, " ")) {
		size_t name;

		len = strcspn(word, " ");
		name = strcspn(word, " =");
		if (name <= strlen(PREFIX) || !str_starts(word, PREFIX) ||
		    param(f->host.nvidia_params, word + strlen(PREFIX), name - strlen(PREFIX)))
			continue;
		doctor_warn(
			r, unknown_option, "host",
			"The kernel was booted with %.*s, which is not an option of this GPU driver.",
			(int)name, word);
	}
}

static void run_gpu_options(const struct facts *f, struct diagnosis *r)
{
	const char *params = f->host.nvidia_params;

	if (!facts_has_vendor(f, "NVIDIA") || !params)
		return;
	judge_words(f, r);
	if (is_set(params, "GrdmaPciTopoCheckOverride"))
		doctor_warn(r, topology_override, "host",
			    "The GPU driver has NVreg_GrdmaPciTopoCheckOverride=1.");
	if (diagnosis_worst_so_far(r) == DIAGNOSIS_PASS)
		doctor_pass(r, options_fine, "host",
			    "The GPU driver knows its options; relaxed ordering of GPUs is %s.",
			    is_set(params, "EnablePCIERelaxedOrderingMode") ? "forced on"
									    : "as they have it");
}

/* --- ibgda --- */

/* The options of NVSHMEM's and DeepEP's guides; a capture that was scrubbed has no RegistryDwords.
 */
static void run_ibgda(const struct facts *f, struct diagnosis *r)
{
	static const char dwords[] = "RegistryDwords", word[] = "PeerMappingOverride=1";
	const char *value = param(f->host.nvidia_params, dwords, strlen(dwords)), *at;
	bool boot = f->host.cmdline && strstr(f->host.cmdline, "PeerMappingOverride"),
	     ops = is_set(f->host.nvidia_params, "EnableStreamMemOPs");

	if (!facts_has_vendor(f, "NVIDIA") || !value)
		return;
	at = strstr(value, word);
	if (at && at < value + strcspn(value, "\n") && strchr(";\"", at[strlen(word)]))
		doctor_pass(r, ibgda_on, "host",
			    "GPUs can map the doorbells of NICs (PeerMappingOverride=1).");
	else if (boot || ops)
		doctor_warn(r, ibgda_half, "host",
			    "%s, and the driver's RegistryDwords have no PeerMappingOverride=1.",
			    boot ? "The kernel was booted with PeerMappingOverride"
				 : "EnableStreamMemOPs=1 is set");
	else
		doctor_pass(r, ibgda_off, "host",
			    "GPUs cannot map the doorbells of NICs (no PeerMappingOverride).");
}

const struct diagnosis_check doctor_host_checks[] = {
	{ "gpudirect", "GPUDirect RDMA with NVIDIA GPUs", .run = run_gpudirect,
	  .in_manifest = true },
	{ "gpudirect-amd", "GPUDirect RDMA with AMD GPUs", .run = run_gpudirect_amd },
	{ "rccl-host", "host settings that RCCL reads", .run = run_rccl_host, .in_manifest = true },
	{ "storage", "GPUDirect Storage", .run = run_storage },
	{ "boot-args", "kernel arguments that work against NCCL", .run = run_boot_args },
	{ "modules", "RDMA modules of the kernel", .run = run_modules, .in_manifest = true },
	{ "peermem", "nvidia_peermem beside its driver", .run = run_peermem },
	{ "gpu-options", "options of NVIDIA's GPU driver", .run = run_gpu_options },
	{ "ibgda", "driver options of NVSHMEM's IBGDA", .run = run_ibgda },
};
const size_t doctor_host_checks_n = ARRAY_LEN(doctor_host_checks);
