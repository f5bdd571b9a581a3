"""What the image is made of, as SPDX 2.3 (https://spdx.github.io/spdx-spec/v2.3/): from what it
says of itself in status.d."""
import re
import time
from urllib.parse import quote

NO = "NOASSERTION"


def timestamp(seconds):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds or 0))


def fields(stanza):
    return dict(re.findall(r"^(\S+): (.*)$", stanza, re.M))


def spdx_id(name):
    return "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", name)


def deb(stanza, distribution, checksums):
    """A package of Debian."""
    said = fields(stanza)
    name, version, arch = said["Package"], said["Version"], said["Architecture"]
    source, _, other = said.get("Source", name).partition(" ")
    package = {
        "SPDXID": spdx_id("deb-" + name),
        "name": name,
        "versionInfo": version,
        "supplier": "Organization: Debian",
        "originator": "Person: " + said["Maintainer"].replace("<", "(").replace(">", ")"),
        "downloadLocation": NO,
        "filesAnalyzed": False,
        "licenseConcluded": NO,
        "licenseDeclared": NO,
        "copyrightText": NO,
        "comment": f"Licence and copyright: /usr/share/doc/{name}/copyright in the image",
        "sourceInfo": f"built from Debian's source package {source} {other.strip('()') or version}",
        "summary": said.get("Description", name),
        "externalRefs": [{
            "referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
            "referenceLocator": f"pkg:deb/debian/{quote(name)}@{quote(version, safe='')}?arch={arch}&distro={distribution}"
        }],
    }
    if "Origin" in said:
        # Of hack/libraries.py: advisories are for the source package.
        package["supplier"] = NO
        package["comment"] += "; " + said["Description"]
        package["externalRefs"][0]["referenceLocator"] = (
            f"pkg:deb/debian/{source}@{quote(version, safe='')}?arch=source&distro={distribution}")
    if "Homepage" in said:
        package["homepage"] = said["Homepage"]
    if checksums.get(name, ("",))[0] == version:
        package["checksums"] = [{"algorithm": "SHA256", "checksumValue": checksums[name][1]}]
    return package


def relation(one, kind, other):
    return {"spdxElementId": one, "relationshipType": kind, "relatedSpdxElement": other}


def document(root, packages, version, digest, date, name="railmate",
             programs_in="/usr/bin and /usr/lib/railmate"):
    """root: of the image; packages: where its libraries are from; digest: of the image's manifest;
    date: seconds or None; programs_in: where ours are."""
    system = dict(
        re.findall(r'^(\w+)="?([^"\n]*)"?$', (root / "usr/lib/os-release").read_text(), re.M))
    distribution = f"{system['ID']}-{system['VERSION_ID']}"
    checksums = packages.downloaded()
    said = {
        path: deb(path.read_text(), distribution, checksums)
        for path in sorted((root / "var/lib/dpkg/status.d").iterdir())
        if path.suffix != ".md5sums"
    }
    has_files = lambda path: path.with_name(path.name + ".md5sums").exists()
    shared = [package for path, package in said.items() if has_files(path)]
    static = [package for path, package in said.items() if not has_files(path)]
    image = {
        "SPDXID": "SPDXRef-image",
        "name": f"{name}-image",
        "versionInfo": version,
        "primaryPackagePurpose": "CONTAINER",
        "checksums": [{"algorithm": "SHA256", "checksumValue": digest}],
        "supplier": NO,
        "downloadLocation": NO,
        "filesAnalyzed": False,
        "licenseConcluded": NO,
        "licenseDeclared": NO,
        "copyrightText": NO,
        "externalRefs": [{
            "referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
            "referenceLocator": f"pkg:oci/{name}@sha256%3A{digest}?arch={packages.arch}"
        }],
    }
    programs = {
        "SPDXID": "SPDXRef-railmate",
        "name": "railmate",
        "versionInfo": version,
        "primaryPackagePurpose": "APPLICATION",
        "supplier": NO,
        "downloadLocation": NO,
        "filesAnalyzed": False,
        "licenseConcluded": "Apache-2.0",
        "licenseDeclared": "Apache-2.0",
        "copyrightText": NO,
        "comment": f"{programs_in} of the image",
    }
    relations = [
        relation("SPDXRef-DOCUMENT", "DESCRIBES",
                 image["SPDXID"]), *(relation(image["SPDXID"], "CONTAINS", package["SPDXID"])
                                     for package in [programs, *shared]),
        *(relation(programs["SPDXID"], "STATIC_LINK", package["SPDXID"]) for package in static)
    ]
    return {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"{name}-{version}-{packages.arch}",
        "documentNamespace": f"https://spdx.org/spdxdocs/{name}-{version}-{packages.arch}-{digest}",
        "creationInfo": {
            "created": timestamp(date), "creators": [f"Tool: railmate-hack-image-{version}"]
        },
        "packages": [image, programs, *shared, *static],
        "relationships": relations,
    }
