"""What is trained: a model, its batches, its loss; text or images. Needs PyTorch."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from recorder.gpt import Gpt
from recorder.machine import Place
from recorder.resnet import ResNet
from recorder.setup import Setup

DTYPES = {"bf16": torch.bfloat16, "fp32": torch.float32, "tf32": torch.float32, "amp": torch.float32}
Batch = tuple[Tensor, Tensor]
# The pixels of an image file, before it is cropped.
DECODED = 256
READY = 4


def dice(seed: int) -> torch.Generator:
    """Random numbers of this process: workers of a loader draw different ones."""
    worker = get_worker_info()
    return torch.Generator().manual_seed(1000 * seed + (worker.id if worker else 0))


class Tokens(IterableDataset[Batch]):
    """Random tokens without end, each batch after the stall that the setup plants."""

    def __init__(self, setup: Setup, seed: int) -> None:
        self.setup, self.seed = setup, seed

    def __iter__(self) -> Iterator[Batch]:
        generator = dice(self.seed)
        size = (self.setup.batch, self.setup.model.sequence + 1)
        while True:
            if self.setup.data_stall_ms:
                time.sleep(self.setup.data_stall_ms / 1000)
            tokens = torch.randint(self.setup.model.vocabulary, size, generator=generator)
            yield tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()


class Augmented(IterableDataset[Batch]):
    """One image after the other, cropped, flipped and normalised as training on photographs does."""

    def __init__(self, setup: Setup, seed: int) -> None:
        self.setup, self.seed = setup, seed

    def __iter__(self) -> Iterator[Batch]:
        generator = dice(self.seed)
        size = self.setup.residual.size
        decoded = torch.randint(256, (3, size + DECODED // 8, size + DECODED // 8), dtype=torch.uint8)
        mean = torch.tensor([0.485, 0.456, 0.406])[:, None, None]
        deviation = torch.tensor([0.229, 0.224, 0.225])[:, None, None]
        while True:
            if self.setup.data_stall_ms:
                time.sleep(self.setup.data_stall_ms / 1000 / self.setup.batch)
            top, left, side = (
                int(torch.randint(low, high, (1,), generator=generator))
                for low, high in ((0, DECODED // 8), (0, DECODED // 8), (size // 2, size))
            )
            crop = decoded[None, :, top : top + side, left : left + side].float()
            image = functional.interpolate(crop, size=(size, size), mode="bilinear", antialias=True)[0]
            if int(torch.randint(2, (1,), generator=generator)):
                image = image.flip(-1)
            label = torch.randint(self.setup.residual.classes, (), generator=generator)
            yield (image / 255 - mean) / deviation, label


class Text:
    """Predict the next token with a GPT-2-like model."""

    def __init__(self, setup: Setup, here: Place) -> None:
        self.setup, self.here = setup, here
        self.positions = torch.arange(setup.model.sequence, device=here.device)

    def model(self) -> nn.Module:
        """The untrained model on its device."""
        model = Gpt(self.setup.model, self.setup.attention)
        return model.to(self.here.device, DTYPES[self.setup.precision])

    def batches(self) -> Iterator[Batch]:
        """Inputs and targets in host memory."""
        pinned = self.here.device.type == "cuda" and not self.setup.pageable
        data = Tokens(self.setup, self.here.rank)
        return iter(DataLoader(data, batch_size=None, pin_memory=pinned, num_workers=self.setup.workers))

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        """Cross entropy of a batch on the device."""
        logits = model(batch[0], self.positions)
        return functional.cross_entropy(logits.flatten(0, 1).float(), batch[1].flatten())


class Images:
    """Classify images with a ResNet."""

    def __init__(self, setup: Setup, here: Place) -> None:
        self.setup, self.here = setup, here
        self.pinned = here.device.type == "cuda" and not setup.pageable
        # As who trains a ResNet does: the fastest convolution of those that fit is looked for once.
        torch.backends.cudnn.benchmark = True

    def model(self) -> nn.Module:
        """The untrained model on its device."""
        model = ResNet(self.setup.residual).to(self.here.device, DTYPES[self.setup.precision])
        return model.to(memory_format=torch.channels_last) if self.setup.channels_last else model  # type: ignore[call-overload, no-any-return]

    def batches(self) -> Iterator[Batch]:
        """Images and labels in host memory: ready, or prepared one by one."""
        if self.setup.augment:
            data = Augmented(self.setup, self.here.rank)
            workers = self.setup.workers
            return iter(
                DataLoader(data, batch_size=self.setup.batch, pin_memory=self.pinned, num_workers=workers)
            )
        shape, generator = self.setup.residual, dice(self.here.rank)
        ready = [
            (
                torch.randn(self.setup.batch, 3, shape.size, shape.size, generator=generator),
                torch.randint(shape.classes, (self.setup.batch,), generator=generator),
            )
            for _ in range(READY)
        ]
        if self.pinned:
            ready = [(images.pin_memory(), labels.pin_memory()) for images, labels in ready]
        return itertools.cycle(ready)

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        """Cross entropy of a batch on the device."""
        images = batch[0].to(DTYPES[self.setup.precision])
        if self.setup.channels_last:
            images = images.contiguous(memory_format=torch.channels_last)
        return functional.cross_entropy(model(images).float(), batch[1])
