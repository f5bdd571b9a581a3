/*
 * Do containers of a pod still run? Its cgroup tells, which the kubelet names after the pod's UID:
 * "pod<uid>", or with the systemd driver "…-pod<uid>.slice", each '-' of the UID a '_'
 * (pkg/kubelet/cm/pod_container_manager_linux.go, cgroup_manager_linux.go). Any thread.
 */
#ifndef RAILMATE_TRACKER_CGROUP_H
#define RAILMATE_TRACKER_CGROUP_H

/* One thread, as a sandbox has: while that runs, no container does. */
#define TRACKER_POD_IS_SANDBOX 2
/* Its cgroup is there and has no process, but a child of CRI-O's: that of a sandbox, before the
 * first container and between two. */
#define TRACKER_POD_IS_EMPTY 3

/*
 * dir: where the cgroup file system is mounted, version 1 or 2. 1: the pod has processes; or
 * TRACKER_POD_IS_SANDBOX or TRACKER_POD_IS_EMPTY. 0: there is no cgroup of that
 * pod, or none with a process. -ENODATA: no
 * kubelet keeps its pods in this tree. -errno: the tree cannot be read. Both decide nothing.
 */
int tracker_pod_runs(const char *dir, const char *uid);

#endif
