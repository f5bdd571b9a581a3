#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/mem.h"
#include "base/str.h"
#include "draw/draw.h"
#include "hw/inventory.h"
#include "support/synth.h"
#include "topo/topo.h"

#define NAMES_MAX 64

struct drawing {
	struct hw_inventory *inv;
	const char *names[NAMES_MAX];
	struct draw_in in;
};

static struct drawing machine(const char *line)
{
	struct drawing s = { .inv = synth_inventory(line) };

	assert_true(s.inv->n_gpu <= NAMES_MAX);
	for (size_t i = 0; i < s.inv->n_gpu; i++)
		s.names[i] = "NVIDIA H100";
	return s;
}

static void drawing_done(struct drawing *s)
{
	hw_inventory_free(s->inv);
}
#define _cleanup_drawing_ __attribute__((cleanup(drawing_done)))

/* Everything that is drawn lies on the page. */
static void check_rects(const char *svg)
{
	int width, height, x, y, w, h;

	assert_int_equal(sscanf(strstr(svg, "viewBox="), "viewBox=\"0 0 %d %d\"", &width, &height),
			 2);
	assert_in_range(width, 300, 1000);
	for (const char *at = svg; (at = strstr(at, "<rect x=")); at++) {
		assert_int_equal(sscanf(at, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"",
					&x, &y, &w, &h),
				 4);
		assert_true(x >= 0 && y >= 0 && w > 0 && h > 0 && x + w <= width &&
			    y + h <= height);
	}
}

static char *draw(struct drawing *s)
{
	struct topo *topo = topo_new(s->inv, NULL);
	struct strbuf out = STRBUF_INIT, again = STRBUF_INIT;

	s->in.inv = s->inv;
	s->in.topo = topo;
	s->in.gpu_names = s->names;
	draw_svg(&s->in, &out);
	draw_svg(&s->in, &again);
	assert_string_equal(strbuf_str(&out), strbuf_str(&again));
	strbuf_done(&again);
	topo_free(topo);
	for (size_t i = 0; i < out.len; i++)
		assert_true(out.s[i] == '\n' || (out.s[i] >= ' ' && out.s[i] <= '~'));
	check_rects(strbuf_str(&out));
	return strbuf_steal(&out);
}

static size_t count(const char *text, const char *what)
{
	size_t n = 0;

	for (const char *at = text; (at = strstr(at, what)); at += strlen(what))
		n++;
	return n;
}

static const char *address(const struct hw_inventory *inv, int pci, char buf[BDF_STRLEN])
{
	return bdf_format(inv->pci[pci].bdf, buf);
}

#define assert_has(svg, text)	assert_non_null(strstr(svg, text))
#define assert_lacks(svg, text) assert_null(strstr(svg, text))

static void shows_every_gpu_nic_and_vf(void **state)
{
	_cleanup_drawing_ struct drawing s = machine("numa:2 switch:4 gpu:1 pf:1 vf:16");
	_cleanup_free_ char *svg = draw(&s);
	char text[64], buf[BDF_STRLEN];

	(void)state;
	for (size_t i = 0; i < 8; i++) {
		snprintf(text, sizeof(text), ">%s</text>",
			 address(s.inv, synth_gpu(s.inv, i), buf));
		assert_has(svg, text);
		snprintf(text, sizeof(text), ">%s</text>", address(s.inv, synth_pf(s.inv, i), buf));
		assert_has(svg, text);
	}
	assert_int_equal(count(svg, "class=\"free\""), 8 * 16 + 1); /* and that of the key */
	assert_int_equal(count(svg, ">16 VFs</text>"), 8);
	assert_has(svg, "<title>8 GPUs (NVIDIA H100), 8 NICs, 128 VFs</title>");
	assert_has(svg, ">NUMA node 1</text>");
}

static void a_sub_switch_that_counts_as_one_is_drawn_as_one(void **state)
{
	_cleanup_drawing_ struct drawing one = machine("switch:1 sub:2 gpu:1 pf:1 vf:1 bcm4");
	_cleanup_drawing_ struct drawing two = machine("switch:1 sub:2 gpu:1 pf:1 vf:1");
	_cleanup_free_ char *flat = draw(&one), *deep = draw(&two);

	(void)state;
	assert_int_equal(count(flat, ">PCIe switch</text>"), 1);
	assert_int_equal(count(flat, ">Switch</text>"), 0);
	assert_int_equal(count(deep, ">Switch</text>"), 2);
}

static void root_ports_of_one_host_bridge_share_a_frame(void **state)
{
	_cleanup_drawing_ struct drawing s = machine("switch:0 gpu:2 pf:1 vf:1");
	_cleanup_drawing_ struct drawing apart = machine("root:2 switch:1 gpu:1 pf:1 vf:1");
	_cleanup_free_ char *svg = draw(&s), *other = draw(&apart);

	(void)state;
	assert_int_equal(count(svg, ">Host bridge</text>"), 1);
	assert_int_equal(count(svg, ">Root port</text>"), 3);
	assert_int_equal(count(other, ">Host bridge</text>"), 0);
}

static void a_vf_without_pf_is_a_nic(void **state)
{
	_cleanup_drawing_ struct drawing s = machine("gpu:1 pf:2 vf:3 flat hyper nopf");
	_cleanup_free_ char *svg = draw(&s);

	(void)state;
	assert_int_equal(count(svg, ">is a VF</text>"), 6);
	assert_has(svg, "This virtual machine hides its PCIe switches");
}

static void names_pods_that_hold_vfs(void **state)
{
	_cleanup_drawing_ struct drawing s = machine("switch:2 gpu:1 pf:1 vf:4");
	char vfs[4][BDF_STRLEN], gpu[BDF_STRLEN];
	const char *const gpus[] = { address(s.inv, synth_gpu(s.inv, 0), gpu), "nonsense" };
	const struct draw_hold holds[] = {
		{ .vf = vfs[0],
		  .ns = "ml",
		  .pod = "train-0",
		  .uid = "1",
		  .gpus = gpus,
		  .n_gpus = 2 },
		{ .vf = vfs[1], .ns = "ml", .pod = "train-0", .uid = "1" },
		{ .vf = vfs[2], .ns = "ml", .pod = "train-0", .uid = "0", .draining = true },
		{ .vf = vfs[3] },
		{ .vf = "0000:ff:1f.7", .ns = "ml", .pod = "gone" },
	};
	_cleanup_free_ char *svg = NULL;

	(void)state;
	for (size_t i = 0; i < 4; i++)
		address(s.inv, synth_vf(s.inv, i), vfs[i]);
	s.in.holds = holds;
	s.in.n_holds = ARRAY_LEN(holds);
	s.in.holds_known = true;
	svg = draw(&s);
	assert_has(svg, ">4 VFs, 4 held</text>");
	assert_has(svg, ">4 VFs, 0 held</text>");
	assert_has(svg, ">ml/train-0</text>");
	assert_has(svg, ">a pod that is not known yet</text>");
	assert_has(svg, ">2 VFs; GPU 0</text>");
	assert_has(svg, ">1 VF; draining</text>");
	assert_has(svg, ">ml/gone</text>");
	assert_has(svg, ">free VF</text>");
	/* GPU, two cells, the list below. */
	assert_int_equal(count(svg, ">A</text>"), 4);
	assert_int_equal(count(svg, "class=\"free\""), 4 + 1);
	assert_has(svg, ": ml/train-0</title>");
}

static void without_knowledge_no_vf_is_called_free(void **state)
{
	_cleanup_drawing_ struct drawing s = machine("switch:1 gpu:1 pf:1 vf:4");
	_cleanup_free_ char *svg = draw(&s);

	(void)state;
	assert_lacks(svg, "held");
	assert_lacks(svg, "free VF");
	assert_has(svg, ">VF</text>");
}

static void counts_pods_that_it_has_no_room_for(void **state)
{
	_cleanup_drawing_ struct drawing s = machine("switch:1 gpu:1 pf:1 vf:60");
	struct draw_hold holds[60];
	char vfs[60][BDF_STRLEN], pods[60][8];
	_cleanup_free_ char *svg = NULL;

	(void)state;
	for (size_t i = 0; i < 60; i++) {
		snprintf(pods[i], sizeof(pods[i]), "p%zu", i);
		holds[i] = (struct draw_hold) { .vf = address(s.inv, synth_vf(s.inv, i), vfs[i]),
						.pod = pods[i] };
	}
	s.in = (struct draw_in) { .holds_known = true, .holds = holds, .n_holds = 60 };
	svg = draw(&s);
	assert_has(svg, ">and 12 other pods</text>");
	assert_has(svg, ">AA</text>");
	assert_has(svg, ">BV</text>");
}

static void hostile_names_stay_text(void **state)
{
	_cleanup_drawing_ struct drawing s = machine("switch:1 gpu:1 pf:1 vf:1");
	char vf[BDF_STRLEN];
	const struct draw_hold hold = {
		.vf = address(s.inv, synth_vf(s.inv, 0), vf),
		.ns = "a&b",
		.pod = "</text><script>alert(1)</script>\x1b[2J\xff\xe2\x80\xae\"'"
	};
	_cleanup_free_ char *svg = NULL;

	(void)state;
	s.inv->pci[synth_pf(s.inv, 0)].netdev = "<\x01\xc3\xa9>&]]>";
	s.names[0] = "<!--";
	s.in = (struct draw_in) { .holds_known = true, .holds = &hold, .n_holds = 1 };
	svg = draw(&s);
	assert_lacks(svg, "<script");
	assert_lacks(svg, "<!--");
	assert_lacks(svg, "]]>");
	assert_has(svg, "&lt;?\?\?&gt;&amp;]]&gt;, mlx5_0</text>");
	assert_has(svg, "a&amp;b/&lt;/text&gt;&lt;script&gt;");
	assert_has(svg, "(&lt;!--)");
}

static void long_names_are_cut(void **state)
{
	_cleanup_drawing_ struct drawing s = machine("switch:1 gpu:1 pf:1 vf:1");
	_cleanup_free_ char *svg = NULL;
	char name[4000];

	(void)state;
	memset(name, 'W', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	s.names[0] = name;
	s.inv->pci[synth_pf(s.inv, 0)].netdev = name;
	svg = draw(&s);
	assert_int_equal(count(svg, "WW...</text>"), 3); /* title, tile, NIC */
	for (const char *at = svg; (at = strstr(at, ">W")); at++)
		assert_true(strcspn(at, ".") < 60);
}

static void odd_chains_of_bridges_end(void **state)
{
	_cleanup_drawing_ struct drawing s = machine("switch:2 sub:1 gpu:1 pf:1 vf:2");
	int gpu = synth_gpu(s.inv, 0), above = s.inv->pci[gpu].parent;
	_cleanup_free_ char *svg = NULL;

	(void)state;
	s.inv->pci[above].parent = above;
	s.inv->pci[synth_gpu(s.inv, 1)].numa = -1;
	s.inv->pci[synth_pf(s.inv, 1)].has_root = false;
	svg = draw(&s);
	assert_int_equal(count(svg, "class=\"gpu\""), 2 + 1);
	assert_has(svg, ">NUMA node not known</text>");
}

static void an_empty_machine_is_a_picture(void **state)
{
	_cleanup_drawing_ struct drawing s = machine("");
	_cleanup_free_ char *svg = draw(&s);

	(void)state;
	assert_has(svg, "<title>0 GPUs, 0 NICs, 0 VFs</title>");
	assert_has(svg, "</svg>\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shows_every_gpu_nic_and_vf),
		cmocka_unit_test(a_sub_switch_that_counts_as_one_is_drawn_as_one),
		cmocka_unit_test(root_ports_of_one_host_bridge_share_a_frame),
		cmocka_unit_test(a_vf_without_pf_is_a_nic),
		cmocka_unit_test(names_pods_that_hold_vfs),
		cmocka_unit_test(without_knowledge_no_vf_is_called_free),
		cmocka_unit_test(counts_pods_that_it_has_no_room_for),
		cmocka_unit_test(hostile_names_stay_text),
		cmocka_unit_test(long_names_are_cut),
		cmocka_unit_test(odd_chains_of_bridges_end),
		cmocka_unit_test(an_empty_machine_is_a_picture),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
