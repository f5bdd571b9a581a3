"""The files of the repository, for the checks, and its date."""
import os
import pathlib
import re
import shutil
import subprocess

SKIP = re.compile(r"(^|/)(\.git|\.cache|build(-[^/]*)?|__pycache__)(/|$)")


def source_files(top):
    """Names of what git has or would take; of everything, where there is no git."""
    listed = b""
    if shutil.which("git"):
        listed = subprocess.run(
            ["git", "-C", str(top), "ls-files", "-coz", "--exclude-standard"],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False).stdout
    names = set(listed.decode().split("\0")) - {""} or {
        str(path.relative_to(top))
        for path in pathlib.Path(top).rglob("*")
    }
    return [name for name in sorted(names) if not SKIP.search(name) and (top / name).is_file()]


def source_date(top):
    """Seconds: SOURCE_DATE_EPOCH (https://reproducible-builds.org/specs/source-date-epoch/), else
    of the commit, else None."""
    said = os.environ.get("SOURCE_DATE_EPOCH", "")
    if not said and shutil.which("git"):
        said = subprocess.run(["git", "-C", str(top), "log", "-1", "--format=%ct"],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                              check=False).stdout.strip()
    return int(said) if said else None
