/* railmatectl cluster status: a line a node, the worst first. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/file.h"
#include "base/mem.h"
#include "cluster.h"
#include "cluster_status.h"
#include "load/load.h"

struct request {
	struct cluster cluster;
	const char *from, *record;
	bool no_doctor;
};

/* --- recorded answers --- */

static int record(const char *dir, const struct fleet_row *row, struct arena *a, struct err *err)
{
	_cleanup_strbuf_ struct strbuf text = STRBUF_INIT;
	struct file_new file = { .dir = AT_FDCWD, .mode = 0644 };

	if (!*row->node || *row->node == '.' || strchr(row->node, '/') || strlen(row->node) >= 250)
		return err_set(err, EINVAL, "--record: '%s' is not a name for a file", row->node);
	fleet_row_json(row, &text);
	file.name = arena_printf(a, "%s/%s.json", dir, row->node);
	file.temporary = arena_printf(a, "%s.new", file.name);
	return file_write(&file, text.s, text.len, err);
}

static int record_all(const char *dir, const struct fleet *f)
{
	_cleanup_arena_ struct arena *a = arena_new(16384);
	struct err err = { 0 };

	if (mkdir(dir, 0755) < 0 && errno != EEXIST)
		return fail(EXIT_FAILED, "--record: %s: %m", dir);
	for (size_t i = 0; i < f->n; i++) {
		if (record(dir, &f->rows[i], a, &err) < 0)
			return fail(EXIT_FAILED, "%s", err.msg);
	}
	return EXIT_DONE;
}

static int is_json_file(const struct dirent *entry)
{
	size_t len = strlen(entry->d_name);

	return entry->d_name[0] != '.' && len > 5 && !strcmp(entry->d_name + len - 5, ".json");
}

static int read_all(struct fleet *f, const char *dir)
{
	struct dirent **names = NULL;
	int n = scandir(dir, &names, is_json_file, versionsort);

	if (n < 0)
		return fail(EXIT_FAILED, "--from: %s: %m", dir);
	for (int i = 0; i < n; i++) {
		const char *name = names[i]->d_name;
		_cleanup_free_ char *path = xasprintf("%s/%s", dir, name), *text = NULL;
		_cleanup_free_ char *node = xasprintf("%.*s", (int)strlen(name) - 5, name);
		struct err err = { 0 };
		size_t len;

		/* A file that cannot be read is a row that says so. */
		if (load_file(path, CLUSTER_ANSWER_MAX, &text, &len, &err) < 0)
			fleet_add_error(f, node, err.msg);
		else
			fleet_add(f, node, text, len);
		free(names[i]);
	}
	free(names);
	return n ? EXIT_DONE : fail(EXIT_REFUSED, "--from: no file in %s ends with .json", dir);
}

/* --- asking --- */

static void take(void *arg, const char *node, const char *text, size_t len, const char *why)
{
	if (text)
		fleet_add(arg, node, text, len);
	else
		fleet_add_error(arg, node, why);
}

static int run(const struct request *req, struct fleet *f)
{
	static const int codes[FLEET_LEVELS] = { EXIT_DONE, 5, 6, 6 };
	_cleanup_strbuf_ struct strbuf out = STRBUF_INIT;
	const char *const args[] = { "status", "--json", req->no_doctor ? "--no-doctor" : NULL,
				     NULL };
	struct cluster_pod *pods = NULL;
	size_t n = 0;
	int r = req->from ? read_all(f, req->from)
			  : cluster_find(&req->cluster, f->arena, &pods, &n);

	if (r == EXIT_DONE && !req->from)
		cluster_ask(&req->cluster, pods, n, args, CLUSTER_ANSWER_MAX, take, f);
	for (size_t i = 0; r == EXIT_DONE && !req->from && i < n; i++) {
		if (pods[i].beside)
			fleet_add_trouble(f, pods[i].node, pods[i].beside);
	}
	if (r == EXIT_DONE && req->record)
		r = record_all(req->record, f);
	if (r != EXIT_DONE)
		return r;
	fleet_judge(f);
	(req->cluster.json ? fleet_json : fleet_text)(f, &out);
	r = print_out(&out);
	return r == EXIT_DONE ? codes[fleet_level(f)] : r;
}

int cluster_status(int argc, char **argv)
{
	struct request req = { .cluster = CLUSTER_INIT };
	const struct word words[] = {
		CLUSTER_WORDS(&req.cluster),
		{ "node", .value = &req.cluster.nodes },
		{ "no-doctor", .flag = &req.no_doctor },
		{ "from", .value = &req.from },
		{ "record", .value = &req.record },
	};
	_cleanup_arena_ struct arena *a = arena_new(64 * 1024);
	struct fleet f = { .arena = a };
	int r = cluster_read(&req.cluster, argc, argv, words, ARRAY_LEN(words), 0, 0);

	if (r == EXIT_DONE && req.from && (req.record || req.cluster.nodes))
		r = fail(EXIT_USAGE, "--from takes neither --record nor --node");
	if (r == EXIT_DONE)
		r = run(&req, &f);
	free(f.rows);
	free(f.fabric.v);
	return r;
}
