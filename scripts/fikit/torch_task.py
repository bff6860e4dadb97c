"""A PyTorch task: `torch_task.py SECONDS encoder|train|graph HOST_MS`. Prints its times and a checksum.

`encoder`: inference of a small transformer encoder, then HOST_MS of rest; `train`: steps of a training; `graph`: the
encoder as a CUDA graph, captured and replayed. The checksum is of the first results, and the same in each run.
"""
# ruff: noqa: T201, D103

from __future__ import annotations

import hashlib
import sys
import time

import torch


def main() -> None:
    seconds, what, host = float(sys.argv[1]), sys.argv[2], float(sys.argv[3]) / 1e3
    torch.manual_seed(7)
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.backends.cuda.matmul.allow_tf32 = False
    layer = torch.nn.TransformerEncoderLayer(512, 8, 1024, dropout=0.0, batch_first=True)
    model = torch.nn.TransformerEncoder(layer, 4, enable_nested_tensor=False).cuda()
    x = torch.randn(8, 128, 512, device="cuda")
    if what == "train":
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)

        def step() -> torch.Tensor:
            optimizer.zero_grad()
            loss = model(x).square().mean()
            loss.backward()
            optimizer.step()
            return loss.detach()
    else:
        model.eval()

        @torch.no_grad()
        def step() -> torch.Tensor:
            return model(x)

    if what == "graph":
        with torch.no_grad():
            side = torch.cuda.Stream()
            with torch.cuda.stream(side):
                step()
            torch.cuda.synchronize()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                out = step()

        def step() -> torch.Tensor:
            graph.replay()
            return out

    digest = hashlib.sha256()
    for _ in range(5):
        digest.update(step().cpu().numpy().tobytes())
    torch.cuda.synchronize()
    times = []
    begin = time.perf_counter()
    while time.perf_counter() - begin < seconds:
        start = time.perf_counter()
        step()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
        if host:
            time.sleep(host)
    whole = time.perf_counter() - begin
    times.sort()
    n = len(times)
    print(
        f"requests {n} kernels_per_s {n / whole:.1f} p50_us {times[n // 2] * 1e6:.1f} "
        f"p90_us {times[n * 9 // 10] * 1e6:.1f} p99_us {times[n * 99 // 100] * 1e6:.1f} launch_ns 0 "
        f"{digest.hexdigest()[:12]}"
    )


main()
