"""Operations of element by element, and what is valid."""

from __future__ import annotations

from fuzz.tile_programs.program import (
    WIDTHS,
    Program,
    tile_type,
)


def pointwise(p: Program) -> None:
    r = p.random
    a = p.pick()
    if a is None or a.element == "i1":
        return
    b = p.pick(shape=a.shape, element=a.element) or a
    exact = a.is_exact and b.is_exact
    if a.is_float:
        name = r.choice(("addf", "subf", "mulf", "maximumf", "minimumf"))
        exact = exact and name in ("maximumf", "minimumf")
        made = p.add(a.shape, a.element, f"arith.{name} %{a.name}, %{b.name} : {a.type}", exact)
        p.tamed(made)
        return
    names = ("addi", "subi", "muli", "andi", "ori", "xori", "maxsi", "minsi", "maxui", "minui")
    p.add(a.shape, a.element, f"arith.{r.choice(names)} %{a.name}, %{b.name} : {a.type}", exact)


def unary(p: Program) -> None:
    a = p.pick(is_float=True)
    if a is None:
        return
    name = p.random.choice(("arith.negf", "math.absf", "math.exp2", "math.tanh"))
    if a.element != "f32":
        name = "arith.negf"
    exact = a.is_exact and name in ("arith.negf", "math.absf")
    p.tamed(p.add(a.shape, a.element, f"{name} %{a.name} : {a.type}", exact))


def compare(p: Program) -> None:
    r = p.random
    a = p.pick(is_exact=True)
    if a is None or a.element == "i1":
        return
    b = p.pick(shape=a.shape, element=a.element, is_exact=True) or a
    predicates = ("olt", "oge", "oeq") if a.is_float else ("slt", "uge", "eq")
    name = f"{'cmpf' if a.is_float else 'cmpi'} {r.choice(predicates)}"
    mask = p.add(a.shape, "i1", f"arith.{name}, %{a.name}, %{b.name} : {a.type}")
    x = p.pick(shape=a.shape)
    y = x and p.pick(shape=a.shape, element=x.element)
    if x is None or y is None:
        return
    exact = x.is_exact and y.is_exact
    p.add(
        x.shape,
        x.element,
        f"arith.select %{mask.name}, %{x.name}, %{y.name} : {mask.type}, {x.type}",
        exact,
    )


def cast(p: Program) -> None:
    r = p.random
    a = p.pick()
    if a is None or a.element == "i1":
        return
    if a.is_float:
        to = r.choice(("f32", "f16", "bf16"))
        if to == a.element or {to, a.element} == {"f16", "bf16"}:
            return
        name = "extf" if to == "f32" else "truncf"
    else:
        to = r.choice(("i8", "i16", "i32", "i64"))
        if to == a.element:
            return
        wider = WIDTHS[to] > WIDTHS[a.element]
        name = r.choice(("extsi", "extui")) if wider else "trunci"
    p.add(
        a.shape,
        to,
        f"arith.{name} %{a.name} : {a.type} to {tile_type(a.shape, to)}",
        a.is_exact,
    )


def iota(p: Program) -> None:
    a = p.pick()
    if a is None:
        return
    dim = p.random.randrange(len(a.shape))
    kind = tile_type(a.shape, "i32")
    p.add(a.shape, "i32", f'"lego.iota"() {{dim = {dim} : i64}} : () -> {kind}')


def restrict(p: Program) -> None:
    a = p.pick()
    mask = a and p.pick(shape=a.shape, element="i1", is_exact=True)
    if a is not None and mask is not None:
        p.add(a.shape, a.element, p.op("restrict", a, mask) + a.type, a.is_exact)


def fill(p: Program) -> None:
    a = p.pick()
    if a is None or a.element == "i1":
        return
    value = f"2.0 : {a.element}" if a.is_float else f"3 : {a.element}"
    p.add(a.shape, a.element, p.op("fill", a, attributes=f"value = {value}") + a.type, a.is_exact)
