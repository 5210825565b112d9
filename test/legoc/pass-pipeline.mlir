// --pass-pipeline replaces a stage's passes, by text or by a file.
// RUN: echo "builtin.module(   // nothing but" > %t.pipeline
// RUN: echo "  canonicalize)" >> %t.pipeline
// RUN: %legoc %s --pass-pipeline "index=builtin.module(canonicalize)" > %t.text
// RUN: FileCheck %s < %t.text
// RUN: %legoc %s --pass-pipeline index=%t.pipeline | cmp %t.text -
// RUN: %legoc %s --pass-pipeline "index=builtin.module(cse)" | FileCheck %s --check-prefix=CSE
// RUN: %legoc %s --pass-pipeline index=%pipelines/index.pipeline > %t.own
// RUN: %legoc %s | cmp %t.own -
// RUN: %legoc %s --emit=scheduled --schedule=%transforms/unroll.mlir --pass-pipeline "scheduled=builtin.module(symbol-dce)" | FileCheck %s --check-prefix=SCHEDULED

func.func @f(%x: index) -> (index, index, index) {
  // Without cse, what is written twice stays twice.
  // CHECK: arith.muli
  // CHECK: arith.muli
  // CHECK: return
  // CSE: arith.muli
  // CSE-NOT: arith.muli
  // CSE: return
  // SCHEDULED: arith.andi
  // SCHEDULED: return
  %0, %1 = "lego.inv"(%x) {layout = #lego.layout<"OrderBy(Row(4, 8))">} : (index) -> (index, index)
  %2 = arith.muli %x, %x : index
  %3 = arith.muli %x, %x : index
  return %1, %2, %3 : index, index, index
}
