/* Everything that is refused, with the sentence the operator reads. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "config/config.h"

struct row {
	const char *text, *sentence;
};

static void refused_bytes(const char *text, size_t len, const char *prefix, const char *sentence)
{
	struct config *untouched = (struct config *)&untouched, *cfg = untouched;
	struct err err = { 0 };

	assert_int_equal(config_parse(text, len, "config.json", prefix, &cfg, NULL, &err), -EINVAL);
	assert_string_equal(err.msg, sentence);
	assert_int_equal(err.code, EINVAL);
	assert_ptr_equal(cfg, untouched);
}

static void refused(const char *text, const char *sentence)
{
	refused_bytes(text, strlen(text), "intel.com", sentence);
}

static void all_refused(const struct row *rows, size_t n)
{
	for (size_t i = 0; i < n; i++)
		refused(rows[i].text, rows[i].sentence);
}

/* Rows of members of a pool on line 2; sentences behind "config.json:2: resourceList[0]". */
static void all_refused_in_pool(const struct row *rows, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		_cleanup_free_ char *text = xasprintf(
			"{\"resourceList\": [{\"resourceName\": \"vf\",\n%s}]}", rows[i].text);
		_cleanup_free_ char *sentence =
			xasprintf("config.json:2: resourceList[0]%s", rows[i].sentence);

		refused(text, sentence);
	}
}

/* So many pools are served, and the sentence says what is not. */
static void served_without(const char *text, size_t n_pools, const char *sentence)
{
	struct config *cfg = NULL;
	struct err err = { 0 };

	if (config_parse(text, strlen(text), "config.json", "intel.com", &cfg, NULL, &err) < 0)
		fail_msg("%s", err.msg);
	assert_int_equal(cfg->n_pools, n_pools);
	assert_int_equal(cfg->n_errors, 1);
	assert_string_equal(cfg->errors[0], sentence);
	config_free(cfg);
}

/* With the variables of one, those of the other would be hidden. */
static void names_that_differ_as_names_only(void **state)
{
	static const struct {
		const char *a, *b; /* prefix|name */
		bool differ;
	} rows[] = {
		{ "rdma|sriov_a", "rdma|Sriov-A", false }, { "rdma|vf", "rdma|VF", false },
		{ "rdma|vf-1", "rdma|vf_1", false },	   { "a.b|vf", "a-b|vf", false },
		{ "rdma|vf-x", "rdma-vf|x", false },	   { "rdma|vf", "rdma|vf2", true },
		{ "rdma|vf-1", "rdma|vf1", true },	   { "rdma|vf", "rdma|vf_x", true },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		_cleanup_free_ char *a = xasprintf("%s", rows[i].a),
				    *b = xasprintf("%s", rows[i].b);
		_cleanup_free_ char *text = NULL, *sentence = NULL;
		char *a_name = strchr(a, '|') + 1, *b_name = strchr(b, '|') + 1;

		a_name[-1] = b_name[-1] = '\0';
		text = xasprintf(
			"{\"resourceList\": [{\"resourcePrefix\": \"%s\", \"resourceName\": \"%s\"},\n"
			"{\"resourcePrefix\": \"%s\", \"resourceName\": \"%s\"}]}",
			a, a_name, b, b_name);
		if (rows[i].differ) {
			struct config *cfg = NULL;

			assert_int_equal(config_parse(text, strlen(text), "config.json", NULL, &cfg,
						      NULL, NULL),
					 0);
			assert_int_equal(cfg->n_errors, 0);
			config_free(cfg);
			continue;
		}
		sentence = xasprintf(
			"config.json:2: resourceList[1].resourceName: '%s/%s' and '%s/%s' would have the same variables in a container: names must differ in more than case, '-', '_', '.' and '/'; the pool is left out",
			b, b_name, a, a_name);
		served_without(text, 1, sentence);
	}
}

/* It would have every device of the node, also PFs. */
static void a_pool_whose_selectors_are_misspelt(void **state)
{
	static const char *const keys[] = { "selector",	    "Selector",	  "slectors",
					    "selektors",    "selectorss", "deviceSelectors",
					    "selectorList", "select",	  "filters",
					    "match" };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		_cleanup_free_ char *text = xasprintf(
			"{\"resourceList\": [{\"resourceName\": \"vf\",\n\"%s\": {\"isRdma\": true}}]}",
			keys[i]);
		_cleanup_free_ char *with = xasprintf(
			"{\"resourceList\": [{\"resourceName\": \"vf\", \"selectors\": {},\n\"%s\": {\"isRdma\": true}}]}",
			keys[i]);
		_cleanup_free_ char *sentence = xasprintf(
			"config.json:2: resourceList[0].%s: is not a key, and a pool without 'selectors' has every device of the node; did you mean 'selectors'?",
			keys[i]);
		struct config *cfg = NULL;

		refused(text, sentence);
		assert_int_equal(
			config_parse(with, strlen(with), "config.json", NULL, &cfg, NULL, NULL), 0);
		assert_int_equal(cfg->n_warnings, 1);
		config_free(cfg);
	}
}

static void text_that_is_not_json(void **state)
{
	static const struct row rows[] = {
		{ "", "config.json:1: is empty" },
		{ "\n\n", "config.json:3: is not JSON ('[' or '{' expected near end of file)" },
		{ "resourceList: []",
		  "config.json:1: is not JSON ('[' or '{' expected near 'resourceList')" },
		{ "{\n\"resourceList\": [}",
		  "config.json:2: is not JSON (unexpected token near '}')" },
		{ "{\"a\\\n", "config.json:2: is not JSON (invalid escape near '\"a\\?')" },
		{ "{} x", "config.json:1: is not JSON (end of file expected near 'x')" },
		{ "{\"a\": 1,\n\"a\": 2}",
		  "config.json:2: a key stands twice in one object (duplicate object key near '\"a\"')" },
		{ "{\n\"\xff\": 1}",
		  "config.json:2: is not UTF-8 text (unable to decode byte 0xff near '\"')" },
		{ "[\"\\u0000\"]",
		  "config.json:1: holds a NUL character (\\u0000 is not allowed without JSON_ALLOW_NUL near '\"\\u0000\"')" },
		{ "{\"\\u0000\": 1}",
		  "config.json:1: holds a NUL character in a key (NUL byte in object key not supported near '\"\\u0000\"')" },
		{ "[99999999999999999999]",
		  "config.json:1: holds a number that is too large (too big integer near '99999999999999999999')" },
	};

	(void)state;
	all_refused(rows, ARRAY_LEN(rows));
	refused_bytes("{\0}", 3, "x",
		      "config.json:1: is not JSON (string or '}' expected near end of file)");
	refused_bytes("{} \0", 4, "x",
		      "config.json:1: is not JSON (end of file expected near end of file)");
	refused_bytes("{\"a\0b\": 1}", 10, "x",
		      "config.json:1: is not JSON (control character 0x0 near '\"a')");
}

/* What the rest of a refused file is told: lines. */
static void also(const char *text, const char *sentence, const char *rest)
{
	_cleanup_strbuf_ struct strbuf told = STRBUF_INIT;
	struct config *cfg = NULL;
	struct err err = { 0 };

	assert_int_equal(config_parse(text, strlen(text), "c", "rdma", &cfg, &told, &err), -EINVAL);
	assert_string_equal(err.msg, sentence);
	assert_string_equal(strbuf_str(&told), rest);
}

static void everything_that_is_wrong_is_told_at_once(void **state)
{
	(void)state;
	also("{\"resourceLists\": []}",
	     "c:1: nothing to serve: 'resourceList' must list at least one pool",
	     "c:1: unknown key 'resourceLists' is ignored; did you mean 'resourceList'?\n");
	also("{\"resourceList\": [{\n\"resourceNme\": \"vf\"}]}",
	     "c:1: resourceList[0]: has no resourceName",
	     "c:2: resourceList[0]: unknown key 'resourceNme' is ignored; did you mean 'resourceName'?\n");
	also("{\"resourceList\": [{\"resourceName\": \"a b\",\n\"excludeTopology\": 1,\n"
	     "\"selectors\": {\"vendors\": [\"0x15b3\", \"15b3\", 7],\n\"isRdma\": 1}}]}",
	     "c:1: resourceList[0].resourceName: resource name 'a b' must be 1 to 63 of a-z, A-Z, 0-9, '-' and '_'",
	     "c:2: resourceList[0].excludeTopology: must be true or false, not a number\n"
	     "c:3: resourceList[0].selectors.vendors[2]: must be a string, not a number\n"
	     "c:4: resourceList[0].selectors.isRdma: must be true or false, not a number\n"
	     "c:3: resourceList[0].selectors.vendors[0]: '0x15b3' is not a PCI vendor id: four hexadecimal digits without 0x, such as 15b3\n");
	also("{\"resourceList\": [{\"resourceName\": \"-\"},\n{\"resourceName\": \"-b\"}],\n"
	     "\"x\": 1}",
	     "c:1: resourceList[0].resourceName: resource name '-' must begin and end with a letter or digit, or the kubelet refuses it; none of the 1 other pools can be served either",
	     "c:2: resourceList[1].resourceName: resource name '-b' must begin and end with a letter or digit, or the kubelet refuses it; the pool is left out\n"
	     "c:3: unknown key 'x' is ignored; known keys: resourceList, railmate\n");
	also("{\"resourceList\": 7, \"y\": 1}", "c:1: resourceList: must be a list, not a number",
	     "c:1: unknown key 'y' is ignored; known keys: resourceList, railmate\n");
}

/* The reason of a pool comes before what else is wrong with it; other pools are served. */
static void a_pool_that_is_left_out_has_all_its_errors(void **state)
{
	static const char text[] = "{\"resourceList\": [{\"resourceName\": \"a\"},\n"
				   "{\"resourceName\": 1, \"selectors\": {\"pKeys\": [1]}}]}";
	struct config *cfg = NULL;

	(void)state;
	assert_int_equal(config_parse(text, strlen(text), "c", "rdma", &cfg, NULL, NULL), 0);
	assert_int_equal(cfg->n_pools, 1);
	assert_int_equal(cfg->n_errors, 2);
	assert_string_equal(
		cfg->errors[0],
		"c:2: resourceList[1].resourceName: must be a string, not a number; the pool is left out");
	assert_string_equal(
		cfg->errors[1],
		"c:2: resourceList[1].selectors.pKeys[0]: must be a string, not a number");
	config_free(cfg);
}

/* A list that is nothing but errors costs no more than a few. */
static void no_more_errors_are_read_than_are_told(void **state)
{
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT, told = STRBUF_INIT;
	struct config *cfg = NULL;
	struct err err = { 0 };
	size_t lines = 0;

	(void)state;
	strbuf_puts(
		&text,
		"{\"resourceList\": [{\"resourceName\": \"a\", \"selectors\": {\"vendors\": [1");
	for (size_t i = 0; i < 50000; i++)
		strbuf_puts(&text, ",1");
	strbuf_puts(&text, "]}}]}");
	assert_int_equal(config_parse(strbuf_str(&text), text.len, "c", "rdma", &cfg, &told, &err),
			 -EINVAL);
	for (const char *s = strbuf_str(&told); *s; s++)
		lines += *s == '\n';
	assert_in_range(lines, 60, 70);
}

static void deep_nesting(void **state)
{
	static char text[50000];

	(void)state;
	memset(text, '[', sizeof(text));
	refused_bytes(
		text, sizeof(text), "x",
		"config.json:1: is nested too deeply (maximum parsing depth reached near '[')");
}

static void ten_megabytes_unread(void **state)
{
	const size_t len = 10u << 20;
	_cleanup_free_ char *text = xcalloc(len, 1);

	(void)state;
	refused_bytes(text, len, "x", "config.json: has 10485760 bytes; 4194304 are read at most");
}

static void as_many_values_as_fit(void **state)
{
	const size_t len = CONFIG_BYTES_MAX;
	_cleanup_free_ char *text = xcalloc(len, 1);

	(void)state;
	for (size_t i = 0; i < len; i++)
		text[i] = i % 2 ? '0' : ',';
	memcpy(text, "{\"resourceList\":[", 17);
	memcpy(text + len - 2, "]}", 2);
	text[17] = '0';
	text[18] = ',';
	refused_bytes(text, len, "x", "config.json:1: holds more than 55188 values");
}

static void too_many_pools(void **state)
{
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;

	(void)state;
	strbuf_puts(&text, "{\"resourceList\":[0");
	for (int i = 1; i < 2000; i++)
		strbuf_puts(&text, ",0");
	strbuf_puts(&text, "]}");
	refused_bytes(text.s, text.len, "x",
		      "config.json:1: resourceList: has 2000 pools; at most 1024 are served");
}

static void nothing_to_serve(void **state)
{
	static const struct row rows[] = {
		{ "{}",
		  "config.json:1: nothing to serve: 'resourceList' must list at least one pool" },
		{ "\n{\"resourceList\": null}",
		  "config.json:2: nothing to serve: 'resourceList' must list at least one pool" },
		{ "{\"resourceList\": []}",
		  "config.json:1: nothing to serve: 'resourceList' must list at least one pool" },
	};

	(void)state;
	all_refused(rows, ARRAY_LEN(rows));
}

static void wrong_types(void **state)
{
	static const struct row documents[] = {
		{ "[]", "config.json:1: must be an object, not a list" },
		{ "{\"resourceList\": {}}",
		  "config.json:1: resourceList: must be a list, not an object" },
		{ "{\"resourceList\": [\nnull]}",
		  "config.json:2: resourceList[0]: must be an object, not null" },
		{ "{\"resourceList\": [{\"resourceName\":\n\n7}]}",
		  "config.json:1: resourceList[0].resourceName: must be a string, not a number" },
	};
	static const struct row pools[] = {
		{ "\"resourcePrefix\": []", ".resourcePrefix: must be a string, not a list" },
		{ "\"deviceType\": 1.5", ".deviceType: must be a string, not a number" },
		{ "\"excludeTopology\": \"yes\"",
		  ".excludeTopology: must be true or false, not a string" },
		{ "\"additionalInfo\": []", ".additionalInfo: must be an object, not a list" },
		{ "\"additionalInfo\": {\"*\": 1}",
		  ".additionalInfo.*: must be an object, not a number" },
		{ "\"additionalInfo\": {\"*\": {\"k\": 1}}",
		  ".additionalInfo.*.k: must be a string, not a number" },
		{ "\"railmate\": []", ".railmate: must be an object, not a list" },
		{ "\"selectors\": \"all\"",
		  ".selectors: must be an object or a list of objects, not a string" },
		{ "\"selectors\": [1]", ".selectors[0]: must be an object, not a number" },
		{ "\"selectors\": [{}, null]", ".selectors[1]: must be an object, not null" },
		{ "\"selectors\": {\"vendors\": \"15b3\"}",
		  ".selectors.vendors: must be a list, not a string" },
		{ "\"selectors\": {\"vendors\": [5555]}",
		  ".selectors.vendors[0]: must be a string, not a number" },
		{ "\"selectors\": {\"drivers\": [null]}",
		  ".selectors.drivers[0]: must be a string, not null" },
		{ "\"selectors\": {\"pciAddresses\": [1]}",
		  ".selectors.pciAddresses[0]: must be a string, not a number" },
		{ "\"selectors\": {\"acpiIndexes\": [1]}",
		  ".selectors.acpiIndexes[0]: must be a string, not a number" },
		{ "\"selectors\": {\"pfNames\": [{}]}",
		  ".selectors.pfNames[0]: must be a string, not an object" },
		{ "\"selectors\": {\"linkTypes\": [true]}",
		  ".selectors.linkTypes[0]: must be a string, not true or false" },
		{ "\"selectors\": {\"isRdma\": \"true\"}",
		  ".selectors.isRdma: must be true or false, not a string" },
	};

	(void)state;
	all_refused(documents, ARRAY_LEN(documents));
	all_refused_in_pool(pools, ARRAY_LEN(pools));
}

static void a_pool_of_aux_devices_is_not_told_that_it_is_none(void **state)
{
	static const char text[] =
		"{\"resourceList\": [{\"resourceName\": \"a\"}, {\"resourceName\": \"sf\","
		" \"selectors\": [{\"auxTypes\": [\"sf\"]}], \"deviceType\": \"auxNetDevice\"}]}";
	struct config *cfg = NULL;

	(void)state;
	assert_int_equal(config_parse(text, strlen(text), "c", NULL, &cfg, NULL, NULL), 0);
	assert_int_equal(cfg->n_errors, 1);
	assert_int_equal(cfg->n_warnings, 0);
	config_free(cfg);
}

static void bad_values(void **state)
{
	static const struct row rows[] = {
		{ "\"deviceType\": \"accelerator\"",
		  ".deviceType: 'accelerator' is not served by railmate; legal values: netDevice" },
		{ "\"deviceType\": \"auxNetDevice\"",
		  ".deviceType: 'auxNetDevice' is not served by railmate; legal values: netDevice" },
		{ "\"deviceType\": \"netdevice\"",
		  ".deviceType: 'netdevice' is not legal; legal values: netDevice" },
		{ "\"selectors\": []",
		  ".selectors: is an empty list, which selects nothing; leave it out to select every device" },
		{ "\"selectors\": {\"isRdmaa\": true}",
		  ".selectors: without the unknown key 'isRdmaa' it selects every device; {} does that, if it is meant" },
		{ "\"selectors\": [{\"isRdma\": true}, {\"pfName\": [\"eth0\"], \"vendors\": [], \"isRdma\": false}]",
		  ".selectors[1]: without the unknown key 'pfName' it selects every device; {} does that, if it is meant" },
		{ "\"selectors\": {\"vendors\": [\"15b3\", \"0x15b3\"]}",
		  ".selectors.vendors[1]: '0x15b3' is not a PCI vendor id: four hexadecimal digits without 0x, such as 15b3" },
		{ "\"selectors\": {\"pKeys\": [\"8001\"]}",
		  ".selectors.pKeys[0]: '8001' is not a P_Key; it looks like 0x8001" },
		{ "\"selectors\": {\"devices\": [\"101\"]}",
		  ".selectors.devices[0]: '101' is not a PCI device id: four hexadecimal digits without 0x, such as 15b3" },
		{ "\"selectors\": {\"devices\": [\"0x1e\"]}",
		  ".selectors.devices[0]: '0x1e' is not a PCI device id: four hexadecimal digits without 0x, such as 15b3" },
		{ "\"selectors\": {\"drivers\": [\"\"]}",
		  ".selectors.drivers[0]: is an empty string" },
		{ "\"selectors\": {\"pciAddresses\": [\"3b:00.2\"]}",
		  ".selectors.pciAddresses[0]: '3b:00.2' is not a PCI address; it looks like 0000:3b:00.2" },
		{ "\"selectors\": {\"acpiIndexes\": [\"-1\"]}",
		  ".selectors.acpiIndexes[0]: '-1' is not an acpi_index; it is a decimal number in a string, such as \"101\"" },
		{ "\"selectors\": {\"pfNames\": [\"#0-7\"]}",
		  ".selectors.pfNames[0]: '#0-7' names no PF" },
		{ "\"selectors\": {\"rootDevices\": [\"ens1f0\"]}",
		  ".selectors.rootDevices[0]: 'ens1f0' is not a PCI address of a PF; it looks like 0000:3b:00.0 or 0000:3b:00.0#0-7" },
		{ "\"selectors\": {\"linkTypes\": [\"ether\", \"roce\"]}",
		  ".selectors.linkTypes[1]: 'roce' is not legal; legal values: ether, infiniband" },
	};

	(void)state;
	all_refused_in_pool(rows, ARRAY_LEN(rows));
}

static void bad_ranges(void **state)
{
	static const char *const ranges[] = { "7-2", "a",     "",   ",",  "1,",	 "-1",
					      "1-",  "1-2-3", " 1", "1 ", "0x1", "65536",
					      "0-a", "1#2",   "+1", "1;2" };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(ranges); i++) {
		_cleanup_free_ char *members =
			xasprintf("\"selectors\": {\"pfNames\": [\"ens1f0#%s\"]}", ranges[i]);
		_cleanup_free_ char *sentence = xasprintf(
			".selectors.pfNames[0]: 'ens1f0#%s' has a bad range: behind '#' stand VF indexes from 0 to 65535 and ascending ranges, such as 'ens1f0#0,2-7'",
			ranges[i]);
		struct row row = { members, sentence };

		all_refused_in_pool(&row, 1);
	}
}

static void selectors_that_would_change_the_pod(void **state)
{
	static const char *const members[][2] = {
		{ "vdpaType", "\"vhost\"" },
		{ "ddpProfiles", "[\"GTPv1-C/U IPv4/IPv6 payload\"]" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(members); i++) {
		_cleanup_free_ char *text =
			xasprintf("\"selectors\": {\"%s\": %s}", members[i][0], members[i][1]);
		_cleanup_free_ char *sentence = xasprintf(
			".selectors.%s: %s is not supported: railmate serves RDMA VFs of network cards (netDevice)",
			members[i][0], members[i][0]);
		struct row row = { text, sentence };

		all_refused_in_pool(&row, 1);
	}
}

static void illegal_names(void **state)
{
	static const struct row names[] = {
		{ "", "must be 1 to 63 of a-z, A-Z, 0-9, '-' and '_'" },
		{ "a/b", "must be 1 to 63 of a-z, A-Z, 0-9, '-' and '_'" },
		{ "a.b", "must be 1 to 63 of a-z, A-Z, 0-9, '-' and '_'" },
		{ "ü", "must be 1 to 63 of a-z, A-Z, 0-9, '-' and '_'" },
		{ "-a", "must begin and end with a letter or digit, or the kubelet refuses it" },
		{ "a_", "must begin and end with a letter or digit, or the kubelet refuses it" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		_cleanup_free_ char *text = xasprintf(
			"{\"resourceList\": [{\n\"resourceName\": \"%s\"}]}", names[i].text);
		_cleanup_free_ char *sentence = xasprintf(
			"config.json:2: resourceList[0].resourceName: resource name '%s' %s",
			names[i].text, names[i].sentence);

		refused(text, sentence);
	}
	refused("{\"resourceList\": [{\"resourceName\": \"1234567890123456789012345678901234567890123456789012345678901234\"}]}",
		"config.json:1: resourceList[0].resourceName: resource name '123456789012345678901234567890123456789012345678901234567890...' must be 1 to 63 of a-z, A-Z, 0-9, '-' and '_'");
	refused("{\"resourceList\": [\n{\"resourcePrefix\": \"a.b\"}]}",
		"config.json:2: resourceList[0]: has no resourceName");
}

static void illegal_prefixes(void **state)
{
	static const char dns[] =
		"must be a DNS subdomain: lower-case letters, digits, inner '-' and '.', at most "
		"244 characters";
	static const struct row prefixes[] = {
		{ "Nvidia.com", dns },
		{ "a_b", dns },
		{ ".a", dns },
		{ "a.", dns },
		{ "a..b", dns },
		{ "-a", dns },
		{ "a-.b", dns },
		{ "a/b", dns },
		{ "kubernetes.io", "lies in kubernetes.io, which the kubelet refuses" },
		{ "net.kubernetes.io", "lies in kubernetes.io, which the kubelet refuses" },
		{ "requests.a", "begins with 'requests.', which the kubelet refuses" },
	};
	static const char text[] = "{\"resourceList\": [\n\n{\"resourceName\": \"a\"}]}";

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(prefixes); i++) {
		_cleanup_free_ char *member =
			xasprintf("\"resourcePrefix\": \"%s\"", prefixes[i].text);
		_cleanup_free_ char *sentence =
			xasprintf(".resourcePrefix: resource prefix '%s' %s", prefixes[i].text,
				  prefixes[i].sentence);
		struct row row = { member, sentence };

		all_refused_in_pool(&row, 1);
	}
	refused_bytes(
		text, strlen(text), "K8s",
		"config.json:3: resourceList[0]: the default resource prefix 'K8s' (of the command line) must be a DNS subdomain: lower-case letters, digits, inner '-' and '.', at most 244 characters");
}

static void a_long_prefix(void **state)
{
	char prefix[246];
	struct config *cfg = NULL;
	struct err err = { 0 };
	static const char text[] = "{\"resourceList\": [{\"resourceName\": \"a\"}]}";

	(void)state;
	memset(prefix, 'a', 245);
	prefix[245] = '\0';
	assert_int_equal(config_parse(text, strlen(text), "c", prefix, &cfg, NULL, &err), -EINVAL);
	assert_int_equal(config_parse(text, strlen(text), "c", prefix + 1, &cfg, NULL, &err), 0);
	config_free(cfg);
}

static void duplicates(void **state)
{
	static const struct row rows[] = {
		{ "{\"resourceList\": [{\"resourceName\": \"a\",\n\"selectors\": {\"isRdma\": true,\n\"IsRdma\": true}}]}",
		  "config.json:3: resourceList[0].selectors.IsRdma: repeats the key 'isRdma' of line 2 (case does not count)" },
		{ "{\"resourceList\": null, \"ResourceList\": []}",
		  "config.json:1: ResourceList: repeats the key 'resourceList' of line 1 (case does not count)" },
	};

	(void)state;
	all_refused(rows, ARRAY_LEN(rows));
}

static void a_pool_that_cannot_be_served_leaves_the_others(void **state)
{
	static const struct row rows[] = {
		{ "{\"resourceName\": \"x\", \"deviceType\": \"accelerator\"}",
		  ".deviceType: 'accelerator' is not served by railmate; legal values: netDevice" },
		{ "{\"resourceName\": \"x\", \"selectors\": {\"vdpaType\": \"vhost\"}}",
		  ".selectors.vdpaType: vdpaType is not supported: railmate serves RDMA VFs of network cards (netDevice)" },
		{ "{\"resourceName\": \"x\", \"selectors\": {\"vendors\": [\"0x15b3\"]}}",
		  ".selectors.vendors[0]: '0x15b3' is not a PCI vendor id: four hexadecimal digits without 0x, such as 15b3" },
		{ "{\"resourceName\": \"x y\"}",
		  ".resourceName: resource name 'x y' must be 1 to 63 of a-z, A-Z, 0-9, '-' and '_'" },
		{ "{\"resourceName\": \"a\"}",
		  ".resourceName: 'intel.com/a' is the resource of line 1 already: names must differ" },
		{ "null", ": must be an object, not null" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		_cleanup_free_ char *text = xasprintf(
			"{\"resourceList\": [{\"resourceName\": \"a\"},\n%s,\n{\"resourceName\": \"b\"}]}",
			rows[i].text);
		_cleanup_free_ char *sentence = xasprintf(
			"config.json:2: resourceList[1]%s; the pool is left out", rows[i].sentence);

		served_without(text, 2, sentence);
	}
	served_without(
		"{\"resourceList\": [{\"resourceName\": \"a\"}], \"railmate\": 7}", 1,
		"config.json:1: railmate: must be an object, not a number; the key is left out");
}

static void no_pool_that_can_be_served(void **state)
{
	(void)state;
	refused("{\"resourceList\": [null, {\"resourceName\": \"a b\"}, {}]}",
		"config.json:1: resourceList[0]: must be an object, not null; none of the 2 other pools can be served either");
}

static void wrong_keys_of_ours(void **state)
{
	static const struct row pools[] = {
		{ "\"railmate\": {\"gid\": 3}", ".railmate.gid: must be a string, not a number" },
		{ "\"railmate\": {\"gid\": \"fixed:256\"}",
		  ".railmate.gid: 'fixed:256' is not legal; legal values: auto, off, fixed:0 to fixed:255" },
		{ "\"railmate\": {\"gid\": \"fixed:\"}",
		  ".railmate.gid: 'fixed:' is not legal; legal values: auto, off, fixed:0 to fixed:255" },
		{ "\"railmate\": {\"network\": \"bridge\"}",
		  ".railmate.network: 'bridge' is not legal; legal values: pod, host" },
		{ "\"railmate\": {\"health\": {\"flaps\": 31}}",
		  ".railmate.health.flaps: must be a whole number from 1 to 30" },
		{ "\"railmate\": {\"health\": {\"window\": 1.5}}",
		  ".railmate.health.window: must be a whole number from 60 to 86400" },
		{ "\"railmate\": {\"health\": {\"errorsPerMinute\": \"10\"}}",
		  ".railmate.health.errorsPerMinute: must be a whole number from 1 to 1000000000" },
		{ "\"railmate\": {\"health\": {\"unhealthy\": [\"flaps\", \"heat\"]}}",
		  ".railmate.health.unhealthy[1]: 'heat' is not legal; legal values: flaps, errors, slow" },
		{ "\"railmate\": {\"strict\": \"yes\"}",
		  ".railmate.strict: must be true or false, not a string" },
		{ "\"railmate\": {\"binding\": true}",
		  ".railmate.binding: must be a string, not true or false" },
		{ "\"railmate\": {\"binding\": \"never\"}",
		  ".railmate.binding: 'never' is not legal; legal values: early, late, auto" },
	};
	static const struct row gpus[] = {
		{ "{\"gpus\": []}",
		  ".gpus: is an empty list; leave it out for the built-in table" },
		{ "{\"rails\": []}", ".rails: must be an object, not a list" },
		{ "{\"rails\": {\"ens1f0\": -1}}",
		  ".rails.ens1f0: must be a whole number from 0 to 1023" },
		{ "{\"rails\": {\"ens1f0\": 1024}}",
		  ".rails.ens1f0: must be a whole number from 0 to 1023" },
		{ "{\"rails\": {\"ens1f0\": \"0\"}}",
		  ".rails.ens1f0: must be a whole number from 0 to 1023" },
		{ "{\"rails\": {\"ens1f0\": {\"rail\": 1024, \"plane\": 0}}}",
		  ".rails.ens1f0.rail: must be a whole number from 0 to 1023" },
		{ "{\"rails\": {\"ens1f0\": {\"rail\": 3, \"plane\": 1024}}}",
		  ".rails.ens1f0.plane: must be a whole number from 0 to 1023" },
		{ "{\"rails\": {\"ens1f0\": {\"rail\": 3, \"plane\": 0.5}}}",
		  ".rails.ens1f0.plane: must be a whole number from 0 to 1023" },
		{ "{\"rails\": {\"ens1f0\": {\"plane\": 1}}}",
		  ".rails.ens1f0: names no rail: {\"rail\": 3, \"plane\": 1}" },
		{ "{\"rails\": {\"ens1f0\": [3, 1]}}",
		  ".rails.ens1f0: must be a whole number from 0 to 1023" },
		{ "{\"gpus\": {}}", ".gpus: must be a list, not an object" },
		{ "{\"gpus\": [{\"vendor\": \"10de\"}]}",
		  ".gpus[0]: needs vendor (\"10de\"), classes ([\"0300\", \"0302\"]) and name (\"NVIDIA\")" },
		{ "{\"gpus\": [{\"vendor\": \"NVIDIA\"}]}",
		  ".gpus[0].vendor: 'NVIDIA' is not a PCI vendor: four hexadecimal digits without 0x, such as 15b3" },
		{ "{\"gpus\": [{\"classes\": [\"030000\"]}]}",
		  ".gpus[0].classes[0]: '030000' is not a PCI class: four hexadecimal digits without 0x, such as 15b3" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(pools); i++) {
		_cleanup_free_ char *text = xasprintf(
			"{\"resourceList\": [{\"resourceName\": \"vf\",\n%s}]}", pools[i].text);
		_cleanup_free_ char *sentence = xasprintf(
			"config.json:2: resourceList[0]%s; the key is left out", pools[i].sentence);

		served_without(text, 1, sentence);
	}
	for (size_t i = 0; i < ARRAY_LEN(gpus); i++) {
		_cleanup_free_ char *text = xasprintf(
			"{\"resourceList\": [{\"resourceName\": \"a\"}],\n\"railmate\": %s}",
			gpus[i].text);
		_cleanup_free_ char *sentence = xasprintf(
			"config.json:2: railmate%s; the key is left out", gpus[i].sentence);

		served_without(text, 1, sentence);
	}
}

static void lines_are_right_behind_every_kind_of_value(void **state)
{
	(void)state;
	served_without(
		"{\n \"x\": [ ],\n \"y\" : { } ,\n \"z\": \"a\\\"\\\\\",\n \"n\": [-1.5e3, true,\n null, {\"q\":\n[[]]}],\n"
		" \"resourceList\"\n:\n[\n {\n  \"additionalInfo\": {}, \"resourceName\"\n : \"ok\" }\n ,\n {\n\t\"resourceName\":\r\n\"bad name\"} ] }",
		1,
		"config.json:16: resourceList[1].resourceName: resource name 'bad name' must be 1 to 63 of a-z, A-Z, 0-9, '-' and '_'; the pool is left out");
}

static void long_values_are_shortened_between_characters(void **state)
{
	(void)state;
	/* 59 letters, then a character of three bytes across the limit of 60. */
	refused("{\"resourceList\": [{\"resourceName\": "
		"\"12345678901234567890123456789012345678901234567890123456789\xe2\x82\xac!\"}]}",
		"config.json:1: resourceList[0].resourceName: resource name '12345678901234567890123456789012345678901234567890123456789...' must be 1 to 63 of a-z, A-Z, 0-9, '-' and '_'");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_that_is_not_json),
		cmocka_unit_test(names_that_differ_as_names_only),
		cmocka_unit_test(a_pool_whose_selectors_are_misspelt),
		cmocka_unit_test(everything_that_is_wrong_is_told_at_once),
		cmocka_unit_test(a_pool_that_is_left_out_has_all_its_errors),
		cmocka_unit_test(no_more_errors_are_read_than_are_told),
		cmocka_unit_test(deep_nesting),
		cmocka_unit_test(ten_megabytes_unread),
		cmocka_unit_test(as_many_values_as_fit),
		cmocka_unit_test(too_many_pools),
		cmocka_unit_test(nothing_to_serve),
		cmocka_unit_test(wrong_types),
		cmocka_unit_test(a_pool_of_aux_devices_is_not_told_that_it_is_none),
		cmocka_unit_test(bad_values),
		cmocka_unit_test(bad_ranges),
		cmocka_unit_test(selectors_that_would_change_the_pod),
		cmocka_unit_test(illegal_names),
		cmocka_unit_test(illegal_prefixes),
		cmocka_unit_test(a_long_prefix),
		cmocka_unit_test(duplicates),
		cmocka_unit_test(a_pool_that_cannot_be_served_leaves_the_others),
		cmocka_unit_test(no_pool_that_can_be_served),
		cmocka_unit_test(wrong_keys_of_ours),
		cmocka_unit_test(lines_are_right_behind_every_kind_of_value),
		cmocka_unit_test(long_values_are_shortened_between_characters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
