// RUN: %legoc %s | FileCheck %s
// RUN: sed -e "s/^  %c4 = .*/& %low = arith.index_cast %i : index to i8/" %s > %t.mlir
// RUN: not %legoc %t.mlir 2>&1 | FileCheck %s --check-prefix=NARROW

// A truth value is one bit with a sign: as an index it is 0 or -1, which is how MLIR has it.
// The index of a tile does not go through 8 bits.

#L = #lego.layout<"OrderBy(GenP([4], @swap_halves, @swap_halves))">

func.func private @swap_halves(%i: index) -> index {
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %bit = arith.cmpi uge, %i, %c2 : index
  %upper = arith.index_cast %bit : i1 to index
  %back = arith.muli %upper, %c4 : index
  %on = arith.addi %i, %c2 : index
  %at = arith.addi %on, %back : index
  return %at : index
}

// NARROW: 'arith.index_cast' cannot stand in the function of a permutation
"lego.check"() {layout = #L, bijective} : () -> ()
// CHECK-NOT: lego.check
// CHECK: func.func private @swap_halves
