// What the dialect's definition alone refuses, in stock mlir-opt.
// REQUIRES: mlir-opt
// RUN: %mlir-opt --irdl-file=%dialects/lego.irdl.mlir --split-input-file --verify-diagnostics %s

func.func @a_layout_is_no_text(%i: index) {
  // expected-error @below {{expected base attribute 'lego.layout'}}
  %offset = "lego.apply"(%i) {layout = "OrderBy(Row(8))"} : (index) -> index
  return
}

// -----

func.func @no_layout(%i: index) {
  // expected-error @below {{attribute "layout" is expected but not provided}}
  %offset = "lego.apply"(%i) : (index) -> index
  return
}

// -----

func.func @an_offset_is_an_index(%i: i32) {
  // expected-error @below {{expected 'index' but got 'i32'}}
  %row = "lego.inv"(%i) {layout = #lego.layout<"OrderBy(Row(8))">} : (i32) -> index
  return
}

// -----

func.func @only_memrefs_are_loaded_from(%buffer: tensor<8xf32>, %i: index) {
  // expected-error @below {{expected base type 'builtin.memref'}}
  %value = "lego.load"(%buffer, %i) {layout = #lego.layout<"OrderBy(Row(8))">}
      : (tensor<8xf32>, index) -> f32
  return
}

// -----

func.func @a_tensor_map_is_a_pointer(%map: index) {
  // expected-error @below {{expected '!llvm.ptr' but got 'index'}}
  %maps = "lego.tensor_maps"(%map) : (index) -> !llvm.ptr
  return
}

// -----

// expected-error @below {{expected base attribute 'builtin.string' but got 'builtin.integer'}}
func.func private @a_layout_holds_text() attributes {layout = #lego.layout<8 : i64>}
