/*
 * Every file of a folder through a fuzz target, in name order; then each cut in half and with one
 * byte changed, so that a small corpus still reaches the error paths. A crash or a sanitizer's
 * report fails the test.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int read_file(const char *folder, const char *name, struct strbuf *out)
{
	_cleanup_free_ char *path = xasprintf("%s/%s", folder, name);
	FILE *f = fopen(path, "re");
	char buf[4096];
	size_t n;

	if (!f)
		return -1;
	while ((n = fread(buf, 1, sizeof(buf), f)) > 0)
		strbuf_add(out, buf, n);
	fclose(f);
	return 0;
}

/* In memory of its exact size, so that a read past the end is seen. */
static void feed(const char *data, size_t len)
{
	_cleanup_free_ uint8_t *copy = xcalloc(len, 1);

	for (size_t i = 0; i < len; i++)
		copy[i] = (uint8_t)data[i];
	LLVMFuzzerTestOneInput(copy, len);
}

static void feed_variants(struct strbuf *input)
{
	feed(strbuf_str(input), input->len);
	feed(strbuf_str(input), input->len / 2);
	for (size_t i = 1; i <= 8 && input->len > 8; i++) {
		size_t at = input->len * i / 9;

		input->s[at] = (char)(input->s[at] ^ (1 << (i - 1)));
		feed(input->s, input->len);
	}
}

int main(int argc, char **argv)
{
	struct dirent **list;
	int n, fed = 0;

	if (argc != 2) {
		fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
		return 2;
	}
	n = scandir(argv[1], &list, NULL, alphasort);
	for (int i = 0; i < n; i++) {
		_cleanup_strbuf_ struct strbuf input = STRBUF_INIT;

		if (list[i]->d_name[0] != '.' && !read_file(argv[1], list[i]->d_name, &input)) {
			feed_variants(&input);
			fed++;
		}
		free(list[i]);
	}
	if (n >= 0)
		free(list);
	printf("%d inputs from %s\n", fed, argv[1]);
	return fed ? 0 : 1;
}
