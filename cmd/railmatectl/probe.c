/*
 * railmatectl probe: railmate-probe with these options, where it has something to look at: in a
 * container with VFs, or from the node at a process of a job.
 */
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "railmatectl.h"

#define FOLDER	     "/run/railmate"
#define IN_CONTAINER FOLDER "/probe/railmate-probe"
#define NOT_MEASURED 4 /* exit status of railmate-probe */

/* The one beside this program, on a node. */
static char *program_beside(void)
{
	char self[PATH_MAX] = "";

	if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
		return NULL;
	return xasprintf("%s/railmate-probe", dirname(self));
}

/* The value of an option as it stands in argv; NULL: it is not there. */
static const char *value_of(int argc, char **argv, const char *option)
{
	size_t len = strlen(option);

	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], option))
			return i + 1 < argc ? argv[i + 1] : "";
		if (str_starts(argv[i], option) && argv[i][len] == '=')
			return argv[i] + len + 1;
	}
	return NULL;
}

int cmd_probe(int argc, char **argv)
{
	const char *pid = value_of(argc, argv, "--pid"), *map = value_of(argc, argv, "--map");
	bool in_container = access(FOLDER "/map.json", F_OK) == 0;
	_cleanup_free_ char *beside = program_beside();
	_cleanup_free_ char *of_process = xasprintf("--map=/proc/%s/root" FOLDER, pid ? pid : "");
	_cleanup_free_ const char **words = xcalloc((size_t)argc + 2, sizeof(*words));
	const char *program = access(IN_CONTAINER, X_OK) == 0 ? IN_CONTAINER : beside;
	int n = 0;

	if (!in_container && !pid && !map)
		return fail(
			NOT_MEASURED,
			"probe: no VF of railmate is here: kubectl railmate probe POD runs it in the container of a job, "
			"and --pid PID looks from its node at a process of one");
	words[n++] = program;
	/* What the process was told lies in its own root. */
	if (!in_container && pid && !map && !pid[strspn(pid, "0123456789")])
		words[n++] = of_process;
	for (int i = 1; i < argc; i++)
		words[n++] = argv[i];
	if (program)
		execv(program, (char *const *)words);
	return fail(NOT_MEASURED, "probe: cannot run %s: %s", program ? program : IN_CONTAINER,
		    strerror(errno));
}
