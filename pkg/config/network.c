/* The keys that describe the fabric: GIDs and partitions. */
#include <arpa/inet.h>
#include <string.h>

#include "base/arena.h"
#include "base/str.h"
#include "config/config-internal.h"

#define MAPPED_BITS 96 /* ::ffff:0:0/96: IPv4 addresses in a GID */
#define PKEY_FULL   0x8000

static const uint8_t mapped[16] = { [10] = 0xff, [11] = 0xff };

static bool bits_behind(const uint8_t addr[16], int bits)
{
	for (int i = bits; i < 128; i++) {
		if (addr[i / 8] & (0x80 >> i % 8))
			return true;
	}
	return false;
}

/* "10.0.0.0/8", "fd00::/8": an IPv4 one is mapped into ::ffff:0:0/96. */
struct ip_prefix {
	uint8_t addr[16];
	int bits;	/* of 128 */
	bool v6;	/* as written */
	bool host_bits; /* some bit behind the prefix is set */
};

static bool parse_prefix(const char *text, struct ip_prefix *ret)
{
	char addr[INET6_ADDRSTRLEN];
	const char *slash = strchr(text, '/');
	struct ip_prefix out = { .v6 = strchr(text, ':') != NULL };
	uint64_t bits;

	if (!slash || (size_t)(slash - text) >= sizeof(addr))
		return false;
	memcpy(addr, text, (size_t)(slash - text));
	addr[slash - text] = '\0';
	if (str_to_u64(slash + 1, 10, out.v6 ? 128 : 32, &bits) < 0)
		return false;
	if (!out.v6)
		memcpy(out.addr, mapped, sizeof(mapped));
	if (inet_pton(out.v6 ? AF_INET6 : AF_INET, addr, out.v6 ? out.addr : &out.addr[12]) != 1)
		return false;
	out.bits = (int)bits + (out.v6 ? 0 : MAPPED_BITS);
	out.host_bits = bits_behind(out.addr, out.bits);
	*ret = out;
	return true;
}

int read_gid_range(struct parse *p, const struct item *value, const struct key *key, void *out)
{
	struct pool_config *pool = out;
	struct ip_prefix prefix;
	int r = want(p, value, ITEM_STRING);

	(void)key;
	if (r < 0)
		return r;
	if (!parse_prefix(value->string, &prefix))
		return refuse(
			p, value,
			"'%s' is not a range of addresses; it looks like 10.0.0.0/8 or fd00::/8",
			shown(p, value));
	if (prefix.host_bits)
		return refuse(p, value,
			      "'%s' is the address of a host: all bits behind the prefix must be 0",
			      shown(p, value));
	if (prefix.v6 && prefix.bits >= MAPPED_BITS &&
	    !memcmp(prefix.addr, mapped, MAPPED_BITS / 8))
		return refuse(p, value,
			      "'%s' is a range of IPv4: write it as one, such as 10.0.0.0/8",
			      shown(p, value));
	pool->gid_range = arena_strdup(p->out, value->string);
	memcpy(pool->gid_range_addr, prefix.addr, sizeof(prefix.addr));
	pool->gid_range_bits = prefix.bits;
	return 0;
}

int read_roce_version(struct parse *p, const struct item *value, const struct key *key, void *out)
{
	int r = want(p, value, ITEM_NUMBER);

	(void)key;
	if (r < 0)
		return r;
	if (!value->whole || (value->number != 1 && value->number != 2))
		return refuse(p, value, "must be 1 or 2");
	((struct pool_config *)out)->roce_version = (int)value->number;
	return 0;
}

/* The lower 15 bits are the partition, and partition 0 does not exist; the highest bit is full
 * membership. */
int read_pkey(struct parse *p, const struct item *value, const struct key *key, void *out)
{
	int r = want(p, value, ITEM_STRING);
	uint64_t pkey;

	(void)key;
	if (r < 0)
		return r;
	if (!str_starts(value->string, "0x") ||
	    str_to_u64(value->string, 16, UINT16_MAX, &pkey) < 0 || !(pkey & ~(uint64_t)PKEY_FULL))
		return refuse(
			p, value,
			"'%s' is not a P_Key; legal values: \"0x0001\" to \"0x7fff\", and with full membership \"0x8001\" to \"0xffff\"",
			shown(p, value));
	((struct pool_config *)out)->pkey = (int)pkey;
	return 0;
}

void finish_gid(struct parse *p, const struct item *object, struct pool_config *pool)
{
	enum gid_family family;

	if (!pool->gid_range)
		return;
	family = strchr(pool->gid_range, ':') ? GID_FAMILY_IPV6 : GID_FAMILY_IPV4;
	if (pool->gid_family != GID_FAMILY_ANY && pool->gid_family != family) {
		refuse(p, object, "gidRange '%s' has no %s address, and gidFamily asks for one",
		       document_shown(pool->gid_range, p->scratch),
		       pool->gid_family == GID_FAMILY_IPV4 ? "IPv4" : "IPv6");
		leave_out(p, "gidFamily");
	}
	pool->gid_family = family;
}
