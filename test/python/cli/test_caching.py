"""legoc and the cache: what it finds, prints, removes, and leaves alone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from lego_mlir import cli
from lego_mlir.cache import entries
from lego_mlir.cache.store import Store
from lego_mlir.compiler.driver import Compilation

EXAMPLES = Path(__file__).parents[3] / "docs" / "examples"
TRANSPOSE = str(EXAMPLES / "transpose.mlir")


@pytest.fixture
def opened(store: Store, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files that were compiled."""
    files: list[str] = []
    make = Compilation.__init__

    def noted(self: Compilation, source: object, *rest: object, **named: object) -> None:
        files.append(source.file)  # type: ignore[attr-defined]
        make(self, source, *rest, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(Compilation, "__init__", noted)
    return files


@pytest.mark.parametrize("stage", ["ptx", "cubin", "bundle"])
def test_code_is_made_once(stage: str, opened: list[str], tmp_path: Path) -> None:
    for name in ("first", "again"):
        assert cli.main([TRANSPOSE, f"--emit={stage}", "-o", str(tmp_path / name)]) == 0
        entries.forget()
    assert (tmp_path / "first").read_bytes() == (tmp_path / "again").read_bytes()
    assert len(opened) == 1


@pytest.mark.parametrize(
    "options",
    [
        ["--set", "T=16"],
        ["--target=sm_80"],
        ["--check"],
        ["--exact-math"],
        ["--limit", "ctas=77"],
        ["--pass-pipeline", "index=builtin.module(canonicalize)"],
        ["--emit=cubin"],
    ],
)
def test_other_options_are_other_entries(
    options: list[str], opened: list[str], tmp_path: Path
) -> None:
    common = [TRANSPOSE, "-o", str(tmp_path / "out")]
    for words in ([], options, [], options):
        assert cli.main([*common, "--emit=ptx", *words]) == 0
        entries.forget()
    assert len(opened) == 2


def test_a_schedules_file_counts(opened: list[str], tmp_path: Path) -> None:
    schedule = tmp_path / "schedule.mlir"
    text = (EXAMPLES.parents[1] / "transforms" / "cp_async.mlir").read_text()
    command = [str(EXAMPLES / "matmul.mlir"), f"--schedule={schedule}", "--emit=ptx"]
    for content in (text, text, f"// Another.\n{text}"):
        schedule.write_text(content)
        assert cli.main([*command, "-o", str(tmp_path / "out")]) == 0
        entries.forget()
    assert len(opened) == 2


def test_runs_share_what_is_compiled(opened: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    printed = []
    for _ in range(2):
        assert cli.main([TRANSPOSE, "--run", "--device=sim"]) == 0
        printed.append(capsys.readouterr().out)
        entries.forget()
    assert printed[0] == printed[1]
    assert "equal to NumPy's transpose" in printed[0]
    assert len(opened) == 1


def test_steps_and_explanations_are_made_anew(
    opened: list[str], store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    matmul = [str(EXAMPLES / "matmul.mlir"), "--schedule=cp_async"]
    steps = tmp_path / "steps"
    for words in (["--explain"], ["--emit=ptx", "--keep", str(steps)], ["--emit=nvvm"]):
        assert cli.main([*matmul, *words]) == 0
    assert capsys.readouterr().out
    assert list(steps.iterdir())
    assert len(opened) == 3
    assert store.usage().entries == 0


def test_no_cache(opened: list[str], store: Store, tmp_path: Path) -> None:
    for _ in range(2):
        assert cli.main([TRANSPOSE, "--no-cache", "--emit=ptx", "-o", str(tmp_path / "out")]) == 0
    assert len(opened) == 2
    assert not store.folder.exists()


def test_an_error_is_no_entry(
    opened: list[str], store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in range(2):
        assert cli.main([str(EXAMPLES / "matmul.mlir"), "--emit=ptx", "--param", "depth=2"]) == 1
        assert "--param needs a schedule" in capsys.readouterr().err
    assert store.usage().entries == 0


def test_info_and_clear(store: Store, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    def printed(*words: str) -> list[str]:
        assert cli.main(words) == 0
        return capsys.readouterr().out.splitlines()

    folder = f"cache    {store.folder}"
    assert printed("--cache-info") == [folder, "entries  0, 0.0 of 1024 MiB"]
    store.put("0" * 64, bytes(3 << 20))
    assert printed("--cache-info") == [folder, "entries  1, 3.0 of 1024 MiB"]
    assert printed("--cache-clear") == [folder, "entries  removed 1, 3.0 of 1024 MiB"]
    assert printed("--cache-info") == [folder, "entries  0, 0.0 of 1024 MiB"]


def test_a_cache_that_is_off(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LEGO_MLIR_CACHE", "")
    for command in ("--cache-info", "--cache-clear"):
        assert cli.main([command]) == 0
        assert capsys.readouterr().out == "cache    off: LEGO_MLIR_CACHE is empty or 0\n"


@pytest.mark.parametrize("command", ["--cache-info", "--cache-clear"])
def test_commands_stand_alone(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_status:
        cli.main([TRANSPOSE, command])
    assert exit_status.value.code == 2
    assert f"{command} stands alone: legoc {command}" in capsys.readouterr().err


def test_a_folder_that_cannot_be_written_is_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("LEGO_MLIR_CACHE", str(tmp_path / "file"))
    for _ in range(2):
        assert cli.main([TRANSPOSE, "--emit=ptx", "-o", str(tmp_path / "out")]) == 0
        entries.forget()
    told = capsys.readouterr().err
    assert told.count("warning: the cache cannot be") == 1
    assert told.count("\n") == 2, "the warning, and its hint"
    assert (tmp_path / "out").stat().st_size > 0


def test_what_is_found_needs_no_mlir(store: Store, tmp_path: Path) -> None:
    command = [TRANSPOSE, "--emit=cubin", "-o", str(tmp_path / "out")]
    assert cli.main(command) == 0
    code = (
        "import sys; from lego_mlir import cli; assert cli.main(sys.argv[1:]) == 0\n"
        "print(*sorted({m.partition('.')[0] for m in sys.modules}), 'lego_mlir.compiler.driver' in"
        " sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *command],
        cwd=tmp_path,  # what is imported is the installed package, not a checkout that is here
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = done.stdout.split()
    assert not {"numba_cuda_mlir", "mlir", "sympy", "z3", "True"} & set(loaded)
    assert "lego_mlir" in loaded


def test_permutations_of_the_module_run_from_the_cache(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    module = Path(__file__).parents[2] / "legoc" / "run-permutation.mlir"
    for _ in range(2):
        assert cli.main([str(module), "--run", "--device=sim"]) == 0
        assert "equal to NumPy's copy" in capsys.readouterr().out
        assert store.usage().entries == 1
        entries.forget()
