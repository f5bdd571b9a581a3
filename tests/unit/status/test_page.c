#include "facts.h"

#include "hw/portstats.h"
#include "support/nodes.h"
#include "support/synth.h"

static char *page(struct world *w)
{
	struct strbuf out = STRBUF_INIT;

	w->facts.node_name = "node-1";
	w->facts.now_ms = 1700000000000;
	status_write_page(&w->facts, "feed", &out);
	return strbuf_steal(&out);
}

#define assert_has(w, text)                                                                        \
	do {                                                                                       \
		_cleanup_free_ char *has_ = page(w);                                               \
		if (!strstr(has_, text))                                                           \
			fail_msg("%s is not in %s", text, has_);                                   \
	} while (0)
#define assert_lacks(w, text)                                                                      \
	do {                                                                                       \
		_cleanup_free_ char *lacks_ = page(w);                                             \
		assert_null(strstr(lacks_, text));                                                 \
	} while (0)

static void a_node_at_rest_has_its_pools_and_its_picture(void **state)
{
	struct world *w = *state;

	assert_has(w, "<h1>node-1 ");
	assert_has(w, "<p class=\"good\">ready</p>");
	assert_has(
		w,
		"<td>rdma/vf</td><td>early</td><td class=\"good\">yes</td><td class=\"number\">8</td><td class=\"number\">0</td>");
	assert_has(w, "<p class=\"pale\">The picture is being made.</p>");
	w->facts.picture_failure = "it was <killed>";
	assert_has(w, "<p class=\"wrong\">No picture: it was &lt;killed&gt;</p>");
	w->facts.picture_failure = NULL;
	w->facts.picture = "<svg id=\"it\"></svg>\n";
	assert_has(w, "<div class=\"wide picture\">\n<svg id=\"it\"></svg>\n</div>");
	assert_lacks(w, "Unhealthy devices");
	assert_lacks(w, "Held VFs");
	assert_lacks(w, "Last decisions");
}

static void a_degraded_link_is_shown_with_the_pods_that_it_hurts(void **state)
{
	struct world *w = *state;
	struct node_link link = { RESOURCE, NULL,	"goes down too often", false,
				  1,	    LINK_FLAPS, 1700000000000 - 300000 };
	struct hw_inventory *inv = synth_inventory("numa:2 switch:2 gpu:1 pf:1 vf:2");
	struct node_parts parts = { .cfg = w->cfg, .links = &link, .n_links = 1 };
	char pf[BDF_STRLEN], text[512];
	struct node *node;

	assert_lacks(w, "Degraded links");
	link.pf = bdf_format(inv->pci[synth_pf(inv, 0)].bdf, pf);
	node = node_make(inv, &parts);
	w->facts.node = node;
	world_hold(w, 0, "train");
	world_hold(w, 1, "train");
	snprintf(
		text, sizeof(text),
		"<td>%s</td><td>rdma/vf</td><td class=\"sentence wrong\">goes down too often</td><td>yes</td><td class=\"number\">5 min</td><td class=\"sentence\">default/train</td></tr>",
		pf);
	assert_has(w, "Degraded links");
	assert_has(w, text);
	node_unref(node);
}

static void what_is_not_ready_says_why(void **state)
{
	struct world *w = *state;

	w->pools[0].registered = false;
	w->pools[0].problem = "the kubelet does not watch its devices";
	assert_has(w, "<p class=\"wrong\">not ready</p>");
	assert_has(w, "<li class=\"wrong\">registered rdma/vf failed: the kubelet does not watch");
	assert_lacks(w, "<li class=\"wrong\">ledger");
}

static void who_holds_a_vf_and_why_it_was_chosen(void **state)
{
	struct world *w = *state;
	struct ledger_hold hold = world_hold(w, 0, "train");
	const char *gpu = world_gpu(w, 0);
	const struct ledger_pair pair = { gpu, hold.vf, "PIX" };
	const struct ledger_decision d = { .resource = RESOURCE,
					   .at_ms = 1700000000000 - 300000,
					   .owner = hold.owner,
					   .asked = 1,
					   .known = LEDGER_GPUS_KNOWN,
					   .source = "PodResources Get",
					   .gpus = &gpu,
					   .n_gpus = 1,
					   .chosen = &hold.vf,
					   .n_chosen = 1,
					   .pairs = &pair,
					   .n_pairs = 1,
					   .checked = true,
					   .real_gpus = &gpu,
					   .n_real_gpus = 1,
					   .real_cost = 3,
					   .best_cost = 0 };
	char row[256];

	hold.decision = ledger_decide(w->ledger, &d);
	hold.since_ms = 1700000000000 - 90000;
	ledger_put(w->ledger, &hold);
	snprintf(row, sizeof(row), "<td>%s</td><td>PIX</td><td class=\"number\">90 s</td>", gpu);
	assert_has(w, "<td>default/train</td><td>main</td><td>held</td>");
	assert_has(w, "<code>kubectl railmate probe POD -n NAMESPACE</code>");
	assert_has(w, row);
	assert_has(w, "<td class=\"number\">5 min</td><td>rdma/vf</td><td>default/train</td>");
	assert_has(w, "known: PodResources Get");
	assert_has(w, "<td class=\"wrong\">3, best 0</td>");
	assert_has(w, "default/train");
}

/* Names come from pods, sysfs and the kubelet. */
static void a_name_cannot_leave_its_place(void **state)
{
	static const char evil[] = "</td><script>alert(1)</script>\"&\x1b[1m\xff";
	struct world *w = *state;
	struct ledger_hold hold = world_hold(w, 0, evil);
	const struct ledger_decision d = { .resource = evil, .source = evil, .owner = hold.owner };

	ledger_decide(w->ledger, &d);
	w->pools[0].resource = evil;
	w->pools[0].registered = false;
	w->facts.machine.config_error = evil;
	assert_lacks(w, "<script>");
	assert_lacks(w, "\x1b");
	assert_lacks(w, "\xff");
	assert_has(w, "&lt;/td&gt;&lt;script&gt;alert(1)&lt;/script&gt;&quot;&amp;?[1m?");
}

static void a_port_that_is_down_comes_first(void **state)
{
	static const struct hw_port down = { .number = 1, .state = "DOWN" };
	struct world *w = *state;
	struct hw_inventory *inv = synth_inventory("numa:2 switch:2 gpu:1 pf:1 vf:2");
	struct hw_port_stats ports[2] = { { .port = 1, .carrier_changes = -1 },
					  { .port = 1, .carrier_changes = -1 } };
	struct node *node;
	_cleanup_free_ char *text = NULL;

	for (size_t i = 0; i < 2; i++) {
		ports[i].pci = synth_pf(inv, i);
		ports[i].rdma = hw_find_rdma(inv, ports[i].pci);
	}
	inv->rdma[ports[1].rdma].ports = &down;
	node = node_new(inv, w->cfg, NULL);
	w->facts.node = node;
	w->facts.ports = ports;
	w->facts.n_ports = 2;
	text = page(w);
	assert_true(strstr(text, "<td class=\"wrong\">DOWN</td>") <
		    strstr(text, "<td class=\"good\">ACTIVE</td>"));
	node_unref(node);
}

static void what_doctor_found_is_told_with_the_remedy(void **state)
{
	static const char *const redirects[] = { "0000:17:01.0 redirects <b>.",
						 "0000:17:00.0 redirects." },
				 *const fine[] = { "All is well." };
	static const struct status_fix everywhere = { NULL, "Reseat it." },
				       here[] = { { "Talos", "Add it." },
						  { "OpenShift", "Do it." } };
	static const struct status_finding findings[] = {
		{ .verdict = STATUS_FOUND_WARN,
		  .check = "acs",
		  .title = "ACS does not redirect",
		  .n = 5,
		  .shown = redirects,
		  .n_shown = 2,
		  .meaning = "Half the bandwidth.",
		  .fixes = here,
		  .n_fixes = 2 },
		{ .verdict = STATUS_FOUND_UNKNOWN,
		  .check = "link",
		  .title = "links",
		  .meaning = "Slow.",
		  .fixes = &everywhere,
		  .n_fixes = 1 },
		{ .verdict = STATUS_FOUND_PASS, .check = "vfs", .shown = fine, .n_shown = 1 },
		{ .verdict = STATUS_FOUND_PASS, .check = "path", .shown = fine, .n_shown = 1 },
	};
	struct status_doctor doctor = { .verdict = STATUS_FOUND_WARN,
					.n_by_verdict = { 2, 1, 5, 0 },
					.v = findings,
					.n = ARRAY_LEN(findings) };
	struct world *w = *state;
	_cleanup_free_ char *metrics = NULL;

	assert_lacks(w, "Doctor");
	w->facts.doctor = &doctor;
	assert_has(w, "<h2>Doctor: <b class=\"wrong\">WARN</b></h2>");
	assert_has(
		w,
		"<li><b class=\"wrong\">WARN</b> <b>acs</b> <span class=\"pale\">ACS does not redirect</span><p>0000:17:01.0 redirects &lt;b&gt;.</p><p>0000:17:00.0 redirects.</p><p>and 3 more</p><p class=\"pale\">NCCL: Half the bandwidth.</p><p>Fix on Talos: Add it.</p><p>Fix on OpenShift: Do it.</p></li>");
	assert_has(w, "<p>Fix: Reseat it.</p>");
	assert_has(w, "<li><b class=\"good\">PASS</b> vfs, path</li>");
	assert_lacks(w, "All is well.");
	assert_lacks(w, "--privileged");
	doctor.failure = "it was <killed>";
	assert_has(w, "</h2><p class=\"wrong\">Not checked: it was &lt;killed&gt;</p></section>");
	assert_lacks(w, "acs");
	metrics = world_metrics(w);
	assert_null(strstr(metrics, "railmate_doctor_findings{"));
	freep(&metrics);
	doctor.failure = NULL;
	doctor.confined = true;
	assert_has(w, "<code>kubectl railmate doctor --privileged</code> sees it");
	metrics = world_metrics(w);
	assert_non_null(strstr(metrics, "\nrailmate_doctor_findings{verdict=\"pass\"} 2\n"
					"railmate_doctor_findings{verdict=\"unknown\"} 1\n"
					"railmate_doctor_findings{verdict=\"warn\"} 5\n"
					"railmate_doctor_findings{verdict=\"fail\"} 0\n"));
}

static void before_the_first_scan_there_is_a_page(void **state)
{
	struct world *w = *state;

	w->facts.node = NULL;
	w->facts.ledger = NULL;
	w->facts.service = NULL;
	assert_has(w, "not ready");
	assert_lacks(w, "Machine");
}

static void nothing_but_the_page_itself_is_allowed(void **state)
{
	struct world *w = *state;
	const char *policy = status_page_policy("feed", w->arena);
	_cleanup_free_ char *text = page(w);

	assert_non_null(strstr(policy, "default-src 'none'"));
	assert_non_null(strstr(policy, "script-src 'nonce-feed'"));
	assert_non_null(strstr(text, "<script nonce=\"feed\">"));
	assert_null(strstr(text, "http"));
	assert_null(strstr(text, " src="));
	assert_null(strstr(text, "@import"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define WORLD(f) cmocka_unit_test_setup_teardown(f, world_set_up, world_tear_down)
		WORLD(a_node_at_rest_has_its_pools_and_its_picture),
		WORLD(a_degraded_link_is_shown_with_the_pods_that_it_hurts),
		WORLD(what_is_not_ready_says_why),
		WORLD(who_holds_a_vf_and_why_it_was_chosen),
		WORLD(a_name_cannot_leave_its_place),
		WORLD(a_port_that_is_down_comes_first),
		WORLD(what_doctor_found_is_told_with_the_remedy),
		WORLD(before_the_first_scan_there_is_a_page),
		WORLD(nothing_but_the_page_itself_is_allowed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
