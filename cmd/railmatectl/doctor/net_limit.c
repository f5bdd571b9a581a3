/* Limits of this process that a container's programs have too: they mean something inside one only.
 */
#include "base/mem.h"
#include "doctor/net-internal.h"

#define MIB ((int64_t)1 << 20)

static const char only_inside[] = "Run it in the container: railmatectl doctor --only memlock,shm.";

/* --- memlock --- */

static const struct diagnosis_advice memlock_elsewhere = {
	"RDMA locks every buffer in memory; what a container may lock is the runtime's decision, not this process's.",
	{ only_inside },
};

static void run_memlock(const struct facts *f, struct diagnosis *r)
{
	int64_t limit = f->net->memlock;

	if (!f->live || f->container == FACTS_NO)
		return;
	if (f->container != FACTS_YES)
		diagnosis_add(
			r, DIAGNOSIS_UNKNOWN, &memlock_elsewhere, "here",
			"Whether this is a container is not known, nor what it may lock in memory.");
	else if (limit == -1 || f->net->ipc_lock == FACTS_YES)
		diagnosis_add(r, DIAGNOSIS_PASS, NULL, "container",
			      "This container may lock any amount of memory%s.",
			      limit == -1 ? "" : " (it has IPC_LOCK)");
	else if (limit < 0 || f->net->ipc_lock == FACTS_UNKNOWN)
		doctor_unknown(r, memlock_small, "container",
			       "How much memory this container may lock is not known.");
	else
		doctor_warn(r, memlock_small, "container",
			    "This container may lock %lld KiB of memory and has no IPC_LOCK.",
			    (long long)limit / 1024);
}

/* --- shm --- */

static const struct diagnosis_advice shm_elsewhere = {
	"A container's /dev/shm has 64 MiB unless the pod says more, which is little for NCCL.",
	{ only_inside },
};

static void run_shm(const struct facts *f, struct diagnosis *r)
{
	int64_t size = f->net->shm;

	if (!f->live || f->container == FACTS_NO)
		return;
	if (f->container != FACTS_YES)
		diagnosis_add(
			r, DIAGNOSIS_UNKNOWN, &shm_elsewhere, "here",
			"Whether this is a container, and has its own /dev/shm, is not known.");
	else if (size < 0)
		doctor_unknown(r, shm_small, "container", "The size of /dev/shm is not known.");
	else
		diagnosis_add(r, size > 64 * MIB ? DIAGNOSIS_PASS : DIAGNOSIS_WARN,
			      size > 64 * MIB ? NULL : &doctor_shm_small, "container",
			      "/dev/shm has %lld MiB.", (long long)(size / MIB));
}

const struct diagnosis_check doctor_limit_checks[] = {
	{ "memlock", "memory that a container may lock", .run = run_memlock },
	{ "shm", "size of /dev/shm", .run = run_shm },
};
const size_t doctor_limit_checks_n = ARRAY_LEN(doctor_limit_checks);
