"""`legoc --run kernel.ptx`: kernels that other compilers have made, on the simulator."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from lego_mlir import cli

SCALE = Path(__file__).parents[3] / "docs" / "examples" / "scale.ptx"
TWO = SCALE.read_text() + SCALE.read_text().partition(".address_size 64")[2].replace(
    "scale(", "again("
).replace("DONE", "END")
RACE = SCALE.read_text().replace("mad.lo.s32 %r2, %r2, %r3, %r4;", "mov.u32 %r2, %r4;")


@pytest.fixture
def legoc(tmp_path, monkeypatch, capsys):
    """Return a function that runs legoc in an empty folder: status, stdout and stderr."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(SCALE, tmp_path)
    (tmp_path / "two.ptx").write_text(TWO)
    (tmp_path / "race.ptx").write_text(RACE)
    (tmp_path / "bad.ptx").write_text(SCALE.read_text().replace("mul.f32", "mull.f32"))
    np.save("x.npy", np.arange(1000, dtype=np.float32).reshape(10, 100))

    def run(*arguments):
        try:
            status = cli.main(list(arguments))
        except SystemExit as e:
            status = e.code
        out, err = capsys.readouterr()
        return status, out, err

    return run


GOOD = ("--run", "--grid", "4", "--block", "256", "x.npy", "1000", "0.5")


def test_a_kernel_runs_on_arrays(legoc):
    status, out, err = legoc("scale.ptx", *GOOD, "--save", "out", "--sim-order", "random:3")
    assert (status, err) == (0, "")
    assert out.splitlines() == [
        "device   sim",
        "kernel   scale  grid (4, 1, 1), block (256, 1, 1)",
        "array    x  float32 10×100  x.npy, written",
        "saved    out/x.npy",
    ]
    assert (np.load("out/x.npy") == np.arange(1000).reshape(10, 100) / 2).all()
    assert (np.load("x.npy") == np.arange(1000).reshape(10, 100)).all()


def test_zeros_and_costs(legoc):
    status, out, _ = legoc("scale.ptx", "--run", "--block", "32", "f32:4x8", "32", "2", "--report")
    assert status == 0
    assert "array    x  float32 4×8  f32:4x8, not changed" in out
    assert "ld.global.f32" in out


def test_one_of_several_kernels(legoc):
    assert legoc("two.ptx", *GOOD, "--kernel", "again")[0] == 0
    assert legoc("two.ptx", *GOOD)[2] == (
        "two.ptx: error: the file has 2 kernels\n"
        "hint: --kernel NAME; its kernels are: scale, again\n"
    )


def test_races_in_global_memory_on_demand(legoc):
    assert legoc("race.ptx", *GOOD)[0] == 0
    status, _, err = legoc("race.ptx", *GOOD, "--global-checks")
    assert status == 1
    assert err.startswith("race.ptx:")
    assert "data race" in err


def test_writes_of_the_same_value_are_a_warning(legoc):
    text = Path("scale.ptx").read_text()
    stores = "mov.u64 %rd3, %rd1; st.global.u32 [%rd3], %r1;"
    Path("same.ptx").write_text(text.replace("ld.global.f32 %f2, [%rd3];", stores))
    text = Path("same.ptx").read_text().replace("st.global.f32 [%rd3], %f3;", "")
    Path("same.ptx").write_text(text)
    status, out, err = legoc("same.ptx", *GOOD, "--global-checks")
    assert (status, out.splitlines()[0]) == (0, "device   sim")
    first, *rest = err.splitlines()
    assert first.startswith("same.ptx:28:")
    assert ": warning: st.global.u32 writes argument 0 (x) at byte 0" in first
    assert rest[-1].startswith("hint: ")


BAD = {
    "another kernel": (("--kernel", "scales"), "has no kernel named scales"),
    "no threads": (("--block", "0"), "a block of (0, 1, 1)"),
    "too many": (("--block", "2048"), "a block of (2048, 1, 1)"),
    "memory": (("--shared-bytes", "1000000"), "1000000 bytes of dynamic shared memory"),
    "a cluster": (("--cluster", "3"), "no multiple of the cluster"),
    "a limit": (("--limit", "ctas=2"), "limit ctas is 2"),
}
VALUES = {
    "too few": (("x.npy", "1000"), "scale takes 3 arguments, 2 were given"),
    "no array": (("5", "1000", "1"), "the number 5 where x takes an array"),
    "no number": (("x.npy", "many", "1"), "'many' is no argument for n"),
    "a fraction": (("x.npy", "1e3", "1"), "'1e3' is no integer"),
    "too large": (("x.npy", "5000000000", "1"), "does not fit n"),
    "an array for a scalar": (("x.npy", "x.npy", "1"), "an array where a"),
    "no file": (("y.npy", "1000", "1"), "y.npy: error: the array cannot be read"),
    "no type": (("q8:4", "1000", "1"), "element type 'q8'"),
    "much memory": (("f32:9999999999x99999", "1000", "1"), "limit tensor_bytes"),
    "too short": (("f32:10", "1000", "1"), "out of bounds"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_launches(legoc, case):
    options, message = BAD[case]
    status, out, err = legoc("scale.ptx", *GOOD, *options)
    assert (status, out) == (1, "")
    assert message in err
    assert "Traceback" not in err


@pytest.mark.parametrize("case", VALUES)
def test_bad_arguments(legoc, case):
    values, message = VALUES[case]
    status, out, err = legoc("scale.ptx", "--run", "--grid", "4", "--block", "256", *values)
    assert (status, out) == (1, "")
    assert message in err
    assert err.count("error: ") == 1


def test_bad_ptx(legoc):
    status, _, err = legoc("bad.ptx", *GOOD)
    assert status == 1
    assert "bad.ptx:29:5: error: " in err
    assert "mull.f32" in err
    assert "cannot read the input" in legoc("none.ptx", *GOOD)[2]


@pytest.mark.parametrize(
    "arguments",
    [
        ("scale.ptx",),
        ("scale.ptx", "--emit", "cubin"),
        ("scale.ptx", "--kernel", "scale"),
        ("a.mlir", "--run", "--grid", "4"),
        ("scale.ptx", "--run", "--device", "cuda"),
        ("scale.ptx", "--run", "--block", "1,2,3,4"),
        ("scale.ptx", "--run", "--block", "x"),
    ],
)
def test_wrong_usage(legoc, arguments):
    status, out, err = legoc(*arguments)
    assert (status, out) == (2, "")
    assert err.startswith("legoc: error: ")
