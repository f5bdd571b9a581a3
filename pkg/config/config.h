/*
 * What the operator asked for: sriov-network-device-plugin's config.json plus one object `railmate`
 * per pool and one beside resourceList. Text in, validated structs out; reading the file is the caller's.
 * Keys match without regard to case, null is absent, an unknown key warns (as that plugin: encoding/json), also
 * inside an object named `railmate`: a file for a later version of ours still loads after a roll-back.
 *
 *   { "resourceList": [ { "resourceName": "vf", …, "railmate": { "gid": "fixed:3", "network": "host" } } ],
 *     "railmate": { "gpus": [ { "vendor": "10de", "classes": ["0300", "0302"], "name": "NVIDIA" } ] } }
 *
 * `gpus` replaces the built-in table of what is a GPU.
 */
#ifndef RAILMATE_CONFIG_CONFIG_H
#define RAILMATE_CONFIG_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hw/bdf.h"
#include "discover/discover.h" /* struct gpu_match */

struct arena;
struct err;

struct index_range { int first, last; };

/* "name#0,2-7": pfNames and rootDevices. No ranges: every index. */
struct pf_selector {
	const char *name;
	const struct index_range *ranges;
	size_t n_ranges;
};

/* AND between members, OR inside one; an empty member matches everything. */
struct selector {
	const uint16_t *vendors;	size_t n_vendors;
	const uint16_t *devices;	size_t n_devices;
	const char *const *drivers;	size_t n_drivers;
	const struct bdf *addresses;	size_t n_addresses;
	const struct pf_selector *pf_names;	size_t n_pf_names;
	const struct pf_selector *root_devices;	size_t n_root_devices;	/* name is a formatted PCI address */
	const char *const *link_types;	size_t n_link_types;	/* "ether", "infiniband" */
	const int *acpi_indexes;	size_t n_acpi_indexes;
	bool is_rdma;
};

enum gid_mode { GID_AUTO, GID_FIXED, GID_OFF };
enum pool_network { NETWORK_POD, NETWORK_HOST };
enum pool_binding { BINDING_EARLY, BINDING_LATE };

/* For additionalInfo: device "*" or an id; values in key order. */
struct extra_info {
	const char *device, *key, *value;
};

struct pool_config {
	const char *resource;	/* "prefix/name" */
	const char *prefix, *name;
	bool exclude_topology;
	bool vfs_only;		/* the built-in pool: never a PF, also not one without VFs */
	bool is_rdma;		/* any selector says isRdma: device nodes and NCCL variables are injected */
	/* Union; none: everything of the device type (with an RDMA device if is_rdma: the built-in pool). */
	const struct selector *selectors;	size_t n_selectors;
	const struct extra_info *extra;		size_t n_extra;
	/* railmate: {…} */
	enum gid_mode gid;	/* "gid": "auto" (default) | "fixed:N" | "off" */
	int gid_index;		/* of fixed:N */
	enum pool_network network; /* "network": "pod" (default) | "host" */
	bool strict;		/* "strict": false (default) | true; early: a container that misses the nearest VFs is warned of */
	enum pool_binding binding; /* "binding": "early" (default; ids are PCI addresses) | "late" (slots) */
};

struct config {
	struct arena *arena; /* owns everything below */
	const struct pool_config *pools;	size_t n_pools;
	const struct gpu_match *gpus;		size_t n_gpus;	/* railmate.gpus; none: the built-in table */
	const char *const *warnings;		size_t n_warnings; /* sentences for the operator */
};

/* Larger files are refused unread; the API server's limit for a ConfigMap is 1 MiB. */
#define CONFIG_BYTES_MAX (4u << 20)

/*
 * name is used in messages ("config.json:12: …"); default_prefix is the command line's (--resource-prefix),
 * NULL for that plugin's (intel.com). -EINVAL with a sentence that names file, line, key and legal values.
 */
int config_parse(const char *text, size_t len, const char *name, const char *default_prefix,
		 struct config **ret, struct err *err);
/* What runs without a file: one pool rdma/vf of every VF that has an RDMA device. */
struct config *config_default(void);
void config_free(struct config *cfg);

#endif
