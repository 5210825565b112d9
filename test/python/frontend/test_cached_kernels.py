"""Kernels from the cache: the same artifacts as compiled, found by another process without MLIR."""

# ruff: noqa: F821 (Tensor["f32", ...] is no forward reference)

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lego_mlir as lg
from lego_mlir.algebra import GenP, OrderBy, Row
from lego_mlir.artifact import Artifact
from lego_mlir.cache import disabled, entries
from lego_mlir.cache.store import Store
from lego_mlir.compiler.driver import Compilation
from lego_mlir.frontend import KernelSequence, Workspace, sequence
from lego_mlir.kernels import matmul, transpose

LINE = OrderBy(Row(64))


@pytest.fixture
def compiled(store: Store, monkeypatch: pytest.MonkeyPatch) -> list[Compilation]:
    """The compilations that made artifacts."""
    made: list[Compilation] = []
    artifact = Compilation.artifact

    def noted(self: Compilation, **options: Any) -> Artifact:
        made.append(self)
        return artifact(self, **options)

    monkeypatch.setattr(Compilation, "artifact", noted)
    return made


def scaling(factor: float) -> lg.Kernel:
    @lg.kernel(grid=1, block=64)
    def scale(a: lg.Tensor["f32", LINE], b: lg.Tensor["f32", LINE]) -> None:
        i = lg.thread_id()
        b[i] = a[i] * factor

    return scale


def test_a_kernel_is_compiled_once(compiled: list[Compilation]) -> None:
    first = scaling(2.0).compile()
    assert scaling(2.0).compile() is first, "equal kernels share what is in memory"
    entries.forget()
    found = scaling(2.0).compile()
    assert found == first
    assert len(compiled) == 1
    result = scaling(2.0).run(np.arange(64, dtype=np.float32), device="sim")
    np.testing.assert_array_equal(result.outputs["b"], 2 * np.arange(64, dtype=np.float32))


@pytest.mark.parametrize(
    "change",
    [
        lambda: scaling(3.0).compile(),
        lambda: scaling(2.0).compile("sm_80"),
        lambda: scaling(2.0).compile(check=True),
        lambda: lg.kernel(grid=2, block=64)(scaling(2.0).__wrapped__).compile(),
        lambda: lg.kernel(grid=1, block=32)(scaling(2.0).__wrapped__).compile(),
        lambda: lg.kernel(grid=1, block=64, in_place=True)(scaling(2.0).__wrapped__).compile(),
        lambda: lg.kernel(grid=1, block=64, pdl=True)(scaling(2.0).__wrapped__).compile("sm_90"),
    ],
)
def test_another_kernel_is_another_entry(
    change: Callable[[], Artifact], compiled: list[Compilation]
) -> None:
    first = scaling(2.0).compile()
    assert change() != first
    assert len(compiled) == 2
    entries.forget()
    with disabled():
        fresh = change()
    assert change() == fresh
    assert len(compiled) == 3


def test_a_kernel_without_fingerprint_is_found_by_its_module(compiled: list[Compilation]) -> None:
    def make() -> lg.Kernel:
        factors = iter([2.0])

        @lg.kernel(grid=1, block=64)
        def scale(a: lg.Tensor["f32", LINE], b: lg.Tensor["f32", LINE]) -> None:
            i = lg.thread_id()
            b[i] = a[i] * next(factors)

        return scale

    first = make().compile()
    entries.forget()
    assert make().compile() == first
    assert len(compiled) == 1


@pytest.mark.parametrize(
    "make",
    [
        lambda: matmul(64, 64, 64, target="sm_80"),
        lambda: matmul(64, 64, 64, epilogue=lambda x: lg.relu(x), target="sm_80"),
        lambda: transpose(64, 64),
    ],
)
def test_what_is_found_is_what_is_compiled(
    make: Callable[[], lg.Kernel], compiled: list[Compilation]
) -> None:
    with disabled():
        fresh = make().compile("sm_80")
    make().compile("sm_80")
    entries.forget()
    assert make().compile("sm_80") == fresh
    assert len(compiled) == 2


@pytest.mark.parametrize("is_cached", [True, False])
def test_the_simulator_needs_no_machine_code(
    is_cached: bool, compiled: list[Compilation], monkeypatch: pytest.MonkeyPatch
) -> None:
    if not is_cached:
        monkeypatch.setenv("LEGO_MLIR_CACHE", "0")
    kernel, x = scaling(2.0), np.arange(64, dtype=np.float32)
    kernel(x, y := np.empty_like(x), device="sim")
    kernel(x, y, device="sim")
    np.testing.assert_array_equal(y, 2 * x)
    (compilation,) = compiled
    assert "cubin" not in vars(compilation)
    assert kernel.compile(check=True, assemble=False).cubin is None
    assert kernel.compile(check=True).cubin is not None
    assert scaling(2.0).compile(check=True).cubin is not None
    found = scaling(2.0).compile(check=True, assemble=False)
    assert (found.cubin, found.ptx) == (None, kernel.compile(check=True).ptx)


def test_what_the_simulator_counts_is_assembled(compiled: list[Compilation]) -> None:
    scaling(2.0).run(np.arange(64, dtype=np.float32), device="sim", costs=True)
    assert "cubin" in vars(compiled[0]), "machine code decides which config a GPU gets"


def test_sequences(compiled: list[Compilation]) -> None:
    def make(elements: int) -> KernelSequence:
        return sequence(
            "twice",
            [scaling(2.0).on(b="middle"), scaling(3.0).on(a="middle")],
            parameters={"a": lg.Tensor["f32", LINE], "b": lg.Tensor["f32", LINE]},
            workspaces={"middle": Workspace("f32", (elements,))},
        )

    first = make(64).compile()
    entries.forget()
    assert make(64).compile() == first
    assert make(128).compile() != first
    assert len(compiled) == 2


def forward(i: Any, j: Any) -> Any:
    return 4 * i + j


def backward(x: Any) -> Any:
    return x // 4, x % 4


def test_own_permutations_run_from_the_cache(compiled: list[Compilation]) -> None:
    layout = OrderBy(GenP((4, 4), forward, backward))

    def make() -> lg.Kernel:
        @lg.kernel(grid=1, block=1)
        def copy(a: lg.Tensor["f32", layout], b: lg.Tensor["f32", layout]) -> None:
            b[1, 2] = a[1, 2]

        return copy

    for _ in range(2):
        make().run(device="sim")
        entries.forget()
    assert len(compiled) == 1


def test_a_damaged_entry_is_compiled_again(store: Store, compiled: list[Compilation]) -> None:
    first = scaling(2.0).compile()
    files = list(store.folder.glob("*/*"))
    assert len(files) == 2, "a link and an artifact"
    for number, file in enumerate(files):
        whole = file.read_bytes()
        file.write_bytes(whole[:-10])
        entries.forget()
        assert scaling(2.0).compile() == first
        assert file.read_bytes() == whole, number


@pytest.mark.parametrize("which", ["no bundle", "no JSON", "deep", "another target", "no digest"])
def test_a_strangers_entry_is_checked_as_a_bundle(
    which: str, store: Store, compiled: list[Compilation]
) -> None:
    first = scaling(2.0).compile()
    payloads = {
        "no bundle": b"[]\nPK\x05\x06" + bytes(18),
        "no JSON": b"[\n" + first.to_bytes(),
        "deep": b"[" * 100_000 + b"\n",
        "another target": b"[]\n" + scaling(2.0).compile("sm_80").to_bytes(),
        "no digest": b"../../../../etc/passwd",
    }
    for file in list(store.folder.glob("*/*")):
        is_link = file.stat().st_size < 300
        if is_link == (which == "no digest"):
            store.put(file.parent.name + file.name, payloads[which])
    entries.forget()
    assert scaling(2.0).compile() == first


def test_a_cache_that_is_off_keeps_nothing(
    compiled: list[Compilation], store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LEGO_MLIR_CACHE", "0")
    scaling(2.0).compile()
    scaling(2.0).compile()
    assert len(compiled) == 2
    assert not store.folder.exists()


def test_a_folder_that_cannot_be_written_compiles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("LEGO_MLIR_CACHE", str(tmp_path / "file"))
    entries.forget()
    with pytest.warns(lg.LegoWarning, match="so kernels are compiled in every process"):
        assert scaling(2.0).compile().launches


def test_threads_share_the_cache(compiled: list[Compilation]) -> None:
    found: list[Artifact] = []
    threads = [
        threading.Thread(target=lambda: found.append(scaling(2.0).compile())) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    assert all(artifact == found[0] for artifact in found)


SECOND_PROCESS = """
import json, sys
from time import process_time
from lego_mlir.kernels import matmul
imported = process_time()
artifact = matmul(4096, 4096, 4096, target="sm_90a").compile("sm_90a")
print(json.dumps([process_time() - imported, len(artifact.cubin), sorted(sys.modules)]))
"""


def test_a_second_process_needs_no_compiler(store: Store) -> None:
    runs = [
        json.loads(
            subprocess.run(
                [sys.executable, "-c", SECOND_PROCESS],
                env={**os.environ, "PYTHONDONTWRITEBYTECODE": ""},
                capture_output=True,
                text=True,
                check=True,
            ).stdout
        )
        for _ in range(2)
    ]
    (_, size, loaded_first), (seconds, size_again, loaded) = runs
    assert size == size_again > 1000
    heavy = ("numba_cuda_mlir", "mlir", "sympy", "z3", "lego_mlir.compiler.driver", "cuda.bindings")
    for name in heavy:
        found = [m for m in loaded if m == name or m.startswith(f"{name}.")]
        assert not found, found
    assert "numba_cuda_mlir" in loaded_first, "the test would see it"
    parts = [m for m in loaded if m.startswith("lego_mlir.mlir.")]
    assert not [m for m in parts if ".transforms" in m or ".to_nvvm" in m or ".emit" in m], parts
    assert seconds < 0.2, "of processor time; about 0.04 on a machine that does nothing else"
