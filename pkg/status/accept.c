/* Which of the formats a scraper would rather have. */
#include <stdlib.h>
#include <string.h>

#include "status/status.h"

/* Of one range of an Accept header, "text/plain;version=0.0.4;q=0.5": thousandths of its q, which
 * is "0.5" and the like; anything else is 1000. */
static unsigned weight(const char *range, size_t len)
{
	unsigned w = 0, place = 100;

	for (const char *p = range; (p = memchr(p, ';', len - (size_t)(p - range)));) {
		p++;
		while (p < range + len && *p == ' ')
			p++;
		if (len - (size_t)(p - range) <= 2 || (*p != 'q' && *p != 'Q') || p[1] != '=')
			continue;
		if (p[2] != '0')
			return 1000;
		if (p[3] != '.')
			return 0;
		for (p += 4; *p >= '0' && *p <= '9'; p++, place /= 10)
			w += (unsigned)(*p - '0') * place;
		return w;
	}
	return 1000;
}

#define PROTOBUF_TYPE "application/vnd.google.protobuf"
#define PROTOBUF_ARGS "proto=io.prometheus.client.MetricFamily", "encoding=delimited"

const char *const status_content_types[STATUS_FORMATS] = {
	[STATUS_TEXT] = "text/plain; version=0.0.4; charset=utf-8",
	[STATUS_OPENMETRICS] = "application/openmetrics-text; version=1.0.0; charset=utf-8",
	[STATUS_PROTOBUF] =
		PROTOBUF_TYPE "; proto=io.prometheus.client.MetricFamily; encoding=delimited",
};

static bool has_argument(const char *range, size_t len, const char *argument)
{
	size_t n = strlen(argument);

	for (const char *p = range; (p = memchr(p, ';', len - (size_t)(p - range)));) {
		for (p++; p < range + len && *p == ' ';)
			p++;
		if (len - (size_t)(p - range) >= n && !strncasecmp(p, argument, n) &&
		    (p + n == range + len || strchr("; ", p[n])))
			return true;
	}
	return false;
}

static bool is_format(const char *range, size_t len, enum status_format format)
{
	static const struct {
		const char *type;
		const char *arguments[2];
	} formats[STATUS_FORMATS] = {
		[STATUS_TEXT] = { "text/plain", { NULL, NULL } },
		[STATUS_OPENMETRICS] = { "application/openmetrics-text", { NULL, NULL } },
		[STATUS_PROTOBUF] = { PROTOBUF_TYPE, { PROTOBUF_ARGS } },
	};
	const char *type = formats[format].type;
	size_t n = strlen(type);

	if (len < n || strncasecmp(range, type, n) || (len > n && !strchr("; ", range[n])))
		return false;
	for (int i = 0; i < 2; i++) {
		const char *argument = formats[format].arguments[i];

		if (argument && !has_argument(range, len, argument))
			return false;
	}
	return true;
}

enum status_format status_accepted(const char *accept)
{
	enum status_format best = STATUS_TEXT;
	unsigned weights[STATUS_FORMATS] = { 0 };

	while (*accept) {
		size_t len = strcspn(accept += strspn(accept, " ,\t"), ",");
		unsigned w = weight(accept, len);

		for (int f = 0; f < STATUS_FORMATS; f++) {
			if (is_format(accept, len, (enum status_format)f) && w > weights[f])
				weights[f] = w;
		}
		accept += len;
	}
	for (int f = STATUS_OPENMETRICS; f < STATUS_FORMATS; f++) {
		if (weights[f] && weights[f] >= weights[best])
			best = (enum status_format)f;
	}
	return best;
}
