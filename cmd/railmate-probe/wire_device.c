/* An RDMA device is opened and asked, against what the container was told of it. */
#include <arpa/inet.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "report.h"
#include "sysroot/sysroot.h"
#include "told.h"
#include "wire-internal.h"

/* rdma-core 65; with an older one the port's own rate counts. */
int ibv_query_port_speed(struct ibv_context *context, uint32_t port, uint64_t *speed)
	__attribute__((weak));

const char *wire_gid_text(const uint8_t gid[16], char buf[GID_TEXT])
{
	return inet_ntop(AF_INET6, gid, buf, GID_TEXT);
}

int wire_mtu_bytes(unsigned mtu)
{
	return mtu >= IBV_MTU_256 && mtu <= IBV_MTU_4096 ? 128 << mtu : 0;
}

/* The checks of the container have said why: the same trouble is reported once. */
static bool is_said(const struct report *r, const char *hca)
{
	size_t n = strlen(hca);

	for (size_t i = 0; i < r->n_findings; i++) {
		const struct finding *f = &r->findings[i];

		if (f->outcome == OUTCOME_BROKEN && f->on && strncmp(f->on, hca, n) == 0 &&
		    (!f->on[n] || f->on[n] == ' '))
			return true;
	}
	return false;
}

/* --- the device --- */

/* The PCI function of an RDMA device: that of hardware, or of the netdev below a soft one. false:
 * neither is seen from here. */
static bool function_of(const struct sysroot *root, const char *hca, char bdf[64], bool *soft)
{
	char netdev[64];

	*soft = false;
	if (sysroot_link_name(root, bdf, 64, "sys/class/infiniband/%s/device", hca) == 0)
		return true;
	*soft = sysroot_exists(root, "sys/class/infiniband/%s", hca);
	return sysroot_read(root, netdev, sizeof(netdev), "sys/class/infiniband/%s/parent", hca) >
		       0 &&
	       !strchr(netdev, '/') &&
	       sysroot_link_name(root, bdf, 64, "sys/class/net/%s/device", netdev) == 0;
}

/* A name that another function's device has now would measure that one. */
static int check_function(const struct sysroot *root, struct wire_device *d, struct report *r)
{
	char bdf[64];

	if (!function_of(root, d->vf->hca, bdf, &d->soft) || str_eq(bdf, d->vf->bdf))
		return 0;
	report_finding(r, OUTCOME_BROKEN, "hca-foreign", d->on,
		       "%s is of %s now, and map.json says %s", d->vf->hca, bdf, d->vf->bdf);
	return -ENXIO;
}

/* In the list of libibverbs, which has only devices that have a provider here. */
static int open_context(const struct sysroot *root, struct wire_device *d, struct report *r)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	const char *hca = d->vf->hca;
	int error;

	errno = ENODEV;
	for (struct ibv_device **at = list; at && *at; at++) {
		if (str_eq(ibv_get_device_name(*at), hca))
			d->context = ibv_open_device(*at);
	}
	error = errno ? errno : EIO;
	if (list)
		ibv_free_device_list(list);
	if (d->context)
		return 0;
	if (is_said(r, hca))
		return -error;
	if (error != ENODEV)
		report_finding(r, OUTCOME_BROKEN, "uverbs-open", d->on, "ibv_open_device of %s: %s",
			       hca, strerror(error));
	else if (sysroot_exists(root, "sys/class/infiniband/%s", hca))
		report_finding(r, OUTCOME_NOT_MEASURED, "provider", d->on,
			       "no provider that is linked into railmate-probe knows %s", hca);
	else
		report_finding(r, OUTCOME_BROKEN, "hca-gone", d->on,
			       "no RDMA device %s is seen in this container", hca);
	return -error;
}

/* --- memory that is locked --- */

void wire_report_memory(const struct wire_device *d, const char *verb, size_t tried, int error,
			struct report *r)
{
	struct rlimit limit = { 0 };
	char size[48] = "";

	for (size_t i = 0; i < r->n_findings && error == ENOMEM; i++) {
		if (str_eq(r->findings[i].sentence->id, "memlock") &&
		    r->findings[i].outcome == OUTCOME_BROKEN)
			return; /* of the checks of the container */
	}
	if (tried)
		snprintf(size, sizeof(size), " of %zu KiB", tried >> 10);
	if (error == ENOMEM && getrlimit(RLIMIT_MEMLOCK, &limit) == 0 &&
	    limit.rlim_cur != RLIM_INFINITY)
		report_finding(r, OUTCOME_BROKEN, "memlock", d->on,
			       "%s%s: %s, and RLIMIT_MEMLOCK is %llu KiB", verb, size,
			       strerror(error), (unsigned long long)limit.rlim_cur >> 10);
	else
		report_finding(r, OUTCOME_BROKEN, "verbs-refused", d->on, "%s%s: %s", verb, size,
			       strerror(error));
}

/* --- port --- */

static double lane_gbps(uint32_t active_speed)
{
	switch (active_speed) {
	case 1:
		return 2.5;
	case 2:
		return 5;
	case 4:
	case 8:
		return 10;
	case 16:
		return 14;
	case 32:
		return 25;
	case 64:
		return 50;
	case 128:
		return 100;
	case 256:
		return 200;
	default:
		return NAN;
	}
}

static int lanes(uint8_t active_width)
{
	switch (active_width) {
	case 1:
		return 1;
	case 2:
		return 4;
	case 4:
		return 8;
	case 8:
		return 12;
	case 16:
		return 2;
	default:
		return 0;
	}
}

/*
 * 10^9 bit/s on the wire; NAN: the port does not say. The kernel gives verbs one byte of the speed,
 * which ends at NDR; its text in sysfs knows all.
 */
static double port_rate(const struct wire_device *d)
{
	uint64_t speed;

	if (d->soft)
		return NAN;
	if (ibv_query_port_speed &&
	    ibv_query_port_speed(d->context, (uint32_t)d->vf->port, &speed) == 0 && speed)
		return (double)speed / 10;
	if (d->sysfs_gbps > 0)
		return d->sysfs_gbps;
	if (!lanes(d->port.active_width))
		return NAN;
	return lane_gbps(d->port.active_speed) * lanes(d->port.active_width);
}

double wire_port_gbps(const struct wire_device *d)
{
	/* preamble, gap, Ethernet, IP, UDP, BTH, ICRC and FCS; or LRH, BTH, ICRC and VCRC */
	int header = d->port.link_layer == IBV_LINK_LAYER_ETHERNET ? 82 : 26;
	int mtu = wire_mtu_bytes(d->port.active_mtu);
	/* 8b/10b takes a fifth of InfiniBand's first three speeds; drivers give Ethernet's in the
	 * same numbers, as payload. */
	bool coded = d->port.link_layer == IBV_LINK_LAYER_INFINIBAND && d->port.active_speed <= 4;

	return mtu ? port_rate(d) * (coded ? 0.8 : 1) * mtu / (mtu + header) : NAN;
}

/* "800 Gb/sec (4X XDR)"; 0: not to be read. */
static double sysfs_rate(const struct sysroot *root, const struct told_vf *vf)
{
	char text[64];

	return sysroot_read(root, text, sizeof(text), "sys/class/infiniband/%s/ports/%d/rate",
			    vf->hca, vf->port) > 0
		       ? strtod(text, NULL)
		       : 0;
}

static const char *physical_state(uint8_t state)
{
	static const char *const names[] = { "",	 "sleep",	  "polling",
					     "disabled", "training",	  "link up",
					     "recovery", "physical test", "" };

	return names[state < ARRAY_LEN(names) ? state : 0];
}

static int check_port(const struct wire_device *d, struct report *r)
{
	double gbps = port_rate(d), told = (double)d->vf->mbps / 1000;
	int mtu = wire_mtu_bytes(d->port.active_mtu);

	if (d->port.state != IBV_PORT_ACTIVE) {
		report_finding(r, OUTCOME_BROKEN,
			       d->port.state == IBV_PORT_INIT ? "port-init" : "port-down", d->on,
			       "the port is %s, physically %s", ibv_port_state_str(d->port.state),
			       physical_state(d->port.phys_state));
		return -ENETDOWN;
	}
	if (d->port.link_layer == IBV_LINK_LAYER_INFINIBAND && d->vf->gid_type &&
	    strstr(d->vf->gid_type, "RoCE v2"))
		report_finding(r, OUTCOME_BROKEN, "link-layer", d->on,
			       "the port is InfiniBand, and map.json has a GID of %s",
			       d->vf->gid_type);
	if (mtu && mtu < 1024)
		report_finding(r, OUTCOME_SLOW, "mtu-small", d->on, "the MTU of the port is %d",
			       mtu);
	if (!d->soft && isnan(wire_port_gbps(d)))
		report_finding(
			r, OUTCOME_NOT_MEASURED, "no-rate", d->on,
			"the port names no rate, and its width %u, speed %u or MTU %d is not known",
			d->port.active_width, d->port.active_speed, mtu);
	if (d->vf->mbps > 0 && gbps < 0.99 * told)
		report_finding(r, OUTCOME_SLOW, "port-slow", d->on,
			       "the port runs at %.4g Gb/s, and map.json says %.4g", gbps, told);
	return 0;
}

/* Without the bit of the membership. */
static unsigned partition_at(const struct wire_device *d, int index)
{
	uint16_t pkey = 0;

	if (ibv_query_pkey(d->context, (uint8_t)d->vf->port, index, &pkey) < 0)
		return 0;
	return ntohs(pkey) & 0x7fff;
}

int wire_other_pkey(const struct wire_device *d)
{
	unsigned own = partition_at(d, 0), other;

	for (int i = 1; i < d->port.pkey_tbl_len; i++) {
		other = partition_at(d, i);
		if (other && other != own)
			return i;
	}
	return -ENOENT;
}

static void check_pkeys(const struct wire_device *d, struct report *r)
{
	bool limited = false;
	uint16_t pkey;

	for (int i = 0; i < d->port.pkey_tbl_len; i++) {
		if (ibv_query_pkey(d->context, (uint8_t)d->vf->port, i, &pkey) < 0)
			continue;
		pkey = ntohs(pkey);
		if (pkey & 0x8000)
			return;
		limited |= pkey != 0;
	}
	if (limited)
		report_finding(r, OUTCOME_SLOW, "pkey-limited", d->on,
			       "every P_Key of the port is of a limited member");
	else
		report_finding(r, OUTCOME_BROKEN, "pkey-none", d->on,
			       "none of the %d P_Keys of the port is valid", d->port.pkey_tbl_len);
}

static void check_limits(const struct wire_device *d, struct report *r)
{
	const struct ibv_device_attr *l = &d->limits;

	if (l->max_qp < 16 || l->max_mr < 16 || l->max_cq < 16)
		report_finding(r, OUTCOME_BROKEN, "device-limits", d->on,
			       "the device has %d QPs, %d CQs and %d memory regions in all",
			       l->max_qp, l->max_cq, l->max_mr);
}

/* --- GIDs --- */

const struct ibv_gid_entry *wire_gid_at(const struct wire_device *d, int index)
{
	for (size_t i = 0; i < d->n_gids; i++) {
		if (d->gids[i].gid_index == (uint32_t)index)
			return &d->gids[i];
	}
	return NULL;
}

static bool is_mapped(const union ibv_gid *gid)
{
	static const uint8_t prefix[12] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff };

	return memcmp(gid->raw, prefix, sizeof(prefix)) == 0;
}

static bool is_link_local(const union ibv_gid *gid)
{
	return gid->raw[0] == 0xfe && (gid->raw[1] & 0xc0) == 0x80;
}

/* Lower is better: RoCE v2 by IPv4, by a global IPv6 address, by a link-local one, v1. */
static unsigned gid_rank(const struct ibv_gid_entry *e)
{
	if (e->gid_type != IBV_GID_TYPE_ROCE_V2)
		return 3;
	return is_mapped(&e->gid) ? 0 : is_link_local(&e->gid) ? 2 : 1;
}

static int gid_choice(const struct wire_device *d, bool told, struct report *r)
{
	const struct ibv_gid_entry *best = NULL;

	if (d->port.link_layer == IBV_LINK_LAYER_INFINIBAND)
		return wire_gid_at(d, 0) ? 0 : -1;
	for (size_t i = 0; i < d->n_gids; i++) {
		if (!best || gid_rank(&d->gids[i]) < gid_rank(best))
			best = &d->gids[i];
	}
	if (!best || (told && gid_rank(best) >= 2))
		return -1;
	if (gid_rank(best) >= 2)
		report_finding(r, OUTCOME_SLOW, "gid-link-local", d->on,
			       "the best GID of the port, index %u, is %s", best->gid_index,
			       gid_rank(best) == 2 ? "link-local" : "of RoCE v1");
	return (int)best->gid_index;
}

/* The index that the job will take: that of NCCL, then that of map.json, then by choice. Whether it
 * is as it was told is a check of the container. */
static void choose_gid(struct wire_device *d, struct report *r)
{
	int nccl = r->told ? r->told->nccl_gid_index : -1;
	int told = nccl >= 0 ? nccl : d->vf->gid_index;

	d->gid_index = told >= 0 && wire_gid_at(d, told) ? told : gid_choice(d, told >= 0, r);
	if (d->gid_index < 0 && !is_said(r, d->vf->hca))
		report_finding(r, OUTCOME_BROKEN, told >= 0 ? "gid-gone" : "gid-none", d->on,
			       "of %d GIDs of the port %zu are not empty, and none of those is "
			       "routed, nor is it the one that was told (%d)",
			       d->port.gid_tbl_len, d->n_gids, told);
}

static int read_gids(struct wire_device *d, struct report *r)
{
	size_t room = d->port.gid_tbl_len > 0 ? (size_t)d->port.gid_tbl_len : 1;
	struct ibv_gid_entry *all = xcalloc(room * d->limits.phys_port_cnt, sizeof(*all));
	ssize_t n = ibv_query_gid_table(d->context, all, room * d->limits.phys_port_cnt, 0);

	d->gids = all;
	for (ssize_t i = 0; i < n; i++) {
		if (all[i].port_num == (uint32_t)d->vf->port)
			all[d->n_gids++] = all[i];
	}
	if (n < 0) {
		report_finding(r, OUTCOME_NOT_MEASURED, "verbs-refused", d->on,
			       "ibv_query_gid_table: %s", strerror((int)-n));
		return (int)n;
	}
	return 0;
}

/* --- all of it --- */

static int ask(struct wire_device *d, struct report *r)
{
	int error = ibv_query_device(d->context, &d->limits);

	if (!error && d->vf->port > d->limits.phys_port_cnt) {
		report_finding(r, OUTCOME_BROKEN, "port-absent", d->on,
			       "the device has %d ports, and map.json says port %d",
			       d->limits.phys_port_cnt, d->vf->port);
		return -ENODEV;
	}
	if (!error)
		error = ibv_query_port(d->context, (uint8_t)d->vf->port, &d->port);
	if (error) {
		report_finding(r, OUTCOME_NOT_MEASURED, "verbs-refused", d->on,
			       "ibv_query_port: %s", strerror(error));
		return -error;
	}
	error = check_port(d, r);
	if (error)
		return error;
	error = read_gids(d, r);
	if (error)
		return error;
	check_pkeys(d, r);
	check_limits(d, r);
	choose_gid(d, r);
	d->pd = ibv_alloc_pd(d->context);
	if (!d->pd) {
		error = errno;
		wire_report_memory(d, "ibv_alloc_pd", 0, error, r);
		return -error;
	}
	return d->gid_index < 0 ? -EADDRNOTAVAIL : 0;
}

int wire_open(const struct told_vf *vf, struct report *r, struct wire_device **ret)
{
	struct wire_device *d = xcalloc(1, sizeof(*d));
	struct sysroot *root = NULL;
	struct err err = { 0 };
	int error;

	d->vf = vf;
	d->gid_index = -1;
	snprintf(d->on, sizeof(d->on), "%s port %d", vf->hca ? vf->hca : vf->bdf, vf->port);
	error = vf->hca ? sysroot_open("/", &root, &err) : -ENODEV;
	if (!vf->hca)
		report_finding(r, OUTCOME_NOT_MEASURED, "no-hca", vf->bdf,
			       "map.json names no RDMA device for %s", vf->bdf);
	else if (error)
		report_finding(r, OUTCOME_NOT_MEASURED, "verbs-refused", d->on, "%s", err.msg);
	if (!error) {
		d->sysfs_gbps = sysfs_rate(root, vf);
		error = check_function(root, d, r);
	}
	if (!error)
		error = open_context(root, d, r);
	if (!error)
		error = ask(d, r);
	sysroot_close(root);
	if (error) {
		wire_close(d);
		return error;
	}
	*ret = d;
	return 0;
}

void wire_close(struct wire_device *d)
{
	if (!d)
		return;
	if (d->pd)
		ibv_dealloc_pd(d->pd);
	if (d->context)
		ibv_close_device(d->context);
	free(d->gids);
	free(d);
}
