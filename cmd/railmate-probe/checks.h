/*
 * Checks of the container that need no traffic: its limits and nodes (doctor in the container), the
 * image's own libibverbs and providers beside ours, and the job's process. Each finding goes to the
 * report.
 */
#ifndef RAILMATE_PROBE_CHECKS_H
#define RAILMATE_PROBE_CHECKS_H

#include <sys/types.h>

struct report;
struct sysroot;
struct told;

/* memlock, /dev/shm, uverbs nodes against map.json (absent, of another VF, not to be opened),
 * rdma_cm, GIDs, PCIe links. root: "/", or a folder of a test. */
void check_container(const struct sysroot *root, const struct told *told, struct report *r);
/*
 * The image's libibverbs and providers: asked in a child process under the image's own loader;
 * where that is not glibc, or too old for it, read as files. A difference to what our libibverbs
 * sees is a finding.
 */
void check_image(const struct sysroot *root, const struct told *told, struct report *r);
/* Body of that child: `railmate-probe --image-verbs`. Writes JSON to standard output; returns the
 * exit status. */
int image_verbs_main(void);
/*
 * This program once more, under the image's own loader: libraries of the image may need a newer C
 * library than ours. Returns where that loader runs it already, does not run it, or where it has no
 * loader of its own beside it.
 */
void image_become(char **argv);
/*
 * The job's process: which libibverbs and providers it has mapped and their ABI against the
 * kernel's, which uverbs it has open against map.json, bytes of its VFs against those of eth0 for
 * `seconds`. One line: your job uses TCP, …
 */
void check_process(const struct sysroot *root, pid_t pid, double seconds, const struct told *told,
		   struct report *r);
/* The process of that name (comm or the last part of argv[0]); -ESRCH: none, or several, with a
 * finding. */
pid_t check_process_find(const struct sysroot *root, const char *name, struct report *r);

#endif
