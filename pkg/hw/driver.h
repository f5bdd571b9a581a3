/*
 * The table of NIC drivers, one row a driver (HACKING.md, "A NIC driver"). Nothing else in pkg/
 * compares with the name of a driver, a module or its RDMA devices, or has ids of VFs. Facts of a
 * card and not of its driver, as Data Direct, are in hw/inventory.c and discover/card.c.
 */
#ifndef RAILMATE_HW_DRIVER_H
#define RAILMATE_HW_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum hw_driver_kind {
	HW_DRIVER_NIC,	    /* of the kernel */
	HW_DRIVER_EMULATED, /* of a NIC that a hypervisor makes up */
	HW_DRIVER_VFIO,	    /* hands the device to user space by /dev/vfio/N */
	HW_DRIVER_UIO,	    /* by /dev/uioN */
	HW_DRIVER_STUB,	    /* holds the device and does nothing with it */
};

/* Where a driver shows the rate limit of a VF: a file below sriov/<index>/ of its PF. */
struct hw_rate_file {
	const char *name;
	const char *line; /* the limit is in the line "<line> : N"; NULL: the file is the number */
};
extern const struct hw_rate_file hw_rate_files[];
extern const size_t hw_rate_files_n;
/* The line of a file with several that has the limit; NULL: none. */
const char *hw_rate_line(const struct hw_rate_file *file, const char *text);

#define HW_DEVICE_ANY 0xffff
struct hw_nic_id {
	uint16_t vendor, device; /* HW_DEVICE_ANY: every one of this vendor */
};

enum hw_driver_quirk {
	/* NVSHMEM finds its RDMA devices without being given their prefix. */
	HW_QUIRK_NVSHMEM_DEFAULT = 1 << 0,
	/* Its netdevs may have ecn/roce_np and ecn/roce_rp in sysfs (MLNX_OFED, DOCA-OFED). */
	HW_QUIRK_ECN_IN_SYSFS = 1 << 1,
};

struct hw_driver {
	const char *name; /* as the link `driver` of a function has it; of a PF where VFs differ */
	enum hw_driver_kind kind;
	const char *vf;		 /* the driver of its VFs; NULL: itself */
	const char *rdma_module; /* the module that makes RDMA devices; NULL: not known */
	const char *rdma_prefix; /* of the names that the kernel gives these; NULL: not known */
	const struct hw_rate_file *rate; /* NULL: not known, any of hw_rate_files[] may be there */
	unsigned quirks;		 /* bits of enum hw_driver_quirk */
	/* Ids of its VFs only, wherever a VF sits and whether or not its PF is visible; of
	 * HW_DRIVER_EMULATED every device. */
	const struct hw_nic_id *ids;
	size_t n_ids;
};
extern const struct hw_driver hw_drivers[];
extern const size_t hw_drivers_n;

/* The row of a driver of PFs or of VFs; NULL: unknown. name may be NULL. */
const struct hw_driver *hw_driver_find(const char *name);
/* The driver for the VFs of a PF with this driver, also of one that is unknown. */
const char *hw_driver_of_vfs(const char *pf);
/* Is a function with this driver (NULL: none) out of the kernel's hands? */
bool hw_driver_is_user_space(const char *name);
/* By the kernel's name of an RDMA device ("mlx5_4"); NULL: unknown, or the device was renamed. */
const struct hw_driver *hw_driver_of_rdma(const char *rdma);
/* The row that has this id in ids; NULL: none. */
const struct hw_driver *hw_driver_of_id(uint16_t vendor, uint16_t device);

#endif
