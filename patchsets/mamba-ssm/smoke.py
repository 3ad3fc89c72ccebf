"""selective_scan_fn against upstream's reference, and Mamba against itself without a kernel.

Prints one JSON object a line: the check, its largest error relative to the largest value, and what is tolerated. Runs
with every release from v1.0.0 on. causal-conv1d takes part where Mamba finds it.
"""

import json
import math
import traceback

import torch
from mamba_ssm.modules import mamba_simple
from mamba_ssm.ops.selective_scan_interface import selective_scan_fn, selective_scan_ref

BATCH, CHANNELS, STATES = 2, 16, 16
LENGTH = 2176  # more than one block of the kernels: the state is handed over
TOLERANCE = {torch.float32: 1e-3, torch.float16: 1e-2, torch.bfloat16: 5e-2}


def say(name, tolerance, work):
    line = {"check": name, "tolerance": tolerance}
    try:
        error = work()
        torch.cuda.synchronize()
        line["error"] = error if math.isfinite(error) else None
    except Exception as raised:
        traceback.print_exc()
        line["raised"] = f"{type(raised).__name__}: {raised}"
    print(json.dumps(line), flush=True)


def off(got, want):
    """The largest error of some tensors; not a number where one of them holds something that is none."""
    errors = []
    for one, other in zip(got, want):
        one, other = (real(tensor.detach()) for tensor in (one, other))
        assert one.shape == other.shape, f"shape {tuple(one.shape)}, not {tuple(other.shape)}"
        errors.append(((one - other).abs().max() / other.abs().max().clamp(min=1e-3)).item())
    return math.nan if any(math.isnan(error) for error in errors) else max(errors)


def real(tensor):
    return (torch.view_as_real(tensor) if tensor.is_complex() else tensor).double()


def scanned(dtype, is_complex):
    """Errors of the output, and of the gradients with respect to everything that goes in."""
    draw = lambda *shape: torch.randn(shape, device="cuda")
    decay = -0.5 * torch.rand(CHANNELS, STATES, device="cuda") - 0.01
    if is_complex:
        decay = torch.complex(decay, draw(CHANNELS, STATES))
    wide = LENGTH * 2 if is_complex else LENGTH
    inputs = {
        "u": draw(BATCH, CHANNELS, LENGTH).to(dtype),
        "delta": (0.5 * torch.rand(BATCH, CHANNELS, LENGTH, device="cuda")).to(dtype),
        "A": decay,
        "B": draw(BATCH, STATES, wide).to(dtype),
        "C": draw(BATCH, STATES, wide).to(dtype),
        "D": draw(CHANNELS),
        "z": draw(BATCH, CHANNELS, LENGTH).to(dtype),
        "delta_bias": 0.5 * torch.rand(CHANNELS, device="cuda") - 4,
    }
    for tensor in inputs.values():
        tensor.requires_grad_()
    got = selective_scan_fn(**inputs, delta_softplus=True)
    want = selective_scan_ref(**inputs, delta_softplus=True)
    down = torch.randn_like(got)
    leaves = list(inputs.values())
    gradients = off(torch.autograd.grad(got, leaves, down), torch.autograd.grad(want, leaves, down))
    return off([got], [want]), gradients


def block():
    """The block with its kernels, and with the reference of the scan and PyTorch's own convolution."""
    layer = mamba_simple.Mamba(d_model=64).cuda()
    x = torch.randn(2, 136, 64, device="cuda", requires_grad=True)
    leaves = [x, *layer.parameters()]
    got = layer(x)
    down = torch.randn_like(got)
    kernels = mamba_simple.causal_conv1d_fn, mamba_simple.selective_scan_fn
    mamba_simple.causal_conv1d_fn, mamba_simple.selective_scan_fn = None, selective_scan_ref
    try:
        layer.use_fast_path = False
        want = layer(x)
    finally:
        mamba_simple.causal_conv1d_fn, mamba_simple.selective_scan_fn = kernels
    gradients = off(torch.autograd.grad(got, leaves, down), torch.autograd.grad(want, leaves, down))
    return off([got], [want]), gradients


def both(name, tolerance, work):
    errors = []
    say(name, tolerance, lambda: errors.extend(work()) or errors[0])
    if errors:
        say(f"{name}, gradients", tolerance, lambda: errors[1])


def main():
    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    for dtype, tolerance in TOLERANCE.items():
        kind = str(dtype).rpartition(".")[2]
        for is_complex in (False, True):
            name = f"selective_scan_fn {kind}" + (" complex" if is_complex else "")
            both(name, tolerance, lambda: scanned(dtype, is_complex))
    both("Mamba float32", TOLERANCE[torch.float32], block)


if __name__ == "__main__":
    main()
