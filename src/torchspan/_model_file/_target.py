# SPDX-License-Identifier: MIT
"""What a build is made for, and what the compiler is told for it.

No single build wins everywhere on a CPU. Kernels generated for the model's own sizes save the
library calls that cost most of a small batch; weights packed in advance win on a large one, but
each of their calls costs microseconds. So a file may hold one of each beside the build for any
batch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torchspan._devices import Device
from torchspan._model_file._capability import cpu_level, device_capability, find_level

__all__ = ["FEW", "MANY", "Target", "compiler_options"]

# For few rows, by generated kernels; for many rows, by packed weights.
FEW = "few"
MANY = "many"

# Up to so many multiplications a call, starting a second thread costs more than it gains.
ONE_THREAD_WORK = 1 << 20


@dataclass(frozen=True)
class Target:
    """What a build is made for.

    Attributes:
        device: A device of the kind; the build runs on all of that kind and capability.
        cpu: The CPU level to build for; None for this machine's own. CPU builds only.
        precision: ``"float32"`` for the model's own arithmetic, ``"bfloat16"`` or ``"tf32"``.
        rows: The one batch size to build for; None for any.
        tuned: ``FEW`` or ``MANY`` where it is made for some batches only; ``""`` for all.
    """

    device: Device
    cpu: str | None = None
    precision: str = "float32"
    rows: int | None = None
    tuned: str = ""

    @property
    def kind(self) -> str:
        """The kind of device that really computes."""
        return self.device.torch.type

    @property
    def capability(self) -> str:
        """What the device must be able to do."""
        return find_level(self.cpu).name if self.kind == "cpu" else device_capability(self.device)

    @property
    def tunable(self) -> bool:
        """Whether weights packed here, and times measured here, are true where it will run."""
        return (self.kind, self.precision, self.capability) == ("cpu", "float32", cpu_level().name)

    @property
    def name(self) -> str:
        """What the build is called in its file."""
        parts = [self.kind, self.capability]
        if self.precision != "float32":
            parts.append(self.precision)
        if self.rows is not None:
            parts.append(f"b{self.rows}")
        if self.tuned:
            parts.append(self.tuned)
        return "-".join(parts)


def compiler_options(target: Target, weights: int) -> dict[str, Any]:
    """What Inductor is told for ``target``; ``weights`` is how many numbers the model has."""
    options: dict[str, Any] = {"aot_inductor.package": True, "cpp.dynamic_threads": True}
    if target.kind != "cpu" or target.precision != "float32":
        return options
    small = target.rows is not None and target.rows * weights <= ONE_THREAD_WORK
    if small or target.tuned == FEW:
        options |= {"cpp.dynamic_threads": False, "cpp.threads": 1}
        options |= {"max_autotune": True, "max_autotune_gemm_backends": "CPP,ATEN"}
    # How oneDNN packs weights depends on the CPU that it packs them on.
    if target.tunable and (target.rows is not None or target.tuned):
        options["freezing"] = True
    return options
