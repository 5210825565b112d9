"""Transform operations of our own: the steps that schedules of `transforms/` are made of.

Each works on tiles that are read and written through layouts, and leaves layouts behind: where a
thread's elements lie, which of them an instruction moves, is again derived, by `lower_lego`.

An operation is declared in `dialects/transform_lego.irdl.mlir`, and what it does stands in the
module of its name; `library` brings the two together.
"""
