"""The configuration of containerd, of the nodes of all beds."""
import json


def containerd_config(pause, plugins, networks, runc, old=False, **cni):
    """TOML. plugins, networks: where CNI finds its programs and files; runc: what its shim is told;
    old: for containerd 1; cni: what else the pods' network has."""
    cri = f"plugins.'io.containerd.{'grpc.v1.cri' if old else 'cri.v1.runtime'}'"
    shim = f"{cri}.containerd.runtimes.runc"
    tables = {
        # In a container no oom_score_adj may be lowered, and no AppArmor profile is loaded.
        cri: {"restrict_oom_score_adj": True, "disable_apparmor": True},
        f"{cri}.cni": {"conf_dir": str(networks), **cni},
        shim: {"runtime_type": "io.containerd.runc.v2"},
        f"{shim}.options": runc,
    }
    if old:
        tables[cri]["sandbox_image"] = pause
        tables[f"{cri}.cni"]["bin_dir"] = str(plugins)
    else:
        tables["plugins.'io.containerd.cri.v1.images'.pinned_images"] = {"sandbox": pause}
        tables[f"{cri}.cni"]["bin_dirs"] = [str(plugins)]
    lines = [f"version = {2 if old else 3}"]
    for table, values in tables.items():
        lines += [f"[{table}]", *(f"{name} = {json.dumps(value)}" for name, value in values.items())]
    return "\n".join(lines) + "\n"
