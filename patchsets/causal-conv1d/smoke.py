"""causal_conv1d_fn and causal_conv1d_update against upstream's references, in double precision on the CPU.

Prints one JSON object a line: the check, its largest error relative to the largest value, and what is tolerated. Runs
with every release from v1.0.0 on, and needs nothing but torch and the module.
"""

import json
import math
import traceback

import torch
from causal_conv1d import causal_conv1d_interface as conv

BATCH = 2
# Channels and lengths of each layout: more than one block of its kernel, with wide loads and without.
SHAPES = {False: (16, (1032, 517)), True: (96, (136, 77))}
TOLERANCE = {torch.float32: 1e-4, torch.float16: 5e-3, torch.bfloat16: 3e-2}


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
        one, other = one.detach().double().cpu(), other.detach().double().cpu()
        assert one.shape == other.shape, f"shape {tuple(one.shape)}, not {tuple(other.shape)}"
        errors.append(((one - other).abs().max() / other.abs().max().clamp(min=1e-3)).item())
    return math.nan if any(math.isnan(error) for error in errors) else max(errors)


def exact(tensors):
    return [tensor.detach().double().cpu().requires_grad_(tensor.requires_grad) for tensor in tensors]


def drawn(shape, dtype):
    return torch.randn(shape, device="cuda").to(dtype).requires_grad_()


def convolved(function, inputs, channels_last):
    x, weight, bias = inputs
    return function(x.transpose(1, 2) if channels_last else x, weight, bias, activation="silu")


def forward_and_backward(dtype, channels_last):
    """Errors of the output, and of the gradients, over all widths and lengths."""
    outputs, gradients = [], []
    channels, lengths = SHAPES[channels_last]
    for width in (2, 3, 4):
        for length in lengths:
            shape = (BATCH, length, channels) if channels_last else (BATCH, channels, length)
            inputs = [drawn(shape, dtype), drawn((channels, width), torch.float32), drawn((channels,), torch.float32)]
            got = convolved(conv.causal_conv1d_fn, inputs, channels_last)
            down = torch.randn_like(got)
            references = exact(inputs)
            want = convolved(conv.causal_conv1d_ref, references, channels_last)
            outputs.append(off([got], [want]))
            gradients.append(
                off(torch.autograd.grad(got, inputs, down), torch.autograd.grad(want, references, exact([down])[0]))
            )
    worst = lambda errors: math.nan if any(math.isnan(error) for error in errors) else max(errors)
    return worst(outputs), worst(gradients)


def step(dtype):
    """One step of a sequence: the output and the new state."""
    channels = SHAPES[True][0]
    with torch.no_grad():
        errors = []
        for width in (2, 3, 4):
            weight, bias = (drawn(shape, torch.float32) for shape in ((channels, width), (channels,)))
            x, state = drawn((BATCH, channels), dtype), drawn((BATCH, channels, width), dtype)
            references = exact([x, state, weight, bias])
            got = conv.causal_conv1d_update(x, state, weight, bias, activation="silu")
            want = conv.causal_conv1d_update_ref(*references, activation="silu")
            errors.append(off([got, state], [want, references[1]]))
        return math.nan if any(math.isnan(error) for error in errors) else max(errors)


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)  # the references are small; many threads only wait for each other
    for dtype, tolerance in TOLERANCE.items():
        kind = str(dtype).rpartition(".")[2]
        for channels_last in (False, True):
            name = f"causal_conv1d_fn {kind}" + (" channels last" if channels_last else "")
            errors = []
            say(name, tolerance, lambda: errors.extend(forward_and_backward(dtype, channels_last)) or errors[0])
            if errors:
                say(f"{name}, gradients", tolerance, lambda: errors[1])
        say(f"causal_conv1d_update {kind}", tolerance, lambda: step(dtype))


if __name__ == "__main__":
    main()
