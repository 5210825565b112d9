"""Conversions to and from the 8-bit floats, which LLVM has no type for.

    %y = arith.truncf %x : vector<2xf32> to vector<2xf8E4M3FN>

becomes, from sm_89 on, an instruction for each pair (PTX ISA 9.7.9.21, `cvt`), and integer
arithmetic on other targets; both give the same bits:

    %pair = llvm.call_intrinsic "llvm.nvvm.ff.to.e4m3x2.rn"(%x1, %x0) : (f32, f32) -> i16

Every number is rounded once, to nearest even. What is too large becomes the largest number, 448 or
57344, infinities too; a NaN becomes 0x7f. From 8 bits all numbers are exact, infinities and NaNs
included; they are converted to f32, and then to the result's type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import prod
from typing import Any

from lego_mlir.mlir.bindings import arith, ir, vector


@dataclass(frozen=True, slots=True)
class Format:
    """An 8-bit float.

    Attributes:
        name: as PTX spells it.
        bias: of the exponent.
        fraction: bits of the fraction.
        largest: its largest number.
    """

    name: str
    bias: int
    fraction: int
    largest: float


_FORMATS = {
    "f8E4M3FN": Format("e4m3", 7, 3, 448.0),
    "f8E5M2": Format("e5m2", 15, 2, 57344.0),
}
_NAN = 0x7F

_FROM_FLOAT = {"arith.truncf", "arith.extf"}
_TO_INTEGER = {"arith.fptosi", "arith.fptoui"}
_FROM_INTEGER = {"arith.sitofp", "arith.uitofp"}
_CASTS = _FROM_FLOAT | _TO_INTEGER | _FROM_INTEGER

HAS_INSTRUCTIONS = (8, 9)
"""The least compute capability that converts pairs of 8-bit floats."""


def lower_short_floats(operations: Iterable[Any], capability: tuple[int, int]) -> bool:
    """Replace every conversion to or from an 8-bit float; return whether there was one.

    Args:
        operations: of a module, before it is lowered to the llvm dialect, which is changed in
            place; its context is the current one.
        capability: the compute capability of the target.
    """
    has_instructions = capability >= HAS_INSTRUCTIONS
    casts = [op for op in operations if op.name in _CASTS and _is_ours(op)]
    for op in casts:
        x, kind = op.operands[0], op.results[0].type
        with ir.InsertionPoint(op), op.location:
            if _format(x.type) is not None:
                result = _cast(_widened(x, has_instructions), kind, op.name)
            else:
                single = _to_single(x, op.name)
                result = _narrowed(single, kind, has_instructions)
        op.results[0].replace_all_uses_with(result)
        op.erase()
    return bool(casts)


def _is_ours(op: Any) -> bool:
    """Return whether a cast is about an 8-bit float, and rounds as we do."""
    mode = "roundingmode"
    if mode in op.attributes and ir.IntegerAttr(op.attributes[mode]).value != 0:
        return False  # 0 is to nearest even
    kinds = op.operands[0].type, op.results[0].type
    return any(_format(kind) is not None for kind in kinds)


def _element(kind: Any) -> Any:
    return kind.element_type if isinstance(kind, ir.VectorType) else kind


def _format(kind: Any) -> Format | None:
    return _FORMATS.get(str(_element(kind)))


def _of(element: Any, like: Any) -> Any:
    """Return the type of elements in the shape of another type."""
    if not isinstance(like, ir.VectorType):
        return element
    return ir.VectorType.get(list(like.shape), element)


def _f32(like: Any) -> Any:
    return _of(ir.F32Type.get(), like)


def _word(width: int, like: Any) -> Any:
    return _of(ir.IntegerType.get_signless(width), like)


def _constant(kind: Any, value: float) -> Any:
    """Return a constant of a type, the same in every element."""
    element = _element(kind)
    if isinstance(element, ir.FloatType):
        attribute = ir.FloatAttr.get(element, value)
    else:
        attribute = ir.IntegerAttr.get(element, int(value))
    if kind != element:
        attribute = ir.DenseElementsAttr.get_splat(kind, attribute)
    return arith.ConstantOp(kind, attribute).result


# To and from f32.
def _cast(x: Any, kind: Any, name: str) -> Any:
    """f32 as what the conversion of an 8-bit float gives; exact, but for integers."""
    if name in _TO_INTEGER:
        return ir.Operation.create(name, results=[kind], operands=[x]).result
    width = _element(kind).width
    if width == 32:
        return x
    return (arith.ExtFOp if width > 32 else arith.TruncFOp)(kind, x).result


def _to_single(x: Any, name: str) -> Any:
    """Numbers as f32, from which one rounding gives what one rounding of `x` would.

    Integers that f32 does not hold are above the largest 8-bit float.
    """
    kind = _f32(x.type)
    if name in _FROM_INTEGER:
        return ir.Operation.create(name, results=[kind], operands=[x]).result
    width = _element(x.type).width
    if width == 32:
        return x
    return arith.ExtFOp(kind, x).result if width < 32 else _to_odd(x)


def _to_odd(x: Any) -> Any:
    """f64 as f32, rounded to odd: the neighbour with the last bit set where something is lost.

    (S. Boldo, G. Melquiond, Emulation of FMA and correctly rounded sums: proved algorithms using
    rounding to odd, 2008.)
    """
    kind, word = _f32(x.type), _word(32, x.type)
    near = arith.TruncFOp(kind, x).result
    back = arith.ExtFOp(x.type, near).result
    bits = arith.BitcastOp(word, near).result
    one, minus_one = _constant(word, 1), _constant(word, -1)
    is_odd = arith.TruncIOp(_word(1, x.type), bits).result
    is_lost = arith.CmpFOp(arith.CmpFPredicate.ONE, back, x).result
    is_above = arith.CmpFOp(arith.CmpFPredicate.OGT, x, back).result
    is_positive = arith.CmpFOp(arith.CmpFPredicate.OGT, x, _constant(x.type, 0.0)).result
    is_inwards = arith.XOrIOp(is_above, is_positive).result
    step = arith.SelectOp(is_inwards, minus_one, one).result
    moved = arith.AddIOp(bits, step).result
    kept = arith.SelectOp(is_odd, bits, moved).result
    return arith.BitcastOp(kind, arith.SelectOp(is_lost, kept, bits).result).result


# f32 to 8 bits.
def _narrowed(x: Any, kind: Any, has_instructions: bool) -> Any:
    """f32 as an 8-bit float."""
    form = _format(kind)
    assert form is not None
    codes = _narrowed_by_pairs(x, form) if has_instructions else _narrowed_by_integers(x, form)
    return arith.BitcastOp(kind, codes).result


def _narrowed_by_pairs(x: Any, form: Format) -> Any:
    """Return the codes of f32, by instructions."""
    i8, i16 = (ir.IntegerType.get_signless(n) for n in (8, 16))

    def pair(low: Any, high: Any) -> Any:
        return _intrinsic(f"ff.to.{form.name}x2.rn", i16, high, low)

    if not isinstance(x.type, ir.VectorType):
        both = pair(x, _constant(x.type, 0.0))
        return arith.TruncIOp(i8, both).result
    elements = _elements(x)
    if len(elements) % 2:
        elements.append(_constant(elements[0].type, 0.0))
    pairs = [pair(*elements[k : k + 2]) for k in range(0, len(elements), 2)]
    words = vector.FromElementsOp(ir.VectorType.get([len(pairs)], i16), pairs).result
    return _shaped(vector.BitCastOp(ir.VectorType.get([len(elements)], i8), words).result, x.type)


def _narrowed_by_integers(x: Any, form: Format) -> Any:
    """Return the codes of f32, by arithmetic on their bits."""
    word = _word(32, x.type)

    def number(n: int) -> Any:
        return _constant(word, n)

    def bits_of(value: float) -> Any:
        return arith.BitcastOp(word, _constant(x.type, value)).result

    bits = arith.BitcastOp(word, x).result
    size = arith.AndIOp(bits, number(0x7FFFFFFF)).result
    most = arith.MinUIOp(size, bits_of(form.largest)).result
    lost = 23 - form.fraction
    # Halves are added, and less than that where the last bit that stays is 0: ties to even.
    last = arith.AndIOp(arith.ShRUIOp(most, number(lost)).result, number(1)).result
    half = arith.AddIOp(last, number((1 << lost - 1) - 1)).result
    raised = arith.ShRUIOp(arith.AddIOp(most, half).result, number(lost)).result
    normal = arith.SubIOp(raised, number((127 - form.bias) << form.fraction)).result
    # Below the normal numbers, an addition in f32 rounds to the one exponent that there is.
    unit = 2.0 ** (1 - form.bias - form.fraction + 23)
    magnitude = arith.BitcastOp(x.type, most).result
    total = arith.AddFOp(magnitude, _constant(x.type, unit)).result
    tiny = arith.SubIOp(arith.BitcastOp(word, total).result, bits_of(unit)).result
    is_tiny = arith.CmpIOp(arith.CmpIPredicate.ult, most, bits_of(2.0 ** (1 - form.bias))).result
    code = arith.SelectOp(is_tiny, tiny, normal).result
    sign = arith.AndIOp(arith.ShRUIOp(bits, number(24)).result, number(0x80)).result
    is_nan = arith.CmpIOp(arith.CmpIPredicate.ugt, size, bits_of(float("inf"))).result
    signed = arith.OrIOp(code, sign).result
    found = arith.SelectOp(is_nan, number(_NAN), signed).result
    return arith.TruncIOp(_word(8, x.type), found).result


# 8 bits to f32.
def _widened(x: Any, has_instructions: bool) -> Any:
    """Return an 8-bit float as f32."""
    form = _format(x.type)
    assert form is not None
    codes = arith.BitcastOp(_word(8, x.type), x).result
    half = _widened_by_pairs if has_instructions else _widened_by_integers
    return half(codes, form)


def _widened_by_pairs(codes: Any, form: Format) -> Any:
    """Return the numbers of codes, by instructions."""
    i8, i16 = (ir.IntegerType.get_signless(n) for n in (8, 16))
    halves = ir.VectorType.get([2], ir.F16Type.get())

    def pair(word: Any) -> list[Any]:
        both = _intrinsic(f"{form.name}x2.to.f16x2.rn", halves, word)
        return [_single(both, k) for k in range(2)]

    if not isinstance(codes.type, ir.VectorType):
        number = pair(arith.ExtUIOp(i16, codes).result)[0]
        return arith.ExtFOp(_f32(codes.type), number).result
    count = prod(codes.type.shape)
    row = vector.ShapeCastOp(ir.VectorType.get([count], i8), codes).result
    if count % 2:
        last = _single(row, count - 1)
        padded = [*(_single(row, k) for k in range(count)), last]
        row = vector.FromElementsOp(ir.VectorType.get([count + 1], i8), padded).result
    words = vector.BitCastOp(ir.VectorType.get([(count + 1) // 2], i16), row).result
    numbers = [x for word in _elements(words) for x in pair(word)][:count]
    found = vector.FromElementsOp(ir.VectorType.get([count], ir.F16Type.get()), numbers).result
    return arith.ExtFOp(_f32(codes.type), _shaped(found, codes.type)).result


def _widened_by_integers(codes: Any, form: Format) -> Any:
    """Return the numbers of codes, by the bits of the f16 that they are, but for the bias."""
    word = _word(16, codes.type)
    wide = arith.ExtUIOp(word, codes).result
    shift: Callable[[Any, int], Any] = lambda x, n: arith.ShLIOp(x, _constant(word, n)).result  # noqa: E731
    sign = arith.AndIOp(shift(wide, 8), _constant(word, -0x8000)).result
    size = arith.AndIOp(wide, _constant(word, 0x7F)).result
    bits = arith.OrIOp(sign, shift(size, 10 - form.fraction)).result
    half = arith.BitcastOp(_of(ir.F16Type.get(), codes.type), bits).result
    number = arith.ExtFOp(_f32(codes.type), half).result
    if form.fraction == 2:  # the upper half of an f16, infinities and NaNs included
        return number
    scale = _constant(number.type, 2.0 ** (15 - form.bias))
    scaled = arith.MulFOp(number, scale).result
    is_nan = arith.CmpIOp(arith.CmpIPredicate.eq, size, _constant(word, _NAN)).result
    return arith.SelectOp(is_nan, _constant(number.type, float("nan")), scaled).result


# Parts of vectors.
def _elements(x: Any) -> list[Any]:
    """Return the elements of a vector, in row-major order."""
    count = prod(x.type.shape)
    row = vector.ShapeCastOp(ir.VectorType.get([count], x.type.element_type), x).result
    return [_single(row, k) for k in range(count)]


def _single(row: Any, k: int) -> Any:
    return vector.ExtractOp(row, [], [k]).result


def _shaped(row: Any, like: Any) -> Any:
    """Return the first elements of a vector in the shape of another type."""
    count = prod(like.shape)
    kind = ir.VectorType.get([count], row.type.element_type)
    if row.type != kind:
        row = vector.ExtractStridedSliceOp(kind, row, [0], [count], [1]).result
    return vector.ShapeCastOp(_of(kind.element_type, like), row).result


def _intrinsic(name: str, kind: Any, *operands: Any) -> Any:
    return ir.Operation.create(
        "llvm.call_intrinsic",
        results=[kind],
        operands=list(operands),
        attributes={
            "intrin": ir.StringAttr.get(f"llvm.nvvm.{name}"),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(operands), 0]),
            "op_bundle_sizes": ir.DenseI32ArrayAttr.get([]),
        },
    ).result
