"""Fuzzers: random and damaged inputs for every door of the program.

`layouts`, `modules`, `bundles` and `arrays` each make inputs and know what a right answer is;
`runner` tries them in worker processes that may die; `mutations` damages text and bytes. Inputs
that one person once found to fail do not live here: they are tests of the room that was mended.
"""
