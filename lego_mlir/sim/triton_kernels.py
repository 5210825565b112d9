"""Triton kernels in the simulator: compiled by Triton without a GPU, run on arrays of the host.

    sim.triton(add)[(4,)](x, y, out, 1000, BLOCK=256)

Triton compiles a kernel to PTX for the types of its arguments, as for a GPU; integers equal to 1
become constants, and multiples of 16 are assumed where they are given. Triton itself is imported
when the first kernel is compiled, torch never.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from lego_mlir.diagnostics import LegoError, Location
from lego_mlir.limits import Limits
from lego_mlir.sim.cost.counter import Costs
from lego_mlir.sim.host_arrays import host_array, is_tensor, type_name
from lego_mlir.sim.machine.arguments import Argument
from lego_mlir.sim.machine.launch import launch
from lego_mlir.sim.machine.tensor_map import TensorMap
from lego_mlir.sim.ptx.parsing.parser import parse
from lego_mlir.sim.ptx.syntax import Kernel, Module, Parameter
from lego_mlir.sim.ptx.types import Array
from lego_mlir.sources import Sources

Grid = int | Sequence[int] | Callable[[dict[str, Any]], Sequence[int]]

_POINTERS = {
    "float16": "fp16",
    "bfloat16": "bf16",
    "float32": "fp32",
    "float64": "fp64",
    "bool": "i1",
    "float8_e4m3fn": "fp8e4nv",
    "float8_e5m2": "fp8e5",
    "float8_e4m3b11fnuz": "fp8e4b15",
    **{f"int{n}": f"i{n}" for n in (8, 16, 32, 64)},
    **{f"uint{n}": f"u{n}" for n in (8, 16, 32, 64)},
}
"""Triton's name of each element type, by its name in NumPy, ml_dtypes and torch."""

_DIVISIBLE = [["tt.divisibility", 16]]
_SWIZZLES = ("none", "32B", "64B", "128B")


def triton(
    kernel: Any,
    *,
    order: str = "late",
    seed: int = 0,
    costs: bool = False,
    checks: bool = True,
    global_checks: bool = True,
    capability: int = 90,
    limits: Limits | None = None,
) -> TritonKernel:
    """Return a launcher of a Triton kernel in the simulator: `triton(kernel)[grid](*args)`.

    Args:
        kernel: a function under `@triton.jit`; with `@triton.heuristics` or `@triton.autotune`
            around it too. Of an autotuned kernel, the first config is taken, unless the call gives
            its parameters.
        order: the completion order (see `launch`).
        seed: of the random order.
        costs: whether a call returns the costs of the launch.
        checks: as of `launch`.
        global_checks: as of `launch`, but on by default.
        capability: the compute capability to compile for, at most 90, which is sm_90a.
        limits: on each launch; None: those of the context.

    Raises:
        LegoError: `kernel` is no Triton kernel.
    """
    options = {
        "order": order,
        "seed": seed,
        "costs": costs,
        "checks": checks,
        "global_checks": global_checks,
        "limits": limits,
    }
    return TritonKernel(kernel, options, capability)


@dataclass(frozen=True, eq=False)
class TritonKernel:
    """A Triton kernel and the options of its launches.

    Attributes:
        kernel: the kernel.
        options: of `launch`.
        capability: the compute capability that it is compiled for.
    """

    kernel: Any
    options: Mapping[str, Any]
    capability: int = 90

    def __post_init__(self) -> None:
        if not hasattr(_function(self.kernel), "arg_names"):
            raise LegoError(
                f"{type(self.kernel).__name__} is no Triton kernel",
                hint="pass a function that @triton.jit decorates",
            )

    def __getitem__(self, grid: Grid) -> Callable[..., Costs | None]:
        """Return a function that launches the kernel on a grid of programs.

        Its arguments are those of the kernel, and Triton's options, such as `num_warps`, by name.
        Arrays are NumPy arrays or torch tensors on the host, and are changed in place.

        Raises:
            LegoError: an argument does not fit, Triton cannot compile the kernel, or the run fails.
        """

        def run(*args: Any, **kwargs: Any) -> Costs | None:
            return self._run(grid, args, kwargs)

        return run

    def _run(self, grid: Grid, args: Sequence[Any], kwargs: dict[str, Any]) -> Costs | None:
        values, options = _bound(self.kernel, args, kwargs)
        compiled = _compiled(_function(self.kernel), values, options, self.capability)
        programs = grid(values) if callable(grid) else grid
        programs = (programs,) if isinstance(programs, int) else tuple(programs)
        if not 1 <= len(programs) <= 3 or not all(isinstance(n, int) for n in programs):
            raise LegoError(f"a grid of {programs}: it is 1 to 3 integers")
        x, y, z = (*programs, 1, 1)[:3]
        ctas = compiled.ctas
        entry = compiled.module.kernels[compiled.name]
        arguments = [each for name, kind in compiled.types for each in _flat(values[name], kind)]
        scratch = [np.zeros(max(1, n * x * y * z * ctas), np.uint8) for n in compiled.scratch]
        return launch(
            compiled.module,
            compiled.name,
            (x * ctas, y, z),
            entry.reqntid or (32 * compiled.warps, 1, 1),
            _arguments(entry, [*arguments, *scratch], compiled),
            shared_bytes=compiled.shared,
            cluster=(ctas, 1, 1) if ctas > 1 else None,
            **self.options,
        )


@dataclass(frozen=True, slots=True)
class Compiled:
    """A compiled Triton kernel.

    Attributes:
        types: the name and the Triton type of each argument of the kernel that is no constant.
        shared, warps, ctas: bytes of shared memory, warps of a CTA, CTAs of a program.
        scratch: bytes of scratch memory of a CTA, for each of Triton's own arguments at the end.
        maps: Triton's description of the tensor map of each tensor descriptor.
    """

    module: Module
    name: str
    types: tuple[tuple[str, str], ...]
    shared: int
    warps: int
    ctas: int
    scratch: tuple[int, ...]
    maps: tuple[Any, ...] = field(default=())


def _function(kernel: Any) -> Any:
    """Return the function under `@triton.jit` inside its decorators."""
    while not hasattr(kernel, "arg_names") or hasattr(kernel, "configs"):
        inner = getattr(kernel, "fn", None)
        if inner is None:
            break
        kernel = inner
    while hasattr(kernel, "fn") and hasattr(kernel.fn, "arg_names"):
        kernel = kernel.fn
    return kernel


def _bound(
    kernel: Any, args: Sequence[Any], kwargs: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the value of each parameter of a kernel, and the options of the compilation.

    Raises:
        LegoError: the arguments are not those of the kernel.
    """
    function = _function(kernel)
    names = list(function.arg_names)
    given = dict(kwargs)
    while kernel is not function:
        if hasattr(kernel, "configs"):
            given = {**kernel.configs[0].all_kwargs(), **given}
        for name, value in getattr(kernel, "values", {}).items():
            known = {**dict(zip(names, args, strict=False)), **given}
            given.setdefault(name, value(known))
        kernel = kernel.fn
    options = {name: given.pop(name) for name in list(given) if name not in names}
    try:
        bound = function.signature.bind(*args, **given)
    except TypeError as e:
        raise LegoError(
            f"the arguments do not fit {function.__name__}({', '.join(names)}): {e}"
        ) from None
    bound.apply_defaults()
    return dict(bound.arguments), {k: v for k, v in options.items() if v is not None}


_cache: dict[tuple[Any, ...], Compiled] = {}


def _compiled(
    function: Any, values: Mapping[str, Any], options: Mapping[str, Any], capability: int
) -> Compiled:
    """Compile a kernel for its arguments' types; the result is cached.

    Raises:
        LegoError: an argument has no Triton type, or Triton refuses the kernel.
    """
    try:
        import triton as package
        from triton.backends.compiler import GPUTarget
        from triton.compiler import ASTSource, make_backend
    except ImportError:
        raise LegoError(
            "Triton is not installed", hint="pip install 'lego-mlir[foreign]', or triton"
        ) from None
    signature: dict[str, str] = {}
    constants: dict[tuple[int, ...], Any] = {}
    attributes: dict[tuple[int, ...], Any] = {}
    for number, (name, parameter) in enumerate(zip(values, function.params, strict=True)):
        kind, divisible = _type(function, parameter, values[name])
        signature[name] = kind
        if kind == "constexpr":
            constants[(number,)] = values[name]
        elif divisible and not parameter.do_not_specialize_on_alignment:
            attributes[(number,)] = _DIVISIBLE
    key = (
        function.cache_key,
        tuple(signature.items()),
        repr(constants),
        tuple(attributes),
        repr(sorted(options.items())),
        capability,
    )
    found = _cache.get(key)
    if found is not None:
        return found
    source = ASTSource(fn=function, signature=signature, constexprs=constants, attrs=attributes)
    target = GPUTarget("cuda", capability, 32)
    known = vars(make_backend(target).parse_options({}))
    if unknown := [name for name in options if name not in known]:
        raise LegoError(
            f"{function.__name__} has no parameter {unknown[0]}, and Triton no such option",
            hint=f"its parameters are: {', '.join(function.arg_names)}",
        )
    try:
        kernel = package.compile(source, target=target, options=dict(options))
    except Exception as e:  # Triton's errors have no common class
        raise LegoError(f"Triton cannot compile {function.__name__}: {e}") from e
    data = kernel.metadata
    types = tuple((name, kind) for name, kind in signature.items() if kind != "constexpr")
    found = _cache[key] = Compiled(
        _module(function, kernel.asm["ptx"]),
        data.name,
        types,
        data.shared,
        data.num_warps,
        data.num_ctas,
        (data.global_scratch_size, data.profile_scratch_size),
        tuple(getattr(data, "tensordesc_meta", None) or ()),
    )
    return found


def _module(function: Any, ptx: str) -> Module:
    """Parse the PTX of a kernel; errors may show lines of the file that defines it."""
    digest = hashlib.sha256(ptx.encode()).hexdigest()[:8]
    file = f"<{function.__name__}-{digest}.ptx>"
    module = parse(ptx, file)
    own = Path(function.fn.__code__.co_filename)
    try:
        texts = {n: own.read_text("utf-8") for n in module.files.values() if Path(n) == own}
    except (OSError, UnicodeDecodeError):  # defined in no file, as in an interactive session
        texts = {}
    return parse(ptx, file, Sources.of(texts)) if texts else module


def _type(function: Any, parameter: Any, value: Any) -> tuple[str, bool]:
    """Return the Triton type of an argument, and whether it is a multiple of 16.

    Raises:
        LegoError: it has none.
    """

    def refused(what: str) -> LegoError:
        return LegoError(
            f"the argument {parameter.name} of {function.__name__} is {what}",
            hint="arguments are arrays, numbers, tensor descriptors, and tl.constexpr of any type",
        )

    if parameter.is_constexpr or value is None:
        return "constexpr", False
    if is_tensor(value):
        name = _POINTERS.get(type_name(value))
        if name is None:
            raise refused(f"an array of {type_name(value)}, which Triton has no type for")
        return f"*{name}", not parameter.do_not_specialize
    if hasattr(value, "block_shape"):
        element = _POINTERS[type_name(value.base)]
        return f"tensordesc<{element}{list(value.block_shape)}>", False
    annotated = parameter.annotation_type
    if isinstance(value, bool | np.bool_):
        return annotated or "u1", False
    if isinstance(value, int | np.integer):
        whole = int(value)
        if whole == 1 and not parameter.do_not_specialize and not annotated:
            return "constexpr", False
        bits = "i32" if -(1 << 31) <= whole < 1 << 31 else "i64" if whole < 1 << 63 else "u64"
        return annotated or bits, whole % 16 == 0 and not parameter.do_not_specialize
    if isinstance(value, float | np.floating):
        return annotated or "fp32", False
    raise refused(f"a {type(value).__name__}")


def _flat(value: Any, kind: str) -> list[Any]:
    """Return the kernel arguments of one argument: a tensor descriptor has several."""
    if not kind.startswith("tensordesc"):
        return [value]
    return [value, *value.shape, *value.strides]


def _arguments(entry: Kernel, values: Sequence[Any], compiled: Compiled) -> list[Argument]:
    """Return what `launch` takes for each parameter of a compiled kernel.

    Raises:
        LegoError: the kernel has another number of parameters, or a value does not fit its own.
    """
    if len(values) != len(entry.parameters):
        raise LegoError(
            f"Triton's {entry.name} has {len(entry.parameters)} parameters, not {len(values)}",
            location=Location(compiled.module.file, entry.line),
        )
    maps = iter(compiled.maps)
    found: list[Argument] = []
    for value, parameter in zip(values, entry.parameters, strict=True):
        if hasattr(value, "block_shape"):
            found.append(_tensor_map(value, next(maps)))
        elif is_tensor(value):
            found.append(host_array(value))
        else:
            found.append(_scalar(value, parameter))
    return found


def _scalar(value: Any, parameter: Parameter) -> np.generic:
    """Return a number in the type of a parameter."""
    if isinstance(value, float | np.floating):
        real: np.generic = np.dtype(f"f{parameter.size}").type(value)
        return real
    bits = int(value) % (1 << 8 * parameter.size)
    whole: np.generic = np.dtype(f"u{parameter.size}").type(bits)
    return whole


def _tensor_map(descriptor: Any, data: Mapping[str, Any]) -> TensorMap:
    """Return the tensor map of a tensor descriptor, as Triton's launcher encodes it."""
    base = host_array(descriptor.base)
    flat: Array = base.reshape(-1)
    width = flat.itemsize
    names = {"float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64"}
    name = type_name(descriptor.base)
    return TensorMap(
        flat,
        box=tuple(data["block_size"])[::-1],
        shape=tuple(descriptor.shape)[::-1],
        strides=tuple(int(s) * width for s in descriptor.strides[-2::-1]),
        dtype=names.get(name, f"s{8 * width}" if name in ("int32", "int64") else f"u{8 * width}"),
        swizzle=_SWIZZLES[data["swizzle"]],
        fill=descriptor.padding,
    )
