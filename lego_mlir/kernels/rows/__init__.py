"""Kernels on the rows of matrices: norms, softmax, cross-entropy, and what is fused with them.

`builder` makes a kernel of functions of a row's elements (`problem`, `config`, `heuristic`),
of which `bodies` traces what a CTA does. The other modules are its users.
"""
