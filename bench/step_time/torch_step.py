"""Times the training step of the peer, PyTorch, on the same networks: forward, backward, momentum.

    python torch_step.py NETWORK [BATCH 8] [THREADS 2] [STEPS 7] [MODE eager|channels-last|compiled]

One JSON object on stdout.
"""

import json
import os
import resource
import sys
import time

os.environ.pop("OPENBLAS_CORETYPE", None)
os.environ.pop("OPENBLAS_L2_SIZE", None)

import torch
from torch import nn


def conv_norm(inputs, outputs, kernel, stride=1, groups=1, activation=nn.ReLU):
    layers = [
        nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False),
        nn.BatchNorm2d(outputs),
    ]
    return nn.Sequential(*layers, activation(inplace=True)) if activation else nn.Sequential(*layers)


class Residual(nn.Module):
    def __init__(self, body, shortcut):
        super().__init__()
        self.body, self.shortcut, self.relu = body, shortcut, nn.ReLU(inplace=True)

    def forward(self, x):
        return self.relu(self.body(x) + self.shortcut(x))


def basic(inputs, width, stride):
    body = nn.Sequential(conv_norm(inputs, width, 3, stride), conv_norm(width, width, 3, activation=None))
    same = inputs == width and stride == 1
    return Residual(body, nn.Identity() if same else conv_norm(inputs, width, 1, stride, activation=None)), width


def bottleneck(inputs, width, stride):
    outputs = 4 * width
    body = nn.Sequential(
        conv_norm(inputs, width, 1),
        conv_norm(width, width, 3, stride),
        conv_norm(width, outputs, 1, activation=None),
    )
    same = inputs == outputs and stride == 1
    return Residual(body, nn.Identity() if same else conv_norm(inputs, outputs, 1, stride, activation=None)), outputs


def resnet(block, depths):
    layers, channels = [conv_norm(3, 64, 7, 2), nn.MaxPool2d(3, 2, 1)], 64
    for stage, depth in enumerate(depths):
        for i in range(depth):
            layer, channels = block(channels, 64 << stage, 2 if stage > 0 and i == 0 else 1)
            layers.append(layer)
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 1000))


def vgg16():
    layers, channels = [], 3
    for width in [64, 64, 0, 128, 128, 0, 256, 256, 256, 0, 512, 512, 512, 0, 512, 512, 512, 0]:
        if width == 0:
            layers.append(nn.MaxPool2d(2))
        else:
            layers += [nn.Conv2d(channels, width, 3, padding=1), nn.ReLU(inplace=True)]
            channels = width
    layers += [nn.Flatten()]
    for inputs in [512 * 49, 4096]:
        layers += [nn.Linear(inputs, 4096), nn.ReLU(inplace=True), nn.Dropout(0.5)]
    return nn.Sequential(*layers, nn.Linear(4096, 1000))


class Inverted(nn.Module):
    def __init__(self, inputs, expand, outputs, stride):
        super().__init__()
        width = inputs * expand
        layers = [conv_norm(inputs, width, 1, activation=nn.ReLU6)] if expand != 1 else []
        layers.append(conv_norm(width, width, 3, stride, width, nn.ReLU6))
        layers.append(conv_norm(width, outputs, 1, activation=None))
        self.body, self.same = nn.Sequential(*layers), stride == 1 and inputs == outputs

    def forward(self, x):
        return x + self.body(x) if self.same else self.body(x)


def mobilenet_v2():
    plan = [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)]
    layers, channels = [conv_norm(3, 32, 3, 2, activation=nn.ReLU6)], 32
    for expand, outputs, depth, stride in plan:
        for i in range(depth):
            layers.append(Inverted(channels, expand, outputs, stride if i == 0 else 1))
            channels = outputs
    layers += [conv_norm(channels, 1280, 1, activation=nn.ReLU6), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
    return nn.Sequential(*layers, nn.Dropout(0.5), nn.Linear(1280, 1000))


NETWORKS = {
    "resnet18": lambda: resnet(basic, [2, 2, 2, 2]),
    "resnet50": lambda: resnet(bottleneck, [3, 4, 6, 3]),
    "vgg16": vgg16,
    "mobilenet_v2_224": mobilenet_v2,
}


def main():
    name, batch, threads, steps, mode = (sys.argv[1:] + ["8", "2", "7", "eager"][len(sys.argv) - 2 :])[:5]
    torch.set_num_threads(int(threads))
    torch.manual_seed(1)
    idle = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    model = NETWORKS[name]()
    x = torch.randn(int(batch), 3, 224, 224)
    labels = torch.zeros(int(batch), dtype=torch.long)
    if mode != "eager":
        model, x = model.to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4, momentum=0.9)
    forward = torch.compile(model) if mode == "compiled" else model
    times = []
    for _ in range(int(steps) + 2):
        start = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        nn.functional.cross_entropy(forward(x), labels).backward()
        optimizer.step()
        times.append(time.perf_counter() - start)
    times = sorted(times[2:])
    print(
        json.dumps(
            {
                "network": name,
                "mode": mode,
                "seconds": times[len(times) // 2],
                "fastest": times[0],
                "peak_resident": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
                "idle_resident": idle,
                "version": torch.__version__,
            }
        )
    )


main()
