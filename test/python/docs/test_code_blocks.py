"""Every code block of every document, and every example of `legoc --help`, runs.

The info string of a fenced block says what it is:

    python                 runs; the blocks of a document share one namespace. Where a block has
                           `>>>`, it is a doctest.
    python triton          runs with Triton, by `pytest -m foreign`, apart from the other blocks
    mlir                   a complete module, which legoc lowers
    mlir fragment          part of a module; not run
    sh                     commands, which must succeed
    console                commands after `$ `, and lines that they must print, in order
    text                   no code: output, syntax
    … not run: REASON      is not run, for example because it installs packages; but commands of the
                           benchmarks are parsed, and fuzzers run on fewer inputs
"""

from __future__ import annotations

import contextlib
import doctest
import io
import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

import bench.__main__ as bench

ROOT = Path(__file__).resolve().parents[3]
NAMES = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")
ROOMS = ("bench", "test/fuzz")
DOCUMENTS = [
    *(ROOT / name for name in NAMES),
    *(ROOT / room / "README.md" for room in ROOMS),
    *sorted((ROOT / "docs").glob("*.md")),
]

KINDS = {"python", "python triton", "mlir", "mlir fragment", "sh", "console", "text"}


@dataclass(frozen=True)
class Block:
    """A fenced block: its document, the line of its first line of text, its kind, its text."""

    document: Path
    line: int
    kind: str
    reason: str | None
    text: str

    @property
    def id(self) -> str:
        return f"{self.document.relative_to(ROOT)}:{self.line}"


def blocks_of(document: Path) -> list[Block]:
    """Return the fenced blocks of a document."""
    text = document.read_text()
    found = []
    for match in re.finditer(r"^```(.*)\n((?:(?!```).*\n)*)```$", text, re.M):
        line = text.count("\n", 0, match.start(2)) + 1
        kind, _, reason = match[1].partition(" not run: ")
        found.append(Block(document, line, kind, reason or None, match[2]))
    return found


BLOCKS = [block for document in DOCUMENTS for block in blocks_of(document)]


def runnable(kind: str) -> list[Block]:
    return [block for block in BLOCKS if block.kind == kind and block.reason is None]


def parametrize(kind: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("block", runnable(kind), ids=lambda block: block.id)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder that looks like the checkout, with the examples in it, too."""
    for name in ("docs", "dialects", "transforms", "bench"):
        (tmp_path / name).symlink_to(ROOT / name)
    for example in filter(Path.is_file, (ROOT / "docs" / "examples").iterdir()):
        (tmp_path / example.name).write_bytes(example.read_bytes())
    script = """if True:
        import numpy as np
        np.save('a.npy', np.ones((1024, 1024), np.float32))
        np.save('x.npy', np.ones(1000, np.float32))
    """
    subprocess.run([sys.executable, "-c", script], cwd=tmp_path, check=True)
    return tmp_path


def run(commands: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run shell commands, in which `legoc` and `python` are those of this interpreter."""
    shell = (
        f'set -e; legoc() {{ "{sys.executable}" -m lego_mlir.cli "$@"; }}\n'
        f'python() {{ "{sys.executable}" "$@"; }}\n'
    )
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", shell + commands],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda d: str(d.relative_to(ROOT)))
def test_every_block_has_a_known_kind(document: Path) -> None:
    assert document.read_text().count("\n```") == 2 * len(blocks_of(document))
    unknown = [(b.id, b.kind) for b in blocks_of(document) if b.kind not in KINDS]
    assert unknown == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda d: str(d.relative_to(ROOT)))
def test_code_is_fenced(document: Path) -> None:
    text = re.sub(r"^```.*?^```$", "", document.read_text(), flags=re.M | re.S)
    assert re.findall(r"(?:^|\n)\n {4}\S.*", text) == []


@pytest.mark.parametrize(
    "document",
    sorted({block.document for block in runnable("python")}),
    ids=lambda d: str(d.relative_to(ROOT)),
)
def test_python_blocks_run_from_top_to_bottom(
    document: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The blocks are a file whose lines are the document's, so that errors name those."""
    found = [b for b in blocks_of(document) if b.kind == "python" and b.reason is None]
    if any(re.search(r"^import torch\b", b.text, re.M) for b in found):
        pytest.importorskip("torch")
    lines = [""] * len(document.read_text().splitlines())
    for block in found:
        for number, line in enumerate(block.text.splitlines(), block.line - 1):
            lines[number] = line
    file = tmp_path / f"{document.stem.replace('-', '_')}.py"
    file.write_text("\n".join(lines))
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {"__name__": "__main__", "__file__": str(file)}
    for block in found:
        if ">>> " in block.text:
            parser, output = doctest.DocTestParser(), io.StringIO()
            test = parser.get_doctest(block.text, namespace, block.id, str(file), block.line - 1)
            doctest.DocTestRunner().run(test, out=output.write, clear_globs=False)
            namespace.update(test.globs)
            assert output.getvalue() == ""
            continue
        code = compile("\n" * (block.line - 1) + block.text, str(file), "exec")
        with contextlib.redirect_stdout(io.StringIO()):
            exec(code, namespace)  # noqa: S102


@parametrize("mlir")
def test_modules_are_lowered(block: Block, tmp_path: Path) -> None:
    (tmp_path / "module.mlir").write_text(block.text)
    done = run("legoc module.mlir --emit=scheduled", tmp_path)
    assert done.returncode == 0, done.stderr


@parametrize("sh")
def test_commands_succeed(block: Block, folder: Path) -> None:
    done = run(block.text, folder)
    assert done.returncode == 0, done.stdout + done.stderr


@parametrize("console")
def test_commands_print_what_the_document_shows(block: Block, folder: Path) -> None:
    """A command may print more than the document shows."""
    lines = block.text.splitlines()
    commands = [line[2:] for line in lines if line.startswith("$ ")]
    shown = [line for line in lines if not line.startswith("$ ")]
    done = run("set +e\n" + "\n".join(commands), folder)
    printed = iter(stable(done.stdout + done.stderr).splitlines())
    for line in shown:
        assert stable(line) in printed, f"not printed, or not there: {line}\n{done}"


def commands_not_run(program: str) -> list[str]:
    """Return the commands of a Python program in the blocks that are not run."""
    lines = (
        line.partition("#")[0].strip()
        for block in BLOCKS
        if block.kind == "sh" and block.reason is not None
        for line in block.text.replace("\\\n", " ").splitlines()
    )
    return [line[line.index(program) :] for line in lines if program in line]


@pytest.mark.parametrize("command", commands_not_run("python -m bench "))
def test_commands_of_the_benchmarks_have_these_options(command: str) -> None:
    arguments = shlex.split(command)[3:]
    assert bench._parser().parse_args(arguments).command == arguments[0]


@pytest.mark.parametrize("command", commands_not_run("python test/fuzz "))
def test_commands_of_the_fuzzers_run(command: str) -> None:
    done = run(f"{command} --count 3 --jobs 1", ROOT)
    assert done.returncode == 0, done.stderr


def stable(text: str) -> str:
    """Return a text without what depends on the machine or on details of the PTX."""
    text = re.sub(r"^device .*", "device …", text, flags=re.M)
    return re.sub(r"%\w+|\bline \d+", "…", text)


def help_examples() -> list[str]:
    """Return the commands that `legoc --help` shows; consecutive ones may share files."""
    shown = subprocess.run(
        [sys.executable, "-m", "lego_mlir.cli", "--help"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "COLUMNS": "200"},
    ).stdout
    (examples,) = re.findall(r"^examples:\n((?:  .*\n)+)", shown, re.M)
    return [re.split(r"\s{2,}", line.strip())[0] for line in examples.splitlines()]


def test_examples_of_the_help_run(folder: Path) -> None:
    commands = [line for line in help_examples() if line.startswith("legoc ")]
    assert commands
    no_gpu = [command.replace("--device=cuda", "--device=sim") for command in commands]
    done = run("\n".join(no_gpu), folder)
    assert done.returncode == 0, done.stderr
