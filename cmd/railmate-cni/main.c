/*
 * railmate-cni: a CNI plugin for pools with late binding. Multus gives it a slot; railmated names
 * the VF; another plugin does the work with that VF. Static and small: the container runtime
 * executes it on the host for every pod.
 */
#include "cni.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "document/document.h"

#define INPUT_MAX  (4u << 20)
#define IFNAME_MAX 15
#define ID_MAX	   200 /* with an interface's name, a file name */

/* Exit codes beside those of CNI; railmate-cni(8) lists them. */
enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

static const char usage_text[] =
	"usage: railmate-cni --install DIR [--config FILE] | --hook VF | --help | --version\n"
	"\n"
	"A CNI plugin: the container runtime executes it, with CNI_COMMAND, CNI_NETNS and the\n"
	"other variables of CNI in the environment and a network configuration on standard input.\n"
	"See railmate-cni(8).\n"
	"\n"
	"  --install DIR           copy this program into DIR, e.g. /opt/cni/bin\n"
	"  --config FILE           and FILE, checked, to /etc/railmate/cni.json: the paths of this node\n"
	"  --hook VF               for CDI specs of claims: railmated writes the container's files anew\n"
	"  --help, --version\n"
	"\n"
	"exit status: 0 done, 1 failed, 2 wrong command line; or the delegate's own\n";

static int print_error(const struct cni_error *e, const char *version)
{
	_cleanup_strbuf_ struct strbuf out = STRBUF_INIT;
	struct json j;

	json_init(&j, &out, 1);
	json_begin_object(&j);
	json_kv_string(&j, "cniVersion",
		       version && conf_version_known(version) ? version : "1.0.0");
	json_kv_int(&j, "code", e->code);
	json_kv_string(&j, "msg", e->msg);
	json_end_object(&j);
	puts(strbuf_str(&out));
	fflush(stdout);
	return EXIT_FAILED;
}

/* --- the environment --- */

enum need { CONTAINER = 1, NETNS = 2, IFNAME = 4, PATH = 8 };

struct command {
	const char *name;
	int needs;
	int (*run)(const struct invocation *in, struct cni_error *e);
};

static const struct command commands[] = {
	{ "ADD", CONTAINER | NETNS | IFNAME | PATH, command_add },
	{ "DEL", CONTAINER | IFNAME | PATH, command_del },
	{ "CHECK", CONTAINER | NETNS | IFNAME | PATH, command_check },
	{ "GC", PATH, command_gc },
	{ "STATUS", PATH, command_status },
};

/* The needed variables are there. Container and interface become part of a file's name, the
 * interface is as the kernel takes it. */
static int check_environment(const struct cni_env *env, int needs, struct cni_error *e)
{
	const char *id = env->container, *ifname = env->ifname;
	const struct {
		int need;
		const char *name, *value;
	} rows[] = {
		{ CONTAINER, "CNI_CONTAINERID", env->container },
		{ NETNS, "CNI_NETNS", env->netns },
		{ IFNAME, "CNI_IFNAME", env->ifname },
		{ PATH, "CNI_PATH", env->path },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		if (needs & rows[i].need && (!rows[i].value || !*rows[i].value))
			return cni_set(e, CNI_ENVIRONMENT, "%s is not set", rows[i].name);
	}
	if (needs & CONTAINER && (!conf_is_name(id) || strlen(id) > ID_MAX))
		return cni_set(e, CNI_ENVIRONMENT, "CNI_CONTAINERID is not a container id");
	if (needs & IFNAME && (strlen(ifname) > IFNAME_MAX || !strcmp(ifname, ".") ||
			       !strcmp(ifname, "..") || ifname[strcspn(ifname, "/: \t\n\v\f\r")]))
		return cni_set(e, CNI_ENVIRONMENT, "CNI_IFNAME is not the name of an interface");
	return 0;
}

/* --- standard input --- */

static int read_input(struct strbuf *out, struct cni_error *e)
{
	char chunk[16384];
	ssize_t n;

	while ((n = read(STDIN_FILENO, chunk, sizeof(chunk))) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return cni_set(e, CNI_IO, "cannot read the network configuration: %m");
		if (out->len + (size_t)n > INPUT_MAX)
			return cni_set(e, CNI_DECODE,
				       "the network configuration is larger than %u bytes",
				       INPUT_MAX);
		strbuf_add(out, chunk, (size_t)n);
	}
	return 0;
}

static int print_version(const struct strbuf *input, struct arena *a)
{
	_cleanup_strbuf_ struct strbuf out = STRBUF_INIT;
	const struct item *top = NULL;
	const char *asked = NULL;
	struct json j;

	if (input->len && document_parse(input->s, input->len, "request", a, &top, NULL) == 0)
		asked = item_string(top, "cniVersion");
	json_init(&j, &out, 1);
	json_begin_object(&j);
	json_kv_string(&j, "cniVersion", asked ? asked : "1.1.0");
	json_kv_array(&j, "supportedVersions");
	for (size_t i = 0; conf_versions[i]; i++)
		json_put_string(&j, conf_versions[i]);
	json_end_array(&j);
	json_end_object(&j);
	puts(strbuf_str(&out));
	return fflush(stdout) == 0 ? EXIT_DONE : EXIT_FAILED;
}

/* --- --- */

static int run(struct invocation *in, const struct command *command, const struct strbuf *input,
	       struct cni_error *e)
{
	struct err err = { 0 };

	if (settings_read(in->arena, &in->settings, &err) < 0)
		return cni_from(e, CNI_IO, &err);
	if (conf_read(strbuf_str(input), input->len, &in->settings, in->arena, &in->conf, e) < 0)
		return -1;
	if (in->conf.misplaced)
		fprintf(stderr, "railmate-cni: %s\n", in->conf.misplaced);
	return check_environment(&in->env, command->needs, e) < 0 ? -1 : command->run(in, e);
}

static int serve(const char *name)
{
	_cleanup_strbuf_ struct strbuf input = STRBUF_INIT;
	_cleanup_arena_ struct arena *arena = arena_new(16384);
	struct invocation in = { .arena = arena,
				 .env = { name, getenv("CNI_CONTAINERID"), getenv("CNI_NETNS"),
					  getenv("CNI_IFNAME"), getenv("CNI_ARGS"),
					  getenv("CNI_PATH") } };
	const struct command *command = NULL;
	struct cni_error e = { 0 };
	int r;

	if (read_input(&input, &e) < 0)
		return print_error(&e, NULL);
	if (!strcmp(name, "VERSION"))
		return print_version(&input, arena);
	for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
		if (!strcmp(name, commands[i].name))
			command = &commands[i];
	}
	if (!command) {
		cni_set(&e, CNI_ENVIRONMENT, "CNI_COMMAND '%s' is not known",
			document_shown(name, arena));
		return print_error(&e, NULL);
	}
	r = run(&in, command, &input, &e);
	return r < 0 ? print_error(&e, in.conf.version) : r;
}

static int end_output(void)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return EXIT_DONE;
	fprintf(stderr, "railmate-cni: cannot write to standard output: %m\n");
	return EXIT_FAILED;
}

int main(int argc, char **argv)
{
	const char *command = getenv("CNI_COMMAND");
	struct err err = { 0 };

	if ((argc == 3 || (argc == 5 && !strcmp(argv[3], "--config"))) &&
	    !strcmp(argv[1], "--install")) {
		/* The settings first: the program that is there already reads them as well. */
		if ((argc == 5 && install_settings(argv[4], &err) < 0) ||
		    install_into(argv[2], &err) < 0) {
			fprintf(stderr, "railmate-cni: %s\n", err.msg);
			return EXIT_FAILED;
		}
		printf("railmate-cni " RAILMATE_VERSION " is in %s\n", argv[2]);
		return end_output();
	}
	if (argc == 3 && !strcmp(argv[1], "--hook")) {
		if (command_hook(argv[2], &err) < 0) /* the container starts with what was known */
			fprintf(stderr, "railmate-cni: %s\n", err.msg);
		return EXIT_DONE;
	}
	if (argc == 2 && !strcmp(argv[1], "--help")) {
		fputs(usage_text, stdout);
		return end_output();
	}
	if (argc == 2 && !strcmp(argv[1], "--version")) {
		puts("railmate-cni " RAILMATE_VERSION);
		return end_output();
	}
	if (argc == 1 && command)
		return serve(command);
	fputs(usage_text, stderr);
	return EXIT_USAGE;
}
