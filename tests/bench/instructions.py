# SPDX-License-Identifier: BSD-2-Clause
"""What one operation costs in instructions, by floor and by function, as callgrind counts them.

The program `instructions` makes operations of one kind between two nodes of its process, over a
provider, where little depends on the clock, so that figures repeat within a hundredth; or over a
fabric that is simulated on a clock that stands still (--provider fake), where they repeat to the
digit, and what weft's own floors cost is held below the ceilings of instructions.txt (--check).
"""
import argparse
import collections
import os
import re
import shutil
import subprocess
import sys
import tempfile

COUNT, COUNT_OF_LONG = 400, 40    # operations: the long ones take callgrind a while
SIDES = "here", "there"
CEILINGS = os.path.join(os.path.dirname(__file__), "instructions.txt")
SLACK = 1.1     # compilers differ

# Kind, bytes, and what each side is of it.
KINDS = (
    ("early", 8, "sends a tensor", "receives it, and waited for it"),
    ("late", 8, "sends a tensor", "receives it, after it came"),
    ("stays", 8, "sends a tensor", "gets it by a receive that stays"),
    ("early", 65536, "sends a tensor", "receives it"),
    ("early", 1048576, "sends a tensor", "receives it"),
    ("call", 1, "calls, with an empty message", "serves the call"),
    ("stream", 8, "writes a message of a stream", "reads it"),
    ("stream", 65536, "writes a message of a stream", "reads it"),
    ("get", 4096, "gets a block", "owns the window"),
    ("gets", 4096, "gets 64 blocks", "owns the window"),
    ("put", 4096, "puts a block", "owns the window"),
    ("puts", 4096, "puts 64 blocks", "owns the window"),
    ("idle", 1, "has a turn with nothing to do", "the same"),
    ("sleep", 1, "has such a turn, sleeps and wakes", "the same"),   # its time goes on by itself
)

NAME = re.compile(r"\((\d+)\)(?: (.*))?$")


class Names:
    """Names that a file of callgrind's gives a number at their first use."""

    def __init__(self):
        self.known = {}

    def of(self, text):
        number, name = NAME.match(text).groups()
        if name is not None:
            self.known[number] = name
        return self.known[number]


def costs(path):
    """Instructions of each (file, function), or (library, function) where the file is not known."""
    files, functions, objects = Names(), Names(), Names()
    found = collections.Counter()
    at = function = library = ""
    skip = False
    with open(path) as lines:
        for line in lines:
            key, _, text = line.rstrip("\n").partition("=")
            if key == "ob":
                library = os.path.basename(objects.of(text))
            elif key in ("fl", "fi", "fe"):
                at = files.of(text)
            elif key == "fn":
                function = functions.of(text)
            elif key == "cfn":
                functions.of(text)
            elif key in ("cfi", "cfl"):
                files.of(text)
            elif key == "cob":
                objects.of(text)
            elif key == "calls":
                skip = True     # the next line has what the function that is called costs
            elif line[:1].isdigit() or line[:1] in "+-*":
                if not skip:
                    found[at if at != "???" else library, function] += int(line.split()[1])
                skip = False
    return found


def floor(place):
    """The floor of a file, or the library that it is of."""
    parts = place.split("/")
    # The tree may itself lie below a folder that is called src.
    for at in range(len(parts) - 2, -1, -1):
        if parts[at] in ("src", "tests"):
            return parts[at + 1] if parts[at] == "src" else "tests"
    if parts[-1] == "xxhash.h" or "rdma" in parts:
        return "libxxhash" if parts[-1] == "xxhash.h" else "libfabric"
    library = re.match(r"(lib[\w-]+|ld)[.-]", parts[-1])
    return library.group(1) if library else "libc"


def program_of(provider):
    """The program that makes operations over a provider."""
    return "instructions_fake" if provider == "fake" else "instructions"


def run(build, kind, size, count, side, provider, env):
    """The costs of so many operations at one side."""
    program = os.path.join(build, "tests", "bench", ".libs", program_of(provider))
    if not os.path.exists(program):
        program = os.path.join(build, "tests", "bench", program_of(provider))
    with tempfile.TemporaryDirectory(prefix="weft-instructions.") as folder:
        out = os.path.join(folder, "out")
        done = subprocess.run(
            ["valgrind", "--tool=callgrind", "--collect-atstart=no", f"--toggle-collect={side}_*",
             "--zero-before=counted", f"--callgrind-out-file={out}", program, "-e", kind,
             "-s", str(size), "-w", str(count), "-p", provider],
            env=dict(os.environ, LD_LIBRARY_PATH=os.path.join(build, ".libs"), **env),
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            sys.exit(f"bench: instructions -e {kind} failed: {done.stdout.strip()[-300:]}")
        return costs(out)


def of_one(build, kind, size, side, provider, env):
    """Instructions of one operation, by (place, function)."""
    count = COUNT_OF_LONG if size > 4096 or kind in ("gets", "puts") else COUNT
    return {key: total / count
            for key, total in run(build, kind, size, count, side, provider, env).items()}


def by_floor(found):
    """The same by floor, the greatest first."""
    total = collections.Counter()
    for (place, _), count in found.items():
        total[floor(place)] += count
    return [(name, count) for name, count in total.most_common() if round(count)]


def ours(found):
    """Instructions of weft alone, without libfabric, libc, protobuf-c and libcrypto."""
    return sum(count for (place, _), count in found.items()
               if not floor(place).startswith(("lib", "ld", "tests")))


def arguments(words):
    parser = argparse.ArgumentParser(prog="bench instructions", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", metavar="DIR", default=".",
                        help="a configured build folder; default the current one")
    parser.add_argument("--provider", default="tcp", help="default tcp; fake: the simulated fabric")
    parser.add_argument("--check", action="store_true",
                        help="over the simulated fabric: is each kind below its ceiling?")
    parser.add_argument("--security", default="open", choices=("open", "keyed", "sealed"))
    parser.add_argument("--functions", type=int, default=0, metavar="N",
                        help="so many functions of each side, those that cost most")
    parser.add_argument("kinds", nargs="*", metavar="KIND", help="early, call, get ...; all")
    a = parser.parse_args(words)
    known = {kind for kind, *_ in KINDS}
    for kind in a.kinds:
        if kind not in known:
            parser.error(f"there is no kind {kind}; there are {', '.join(sorted(known))}")
    a.build = os.path.abspath(a.build)
    if a.check:
        a.provider, a.security = "fake", "open"
    if subprocess.run(["make", "-s", "-C", a.build, "weft",
                       f"tests/bench/{program_of(a.provider)}"]).returncode:
        sys.exit(f"bench: {a.build} does not build: configure it first")
    return a


def environment(a, folder):
    """The settings of the nodes, with a key where they need one."""
    env = {"WEFT_SECURITY": a.security, "WEFT_SPIN": "0"}
    if a.security != "open":
        env["WEFT_KEY_FILE"] = os.path.join(folder, "key")
        subprocess.run([os.path.join(a.build, "weft"), "key", "new", env["WEFT_KEY_FILE"]],
                       check=True, stdout=subprocess.DEVNULL)
    return env


def show(a, env, kind, size, side, does):
    """Print what one side of a kind costs."""
    found = of_one(a.build, kind, size, side, a.provider, env)
    print(f"{kind} {size} B, {a.provider}, {a.security}: {does}: {sum(found.values()):.0f}, "
          f"of these weft's {ours(found):.0f}: " +
          ", ".join(f"{name} {count:.0f}" for name, count in by_floor(found)), flush=True)
    for (place, name), count in sorted(found.items(), key=lambda i: -i[1])[:a.functions]:
        print(f"    {count:7.0f}  {floor(place)}: {name} ({os.path.basename(place)})")


def ceilings():
    """The instructions that weft's own part of one operation may cost, by (kind, bytes, side)."""
    with open(CEILINGS) as lines:
        words = [line.split() for line in lines if line.strip() and not line.startswith("#")]
    return {(kind, int(size), side): int(count) for kind, size, side, count in words}


def check(a):
    """Compare each kind and side with its ceiling.  Exits with 1 if one is above it."""
    above = 0
    for (kind, size, side), ceiling in ceilings().items():
        count = ours(of_one(a.build, kind, size, side, a.provider, {}))
        is_above = count > ceiling * SLACK
        above += is_above
        print(f"{'ABOVE ' if is_above else ''}{kind} {size} {side}: {count:.0f} of {ceiling}",
              flush=True)
    print(f"{above} above their ceilings")
    sys.exit(1 if above else 0)


def main(words):
    a = arguments(words)
    if not shutil.which("valgrind"):
        sys.exit("bench: valgrind counts instructions, and is not installed")
    if a.check:
        check(a)
    with tempfile.TemporaryDirectory(prefix="weft-instructions.") as folder:
        env = environment(a, folder)
        for kind, size, *what in KINDS:
            if kind == "sleep" and a.provider == "fake":
                continue
            for side, does in zip(SIDES, what):
                if not a.kinds or kind in a.kinds:
                    show(a, env, kind, size, side, does)
