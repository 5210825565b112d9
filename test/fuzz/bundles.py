"""Bundles: right ones with a damaged manifest, PTX text, zip structure or bytes.

What loads is run in the simulator, on its own random data: it must run, or fail with a LegoError.
"""

from __future__ import annotations

import io
import json
import tempfile
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from random import Random
from typing import Any

from fuzz.modules import drawn_move
from fuzz.mutations import mutated_bytes, mutated_json, mutated_text, smaller_texts
from lego_mlir.artifact import Artifact
from lego_mlir.compiler.driver import Compilation, Options
from lego_mlir.kernels import WgmmaConfig, matmul
from lego_mlir.limits import Limits
from lego_mlir.mlir.context import Source
from lego_mlir.runtime import RunResult, run

MANIFEST, PTX = "manifest.json", "kernels.ptx"

PTX_WORDS = (
    *("add.s32", "mov.u32", "ld.global.b32", "st.global.b32", "ld.param.u64", "bar.sync", "ret"),
    *(
        "bra",
        "setp.lt.s32",
        "mad.lo.s32",
        "shfl.sync.bfly.b32",
        "cvt.u64.u32",
        "div.s32",
        "rem.u32",
    ),
    *(".reg", ".param", ".shared", ".entry", ".func", ".b32", ".b64", ".f32", ".pred", ".align"),
    *("%r1", "%rd1", "%p1", "%tid.x", "%ctaid.x", "@%p1", "$L__BB0_1", "0f3F800000", "0x7FFFFFFF"),
    *("{", "}", "(", ")", "[", "]", ";", ",", "<", ">", ":", "+", "-", ".loc", ".file", ".target"),
)

_STAGED = """\
#tile = #lego.layout<"OrderBy(GenP([8, 8], swizzle))">
#rows = #lego.layout<"OrderBy(Row(8, 8))">
module attributes {lego.reference = "transpose"} {
  func.func @staged(%a: memref<8x8xf32> {lego.layout = #rows},
                    %b: memref<8x8xf32> {lego.layout = #rows}) {
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
               threads(%t, %ty, %tz) in (%sx = %c64, %sy = %c1, %sz = %c1) {
      %tile = "lego.alloc"() {layout = #tile}
          : () -> memref<?xf32, #gpu.address_space<workgroup>>
      %i, %j = "lego.inv"(%t) {layout = #rows} : (index) -> (index, index)
      %v = "lego.load"(%a, %i, %j) {layout = #rows} : (memref<8x8xf32>, index, index) -> f32
      "lego.store"(%v, %tile, %i, %j) {layout = #tile}
          : (f32, memref<?xf32, #gpu.address_space<workgroup>>, index, index) -> ()
      gpu.barrier
      %w = "lego.load"(%tile, %j, %i) {layout = #tile}
          : (memref<?xf32, #gpu.address_space<workgroup>>, index, index) -> f32
      "lego.store"(%w, %b, %i, %j) {layout = #rows}
          : (f32, memref<8x8xf32>, index, index) -> ()
      gpu.terminator
    }
    return
  }
}
"""


_SIZED = """\
#rows = #lego.layout<"OrderBy(Row(M, 8))">
#columns = #lego.layout<"OrderBy(Col(M, 8))">
func.func @sized(%a: memref<?x8xf32> {lego.layout = #rows},
                 %b: memref<?xf32> {lego.layout = #columns}, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %m = memref.dim %a, %c0 : memref<?x8xf32>
  %blocks = arith.ceildivsi %m, %c4 : index
  %w = gpu.alloc (%m) : memref<?xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %blocks, %gy = %c1, %gz = %c1)
             threads(%j, %i, %tz) in (%sx = %c8, %sy = %c4, %sz = %c1) {
    %first = arith.muli %bx, %c4 : index
    %row = arith.addi %first, %i : index
    %in = arith.cmpi slt, %row, %m : index
    scf.if %in {
      %v = "lego.load"(%a, %row, %j, %m) {layout = #rows}
          : (memref<?x8xf32>, index, index, index) -> f32
      memref.store %v, %w[%row] : memref<?xf32>
      "lego.store"(%v, %b, %row, %j, %m) {layout = #columns}
          : (f32, memref<?xf32>, index, index, index) -> ()
    }
    gpu.terminator
  }
  return
}
"""


def _of_any_rows() -> Artifact:
    """Return a GEMM whose tensor maps have sizes that the launch knows."""
    config = WgmmaConfig((64, 64, 64), 1, 2, persistent_ctas=2)
    kernel = matmul(None, 64, 64, config=config, target="sm_90a")
    return kernel.compilation().artifact(assemble=False)


@dataclass(frozen=True)
class Bundle:
    """The content of a file, and what was done to it."""

    data: bytes
    done: str


class Bundles:
    """See the module."""

    name = "bundles"

    def __init__(self) -> None:
        self.artifacts: list[Artifact] = []

    def prepare(self) -> None:
        """Compile what is damaged later, and run it once."""
        texts = [drawn_move(Random(seed)).text for seed in (1, 2, 3)]
        for text in (_STAGED, _SIZED, *texts):
            compilation = Compilation(Source("whole.mlir", text), Options())
            self.artifacts.append(compilation.artifact(assemble=False))
        self.artifacts.append(_of_any_rows())
        for artifact in (self.artifacts[0], self.artifacts[1], self.artifacts[-1]):
            _run(artifact)

    def make(self, random: Random) -> Bundle:
        """Return a damaged bundle."""
        data = random.choice(self.artifacts).to_bytes()
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            parts: dict[str, Any] = {name: archive.read(name) for name in archive.namelist()}
        done = random.choice(("manifest",) * 5 + ("ptx",) * 4 + ("zip", "text", "bytes"))
        match done:
            case "manifest":
                changed = mutated_json(random, json.loads(parts[MANIFEST]))
                parts[MANIFEST] = json.dumps(changed, indent=2).encode()
            case "text":
                text = mutated_text(random, parts[MANIFEST].decode(), ("{", "null", "1e999", "[["))
                parts[MANIFEST] = text.encode("utf-8", errors="surrogatepass")
            case "ptx":
                text = mutated_text(random, parts[PTX].decode(), PTX_WORDS, 2)
                parts[PTX] = text.encode("utf-8", errors="surrogatepass")
            case "zip":
                return Bundle(_zipped_strangely(random, parts), done)
            case "bytes":
                return Bundle(mutated_bytes(random, data), done)
        return Bundle(_zipped(parts), done)

    def show(self, made: Bundle) -> str:
        try:
            with zipfile.ZipFile(io.BytesIO(made.data)) as archive:
                parts = [f"-- {n}\n{archive.read(n).decode()}" for n in archive.namelist()]
            return f"({made.done})\n" + "\n".join(parts)
        except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError):
            return f"({made.done})\n{made.data.hex()}"

    def smaller(self, made: Bundle) -> Iterable[Bundle]:
        if made.done != "ptx":
            return
        with zipfile.ZipFile(io.BytesIO(made.data)) as archive:
            parts = {name: archive.read(name) for name in archive.namelist()}
        for text in smaller_texts(parts[PTX].decode()):
            yield Bundle(_zipped({**parts, PTX: text.encode()}), made.done)

    def check(self, made: Bundle) -> str:
        with tempfile.NamedTemporaryFile(suffix=".lego") as file:
            file.write(made.data)
            file.flush()
            artifact = Artifact.load(file.name)
        with _LIMITS.applied():  # the default allows tensors that a worker has no memory for
            result = _run(artifact)
        str(result.comparison)
        return "ran"


def _run(artifact: Artifact) -> RunResult:
    """Run an artifact on random data, with a few rows where the launch decides their number."""
    arguments = artifact.arguments
    shapes = {
        a.name: tuple(_ROWS if n is None else n for n in a.shape)
        for a in arguments
        if a.shape is not None and len(a.shape) > 1
    }
    scalars = {a.name: 3 for a in arguments if a.shape is None}
    return run(artifact, scalars, device="sim", shapes=shapes)


_ROWS = 5
_LIMITS = Limits(tensor_bytes=1 << 29)


def _zipped(parts: dict[str, bytes]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    return file.getvalue()


def _zipped_strangely(random: Random, parts: dict[str, bytes]) -> bytes:
    """A zip file with an entry missing, double, huge, empty, elsewhere, or packed otherwise."""
    kind = random.choice(
        (zipfile.ZIP_STORED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA, zipfile.ZIP_DEFLATED)
    )
    name = random.choice(sorted(parts))
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", kind) as archive:
        for entry, data in parts.items():
            match random.randrange(7) if entry == name else 7:
                case 0:
                    continue
                case 1:
                    archive.writestr(f"./{entry}", data)
                case 2:
                    archive.writestr(f"../{entry}", data)
                case 3:
                    archive.writestr(entry, b"")
                case 4:
                    archive.writestr(entry, data + b" " * (1 << 24))
                case 5:
                    archive.writestr(entry, bytes(random.randrange(256) for _ in range(99)))
                case 6:
                    archive.writestr(f"{entry}/", b"")
                case _:
                    archive.writestr(entry, data)
        if random.random() < 0.3:
            archive.writestr("kernels.cubin", b"\x7fELF")
    data = file.getvalue()
    return mutated_bytes(random, data) if random.random() < 0.3 else data


FUZZER = Bundles()
