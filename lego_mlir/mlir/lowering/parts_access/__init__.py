"""Loads and stores of the elements of a tile that one thread holds: lego.load_parts, store_parts.

offsets     where each register's element lies: one derivation for all of them
conditions  which elements exist, as far as it is not proven
masks       which elements a mask of values lets through
accesses    the vectors that memory is accessed in
lanes       vectors of one width as vectors of another
lower       the operations
matrices    accesses by ldmatrix and stmatrix
sends       stores into the shared memory of other CTAs

Beside them are what TMA and wgmma access tiles by, and what finds the memory of each operation:

copy_boxes          slices of tensors that TMA copies
matrix_descriptors  tiles in shared memory that wgmma reads
tile_accesses       the operations, each with its memory
"""
