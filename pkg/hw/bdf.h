/* A PCI address: domain:bus:device.function. Domains have 32 bits (VMD, Hyper-V, multi-segment
 * hosts). */
#ifndef RAILMATE_HW_BDF_H
#define RAILMATE_HW_BDF_H

#include <stdint.h>

struct bdf {
	uint32_t domain;
	uint8_t bus, dev, fn;
};
#define BDF_STRLEN 18 /* "ffffffff:ff:1f.7" and its NUL fit */

/*
 * Accepts "dddd:bb:dd.f" with 4 to 8 domain digits, either case; the whole string, else -EINVAL.
 * The kernel prints lower case, four domain digits or more (%04x), and so does bdf_format().
 */
int bdf_parse(const char *text, struct bdf *ret);
const char *bdf_format(struct bdf bdf, char buf[BDF_STRLEN]); /* returns buf */
int bdf_cmp(struct bdf a, struct bdf b);

#endif
