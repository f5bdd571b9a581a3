/* Kernel modules: those of RDMA that are missing, and peer memory that does not fit its driver. */
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "doctor/doctor-internal.h"
#include "hw/driver.h"
#include "hw/inventory.h"

/* --- modules --- */

static const struct diagnosis_advice module_rdma = {
	"The card is there as an Ethernet card only: NCCL cannot use it, and goes over TCP or farther NICs.",
	{ "modprobe it now, and name it in /etc/modules-load.d/ (--fix-manifest grub has the command).",
	  "Apply a MachineConfig with a file in /etc/modules-load.d (--fix-manifest openshift).",
	  "Add it to machine.kernel.modules (--fix-manifest talos)." },
};
static const struct diagnosis_advice module_cm = {
	"Nothing for NCCL; UCX, NVSHMEM, libfabric and storage over RDMA connect by /dev/infiniband/rdma_cm.",
	{ "modprobe rdma_ucm, and name it in /etc/modules-load.d/ (--fix-manifest grub has the command).",
	  "Apply a MachineConfig with a file in /etc/modules-load.d (--fix-manifest openshift).",
	  "Add rdma_ucm to machine.kernel.modules (--fix-manifest talos)." },
};

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
		diagnosis_add(
			r, DIAGNOSIS_WARN, &module_rdma, facts_address(f, (int)i),
			"%s has the driver %s, and no card of it has an RDMA device: %s is not loaded.",
			facts_nic_name(f, (int)i), inv->pci[i].driver, module)
			->module = module;
	}
	if (inv->n_rdma && !inv->has_rdma_cm)
		diagnosis_add(r, DIAGNOSIS_WARN, &module_cm, "host",
			      "There are RDMA devices and no rdma_cm: rdma_ucm is not loaded.")
			->module = "rdma_ucm";
	if (inv->n_rdma)
		diagnosis_fine(r, "No RDMA module is missing.");
}

/* --- peermem --- */

static const struct diagnosis_advice peer_other_version = {
	"A module of another version than the driver's does not load after the next boot, or fails with it: GPUDirect RDMA is gone then.",
	{ "Rebuild the driver's modules together (dkms autoinstall), unload the old one, and load nvidia-peermem again.",
	  "Let the GPU operator build both: driver.rdma.enabled: true.",
	  "Use driver and peer memory of one system extension." },
};
static const struct diagnosis_advice peer_two = {
	"Both want to serve NVIDIA's memory: the older one (nv_peer_mem) is for drivers before R470.",
	{ "Remove the package nvidia-peer-memory (nv_peer_mem), and load nvidia-peermem again." },
};
static const struct diagnosis_advice peer_silent = {
	"Loaded, and the RDMA core does not know it: registering GPU memory fails.",
	{ "Load it after the network driver: systemctl restart openibd, then rmmod and modprobe nvidia-peermem; look into the kernel's log for 'nvidia_peermem'.",
	  "Restart the GPU operator's driver pod of this node after the network operator's.",
	  "Order the modules in machine.kernel.modules: mlx5_ib before nvidia_peermem." },
};
static const struct diagnosis_advice peer_impossible = {
	"nvidia-peermem does not load here ('Invalid argument'): the kernel's own RDMA core has no peer memory, which comes with MLNX_OFED or DOCA.",
	{ "Use dmabuf: the open kernel modules and Linux 5.12 or later; or install DOCA-OFED and rebuild the driver's modules.",
	  "Use dmabuf: driver.kernelModuleType: open in the ClusterPolicy; or the network operator's driver.",
	  "Use the system extension nvidia-open-gpu-kernel-modules (dmabuf)." },
};

static void run_peermem(const struct facts *f, struct diagnosis *r)
{
	const struct facts_host *h = &f->host;

	if (!facts_has_vendor(f, "NVIDIA"))
		return;
	if (h->peermem_version && h->nvidia_version &&
	    strcmp(h->peermem_version, h->nvidia_version) != 0)
		diagnosis_add(r, DIAGNOSIS_WARN, &peer_other_version, "host",
			      "nvidia_peermem is of version %s, the driver of version %s.",
			      h->peermem_version, h->nvidia_version);
	if (h->peermem_version && h->old_peermem)
		diagnosis_add(r, DIAGNOSIS_WARN, &peer_two, "host",
			      "Both nvidia_peermem and nv_peer_mem are loaded.");
	if (h->peermem_version && h->peermem_registered == FACTS_NO)
		diagnosis_add(r, DIAGNOSIS_WARN, &peer_silent, "host",
			      "nvidia_peermem is loaded, and the RDMA core does not list it.");
	if (h->peermem == FACTS_NO && h->rdma_peers == FACTS_NO && h->nvidia_open == FACTS_NO)
		diagnosis_add(
			r, DIAGNOSIS_WARN, &peer_impossible, "host",
			"The RDMA core of this kernel has no interface for peer memory, and the driver is not the open kernel modules.");
	if (h->peermem_version)
		diagnosis_fine(r, "nvidia_peermem %s is loaded once, beside its driver.",
			       h->peermem_version);
}

/* --- gdrcopy --- */

static const struct diagnosis_advice copy_fine = {
	"Programs with GDRCopy (UCX, NVSHMEM; NCCL with NCCL_GDRCOPY_ENABLE=1) read and write a few bytes of GPU memory without the driver.",
	{ NULL },
};
static const struct diagnosis_advice copy_none = {
	"Nothing for NCCL's bandwidth; small messages of UCX and NVSHMEM have a higher latency without it.",
	{ NULL },
};
static const struct diagnosis_advice copy_unknown = {
	"Nothing for NCCL's bandwidth; small messages of UCX and NVSHMEM have a higher latency without gdrdrv.",
	{ "Look on the host for /dev/gdrdrv." },
};

static void run_gdrcopy(const struct facts *f, struct diagnosis *r)
{
	enum facts_answer a = f->host.gdrdrv;

	if (!facts_has_vendor(f, "NVIDIA"))
		return;
	if (a == FACTS_UNKNOWN)
		diagnosis_add(r, DIAGNOSIS_UNKNOWN, &copy_unknown, "host",
			      "Whether gdrdrv is loaded is not visible.");
	else
		diagnosis_add(r, DIAGNOSIS_PASS, a == FACTS_YES ? &copy_fine : &copy_none, "host",
			      a == FACTS_YES ? "gdrdrv is loaded." : "gdrdrv is not loaded.");
}

const struct diagnosis_check doctor_module_checks[] = {
	{ "modules", "RDMA modules of the kernel",
	  "WARN: a network driver whose cards could have VFs has an RDMA module, and no card of it an RDMA device; or there is no rdma_cm. --fix-manifest has the modules to load at boot.",
	  .run = run_modules, .in_manifest = true },
	{ "peermem", "nvidia_peermem beside its driver",
	  "WARN: nvidia_peermem is of another version than the driver, is loaded beside nv_peer_mem, or is not known to the RDMA core; or it is not loaded and cannot be, where dmabuf is no way out either. Not loaded and not needed: not applicable; see gpudirect.",
	  .run = run_peermem },
	{ "gdrcopy", "GDRCopy for small messages",
	  "Whether gdrdrv is loaded, for programs with GDRCopy. NCCL does not need it, so its absence is a PASS.",
	  .run = run_gdrcopy },
};
const size_t doctor_module_checks_n = ARRAY_LEN(doctor_module_checks);
