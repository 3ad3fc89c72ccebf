"""Does a built extension compute what PyTorch computes? Each check returns the largest difference that it saw.

    python3 checks.py NAME BUILT TREE

BUILT is the --build-lib of setup.py, TREE the folder of setup.py. Prints one JSON object: {"error": 1.2e-07, "what": ...}.
Needs a GPU, and nothing of the extension but what it was built for.
"""

from __future__ import annotations

import importlib.util
import itertools
import json
import sys
from pathlib import Path
from typing import Any, Callable, Dict, List, Tuple

import torch
import torch.nn.functional as F

Check = Callable[["Built"], Tuple[float, str]]
CHECKS: Dict[str, Check] = {}


def check(function: Check) -> Check:
    """Names a check by its function."""
    CHECKS[function.__name__] = function
    return function


class Built:
    """The modules of one build."""

    def __init__(self, libraries: Path, tree: Path) -> None:
        self.libraries, self.tree = libraries, tree
        sys.path[:0] = [str(libraries), str(tree)]

    def modules(self) -> List[Any]:
        """Every module that was built, imported."""
        return [load(path) for path in sorted(self.libraries.rglob("*.so"))]

    def module(self, name: str) -> Any:
        """The one whose file begins with that name."""
        (path,) = self.libraries.rglob(f"{name}.*so")
        return load(path)


def load(path: Path) -> Any:
    """Imports a module by its file, whatever package it belongs to."""
    name = path.name.split(".")[0]
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None, path
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def rand(*shape: int, low: float = 0.0, high: float = 1.0) -> torch.Tensor:
    """Random numbers on the GPU, the same in every run."""
    generator = torch.Generator().manual_seed(sum(shape) + 7)
    return (torch.rand(*shape, generator=generator) * (high - low) + low).cuda()


def difference(found: torch.Tensor, wanted: torch.Tensor) -> float:
    """The largest, relative to the largest number that is wanted."""
    assert found.shape == wanted.shape, (found.shape, wanted.shape)
    found, wanted = found.double().cpu(), wanted.double().cpu()
    assert torch.isfinite(found).all()
    return ((found - wanted).abs().max() / wanted.abs().max().clamp(min=1e-12)).item()


def within(limit: float, *errors: float) -> float:
    """The largest, which must not be larger than the limit."""
    assert max(errors) <= limit, f"{max(errors):.3g} is more than {limit:.3g}"
    return max(errors)


@check
def imports(built: Built) -> Tuple[float, str]:
    modules = built.modules()
    assert modules, "nothing was built"
    return 0.0, f"{len(modules)} imported, nothing run"


# Points.


def nearest(points: torch.Tensor, to: torch.Tensor, count: int) -> Tuple[torch.Tensor, torch.Tensor]:
    """Squared distances and indices of the nearest points, (B, M, count)."""
    squares = torch.cdist(to.double(), points.double()).square()
    found = squares.topk(count, dim=2, largest=False)
    return found.values, found.indices


def farthest(points: torch.Tensor, count: int) -> torch.Tensor:
    """Farthest point sampling from the first point on, one set of points."""
    chosen, distance = [0], torch.full((len(points),), float("inf"), device=points.device)
    for _ in range(count - 1):
        distance = torch.minimum(distance, (points - points[chosen[-1]]).square().sum(1))
        chosen.append(int(distance.argmax()))
    return torch.tensor(chosen)


def pointnet(module: Any) -> Tuple[float, str]:
    points, centres = rand(2, 512, 3, low=1, high=2), rand(2, 64, 3, low=1, high=2)
    squares, indices = module.three_nn(centres, points)
    wanted, wanted_indices = nearest(points, centres, 3)
    assert (indices.long() == wanted_indices).float().mean() > 0.999
    weights, features = rand(2, 64, 3), rand(2, 16, 512)
    gathered = features[:, :, :].gather(2, wanted_indices.reshape(2, 1, -1).expand(-1, 16, -1)).reshape(2, 16, 64, 3)
    interpolated = difference(module.three_interpolate(features, indices, weights), (gathered * weights[:, None]).sum(3))
    sampled = module.furthest_point_sampling(points, 32)
    for one, found in zip(points, sampled.cpu()):
        assert (found.long() == farthest(one, 32)).all(), "farthest points"
    return within(1e-4, difference(squares, wanted), interpolated), "nearest, interpolated and farthest points"


def balls(module: Any) -> float:
    points, centres = rand(2, 512, 3, low=1, high=2), rand(2, 64, 3, low=1, high=2)
    found = module.ball_query(centres, points, 0.2, 16).cpu()
    grouped = module.group_points(points.transpose(1, 2).contiguous(), found.cuda())
    near = torch.cdist(centres, points).cpu() < 0.2
    for batch, centre in itertools.product(range(2), range(64)):
        inside = near[batch, centre].nonzero().flatten()[:16]
        if len(inside):
            wanted = torch.cat([inside, inside[:1].expand(16 - len(inside))])
            assert (found[batch, centre].long() == wanted).all(), "points in a ball"
    wanted_groups = torch.stack([one[index.long().cuda()] for one, index in zip(points, found)]).permute(0, 3, 1, 2)
    return difference(grouped, wanted_groups)


@check
def pointnet2(built: Built) -> Tuple[float, str]:
    module = built.module("_ext")
    error, what = pointnet(module)
    return within(1e-4, error, balls(module)), f"{what}, balls and groups"


@check
def points_kernels(built: Built) -> Tuple[float, str]:
    return pointnet(built.module("points_cuda"))


@check
def knn_pytorch(built: Built) -> Tuple[float, str]:
    points, queries = rand(2, 3, 300), rand(2, 3, 40)
    indices = torch.empty(2, 5, 40, dtype=torch.long, device="cuda")
    built.module("knn_pytorch").knn(points, queries, indices)
    wanted, _ = nearest(points.transpose(1, 2), queries.transpose(1, 2), 5)
    chosen = points.gather(2, (indices - 1).reshape(2, 1, -1).expand(-1, 3, -1)).reshape(2, 3, 5, 40)
    found = (chosen - queries[:, :, None]).square().sum(1).transpose(1, 2)
    return within(1e-5, difference(found, wanted)), "squared distances of 5 neighbours"


@check
def knn_cuda(built: Built) -> Tuple[float, str]:
    from knn_cuda import KNN

    points, queries = rand(2, 300, 3), rand(2, 40, 3)
    distances, _ = KNN(5, transpose_mode=True)(points, queries)
    wanted, _ = nearest(points, queries, 5)
    return within(1e-5, difference(distances, wanted.sqrt())), "distances of 5 neighbours"


@check
def chamfer(built: Built) -> Tuple[float, str]:
    from chamfer_distance.chamfer_distance import ChamferDistance

    one, other = rand(2, 200, 3).requires_grad_(), rand(2, 150, 3).requires_grad_()
    found = ChamferDistance()(one, other)
    sum(part.sum() for part in found).backward()
    gradient, one.grad = one.grad.clone(), None
    squares = (one[:, :, None] - other[:, None]).square().sum(3)
    wanted = squares.min(2).values, squares.min(1).values
    sum(part.sum() for part in wanted).backward()
    errors = [difference(left.detach(), right.detach()) for left, right in zip(found, wanted)]
    return within(1e-5, *errors, difference(gradient, one.grad)), "both distances and a gradient"


# Flow.


def correlation(one: torch.Tensor, other: torch.Tensor, radius: int) -> torch.Tensor:
    """Means over channels, (B, D * D, H, W), the rows of displacements first."""
    height, width = one.shape[2:]
    padded = F.pad(other, [radius] * 4)
    steps = itertools.product(range(2 * radius + 1), repeat=2)
    return torch.stack([(one * padded[:, :, y : y + height, x : x + width]).mean(1) for y, x in steps], 1)


@check
def correlation_cuda(built: Built) -> Tuple[float, str]:
    module, radius = built.module("correlation_cuda"), 4
    one, other = rand(2, 32, 16, 24), rand(2, 32, 16, 24)
    other = other.flip(3).contiguous()
    empty = [torch.empty(0, device="cuda") for _ in range(3)]
    module.forward(one, other, *empty, radius, 1, radius, 1, 1, 1)
    return within(1e-5, difference(empty[2], correlation(one, other, radius))), "correlation of two maps"


@check
def correlation_sampler(built: Built) -> Tuple[float, str]:
    module = built.module("spatial_correlation_sampler_backend")
    one, other = rand(2, 8, 16, 24), rand(2, 8, 16, 24).flip(3).contiguous()
    arguments = (1, 1, 9, 9, 0, 0, 1, 1, 1, 1, 1, 1)
    found = module.forward(one, other, *arguments)
    wanted = correlation(one, other, 4).reshape(found.shape) * one.shape[1]
    on_host = module.forward(one.cpu(), other.cpu(), *arguments)
    return within(1e-5, difference(found, wanted), difference(on_host, wanted)), "correlation, GPU and host"


@check
def alt_cuda_corr(built: Built) -> Tuple[float, str]:
    module, radius = built.module("alt_cuda_corr"), 3
    one, other = rand(1, 16, 24, 64), rand(1, 16, 24, 64).flip(2).contiguous()
    grid = torch.stack(torch.meshgrid(torch.arange(24.0), torch.arange(16.0), indexing="xy"), 2).cuda()
    places = grid[None] + rand(1, 16, 24, 2, low=-2, high=2)
    (found,) = module.forward(one, other, places[:, None].contiguous(), radius)
    channels_first, wanted = other.permute(0, 3, 1, 2), []
    for x, y in itertools.product(range(-radius, radius + 1), repeat=2):
        moved = places + torch.tensor([x, y], device="cuda")
        scaled = moved / torch.tensor([23.0, 15.0], device="cuda") * 2 - 1
        sampled = F.grid_sample(channels_first, scaled, align_corners=True, padding_mode="zeros")
        wanted.append((sampled.permute(0, 2, 3, 1) * one).sum(3))
    return within(1e-4, difference(found[:, 0], torch.stack(wanted, 1))), "correlation at moved places"


def warped(image: torch.Tensor, flow: torch.Tensor) -> torch.Tensor:
    """The image at the places that the flow names, borders repeated."""
    height, width = image.shape[2:]
    grid = torch.stack(torch.meshgrid(torch.arange(width), torch.arange(height), indexing="xy"), 2).cuda()
    places = (grid[None] + flow.permute(0, 2, 3, 1)) / torch.tensor([width - 1.0, height - 1.0], device="cuda") * 2 - 1
    return F.grid_sample(image, places, align_corners=True, padding_mode="border")


@check
def resample2d(built: Built) -> Tuple[float, str]:
    image, flow = rand(2, 3, 20, 30), rand(2, 2, 20, 30, low=-2, high=2)
    found = torch.zeros_like(image)
    built.module("resample2d_cuda").forward(image, flow, found, 1, True)
    inner = (..., slice(3, -3), slice(3, -3))
    return within(1e-4, difference(found[inner], warped(image, flow)[inner])), "a warped image"


@check
def channelnorm(built: Built) -> Tuple[float, str]:
    image = rand(2, 5, 20, 30, low=-1)
    found = torch.zeros(2, 1, 20, 30, device="cuda")
    built.module("channelnorm_cuda").forward(image, found, 2)
    return within(1e-5, difference(found, image.norm(dim=1, keepdim=True))), "norms over channels"


@check
def interpolation(built: Built) -> Tuple[float, str]:
    (path,) = built.libraries.rglob("interpolation*_cuda.*so")
    module, channels = load(path), path.name.startswith("interpolationch")
    image, flow = rand(2, 3, 20, 30), rand(2, 2, 20, 30, low=-2, high=2)
    found = torch.zeros_like(image)
    name = "InterpolationChLayer_gpu_forward" if channels else "InterpolationLayer_gpu_forward"
    assert getattr(module, name)(image, flow, found) == 0
    inner = (..., slice(3, -3), slice(3, -3))
    return within(1e-4, difference(found[inner], warped(image, flow)[inner])), "a warped image"


@check
def separableconv(built: Built) -> Tuple[float, str]:
    image, down, across = rand(2, 3, 20, 30), rand(2, 5, 16, 26), rand(2, 5, 16, 26).flip(1).contiguous()
    found = torch.zeros(2, 3, 16, 26, device="cuda")
    assert built.module("separableconv_cuda").SeparableConvLayer_gpu_forward(image, down, across, found) == 0
    windows = image.unfold(2, 5, 1).unfold(3, 5, 1)
    wanted = torch.einsum("bchwij,bihw,bjhw->bchw", windows, down, across)
    return within(1e-5, difference(found, wanted)), "a filter for each pixel"


# Boxes.


def boxes(count: int) -> torch.Tensor:
    """Corners, the larger ones second."""
    corner, size = rand(count, 2, high=40), rand(count, 2, low=4, high=20).flip(0)
    return torch.cat([corner, corner + size], 1)


# What older projects call a box reaches one pixel further.
FURTHER = torch.tensor([0.0, 0.0, 1.0, 1.0])


def rois() -> torch.Tensor:
    """Regions with the number of their image before them."""
    return torch.cat([torch.arange(8, device="cuda")[:, None] % 2, boxes(8)], 1)


def kept(dets: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
    from torchvision.ops import nms

    return nms(dets + FURTHER.cuda(), scores, 0.5).sort().values.cpu()


@check
def maskrcnn(built: Built) -> Tuple[float, str]:
    from torchvision.ops import roi_align

    module, dets, scores = built.module("_C"), boxes(200), rand(200)
    assert torch.equal(module.nms(dets, scores, 0.5).sort().values.cpu(), kept(dets, scores)), "boxes that are kept"
    image, regions = rand(2, 8, 32, 32), rois()
    found = module.roi_align_forward(image, regions, 0.5, 7, 7, 2)
    return within(1e-4, difference(found, roi_align(image, regions, 7, 0.5, 2))), "boxes that are kept, aligned regions"


@check
def s2anet(built: Built) -> Tuple[float, str]:
    from torchvision.ops import roi_align

    dets, scores = boxes(200), rand(200)
    both = torch.cat([dets, scores[:, None]], 1)
    found = built.module("nms_cuda").nms(both, 0.5).sort().values.cpu()
    assert torch.equal(found, kept(dets, scores)), "boxes that are kept"
    image, regions = rand(2, 8, 32, 32), rois()
    aligned = torch.zeros(8, 8, 7, 7, device="cuda")
    built.module("roi_align_cuda").forward(image, regions, 7, 7, 0.5, 2, aligned)
    further = regions + F.pad(FURTHER, [1, 0]).cuda()
    error = within(1e-4, difference(aligned, roi_align(image, further, 7, 0.5, 2)))
    return error, f"boxes that are kept, aligned regions; {len(built.modules())} imported"


@check
def iou3d(built: Built) -> Tuple[float, str]:
    from torchvision.ops import box_iou

    flat = boxes(50)
    zeros = torch.zeros(50, 1, device="cuda")
    centre, size = (flat[:, :2] + flat[:, 2:]) / 2, flat[:, 2:] - flat[:, :2]
    solid = torch.cat([centre, zeros, size, zeros + 1, zeros], 1).contiguous()
    found = torch.zeros(50, 50, device="cuda")
    built.module("iou3d_nms_cuda").boxes_iou_bev_gpu(solid, solid, found)
    return within(1e-3, difference(found, box_iou(flat, flat))), "overlaps of boxes"


@check
def deform_conv(built: Built) -> Tuple[float, str]:
    from torchvision.ops import deform_conv2d

    image, weight = rand(2, 4, 12, 14), rand(6, 4, 3, 3, low=-1)
    offset = rand(2, 18, 12, 14, low=-1)
    found, buffers = image.new_empty(2, 6, 12, 14), [image.new_empty(0), image.new_empty(0)]
    built.module("deform_conv_cuda").deform_conv_forward_cuda(
        image, weight, offset, found, *buffers, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 2
    )
    return within(1e-4, difference(found, deform_conv2d(image, offset, weight, padding=1))), "a deformable convolution"


@check
def ms_deform_attn(built: Built) -> Tuple[float, str]:
    built.module("MultiScaleDeformableAttention")
    from functions.ms_deform_attn_func import MSDeformAttnFunction, ms_deform_attn_core_pytorch

    shapes = torch.tensor([(6, 4), (3, 2)]).cuda()
    start = torch.tensor([0, 24]).cuda()
    value, places = rand(1, 30, 2, 8).double(), rand(1, 2, 2, 2, 2, 2).double()
    weights = rand(1, 2, 2, 2, 2).double().requires_grad_()
    value.requires_grad_()
    found = MSDeformAttnFunction.apply(value, shapes, start, places, weights, 2)
    error = difference(found.detach(), ms_deform_attn_core_pytorch(value, shapes, places, weights).detach())
    assert torch.autograd.gradcheck(
        lambda *both: MSDeformAttnFunction.apply(both[0], shapes, start, places, both[1], 2), (value, weights)
    )
    return within(1e-8, error), "attention against the project's own reference, and gradients"


# Scans.


def scanned(u: torch.Tensor, delta: torch.Tensor, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
    """The selective scan, step by step: u and delta (B, D, L), a (D, N), b and c (B, N, L)."""
    state, found = torch.zeros(*u.shape[:2], a.shape[1], dtype=torch.double, device="cuda"), []
    for step in range(u.shape[2]):
        gate = delta[:, :, step, None].double()
        state = state * (gate * a).exp() + gate * b[:, None, :, step] * u[:, :, step, None]
        found.append((state * c[:, None, :, step]).sum(2))
    return torch.stack(found, 2)


def scan_inputs() -> List[torch.Tensor]:
    u, delta = rand(2, 16, 200, low=-1), rand(2, 16, 200, high=0.5).flip(2).contiguous()
    return [u, delta, -rand(16, 8, low=0.2, high=2), rand(2, 8, 200, low=-1), rand(2, 8, 200, low=-1).flip(1).contiguous()]


@check
def selective_scan(built: Built) -> Tuple[float, str]:
    inputs = scan_inputs()
    u, delta, a, b, c = inputs
    found = built.module("selective_scan_cuda").fwd(u, delta, a, b[:, None], c[:, None], None, None, None, False)[0]
    return within(1e-4, difference(found, scanned(*inputs))), "a selective scan"


@check
def selective_scan_oflex(built: Built) -> Tuple[float, str]:
    inputs = scan_inputs()
    u, delta, a, b, c = inputs
    module = built.module("selective_scan_cuda_oflex")
    found = module.fwd(u, delta, a, b[:, None], c[:, None], None, None, False, 1, True)[0]
    return within(1e-4, difference(found, scanned(*inputs))), "a selective scan"


@check
def causal_conv1d(built: Built) -> Tuple[float, str]:
    x, weight, bias = rand(2, 16, 64, low=-1), rand(16, 4, low=-1), rand(16)
    found = built.module("causal_conv1d_cuda").causal_conv1d_fwd(x, weight, bias, None, None, None, False)
    wanted = F.conv1d(x, weight[:, None], bias, padding=3, groups=16)[..., :64]
    return within(1e-5, difference(found, wanted)), "a causal convolution"


# Others.


@check
def ransac_voting(built: Built) -> Tuple[float, str]:
    direct, places = rand(100, 4, 2, low=0.2), rand(100, 2, high=50)
    pairs = torch.stack([torch.arange(50), torch.arange(50, 100)], 1)[:, None].expand(-1, 4, -1).int().contiguous().cuda()
    found = built.module("ransac_voting").generate_hypothesis(direct, places, pairs).double()
    for end in (0, 1):
        chosen = pairs[:, 0, end].long()
        away = found - places[chosen][:, None]
        along = direct[chosen].double()
        cross = away[..., 0] * along[..., 1] - away[..., 1] * along[..., 0]
        distance = cross.abs() / along.norm(dim=2)
        near = found.norm(dim=2) < 1e3
        within(0.1, distance[near].max().item())
    return distance[near].max().item(), "points lie on both lines"


@check
def gaussians(built: Built) -> Tuple[float, str]:
    points, view = rand(100, 3, low=-1), torch.eye(4).cuda()
    seen = built.module("_C").mark_visible(points, view, view)
    assert torch.equal(seen, points[:, 2] > 0.2), "points before the camera"
    return 0.0, "points before the camera"


@check
def inplace_abn(built: Built) -> Tuple[float, str]:
    module, x = built.module("_backend"), rand(4, 6, 10, 12, low=-1)
    mean, variance, count = module.statistics(x)
    wanted = x.var(dim=(0, 2, 3), unbiased=False)
    assert int(count.flatten()[0]) == 480
    return within(1e-5, difference(mean, x.mean(dim=(0, 2, 3))), difference(variance, wanted)), "means and variances"


def main() -> None:
    name, libraries, tree = sys.argv[1:]
    with torch.no_grad() if name not in ("chamfer", "ms_deform_attn") else torch.enable_grad():
        error, what = CHECKS[name](Built(Path(libraries).absolute(), Path(tree).absolute()))
    torch.cuda.synchronize()
    json.dump({"error": error, "what": what}, sys.stdout)
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
