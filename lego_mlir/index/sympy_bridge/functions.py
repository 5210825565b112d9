"""The integer functions that SymPy lacks, as SymPy functions.

    FloorDiv(a, b)    a // b, rounded towards minus infinity
    Mod(a, b)         a % b with the sign of b
    Xor(a, b)         bitwise exclusive or
    ISqrt(a)          the integer square root
    Less(a, b)        1 if a < b, else 0
    Where(c, a, b)    a where c is not 0, else b

They evaluate on integers, know their sign, and print in plain text, Python, NumPy, C, C++ and
LaTeX, so `sympy.lambdify` and `sympy.ccode` take expressions of them.

Derivatives are those of the functions on the reals, wherever they exist: `FloorDiv`, `ISqrt` and
`Less` are constant between their steps, so the derivative of a layout's offset by an index is its
stride within the innermost tile. `Xor` has none and stays a `Derivative`.
"""

from __future__ import annotations

from typing import Any, ClassVar

import sympy
from sympy.core.function import ArgumentIndexError
from sympy.printing.precedence import PRECEDENCE

from lego_mlir.index.functions import isqrt


class _IntegerFunction(sympy.Function):  # type: ignore[misc]
    """An integer function that evaluates on integers only and otherwise stays as it is.

    Attributes:
        form: the text, with a place for each operand; `python`, `numpy` and `latex` differ from it
            where they are not None.
    """

    is_integer = True
    form: ClassVar[str]
    python: ClassVar[str | None] = None
    numpy: ClassVar[str | None] = None
    latex: ClassVar[str]

    @classmethod
    def eval(cls, *args: Any) -> Any:
        if all(a.is_Integer for a in args) and not (cls in _DIVISIONS and args[1] == 0):
            return sympy.Integer(cls.value(*(int(a) for a in args)))
        return None

    @staticmethod
    def value(*args: int) -> int:
        """Return the value on integers."""
        raise NotImplementedError

    # Texts: SymPy's printers look for these names.
    def _operands(self, printer: Any) -> list[str]:
        return [
            printer.doprint(a)
            if isinstance(a, _IntegerFunction)
            else printer.parenthesize(a, PRECEDENCE["Atom"], strict=True)
            for a in self.args
        ]

    def _sympystr(self, printer: Any) -> str:
        return self.form.format(*self._operands(printer))

    def _pythoncode(self, printer: Any) -> str:
        form = self.python or self.form
        if form.startswith("math."):
            printer._module_format("math.isqrt")  # notes the import
        return form.format(*self._operands(printer))

    _lambdacode = _pythoncode

    def _numpycode(self, printer: Any) -> str:
        if self.numpy is None:
            return self._sympystr(printer)
        name, _, rest = self.numpy.partition("(")
        function = printer._module_format(name) if name.startswith("numpy.") else name
        return f"{function}({rest}".format(*self._operands(printer))

    def _ccode(self, printer: Any) -> str:
        return self.c_form().format(*self._operands(printer))

    _cxxcode = _ccode

    def c_form(self) -> str:
        """Return the text in C, right for every sign that the assumptions allow."""
        return self.form

    def _latex(self, printer: Any, exp: str | None = None) -> str:
        text = self.latex.format(*(printer._print(a) for a in self.args))
        return text if exp is None else rf"\left({text}\right)^{{{exp}}}"


class _Constant(_IntegerFunction):
    """A function that is constant between its steps, so its derivative is 0 there."""

    def fdiff(self, argindex: int = 1) -> Any:
        if not 1 <= argindex <= len(self.args):
            raise ArgumentIndexError(self, argindex)
        return sympy.Integer(0)


class FloorDiv(_Constant):
    """`a // b`, rounded towards minus infinity."""

    nargs = 2
    form = "({} // {})"
    latex = r"\left\lfloor \frac{{{}}}{{{}}} \right\rfloor"

    @staticmethod
    def value(*args: int) -> int:
        return args[0] // args[1]

    def _eval_is_nonnegative(self) -> bool | None:
        return _is_natural_division(self)

    def c_form(self) -> str:
        """Return C's division, which rounds towards zero, corrected where the sign may differ."""
        if _is_natural_division(self):
            return "({0} / {1})"
        return "({0} / {1} - ({0} % {1} != 0 && ({0} < 0) != ({1} < 0)))"


class Mod(_IntegerFunction):
    """`a % b` with the sign of b."""

    nargs = 2
    form = "({} % {})"
    latex = r"\left({} \bmod {}\right)"

    @staticmethod
    def value(*args: int) -> int:
        return args[0] % args[1]

    def _eval_is_nonnegative(self) -> bool | None:
        return True if self.args[1].is_positive else None

    def fdiff(self, argindex: int = 1) -> Any:
        """Differentiate `a - b*FloorDiv(a, b)`."""
        if argindex == 1:
            return sympy.Integer(1)
        if argindex == 2:
            return -FloorDiv(*self.args)
        raise ArgumentIndexError(self, argindex)

    def c_form(self) -> str:
        """Return C's remainder, whose sign is that of a, corrected where it may be wrong."""
        return "({0} % {1})" if _is_natural_division(self) else "(({0} % {1} + {1}) % {1})"


class Xor(_IntegerFunction):
    """Bitwise exclusive or."""

    nargs = 2
    form = "({} ^ {})"
    latex = r"\left({} \oplus {}\right)"

    @staticmethod
    def value(*args: int) -> int:
        return args[0] ^ args[1]

    def _eval_is_nonnegative(self) -> bool | None:
        return True if all(a.is_nonnegative for a in self.args) else None


class ISqrt(_Constant):
    """The integer square root."""

    nargs = 1
    form = "isqrt({})"
    python = "math.isqrt({})"
    numpy = "ISqrt({})"
    latex = r"\left\lfloor \sqrt{{{}}} \right\rfloor"
    _imp_ = staticmethod(isqrt)  # what lambdify calls by the name of the class
    is_nonnegative = True

    @staticmethod
    def value(*args: int) -> int:
        return isqrt(args[0])  # type: ignore[no-any-return]


class Less(_Constant):
    """1 if a < b, else 0."""

    nargs = 2
    form = "(({} < {})*1)"  # a number: NumPy would add booleans as `or`
    latex = r"\left[{} < {}\right]"
    is_nonnegative = True

    @staticmethod
    def value(*args: int) -> int:
        return int(args[0] < args[1])

    def c_form(self) -> str:
        return "({} < {})"


class Where(_IntegerFunction):
    """The second argument where the first is not 0, else the third."""

    nargs = 3
    form = "where({}, {}, {})"
    python = "({1} if {0} else {2})"
    numpy = "numpy.where({}, {}, {})"
    latex = r"\begin{{cases}} {1} & {0} \neq 0 \\ {2} & \text{{otherwise}} \end{{cases}}"

    @classmethod
    def eval(cls, *args: Any) -> Any:
        return (args[1] if args[0] else args[2]) if args[0].is_Integer else None

    @staticmethod
    def value(*args: int) -> int:
        return args[1] if args[0] else args[2]

    def _eval_is_nonnegative(self) -> bool | None:
        return True if all(a.is_nonnegative for a in self.args[1:]) else None

    def fdiff(self, argindex: int = 1) -> Any:
        if argindex not in (1, 2, 3):
            raise ArgumentIndexError(self, argindex)
        if argindex == 1:
            return sympy.Integer(0)
        return Where(self.args[0], int(argindex == 2), int(argindex == 3))

    def c_form(self) -> str:
        return "({} ? {} : {})"


_DIVISIONS = (FloorDiv, Mod)


def _is_natural_division(x: Any) -> bool | None:
    """Return True if the dividend is known not to be negative, and the divisor to be positive."""
    return True if x.args[0].is_nonnegative and x.args[1].is_positive else None
