#include "hw/bdf.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>

/* Exactly min..max hex digits at *p; moves *p behind them. */
static int hex_field(const char **p, int min, int max, uint32_t *ret)
{
	uint32_t v = 0;
	int n = 0;

	/* The low half of a letter's code is 1 to 6, and only letters have the bit 0x40. */
	for (; n < max && isxdigit((unsigned char)**p); n++, (*p)++)
		v = v << 4 | ((uint32_t)(**p & 15) + (uint32_t)(**p >> 6) * 9);
	if (n < min)
		return -EINVAL;
	*ret = v;
	return 0;
}

int bdf_parse(const char *text, struct bdf *ret)
{
	uint32_t domain, bus, dev, fn;
	const char *p = text;

	if (hex_field(&p, 4, 8, &domain) < 0 || *p++ != ':' || hex_field(&p, 2, 2, &bus) < 0 ||
	    *p++ != ':' || hex_field(&p, 2, 2, &dev) < 0 || *p++ != '.' ||
	    hex_field(&p, 1, 1, &fn) < 0 || *p || dev > 31 || fn > 7)
		return -EINVAL;
	*ret = (struct bdf) { domain, (uint8_t)bus, (uint8_t)dev, (uint8_t)fn };
	return 0;
}

const char *bdf_format(struct bdf bdf, char buf[BDF_STRLEN])
{
	snprintf(buf, BDF_STRLEN, "%04x:%02x:%02x.%x", bdf.domain, bdf.bus, bdf.dev & 31u,
		 bdf.fn & 7u);
	return buf;
}

static uint64_t bdf_key(struct bdf b)
{
	return (uint64_t)b.domain << 32 | (uint64_t)b.bus << 16 | (uint64_t)b.dev << 8 | b.fn;
}

int bdf_cmp(struct bdf a, struct bdf b)
{
	uint64_t ka = bdf_key(a), kb = bdf_key(b);

	return ka < kb ? -1 : ka > kb;
}
