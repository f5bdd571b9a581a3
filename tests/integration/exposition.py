"""
Prometheus' text format, read strictly: whatever breaks a rule of it, or of what `promtool check
metrics` wants of names, is an error. Standard library only.
"""

import re

NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"')
VALUE = re.compile(r"[-+]?(?:\d+(?:\.\d+)?(?:e[-+]?\d+)?|Inf)|NaN")
PARTS = {
    "counter": ("", ), "gauge": ("", ), "histogram": ("_bucket", "_sum", "_count")
}
UNITS = re.compile(
    r"_(ms|milliseconds|us|ns|minutes|hours|kb|kib|mb|mib|megabytes|bits|percent|kbps)(_|$)")
TYPE_WORDS = re.compile(r"_(gauge|histogram|summary)(_|$)")


class Exposition:
    """families: name → type; samples: (name, sorted labels) → value, with `value(name, label=…)`
    and `all(name)`."""

    def __init__(self, text):
        self.families, self.samples, self.help = {}, {}, {}
        if not text.endswith("\n"):
            raise ValueError("the last line has no end")
        lines = text.split("\n")[:-1]
        self.current, self.closed = None, set()
        for line in lines:
            self.read(line)
        for name, kind in self.families.items():
            if kind == "histogram":
                self.check_histogram(name)
            self.lint(name, kind)

    def read(self, line):
        meta = re.fullmatch(r"# (HELP|TYPE) (\S+) (.+)", line)
        if meta:
            self.meta(*meta.groups())
            return
        name = NAME.match(line)
        if not name or line.startswith("#"):
            raise ValueError(f"neither a comment nor a sample: {line!r}")
        labels, rest = {}, line[name.end():]
        if rest.startswith("{"):
            rest = rest[1:]
            while not rest.startswith("}"):
                label = LABEL.match(rest)
                if not label or label.group(1) in labels:
                    raise ValueError(f"a label is wrong, or there twice: {line!r}")
                labels[label.group(1)] = re.sub(r"\\(.)",
                                                lambda m: "\n" if m.group(1) == "n" else m.group(1),
                                                label.group(2))
                rest = rest[label.end():]
                if rest.startswith(","):
                    rest = rest[1:]
                elif not rest.startswith("}"):
                    raise ValueError(f"a label does not end: {line!r}")
            rest = rest[1:]
        if not rest.startswith(" ") or not VALUE.fullmatch(rest[1:]):
            raise ValueError(f"no value: {line!r}")
        self.sample(name.group(), labels, float(rest[1:]))

    def meta(self, what, name, rest):
        if not NAME.fullmatch(name):
            raise ValueError(f"{name!r} is not a name")
        if name != self.current:
            if name in self.closed:
                raise ValueError(f"{name}: its lines do not stand together")
            if self.current:
                self.closed.add(self.current)
            self.current = name
        known = self.help if what == "HELP" else self.families
        if name in known:
            raise ValueError(f"{name}: {what} twice")
        if what == "TYPE" and rest not in PARTS:
            raise ValueError(f"{name}: type {rest}")
        known[name] = rest

    def sample(self, name, labels, value):
        family, kind = self.current, self.families.get(self.current)
        suffixes = PARTS.get(kind, ())
        if not family or name not in [family + s for s in suffixes]:
            raise ValueError(f"{name} is not a sample of {family} ({kind})")
        if kind == "counter" and value < 0:
            raise ValueError(f"{name}: a counter below zero")
        key = name, tuple(sorted(labels.items()))
        if key in self.samples:
            raise ValueError(f"{key}: twice")
        self.samples[key] = value

    def check_histogram(self, name):
        groups = {}
        for (sample, labels), value in self.samples.items():
            if sample == name + "_bucket":
                le = dict(labels)["le"]
                rest = tuple(pair for pair in labels if pair[0] != "le")
                groups.setdefault(rest, []).append((float(le), value))
        for labels, buckets in groups.items():
            bounds, counts = [b for b, _ in buckets], [c for _, c in buckets]
            if bounds != sorted(
                    set(bounds)) or bounds[-1] != float("inf") or counts != sorted(counts):
                raise ValueError(f"{name}{labels}: {buckets}")
            if self.samples[name + "_count", labels] != counts[-1]:
                raise ValueError(f"{name}{labels}: _count is not that of +Inf")
            self.samples[name + "_sum", labels]  # there

    def lint(self, name, kind):
        if name not in self.help:
            raise ValueError(f"{name} has no HELP")
        counter = name.endswith("_total")
        if counter != (kind == "counter"):
            raise ValueError(f"{name}: a name ends with _total if, and only if, it is a counter's")
        if UNITS.search(name) or TYPE_WORDS.search(name) or re.search("[A-Z:]", name):
            raise ValueError(f"{name}: base units, no type, lower case")

    def all(self, name):
        return {labels: value for (sample, labels), value in self.samples.items() if sample == name}

    def value(self, name, **labels):
        found = [
            value for have, value in self.all(name).items() if labels.items() <= dict(have).items()
        ]
        if len(found) != 1:
            raise KeyError(f"{name}{labels}: {len(found)} samples")
        return found[0]
