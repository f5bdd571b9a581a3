#!/usr/bin/python3 -SE
"""
A kubectl for tests: answers as kubectl does, from cluster.json beside it, and notes how it was
called in calls.jsonl, and what `exec -i` read in inputs.jsonl.

    {"pods": {namespace: [pod, …]},                       # as objects of the API, with what is read
    of them
     "exec": {pod: {command: {"out", "err", "code", "sleep", "repeat"}}},  # command: of
     railmatectl, or a program, with --serve or --peer of it
     "logs": {pod: {…}},
     "fail": {verb: {…}}}                                   # what every call of that verb says
"""
import json
import os
import pathlib
import re
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent


def value_of(thing, path):
    """One jsonpath of those that we use: .a.b\\.c[0].d[?(@.name=="x")].e; what is not there is empty."""
    for key, at, what, name in re.findall(r'\.((?:[\w/-]|\\\.)+)|\[(\d+)\]|\[\?\(@\.(\w+)=="(\w+)"\)\]',
                                    path):
        if key:
            thing = thing.get(key.replace("\\.", ".")) if isinstance(thing, dict) else None
        elif at:
            thing = thing[int(at)] if thing and int(at) < len(thing) else None
        else:
            thing = next((x for x in thing or [] if x.get(what) == name), None)
    return "" if thing is None else "true" if thing is True else "false" if thing is False else str(
        thing)


def line(template, pod):
    out = ""
    for literal, path in re.findall(r'\{"((?:[^"\\]|\\.)*)"\}|\{(\.[^}]*)\}', template):
        out += literal.replace("\\t", "\t").replace("\\n", "\n") if not path else value_of(
            pod, path)
    return out


def printed(template, pods):
    inner = re.fullmatch(r"jsonpath=\{range \.items\[\*\]\}(.*)\{end\}", template, re.S)
    if inner:
        return "".join(line(inner.group(1), pod) for pod in pods)
    return line(template.removeprefix("jsonpath="), pods[0])


def matches(selector, pod):
    labels = pod["metadata"].get("labels", {})
    return all(labels.get(k) == v for k, v in (part.split("=", 1) for part in selector.split(",")))


def say(answer):
    """{"out", "err", "code", "sleep", "repeat"} as a process."""
    sys.stderr.write(answer.get("err", ""))
    sys.stderr.flush()
    data = answer.get("out", "").encode("utf-8", "surrogateescape")
    for _ in range(answer.get("repeat", 1)):
        sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()
    time.sleep(answer.get("sleep", 0))
    sys.exit(answer.get("code", 0))


def option(args, name, short=None):
    for i, word in enumerate(args):
        if word in (name, short):
            return args[i + 1]
    return None


def get(cluster, args):
    ns = option(args, "--namespace", "-n") or "default"
    pods = list(cluster.get("pods", {}).get(ns, []))
    selector, template = option(args, "--selector", "-l"), option(args, "--output", "-o")
    if selector:
        pods = [pod for pod in pods if matches(selector, pod)]
    elif args[1] == "pod":
        name = args[2]
        pods = [pod for pod in pods if pod["metadata"]["name"] == name]
        if not pods:
            say({"err": f'Error from server (NotFound): pods "{name}" not found\n', "code": 1})
    sys.stdout.write(printed(template, pods))


def logs(cluster, args):
    name = next(word for i, word in enumerate(args)
                if i and not word.startswith("-") and args[i - 1] not in ("-n", "-c"))
    say({
        **cluster.get("logs", {}).get(name, {
                                          "err": f'pods "{name}" not found\n', "code": 1
                                      }), "code": 0
    })


def execute(cluster, args):
    words = args[1:args.index("--")]
    pod = [
        word for i, word in enumerate(words)
        if not word.startswith("-") and (not i or words[i - 1] not in ("-n", "-c"))
    ][0]
    command = args[args.index("--") + 1:]
    word = command[1] if command[0] == "railmatectl" else os.path.basename(command[0])
    word = " ".join([word] + [mode for mode in ("--serve", "--peer") if mode in command])
    if "-i" in words:
        with open(HERE / "inputs.jsonl", "a", encoding="utf-8") as inputs:
            inputs.write(json.dumps([pod, sys.stdin.read()]) + "\n")
    answers = cluster.get("exec", {}).get(pod, {})
    say(answers[word] if word in
        answers else {"err": f'Error from server (NotFound): pods "{pod}" not found\n', "code": 1})


def main():
    args = sys.argv[1:]
    with open(HERE / "calls.jsonl", "a", encoding="utf-8") as calls:
        calls.write(json.dumps(args) + "\n")
    cluster = json.loads((HERE / "cluster.json").read_text())
    while args[0] in ("--context", "--kubeconfig"):
        args = args[2:]
    if args[0] in cluster.get("fail", {}):
        say(cluster["fail"][args[0]])
    {"get": get, "exec": execute, "logs": logs}[args[0]](cluster, args)


if __name__ == "__main__":
    main()
