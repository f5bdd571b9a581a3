"""Two observations of cell.py, side by side: what differs, and which differences are on the written
list."""
import json
import pathlib
import re

LIST = pathlib.Path(__file__).with_name("differences.json")
ABSENT = None


def parsed(value):
    """A variable that holds an object of JSON is compared as one."""
    if isinstance(value, str) and value.startswith("{"):
        try:
            return json.loads(value)
        except ValueError:
            return value
    return value


def flatten(value, path=""):
    """{"a": {"b": 1}} → {"a/b": "1"}; an empty object stays visible."""
    value = parsed(value)
    if isinstance(value, dict) and value:
        flat = {}
        for key, member in value.items():
            flat.update(flatten(member, f"{path}/{key}" if path else str(key)))
        return flat
    return {path: value if isinstance(value, str) else json.dumps(value)}


def flat_observation(seen, both):
    """
    Resource names hold a '/': '#' stands between a name and what is below it. A resource that only
    one side has is one difference, without its devices, socket and files.
    """
    flat = {"exit": seen["exit"]}
    stems = [name.replace("/", "-") for name in both]
    for name, resource in seen["resources"].items():
        flat[f"resources/{name}"] = "registered"
        if name not in both:
            continue
        for path, value in flatten(resource).items():
            flat[f"resources/{name}#{path}"] = value
    for name, file in seen["devinfo"].items():
        if not file["allocated"]:
            flat[f"devinfo of free/{name}"] = "there"
        elif any(name.startswith(f"{stem}-") for stem in stems):
            for path, value in flatten({"mode": file["mode"], "json": file["json"]}).items():
                flat[f"devinfo/{name}#{path}"] = value
    sockets = {f"{name.replace('/', '_')}.sock" for name in both}
    flat.update({f"socket/{name}": "there" for name in seen["sockets"] if name in sockets})
    return flat


def differences(theirs, ours):
    """[(path, theirs, ours)], ABSENT for what one of them does not have; and how many things were
    compared."""
    both = set(theirs["resources"]) & set(ours["resources"])
    a, b = flat_observation(theirs, both), flat_observation(ours, both)
    paths = sorted({*a, *b})
    return [(path, a.get(path), b.get(path))
            for path in paths
            if a.get(path) != b.get(path)], len(paths)


class Rules:
    """The written list: each with a reason, and used or not."""

    def __init__(self, rows=None):
        self.rows = json.loads(LIST.read_text(encoding="utf-8")) if rows is None else rows
        self.used = [0] * len(self.rows)

    @staticmethod
    def fits(row, key, value):
        if key not in row:
            return True
        if row[key] is None or value is None:
            return row[key] is None and value is None
        return re.fullmatch(row[key], value, re.S) is not None

    def reason(self, case, path, theirs, ours):
        """Why this difference is known; None: it is not on the list."""
        for i, row in enumerate(self.rows):
            if re.fullmatch(row["path"], path) and re.fullmatch(row.get("case", ".*"), case) and \
                    self.fits(row, "theirs", theirs) and self.fits(row, "ours", ours):
                self.used[i] += 1
                return row["reason"]
        return None


def judge(rules, case, theirs, ours):
    """(compared, listed, [what is wrong])"""
    found, compared = differences(theirs, ours)
    wrong = [d for d in found if rules.reason(case, *d) is None]
    return compared, len(found) - len(wrong), wrong
