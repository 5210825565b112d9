// The dialect of our transform steps loads in stock mlir-opt, and the schedules that come along parse,
// verify and print back.
// REQUIRES: mlir-opt
// RUN: %mlir-opt --irdl-file=%dialects/transform_lego.irdl.mlir %transforms/cp_async.mlir | FileCheck %s
// RUN: %mlir-opt --irdl-file=%dialects/transform_lego.irdl.mlir %transforms/persistent.mlir -o %t
// RUN: %mlir-opt --irdl-file=%dialects/transform_lego.irdl.mlir %t | diff %t -
// RUN: %mlir-opt --irdl-file=%dialects/transform_lego.irdl.mlir --verify-diagnostics %s -o %t

// CHECK: transform.named_sequence @__transform_placed
// CHECK: "transform_lego.parameter"() {default = 4 : i64, name = "stages"} : () -> !transform.param<i64>
// CHECK: "transform_lego.pipeline_loop"({{.*}}) : (!transform.any_op, !transform.param<i64>) -> ()

module attributes {transform.with_named_sequence} {
  transform.named_sequence @a_step_works_on_operations(%module: !transform.any_op) {
    %depth = "transform_lego.parameter"() {name = "depth", default = 3 : i64}
        : () -> !transform.param<i64>
    // expected-error @below {{expected '!transform.any_op' but got '!transform.param<i64>'}}
    "transform_lego.spread_copies"(%depth) : (!transform.param<i64>) -> ()
    transform.yield
  }
}
