"""Writes the small models in tests/onnx/models, sound ones and broken ones.

    python tests/onnx/make_models.py

Needs the Python packages onnx and numpy. The files are checked in; run this again after a change here.
"""

import pathlib

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OUT = pathlib.Path(__file__).parent / "models"
F32 = TensorProto.FLOAT


def info(name, shape, dtype=F32):
    return helper.make_tensor_value_info(name, dtype, shape)


def weight(name, *shape):
    """Small integers as floats, different for each name."""
    n = int(np.prod(shape))
    start = sum(map(ord, name)) % 7
    return numpy_helper.from_array(((np.arange(n) + start) % 5 - 2).astype(np.float32).reshape(shape), name)


def ints(name, *values):
    return numpy_helper.from_array(np.array(values, dtype=np.int64), name)


def node(op, inputs, outputs, name="", **attrs):
    return helper.make_node(op, inputs, outputs, name=name, **attrs)


def write(name, nodes, inputs, outputs, initialisers=(), opset=17, **options):
    graph = helper.make_graph(nodes, "test", inputs, outputs, list(initialisers))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], producer_name="test")
    model.ir_version = 8
    if options.get("edit"):
        options["edit"](model)
    (OUT / (name + ".onnx")).write_bytes(model.SerializeToString())


def sound():
    x, y = info("x", [2, 3]), info("y", [2, 3])
    image = info("x", [2, 3, 4, 4])
    write("relu", [node("Relu", ["x"], ["y"], "act")], [x], [y])
    write("open_batch", [node("Relu", ["x"], ["y"], "act")], [info("x", ["N", 3])], [info("y", ["N", 3])])
    write("nameless", [node("Gemm", ["x", "w1", "b1"], ["h"], transB=1), node("Relu", ["h"], ["r"]),
                       node("Gemm", ["r", "w2"], ["y"])],
          [x, info("w1", [4, 3]), info("b1", [4]), info("w2", [4, 2])], [info("y", [2, 2])],
          [weight("w1", 4, 3), weight("b1", 4), weight("w2", 4, 2)], opset=11)
    write("same_names", [node("Relu", ["x"], ["conv"], "conv"), node("Relu", ["conv"], ["conv_1"], "conv"),
                         node("Relu", ["conv_1"], ["y"], "conv_1")], [x], [y])
    write("clip_attributes", [node("Clip", ["x"], ["y"], "clip", min=0.0, max=6.0)], [x], [y], opset=9)
    write("clip_inputs", [node("Clip", ["x", "", "high"], ["y"], "clip")], [x], [y],
          [numpy_helper.from_array(np.float32(6), "high")])
    write("dropout_attribute", [node("Dropout", ["x"], ["y"], "drop", ratio=0.1)], [x], [y], opset=7)
    write("dropout_input", [node("Dropout", ["x", "ratio", "mode"], ["y"], "drop")], [x], [y],
          [numpy_helper.from_array(np.float32(0.1), "ratio"), numpy_helper.from_array(np.array(True), "mode")])
    norm = [weight("scale", 3), weight("bias", 3), weight("mean", 3),
            numpy_helper.from_array(np.ones(3, np.float32), "var")]
    write("batch_norm_old", [node("BatchNormalization", ["x", "scale", "bias", "mean", "var"],
                                  ["y", "m", "v", "sm", "sv"], "bn", epsilon=1e-5, momentum=0.9, spatial=1)],
          [image], [info("y", [2, 3, 4, 4])], norm, opset=7)
    write("batch_norm_training", [node("BatchNormalization", ["x", "scale", "bias", "mean", "var"], ["y", "m", "v"],
                                       "bn", training_mode=1)],
          [image], [info("y", [2, 3, 4, 4])], norm)
    thin = info("x", [2, 1, 3, 1])
    write("squeeze_attribute", [node("Squeeze", ["x"], ["s"], "sq", axes=[1, -1]),
                                node("Unsqueeze", ["s"], ["u"], "un", axes=[0]),
                                node("ReduceSum", ["u"], ["y"], "sum", axes=[1], keepdims=0)],
          [thin], [info("y", [1, 3])], opset=11)
    write("squeeze_input", [node("Squeeze", ["x", "a"], ["s"], "sq"), node("Unsqueeze", ["s", "b"], ["u"], "un"),
                            node("ReduceSum", ["u", "c"], ["y"], "sum", keepdims=0)],
          [thin], [info("y", [1, 3])], [ints("a", 1, -1), ints("b", 0), ints("c", 1)])
    write("softmax_matrix", [node("Softmax", ["x"], ["y"], "soft", axis=1)], [image], [info("y", [2, 3, 4, 4])],
          opset=11)
    write("softmax_axis", [node("Softmax", ["x"], ["y"], "soft", axis=1)], [image], [info("y", [2, 3, 4, 4])])
    flatten = [node("Shape", ["x"], ["shape"], "shape"), node("Gather", ["shape", "zero"], ["n"], "gather", axis=0),
               node("Unsqueeze", ["n"], ["n1"], "unsqueeze", axes=[0]),
               node("Constant", [], ["rest"], "rest", value=ints("value", -1)),
               node("Concat", ["n1", "rest"], ["target"], "concat", axis=0),
               node("Reshape", ["x", "target"], ["y"], "flat")]
    write("shape_arithmetic", flatten, [info("x", ["batch", 3, 4, 4])], [info("y", ["batch", 48])],
          [numpy_helper.from_array(np.array(0, np.int64), "zero")], opset=11)
    write("reshape_fixed_batch", [node("Reshape", ["x", "target"], ["y"], "flat")], [info("x", [1, 3, 4, 4])],
          [info("y", [1, 48])], [ints("target", 1, -1)])
    write("upsample", [node("Upsample", ["x", "scales"], ["y"], "up", mode="nearest")], [image],
          [info("y", [2, 3, 8, 8])], [numpy_helper.from_array(np.array([1, 1, 2, 2], np.float32), "scales")], opset=9)
    write("resize_sizes", [node("Resize", ["x", "", "", "sizes"], ["y"], "up", mode="nearest",
                                coordinate_transformation_mode="asymmetric", nearest_mode="floor")], [image],
          [info("y", [2, 3, 8, 12])], [ints("sizes", 2, 3, 8, 12)])
    write("filled_weights", [node("ConstantOfShape", ["shape"], ["w"], "fill",
                                  value=numpy_helper.from_array(np.array([0.5], np.float32))),
                             node("Conv", ["x", "w"], ["y"], "conv")],
          [image], [info("y", [2, 2, 2, 2])], [ints("shape", 2, 3, 3, 3)], opset=9)
    write("bias_after_matmul", [node("MatMul", ["x", "w"], ["h"], "mm"), node("Add", ["b", "h"], ["s"], "bias"),
                                node("Mul", ["s", "two"], ["y"], "scale")],
          [x], [info("y", [2, 4])], [weight("w", 3, 4), weight("b", 4), weight("two", 1)])
    write("normalised_input", [node("Sub", ["x", "mean"], ["c"], "centre"), node("MatMul", ["c", "w"], ["y"], "mm")],
          [x], [info("y", [2, 4])], [weight("w", 3, 4), weight("mean", 3)])
    write("shared_weight", [node("Identity", ["w"], ["w2"], "same"), node("MatMul", ["x", "w"], ["h"], "a"),
                            node("MatMul", ["h", "w2"], ["y"], "b")], [x], [y], [weight("w", 3, 3)])
    write("shared_statistics", [node("BatchNormalization", ["x", "one", "bias", "bias", "one"], ["h"], "bn1"),
                                node("BatchNormalization", ["h", "one", "bias", "bias", "one"], ["y"], "bn2")],
          [image], [info("y", [2, 3, 4, 4])],
          [numpy_helper.from_array(np.ones(3, np.float32), "one"),
           numpy_helper.from_array(np.zeros(3, np.float32), "bias")])
    write("turned_weight", [node("Transpose", ["w"], ["wt"], "turn", perm=[1, 0]),
                            node("MatMul", ["x", "wt"], ["y"], "mm")], [x], [info("y", [2, 2])], [weight("w", 2, 3)])
    write("slice_and_split", [node("Slice", ["x", "starts", "ends", "axes"], ["s"], "cut"),
                              node("Split", ["s"], ["y", "z"], "halves", axis=1)],
          [info("x", [4, 6])], [info("y", [2, 2]), info("z", [2, 2])],
          [ints("starts", 1, -5), ints("ends", 3, 5), ints("axes", 0, 1)], opset=13)
    write("pad_zero", [node("Pad", ["x", "pads"], ["y"], "pad")], [x], [y], [ints("pads", 0, 0, 0, 0)])
    write("double_typed", [node("Add", ["x", "b"], ["y"], "add")], [info("x", [2, 3], TensorProto.DOUBLE)],
          [info("y", [2, 3], TensorProto.DOUBLE)], [helper.make_tensor("b", TensorProto.DOUBLE, [3], [1.0, 2.0, 3.0])])
    external()


def external(name="external", location="external.data", length=48):
    def edit(model):
        t = model.graph.initializer[0]
        data = b"\0" * 64 + t.raw_data
        t.ClearField("raw_data")
        t.data_location = TensorProto.EXTERNAL
        for key, value in (("location", location), ("offset", "64"), ("length", str(length))):
            t.external_data.add(key=key, value=value)
        (OUT / "external.data").write_bytes(data)

    write(name, [node("MatMul", ["x", "w"], ["y"], "mm")], [info("x", [2, 3])], [info("y", [2, 4])],
          [weight("w", 3, 4)], edit=edit)


def broken():
    x, y = info("x", [2, 3]), info("y", [2, 3])
    relu = [node("Relu", ["x"], ["y"], "act")]
    write("bad_operators", [node("LRN", ["x"], ["a"], "norm1", size=5), node("Relu", ["a"], ["b"], "act"),
                            node("FusedGelu", ["b"], ["c"], "gelu", domain="com.example"),
                            node("Einsum", ["c"], ["y"], equation="ij->ij")], [x], [y])
    write("bad_float16", relu, [info("x", [2, 3], TensorProto.FLOAT16)], [y],
          [numpy_helper.from_array(np.zeros(3, np.float16), "w"),
           helper.make_tensor("v", TensorProto.BFLOAT16, [1], [1.0])])
    write("bad_opset", relu, [x], [y], opset=6)
    write("bad_no_opset", relu, [x], [y], edit=lambda m: m.ClearField("opset_import"))
    write("bad_missing", [node("Add", ["x", "nothing"], ["y"], "sum")], [x], [y])
    write("bad_order", [node("Relu", ["h"], ["y"], "second"), node("Relu", ["x"], ["h"], "first")], [x], [y])
    write("bad_cycle", [node("Add", ["x", "b"], ["a"], "one"), node("Relu", ["a"], ["b"], "two"),
                        node("Relu", ["b"], ["y"], "three")], [x], [y])
    write("bad_twice", [node("Relu", ["x"], ["y"], "a"), node("Tanh", ["x"], ["y"], "b")], [x], [y])
    write("bad_output", relu, [x], [info("z", [2, 3])])
    write("bad_no_outputs", relu, [x], [])
    write("bad_open_dimension", relu, [info("x", ["N", "length"])], [y])
    write("bad_negative_dimension", relu, [info("x", [2, -3])], [y])
    write("bad_huge_input", [node("Relu", ["x"], ["y"], "act")], [info("x", [2**40, 2**40])], [y])
    write("bad_no_shape", relu, [helper.make_tensor_value_info("x", F32, None)], [y])
    write("bad_sequence", relu, [helper.make_tensor_sequence_value_info("x", F32, [2, 3])], [y])
    add = [node("Add", ["x", "b"], ["y"], "add")]
    write("bad_raw_size", add, [x], [y], [weight("b", 3)],
          edit=lambda m: setattr(m.graph.initializer[0], "raw_data", b"123"))
    write("bad_huge_tensor", add, [x], [y], [weight("b", 3)],
          edit=lambda m: m.graph.initializer[0].dims.extend([2**62, 4]))
    write("bad_negative_tensor", add, [x], [y], [weight("b", 3)], edit=lambda m: m.graph.initializer[0].dims.append(-1))
    write("bad_typed_size", add, [x], [y], [helper.make_tensor("b", F32, [3], [1.0, 2.0, 3.0])],
          edit=lambda m: m.graph.initializer[0].float_data.append(4.0))
    write("bad_fill", [node("ConstantOfShape", ["shape"], ["w"], "fill"), node("Conv", ["x", "w"], ["y"], "conv")],
          [info("x", [1, 1, 4, 4])], [y], [ints("shape", 2**20, 2**20)])
    branch = helper.make_graph(relu, "branch", [], [y])
    write("bad_branch", [node("If", ["c"], ["y"], "choose", then_branch=branch, else_branch=branch)],
          [x, info("c", [], TensorProto.BOOL)], [y])
    write("bad_attribute", [node("Softmax", ["x"], ["y"], "soft", axis="one")], [x], [y])
    write("bad_pad", [node("Pad", ["x", "pads"], ["y"], "pad")], [x], [y], [ints("pads", 0, 1, 0, 1)])
    write("bad_resize", [node("Resize", ["x", "", "scales"], ["y"], "up", mode="linear")], [info("x", [1, 1, 2, 2])],
          [y], [numpy_helper.from_array(np.array([1, 1, 2, 2], np.float32), "scales")])
    write("bad_reshape", [node("Reshape", ["x", "shape"], ["y"], "view")], [x], [y], [ints("shape", 4, -1)])
    write("bad_gather", [node("Gather", ["x", "i"], ["y"], "pick")], [x], [y], [ints("i", 0)])
    external("bad_external_path", location="../secret")
    external("bad_external_length", length=40)
    (OUT / "bad_truncated.onnx").write_bytes((OUT / "nameless.onnx").read_bytes()[:-7])


if __name__ == "__main__":
    OUT.mkdir(exist_ok=True)
    sound()
    broken()
