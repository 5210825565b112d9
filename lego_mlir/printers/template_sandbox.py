"""What a template can do: a Jinja environment for the templates of strangers.

A template has expressions, `if`, `for`, `set` and comments. It can call the functions that it is
given, and the methods of layouts; it has no strings to compute with, no other file, no attribute
that is not listed here. Calls and turns of loops are counted, numbers and texts have limits. So it
ends, and all that it can do is to make text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NoReturn

from jinja2 import StrictUndefined, TemplateSyntaxError, nodes
from jinja2.exceptions import SecurityError, TemplateError, TemplateRuntimeError, UndefinedError
from jinja2.runtime import LoopContext
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.visitor import NodeTransformer

from lego_mlir.algebra.layout import Layout
from lego_mlir.algebra.slices import Slice
from lego_mlir.diagnostics import LegoError
from lego_mlir.index import Expr, Sym, construct
from lego_mlir.index.polynomial import divides
from lego_mlir.limits import current, limit_error
from lego_mlir.printers.cute import CuteLayout
from lego_mlir.printers.triton import TritonTile

_ATTRIBUTES: dict[type, tuple[str, ...]] = {
    Layout: (
        *("OrderBy", "TileOrderBy", "GroupBy", "TileBy", "apply", "bind", "compose", "dims"),
        *("inv", "inverse", "mask", "rank", "simplified", "size", "tensor_shape", "text"),
    ),
    Slice: ("base", "mask", "offset", "shape"),
    TritonTile: (
        *("block_pointer", "boundary_check", "descriptor", "descriptor_offsets"),
        "descriptor_permute",
        *("mask", "shape"),
    ),
    CuteLayout: ("cpp", "python"),
    LoopContext: ("first", "index", "index0", "last", "length"),
}
"""The attributes that a template may use, by type."""

_NODES = (
    *(nodes.Template, nodes.Output, nodes.TemplateData, nodes.For, nodes.If, nodes.Assign),
    *(nodes.Name, nodes.Const, nodes.Tuple, nodes.List, nodes.Keyword, nodes.Slice),
    *(nodes.Getitem, nodes.Getattr, nodes.Call, nodes.CondExpr, nodes.Compare, nodes.Operand),
    *(nodes.Add, nodes.Sub, nodes.Mul, nodes.Div, nodes.FloorDiv, nodes.Mod, nodes.Neg, nodes.Pos),
    *(nodes.Not, nodes.And, nodes.Or, nodes.Filter, nodes.Test),
)
_COUNTED = "counted turns"  # no template can write this name
_FILTERS = ("join", "length")
_TESTS = ("defined", "divisibleby", "even", "odd")
_MOST_BITS = 256


class Sandbox(ImmutableSandboxedEnvironment):
    """A Jinja environment for templates of source text.

    Args:
        names: what expressions may name; functions may be called.
        hole: returns the text of what stands in a hole.
    """

    intercepted_binops = frozenset(["+", "-", "*", "/", "//", "%"])
    intercepted_unops = frozenset(["+", "-"])

    def __init__(self, names: Mapping[str, Any], hole: Callable[[Any], str]) -> None:
        super().__init__(
            undefined=StrictUndefined,
            finalize=lambda x: x if isinstance(x, StrictUndefined) else hole(x),
            keep_trailing_newline=True,
            trim_blocks=True,
            lstrip_blocks=True,
            autoescape=False,
            cache_size=0,
        )
        self._left = current().template_steps
        self.globals = {**names, "range": _range}
        self._functions = frozenset(id(f) for f in self.globals.values() if callable(f))
        self.filters = {"join": _join, "length": len, _COUNTED: self._counted}
        self.tests = {name: self.tests[name] for name in (*_TESTS, "in") if name in self.tests}

    def parsed(self, text: str) -> nodes.Template:
        """Return a template's syntax tree, with what it must not do refused.

        Raises:
            TemplateSyntaxError: with the line.
        """
        tree = self.parse(text)
        return _Restricted().visit(tree)  # type: ignore[no-any-return]

    def step(self) -> None:
        """Count a call or a turn of a loop.

        Raises:
            LegoError: there are more than the limit allows.
        """
        self._left -= 1
        if self._left < 0:
            raise limit_error("template_steps", "the template takes too many steps")

    def _counted(self, items: Iterable[Any]) -> Iterator[Any]:
        for item in items:
            self.step()
            yield item

    # What is allowed: Jinja asks these.
    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        allowed = next((names for kind, names in _ATTRIBUTES.items() if isinstance(obj, kind)), ())
        return attr in allowed

    def is_safe_callable(self, obj: Any) -> bool:
        owner = getattr(obj, "__self__", None)
        return id(obj) in self._functions or isinstance(owner, tuple(_ATTRIBUTES))

    def call(self, context: Any, obj: Any, *args: Any, **kwargs: Any) -> Any:
        self.step()
        _check_defined((obj, *args, *kwargs.values()))
        return super().call(context, obj, *args, **kwargs)

    def getitem(self, obj: Any, argument: Any) -> Any:
        _check_defined((obj, argument))
        return super().getitem(obj, argument)

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        for x in (left, right):
            _check_number(x, operator)
        if operator == "/":
            return _exact_quotient(left, right)
        return super().call_binop(context, operator, left, right)

    def call_unop(self, context: Any, operator: str, arg: Any) -> Any:
        _check_number(arg, operator)
        return super().call_unop(context, operator, arg)


def _range(*bounds: int) -> range:
    if not all(type(b) is int and abs(b) < 1 << 31 for b in bounds):
        raise LegoError("range takes one to three numbers below 2^31")
    return range(*bounds)


class _Restricted(NodeTransformer):
    """Refuses what a template must not have, and counts the turns of its loops."""

    def generic_visit(self, node: Any, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(node, _NODES):
            _refuse(f"a template has no '{type(node).__name__.lower()}'", node)
        return super().generic_visit(node, *args, **kwargs)

    def visit_For(self, node: Any) -> Any:  # noqa: N802
        if node.recursive:
            _refuse("a template has no recursive loop", node)
        self.generic_visit(node)
        node.iter = nodes.Filter(node.iter, _COUNTED, [], [], None, None, lineno=node.lineno)
        return node

    def visit_Filter(self, node: Any) -> Any:  # noqa: N802
        if node.name not in _FILTERS or node.node is None:
            _refuse(f"a template has no filter '{node.name}'", node)
        return self.generic_visit(node)

    def visit_Test(self, node: Any) -> Any:  # noqa: N802
        if node.name not in _TESTS:
            _refuse(f"a template has no test '{node.name}'", node)
        return self.generic_visit(node)

    def visit_Call(self, node: Any) -> Any:  # noqa: N802
        if node.dyn_args is not None or node.dyn_kwargs is not None:
            _refuse("a template's calls list their arguments", node)
        return self.generic_visit(node)

    def visit_Slice(self, node: Any) -> Any:  # noqa: N802
        """Make `:` a constant, which Jinja has no other way to put among several indices."""
        if any(part is not None for part in (node.start, node.stop, node.step)):
            _refuse("a layout is sliced by ':', a whole dimension, only", node)
        return nodes.Const(slice(None), lineno=node.lineno)


def _refuse(what: str, node: Any) -> NoReturn:
    raise TemplateSyntaxError(what, node.lineno or 1)


def _check_defined(x: Any) -> None:
    """Raise UndefinedError if `x`, or something in a list, is a name without a value."""
    if isinstance(x, StrictUndefined):
        x._fail_with_undefined_error()
    if isinstance(x, list | tuple):
        for item in x:
            _check_defined(item)


def _check_number(x: Any, operator: str) -> None:
    """Raise LegoError unless `x` is a number of a size that an index has, or an expression."""
    _check_defined(x)
    if not isinstance(x, int | Expr) or isinstance(x, bool):
        raise LegoError(f"'{operator}' takes numbers and index expressions, not {type(x).__name__}")
    if isinstance(x, int) and x.bit_length() > _MOST_BITS:
        raise LegoError("a number in the template does not fit an index")


def _exact_quotient(a: Any, b: Any) -> Any:
    """Return `a / b`, which is exact: of a size symbol it says so."""
    if isinstance(b, int) and b == 0:
        raise LegoError("division by zero")
    if isinstance(a, int) and isinstance(b, int):
        if a % b:
            raise LegoError(f"{b} does not divide {a}", hint="'//' rounds down")
        return a // b
    if isinstance(a, Sym) and not divides(b, a):
        a = Sym(a.name, a.lo, a.hi, a.divisors | {b})
    quotient = construct.floordiv(a, b)
    rest = construct.sub(a, construct.mul(quotient, b))
    if divides(b, a) or (isinstance(rest, int) and rest == 0):
        return quotient
    raise LegoError(f"{b!r} is not known to divide {a!r}", hint="'//' rounds down")


def _join(items: Iterable[Any], separator: str = "") -> str:
    """Return texts one after another."""
    most = current().template_bytes
    pieces: list[str] = []
    for item in items:
        if not isinstance(item, str):
            raise LegoError(f"join takes texts, not {type(item).__name__}")
        pieces.append(item)
        most -= len(item) + len(separator)
        if most < 0:
            raise limit_error("template_bytes", "the template makes too long a text")
    return separator.join(pieces)


def describe(e: Exception) -> tuple[str, str | None] | None:
    """Return the message and the hint of an error of a template; None if it is none."""
    match e:
        case TemplateSyntaxError():
            return f"the template has a mistake: {e.message}", None
        case UndefinedError():
            return (
                str(e.message),
                "give it a value by --set NAME=N, or by {% set NAME = ... %}; a variable of the "
                "program stands in quotes: A['i', 'j']",
            )
        case SecurityError():
            return f"the template must not do this: {e.message}", None
        case TemplateRuntimeError() | TemplateError():
            return f"the template cannot be filled: {e.message}", None
        case ZeroDivisionError():
            return "division by zero", None
        case TypeError() | ValueError() | LookupError() | AttributeError() | OverflowError():
            return f"the template cannot be filled: {e}", None
        case RecursionError():
            return "the template is nested too deeply", None
    return None
