/* railmatectl status: the state of this node: who holds VFs, links, placement, doctor's verdict, in
 * ten lines. */
#include "status.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ask_ledger.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "control/control.h"
#include "doctor/doctor.h"
#include "document/document.h"
#include "facts/facts.h"
#include "facts/gather.h"
#include "ledger/ledger.h"
#include "pool/node.h"
#include "pools.h"
#include "railmatectl.h"
#include "status/status.h"
#include "diagnosis/diagnosis.h"

struct request {
	struct machine machine;
	struct ledger_source source;
	bool json, no_doctor;
};

/* In place of the document of a daemon that is away: this machine without a configuration. */
static const struct item *own_document(struct status *s)
{
	const struct status_facts facts = { .node_name = s->node, .node = s->machine->node };
	const struct item *document = NULL;
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;
	struct err err = { 0 };
	const char *kept;

	status_write_document(&facts, &text);
	kept = arena_strdup(s->arena, strbuf_str(&text));
	document_parse(kept, strlen(kept), "the status document", s->arena, &document, &err);
	return document;
}

static void ask_daemon(struct status *s, const struct request *req)
{
	const struct item *answer = NULL;
	struct err err = { 0 };
	char host[256] = "";
	const char *text;

	s->node = getenv("NODE_NAME"); /* set by the DaemonSet */
	if (!s->node || !*s->node) {
		gethostname(host, sizeof(host) - 1);
		s->node = arena_strdup(s->arena, host);
	}
	if (str_eq(req->source.socket, "none"))
		s->silent = "railmated was not asked";
	else if (pools_ask(req->source.socket, s->arena, &answer, &text, &err) < 0)
		s->silent = arena_strdup(s->arena, err.msg);
	if (answer) {
		s->node = *pools_node(answer) ? pools_node(answer) : s->node;
		s->version = item_string(answer, "version");
		status_read_pools(s, answer);
	}
	s->links = item_get(answer ? answer : own_document(s), "links");
}

static int examine(const struct request *req, struct status *s)
{
	const struct node *node = req->machine.node;
	_cleanup_diagnosis_ struct diagnosis *report_of_doctor = NULL;
	struct facts *facts = NULL;
	struct err err = { 0 };
	int r;
	static const int codes[STATUS_VERDICTS] = { EXIT_DONE, 5, 6 };
	_cleanup_strbuf_ struct strbuf out = STRBUF_INIT;
	struct ledger_answer answer = { 0 };

	ask_daemon(s, req);
	/* The ledger of a daemon that is away counts, too; without a ledger the rest counts. */
	if (ask_ledger(&req->source, s->arena, &answer, &err) >= 0) {
		status_read_placement(s, answer.ledger);
		ledger_free(answer.ledger);
	}
	if (!req->no_doctor) {
		facts = facts_gather(req->machine.root, node->inv, node->topo, FACTS_OF_NODE);
		facts->rails = node->rails;
		if (doctor_run(facts, NULL, &report_of_doctor, &err) == 0)
			s->doctor = report_of_doctor;
	}
	status_judge(s);
	(req->json ? status_json : status_text)(s, &out);
	r = print_out(&out) == EXIT_DONE ? codes[s->verdict] : EXIT_FAILED;
	facts_free(facts);
	return r;
}

int cmd_status(int argc, char **argv)
{
	struct request req = { .machine.root_path = "/", .source = { CONTROL_SOCKET, STATE_DIR } };
	const struct word words[] = {
		{ "root", .value = &req.machine.root_path },
		{ "topology-hints", .value = &req.machine.hints_path },
		{ "control-socket", .value = &req.source.socket },
		{ "state-dir", .value = &req.source.state_dir },
		{ "no-doctor", .flag = &req.no_doctor },
		{ "json", .flag = &req.json },
	};
	_cleanup_arena_ struct arena *a = arena_new(16384);
	struct status s = { .arena = a, .machine = &req.machine };
	int r = read_only_options(argc, argv, words, ARRAY_LEN(words));

	if (r == EXIT_DONE)
		r = machine_open(&req.machine);
	if (r == EXIT_DONE)
		r = examine(&req, &s);
	machine_close(&req.machine);
	return r;
}
