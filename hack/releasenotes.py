"""The text of a release: its section of NEWS.md, and the images with their digests."""
import re


def news(text, version):
    """The section of a version."""
    section = re.search(rf"^## {re.escape(version)} .*\n((?:(?!## ).*\n?)*)", text, re.M)
    return section.group(1).strip() if section else ""


def image_rows(layouts):
    """layouts: the name of each image → its layout."""
    for name, layout in layouts.items():
        yield f"| `{name}` | | `{layout.digest()}` |"
        for manifest in layout.manifests():
            yield f"| | {manifest['platform']['architecture']} | `{manifest['digest']}` |"


def text(version, what_is_new, layouts):
    """Markdown."""
    parts = [f"# railmate {version}", what_is_new]
    if layouts:
        rows = "\n".join(image_rows(layouts))
        parts.append(f"## Images\n\n| image | | digest |\n|---|---|---|\n{rows}")
    parts.append("## Files\n\n`sha256sum -c SHA256SUMS` checks the files of this release.")
    return "\n\n".join(parts) + "\n"
