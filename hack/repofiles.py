"""The files of the repository, for the checks."""
import pathlib
import re
import shutil
import subprocess

SKIP = re.compile(r"(^|/)(\.git|\.cache|build(-[^/]*)?|__pycache__)(/|$)")


def source_files(top):
    """Names of what git has or would take; of everything, where there is no git."""
    listed = b""
    if shutil.which("git"):
        listed = subprocess.run(["git", "-C", str(top), "ls-files", "-coz", "--exclude-standard"],
                                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False).stdout
    names = set(listed.decode().split("\0")) - {""} or {str(path.relative_to(top)) for path in pathlib.Path(top).rglob("*")}
    return [name for name in sorted(names) if not SKIP.search(name) and (top / name).is_file()]
