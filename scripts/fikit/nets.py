"""What the GPU experiment runs: nets in plain PyTorch with random weights, and CUDA tasks.

In: a name of `TASKS`. Out: a function that does one request and returns its result, a tensor. The nets have the layers
of those that they are called after, so that their kernels are of the same sizes; nothing is downloaded.
"""
# ruff: noqa: D102, D103

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

Request = Callable[[], Tensor]


class Bottleneck(nn.Module):
    """A residual block of ResNet-50."""

    def __init__(self, wide: int, inner: int, stride: int, dilation: int = 1) -> None:
        super().__init__()
        out = inner * 4
        self.one, self.first = nn.Conv2d(wide, inner, 1, bias=False), nn.BatchNorm2d(inner)
        self.three = nn.Conv2d(inner, inner, 3, stride, dilation, dilation, bias=False)
        self.second = nn.BatchNorm2d(inner)
        self.last, self.third = nn.Conv2d(inner, out, 1, bias=False), nn.BatchNorm2d(out)
        self.skip: nn.Module = nn.Identity()
        if stride != 1 or wide != out:
            self.skip = nn.Sequential(nn.Conv2d(wide, out, 1, stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x: Tensor) -> Tensor:
        y = F.relu(self.first(self.one(x)))
        y = F.relu(self.second(self.three(y)))
        return F.relu(self.third(self.last(y)) + self.skip(x))


def backbone(dilated: bool = False) -> nn.Sequential:
    """ResNet-50 up to its last feature map; dilated: with strides of 8 instead of 32, as FCN has it."""
    layers: list[nn.Module] = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU()]
    layers.append(nn.MaxPool2d(3, 2, 1))
    wide = 64
    for stage, (inner, blocks) in enumerate(((64, 3), (128, 4), (256, 6), (512, 3))):
        for block in range(blocks):
            spread = (1, 1, 2, 4)[stage] if dilated else 1
            stride = 2 if stage and not block and spread == 1 else 1
            layers.append(Bottleneck(wide, inner, stride, spread))
            wide = inner * 4
    return nn.Sequential(*layers)


class Detector(nn.Module):
    """As in an R-CNN: features, scores and boxes for anchors, the best of them on the host, a head for each crop.

    The host waits for the scores in the middle of each request, and the head is many short kernels.
    """

    def __init__(self) -> None:
        super().__init__()
        self.features = backbone()
        self.narrow = nn.Conv2d(2048, 256, 1)
        self.rpn, self.scores, self.boxes = nn.Conv2d(256, 256, 3, 1, 1), nn.Conv2d(256, 3, 1), nn.Conv2d(256, 12, 1)
        self.head = nn.Sequential(nn.Linear(256 * 49, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU())
        self.classes = nn.Linear(1024, 91)

    def forward(self, x: Tensor) -> Tensor:
        found = self.narrow(self.features(x))
        shared = F.relu(self.rpn(found))
        scores, boxes = self.scores(shared).sigmoid(), self.boxes(shared)
        best = scores.flatten().topk(64).indices.cpu()  # the host waits here
        crops = []
        height, width = found.shape[2:]
        for place in best.tolist():
            y, x0 = (place // width) % max(height - 7, 1), place % max(width - 7, 1)
            crops.append(F.adaptive_avg_pool2d(found[:, :, y : y + 8, x0 : x0 + 8], 7))
        heads = self.classes(self.head(torch.cat(crops).flatten(1)))
        return heads.softmax(1).sum() + boxes.mean()


def alexnet() -> nn.Module:
    def block(wide: int, out: int, size: int, stride: int, pad: int) -> list[nn.Module]:
        return [nn.Conv2d(wide, out, size, stride, pad), nn.ReLU()]

    pool = nn.MaxPool2d(3, 2)
    layers = [*block(3, 64, 11, 4, 2), pool, *block(64, 192, 5, 1, 2), pool, *block(192, 384, 3, 1, 1)]
    layers += [*block(384, 256, 3, 1, 1), *block(256, 256, 3, 1, 1), pool, nn.AdaptiveAvgPool2d(6), nn.Flatten()]
    layers += [nn.Linear(9216, 4096), nn.ReLU(), nn.Linear(4096, 4096), nn.ReLU(), nn.Linear(4096, 1000)]
    return nn.Sequential(*layers)


def vgg16() -> nn.Module:
    layers: list[nn.Module] = []
    wide = 3
    for out in (64, 64, 0, 128, 128, 0, 256, 256, 256, 0, 512, 512, 512, 0, 512, 512, 512, 0):
        if not out:
            layers.append(nn.MaxPool2d(2, 2))
            continue
        layers += [nn.Conv2d(wide, out, 3, 1, 1), nn.ReLU()]
        wide = out
    layers += [nn.Flatten(), nn.Linear(512 * 49, 4096), nn.ReLU(), nn.Linear(4096, 4096), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(4096, 1000))


def resnet50() -> nn.Module:
    return nn.Sequential(backbone(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, 1000))


def fcn() -> nn.Module:
    head = [nn.Conv2d(2048, 512, 3, 1, 1, bias=False), nn.BatchNorm2d(512), nn.ReLU(), nn.Conv2d(512, 21, 1)]
    return nn.Sequential(backbone(dilated=True), *head, nn.Upsample(scale_factor=8, mode="bilinear"))


def bert() -> nn.Module:
    """An encoder of BERT's base size: 12 layers, 768 wide, 12 heads."""
    layer = nn.TransformerEncoderLayer(768, 12, 3072, 0.0, "gelu", batch_first=True)
    return nn.TransformerEncoder(layer, 12, enable_nested_tensor=False)


def convolutions() -> nn.Module:
    """Six wide layers, as the middle of a net has them: kernels of some 0.3 ms that fill the GPU."""
    layers: list[nn.Module] = []
    for _ in range(6):
        layers += [nn.Conv2d(128, 128, 3, 1, 1), nn.ReLU()]
    return nn.Sequential(*layers)


class Block(nn.Module):
    """A layer of an encoder, written as one writes it by hand: ten launches."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.two = nn.LayerNorm(768), nn.LayerNorm(768)
        self.three, self.out = nn.Linear(768, 3 * 768), nn.Linear(768, 768)
        self.wide, self.narrow = nn.Linear(768, 3072), nn.Linear(3072, 768)

    def forward(self, x: Tensor) -> Tensor:
        batch, words, _ = x.shape
        parts = self.three(self.one(x)).view(batch, words, 3, 12, 64).permute(2, 0, 3, 1, 4)
        found = F.scaled_dot_product_attention(parts[0], parts[1], parts[2])
        x = x + self.out(found.transpose(1, 2).reshape(batch, words, 768))
        return x + self.narrow(F.gelu(self.wide(self.two(x))))


def _encoder(kind: str) -> Callable[[str], Request]:
    """Twelve layers in half precision, whose launches take the host longer than the GPU; `compiled`, or one `graph`."""

    def made(device: str) -> Request:
        model: nn.Module = nn.Sequential(*(Block() for _ in range(12))).to(device).half().eval()
        x = torch.randn(1, 128, 768, device=device).half()
        if kind == "compiled":
            model = torch.compile(model)  # type: ignore[assignment]

        @torch.inference_mode()
        def request() -> Tensor:
            result: Tensor = model(x)
            return result

        if kind != "graph":
            return request
        with torch.cuda.stream(torch.cuda.Stream()):
            request()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            result = request()

        def replay() -> Tensor:
            graph.replay()
            return result

        return replay

    return made


def _inference(make: Callable[[], nn.Module], *shape: int) -> Callable[[str], Request]:
    def made(device: str) -> Request:
        model, x = make().to(device).eval(), torch.randn(*shape, device=device)

        @torch.inference_mode()
        def request() -> Tensor:
            result: Tensor = model(x)
            return result

        return request

    return made


def _training(make: Callable[[], nn.Module], *shape: int) -> Callable[[str], Request]:
    """Steps of a training; what it returns is the loss of the first state, so that it is the same each time."""

    def made(device: str) -> Request:
        model, x = make().to(device).train(), torch.randn(*shape, device=device)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.0)

        def request() -> Tensor:
            optimizer.zero_grad()
            loss: Tensor = model(x).square().mean()
            loss.backward()
            optimizer.step()
            return loss.detach()

        return request

    return made


def _product(size: int) -> Callable[[str], Request]:
    def made(device: str) -> Request:
        a, b = torch.randn(size, size, device=device), torch.randn(size, size, device=device)
        c = torch.empty_like(a)
        return lambda: torch.mm(a, b, out=c)[:8]

    return made


def _small(device: str) -> Request:
    """Forty kernels of some microseconds each."""
    x = torch.randn(1 << 20, device=device)
    y = torch.empty_like(x)

    def request() -> Tensor:
        torch.mul(x, 1.0001, out=y)
        for _ in range(39):
            y.mul_(0.9999)
        return y[:64]

    return request


TASKS: dict[str, Callable[[str], Request]] = {
    "bert": _inference(bert, 1, 128, 768),
    "alexnet": _inference(alexnet, 1, 3, 224, 224),
    "vgg16": _inference(vgg16, 8, 3, 224, 224),
    "resnet50": _inference(resnet50, 1, 3, 224, 224),
    "rcnn": _inference(Detector, 1, 3, 480, 640),
    "fcn": _inference(fcn, 1, 3, 256, 256),
    "encoder": _encoder("eager"),
    "encoder_compiled": _encoder("compiled"),
    "encoder_graph": _encoder("graph"),
    "convolutions_train": _training(convolutions, 32, 128, 56, 56),
    "bert_train": _training(bert, 4, 128, 768),
    "resnet50_train": _training(resnet50, 8, 3, 224, 224),
    "product8192": _product(8192),
    "product4096": _product(4096),
    "small": _small,
}
