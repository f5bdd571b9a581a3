"""The text of a release: what is new, the images and their digests, what a scanner found in them."""
import datetime
import io
import re
import shutil
import subprocess
import tarfile
import tempfile

# The first that is there scans the unpacked image; it finds the packages in var/lib/dpkg/status.d.
SCANNERS = {
    "grype": (["version"], ["--quiet", "dir:{}"]),
    "trivy": (["--version"], ["rootfs", "--quiet", "--scanners", "vuln", "{}"]),
}


def news(text, version):
    """The section of a version."""
    section = re.search(rf"^## {re.escape(version)} .*\n((?:(?!## ).*\n?)*)", text, re.M)
    return section.group(1).strip() if section else ""


def unpack(layout, image, folder):
    for layer in image.layers:
        with tarfile.open(fileobj=io.BytesIO(layout.get(layer)), mode="r:gz") as tar:
            tar.extractall(folder)


def output(*argv):
    """What it says, and whether it ended well."""
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=600, check=False)
    said = done.stdout if done.returncode == 0 else done.stdout + done.stderr
    return said.strip(), done.returncode == 0


def scanned(scanner, layout, image):
    """One architecture's table."""
    with tempfile.TemporaryDirectory(prefix="railmate-scan-") as folder:
        unpack(layout, image, folder)
        said, well = output(scanner, *(word.format(folder) for word in SCANNERS[scanner][1]))
        table = (said or "Nothing was found.").replace(folder, "")
    head = f"{image.platform['architecture']}:" if well else (
        f"{image.platform['architecture']}: **the scan failed**:")
    return f"{head}\n\n```\n{table}\n```"


def scan(layout):
    scanner = next(filter(shutil.which, SCANNERS), None)
    if not scanner:
        return (f"No scanner was run: {' and '.join(SCANNERS)} were not on the machine that made "
                "this release.")
    number = re.search(r"\d+\.\d+\.\d+\S*", output(scanner, *SCANNERS[scanner][0])[0])
    head = f"{scanner} {number.group() if number else ''}".strip()
    today = datetime.datetime.now(datetime.timezone.utc).date()
    tables = [scanned(scanner, layout, image) for image in layout.images()]
    return "\n\n".join([f"{head}, {today}.", *tables])


def image_rows(layouts):
    """layouts: the name of each image → its layout."""
    for name, layout in layouts.items():
        yield f"| `{name}` | | `{layout.digest()}` |"
        for manifest in layout.manifests():
            yield f"| | {manifest['platform']['architecture']} | `{manifest['digest']}` |"


def text(version, what_is_new, layouts):
    """Markdown. The first of the layouts is scanned; the demo's is for looking at."""
    parts = [f"# railmate {version}", what_is_new]
    if layouts:
        rows = "\n".join(image_rows(layouts))
        parts += [f"## Images\n\n| image | | digest |\n|---|---|---|\n{rows}",
                  f"## Known vulnerabilities\n\n{scan(next(iter(layouts.values())))}"]
    parts.append("## Files\n\n`sha256sum -c SHA256SUMS` checks the files of this release.")
    return "\n\n".join(parts) + "\n"
