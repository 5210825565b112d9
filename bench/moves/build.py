"""`python -m bench moves build`: compile the cases into a folder of artifacts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from bench.build import commit
from bench.measure.traffic import traffic
from bench.moves.case import MANIFEST, OURS, MoveCase
from bench.moves.cases import cases
from bench.moves.permutations import case_of_name
from bench.moves.report import of_a_copy
from lego_mlir.diagnostics import LegoError
from lego_mlir.files import write_whole


def worst_cases(results: Path, count: int) -> list[MoveCase]:
    """Return the permutations of a file of results that were slowest beside a copy, worst first.

    Raises:
        LegoError: there is no such file, or it is no file of results.
    """
    try:
        rows = [json.loads(line) for line in results.read_text().splitlines()]
        ratios = [(of_a_copy(row), row["case"]) for row in rows if "error" not in row]
    except (OSError, ValueError, KeyError, TypeError) as e:
        raise LegoError(
            f"'{results}' is no file of results: {e}",
            hint="one that `python -m bench moves run --output FILE` wrote",
        ) from None
    names = [name for ratio, name in sorted(r for r in ratios if r[0] is not None)]
    found = (case_of_name(name) for name in names)
    return [case for case in found if case is not None][:count]


def build(
    folder: Path,
    only: Sequence[str],
    target: str,
    seed: int,
    worst: int,
    results: Path,
    *,
    count: bool = False,
) -> int:
    """Compile the selected cases; return the number of kernels that do not compile.

    A kernel that is the same as our choice is compiled once.

    Args:
        folder: where artifacts and the manifest are written.
        only: words that the names of the cases contain; all cases if there are none.
        target: what is compiled for.
        seed: of the random permutations.
        worst: so many permutations of `results` come first, those that were slowest beside a copy.
        results: a file of results.
        count: whether the simulator counts what our choices touch.
    """
    folder.mkdir(parents=True, exist_ok=True)
    found: dict[str, dict[str, str]] = {}
    counts: dict[str, dict[str, int]] = {}
    failures = 0
    again = worst_cases(results, worst) if worst else []
    for case in {case.name: case for case in (*again, *cases(seed))}.values():
        if only and not any(word in case.name for word in only):
            continue
        files: dict[str, str] = {}
        texts: dict[str, str] = {}
        for number, (name, kernel) in enumerate(case.make().items()):
            try:
                artifact = kernel.compile(target)
            except LegoError as e:
                failures += 1
                print(f"{case.name}, {name}: {e.render()}", flush=True)
                continue
            text = artifact.ptx
            if text in texts:
                files[name] = texts[text]
                continue
            files[name] = texts[text] = f"{case.name}-{number}.lego"
            artifact.save(folder / files[name])
            if count and name == OURS:
                shapes = [t.shape for t in (*case.inputs, *case.outputs)]
                counts[case.name] = traffic(artifact, shapes)
        found[case.name] = files
        print(case.name, ", ".join(files), flush=True)
    manifest = {"commit": commit(), "seed": seed, "cases": found, "traffic": counts}
    write_whole(folder / MANIFEST, (json.dumps(manifest, indent=1) + "\n").encode())
    return failures
