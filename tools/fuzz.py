"""Coverage-guided fuzzing of readers, kernels and tracker, built with sanitizers.

Run as ``python tools/fuzz.py`` for 20,000 captures, ``python tools/fuzz.py --runs 1000000`` for a million. It needs
clang, and ``pip install 'atheris>=3.0' 'setuptools>=77'`` (libFuzzer and the sanitizers, as a Python package).

The kernels are compiled once more into ``build/fuzz``, with AddressSanitizer, UndefinedBehaviorSanitizer and coverage;
nothing in the checkout is touched. Each worker then mutates captures (`tests/fuzz/`) from a fixed seed of its own.
What crashes, hangs, takes too much memory, raises, or says something else in the interpreted form ends the run, and its
input is kept in ``tests/fuzz/found/``, where a test replays it. The exit status is then 1.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "fuzz"
ENGINE = ROOT / "tests" / "fuzz" / "engine.py"
FOUND = ROOT / "tests" / "fuzz" / "found"

#: -fno-wrapv: the product is built with -fwrapv, which makes overflow defined; here it is to be told all the same.
FLAGS = (
    "-O1 -g1 -fno-omit-frame-pointer -fno-wrapv -Wno-unused-command-line-argument "
    "-fsanitize=address,undefined,fuzzer-no-link -fno-sanitize-recover=all "
    "-fsanitize-coverage-allowlist=tools/fuzz-functions.txt"
)
#: Python is not free of leaks. A short quarantine keeps memory warm: nothing is freed while the kernels run.
SANITIZERS = {
    "ASAN_OPTIONS": "detect_leaks=0:quarantine_size_mb=2:malloc_context_size=1",
    "UBSAN_OPTIONS": "print_stacktrace=1",
}
#: Of one input: bytes, seconds; of the process: MiB in all, and of one allocation (a record may have 64).
LIMITS = ("-max_len=2048", "-timeout=20", "-rss_limit_mb=1024", "-malloc_limit_mb=80")
#: Of so many inputs one goes through the interpreted form, too. Whatever was new coverage is compared at the end.
EVERY = 20


def runtime() -> Path:
    """Return the library with libFuzzer and the sanitizers, which comes with Atheris."""
    spec = importlib.util.find_spec("atheris")
    if spec is None or spec.origin is None:
        sys.exit("fuzz.py needs Atheris: pip install 'atheris>=3.0' 'setuptools>=77'")
    return Path(spec.origin).parent.parent / "asan_with_fuzzer.so"


def build() -> None:
    """Compile the kernels into `BUILD`; again only where a source or the flags have changed."""
    if shutil.which("clang") is None:
        sys.exit("fuzz.py needs clang: apt-get install clang")
    stamp = BUILD / "flags"
    if not stamp.exists() or stamp.read_text() != FLAGS:
        shutil.rmtree(BUILD, ignore_errors=True)
    where = ["--build-base", str(BUILD), "--build-lib", str(BUILD / "lib")]
    subprocess.run(
        [sys.executable, "setup.py", "-q", "build", *where, "build_ext", "-j", str(os.cpu_count() or 1)],
        cwd=ROOT,
        env=os.environ | {"CC": "clang", "LDSHARED": "clang -shared", "ROCE_DISSECT_KERNEL_FLAGS": FLAGS},
        check=True,
    )
    stamp.write_text(FLAGS)


def environment() -> dict[str, str]:
    """Return what a process with the sanitized kernels needs."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return kept | SANITIZERS | {"LD_PRELOAD": str(runtime()), "PYTHONPATH": str(BUILD / "lib"), "PYTHONHASHSEED": "0"}


def engine(*arguments: str, log: Path) -> subprocess.Popen:
    """Start `tests/fuzz/engine.py`; what it says goes into `log`."""
    with log.open("wb") as file:
        return subprocess.Popen([sys.executable, str(ENGINE), *arguments], env=environment(), stdout=file, stderr=file)


def fuzz(runs: int, workers: int, seed: int, plain: bool) -> bool:
    """Write the seeds, run the workers, compare both forms on their corpora. Returns whether nothing was found."""
    work = BUILD / "run"
    shutil.rmtree(work, ignore_errors=True)
    seeds, words, artifacts = work / "seeds", work / "words", work / "found"
    artifacts.mkdir(parents=True)
    if engine("seeds", str(seeds), str(words), *(["plain"] if plain else []), log=work / "seeds.log").wait():
        sys.exit((work / "seeds.log").read_text())
    corpora = [work / f"corpus{number}" for number in range(workers)]
    logs = [work / f"worker{number}.log" for number in range(workers)]
    started = time.monotonic()
    running = []
    for number, (corpus, log) in enumerate(zip(corpora, logs, strict=True)):
        corpus.mkdir()
        share = runs // workers + (number < runs % workers)
        options = [f"-runs={share}", f"-seed={seed + number}", f"-artifact_prefix={artifacts}/", f"-dict={words}"]
        running.append(engine("run", str(EVERY), str(artifacts), *LIMITS, *options, str(corpus), str(seeds), log=log))
    try:
        good = [process.wait() == 0 for process in running]
    except KeyboardInterrupt:
        for process in running:
            process.terminate()
        raise
    print(f"{runs} captures in {time.monotonic() - started:.0f} s")
    for log, fine in zip(logs, good, strict=True):
        report(log, fine)
    log = work / "replay.log"
    good.append(engine("replay", str(seeds), *map(str, corpora), log=log).wait() == 0)
    print(log.read_text(errors="replace").strip().splitlines()[-1] if good[-1] else log.read_text(errors="replace"))
    failed = re.findall(r"^FAILED (.+)$", log.read_text(errors="replace"), re.MULTILINE)
    keep([(path.name.partition("-")[0], path) for path in artifacts.glob("*-*")])
    keep([("raised", Path(path)) for path in failed])
    return all(good)


def report(log: Path, fine: bool) -> None:
    """Print how coverage grew in a worker, and all of its end if that was no good one."""
    text = log.read_text(errors="replace")
    lines = re.findall(r"^#(\d+)\s+\S+\s+cov: (\d+) ft: (\d+) corp: (\d+)/\S+ (?:lim: \d+ )?exec/s: (\d+)", text, re.M)
    wanted = [round(len(lines) * part / 8) for part in range(8)]
    for line in [lines[at] for at in wanted if at < len(lines)] + lines[-1:]:
        print("  {:>8} captures: {:>5} edges, {:>5} features, {:>5} kept, {:>5} a second".format(*line))
    if not fine:
        print(text[-8000:])


def keep(found: list[tuple[str, Path]]) -> None:
    """Copy inputs that failed, each with how it did, to where a test replays them."""
    for kind, path in found:
        if kind == "slow":  # libFuzzer's note of a slow one, far below the limit
            continue
        data = path.read_bytes()
        target = FOUND / f"{kind}-{hashlib.sha1(data).hexdigest()[:12]}"
        target.write_bytes(data)
        print(f"kept: {target.relative_to(ROOT)} ({len(data)} bytes)")


def main() -> int:
    """Return the exit status."""
    parser = argparse.ArgumentParser(description="Fuzz readers, kernels and tracker with sanitizers.")
    parser.add_argument("--runs", type=int, default=20_000, help="captures in all (default: 20000)")
    parser.add_argument("--workers", type=int, default=2, help="processes that share them (default: 2)")
    parser.add_argument("--seed", type=int, default=1, help="another one gives other captures (default: 1)")
    parser.add_argument(
        "--plain", action="store_true", help="begin with plain Ethernet only: shows what coverage finds"
    )
    options = parser.parse_args()
    started = time.monotonic()
    build()
    print(f"built in {time.monotonic() - started:.0f} s", flush=True)
    return 0 if fuzz(options.runs, options.workers, options.seed, options.plain) else 1


if __name__ == "__main__":
    sys.exit(main())
