"""Bundles from strangers: each is loaded as it was saved, or refused in words within limits."""

from __future__ import annotations

import io
import json
import random
import re
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lego_mlir.artifact import FORMAT, Artifact
from lego_mlir.diagnostics import LegoError
from lego_mlir.limits import Limits


def members(artifact: Artifact) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(artifact.to_bytes())) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def zipped(parts: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    return file.getvalue()


@pytest.fixture
def refusal(tmp_path: Path) -> Callable[[bytes], str]:
    """The error for a file that is not loaded: one error at the file, with a hint."""

    def message(data: bytes) -> str:
        (tmp_path / "x.lego").write_bytes(data)
        with pytest.raises(LegoError) as caught:
            Artifact.load(tmp_path / "x.lego")
        text = caught.value.render()
        assert text.startswith(f"{tmp_path}/x.lego: error: ")
        assert "\nhint: " in text
        return text

    return message


def test_all_that_there_is_comes_back(whole: Artifact, sized: Artifact, tmp_path: Path) -> None:
    for artifact in (whole, sized):
        artifact.save(tmp_path / "x.lego")
        assert Artifact.load(tmp_path / "x.lego") == artifact


# --- the manifest: a path in it, another value, and the error ---

NAME = "name is .*, not a name: letters"
WRONG_FIELDS: list[tuple[str, Any, str]] = [
    ("name", "../../x", NAME),
    ("name", "/etc/passwd", NAME),
    ("name", "\x1b]0;title\x07", NAME),
    ("name", "\u202ex", NAME),
    ("name", "x" * 129, NAME),
    ("name", ["x"], r"name is \['x'\], not a text"),
    ("target", "sm_90a; rm", "target is .*, not a target such as"),
    ("reference", "a\nhint: do this", "reference is .*, not one line of at most 256"),
    ("reference", 5, "reference is 5, not of a known form"),
    ("arguments", {}, "arguments is an object of .*, not a list"),
    ("arguments.0", None, r"arguments\[0\] is None, not an object"),
    ("arguments.1.name", "a", r"arguments\[1\].name is 'a', as an argument before it is named"),
    ("arguments.1.name", "-rf", NAME),
    ("arguments.0.dtype", "f12", r"arguments\[0\].dtype is 'f12', not one of f16"),
    ("arguments.0.shape", [-1, 4], r"arguments\[0\].shape\[0\] is -1, not an integer from 0"),
    ("arguments.0.shape", [True, 4], r"arguments\[0\].shape\[0\] is True, not of a known form"),
    ("arguments.0.shape", [2.0, 4], r"arguments\[0\].shape\[0\] is 2.0, not of a known form"),
    ("arguments.0.shape", [2**40, 2**40], r"arguments\[0\].shape is .*, more than"),
    ("arguments.0.shape", [1] * 33, r"arguments\[0\].shape is .*, not a list of 0 to 32 items"),
    ("arguments.0.shape", "46", r"arguments\[0\].shape is '46', not of a known form"),
    ("arguments.0.access", "rw", r"arguments\[0\].access is 'rw', not one of read, write"),
    ("arguments.0.access", [], r"arguments\[0\].access is \[\], not one of read, write"),
    ("arguments.0.alignment", 0, r"arguments\[0\].alignment is 0, not a power of two"),
    ("arguments.0.alignment", 24, r"arguments\[0\].alignment is 24, not a power of two"),
    ("arguments.1.layout", "Row(" * 9999, r"arguments\[1\].layout is .*, not one line"),
    ("arguments.1.layout", "Row(1)\x1b[2J", r"arguments\[1\].layout is .*, not one line"),
    ("arguments.2.layout", "Row(1)", r"arguments\[2\] is a scalar, but has a layout"),
    ("launches.0.kernel", "j", "the PTX has no kernel 'j'"),
    ("launches.0.kernel", "k; rm", r"launches\[0\].kernel is .*, not the name of a kernel"),
    ("launches.0.grid", [0, 1, 1], r"launches\[0\].grid\[0\] is 0, not an integer from 1 to"),
    ("launches.0.grid", [2**31, 1, 1], r"launches\[0\].grid\[0\] is 2147483648, not an integer"),
    ("launches.0.grid", [1, 65536, 1], r"launches\[0\].grid\[1\] is 65536, not an integer"),
    ("launches.0.grid", [1, 1], r"launches\[0\].grid is \[1, 1\], not a list of 3 items"),
    ("launches.1.block", [1024, 2, 1], r"launches\[1\].block is .*, 2048 threads"),
    ("launches.0.shared_bytes", -1, r"launches\[0\].shared_bytes is -1, not an integer"),
    ("launches.0.pdl", 1, r"launches\[0\].pdl is 1, not true or false"),
    ("launches.0.parameters", [], r"launches\[0\] passes 0 parameters, kernel 'k' takes 6"),
    ("launches.0.parameters.0", {"argument": 3}, r"parameters\[0\] is argument 3, there are 3"),
    ("launches.0.parameters.0", {"argument": -1}, r"parameters\[0\] is -1, not an integer"),
    ("launches.0.parameters.0", {"argument": None}, r"parameters\[0\] is None, not of a known"),
    ("launches.0.parameters.0", {"argument": 0, "x": 0}, r"parameters\[0\] is an object of .*form"),
    ("launches.0.parameters.2", {"argument": 0}, r"parameters\[2\] has 8 bytes, kernel 'k' takes"),
    ("launches.0.parameters.2.value", 2**31, r"parameters\[2\].value is 2147483648, not an i32"),
    ("launches.0.parameters.2.value", 0.5, r"parameters\[2\].value is 0.5, not an i32"),
    ("launches.0.parameters.2.value", True, r"parameters\[2\].value is True, not of a known form"),
    ("launches.0.parameters.4.value", 10**400, r"parameters\[4\].value is .*, not a f32"),
    ("launches.0.parameters.1.argument", 2, r"parameters\[1\] maps argument 'n', a scalar"),
    ("launches.0.parameters.1.argument", 9, r"parameters\[1\] is argument 9, there are 3"),
    ("launches.0.parameters.1.shape", [], r"parameters\[1\] is a tensor map with .* 0 dimensions"),
    ("launches.0.parameters.1.shape", [4, 3, 3], r"parameters\[1\] maps 144 bytes, argument 'b.1'"),
    ("launches.0.parameters.1.strides", [16], "1 strides where 2 should stand"),
    ("launches.0.parameters.1.strides", [16, 40], r"strides of \(16, 40\) bytes"),
    ("launches.0.parameters.1.box", [4, 1], "box of 2 dimensions for a tensor of 3"),
    ("launches.0.parameters.1.box", [4, 0, 1], r"a box of \(4, 0, 1\): each is 1 to 256"),
    ("launches.0.parameters.1.box", [3, 1, 1], "has 12 bytes: no multiple of 16"),
    ("launches.0.parameters.1.box", [12, 1, 1], "has 48 bytes: with a swizzle of 32B at most 32"),
    ("launches.0.parameters.1.swizzle", 48, "a swizzle of 48 bytes"),
    ("launches.0.parameters.1.l2_promotion", 32, "l2_promotion is 32, not one of 0, 64, 128, 256"),
    ("launches.0.parameters.3.maps", [], r"parameters\[3\].maps is \[\], not a list of 1 to"),
    ("format", 99, f"format 99, this version reads {FORMAT}"),
    ("format", FORMAT - 1, f"format {FORMAT - 1}, this version reads {FORMAT}"),
    ("launches.0.parameters.3.maps.1.argument.workspace", 2, "is workspace 2, there are 2"),
    ("launches.0.parameters.3.maps.1.argument.workspace", 0, "maps 96 bytes, workspace 'count'"),
    ("launches.0.parameters.0", {"workspace": 2}, r"parameters\[0\] is workspace 2, there are 2"),
    ("workspaces", None, "workspaces is None, not a list"),
    ("workspaces.0.name", "/etc/passwd", NAME),
    ("workspaces.0.shape", [0], r"workspaces\[0\].shape is \[0\], 0 bytes; a workspace has 1 to"),
    ("workspaces.0.shape", [2**40, 2**40], r"workspaces\[0\].shape is .* bytes; a workspace has"),
    ("workspaces.0.dtype", "f12", r"workspaces\[0\].dtype is 'f12', not one of f16"),
    ("workspaces.0.alignment", 512, r"workspaces\[0\].alignment is 512, not a power of two"),
    ("workspaces.0.zeroed", 1, r"workspaces\[0\].zeroed is 1, not true or false"),
    ("format", "1", "format that is no number"),
    ("format", True, "format True"),
    ("ptx", "", "ptx is no known field"),
    ("\x1b", "", r"'\\x1b' is no known field"),
]


WRONG_SIZES: list[tuple[str, Any, str]] = [
    ("arguments.0.symbols.0", ["M"], r"symbols\[0\] is .*, not a list of 2 items"),
    ("arguments.0.symbols.0", ["M;", "a0.d0"], r"symbols\[0\]\[0\] is 'M;', not the name of a"),
    ("arguments.0.symbols.0", ["N", "a0.d0"], r"arguments\[0\].symbols are \['N', 'N'\], not"),
    ("arguments.0.symbols.0", ["M", "a0.d2"], "'M', names the size of a0 along dimension 2"),
    ("arguments.0.layout", None, r"arguments\[0\].symbols are .*, not symbols of its layout"),
    ("arguments.0.strides", [1, None], r"arguments\[0\].strides is .*: a tensor without a layout"),
    ("arguments.1.strides", [1], r"arguments\[1\].strides is \[1\]: .* each of its 2 dimensions"),
    ("arguments.1.strides", [-1, 1], r"strides\[0\] is -1, not an integer from 0"),
    ("launches.0.grid", ["a0", 1, 1], r"launches\[0\].grid\[0\] names a0, which is no argument"),
    ("launches.0.grid", ["", 1, 1], r"launches\[0\].grid\[0\] is '', not an expression"),
    ("launches.0.grid", ["2 3", 1, 1], r"launches\[0\].grid\[0\] has 2 values, not one"),
    ("launches.0.grid", ["a0.d0 +", 1, 1], r"grid\[0\] has an operator '\+' without two operands"),
    ("launches.0.grid", ["a7.d0", 1, 1], r"grid\[0\] names the size of a7 along dimension 0"),
    ("launches.0.grid", ["a0.s2", 1, 1], r"grid\[0\] names the stride of a0 along dimension 2"),
    ("launches.0.grid", ["a0.x", 1, 1], r"grid\[0\] is 'a0.x', not an expression"),
    ("launches.0.parameters.2.dtype", "f32", r"parameters\[2\].dtype is 'f32', not one of i32"),
    ("launches.0.parameters.2.dtype", "i64", r"parameters\[2\] has 8 bytes, kernel 'k' takes 4"),
    ("launches.0.parameters.2.expression", "a0", r"expression names a0, which is no argument"),
    ("launches.0.parameters.1.shape", [64, "a1"], r"parameters\[1\].shape\[1\] names a1"),
    ("launches.0.parameters.1.strides", ["a1.s9"], r"strides\[0\] names the stride of a1 along"),
    ("launches.0.parameters.1.box", [33, 8], "has 132 bytes: no multiple of 16"),
    ("workspaces.0.shape", ["a0", 64], r"workspaces\[0\].shape\[0\] names a0, which is no"),
    ("workspaces.0.shape", ["a0.d0", 0], r"workspaces\[0\].shape is \['a0.d0', 0\], 0 bytes"),
    ("facts.0.condition", "a1.d2", r"facts\[0\].condition names the size of a1 along dimension 2"),
]


@pytest.mark.parametrize(
    ("of", "path", "value", "says"),
    [
        pytest.param(of, *case, id=f"{case[0]!a} {str(case[1])[:20]!a}")
        for of, cases in (("whole", WRONG_FIELDS), ("sized", WRONG_SIZES))
        for case in cases
    ],
)
def test_a_field_that_is_wrong(
    request: Any, refusal: Any, of: str, path: str, value: Any, says: str
) -> None:
    parts = members(request.getfixturevalue(of))
    manifest = json.loads(parts["manifest.json"])
    *outer, last = (int(key) if key.isdecimal() else key for key in path.split("."))
    inside = manifest
    for key in outer:
        inside = inside[key]
    inside[last] = value
    text = refusal(zipped(parts | {"manifest.json": json.dumps(manifest).encode()}))
    assert re.search(says, text), text


@pytest.mark.parametrize("key", ["name", "arguments", "launches", "target", "reference"])
def test_a_field_that_is_missing(whole: Artifact, refusal: Any, key: str) -> None:
    parts = members(whole)
    manifest = {k: v for k, v in json.loads(parts["manifest.json"]).items() if k != key}
    data = zipped(parts | {"manifest.json": json.dumps(manifest).encode()})
    assert f"error: {key} is missing" in refusal(data)


NO_MANIFESTS = {
    "no JSON": b"{",
    "no object": b"[]",
    "deep": b"[" * 100_000,
    "no UTF-8": b'{"format": "\xff"}',
    "a key twice": b'{"format": 1, "format": 1}',
    "digits": b'{"format": ' + b"9" * 5000 + b"}",
}


@pytest.mark.parametrize("text", NO_MANIFESTS.values(), ids=NO_MANIFESTS)
def test_what_is_no_manifest(whole: Artifact, refusal: Any, text: bytes) -> None:
    assert "no lego-mlir artifact" in refusal(zipped(members(whole) | {"manifest.json": text}))


# --- the archive ---


def test_a_zip_bomb_is_not_inflated(
    whole: Artifact, refusal: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    bomb = zipped(members(whole) | {"kernels.ptx": bytes(8 << 20)})
    assert len(bomb) < 1 << 17
    with Limits(bundle_bytes=1 << 17).applied():
        text = refusal(bomb)
    assert "holds more than it may, inflated; the limit bundle_bytes is 131072" in text
    assert "legoc --limit bundle_bytes=VALUE" in text


def test_a_size_that_the_archive_states_is_not_believed(
    whole: Artifact, refusal: Any, tmp_path: Path
) -> None:
    data = bytearray(whole.to_bytes())
    stated = data.index(b"PK\x01\x02") + 24
    data[stated : stated + 4] = struct.pack("<I", 0xFFFFFF00)
    (tmp_path / "y.lego").write_bytes(data)
    assert Artifact.load(tmp_path / "y.lego") == whole
    data[stated : stated + 4] = struct.pack("<I", 1)
    refusal(bytes(data))


def test_a_large_file_is_not_read(whole: Artifact, tmp_path: Path) -> None:
    with (tmp_path / "x.lego").open("wb") as file:
        file.write(b"PK\x03\x04")
        file.truncate(1 << 40)
    with pytest.raises(LegoError, match="this bundle has 1099511627776 bytes; the limit bundle_b"):
        Artifact.load(tmp_path / "x.lego")


def test_many_launches_are_refused_before_they_are_read(whole: Artifact, tmp_path: Path) -> None:
    (tmp_path / "x.lego").write_bytes(whole.to_bytes())
    limits = Limits(bundle_launches=1)
    with pytest.raises(LegoError, match="this bundle has 2 launches; the limit bundle_launches is"):
        Artifact.load(tmp_path / "x.lego", limits=limits)
    with limits.applied(), pytest.raises(LegoError, match="this artifact has 2 launches"):
        whole.to_bytes()
    assert Artifact.load(tmp_path / "x.lego", limits=Limits(bundle_launches=2)) == whole


def with_comment(data: bytes) -> bytes:
    file = io.BytesIO(data)
    with zipfile.ZipFile(file, "a") as archive:
        archive.comment = b"x"
    return file.getvalue()


ARCHIVES: dict[str, Callable[[dict[str, bytes]], bytes]] = {
    "another member": lambda parts: zipped(parts | {"../x": b""}),
    "many members": lambda parts: zipped(parts | {str(n): b"" for n in range(999)}),
    "no PTX": lambda parts: zipped({k: v for k, v in parts.items() if k != "kernels.ptx"}),
    "bzip2": lambda parts: zipped(parts, zipfile.ZIP_BZIP2),
    "lzma": lambda parts: zipped(parts, zipfile.ZIP_LZMA),
    "comment": lambda parts: with_comment(zipped(parts)),
    "cut off": lambda parts: zipped(parts)[:-30],
    "PTX with a 0": lambda parts: zipped(parts | {"kernels.ptx": b"\0" + parts["kernels.ptx"]}),
    "PTX no UTF-8": lambda parts: zipped(parts | {"kernels.ptx": b"\xff"}),
}


@pytest.mark.parametrize("make", ARCHIVES.values(), ids=ARCHIVES)
def test_an_archive_that_save_does_not_make(whole: Artifact, refusal: Any, make: Any) -> None:
    refusal(make(members(whole)))


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_member_twice(whole: Artifact, refusal: Any) -> None:
    file = io.BytesIO(whole.to_bytes())
    with zipfile.ZipFile(file, "a") as archive:
        archive.writestr("kernels.ptx", "")
    refusal(file.getvalue())


def test_any_byte_may_be_wrong(whole: Artifact, tmp_path: Path) -> None:
    """Whatever becomes of a bundle, what comes of it is an artifact or an error of ours."""
    data, rng = whole.to_bytes(), random.Random(0)
    for _ in range(400):
        mutant = bytearray(data)
        for _ in range(rng.choice((1, 2, 8))):
            at = rng.randrange(len(mutant))
            mutant[at : at + rng.choice((0, 1, 4))] = rng.randbytes(rng.choice((0, 1, 4)))
        (tmp_path / "x.lego").write_bytes(mutant)
        message = ""
        try:
            Artifact.load(tmp_path / "x.lego").check()
        except LegoError as e:
            message = e.render()
        assert all(c.isprintable() or c == "\n" for c in message)
