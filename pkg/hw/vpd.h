/*
 * Vital product data of a PCI function (PCI Local Bus 3.0, appendix I; sysfs: vpd): the maker's
 * text on the card. Pure; any bytes.
 */
#ifndef RAILMATE_HW_VPD_H
#define RAILMATE_HW_VPD_H

#include <stddef.h>
#include <stdint.h>

struct err;
struct strbuf;

#define VPD_VALUE_MAX 256   /* a keyword has a byte for its length */
#define VPD_MAX	      32768 /* an address in it has 15 bits */

/* Printable ASCII without blanks at the ends; "": not there. */
struct vpd {
	char name[VPD_VALUE_MAX];   /* identifier string: the product */
	char part[VPD_VALUE_MAX];   /* PN */
	char serial[VPD_VALUE_MAX]; /* SN */
	/* V3; NVIDIA: a UUID that all functions of a board share, those of Data Direct, too */
	char board[VPD_VALUE_MAX];
	/* VU; NVIDIA: of a function, and the same of its data direct function */
	char vuid[VPD_VALUE_MAX];
};

/*
 * The readable part of any bytes. err->msg stays empty where they are whole; else it names the
 * first fault and its place: a tag or a keyword that is cut short or claims more than there is, a
 * value above that is not printable ASCII. Fields before a cut are read all the same, as by the
 * kernel (drivers/pci/vpd.c, pci_vpd_find_tag()) and by rdma_topo. Of a keyword that is there twice
 * the first counts; bytes behind the end tag do not. The end tag may be missing, as for the kernel,
 * whose file then ends before the first byte that is not a tag (pci_vpd_size()).
 */
void vpd_parse(const uint8_t *data, size_t n, struct vpd *ret, struct err *err);
/* Bytes that vpd_parse() takes, with the name, V3 and VU in them and nothing else. */
void vpd_excerpt(const struct vpd *vpd, struct strbuf *out);

#endif
