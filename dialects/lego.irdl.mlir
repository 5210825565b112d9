// The lego dialect: layouts in MLIR.
//
// A layout is one attribute, its text in the paper's dot notation:
//
//   #A = #lego.layout<"OrderBy(Row(M, K)).TileBy([M/128, K/64], [128, 64])">
//
// Names in it that the module's `lego.sizes` dictionary does not give a value are symbols. Where
// operations below take "symbols", they take one index operand for each, in the order in which the
// text first names them.
//
// This file is the dialect: legoc loads it, and so does stock mlir-opt, by
//   mlir-opt --irdl-file=lego.irdl.mlir
// Types of other dialects stand here as types, by `irdl.is`: reading one makes its dialect known,
// which a name in quotes, by `irdl.base`, does not.

irdl.dialect @lego {
  // A bijection between a logical index space and the flat offsets 0 .. size-1.
  irdl.attribute @layout {
    %notation = irdl.base "#builtin.string"
    irdl.parameters(notation: %notation)
  }

  // The encoding of a tile in shared memory: the layout from its index to the element's offset.
  irdl.attribute @shared {
    %notation = irdl.base "#builtin.string"
    irdl.parameters(notation: %notation)
  }

  // A ring buffer in shared memory: its stages, and the tile that each of them holds, such as
  //   !lego.ring<2 : i64, tensor<64x64xf16, #lego.shared<"OrderBy(Row(64, 64))">>>
  irdl.type @ring {
    %stages = irdl.base "#builtin.integer"
    %tile = irdl.base "!builtin.tensor"
    irdl.parameters(stages: %stages, tile: %tile)
  }

  // The flat offset of a logical index.  operands: one index a dimension, symbols
  irdl.operation @apply {
    %index = irdl.is index
    %layout = irdl.base @lego::@layout
    irdl.operands(operands: variadic %index)
    irdl.results(offset: %index)
    irdl.attributes {"layout" = %layout}
  }

  // The logical index at a flat offset, one result a dimension.  operands: offset, symbols
  irdl.operation @inv {
    %index = irdl.is index
    %layout = irdl.base @lego::@layout
    irdl.operands(offset: %index, symbols: variadic %index)
    irdl.results(indices: variadic %index)
    irdl.attributes {"layout" = %layout}
  }

  // The number of elements of a layout.  operands: symbols
  irdl.operation @size {
    %index = irdl.is index
    %layout = irdl.base @lego::@layout
    irdl.operands(symbols: variadic %index)
    irdl.results(size: %index)
    irdl.attributes {"layout" = %layout}
  }

  // The size of one dimension of a layout's logical index space.  operands: symbols
  irdl.operation @dim {
    %index = irdl.is index
    %layout = irdl.base @lego::@layout
    %dim = irdl.base "#builtin.integer"
    irdl.operands(symbols: variadic %index)
    irdl.results(size: %index)
    irdl.attributes {"layout" = %layout, "dim" = %dim}
  }

  // Whether there is an element at a logical index: not where partial tiles pad the tensor up.
  // operands: one index a dimension, symbols
  irdl.operation @mask {
    %index = irdl.is index
    %i1 = irdl.is i1
    %layout = irdl.base @lego::@layout
    irdl.operands(operands: variadic %index)
    irdl.results(exists: %i1)
    irdl.attributes {"layout" = %layout}
  }

  // A buffer that holds a layout's elements, of type memref<?xT, space>. Inside a gpu.launch with the
  // workgroup address space it is shared memory. `lego.alignment = 1024 : i64` aligns it to so many
  // bytes; static shared memory is aligned to 128 at most, that of kernels on tiles to any number.
  irdl.operation @alloc {
    %memref = irdl.base "!builtin.memref"
    %layout = irdl.base @lego::@layout
    irdl.results(buffer: %memref)
    irdl.attributes {"layout" = %layout}
  }

  // The element at a logical index.  operands: one index a dimension, symbols
  //
  // With `slice = array<i64: ...>`, which lists the dimensions that are whole, the value is a
  // vector of their sizes, and only the other dimensions have an index. What partial tiles pad
  // reads as 0, or as the attribute `other`, of the element's type.
  //
  // The unit attribute `streamed` says that the elements, in global memory, are read once: loads of 16
  // bytes leave nothing in the L1 cache, and bring 256 bytes into the L2 cache.
  //
  // The value may also be a tile, a tensor, which the threads of the CTA hold together. Then every
  // dimension has an index, the origin of the tile, and `slice` lists the dimensions along which
  // it extends, in the order of the tensor's dimensions. Element (i, j) is the one at
  // (origin0 + i, origin1 + j). Elements past the end of a dimension are invalid, as is what partial
  // tiles pad; in registers they hold `other`, or 0.
  irdl.operation @load {
    %memref = irdl.base "!builtin.memref"
    %index = irdl.is index
    %element = irdl.any
    %layout = irdl.base @lego::@layout
    irdl.operands(buffer: %memref, operands: variadic %index)
    irdl.results(value: %element)
    irdl.attributes {"layout" = %layout}
  }

  // Stores an element at a logical index.  operands: one index a dimension, symbols
  //
  // With `slice` it stores a vector, as above. Where partial tiles pad, nothing is written.
  //
  // The unit attribute `exclusive` promises that no two threads update the same element.
  //
  // A tile is stored as it is loaded. Its invalid elements are dropped. One in shared memory, which
  // lego.wait returns, is stored by TMA. With `kind`, one of those of lego.atomic, every element of a
  // tile updates memory atomically.
  irdl.operation @store {
    %element = irdl.any
    %memref = irdl.base "!builtin.memref"
    %index = irdl.is index
    %layout = irdl.base @lego::@layout
    irdl.operands(value: %element, buffer: %memref, operands: variadic %index)
    irdl.attributes {"layout" = %layout}
  }

  // Updates the element at a logical index atomically among all threads that do so, and returns the
  // value before: `kind` is "add", "max", "min", "and", "or", "xor" or "exchange". Updates are
  // not ordered with other accesses. Where partial tiles pad, nothing is updated, and the value is
  // 0.  operands: one index a dimension, symbols
  //
  // In a kernel on tiles, with the unit attribute `ordered`, what the threads of the CTA have written
  // before is seen by those of a CTA whose `ordered` update of this element comes after it: the
  // update is a release and an acquire.
  irdl.operation @atomic {
    %element = irdl.any
    %memref = irdl.base "!builtin.memref"
    %index = irdl.is index
    %layout = irdl.base @lego::@layout
    %kind = irdl.base "#builtin.string"
    irdl.operands(value: %element, buffer: %memref, operands: variadic %index)
    irdl.results(old: %element)
    irdl.attributes {"layout" = %layout, "kind" = %kind}
  }

  // The number at a position of a table.  operands: the position, in [0, length)
  irdl.operation @table {
    %index = irdl.is index
    %values = irdl.any
    irdl.operands(position: %index)
    irdl.results(value: %index)
    irdl.attributes {"values" = %values}
  }

  // One of several buffers of the same element type in device memory, as a buffer of one dimension.
  // operands: its number, in [0, count); the buffers
  irdl.operation @pick {
    %index = irdl.is index
    %memref = irdl.base "!builtin.memref"
    irdl.operands(number: %index, buffers: variadic %memref)
    irdl.results(buffer: %memref)
  }

  // Fails the compilation unless the layout is proven to have a property, which is a unit
  // attribute: {layout = #L, bijective}, or injective. It computes nothing.  operands: symbols
  irdl.operation @check {
    %index = irdl.is index
    %layout = irdl.base @lego::@layout
    irdl.operands(symbols: variadic %index)
    irdl.attributes {"layout" = %layout}
  }

  // The tensor map by which TMA copies tiles of a tensor. The kernel takes it instead of the tensor's
  // address. A schedule derives it from the tensor's layout and a tile's shared-memory layout; the
  // launch encodes it.
  // Dimensions go from the innermost outwards; shape and box are in elements, strides, of all but
  // the innermost, swizzle, and l2_promotion, what a read brings into the L2 cache at least, in bytes.
  irdl.operation @tensor_map {
    %memref = irdl.base "!builtin.memref"
    %pointer = irdl.is !llvm.ptr
    %layout = irdl.base @lego::@layout
    %shape = irdl.any
    %strides = irdl.any
    %box = irdl.any
    %swizzle = irdl.base "#builtin.integer"
    %promotion = irdl.base "#builtin.integer"
    irdl.operands(tensor: %memref)
    irdl.results(map: %pointer)
    irdl.attributes {"layout" = %layout, "shape" = %shape, "strides" = %strides, "box" = %box,
                     "swizzle" = %swizzle, "l2_promotion" = %promotion}
  }

  // Several consecutive tensor maps as one kernel parameter: 128 bytes each.
  irdl.operation @tensor_maps {
    %pointer = irdl.is !llvm.ptr
    irdl.operands(maps: variadic %pointer)
    irdl.results(first: %pointer)
  }

  // Tiles.
  //
  // A tile is a tensor. Its encoding is its distributed layout, which says where its elements lie
  // among CTAs, warps, lanes and registers:
  //
  //   tensor<16x8xf32, #lego.layout<"OrderBy(Row(1, 32, 4)).OrderBy(RegP(...)).GroupBy([16, 8])">>
  //
  // Without an encoding it is not placed yet. Operations of arith, math and scf take tiles; those of
  // the tensor dialect do not. Elements may be invalid: those of a tile that extends past what it was
  // loaded from. An element of a pointwise operation's result is invalid where an operand's is.
  // Reductions, scans and dots ignore invalid elements, and stores drop them. A reduction of none is
  // invalid, and holds the number that changes nothing; an element of a scan is invalid where the
  // operand's is; invalid elements of a dot's operands count as 0, and an element of its result is
  // invalid where the accumulator's is, or all of the row or column that it multiplies.
  //
  // The unit attribute `lego.filled` on a gpu.launch, which a pass sets, says that this has been made
  // explicit by selects: only bounds of accesses, and each lego.restrict right before one, still say
  // which elements are valid.

  // The elements of a tensor in memory at the indices that tiles hold.  operands: for each dimension
  // of the layout a tile of i32, then the values of its symbolic sizes. Where one of the tiles is
  // invalid nothing is read, and so is the result.
  irdl.operation @gather {
    %memref = irdl.base "!builtin.memref"
    %indices = irdl.base "!builtin.tensor"
    %size = irdl.is index
    %tile = irdl.base "!builtin.tensor"
    %layout = irdl.base @lego::@layout
    irdl.operands(buffer: %memref, indices: variadic %indices, sizes: variadic %size)
    irdl.results(value: %tile)
    irdl.attributes {"layout" = %layout}
  }

  // Stores a tile at the indices that tiles hold. Where several elements have one index, one of them
  // is stored. With `kind`, one of those of lego.atomic, every element updates memory atomically.
  irdl.operation @scatter {
    %memref = irdl.base "!builtin.memref"
    %tile = irdl.base "!builtin.tensor"
    %indices = irdl.base "!builtin.tensor"
    %size = irdl.is index
    %layout = irdl.base @lego::@layout
    irdl.operands(value: %tile, buffer: %memref, indices: variadic %indices,
                  sizes: variadic %size)
    irdl.attributes {"layout" = %layout}
  }

  // The tile whose elements all are one number.
  irdl.operation @full {
    %number = irdl.any
    %tile = irdl.base "!builtin.tensor"
    irdl.operands(number: %number)
    irdl.results(tile: %tile)
  }

  // The number of a tile with one element, which every thread then has, valid or not.
  irdl.operation @item {
    %number = irdl.any
    %tile = irdl.base "!builtin.tensor"
    irdl.operands(tile: %tile)
    irdl.results(number: %number)
  }

  // True in each warp that holds a true element. In another warp it may be true or false, so what depends
  // on it must be right either way: it decides whether a warp may leave work out.
  irdl.operation @vote {
    %truth = irdl.is i1
    %tile = irdl.base "!builtin.tensor"
    irdl.operands(tile: %tile)
    irdl.results(truth: %truth)
  }

  // Each element's index along a dimension, of i32.
  irdl.operation @iota {
    %tile = irdl.base "!builtin.tensor"
    %dim = irdl.base "#builtin.integer"
    irdl.results(tile: %tile)
    irdl.attributes {"dim" = %dim}
  }

  // Whether `origin + index along the dimension` is below `size`, and below the limit, if there is
  // one, of i1. `divisor = 16 : i64` says that 16 divides origin, size and limit.
  irdl.operation @in_range {
    %tile = irdl.base "!builtin.tensor"
    %index = irdl.is index
    %dim = irdl.base "#builtin.integer"
    %size = irdl.base "#builtin.integer"
    irdl.operands(origin: %index, limit: optional %index)
    irdl.results(tile: %tile)
    irdl.attributes {"dim" = %dim, "size" = %size}
  }

  // The same tile, in which elements are invalid, too, where the mask, of i1, is false.
  irdl.operation @restrict {
    %tile = irdl.base "!builtin.tensor"
    %mask = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(tile: %tile, mask: %mask)
    irdl.results(result: %result)
  }

  // The same tile with all elements valid: those that were not are the number `value`, of the
  // element's type.
  irdl.operation @fill {
    %tile = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    %value = irdl.any
    irdl.operands(tile: %tile)
    irdl.results(result: %result)
    irdl.attributes {"value" = %value}
  }

  // Dimensions of size 1 are repeated to the result's shape, of the same rank.
  irdl.operation @broadcast {
    %tile = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(tile: %tile)
    irdl.results(result: %result)
  }

  // The elements in row-major order as a tile of another shape.
  irdl.operation @reshape {
    %tile = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(tile: %tile)
    irdl.results(result: %result)
  }

  // Dimension k of the result is dimension `order[k]`.
  irdl.operation @transpose {
    %tile = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    %order = irdl.any
    irdl.operands(tile: %tile)
    irdl.results(result: %result)
    irdl.attributes {"order" = %order}
  }

  // Tiles of one shape along a new last dimension: element k of it is the k-th tile's.
  irdl.operation @join {
    %tile = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(tiles: variadic %tile)
    irdl.results(result: %result)
  }

  // The tiles along the last dimension, one result each: the inverse of join.
  irdl.operation @split {
    %tile = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(tile: %tile)
    irdl.results(tiles: variadic %result)
  }

  // The same tile in another distributed layout.
  irdl.operation @convert {
    %tile = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(tile: %tile)
    irdl.results(result: %result)
  }

  // Combines the elements along a dimension, which stays, with size 1. `kind` is "add", "mul", "max",
  // "min", "umax", "umin", "and", "or" or "xor"; of floats, max and min are NaN where an element is.
  irdl.operation @reduce {
    %tile = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    %kind = irdl.base "#builtin.string"
    %dim = irdl.base "#builtin.integer"
    irdl.operands(tile: %tile)
    irdl.results(result: %result)
    irdl.attributes {"kind" = %kind, "dim" = %dim}
  }

  // Combines, element by element, the tiles that the CTAs of a cluster hold each for itself, and cuts
  // the result along a dimension into as many slices as the cluster has CTAs: each CTA gets that of its
  // rank. In a kernel with lego.own_programs, all CTAs of a cluster execute it equally often. Which
  // elements are valid is the same in all of them. The elements of a CTA are combined with those of
  // the ranks behind its own, then from rank 0 on, so that each launch gives the same bits. `kind` as of
  // reduce.  operands: the tile; the rank of the CTA in its cluster
  irdl.operation @reduce_scatter {
    %tile = irdl.base "!builtin.tensor"
    %index = irdl.is index
    %result = irdl.base "!builtin.tensor"
    %kind = irdl.base "#builtin.string"
    %dim = irdl.base "#builtin.integer"
    irdl.operands(tile: %tile, rank: %index)
    irdl.results(result: %result)
    irdl.attributes {"kind" = %kind, "dim" = %dim}
  }

  // Combines up to four tiles of one shape along a dimension by a function: its arguments are one
  // element of each tile, then another element of each, and it ends in a gpu.yield of one element
  // each. It must be associative and commutative. `identity`, an array with a number for each tile,
  // stands for invalid elements.
  irdl.operation @reduce_with {
    %t0 = irdl.base "!builtin.tensor"
    %t1 = irdl.base "!builtin.tensor"
    %t2 = irdl.base "!builtin.tensor"
    %t3 = irdl.base "!builtin.tensor"
    %r0 = irdl.base "!builtin.tensor"
    %r1 = irdl.base "!builtin.tensor"
    %r2 = irdl.base "!builtin.tensor"
    %r3 = irdl.base "!builtin.tensor"
    %dim = irdl.base "#builtin.integer"
    %body = irdl.region
    irdl.operands(first: %t0, second: optional %t1, third: optional %t2, fourth: optional %t3)
    irdl.results(result: %r0, second_result: optional %r1, third_result: optional %r2,
                 fourth_result: optional %r3)
    irdl.attributes {"dim" = %dim}
    irdl.regions(body: %body)
  }

  // Element k along the dimension is the combination of the elements 0 to k, or, with the unit
  // attribute `reverse`, of k to the last. `kind` as for reduce.
  irdl.operation @scan {
    %tile = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    %kind = irdl.base "#builtin.string"
    %dim = irdl.base "#builtin.integer"
    irdl.operands(tile: %tile)
    irdl.results(result: %result)
    irdl.attributes {"kind" = %kind, "dim" = %dim}
  }

  // A scan by a function as that of reduce_with, which here need not be commutative: the arguments
  // that come first are the combination of the elements that come first.
  irdl.operation @scan_with {
    %t0 = irdl.base "!builtin.tensor"
    %t1 = irdl.base "!builtin.tensor"
    %t2 = irdl.base "!builtin.tensor"
    %t3 = irdl.base "!builtin.tensor"
    %r0 = irdl.base "!builtin.tensor"
    %r1 = irdl.base "!builtin.tensor"
    %r2 = irdl.base "!builtin.tensor"
    %r3 = irdl.base "!builtin.tensor"
    %dim = irdl.base "#builtin.integer"
    %body = irdl.region
    irdl.operands(first: %t0, second: optional %t1, third: optional %t2, fourth: optional %t3)
    irdl.results(result: %r0, second_result: optional %r1, third_result: optional %r2,
                 fourth_result: optional %r3)
    irdl.attributes {"dim" = %dim}
    irdl.regions(body: %body)
  }

  // The tiles sorted along a dimension, their elements together. The function says whether an
  // element of each comes before another one of each. Invalid elements come last: identity is then
  // what stands for them, and what the result has in their place.
  irdl.operation @sort_with {
    %t0 = irdl.base "!builtin.tensor"
    %t1 = irdl.base "!builtin.tensor"
    %t2 = irdl.base "!builtin.tensor"
    %t3 = irdl.base "!builtin.tensor"
    %r0 = irdl.base "!builtin.tensor"
    %r1 = irdl.base "!builtin.tensor"
    %r2 = irdl.base "!builtin.tensor"
    %r3 = irdl.base "!builtin.tensor"
    %dim = irdl.base "#builtin.integer"
    %body = irdl.region
    irdl.operands(first: %t0, second: optional %t1, third: optional %t2, fourth: optional %t3)
    irdl.results(result: %r0, second_result: optional %r1, third_result: optional %r2,
                 fourth_result: optional %r3)
    irdl.attributes {"dim" = %dim}
    irdl.regions(body: %body)
  }

  // The elements of a tile from the index `offsets` on, in registers. Of a tile in registers each
  // thread holds those that it gets.
  irdl.operation @extract_slice {
    %tile = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    %offsets = irdl.any
    irdl.operands(tile: %tile)
    irdl.results(result: %result)
    irdl.attributes {"offsets" = %offsets}
  }

  // One of the parts of a tile in registers, which the result's shape divides: they have the numbers
  // 0, 1, ... row by row. Each thread holds those elements of any part that it gets.
  irdl.operation @extract_part {
    %tile = irdl.base "!builtin.tensor"
    %index = irdl.is index
    %result = irdl.base "!builtin.tensor"
    irdl.operands(tile: %tile, number: %index)
    irdl.results(result: %result)
  }

  // a @ b + accumulator, of tiles m×k, k×n and m×n. `instruction`, "wgmma" or "mma.sync", says what
  // multiplies them; without it the compiler chooses what costs less.
  irdl.operation @dot {
    %a = irdl.base "!builtin.tensor"
    %b = irdl.base "!builtin.tensor"
    %accumulator = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(a: %a, b: %b, accumulator: %accumulator)
    irdl.results(result: %result)
  }

  // Along a dimension the elements of a tile at the indices, of i32, of another tile: result[i, j] is
  // tile[i, indices[i, j]] for dimension 1. The other dimensions are of the same size. An invalid
  // element is taken as 0; the result is invalid where the index is.
  irdl.operation @take {
    %tile = irdl.base "!builtin.tensor"
    %indices = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    %dim = irdl.base "#builtin.integer"
    irdl.operands(tile: %tile, indices: %indices)
    irdl.results(result: %result)
    irdl.attributes {"dim" = %dim}
  }

  // Pipelines.
  //
  // Tiles go from a producer to its consumers through a ring buffer. A tile has a number, its count
  // over the whole kernel: 0, 1, 2, .... Tile n lies in stage n mod stages. For each ring the numbers
  // of the acquire, commit, wait and release that a role executes count up from 0 by one, and each
  // ring has one role that produces.

  // An empty ring buffer. It is made once, in the kernel's body.
  irdl.operation @make_ring {
    %ring = irdl.base @lego::@ring
    irdl.results(ring: %ring)
  }

  // Waits until the stage of tile n is empty: until tile n - stages has been released.
  irdl.operation @acquire {
    %ring = irdl.base @lego::@ring
    %index = irdl.is index
    irdl.operands(ring: %ring, number: %index)
  }

  // Starts to copy a tile of a tensor into the stage of tile n. The operands behind n, `layout` and
  // `slice` are those of the lego.load of this tile. Invalid elements are copied as 0. `engine` is
  // "tma", "cp.async", or "plain", which copies through registers. With `multicast` CTAs of a cluster
  // load the same tile, each a part of it for all of them: it has a mask of these CTAs for each rank.
  irdl.operation @copy_async {
    %ring = irdl.base @lego::@ring
    %index = irdl.is index
    %memref = irdl.base "!builtin.memref"
    %layout = irdl.base @lego::@layout
    %slice = irdl.any
    %engine = irdl.base "#builtin.string"
    irdl.operands(ring: %ring, number: %index, buffer: %memref, operands: variadic %index)
    irdl.attributes {"layout" = %layout, "slice" = %slice, "engine" = %engine}
  }

  // The threads of the role write a tile that they hold in registers into the stage of tile n.
  irdl.operation @put {
    %ring = irdl.base @lego::@ring
    %index = irdl.is index
    %tile = irdl.base "!builtin.tensor"
    irdl.operands(ring: %ring, number: %index, tile: %tile)
  }

  // Tile n is complete as soon as its copies are.
  irdl.operation @commit {
    %ring = irdl.base @lego::@ring
    %index = irdl.is index
    irdl.operands(ring: %ring, number: %index)
  }

  // Waits until tile n is complete. The result may be used until its release.
  irdl.operation @wait {
    %ring = irdl.base @lego::@ring
    %index = irdl.is index
    %tile = irdl.base "!builtin.tensor"
    irdl.operands(ring: %ring, number: %index)
    irdl.results(tile: %tile)
  }

  // The role does not read tile n any more.
  irdl.operation @release {
    %ring = irdl.base @lego::@ring
    %index = irdl.is index
    irdl.operands(ring: %ring, number: %index)
  }

  // What some warps of each CTA execute, `warps` of them from `first_warp` on. The roles of a kernel
  // follow one another at the end of its body, and run at the same time. `registers`, if there, is
  // how many each thread has (setmaxnreg). The region ends in a gpu.yield.
  //
  // With `teams`, the iterations of its one loop are dealt to so many warpgroups, one after another.
  // What they compute is what the loop does. What waits for rings stands in turns.
  irdl.operation @role {
    %name = irdl.base "#builtin.string"
    %first_warp = irdl.base "#builtin.integer"
    %warps = irdl.base "#builtin.integer"
    %body = irdl.region
    irdl.attributes {"name" = %name, "first_warp" = %first_warp, "warps" = %warps}
    irdl.regions(body: %body)
  }

  // Starts a lego.dot by wgmma, as a group of its own. Only lego.dot_wait makes the result readable;
  // before that it may be the accumulator of another one, and be carried by a loop.
  irdl.operation @dot_async {
    %a = irdl.base "!builtin.tensor"
    %b = irdl.base "!builtin.tensor"
    %accumulator = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    irdl.operands(a: %a, b: %b, accumulator: %accumulator)
    irdl.results(result: %result)
  }

  // Waits until at most `pending` groups are not complete, those that began last. With the unit
  // attribute `outlives` the result is used when dots with other accumulators have begun.
  irdl.operation @dot_wait {
    %accumulator = irdl.base "!builtin.tensor"
    %result = irdl.base "!builtin.tensor"
    %pending = irdl.base "#builtin.integer"
    irdl.operands(accumulator: %accumulator)
    irdl.results(result: %result)
    irdl.attributes {"pending" = %pending}
  }

  // The `groups` warpgroups of a role execute what stands between turn_begin and turn_end one after
  // the other, again and again in the same order. Turns with another number `order` are others.
  irdl.operation @turn_begin {
    %groups = irdl.base "#builtin.integer"
    irdl.attributes {"groups" = %groups}
  }

  irdl.operation @turn_end {
    %groups = irdl.base "#builtin.integer"
    irdl.attributes {"groups" = %groups}
  }

  // The tile that lies in one stage of a buffer in shared memory, of a layout with the stages as its
  // first dimension. A pass makes it of lego.wait.
  irdl.operation @shared_tile {
    %memref = irdl.base "!builtin.memref"
    %index = irdl.is index
    %tile = irdl.base "!builtin.tensor"
    %layout = irdl.base @lego::@layout
    irdl.operands(buffer: %memref, stage: %index)
    irdl.results(tile: %tile)
    irdl.attributes {"layout" = %layout}
  }

  // The threads that hold a tile in registers store it to one in shared memory, for TMA. A pass makes
  // it of lego.put.
  irdl.operation @store_shared {
    %target = irdl.base "!builtin.tensor"
    %tile = irdl.base "!builtin.tensor"
    irdl.operands(target: %target, tile: %tile)
  }

  // What tiles become in each thread.
  //
  // The elements of a tile that one thread holds, in parts: vectors, or single elements, that follow
  // one another in the order of the thread's registers. The operands are the index of the thread's
  // first element, one value a dimension of the layout. `registers` lists the register factors,
  // slowest first, three numbers each: the layout's dimension, the size, and the stride. Elements
  // past the end of a dimension do not exist: they read as `other`, or 0. The mask, if there is one,
  // has parts of i1, as many as the value: only where it is true memory is accessed. With the unit
  // attribute `in_bounds` all elements are inside of the dimensions, which nothing tests.
  irdl.operation @load_parts {
    %memref = irdl.base "!builtin.memref"
    %index = irdl.is index
    %part = irdl.any
    %mask = irdl.any
    %layout = irdl.base @lego::@layout
    %registers = irdl.any
    irdl.operands(buffer: %memref, index: variadic %index, mask: variadic %mask)
    irdl.results(parts: variadic %part)
    irdl.attributes {"layout" = %layout, "registers" = %registers}
  }

  // Stores the elements of a tile that one thread holds; with `kind` they update memory atomically.
  irdl.operation @store_parts {
    %memref = irdl.base "!builtin.memref"
    %index = irdl.is index
    %part = irdl.any
    %mask = irdl.any
    %layout = irdl.base @lego::@layout
    %registers = irdl.any
    irdl.operands(buffer: %memref, index: variadic %index, parts: variadic %part,
                  mask: variadic %mask)
    irdl.attributes {"layout" = %layout, "registers" = %registers}
  }

  // Starts to copy elements of a tile from a tensor to shared memory by cp.async: those that the
  // thread would hold. `layout` and `registers` are those of a load_parts from the source, `target`
  // and `target_registers` those of a store_parts to the target. Elements past the end of a dimension
  // are copied as 0.
  irdl.operation @copy_parts {
    %source = irdl.base "!builtin.memref"
    %target = irdl.base "!builtin.memref"
    %index = irdl.is index
    %layout = irdl.base @lego::@layout
    %registers = irdl.any
    %target_layout = irdl.base @lego::@layout
    %target_registers = irdl.any
    irdl.operands(source: %source, source_index: variadic %index, buffer: %target,
                  index: variadic %index)
    irdl.attributes {"layout" = %layout, "registers" = %registers, "target" = %target_layout,
                     "target_registers" = %target_registers}
  }

  // Starts the copy of a slice of a tensor to shared memory by TMA, by one thread. The slice has all of
  // the dimensions that `slice` names, whose index is 0, at the index of the others, and so has that of
  // the buffer, by `target` and `target_slice`. What a window has outside of its tensor is copied as 0. The bytes
  // are counted by an mbarrier, which expects them.
  irdl.operation @copy_box {
    %source = irdl.base "!builtin.memref"
    %target = irdl.base "!builtin.memref"
    %index = irdl.is index
    %barrier = irdl.is !llvm.ptr<3>
    %layout = irdl.base @lego::@layout
    %slice = irdl.any
    %target_layout = irdl.base @lego::@layout
    %target_slice = irdl.any
    irdl.operands(source: %source, source_index: variadic %index, buffer: %target,
                  index: variadic %index, barrier: %barrier)
    irdl.attributes {"layout" = %layout, "slice" = %slice, "target" = %target_layout,
                     "target_slice" = %target_slice}
  }

  // Stores the elements of a tile that one thread holds in the shared memory of a CTA of the
  // cluster, where the buffer has the same address, and counts their bytes at the barrier there
  // (st.async). They have 4 or 8 bytes each.
  irdl.operation @send_parts {
    %memref = irdl.base "!builtin.memref"
    %barrier = irdl.base "!builtin.memref"
    %index = irdl.is index
    %i32 = irdl.is i32
    %part = irdl.any
    %layout = irdl.base @lego::@layout
    %registers = irdl.any
    irdl.operands(buffer: %memref, index: variadic %index, parts: variadic %part,
                  barrier: %barrier, slot: optional %index, cta: %i32)
    irdl.attributes {"layout" = %layout, "registers" = %registers}
  }

  // Loads words of 32 bits by ldmatrix from shared memory: for each matrix, of 8 rows of 16 bytes, a
  // part of the elements in one word. The operands are the index of the first element of the row
  // whose address the thread gives, and the rows that follow one another in the thread's `registers`
  // are those of one instruction each. `matrices` is the number of matrices of an instruction.
  irdl.operation @load_matrices {
    %memref = irdl.base "!builtin.memref"
    %index = irdl.is index
    %part = irdl.any
    %layout = irdl.base @lego::@layout
    %registers = irdl.any
    %matrices = irdl.base "#builtin.integer"
    irdl.operands(buffer: %memref, index: variadic %index)
    irdl.results(words: variadic %part)
    irdl.attributes {"layout" = %layout, "registers" = %registers, "matrices" = %matrices}
  }

  // Stores words by stmatrix, as load_matrices loads them.
  irdl.operation @store_matrices {
    %memref = irdl.base "!builtin.memref"
    %index = irdl.is index
    %part = irdl.any
    %layout = irdl.base @lego::@layout
    %registers = irdl.any
    %matrices = irdl.base "#builtin.integer"
    irdl.operands(buffer: %memref, index: variadic %index, words: variadic %part)
    irdl.attributes {"layout" = %layout, "registers" = %registers, "matrices" = %matrices}
  }

  // The matrix descriptor, for wgmma, of a tile that begins at an element of shared memory. `word` is
  // the descriptor of such a tile at address 0: swizzle, and distances. This operation reads the
  // buffer, and if wgmma is not waited for right behind it, until a lego.end_reads.
  irdl.operation @matrix_descriptor {
    %memref = irdl.base "!builtin.memref"
    %index = irdl.is index
    %i64 = irdl.is i64
    %layout = irdl.base @lego::@layout
    %word = irdl.base "#builtin.integer"
    irdl.operands(buffer: %memref, index: variadic %index)
    irdl.results(descriptor: %i64)
    irdl.attributes {"layout" = %layout, "word" = %word}
  }

  // Reads of buffers that operations before this one have begun, by their matrix descriptors, are over
  // here: the wgmma have been waited for. Passes that place buffers and barriers need to know.
  irdl.operation @end_reads {
    %memref = irdl.base "!builtin.memref"
    irdl.operands(buffers: variadic %memref)
  }
}
