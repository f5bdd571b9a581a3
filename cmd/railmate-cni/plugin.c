#include "cni.h"

#include <errno.h>
#include <limits.h>
#include <spawn.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/mem.h"
#include "base/str.h"
#include "document/document.h"

#define OUTPUT_MAX (4 << 20)

extern char **environ;

bool plugin_is_name(const char *type)
{
	size_t len = strlen(type);

	if (!len || len > NAME_MAX || *type == '.')
		return false;
	for (; *type; type++) {
		if ((unsigned char)*type <= ' ' || *type == '/' || *type == 0x7f)
			return false;
	}
	return true;
}

int plugin_find(const char *type, const char *dirs, struct arena *a, const char **ret,
		struct cni_error *e)
{
	char *rest = arena_strdup(a, dirs), *dir;

	if (!plugin_is_name(type))
		return cni_set(e, CNI_DELEGATE, "'%s' is not the name of a plugin",
			       document_shown(type, a));
	while ((dir = strsep(&rest, ":"))) {
		const char *path = arena_printf(a, "%s/%s", dir, type);
		struct stat st;

		if (*dir && stat(path, &st) == 0 && S_ISREG(st.st_mode) &&
		    access(path, X_OK) == 0) {
			*ret = path;
			return 0;
		}
	}
	return cni_set(e, CNI_DELEGATE, "the plugin %s is not in %s", type, dirs);
}

/* Both ends are files in memory: there is no pipe to wait for that a grandchild keeps open. */
static int memory_file(const char *name, const char *data, size_t len, struct cni_error *e)
{
	int fd = memfd_create(name, MFD_CLOEXEC);

	if (fd < 0 || write(fd, data, len) != (ssize_t)len || lseek(fd, 0, SEEK_SET) < 0) {
		cni_set(e, CNI_IO, "cannot make a file in memory: %m");
		closep(&fd);
		return -1;
	}
	return fd;
}

struct variable {
	const char *name, *value;
};

static char **make_environment(const struct cni_env *env, struct arena *a)
{
	const struct variable ours[] = {
		{ "CNI_COMMAND=", env->command }, { "CNI_CONTAINERID=", env->container },
		{ "CNI_NETNS=", env->netns },	  { "CNI_IFNAME=", env->ifname },
		{ "CNI_ARGS=", env->args },	  { "CNI_PATH=", env->path },
	};
	size_t n = 0, out = 0;
	char **v;

	while (environ[n])
		n++;
	v = arena_array(a, n + ARRAY_LEN(ours) + 1, sizeof(char *));
	for (size_t i = 0; i < n; i++) {
		bool is_ours = false;

		for (size_t k = 0; k < ARRAY_LEN(ours); k++)
			is_ours |= str_starts(environ[i], ours[k].name);
		if (!is_ours)
			v[out++] = environ[i];
	}
	for (size_t k = 0; k < ARRAY_LEN(ours); k++) {
		if (ours[k].value)
			v[out++] = arena_printf(a, "%s%s", ours[k].name, ours[k].value);
	}
	return v;
}

/* Until the plugin has ended; its exit status, or -1. */
static int execute(const char *path, char **env, int in, int out, struct cni_error *e)
{
	char *argv[] = { (char *)path, NULL };
	posix_spawn_file_actions_t actions;
	int r, status;
	pid_t pid;

	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
	posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
	r = posix_spawn(&pid, path, &actions, NULL, argv, env);
	posix_spawn_file_actions_destroy(&actions);
	if (r)
		return cni_set(e, CNI_DELEGATE, "cannot run %s: %s", path, strerror(r));
	while (waitpid(pid, &status, 0) < 0) {
		if (errno != EINTR)
			return cni_set(e, CNI_IO, "cannot wait for %s: %m", path);
	}
	if (WIFSIGNALED(status))
		return cni_set(e, CNI_DELEGATE, "%s was killed: %s", path,
			       strsignal(WTERMSIG(status)));
	return WEXITSTATUS(status);
}

int plugin_judge(const char *path, int status, const char *text, size_t len, struct arena *a,
		 struct plugin_result *ret, struct cni_error *e)
{
	struct plugin_result r = { .status = status, .out = text, .len = len };
	const struct item *code;

	if (document_parse(text, len, path, a, &r.json, NULL) < 0 || r.json->type != ITEM_OBJECT)
		r.json = NULL;
	code = item_get(r.json, "code");
	if (status && !(code && code->whole))
		return cni_set(e, CNI_DELEGATE, "%s ended with status %d and no CNI error%s%s",
			       path, status, len ? ": " : "", document_shown(text, a));
	*ret = r;
	return 0;
}

int plugin_run(const char *program, const struct cni_env *env, const char *conf, size_t len,
	       struct arena *a, struct plugin_result *ret, struct cni_error *e)
{
	_cleanup_close_ int in = -1, out = -1;
	struct stat st;
	int status;
	char *text;

	in = memory_file("conf", conf, len, e);
	if (in < 0)
		return -1;
	out = memory_file("result", "", 0, e);
	if (out < 0)
		return -1;
	status = execute(program, make_environment(env, a), in, out, e);
	if (status < 0)
		return -1;
	if (fstat(out, &st) < 0 || st.st_size > OUTPUT_MAX)
		return cni_set(e, CNI_DELEGATE, "%s printed more than %d bytes", program,
			       OUTPUT_MAX);
	text = arena_alloc(a, (size_t)st.st_size + 1);
	if (pread(out, text, (size_t)st.st_size, 0) != st.st_size)
		return cni_set(e, CNI_IO, "cannot read what %s printed: %m", program);
	return plugin_judge(program, status, text, (size_t)st.st_size, a, ret, e);
}
