"""Train the adapter: workers of one thread each take packed batches in turn and add up their gradients.

A step is a function of the seed and of the examples seen before; a run that was cut goes on from its last checkpoint with the
same command. The learning rate follows the examples seen, not the clock.
"""

from __future__ import annotations

import argparse
import ctypes
import datetime as dt
import itertools
import json
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from evaluation import figures
from model import Batch, Judge
from tokens import common_prefix
from torch import Tensor

WARM_UP, AVERAGE = 0.02, 0.98


class Data:
    """A tokenised file: the shared prefix, items, targets."""

    def __init__(self, path: Path, prefix: np.ndarray | None = None) -> None:
        stored = np.load(path)
        items = np.split(stored["tokens"], stored["ends"][:-1])
        if prefix is None:
            shared = common_prefix([item.tolist() for item in items])
            prefix = np.concatenate([stored["system"], items[0][:shared]])
        skip = len(prefix) - len(stored["system"])
        assert all((item[:skip] == prefix[len(stored["system"]) :]).all() for item in items)
        self.prefix, self.items = prefix, [item[skip:] for item in items]
        self.labels = torch.from_numpy(stored["labels"])
        self.targets = torch.from_numpy(stored["targets"])
        self.kept = stored["kept"]

    def batches(self, budget: int, start: int) -> Iterator[slice]:
        """Consecutive items up to so many tokens, from one on."""
        tokens = 0
        for i in range(start, len(self.items)):
            if i > start and tokens + len(self.items[i]) > budget:
                yield slice(start, i)
                start, tokens = i, 0
            tokens += len(self.items[i])


def loss_of(logprobs: Tensor, labels: Tensor, targets: Tensor) -> Tensor:
    """Cross-entropy of the levels, half the ranked probability score, a tenth of the surprise that a level comes; summed."""
    at_levels = logprobs[:, labels]
    mass = at_levels.logsumexp(-1, keepdim=True)
    levels = at_levels - mass
    ranked = (levels.exp().cumsum(-1) - targets.cumsum(-1)).square().sum(-1)
    return (-(targets * levels).sum(-1) + 0.5 * ranked - 0.1 * mass.squeeze(-1)).sum()


def rate(at: float, decay_from: float) -> float:
    """Share of the peak learning rate at a share of the run: linear warm-up, constant, linear decay to a fiftieth."""
    return min(1.0, (at + 1e-3) / WARM_UP, max(0.02, (1 - at) / (1 - decay_from)))


def grade(judge: Judge, prefix: np.ndarray, items: Sequence[np.ndarray], labels: Tensor, budget: int) -> Tensor:
    """Level probabilities of items behind one prefix, then the observed mass behind them, shape (n, 6); packed up to a budget."""
    out, pack, tokens = [], [], 0
    with torch.no_grad():
        for item in [*items, None]:
            if pack and (item is None or tokens + len(item) > budget):
                levels = judge.logprobs(Batch.pack(prefix, pack))[:, labels].exp()
                mass = levels.sum(-1, keepdim=True)
                out.append(torch.cat([levels / mass, mass], dim=1))
                pack, tokens = [], 0
            if item is not None:
                pack.append(item)
                tokens += len(item)
    return torch.cat(out)


class Run:
    """One worker's side of the training; all workers hold the same parameters and take the same steps."""

    def __init__(self, rank: int, args: argparse.Namespace) -> None:
        self.rank, self.args = rank, args
        self.data = Data(args.work / "train.npz")
        self.apart = Data(args.work / "eval.npz", self.data.prefix)
        self.judge = Judge(args.model, seed=args.seed)
        self.shapes = {name: matrix.shape for name, matrix in self.judge.parameters.items()}
        self.flat = torch.cat([matrix.detach().flatten() for matrix in self.judge.parameters.values()]).requires_grad_()
        self.flat.grad = torch.zeros_like(self.flat)
        self.optimizer = torch.optim.AdamW([self.flat], lr=args.lr, betas=(0.9, 0.98), weight_decay=0.01, fused=True)
        self.average = self.flat.detach().clone()
        self.step = self.seen = 0
        if args.start and not args.checkpoint.exists():
            with torch.no_grad():
                self.flat.copy_(torch.load(args.start, weights_only=True)["flat_average"])
                self.average.copy_(self.flat)
        if args.checkpoint.exists():
            state = torch.load(args.checkpoint, weights_only=True)
            with torch.no_grad():
                self.flat.copy_(state["flat"])
            self.optimizer.load_state_dict(state["optimizer"])
            self.average, self.step, self.seen = state["flat_average"], state["step"], state["seen"]

    def named(self, flat: Tensor) -> dict[str, Tensor]:
        """Cut the one vector that is optimised into LoRA's matrices."""
        parts = flat.split([shape.numel() for shape in self.shapes.values()])
        return {name: part.view(shape) for (name, shape), part in zip(self.shapes.items(), parts, strict=True)}

    def learn(self, mine: slice) -> float:
        """Take one step on the workers' batches together, and return its mean loss."""
        self.judge.parameters = self.named(self.flat)
        batch = Batch.pack(self.data.prefix, self.data.items[mine])
        loss = loss_of(self.judge.logprobs(batch), self.data.labels, self.data.targets[mine])
        loss.backward()
        sums = torch.tensor([float(mine.stop - mine.start), float(loss.detach())])
        dist.all_reduce(self.flat.grad)
        dist.all_reduce(sums)
        self.flat.grad /= sums[0]
        torch.nn.utils.clip_grad_norm_([self.flat], 1.0)
        self.optimizer.param_groups[0]["lr"] = self.args.lr * rate(self.seen / self.args.planned, self.args.decay_from)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=False)
        self.step, self.seen = self.step + 1, self.seen + int(sums[0])
        self.average.lerp_(self.flat.detach(), 1 - min(AVERAGE, self.step / (self.step + 10)))
        return float(sums[1] / sums[0])

    def evaluate(self) -> None:
        """Grade the parts kept apart with the averaged parameters, and log the figures."""
        self.judge.parameters = self.named(self.average)
        graded = torch.zeros(len(self.apart.items), 6)
        own = slice(self.rank, None, self.args.workers)
        graded[own] = grade(self.judge, self.apart.prefix, self.apart.items[own], self.apart.labels, 1500)
        dist.all_reduce(graded)
        self.log(evaluation=figures(self.args.work, self.apart.kept, graded.numpy()))

    def checkpoint(self) -> None:
        """Replace the checkpoint in one move."""
        if self.rank == 0:
            both = {"parameters": self.flat.detach(), "average": self.average}
            state = {name: {n: part.clone() for n, part in self.named(flat).items()} for name, flat in both.items()}
            state |= {"flat": self.flat.detach(), "flat_average": self.average, "optimizer": self.optimizer.state_dict()}
            partial = self.args.checkpoint.with_suffix(".part")
            torch.save(state | {"step": self.step, "seen": self.seen}, partial)
            partial.replace(self.args.checkpoint)

    def log(self, **entry: object) -> None:
        """Append a line to the log."""
        if self.rank == 0:
            with (self.args.work / "train_log.jsonl").open("a") as log:
                log.write(json.dumps({"step": self.step, "seen": self.seen, **entry}) + "\n")

    def __call__(self) -> None:
        """Train until the planned number of examples."""
        if self.args.start and self.seen == 0:
            self.evaluate()
        batches = self.data.batches(self.args.budget, self.seen)
        saved, timed, losses = time.monotonic(), (time.monotonic(), self.seen), []
        while (
            self.seen < self.args.planned and len(turn := list(itertools.islice(batches, self.args.workers))) == self.args.workers
        ):
            before = self.seen
            losses.append(self.learn(turn[self.rank]))
            if self.step % 40 == 0:
                speed = (self.seen - timed[1]) / (time.monotonic() - timed[0])
                self.log(loss=round(float(np.mean(losses)), 4), per_s=round(speed, 2), lr=self.optimizer.param_groups[0]["lr"])
                timed, losses = (time.monotonic(), self.seen), []
            if before // self.args.evaluate_every < self.seen // self.args.evaluate_every or self.seen >= self.args.planned:
                self.checkpoint()
                self.evaluate()
                timed = (time.monotonic(), self.seen)
            if time.monotonic() - saved > self.args.checkpoint_s:
                self.checkpoint()
                saved = time.monotonic()
        self.checkpoint()


def worker(rank: int, args: argparse.Namespace) -> None:
    torch.set_num_threads(1)
    libc = ctypes.CDLL("libc.so.6")  # keep freed memory in the process: M_MMAP_MAX 0, M_TRIM_THRESHOLD and M_TOP_PAD high
    for option, value in ((-4, 0), (-1, 2**31 - 1), (-2, 2**28)):
        libc.mallopt(option, value)
    patience = dt.timedelta(days=1)  # a worker may be paused
    dist.init_process_group("gloo", init_method=f"file://{args.meeting}", rank=rank, world_size=args.workers, timeout=patience)
    Run(rank, args)()
    dist.barrier()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--planned", type=int, required=True, help="examples after which the learning rate has run out")
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--decay-from", type=float, default=0.5, help="share of the run after which the learning rate falls")
    parser.add_argument("--start", type=Path, help="the checkpoint whose average a second run starts from")
    parser.add_argument("--budget", type=int, default=600, help="item tokens of a worker's batch")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=4)
    parser.add_argument("--evaluate-every", type=int, default=4000)
    parser.add_argument("--checkpoint-s", type=float, default=180)
    args = parser.parse_args()
    args.checkpoint = args.work / "checkpoint.pt"
    args.meeting = args.work / f"meeting.{os.getpid()}"
    mp.spawn(worker, (args,), nprocs=args.workers)
    args.meeting.unlink(missing_ok=True)


if __name__ == "__main__":
    main()
