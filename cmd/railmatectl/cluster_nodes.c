/* Names of nodes: their order, and many in short: gpu-[001-016]. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "cluster.h"

#define DIGITS_MAX 9

int cluster_node_cmp(const char *a, const char *b)
{
	int r = strverscmp(a, b);

	return r ? r : strcmp(a, b);
}

/* A name as a number in its middle; of its first label, as "ip-10-0-1-23.ec2.internal" has its
 * number there. */
struct numbered {
	size_t begin, end; /* of the digits; equal: it has none that counts */
	unsigned long number;
};

static struct numbered parse(const char *name)
{
	struct numbered n = { .end = strcspn(name, ".") };

	while (n.end && !isdigit((unsigned char)name[n.end - 1]))
		n.end--;
	n.begin = n.end;
	while (n.begin && isdigit((unsigned char)name[n.begin - 1]))
		n.begin--;
	if (n.end - n.begin > DIGITS_MAX)
		n.begin = n.end;
	if (n.begin < n.end)
		n.number = strtoul(name + n.begin, NULL, 10);
	return n;
}

static bool is_padded(const char *name, struct numbered n)
{
	return n.end - n.begin > 1 && name[n.begin] == '0';
}

/* The same name but for the number, and the numbers are written alike: 08 is as long as 10, 8 is
 * not. */
static bool same_but_number(const char *a, struct numbered x, const char *b, struct numbered y)
{
	bool padded = is_padded(a, x) || is_padded(b, y);

	return x.begin < x.end && y.begin < y.end && x.begin == y.begin &&
	       !strncmp(a, b, x.begin) && str_eq(a + x.end, b + y.end) &&
	       (!padded || x.end - x.begin == y.end - y.begin);
}

void cluster_put_nodes(const char *const *nodes, size_t n, size_t parts, struct strbuf *out)
{
	for (size_t i = 0, last, part = 0; i < n; i = last + 1, part++) {
		struct numbered first = parse(nodes[i]);

		if (part == parts) {
			strbuf_printf(out, " and %zu more", n - i);
			return;
		}
		for (last = i; last + 1 < n && same_but_number(nodes[i], first, nodes[last + 1],
							       parse(nodes[last + 1]));
		     last++)
			;
		strbuf_puts(out, part ? ", " : "");
		if (last == i) {
			strbuf_puts(out, nodes[i]);
			continue;
		}
		strbuf_printf(out, "%.*s[", (int)first.begin, nodes[i]);
		/* "001-016,020": from i to last they are the same but for the number. */
		for (size_t k = i, end; k <= last; k = end + 1) {
			struct numbered x = parse(nodes[k]), y = x;

			for (end = k; end < last && parse(nodes[end + 1]).number == y.number + 1;
			     end++)
				y = parse(nodes[end + 1]);
			strbuf_printf(out, "%s%.*s", k == i ? "" : ",", (int)(x.end - x.begin),
				      nodes[k] + x.begin);
			if (end > k)
				strbuf_printf(out, "-%.*s", (int)(y.end - y.begin),
					      nodes[end] + y.begin);
		}
		strbuf_printf(out, "]%s", nodes[i] + first.end);
	}
}
