"""The script that pushes the archives of a release and signs them, where the keys are."""

SCRIPT = """#!/bin/sh
# Push {name} and sign it by digest. The files of the release lie beside this one; skopeo and cosign are wanted, logged in.
#
#   sh {name}-publish.sh [OPTION…]     options of cosign: --key KEY; none is keyless
set -eu
cd "$(dirname "$0")"
sha256sum -c --quiet SHA256SUMS
{commands}
cosign sign-blob --yes "$@" --bundle SHA256SUMS.sigstore.json SHA256SUMS
"""


def chart_of(image):
    """Helm wants the name of the chart behind the last slash."""
    return f"{image.rpartition('/')[0]}/charts/railmate".lstrip("/")


def commands(file, tagged, layout):
    name = tagged.rpartition(":")[0]
    yield f"skopeo copy --all --preserve-digests oci-archive:{file} docker://{tagged}"
    yield f'cosign sign --yes --recursive "$@" {name}@{layout.digest()}'
    for manifest in layout.manifests():
        if "platform" in manifest:
            sbom = f"{file.removesuffix('.oci.tar')}.{manifest['platform']['architecture']}.spdx.json"
            yield f'cosign attest --yes "$@" --type spdxjson --predicate {sbom} {name}@{manifest["digest"]}'


def script(name, pushed):
    """pushed: file → (the name that it gets with its tag, its layout)."""
    lines = [line for file, (tagged, layout) in pushed.items() for line in commands(file, tagged, layout)]
    return SCRIPT.format(name=name, commands="\n".join(lines))
