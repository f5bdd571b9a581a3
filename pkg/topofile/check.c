/*
 * The reader of what the writer wrote. It refuses whatever NCCL's parser refuses or takes in
 * another sense (src/graph/xml.cc: no tabs, no line break inside a tag, no text, no prologue,
 * lengths, one version), and everything that this program never writes.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "hw/bdf.h"
#include "topofile/topofile-internal.h"
#include "topofile/topofile.h"

#define DEPTH_MAX 64
#define KIDS_MAX  128 /* of older releases; 640 since */
#define BUSID_LEN 12

struct slice {
	const char *s;
	size_t len;
};

enum { SYSTEM, CPU, PCI, NIC, NET, N_ELEMENTS, NOTHING = N_ELEMENTS };

struct parser {
	const char *s, *end;
	int line, version;
	bool x86; /* the <cpu> that is being read */
	struct err *err;
	struct level {
		int element;
		int kids;
		bool complete; /* has all that NCCL wants above a <net>, which it does not complete
				*/
	} stack[DEPTH_MAX];
	size_t depth, n_elements;
	bool ended;				  /* </system> has been read */
	struct slice keys[TOPOFILE_ELEMENTS_MAX]; /* busids, net names and numaids: none may come
						     twice */
	int key_of[TOPOFILE_ELEMENTS_MAX];
	size_t n_keys;
};

__attribute__((format(printf, 2, 3))) static int refuse(const struct parser *p, const char *fmt,
							...)
{
	char text[160];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return err_set(p->err, EINVAL, "line %d: %s", p->line, text);
}

/* --- values --- */

static bool is_text(const struct parser *p, struct slice v)
{
	(void)p;
	return v.len > 0;
}

static bool copy(struct slice v, char *ret, size_t size)
{
	if (v.len >= size)
		return false;
	memcpy(ret, v.s, v.len);
	ret[v.len] = '\0';
	return true;
}

static bool is_version(const struct parser *p, struct slice v)
{
	return v.len == 1 && v.s[0] == '0' + p->version;
}

static bool is_number(const struct parser *p, struct slice v)
{
	char text[16];
	int n;

	(void)p;
	return copy(v, text, sizeof(text)) && str_to_int(text, &n) == 0;
}

static bool is_count(const struct parser *p, struct slice v)
{
	return is_number(p, v) && v.s[0] != '-' && v.s[0] != '0';
}

static bool is_index(const struct parser *p, struct slice v)
{
	return is_number(p, v) && v.s[0] != '-';
}

/* Compared as text with what the kernel says: lower case, four digits of domain. */
static bool is_busid(const struct parser *p, struct slice v)
{
	char text[BUSID_LEN + 1], again[BDF_STRLEN];
	struct bdf bdf;

	(void)p;
	return v.len == BUSID_LEN && copy(v, text, sizeof(text)) && bdf_parse(text, &bdf) == 0 &&
	       !strcmp(bdf_format(bdf, again), text);
}

static bool is_hex(struct slice v, size_t digits)
{
	if (v.len != digits + 2 || v.s[0] != '0' || v.s[1] != 'x')
		return false;
	for (size_t i = 2; i < v.len; i++) {
		if (!strchr("0123456789abcdef", v.s[i]))
			return false;
	}
	return true;
}

static bool is_class(const struct parser *p, struct slice v)
{
	(void)p;
	return is_hex(v, 6);
}

static bool is_id(const struct parser *p, struct slice v)
{
	(void)p;
	return is_hex(v, 4);
}

static bool is_speed(const struct parser *p, struct slice v)
{
	char text[24];

	(void)p;
	return copy(v, text, sizeof(text)) && topofile_is_link_speed(text);
}

static bool is(struct slice a, const char *b)
{
	return a.len == strlen(b) && !memcmp(a.s, b, a.len);
}

static bool is_arch(const struct parser *p, struct slice v)
{
	(void)p;
	return is(v, "x86_64") || is(v, "arm64");
}

/* Words of the kernel's bitmap; empty: no CPU is known. */
static bool is_cpumap(const struct parser *p, struct slice v)
{
	(void)p;
	for (size_t i = 0; i < v.len; i++) {
		if (!strchr("0123456789abcdef,", v.s[i]))
			return false;
	}
	return true;
}

static const struct attribute {
	int element;
	const char *name;
	bool (*is)(const struct parser *p, struct slice value);
	/* X86: required where the arch says so; a key is required, and unique in the file */
	enum { FREE, X86, ABOVE_NET, REQUIRED, KEY } kind;
} attributes[] = {
	{ SYSTEM, "version", is_version, REQUIRED },
	{ CPU, "numaid", is_number, KEY },
	{ CPU, "affinity", is_cpumap, REQUIRED },
	{ CPU, "arch", is_arch, REQUIRED },
	{ CPU, "vendor", is_text, X86 },
	{ CPU, "familyid", is_number, X86 },
	{ CPU, "modelid", is_number, X86 },
	{ PCI, "busid", is_busid, KEY },
	{ PCI, "class", is_class, REQUIRED },
	{ PCI, "link_speed", is_speed, ABOVE_NET },
	{ PCI, "link_width", is_count, ABOVE_NET },
	{ PCI, "vendor", is_id, FREE },
	{ PCI, "device", is_id, FREE },
	{ PCI, "subsystem_vendor", is_id, FREE },
	{ PCI, "subsystem_device", is_id, FREE },
	{ NET, "name", is_text, KEY },
	{ NET, "speed", is_count, FREE },
	{ NET, "rail", is_index, FREE },
	{ NET, "plane", is_index, FREE },
};

static const struct {
	const char *name;
	unsigned parents; /* bits */
} elements[N_ELEMENTS] = {
	[SYSTEM] = { "system", 1 << NOTHING },
	[CPU] = { "cpu", 1 << SYSTEM },
	[PCI] = { "pci", 1 << CPU | 1 << PCI },
	[NIC] = { "nic", 1 << PCI },
	[NET] = { "net", 1 << NIC },
};

/* --- tokens --- */

static int peek(const struct parser *p)
{
	return p->s < p->end ? (unsigned char)*p->s : -1;
}

static bool take(struct parser *p, char c)
{
	if (peek(p) != (unsigned char)c)
		return false;
	p->s++;
	return true;
}

static void skip_space(struct parser *p)
{
	while (peek(p) == ' ' || peek(p) == '\n') {
		if (*p->s++ == '\n')
			p->line++;
	}
}

static struct slice take_name(struct parser *p)
{
	struct slice name = { p->s, 0 };

	while ((peek(p) >= 'a' && peek(p) <= 'z') || peek(p) == '_')
		p->s++;
	name.len = (size_t)(p->s - name.s);
	return name;
}

static int take_value(struct parser *p, struct slice *ret)
{
	if (!take(p, '=') || !take(p, '"'))
		return refuse(p, "an attribute without a value in double quotes");
	ret->s = p->s;
	while (topofile_is_plain(peek(p)))
		p->s++;
	ret->len = (size_t)(p->s - ret->s);
	if (!take(p, '"'))
		return refuse(
			p,
			"a value with a character that NCCL's parser, or this program, does not take");
	if (ret->len > TOPOFILE_STRING_MAX)
		return refuse(p, "a value of more than %d characters", TOPOFILE_STRING_MAX);
	return 0;
}

/* --- elements --- */

static int top(const struct parser *p)
{
	return p->depth ? p->stack[p->depth - 1].element : NOTHING;
}

static int element_of(struct slice name)
{
	for (int i = 0; i < N_ELEMENTS; i++) {
		if (is(name, elements[i].name))
			return i;
	}
	return -1;
}

static int add_key(struct parser *p, const struct attribute *a, struct slice value)
{
	for (size_t i = 0; i < p->n_keys; i++) {
		if (p->key_of[i] == a->element && p->keys[i].len == value.len &&
		    !memcmp(p->keys[i].s, value.s, value.len))
			return refuse(p, "the %s '%.*s' for a second time", a->name, (int)value.len,
				      value.s);
	}
	p->keys[p->n_keys] = value;
	p->key_of[p->n_keys++] = a->element;
	return 0;
}

static int read_attribute(struct parser *p, int element, unsigned *seen)
{
	struct slice name = take_name(p), value;
	int r = take_value(p, &value);

	if (r < 0)
		return r;
	for (size_t i = 0; i < ARRAY_LEN(attributes); i++) {
		const struct attribute *a = &attributes[i];

		if (a->element != element || !is(name, a->name))
			continue;
		if (*seen & 1u << i)
			return refuse(p, "the attribute %s twice in one element", a->name);
		*seen |= 1u << i;
		if (!a->is(p, value))
			return refuse(p, "'%.*s' is not a legal %s", (int)value.len, value.s,
				      a->name);
		if (a->is == is_arch)
			p->x86 = is(value, "x86_64");
		return a->kind == KEY ? add_key(p, a, value) : 0;
	}
	return refuse(p, "<%s> has no attribute '%.*s' here", elements[element].name,
		      name.len > 40 ? 40 : (int)name.len, name.s);
}

/* The first attribute of at least that kind that is not there; NULL: all are. */
static const struct attribute *missing(int element, int kind, unsigned seen)
{
	for (size_t i = 0; i < ARRAY_LEN(attributes); i++) {
		if (attributes[i].element == element && (int)attributes[i].kind >= kind &&
		    !(seen & 1u << i))
			return &attributes[i];
	}
	return NULL;
}

static int read_attributes(struct parser *p, int element, bool *ret_complete)
{
	const struct attribute *gap;
	unsigned seen = 0;
	int n = 0, r;

	p->x86 = false;
	while (take(p, ' ')) {
		if (++n > TOPOFILE_ATTRIBUTES_MAX)
			return refuse(p, "more than %d attributes", TOPOFILE_ATTRIBUTES_MAX);
		r = read_attribute(p, element, &seen);
		if (r < 0)
			return r;
	}
	gap = missing(element, element == CPU && p->x86 ? X86 : REQUIRED, seen);
	if (gap)
		return refuse(p, "<%s> without %s", elements[element].name, gap->name);
	*ret_complete = !missing(element, ABOVE_NET, seen);
	return 0;
}

static int check_above_net(const struct parser *p)
{
	for (size_t i = 0; i < p->depth; i++) {
		if (!p->stack[i].complete)
			return refuse(
				p,
				"<net> below a <%s> without the attributes that NCCL then asks for",
				elements[p->stack[i].element].name);
	}
	return 0;
}

static int open_element(struct parser *p)
{
	struct slice name = take_name(p);
	int element = element_of(name), r;
	bool complete = false;

	if (element < 0)
		return refuse(p, "no element of a topology file begins here");
	if (!(elements[element].parents & 1u << top(p)) || p->ended)
		return refuse(p, "<%s> has no place here", elements[element].name);
	if (p->depth && ++p->stack[p->depth - 1].kids > KIDS_MAX)
		return refuse(p, "more than %d elements in a <%s>", KIDS_MAX,
			      elements[top(p)].name);
	if (++p->n_elements > TOPOFILE_ELEMENTS_MAX)
		return refuse(p, "more than %d elements", TOPOFILE_ELEMENTS_MAX);
	r = read_attributes(p, element, &complete);
	if (r == 0 && element == NET)
		r = check_above_net(p);
	if (r < 0)
		return r;
	if (take(p, '/')) {
		p->ended = element == SYSTEM;
	} else {
		if (p->depth == DEPTH_MAX)
			return refuse(p, "more than %d elements in one another", DEPTH_MAX);
		p->stack[p->depth++] = (struct level) { element, 0, complete };
	}
	return take(p, '>') ? 0 : refuse(p, "a tag that does not end with '>'");
}

static int close_element(struct parser *p)
{
	struct slice name = take_name(p);

	if (!p->depth || !is(name, elements[top(p)].name))
		return refuse(p, "</%.*s> closes what is not open",
			      name.len > 40 ? 40 : (int)name.len, name.s);
	if (!take(p, '>'))
		return refuse(p, "a tag that does not end with '>'");
	p->ended = !--p->depth;
	return 0;
}

int topofile_check(const char *text, size_t len, int version, struct err *err)
{
	struct parser p = {
		.s = text, .end = text + len, .line = 1, .version = version, .err = err
	};
	int r = 0;

	for (skip_space(&p); r == 0 && peek(&p) >= 0; skip_space(&p)) {
		if (!take(&p, '<'))
			return refuse(&p, "text between elements");
		r = take(&p, '/') ? close_element(&p) : open_element(&p);
	}
	if (r == 0 && !p.ended)
		return refuse(&p, p.depth ? "<%s> is not closed" : "there is no <%s>",
			      elements[p.depth ? top(&p) : SYSTEM].name);
	return r;
}
