"""Work in a forked child: its result comes back, its death becomes an error."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from lego_mlir.compiler.backend.child_process import run_isolated
from lego_mlir.diagnostics import LegoError, Location

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208


def test_result_comes_back_whole() -> None:
    data = bytes(range(256)) * 20_000  # larger than any pipe
    assert run_isolated(lambda: data, isolate=True) == data
    assert run_isolated(lambda: b"", isolate=True) == b""


def test_child_is_another_process_and_its_effects_stay_there() -> None:
    seen: list[int] = []

    def work() -> bytes:
        seen.append(1)
        return str(os.getpid()).encode()

    assert int(run_isolated(work, isolate=True)) != os.getpid()
    assert seen == []


def test_without_isolation_it_runs_here() -> None:
    assert int(run_isolated(lambda: str(os.getpid()).encode())) == os.getpid()
    with pytest.raises(ZeroDivisionError):
        run_isolated(lambda: bytes(1 // 0))


def test_abort_is_an_error() -> None:
    def work() -> bytes:
        os.abort()

    with pytest.raises(LegoError, match="making PTX failed: the code generator died of SIGABRT"):
        run_isolated(work, isolate=True, doing="making PTX")


def test_the_error_has_llvms_message() -> None:
    def work() -> bytes:
        os.write(2, b"some noise\nLLVM ERROR: Cannot select: t7: f32 = frob t3.\nmore noise\n")
        os.abort()

    with pytest.raises(LegoError) as caught:
        run_isolated(work, isolate=True)
    assert caught.value.message == (
        "generating code failed: LLVM gives up: Cannot select: t7: f32 = frob t3"
    )
    assert caught.value.hint is not None


@pytest.mark.parametrize(
    ("end", "message"),
    [
        (lambda: os.kill(os.getpid(), signal.SIGSEGV), "SIGSEGV"),
        (lambda: os._exit(1), "status 1"),
        (lambda: os._exit(0), "status 0"),
        (lambda: sys.exit(3), "status 1"),
    ],
)
def test_a_killed_child_is_an_error(end: object, message: str) -> None:
    with pytest.raises(LegoError, match=message):
        run_isolated(end, isolate=True)  # type: ignore[arg-type]


def test_lego_errors_keep_all_their_fields() -> None:
    original = LegoError("m", location=Location("f.mlir", 3, 2), hint="h", source="a\nb\nc")

    def work() -> bytes:
        raise original

    with pytest.raises(LegoError) as caught:
        run_isolated(work, isolate=True)
    assert caught.value is not original
    assert caught.value.render() == original.render()


def test_lego_errors_without_a_location() -> None:
    def work() -> bytes:
        raise LegoError("m")

    with pytest.raises(LegoError) as caught:
        run_isolated(work, isolate=True)
    assert caught.value.render() == "error: m"


def test_other_exceptions_bring_their_traceback() -> None:
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        run_isolated(lambda: bytes(1 // 0), isolate=True)


def test_stderr_of_a_success_is_passed_on(capsys: pytest.CaptureFixture[str]) -> None:
    def work() -> bytes:
        os.write(2, b"warning: so\n")
        return b"x"

    assert run_isolated(work, isolate=True) == b"x"
    assert capsys.readouterr().err == "warning: so\n"


def test_much_stderr_does_not_block() -> None:
    def work() -> bytes:
        os.write(2, b"x" * 1_000_000)
        os.abort()

    with pytest.raises(LegoError):
        run_isolated(work, isolate=True)


def test_nothing_is_left_behind() -> None:
    run_isolated(lambda: b"x", isolate=True)
    before = open_files()
    for _ in range(5):
        run_isolated(lambda: b"x", isolate=True)
        with pytest.raises(LegoError):
            run_isolated(lambda: os._exit(1), isolate=True)
    assert open_files() == before
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


def test_buffered_output_is_not_written_twice() -> None:
    script = (
        "import sys; from lego_mlir.compiler.backend.child_process import run_isolated\n"
        "sys.stdout.write('once'); run_isolated(lambda: b'x', isolate=True)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "once", "")
