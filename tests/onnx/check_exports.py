"""Checks exported models: python tests/onnx/check_exports.py FOLDER

Every FOLDER/NAME.onnx must pass onnx.checker with full shape inference, and give the outputs in FOLDER/NAME.txt (a line
of numbers for the input, a line for the output) under the ONNX reference evaluator.
"""

import pathlib
import sys

import numpy as np
import onnx
import onnx.checker
from onnx.reference import ReferenceEvaluator


def main():
    for path in sorted(pathlib.Path(sys.argv[1]).glob("*.onnx")):
        onnx.checker.check_model(str(path), full_check=True)
        lines = path.with_suffix(".txt").read_text().splitlines()
        x, y = (np.array(list(map(float, line.split())), np.float32) for line in lines)
        model = onnx.load(path)
        info = model.graph.input[0]
        x = x.reshape([d.dim_value for d in info.type.tensor_type.shape.dim])
        (result,) = ReferenceEvaluator(model).run(None, {info.name: x})
        worst = np.abs(result.ravel() - y).max() / max(np.abs(y).max(), 1e-6)
        print(path.name, "relative error", worst)
        assert worst < 1e-4, path


if __name__ == "__main__":
    main()
