/*
 * A process of the job while it runs: the libraries it has mapped, the devices it has open, and
 * which way its bytes go. The text of /proc/PID is the tenant's in its names alone; lines, lists
 * and times are bounded.
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/list.h"
#include "base/mem.h"
#include "base/str.h"
#include "checks.h"
#include "library.h"
#include "nodes.h"
#include "report.h"
#include "sysroot/sysroot.h"
#include "told.h"

#define LIST_MAX    64
#define LINES_MAX   1000000
#define SECONDS_MAX 600.0
#define MOVED	    1e6 /* bytes a second: less is a keep-alive */

/* --- by name --- */

struct by_name {
	const struct sysroot *root;
	const char *name;
	struct arena *a;
	pid_t pid;
	size_t n;
	const char *all; /* "41, 42" */
};

static bool is_called(const struct sysroot *root, const char *pid, const char *name)
{
	char text[4096], *last;
	int fd, n;

	if (sysroot_read(root, text, 64, "proc/%s/comm", pid) >= 0 && str_eq(text, name))
		return true;
	fd = sysroot_openat(root, O_RDONLY, "proc/%s/cmdline", pid);
	n = fd < 0 ? -1 : (int)read(fd, text, sizeof(text) - 1);
	if (fd >= 0)
		close(fd);
	if (n <= 0)
		return false;
	text[n] = '\0'; /* argv[0] ends before that */
	last = strrchr(text, '/');
	return str_eq(last ? last + 1 : text, name);
}

static int take_pid(void *arg, const char *entry)
{
	struct by_name *b = arg;
	int pid;

	if (str_to_int(entry, &pid) < 0 || pid <= 0 || pid == getpid() ||
	    !is_called(b->root, entry, b->name))
		return 0;
	b->pid = pid;
	if (b->n++ < 16)
		b->all = b->all ? arena_printf(b->a, "%s, %d", b->all, pid)
				: arena_printf(b->a, "%d", pid);
	return 0;
}

pid_t check_process_find(const struct sysroot *root, const char *name, struct report *r)
{
	struct by_name b = { .root = root, .name = name, .a = r->arena };

	sysroot_each(root, "proc", take_pid, &b);
	if (b.n == 1)
		return b.pid;
	if (b.n)
		report_finding(r, OUTCOME_NOT_MEASURED, "process-several", name,
			       "%zu processes have this name: %s%s", b.n, b.all,
			       b.n > 16 ? ", …" : "");
	else
		report_finding(r, OUTCOME_NOT_MEASURED, "process-none", name,
			       "No process of this container has this name");
	return -ESRCH;
}

/* --- what it has --- */

struct list {
	const char *v[LIST_MAX];
	size_t n;
};

struct job {
	const struct sysroot *root;
	const struct sysroot
		*files; /* what paths of its maps are below: its own root; NULL: not to be opened */
	const struct told *told;
	struct report *r;
	pid_t pid;
	const char *on;	    /* "process 41 (python3)" */
	struct list verbs;  /* paths of libibverbs */
	struct list plugin; /* paths of its providers */
	struct list nccl;
	const char *deleted; /* a mapped library whose file is gone; NULL: none */
	size_t open;	     /* its own devices */
	struct list foreign; /* "uverbs0 (mlx5_0)" */
};

static void add(struct list *l, const char *s)
{
	if (l->n < LIST_MAX && !list_has(l->v, l->n, s))
		l->v[l->n++] = s;
}

static const char *joined(const struct list *l, struct arena *a)
{
	const char *text = l->n ? l->v[0] : "none";

	for (size_t i = 1; i < l->n; i++)
		text = arena_printf(a, "%s, %s", text, l->v[i]);
	return text;
}

static void take_mapping(struct job *j, char *path)
{
	static const char gone[] = " (deleted)";
	size_t n = strlen(path);
	const char *name = strrchr(path, '/') + 1, *copy;
	bool deleted = n >= sizeof(gone) && str_eq(path + n - (sizeof(gone) - 1), gone);
	struct list *l = NULL;

	if (str_starts(name, "libibverbs") && strstr(name, ".so"))
		l = &j->verbs;
	else if (str_starts(name, "lib") && strstr(name, "-rdmav"))
		l = &j->plugin;
	else if (str_starts(name, "libnccl.so") || str_starts(name, "librccl.so"))
		l = &j->nccl;
	if (!l)
		return;
	if (deleted)
		path[n - (sizeof(gone) - 1)] = '\0';
	str_printable(path, strlen(path), "");
	copy = arena_strdup(j->r->arena, path);
	add(l, copy);
	if (deleted)
		j->deleted = copy;
}

static int read_maps(struct job *j)
{
	int fd = sysroot_openat(j->root, O_RDONLY, "proc/%d/maps", (int)j->pid), error;
	FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
	char line[8192], *path;

	if (!f)
		return fd < 0 ? fd : -errno;
	for (int i = 0; i < LINES_MAX && fgets(line, sizeof(line), f); i++) {
		line[strcspn(line, "\n")] = '\0';
		path = strchr(line, '/');
		if (path)
			take_mapping(j, path);
	}
	error = ferror(f) ? -EIO : 0;
	fclose(f);
	return error;
}

static int take_descriptor(void *arg, const char *fd)
{
	struct job *j = arg;
	struct node node;
	char name[64];

	if (sysroot_link_name(j->root, name, sizeof(name), "proc/%d/fd/%s", (int)j->pid, fd) < 0 ||
	    !str_starts(name, "uverbs") || node_read(j->root, name, &node) < 0)
		return 0;
	for (size_t i = 0; i < j->told->n_vfs; i++) {
		if (str_eq(j->told->vfs[i].hca, node.ibdev)) {
			j->open++;
			return 0;
		}
	}
	add(&j->foreign, arena_printf(j->r->arena, "%s (%s)", name, node.ibdev));
	return 0;
}

/* --- its bytes --- */

struct bytes {
	bool counted;	/* a counter of a VF could be read */
	double rdma;	/* payload of the VFs' ports, in bytes */
	double packets; /* of soft RDMA, which counts no bytes */
	double vf_net;	/* of the VFs' interfaces */
	double other_net;
	double most; /* of the busiest of these */
	const char *busiest;
};

static double counter(const struct job *j, const struct told_vf *vf, const char *name)
{
	uint64_t n;

	return sysroot_read_u64(j->root, 10, &n, "sys/class/infiniband/%s/ports/%d/%s", vf->hca,
				vf->port, name) < 0
		       ? 0
		       : (double)n;
}

/* A port's: InfiniBand's in words of 4 bytes, and where a driver has none of these, its own. */
static void count_port(const struct job *j, const struct told_vf *vf, struct bytes *b)
{
	static const char *const own[] = { "tx_bytes",	  "rx_bytes",	  "ip4OutOctets",
					   "ip4InOctets", "ip6OutOctets", "ip6InOctets" };
	double standard = 4 * (counter(j, vf, "counters/port_xmit_data") +
			       counter(j, vf, "counters/port_rcv_data"));
	char name[64];

	b->counted |= sysroot_exists(j->root, "sys/class/infiniband/%s/ports/%d/counters", vf->hca,
				     vf->port) ||
		      sysroot_exists(j->root, "sys/class/infiniband/%s/ports/%d/hw_counters",
				     vf->hca, vf->port);
	for (size_t i = 0; i < ARRAY_LEN(own) && standard == 0; i++) {
		snprintf(name, sizeof(name), "hw_counters/%s", own[i]);
		b->rdma += counter(j, vf, name);
	}
	b->rdma += standard;
	b->packets +=
		counter(j, vf, "hw_counters/sent_pkts") + counter(j, vf, "hw_counters/rcvd_pkts");
}

/* A line of /proc/PID/net/dev: "  eth0: <received bytes> <7 numbers> <sent bytes> …". */
static void count_interface(const struct job *j, char *line, struct bytes *b)
{
	unsigned long long received, sent;
	char *colon = strchr(line, ':'), *name = line + strspn(line, " ");
	bool is_vf = false;

	if (!colon ||
	    sscanf(colon + 1, "%llu %*u %*u %*u %*u %*u %*u %*u %llu", &received, &sent) != 2)
		return;
	*colon = '\0';
	for (size_t i = 0; i < j->told->n_vfs; i++)
		is_vf |= str_eq(j->told->vfs[i].netdev, name);
	if (is_vf)
		b->vf_net += (double)(received + sent);
	if (is_vf || str_eq(name, "lo"))
		return;
	b->other_net += (double)(received + sent);
	if ((double)(received + sent) >= b->most) {
		b->most = (double)(received + sent);
		b->busiest = name; /* of the arena's copy of the file */
	}
}

static struct bytes count(const struct job *j)
{
	struct bytes b = { .rdma = 0 };
	char *text = arena_alloc(j->r->arena, 1 << 18), *rest = NULL;

	for (size_t i = 0; i < j->told->n_vfs; i++) {
		if (j->told->vfs[i].hca)
			count_port(j, &j->told->vfs[i], &b);
	}
	if (sysroot_read(j->root, text, 1 << 18, "proc/%d/net/dev", (int)j->pid) < 0)
		return b;
	for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		count_interface(j, line, &b);
	return b;
}

/* Bytes a second. */
static struct bytes rates(const struct job *j, double seconds)
{
	struct bytes before = count(j), after;
	struct timespec nap;

	seconds = seconds > 0 ? fmin(seconds, SECONDS_MAX) : 1;
	nap.tv_sec = (time_t)seconds;
	nap.tv_nsec = (long)((seconds - (double)nap.tv_sec) * 1e9);
	while (nanosleep(&nap, &nap) < 0 && errno == EINTR)
		;
	after = count(j);
	return (struct bytes) { .counted = after.counted,
				.rdma = (after.rdma - before.rdma) / seconds,
				.packets = (after.packets - before.packets) / seconds,
				.vf_net = (after.vf_net - before.vf_net) / seconds,
				.other_net = (after.other_net - before.other_net) / seconds,
				.busiest = after.busiest ? after.busiest : "eth0" };
}

/* --- judgement --- */

/* A libibverbs that the process has, and that can find no device of this VF. */
static const char *no_provider(const struct job *j, const char *path, const char *provider)
{
	struct arena *a = j->r->arena;
	struct library l;
	const char *where, *name;
	int abi;

	for (size_t i = 0; i < j->plugin.n; i++) {
		name = strrchr(j->plugin.v[i], '/') + 4; /* behind "lib" */
		if (str_starts(name, provider) &&
		    sscanf(name + strlen(provider), "-rdmav%d", &abi) == 1)
			return library_read(j->files, path, a, &l) == 0 && l.abi != abi
				       ? arena_printf(a,
						      "of ABI %d, and its %s provider is of ABI %d",
						      l.abi, provider, abi)
				       : NULL;
	}
	/* It loads all of them at once, when it is asked for devices, and may not have been. */
	if (j->plugin.n || (library_read(j->files, path, a, &l) == 0 &&
			    library_provider(j->files, &l, provider, a, &where) != PROVIDER_THERE))
		return arena_printf(a, "which has no %s provider", provider);
	return NULL;
}

static void judge_libraries(const struct job *j)
{
	char provider[64];
	const char *fault;

	report_finding(j->r, OUTCOME_GOOD, "job-libraries", j->on,
		       "It has libibverbs: %s; NCCL: %s; %zu of its VFs' devices open",
		       joined(&j->verbs, j->r->arena), joined(&j->nccl, j->r->arena), j->open);
	if (j->deleted)
		report_finding(j->r, OUTCOME_SLOW, "job-deleted", j->on,
			       "It runs with %s, and that file is gone", j->deleted);
	if (j->foreign.n)
		report_finding(j->r, OUTCOME_SLOW, "job-foreign", j->on,
			       "It has devices open that are not this container's: %s",
			       joined(&j->foreign, j->r->arena));
	for (size_t i = 0; j->files && i < j->verbs.n * !!j->told->n_vfs; i++) {
		if (node_provider(j->root, &j->told->vfs[0], provider, sizeof(provider)) < 0)
			continue;
		fault = no_provider(j, j->verbs.v[i], provider);
		if (fault)
			report_finding(j->r, OUTCOME_BROKEN, "job-provider", j->on,
				       "Your job uses %s%s, %s",
				       j->verbs.n > 1 ? "a second libibverbs, " : "libibverbs ",
				       j->verbs.v[i], fault);
	}
}

static const char *why_tcp(const struct job *j)
{
	if (!j->verbs.n)
		return "it has no libibverbs";
	return j->open ? "its devices are open and idle" : "it has no device of its VFs open";
}

static void judge_bytes(const struct job *j, const struct bytes *b, double seconds)
{
	bool soft = b->packets > 1000; /* their frames are counted as the interface's, too */

	if (b->rdma < MOVED && soft)
		report_finding(
			j->r, OUTCOME_GOOD, "job-rdma", j->on,
			"Your job uses RDMA: %.0f packets a second over its VFs, by a soft device that counts no bytes",
			b->packets);
	else if (b->rdma >= MOVED)
		report_finding(j->r, OUTCOME_GOOD, "job-rdma", j->on,
			       "Your job uses RDMA: %.3f GB/s over its VFs, %.3f GB/s over %s",
			       b->rdma / 1e9, b->other_net / 1e9, b->busiest);
	else if (!b->counted && j->told->n_vfs)
		report_finding(
			j->r, OUTCOME_NOT_MEASURED, "job-uncounted", j->on,
			"The counters of its VFs cannot be read here; %.3f GB/s went over %s",
			b->other_net / 1e9, b->busiest);
	else if (b->other_net >= MOVED && b->vf_net < MOVED && j->verbs.n && j->open)
		report_finding(j->r, OUTCOME_SLOW, "job-tcp", j->on,
			       "Nothing went by RDMA in %g s, and %.3f GB/s over %s: %s", seconds,
			       b->other_net / 1e9, b->busiest, why_tcp(j));
	else if (b->other_net >= MOVED || b->vf_net >= MOVED)
		report_finding(j->r, OUTCOME_BROKEN, "job-tcp", j->on,
			       "Your job uses TCP: %.3f GB/s over %s, no RDMA: %s",
			       (b->other_net + b->vf_net) / 1e9,
			       b->vf_net > b->other_net ? "its VFs' interfaces" : b->busiest,
			       why_tcp(j));
	else
		report_finding(j->r, OUTCOME_NOT_MEASURED, "job-idle", j->on,
			       "Nothing moved in %g s: %s", seconds, why_tcp(j));
}

void check_process(const struct sysroot *root, pid_t pid, double seconds, const struct told *told,
		   struct report *r)
{
	struct job *j = arena_alloc(r->arena, sizeof(*j));
	struct sysroot *own = NULL;
	char comm[64], fds[64];
	struct bytes b;
	int error;

	if (sysroot_read(root, comm, sizeof(comm), "proc/%d/comm", (int)pid) < 0)
		strcpy(comm, "gone");
	str_printable(comm, strlen(comm), "");
	*j = (struct job) { .root = root, .told = told, .r = r, .pid = pid };
	j->on = arena_printf(r->arena, "process %d (%s)", (int)pid, comm);
	error = read_maps(j);
	snprintf(fds, sizeof(fds), "proc/%d/fd", (int)pid);
	if (!error)
		error = sysroot_each(root, fds, take_descriptor, j);
	if (error) {
		report_finding(r, OUTCOME_NOT_MEASURED,
			       error == -ENOENT ? "process-none" : "process-access", j->on,
			       "It cannot be looked into: %s", strerror(-error));
		return;
	}
	if (sysroot_is_live(root)) {
		/* a process may be of another container, or of one where this program is the node's
		 */
		sysroot_open(arena_printf(r->arena, "/proc/%d/root", (int)pid), &own, NULL);
		j->files = own;
	} else {
		j->files = root;
	}
	judge_libraries(j);
	sysroot_close(own);
	b = rates(j, seconds);
	judge_bytes(j, &b, seconds);
}
