"""A ResNet of bottleneck blocks, as in `Deep Residual Learning` (He et al., 2015). Needs PyTorch."""

from __future__ import annotations

from torch import Tensor, nn

from recorder.setup import Residual

EXPANSION = 4


def convolution(inputs: int, outputs: int, kernel: int, stride: int = 1) -> nn.Sequential:
    """A convolution and its batch normalisation."""
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, kernel, stride, padding=kernel // 2, bias=False), nn.BatchNorm2d(outputs)
    )


class Bottleneck(nn.Module):
    """1x1, 3x3 and 1x1 convolutions, added to what came in."""

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        outputs = EXPANSION * width
        self.relu = nn.ReLU(inplace=True)
        self.path = nn.Sequential(
            convolution(inputs, width, 1),
            nn.ReLU(inplace=True),
            convolution(width, width, 3, stride),
            nn.ReLU(inplace=True),
            convolution(width, outputs, 1),
        )
        same = stride == 1 and inputs == outputs
        self.shortcut = nn.Identity() if same else convolution(inputs, outputs, 1, stride)

    def forward(self, x: Tensor) -> Tensor:
        added: Tensor = self.relu(self.path(x) + self.shortcut(x))
        return added


class ResNet(nn.Module):
    """Images [batch, 3, size, size] to logits [batch, classes]."""

    def __init__(self, shape: Residual) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            convolution(3, shape.width, 7, 2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, padding=1)
        )
        blocks: list[nn.Module] = []
        inputs = shape.width
        for stage, count in enumerate(shape.stages):
            width = shape.width * 2**stage
            for index in range(count):
                blocks.append(Bottleneck(inputs, width, 2 if stage and index == 0 else 1))
                inputs = EXPANSION * width
        self.blocks = nn.Sequential(*blocks)
        self.head = nn.Linear(inputs, shape.classes)

    def forward(self, images: Tensor) -> Tensor:
        logits: Tensor = self.head(self.blocks(self.stem(images)).mean((2, 3)))
        return logits
