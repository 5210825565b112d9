"""What compilation leaves behind: PTX, cubin, and how to launch them.

An artifact is plain data. The compiler makes it, `runtime` and `sim` run it, and neither needs
MLIR or SymPy for that: a saved artifact runs on a machine that has only NumPy and cuda-core.

On disk it is one zip file: `manifest.json`, `kernels.ptx` and, where assembled, `kernels.cubin`.
"""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from lego_mlir.diagnostics import LegoError, Place

FORMAT = 2
READABLE = (1, 2)
"""The formats that this version reads; 1 has no facts, and does not say what works in place."""

CHECK_MARK = "lego.check: "
"""What a trap of a check has in the comment behind it, before the message."""

Dim3 = tuple[int, int, int]
Access = Literal["read", "write", "readwrite", "none"]


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of the host function.

    Attributes:
        name: its name in the source.
        dtype: MLIR's name of the element type: `f16`, `bf16`, `f32`, `f64`, `i8` … `i64`.
        shape: of the buffer, dense and row-major; `None` for a scalar.
        layout: the text of the layout that maps the tensor's logical index to the buffer's flat
            offset; `None` where the buffer is the tensor itself, row-major.
        access: what the kernels do with it.
        alignment: of the buffer's address, in bytes; a power of two that the kernels rely on.
    """

    name: str
    dtype: str
    shape: tuple[int, ...] | None
    layout: str | None = None
    access: Access = "readwrite"
    alignment: int = 1


@dataclass(frozen=True, slots=True)
class Constant:
    """A scalar kernel parameter whose value the host function fixes."""

    dtype: str
    value: int | float


@dataclass(frozen=True, slots=True)
class TensorMap:
    """A kernel parameter that is a tensor map: how TMA copies boxes of a tensor.

    Dimensions go from the innermost outwards.

    Attributes:
        argument: the position of the host function's argument whose buffer it maps.
        shape: of the tensor, in elements.
        strides: of all dimensions but the innermost, in bytes.
        box: in elements.
        swizzle: of the box in shared memory: 0, 32, 64 or 128 bytes.
    """

    argument: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    swizzle: int


@dataclass(frozen=True, slots=True)
class TensorMaps:
    """A kernel parameter that is several tensor maps, one behind the other."""

    maps: tuple[TensorMap, ...]


Parameter = int | Constant | TensorMap | TensorMaps
"""The position of the host function's argument that a kernel's parameter is, or what it is else."""


@dataclass(frozen=True, slots=True)
class Launch:
    """One kernel launch of the host function.

    Attributes:
        kernel: the entry's name in the PTX.
        grid: blocks in x, y and z.
        block: threads in x, y and z.
        parameters: for each kernel parameter the position of the host function's argument that
            it receives, a constant, or tensor maps.
        shared_bytes: dynamic shared memory (static shared memory stands in the PTX).
        dependent: whether the kernel waits by itself for what was launched before it on the
            stream, and so may begin earlier (programmatic dependent launch).
    """

    kernel: str
    grid: Dim3
    block: Dim3
    parameters: tuple[Parameter, ...]
    shared_bytes: int = 0
    dependent: bool = False

    def __str__(self) -> str:
        grid, block = ("×".join(str(n) for n in size) for size in (self.grid, self.block))
        said = [self.kernel, f"grid {grid}", f"block {block}"]
        if self.shared_bytes:
            said.append(f"dynamic shared memory {self.shared_bytes} bytes")
        if self.dependent:
            said.append("dependent")
        return "  ".join(said)


@dataclass(frozen=True, slots=True)
class Fact:
    """What the code relies on of the arguments, so that every launch evaluates it.

    Expressions are numbers, arguments (`a0` is the first) and operators, each operator behind its
    operands: `a0 16 % 0 ==` holds where 16 divides the first argument.

    Attributes:
        condition: an expression that is not 0 where the fact holds.
        value: the expression that the fact is about.
        says: what it says of the value, for the error.
        place: where in the source, `file:line:column`; may be empty.
    """

    condition: str
    value: str
    says: str
    place: str = ""


@dataclass(frozen=True, slots=True)
class Artifact:
    """A compiled host function: its arguments, its launches in order, and the code they run.

    Attributes:
        in_place: the kernels may get buffers that overlap, of which they write some.
        facts: what the code relies on of the arguments.
        checked: the kernels check what could not be proven.
    """

    name: str
    target: str
    arguments: tuple[Argument, ...]
    launches: tuple[Launch, ...]
    ptx: str
    cubin: bytes | None = None
    reference: str | None = None
    in_place: bool = False
    facts: tuple[Fact, ...] = ()
    checked: bool = False

    def __hash__(self) -> int:
        # Every launch looks its artifact up, and these two know their hashes.
        return hash((self.name, self.ptx))

    def to_bytes(self) -> bytes:
        """The artifact as the content of its file; the same artifact gives the same bytes."""
        import io  # these are not for a run that only compiles
        import json
        import zipfile

        manifest: dict[str, Any] = {
            "format": FORMAT,
            "name": self.name,
            "target": self.target,
            "reference": self.reference,
            "in_place": self.in_place,
            "facts": [asdict(fact) for fact in self.facts],
            "checked": self.checked,
            "arguments": [asdict(a) for a in self.arguments],
            "launches": [_launch_to_json(launch) for launch in self.launches],
        }
        parts: dict[str, str | bytes] = {
            "manifest.json": json.dumps(manifest, indent=2) + "\n",
            "kernels.ptx": self.ptx,
        }
        if self.cubin is not None:
            parts["kernels.cubin"] = self.cubin
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, data in parts.items():
                archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)
        return file.getvalue()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the artifact as one file; an existing file is replaced whole or not at all.

        Raises:
            LegoError: the file cannot be written.
        """
        write_whole(path, self.to_bytes())

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Artifact:
        """Read an artifact that `save` wrote.

        Raises:
            LegoError: the file is missing, is no artifact, or has another format.
        """
        import json
        import zipfile

        place = Place(str(path))
        try:
            with zipfile.ZipFile(path) as archive:
                manifest = json.loads(archive.read("manifest.json"))
                ptx = archive.read("kernels.ptx").decode()
                names = archive.namelist()
                cubin = archive.read("kernels.cubin") if "kernels.cubin" in names else None
        except OSError as e:
            raise LegoError(f"the artifact cannot be read: {e.strerror}", place=place) from None
        except (zipfile.BadZipFile, KeyError, ValueError):
            raise LegoError(
                "this file is no lego-mlir artifact",
                place=place,
                hint="make one with legoc INPUT.mlir --emit=bundle -o OUT.lego",
            ) from None
        if manifest.get("format") not in READABLE:
            raise LegoError(
                f"this artifact has format {manifest.get('format')}, this version reads {FORMAT}",
                place=place,
                hint="compile it again with this version of legoc",
            )
        return Artifact(
            name=manifest["name"],
            target=manifest["target"],
            arguments=tuple(_argument_from_json(a) for a in manifest["arguments"]),
            launches=tuple(_launch_from_json(launch) for launch in manifest["launches"]),
            ptx=ptx,
            cubin=cubin,
            reference=manifest["reference"],
            in_place=manifest.get("in_place", False),
            facts=tuple(Fact(**fact) for fact in manifest.get("facts", ())),
            checked=manifest.get("checked", False),
        )


def write_whole(path: str | os.PathLike[str], data: bytes) -> None:
    """Write a file, or nothing at all: the data goes to a file beside it that then takes its name.

    A link stays, and what it points at is written; a device, a pipe or /dev/stdout is written to.

    Raises:
        LegoError: it cannot be written.
    """
    goal = Path(path)
    try:
        if _is_descriptor(goal) or (goal.exists() and not goal.is_file()):
            with goal.open("ab") as file:  # what is in it stays, as behind `>> log`
                file.write(data)
            return
        goal = Path(os.path.realpath(goal))
        part = goal.with_name(f".{goal.name}.{os.urandom(6).hex()}")
        try:
            with part.open("xb") as file:
                file.write(data)
            part.replace(goal)
        except BaseException:
            part.unlink(missing_ok=True)
            raise
    except OSError as e:
        raise LegoError(f"cannot be written: {e.strerror}", place=Place(str(path))) from None


def _is_descriptor(path: Path) -> bool:
    """Whether a path names a file that the process has open, as /dev/stdout does."""
    folder = str(Path.cwd().joinpath(path).parent)
    return path.is_symlink() and folder in ("/dev", "/dev/fd", "/proc/self/fd")


def _argument_from_json(data: dict[str, Any]) -> Argument:
    shape = data["shape"]
    return Argument(**{**data, "shape": None if shape is None else tuple(shape)})


def _launch_to_json(launch: Launch) -> dict[str, Any]:
    return {
        **asdict(launch),
        "parameters": [
            {"argument": p} if isinstance(p, int) else asdict(p) for p in launch.parameters
        ],
    }


def _launch_from_json(data: dict[str, Any]) -> Launch:
    parameters = tuple(_parameter_from_json(p) for p in data["parameters"])
    gx, gy, gz = data["grid"]
    bx, by, bz = data["block"]
    return Launch(
        data["kernel"],
        (gx, gy, gz),
        (bx, by, bz),
        parameters,
        data["shared_bytes"],
        data["dependent"],
    )


def _parameter_from_json(data: dict[str, Any]) -> Parameter:
    if "maps" in data:
        return TensorMaps(tuple(_map_from_json(one) for one in data["maps"]))
    if "box" in data:
        return _map_from_json(data)
    return data["argument"] if "argument" in data else Constant(**data)


def _map_from_json(data: dict[str, Any]) -> TensorMap:
    sizes = {name: tuple(data[name]) for name in ("shape", "strides", "box")}
    return TensorMap(**{**data, **sizes})
