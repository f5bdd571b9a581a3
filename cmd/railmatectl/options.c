/* How the subcommands read their options. */
#include <getopt.h>
#include <string.h>

#include "base/mem.h"
#include "railmatectl.h"

/* getopt_long returns the place of the option in the table, from 1. */
int read_options(int argc, char **argv, const struct word *words, size_t n)
{
	_cleanup_free_ struct option *options = xcalloc(n + 1, sizeof(*options));
	int opt;

	for (size_t i = 0; i < n; i++)
		options[i] = (struct option) { words[i].name,
					       words[i].value ? required_argument : no_argument,
					       NULL, (int)i + 1 };
	while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (opt == '?')
			return EXIT_USAGE;
		if (words[opt - 1].value)
			*words[opt - 1].value = optarg;
		else
			*words[opt - 1].flag = true;
	}
	return EXIT_DONE;
}

/* main() has put the program's name before it, for getopt. */
static const char *command_name(char **argv)
{
	return strchr(argv[0], ' ') + 1;
}

int read_only_options(int argc, char **argv, const struct word *words, size_t n)
{
	int r = read_options(argc, argv, words, n);

	if (r != EXIT_DONE || optind == argc)
		return r;
	return fail(EXIT_USAGE, "%s takes no argument '%s'", command_name(argv), argv[optind]);
}
