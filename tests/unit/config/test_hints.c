#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "config/config.h"
#include "topo/topo.h"

static struct config *read_hints(const char *text)
{
	struct config *cfg = config_default();
	struct err err = { 0 };

	if (config_parse_hints(text, strlen(text), "h.json", cfg, NULL, &err) < 0)
		fail_msg("%s", err.msg);
	return cfg;
}

static void groups_are_read(void **state)
{
	struct config *cfg = read_hints(
		"{ \"groups\": [\n"
		"  { \"gpus\": [\"0001:00:00.0\", \"0002:00:00.0\"], \"nics\": [\"0101:00:00.0\"], \"numa\": 1 },\n"
		"  { \"GPUs\": [\"000A:00:00.0\"], \"nics\": [\"0106:00:02.0\"] } ],\n"
		"  \"linkSpeed\": 32, \"linkWidth\": 16 }\n");
	const struct topo_hints *h = cfg->hints;
	char text[BDF_STRLEN];

	(void)state;
	assert_string_equal(h->source, "h.json");
	assert_int_equal(h->n_groups, 2);
	assert_int_equal(h->groups[0].n_gpus, 2);
	assert_int_equal(h->groups[0].numa, 1);
	assert_string_equal(bdf_format(h->groups[1].gpus[0], text), "000a:00:00.0");
	assert_string_equal(bdf_format(h->groups[1].nics[0], text), "0106:00:02.0");
	assert_int_equal(h->groups[1].numa, -1);
	assert_int_equal(h->link_mts, 32000);
	assert_int_equal(h->link_width, 16);
	assert_int_equal(cfg->n_warnings, 0);
	config_free(cfg);
}

#define GROUP "{ \"gpus\": [\"0001:00:00.0\"], \"nics\": [\"0101:00:00.0\"] }"

static void an_unknown_key_warns_behind_the_configurations_warnings(void **state)
{
	struct config *cfg = read_hints("{ \"groups\": [ " GROUP " ],\n \"linkspeeds\": 3 }");

	(void)state;
	assert_int_equal(cfg->n_warnings, 1);
	assert_non_null(strstr(cfg->warnings[0], "h.json:2: "));
	assert_non_null(strstr(cfg->warnings[0], "linkSpeed"));
	assert_int_equal(cfg->hints->link_mts, 0);
	config_free(cfg);
}

static void what_is_wrong_is_refused_with_its_line(void **state)
{
	static const struct {
		const char *text, *where, *what;
	} rows[] = {
		{ "", "h.json", "" },
		{ "{", "h.json:1", "" },
		{ "[]", "h.json:1", "must be an object, not a list" },
		{ "{}", "h.json:1", "at least one group" },
		{ "{\"groups\": []}", "h.json:1", "at least one group" },
		{ "{\"groups\": {}}", "h.json:1", "must be a list" },
		{ "{\"groups\": [\n{}]}", "h.json:2", "at least one address in 'gpus'" },
		{ "{\"groups\": [\n{\"gpus\": [\"0001:00:00.0\"], \"nics\": []}]}", "h.json:2",
		  "one in 'nics'" },
		{ "{\"groups\": [\n{\"gpus\": [\n\"0001:00\"]}]}", "h.json:3",
		  "'0001:00' is not a PCI address" },
		{ "{\"groups\": [\n{\"gpus\": [\n7]}]}", "h.json:3",
		  "must be a string, not a number" },
		{ "{\"groups\": [\n{\"gpus\": [\"0001:00:00.0\",\n\"0001:00:00.0\"]}]}", "h.json:3",
		  "stands in line 2 already" },
		{ "{\"groups\": [" GROUP ",\n" GROUP "]}", "h.json:2", "stands in line 1 already" },
		{ "{\"groups\": [\n{\"gpus\": [\"0001:00:00.0\"],\n\"nics\": [\"0001:00:00.0\"]}]}",
		  "h.json:3", "stands in line 2 already" },
		{ "{\"groups\": [{\"numa\":\n-1}]}", "h.json:1", "from 0 to 4095" },
		{ "{\"groups\": [{\"numa\": 0.5}]}", "h.json:1", "whole number" },
		{ "{\"groups\": [" GROUP "],\n\"linkSpeed\": 24}", "h.json:2", "8, 16, 32 or 64" },
		{ "{\"groups\": [" GROUP "],\n\"linkSpeed\": 128}", "h.json:2", "from 8 to 64" },
		{ "{\"groups\": [" GROUP "],\n\"linkWidth\": 0}", "h.json:2", "from 1 to 32" },
		{ "{\"groups\": [" GROUP "],\n\"groups\": [" GROUP "]}", "h.json:2", "groups" },
		{ "{\"groups\": [{\"gpus\": [\"<&\\u0007\\\">\"]}]}", "h.json:1",
		  "is not a PCI address" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct config *cfg = config_default();
		struct err err = { 0 };

		assert_int_equal(config_parse_hints(rows[i].text, strlen(rows[i].text), "h.json",
						    cfg, NULL, &err),
				 -EINVAL);
		if (!str_starts(err.msg, rows[i].where) || !strstr(err.msg, rows[i].what))
			fail_msg("%s\n→ %s", rows[i].text, err.msg);
		assert_null(cfg->hints);
		config_free(cfg);
	}
}

static void too_much_is_refused(void **state)
{
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;
	struct config *cfg = config_default();
	struct err err = { 0 };

	(void)state;
	assert_int_equal(config_parse_hints("{}", HINTS_BYTES_MAX + 1, "h.json", cfg, NULL, &err),
			 -EINVAL);
	assert_non_null(strstr(err.msg, "bytes"));
	strbuf_puts(&text, "{\"groups\": [");
	for (int i = 0; i < 257; i++)
		strbuf_printf(&text, "%s{}", i ? "," : "");
	strbuf_puts(&text, "]}");
	assert_int_equal(config_parse_hints(strbuf_str(&text), text.len, "h.json", cfg, NULL, &err),
			 -EINVAL);
	assert_non_null(strstr(err.msg, "257 groups"));
	config_free(cfg);
}

static void addresses_have_a_limit(void **state)
{
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;
	struct config *cfg = config_default();
	struct err err = { 0 };

	(void)state;
	strbuf_puts(&text, "{\"groups\": [{\"gpus\": [");
	for (int i = 0; i < 4097; i++)
		strbuf_printf(&text, "%s\"%04x:00:00.0\"", i ? "," : "", i);
	strbuf_puts(&text, "]}]}");
	assert_int_equal(config_parse_hints(strbuf_str(&text), text.len, "h.json", cfg, NULL, &err),
			 -EINVAL);
	assert_non_null(strstr(err.msg, "more than 4096 addresses"));
	config_free(cfg);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(groups_are_read),
		cmocka_unit_test(an_unknown_key_warns_behind_the_configurations_warnings),
		cmocka_unit_test(what_is_wrong_is_refused_with_its_line),
		cmocka_unit_test(too_much_is_refused),
		cmocka_unit_test(addresses_have_a_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
