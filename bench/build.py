"""Step one: compile the cases into a bundle, a folder of artifacts and a manifest."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.cases import CASES as MOVEMENTS
from bench.cases import Case
from bench.gemm.cases import CASES as PRODUCTS
from bench.gemm.small import CASES as SMALL
from bench.gemm.variants import CASES as VARIANTS
from bench.sass import main_loops
from lego_mlir.diagnostics import LegoError
from lego_mlir.files import write_whole

if TYPE_CHECKING:
    from lego_mlir import Artifact, Kernel

CASES = (*MOVEMENTS, *PRODUCTS, *VARIANTS, *SMALL)

FORMAT = 1
MANIFEST = "manifest.json"


def chosen(names: Sequence[str], only: Sequence[str]) -> list[str]:
    """The names that contain one of the words in `only`; all of them without any.

    Raises:
        LegoError: there are none.
    """
    if not names:
        raise LegoError("there are no cases", hint="build some first")
    found = [name for name in names if not only or any(word in name for word in only)]
    if not found:
        words = " or ".join(f"'{word}'" for word in only)
        raise LegoError(
            f"no case has {words} in its name",
            hint=f"there are {len(names)} cases, such as {', '.join(names[:3])}",
        )
    return found


def build(folder: Path, only: Sequence[str], target: str, *, sass: bool = False) -> int:
    """Compile the chosen cases into a folder; the number of cases that do not compile.

    Args:
        folder: of the bundle.
        only: words that the names of the cases contain; all cases if there are none.
        target: to compile for.
        sass: count the instructions of the main loops, too.

    Raises:
        LegoError: no case is chosen, or the folder cannot be written.
    """
    cases = {case.name: case for case in CASES}
    names = chosen(list(cases), only)
    entries, failures = {}, 0
    make_folder(folder)
    for number, name in enumerate(names, 1):
        print(f"[{number}/{len(names)}] {name}", flush=True)
        try:
            kernel = cases[name].make(target)
            artifact = kernel.compile(target)
        except LegoError as e:
            failures += 1
            print(e.render(), flush=True)
            continue
        artifact.save(folder / f"{name}.lego")
        entries[name] = entry_of(cases[name], artifact) | _division(kernel)
        if cases[name].alternatives is not None:
            entries[name]["candidates"], failed = _alternatives(cases[name], folder, target)
            failures += failed
        if sass and artifact.cubin is not None:
            entries[name]["sass"] = main_loops(artifact.cubin)
    manifest = {"format": FORMAT, "commit": commit(), "target": target, "cases": entries}
    write_whole(folder / MANIFEST, (json.dumps(manifest, indent=2) + "\n").encode())
    print(f"{len(entries)} of {len(names)} cases are in {folder}")
    return failures


def _division(kernel: Kernel) -> dict[str, str]:
    """How the library divides a product, in its own words; nothing of what is no product."""
    lines = (line.partition("  ") for line in kernel.explain().splitlines())
    words = {key: words.strip() for key, _, words in lines}
    return {"division": words["config"]} if "config" in words else {}


def _alternatives(case: Case, folder: Path, target: str) -> tuple[list[dict[str, str]], int]:
    """Compile a case's other kernels: those of them that compile, and how many do not."""
    assert case.alternatives is not None
    found: list[dict[str, str]] = []
    kernels = case.alternatives(target)
    for name, kernel in kernels.items():
        print(f"  {name}", flush=True)
        try:
            artifact = kernel.compile(target)
        except LegoError as e:
            print(e.render(), flush=True)
            continue
        file = f"{case.name}.{len(found)}.lego"
        artifact.save(folder / file)
        found.append({"name": name, "file": file})
    return found, len(kernels) - len(found)


def read_manifest(folder: Path) -> dict[str, Any]:
    """What a bundle says of itself.

    Raises:
        LegoError: it is no bundle, or of another format.
    """
    try:
        manifest = json.loads((folder / MANIFEST).read_text())
    except (OSError, ValueError):
        manifest = None
    if not isinstance(manifest, dict):
        raise LegoError(
            f"'{folder}' is no bundle: it has no {MANIFEST}",
            hint=f"make one with python -m bench build {folder}",
        )
    if manifest.get("format") != FORMAT:
        raise LegoError(
            f"the bundle '{folder}' has format {manifest.get('format')}, this bench reads {FORMAT}",
            hint=f"make it again with python -m bench build {folder}",
        )
    return manifest


def commit() -> str:
    """The commit of the checkout, marked if files differ from it."""
    here = Path(__file__).resolve().parent
    said = subprocess.run(
        ["git", "describe", "--always", "--dirty", "--abbrev=12"],
        cwd=here,
        capture_output=True,
        text=True,
        check=False,
    )
    return said.stdout.strip() or "unknown"


def entry_of(case: Case, artifact: Artifact) -> dict[str, Any]:
    """A case in the manifest: all that is needed to run and to check it."""
    return {
        "kernel": artifact.name,
        "dtype": case.dtype,
        "variant": case.variant,
        "reference": asdict(case.reference),
        "layouts": {argument.name: argument.layout for argument in artifact.arguments},
        "launch": [
            {"grid": x.grid, "block": x.block, "shared_bytes": x.shared_bytes}
            for x in artifact.launches
        ],
        "peers": case.peers,
    }


def make_folder(folder: Path) -> None:
    """Make a folder, and those above it.

    Raises:
        LegoError: it cannot be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as e:
        raise LegoError(f"the folder '{folder}' cannot be made: {e.strerror}") from None
