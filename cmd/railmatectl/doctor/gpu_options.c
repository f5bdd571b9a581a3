/*
 * Options of NVIDIA's GPU driver: /proc/driver/nvidia/params has every option that it knows, a line
 * each ("EnablePCIERelaxedOrderingMode: 0"); their meaning is in the open kernel modules' nv-reg.h.
 * A misspelt one is ignored with a line in the kernel's log, and guides misspell them.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "doctor/doctor-internal.h"

#define PREFIX "nvidia.NVreg_"

static const struct diagnosis_advice unknown_option = {
	"The driver ignores it, so whatever it was meant to change is as it was.",
	{ "Compare its letters with /proc/driver/nvidia/params, and write it as it is there, with NVreg_ before it; or take it out of GRUB_CMDLINE_LINUX.",
	  "Write it in the MachineConfig's kernelArguments as /proc/driver/nvidia/params has it, or take it out.",
	  "Write it in machine.install.extraKernelArgs as /proc/driver/nvidia/params has it, or take it out." },
};
static const struct diagnosis_advice topology_override = {
	"The driver no longer looks whether GPU and NIC can reach each other before it gives peer memory: where ACS or IOMMU groups do not fit, transfers fail or are slow without a message.",
	{ "Set the ACS masks (see the checks acs and iommu-groups), then take NVreg_GrdmaPciTopoCheckOverride out of /etc/modprobe.d and GRUB_CMDLINE_LINUX.",
	  "Set the ACS masks (see the checks acs and iommu-groups), then take it out of the MachineConfig.",
	  "Set the ACS masks (see the checks acs and iommu-groups), then take it out of machine.kernel.modules." },
};
static const struct diagnosis_advice options_fine = {
	"Relaxed ordering of GPUs (EnablePCIERelaxedOrderingMode) is 0 by default; 1 is for GPUs of the A100's time on some CPUs, and has to be measured.",
	{ NULL },
};

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
		diagnosis_add(
			r, DIAGNOSIS_WARN, &unknown_option, "host",
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
		diagnosis_add(r, DIAGNOSIS_WARN, &topology_override, "host",
			      "The GPU driver has NVreg_GrdmaPciTopoCheckOverride=1.");
	if (diagnosis_worst_so_far(r) == DIAGNOSIS_PASS)
		diagnosis_add(r, DIAGNOSIS_PASS, &options_fine, "host",
			      "The GPU driver knows its options; relaxed ordering of GPUs is %s.",
			      is_set(params, "EnablePCIERelaxedOrderingMode") ? "forced on"
									      : "as they have it");
}

const struct diagnosis_check doctor_gpu_option_checks[] = {
	{ "gpu-options", "options of NVIDIA's GPU driver",
	  "Reads /proc/driver/nvidia/params and the kernel's command line. WARN: a nvidia.NVreg_ option of the command line that this driver does not know, or GrdmaPciTopoCheckOverride=1. PASS: neither, and whether relaxed ordering of GPUs is forced on. Without the file it does not apply.",
	  .run = run_gpu_options },
};
const size_t doctor_gpu_option_checks_n = ARRAY_LEN(doctor_gpu_option_checks);
