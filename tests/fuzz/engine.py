"""The process that is fuzzed: libFuzzer (Atheris) around `harness.py`. Started by ``tools/fuzz.py``.

``engine.py run EVERY FOUND ARGUMENTS...``: libFuzzer with these arguments; each EVERY-th input goes through both forms.
An input that raises is written into the folder FOUND, where libFuzzer leaves those that crash or hang.
``engine.py replay FOLDER...``: every file of the folders through both forms, and what they reached; ends at the first
that fails.
``engine.py seeds FOLDER WORDS [plain]``: writes the captures to begin with, and libFuzzer's dictionary.
"""

from __future__ import annotations

import hashlib
import os
import sys
import traceback
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), *(str(HERE.parent / name) for name in ("", "capture", "decode"))]

import atheris  # noqa: E402

# What reads bytes itself around the kernels, in Python: its branches are coverage, too. What runs the same way for
# every capture is imported before or after: counting its branches costs much and tells nothing.
import roce_dissect.columns  # noqa: E402

with atheris.instrument_imports(include=["roce_dissect"]):
    import roce_dissect.capture

import roce_dissect.decode.decoder  # noqa: E402

with atheris.instrument_imports(include=["roce_dissect"]):
    import roce_dissect.decode.cm
    import roce_dissect.flows.handshake  # noqa: F401

import seeds  # noqa: E402
from harness import Harness, compare, small_tables  # noqa: E402
from mutator import mutate  # noqa: E402


def run(every: int, found: Path, arguments: list[str]) -> None:
    """Fuzz; does not return."""
    compiled, interpreted = Harness("compiled"), Harness("interpreted")
    seen = 0

    def one_input(data: bytes) -> None:
        nonlocal seen
        seen += 1
        try:
            if seen % every:
                compiled.run(data)
            else:
                compare(compiled.run(data, keep=True), interpreted.run(data, keep=True))
        except BaseException:  # Atheris prints an exception and ends, but keeps no input of it
            (found / f"raised-{hashlib.sha1(data).hexdigest()}").write_bytes(data)
            traceback.print_exc()
            print(f"RAISED after {seen} captures", file=sys.stderr, flush=True)
            os._exit(1)

    def one_mutation(data: bytes, most: int, seed: int) -> bytes:
        return mutate(data, most, seed, atheris.Mutate)

    atheris.Setup([sys.argv[0], *arguments], one_input, custom_mutator=one_mutation)
    atheris.Fuzz()


def replay(folders: list[str]) -> None:
    """Both forms over kept inputs."""
    compiled, interpreted = Harness("compiled"), Harness("interpreted")
    count = 0
    reached: set[tuple[str, object]] = set()
    for path in sorted(path for folder in folders for path in Path(folder).iterdir()):
        data = path.read_bytes()
        try:
            outcome = compiled.run(data, keep=True)
            compare(outcome, interpreted.run(data, keep=True))
        except Exception:
            print(f"FAILED {path}", flush=True)
            raise
        count += 1
        reached |= outcome.get("reached", set())
    kinds = sorted({kind for kind, _ in reached})
    print(*(f"{kind}: {sorted(value for one, value in reached if one == kind)}" for kind in kinds), sep="\n")
    print(f"{count} inputs say the same in both forms")


def write_seeds(folder: str, words: str, plain: bool) -> None:
    """Fill a new folder, and write the dictionary."""
    Path(folder).mkdir()
    Path(words).write_text(seeds.words())
    for name, data in seeds.plain() if plain else seeds.all_seeds():
        (Path(folder) / name).write_bytes(data)


if __name__ == "__main__":
    with small_tables():
        if sys.argv[1] == "run":
            run(int(sys.argv[2]), Path(sys.argv[3]), sys.argv[4:])
        elif sys.argv[1] == "seeds":
            write_seeds(sys.argv[2], sys.argv[3], "plain" in sys.argv[4:])
        else:
            replay(sys.argv[2:])
