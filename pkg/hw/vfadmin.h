/* The settings of a PF's administrator for its VFs. */
#ifndef RAILMATE_HW_VFADMIN_H
#define RAILMATE_HW_VFADMIN_H

#include <stdbool.h>
#include <stdint.h>

enum hw_vf_link { HW_VF_LINK_UNKNOWN, HW_VF_LINK_AUTO, HW_VF_LINK_ENABLE, HW_VF_LINK_DISABLE };

/* Of one VF, as "ip link show PF" shows them. */
struct hw_vf_admin {
	int index;
	bool has_mac;
	uint8_t mac[6];	     /* all zero: not set, the VF's driver chooses */
	int vlan, vlan_qos;  /* vlan 0: none; -1 unknown */
	int spoofchk, trust; /* 0, 1; -1: the driver does not report it */
	enum hw_vf_link link;
	int min_mbps, max_mbps;	       /* 0: no limit; -1 unknown */
	bool has_guids;		       /* InfiniBand */
	uint64_t node_guid, port_guid; /* 0: not set */
};

#endif
