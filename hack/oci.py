"""OCI image layouts in a tar (https://github.com/opencontainers/image-spec): equal contents give equal
bytes."""
import gzip
import hashlib
import io
import json
import tarfile

KIND = "application/vnd.oci.image."
HELM = "application/vnd.cncf.helm."


class Image:
    """One architecture's: config as JSON says it, and descriptors of its layers."""

    def __init__(self, platform, config, layers):
        self.platform, self.config, self.layers = platform, config, layers


class Layout:
    """file name → bytes"""

    def __init__(self, files=None):
        self.files = files or {
            "oci-layout": json.dumps({"imageLayoutVersion": "1.0.0"}).encode()
        }

    def add(self, data, kind, of=KIND):
        digest = hashlib.sha256(data).hexdigest()
        self.files["blobs/sha256/" + digest] = data
        return {"mediaType": of + kind, "digest": "sha256:" + digest, "size": len(data)}

    def add_json(self, value, kind):
        return self.add(json.dumps(value, sort_keys=True).encode(), kind)

    def add_layer(self, tar):
        """The descriptor, and what a config calls the layer."""
        return (self.add(gzip.compress(tar, 9, mtime=0), "layer.v1.tar+gzip"),
                "sha256:" + hashlib.sha256(tar).hexdigest())

    def get(self, descriptor):
        return self.files[path(descriptor)]

    def add_image(self, image):
        """The descriptor of its manifest."""
        config = self.add_json(image.config, "config.v1+json")
        return {**self.add_manifest(config, image.layers), "platform": image.platform}

    def add_chart(self, archive, about):
        """A chart of Helm, about being its Chart.yaml; the descriptor of its manifest."""
        config = self.add(json.dumps(about, sort_keys=True).encode(), "config.v1+json", HELM)
        return self.add_manifest(config, [self.add(archive, "chart.content.v1.tar+gzip", HELM)])

    def add_manifest(self, config, layers):
        kind = "manifest.v1+json"
        return self.add_json(
            {
                "schemaVersion": 2,
                "mediaType": KIND + kind,
                "config": config,
                "layers": layers
            }, kind)

    def finish(self, manifests, tag):
        """Give it its name; the digest under which a registry will have it. Of one architecture it is for
        `docker load`, too."""
        top = manifests[0]
        if len(manifests) > 1:
            kind = "index.v1+json"
            top = self.add_json(
                {
                    "schemaVersion": 2,
                    "mediaType": KIND + kind,
                    "manifests": manifests
                }, kind)
        elif "platform" in top:
            manifest = json.loads(self.get(top))
            self.files["manifest.json"] = json.dumps([{
                "Config": path(manifest["config"]),
                "RepoTags": [tag],
                "Layers": [path(layer) for layer in manifest["layers"]]
            }]).encode()
        named = {
            "org.opencontainers.image.ref.name": tag.rpartition(":")[2],
            "io.containerd.image.name": "docker.io/library/" + tag if "/" not in tag else tag
        }
        self.files["index.json"] = json.dumps({
            "schemaVersion": 2,
            "manifests": [{**top, "annotations": named}]
        }).encode()
        return top["digest"]

    def write(self, file):
        with tarfile.open(file, "w", format=tarfile.GNU_FORMAT) as tar:
            for name in sorted(self.files):
                info = tarfile.TarInfo(name)
                info.size, info.mode = len(self.files[name]), 0o644
                tar.addfile(info, io.BytesIO(self.files[name]))

    def digest(self):
        return json.loads(self.files["index.json"])["manifests"][0]["digest"]

    def manifests(self):
        """Descriptors, one an architecture."""
        (top,) = json.loads(self.files["index.json"])["manifests"]
        return json.loads(self.get(top))["manifests"] if "index" in top["mediaType"] else [top]

    def images(self):
        for descriptor in self.manifests():
            manifest = json.loads(self.get(descriptor))
            yield Image(descriptor["platform"], json.loads(self.get(manifest["config"])),
                        manifest["layers"])


def path(descriptor):
    return "blobs/" + descriptor["digest"].replace(":", "/")


def read(file):
    with tarfile.open(file) as tar:
        return Layout({
            member.name: tar.extractfile(member).read()
            for member in tar.getmembers() if member.isfile()
        })
