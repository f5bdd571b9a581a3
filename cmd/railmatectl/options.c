/* How the subcommands read their options. */
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "railmatectl.h"

/* For options of that name; all but one are kubectl's. */
static const struct {
	const char *name;
	char letter;
} letters[] = {
	{ "namespace", 'n' }, { "selector", 'l' }, { "container", 'c' }, { "output", 'o' }
};

/* The option of that letter, from 1; 0: there is none. */
static int find_letter(const struct word *words, size_t n, int letter)
{
	for (size_t i = 0; i < n; i++) {
		for (size_t k = 0; k < ARRAY_LEN(letters); k++) {
			if (letters[k].letter == letter && !strcmp(words[i].name, letters[k].name))
				return (int)i + 1;
		}
	}
	return 0;
}

/* The sentence that getopt would write, without characters that a terminal obeys. */
int refuse_option(char **argv, int found)
{
	const char *space = strchr(argv[0], ' '), *word = argv[optind - 1];
	_cleanup_free_ char *command = space ? xasprintf("%s: ", space + 1) : xstrdup("");

	if (optopt == 'h' || !strcmp(word, "--help"))
		exit(print_help());
	if (found == ':')
		return fail(EXIT_USAGE, "%soption '%s' requires an argument", command, word);
	if (word[0] != '-' || word[1] != '-')
		return fail(EXIT_USAGE, "%sinvalid option '-%c'", command, optopt);
	if (optopt)
		return fail(EXIT_USAGE, "%soption '%s' takes no argument", command, word);
	return fail(EXIT_USAGE, "%sunrecognized option '%s'; see railmatectl --help", command,
		    word);
}

/* getopt_long returns the place of the option in the table, from 1. */
int read_options(int argc, char **argv, const struct word *words, size_t n)
{
	_cleanup_free_ struct option *options = xcalloc(n + 1, sizeof(*options));
	char shorts[1 + 2 * ARRAY_LEN(letters) + 1] = ":", *end = shorts + 1;
	int opt;

	for (size_t k = 0; k < ARRAY_LEN(letters); k++) {
		if (!find_letter(words, n, letters[k].letter))
			continue;
		*end++ = letters[k].letter;
		*end++ = ':';
	}
	for (size_t i = 0; i < n; i++)
		options[i] = (struct option) { words[i].name,
					       words[i].value ? required_argument : no_argument,
					       NULL, (int)i + 1 };
	opterr = 0;
	while ((opt = getopt_long(argc, argv, shorts, options, NULL)) != -1) {
		if (opt == '?' || opt == ':')
			return refuse_option(argv, opt);
		if (opt > (int)n)
			opt = find_letter(words, n, opt);
		if (words[opt - 1].value)
			*words[opt - 1].value = optarg;
		else
			*words[opt - 1].flag = true;
	}
	return EXIT_DONE;
}

int read_only_options(int argc, char **argv, const struct word *words, size_t n)
{
	int r = read_options(argc, argv, words, n);

	if (r != EXIT_DONE || optind == argc)
		return r;
	return fail(EXIT_USAGE, "%s takes no argument '%s'", strchr(argv[0], ' ') + 1,
		    argv[optind]);
}
