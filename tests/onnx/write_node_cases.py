"""Writes the ONNX project's node tests for the operators that are read, one folder each:

    python tests/onnx/write_node_cases.py FOLDER

model.onnx is the model, with every input that sets something (bounds, axes, shapes) as an initialiser; values.txt holds
inputs and expected outputs as constants "in NAME" and "out NAME" in the graph's text form. Prints onnx's version.
"""

import pathlib
import sys
import warnings

import numpy as np
import onnx
from onnx import numpy_helper

warnings.simplefilter("ignore")
from onnx.backend.test.case.node import collect_testcases  # noqa: E402

SETTINGS = set(
    "Clip Dropout Pad ReduceMean ReduceSum Reshape Resize Slice Split Squeeze Unsqueeze Upsample BatchNormalization"
    .split())
PLAIN = set(
    "Add AveragePool Cast Concat Constant Conv ConvTranspose Div Flatten Gemm GlobalAveragePool GlobalMaxPool Identity "
    "LogSoftmax MatMul MaxPool Mul Relu Shape Sigmoid Size Softmax Sub Sum Tanh Transpose".split())
FOLDED = set("Ceil ConstantOfShape Equal Expand Floor Gather Max Min Neg Range Sqrt Where".split())
DTYPES = {"float32": "f32", "float64": "f64", "int64": "i64", "int32": "i32", "bool": "bool", "uint8": "u8"}


def text_of(kind, name, array):
    shape = "x".join(map(str, array.shape))
    values = ", ".join(repr(v.item()) if array.dtype.kind == "f" else str(int(v)) for v in array.ravel())
    values = values.replace("nan", "nan:7fc00000" if array.dtype == np.float32 else "nan:7ff8000000000000")
    return f'constant %"{kind} {name}": {DTYPES[array.dtype.name]}[{shape}] = [{values}]\n'


def write(case, out):
    graph = case.model.graph
    op = graph.node[0].op_type
    inputs, outputs = case.data_sets[0]
    arrays = [*inputs, *outputs]
    if any(not isinstance(a, np.ndarray) and not isinstance(a, np.generic) for a in arrays):
        return False
    arrays = [np.asarray(a) for a in arrays]
    if any(a.dtype.name not in DTYPES for a in arrays):
        return False
    if case.name.startswith("test_training_dropout") and "zero_ratio" not in case.name:
        return False  # another generator's random numbers
    if any(n.domain for n in graph.node) or any(i.type.WhichOneof("value") != "tensor_type" for i in graph.input):
        return False
    first_fixed = 0 if op in FOLDED else 1 if op in SETTINGS else len(graph.input)
    text = 'graph "values"\n'
    for k, (info, array) in enumerate(zip(graph.input, arrays)):
        if k >= first_fixed:
            graph.initializer.append(numpy_helper.from_array(array, info.name))
        else:
            text += text_of("in", info.name, array)
    for info, array in zip(graph.output, arrays[len(inputs):]):
        text += text_of("out", info.name, array)
    folder = out / case.name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.onnx").write_bytes(case.model.SerializeToString())
    (folder / "values.txt").write_text(text)
    return True


def main():
    out = pathlib.Path(sys.argv[1])
    for case in collect_testcases():
        ops = {n.op_type for n in case.model.graph.node}
        if len(case.model.graph.node) == 1 and ops <= SETTINGS | PLAIN | FOLDED:
            write(case, out)
    print(onnx.__version__)


if __name__ == "__main__":
    main()
