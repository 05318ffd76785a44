"""Which layer each kernel of a step is in, and what it does there, by what comes before and after it.

A step repeats one sequence of kernels for each layer: norm, product of queries, keys and values, the write to
the cache, attention, the product after it, norm, the products (or experts) of the feed-forward part. Kinds of
kernels are known from names; which product is which follows from its place around attention. Latent attention
(MLA) has norms between several products before attention, and after it one more, of the values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from hta_widgets.analysis.serving.parts import LIGHT, PRODUCT, UNKNOWN, contradicts, role_of_part
from hta_widgets.arrays import Int64

# Kernels of unknown kind may take so much of the time that is attributed, and no more.
_MOST_UNKNOWN: Final = 0.01
_HEAVY: Final = ("qkv", "attention", "o_proj", "gate_up", "down", "experts", "lora", "communication")
# What no model has but in its layers.
_IN_LAYERS: Final = ("rope", "cache", "attention", "experts", "activation")
_FEWEST_LAYERS: Final = 2
# What may take longer outside of layers than anything does in them.
_MAY_BE_OUTSIDE: Final = ("lm_head", "sampling", "communication")
# Kernels that only move what products compute are alike: slow ones may take so many times as long as fast
# ones, unless both take less than this share of the slowest products.
_MOST_APART: Final = 3.0
_SMALL: Final = 0.25
# Queries, keys and values are copied and normed, two of them turned: more before attention is no such work.
_MOST_OF_HEADS: Final = 3
_MOST_ROPES: Final = 2
_HALF: Final = 0.5
# Layers of a model may be of several kinds (sliding and full attention, dense and with experts).
_MOST_KINDS: Final = 4


@dataclass(frozen=True)
class Placed:
    """The kernels of a step: role ("": unknown) and layer (-1: outside) of each; or why that is refused."""

    roles: tuple[str, ...] = ()
    layers: tuple[int, ...] = ()
    refused: str = ""


def placed(parts: Sequence[str], time_ns: Sequence[int], operators: Sequence[str] = ()) -> Placed:
    """Role and layer of each kernel of a step, in the order in which they run.

    It is refused unless as many writes to the cache as calls of attention come, each before its own; each
    layer has a norm and a product before attention, and a product after it; layers repeat; what only layers
    have is in them; and no name contradicts the operator that launched its kernel.

    Args:
        parts: what the name of each kernel, or its operator, tells (`parts`).
        time_ns: how long each takes.
        operators: what launched each, "" where that is not recorded.
    """
    if any(contradicts(*each) for each in zip(parts, operators, strict=False)):
        return Placed(refused="names of kernels contradict the operators that launched them")
    groups = _attention(parts)
    writes = _runs(parts, "cache")
    if len(groups) < _FEWEST_LAYERS:
        return Placed(refused=f"{len(groups)} calls of attention are known by name")
    if len(writes) != len(groups):
        return Placed(refused=f"{len(groups)} calls of attention, but {len(writes)} writes to the cache")
    before = 0
    for write, (first, last) in zip(writes, groups, strict=True):
        if not before <= write[0] <= write[1] <= first:
            return Placed(refused="writes to the cache do not come before attention, one by one")
        before = last
    bounds = _bounds(parts, groups)
    if isinstance(bounds, str):
        return Placed(refused=bounds)
    roles, layers = list(parts), [-1] * len(parts)
    kinds = set()
    for layer, (begin, end) in enumerate(bounds):
        found = _of_layer(parts[begin:end], groups[layer][0] - begin, groups[layer][1] - begin)
        if isinstance(found, str):
            return Placed(refused=f"layer {layer}: {found}")
        roles[begin:end] = found
        layers[begin:end] = [layer] * (end - begin)
        kinds.add(tuple(role for role in found if role not in (*LIGHT, UNKNOWN)))
    if len(kinds) > _MOST_KINDS:
        return Placed(refused=f"{len(bounds)} layers of {len(kinds)} kinds do not repeat")
    if _unlike([parts[begin:first] for (begin, _), (first, _) in zip(bounds, groups, strict=True)]):
        return Placed(refused="layers differ in norms or products before attention")
    if astray := next(
        (roles[at] for at, layer in enumerate(layers) if layer < 0 and roles[at] in _IN_LAYERS), ""
    ):
        return Placed(refused=f"kernels that look like {astray} lie outside of layers")
    if any(layer >= 0 and role == "sampling" for role, layer in zip(roles, layers, strict=True)):
        return Placed(refused="kernels that look like sampling lie in layers")
    _after(parts, roles, bounds[-1][1])
    _before(parts, roles, bounds[0][0])
    times = np.asarray(time_ns, np.int64)
    if slow := _slow(roles, np.asarray(layers), times):
        return Placed(refused=f"kernels that look like {slow} take as long as products do")
    if why := _outside(roles, np.asarray(layers), times):
        return Placed(refused=why)
    if why := _too_slow(roles, bounds, groups, times):
        return Placed(refused=why)
    is_unknown = np.array([part == UNKNOWN for part in parts], np.bool_)
    if times[is_unknown].sum() > _MOST_UNKNOWN * times.sum():
        share = 100.0 * times[is_unknown].sum() / times.sum()
        return Placed(refused=f"{share:.3g} % of the time is in kernels of unknown kinds")
    return Placed(tuple(map(role_of_part, roles)), tuple(layers))


def _unlike(leads: Sequence[Sequence[str]]) -> bool:
    """Whether layers differ in norms or products before attention, of which each kind has as many.

    Args:
        leads: of each layer what comes before its attention.
    """
    found = {(_is_latent(lead, _products(lead)), lead.count(PRODUCT), lead.count("norm")) for lead in leads}
    return len(found) > len({latent for latent, *_ in found})


def _too_slow(
    roles: Sequence[str], bounds: list[tuple[int, int]], groups: list[tuple[int, int]], times: Int64
) -> str:
    """Why kernels that only move, or act on, what products compute would take too long for that, else "".

    In most layers, copies before attention take no longer than the products there and than attention, which
    read more; nor does the activation take longer than the products that lead to it.
    """
    role = np.asarray(roles)
    found = []
    for (begin, end), (first, last) in zip(bounds, groups, strict=True):
        time, own = times[begin:end], role[begin:end]
        light = time[np.isin(own, LIGHT) & (np.arange(begin, end) < first)].max(initial=0)
        products, gate_up = (int(time[own == name].sum()) for name in ("qkv", "gate_up"))
        act = time[own == "activation"].max(initial=0) if gate_up else 0
        found.append((light > products, light > times[first:last].sum(), act > gate_up))
    share = np.mean(found, axis=0)
    for at, why in enumerate(("the products there", "it")):
        if share[at] > _HALF:
            return f"kernels before attention that only seem to move numbers take longer than {why}"
    return "activations take longer than the products before them" if share[2] > _HALF else ""


def _slow(roles: Sequence[str], layers: Int64, times: Int64) -> str:
    """The role of kernels that only move what products compute, but take longer than these; else "".

    Or of which some take many times as long as others do: they are something else.
    """
    of_role = {
        role: times[[at for at, each in enumerate(roles) if each == role and layers[at] >= 0]]
        for role in sorted({role for role, layer in zip(roles, layers, strict=True) if layer >= 0})
    }
    heaviest = max((float(np.median(of_role[role])) for role in _HEAVY if role in of_role), default=0.0)
    for role, own in of_role.items():
        fast, usual, slow = np.quantile(own, (0.25, 0.5, 0.9)).tolist()
        apart = slow > _MOST_APART * fast and slow > _SMALL * heaviest
        if role not in _HEAVY and (usual > heaviest or apart):
            return role
    return ""


def _outside(roles: Sequence[str], layers: Int64, times: Int64) -> str:
    """Why what lies outside of layers cannot be what it looks like, "" where it can."""
    small = (layers < 0) & [role not in _MAY_BE_OUTSIDE for role in roles]
    if times[small].max(initial=0) > times[layers >= 0].max(initial=0):
        return "outside of layers a kernel that looks like no product takes longer than all in them"
    head = times[[role == "lm_head" for role in roles]]
    o_proj = times[[role == "o_proj" for role in roles]]
    if len(head) and head.sum() < np.median(o_proj):
        return "the product after the last layer is shorter than those in layers"
    return ""


def _runs(parts: Sequence[str], part: str) -> list[tuple[int, int]]:
    """Where kernels of a part follow each other, as ranges."""
    found: list[tuple[int, int]] = []
    for at, each in enumerate(parts):
        if each != part:
            continue
        if found and found[-1][1] == at:
            found[-1] = (found[-1][0], at + 1)
        else:
            found.append((at, at + 1))
    return found


def _attention(parts: Sequence[str]) -> list[tuple[int, int]]:
    """Calls of attention: its kernels, with copies and the like between them, but no product."""
    found: list[tuple[int, int]] = []
    for first, last in _runs(parts, "attention"):
        between = parts[found[-1][1] : first] if found else ()
        if found and not {PRODUCT, "norm", "cache", "experts", "rope"} & set(between):
            found[-1] = (found[-1][0], last)
        else:
            found.append((first, last))
    return found


def _bounds(parts: Sequence[str], groups: list[tuple[int, int]]) -> list[tuple[int, int]] | str:
    """Where each layer begins and ends: with the norm before the products that lead to attention."""
    begins = []
    until = 0
    for first, last in groups:
        product = _last(parts, PRODUCT, until, first)
        if product < 0:
            return "no product before attention"
        if (earlier := _after_feed_forward(parts, until, first)) > until:
            product = next(at for at in range(earlier, first) if parts[at] == PRODUCT)
        norm = _last(parts, "norm", until, product)
        if norm < 0:
            return "no norm before the product that leads to attention"
        begins.append(norm)
        until = last
    # before the first layer nothing tells where it begins but that it is like the next one
    begins[0] = _like(parts, begins[0], groups[0][0], parts[begins[1] : groups[1][0]])
    tail = groups[-1][1]
    # The last layer ends before the final norm: the last one that a single product, or none, comes after.
    norms = [at for at in range(tail, len(parts)) if parts[at] == "norm"]
    closing = [at for at in norms if sum(part in (PRODUCT, "experts") for part in parts[at:]) <= 1]
    if not closing:
        return "no norm after the last layer"
    return [*zip(begins, [*begins[1:], closing[0]], strict=True)]


def _after_feed_forward(parts: Sequence[str], first: int, last: int) -> int:
    """Where the feed-forward part before attention is over; `first` where nothing tells."""
    inside = range(last - 1, first - 1, -1)
    end = next((at for at in inside if parts[at] in ("activation", "experts")), -1)
    if end >= 0 and parts[end] == "activation":  # one product more
        end = next((at for at in range(end, last) if parts[at] == PRODUCT), -1)
    after = [parts[at] for at in range(end + 1, last)]
    # a norm has to come before a product that leads to attention
    return (
        end + 1 if end >= 0 and "norm" in after[: after.index(PRODUCT) if PRODUCT in after else 0] else first
    )


def _like(parts: Sequence[str], begin: int, first: int, another: Sequence[str]) -> int:
    """Where the first layer begins, if as many products lead to its attention as in another layer."""
    products = [at for at in range(first) if parts[at] == PRODUCT]
    missing = another.count(PRODUCT) - sum(at >= begin for at in products)
    before = [at for at in products if at < begin]
    if not 0 < missing <= len(before):
        return begin
    norm = _last(parts, "norm", 0, before[-missing])
    return norm if norm >= 0 else begin


def _last(parts: Sequence[str], part: str, first: int, last: int) -> int:
    return next((at for at in range(last - 1, first - 1, -1) if parts[at] == part), -1)


def _of_layer(parts: Sequence[str], first: int, last: int) -> list[str] | str:
    """The roles in a layer whose attention is [first, last)."""
    roles = list(parts)
    products = _products(parts)
    leading = [at for at in products if at < first]
    if why := _before_attention(parts, leading, first):
        return why
    for at in leading:
        roles[at] = "qkv"
    later = [at for at in products if at >= last]
    if not later:
        return "no product after attention"
    norm = next((at for at in range(later[0], len(parts)) if parts[at] == "norm"), -1)
    if norm < 0:
        return "no norm after the product that follows attention"
    if {"norm", "activation"} & set(parts[first : later[0]]):
        return "a norm or an activation lies between attention and the product after it"
    for at in range(first, later[0]):  # a step of attention may look like it
        roles[at] = UNKNOWN if roles[at] in LIGHT else roles[at]
    until_norm = [at for at in later if at < norm]
    if len(until_norm) != 1 + _is_latent(parts, leading):
        return f"{len(until_norm)} products between attention and the norm after it"
    for at in until_norm[:-1]:  # what latents are of values
        roles[at] = "qkv"
    roles[until_norm[-1]] = "o_proj"
    rest = [at for at in later if at > norm]
    experts = [at for at, part in enumerate(parts) if part == "experts"]
    if experts:
        return _with_experts(parts, roles, rest, experts)
    return _feed_forward(parts, roles, rest, norm)


def _products(parts: Sequence[str]) -> list[int]:
    return [at for at, part in enumerate(parts) if part == PRODUCT]


def _is_latent(parts: Sequence[str], leading: Sequence[int]) -> bool:
    return "norm" in parts[leading[0] : leading[-1]]


def _before_attention(parts: Sequence[str], leading: list[int], first: int) -> str:
    """Why a layer until its attention cannot be what it looks like, "" where it can.

    Args:
        leading: the products in it. first: where attention begins.
    """
    if "cache" not in parts[:first]:
        return "the write to the cache is not between the norm and attention"
    cache, ropes = parts.index("cache"), [at for at in range(len(parts)) if parts[at] == "rope"]
    if any(not leading[0] < at < cache for at in ropes):
        return "rope is not between the product before attention and the write to the cache"
    if leading[0] > cache or "activation" in parts[:first]:
        return "the kernels before attention are in another order"
    if "gather" in parts[:first]:
        return "a gather lies before attention"
    return "" if _is_latent(parts, leading) else _heads(parts[leading[0] : first], len(leading), len(ropes))


def _heads(parts: Sequence[str], products: int, ropes: int) -> str:
    """Why what comes from the first product to attention, neither of latents, is no work on heads; else "".

    Queries, keys and values may be copied, each be normed, and then turned by rope. Where nothing turns them
    (or the write to the cache does), other kernels there would only look like copies or norms.
    """
    if PRODUCT in parts[products:]:
        return "the products before attention do not follow each other"
    norms = [at for at, part in enumerate(parts) if part == "norm"]
    if max(_longest_run(parts), len(norms)) > _MOST_OF_HEADS or ropes > _MOST_ROPES:
        return "too many kernels between the products before attention and it"
    if not ropes:
        others = norms or set(LIGHT) & set(parts) or parts.count("cache") > 1
        return "no rope before attention, but other kernels where it would be" if others else ""
    rope = parts.index("rope")
    if norms and (norms[-1] > rope or set(LIGHT) & set(parts[norms[-1] : rope])):
        return "rope does not follow the norms of heads"
    if set(parts[rope : rope + ropes]) != {"rope"}:
        return "the ropes of a layer do not follow each other"
    return "copies come after rope" if set(LIGHT) & set(parts[rope:]) else ""


def _longest_run(parts: Sequence[str]) -> int:
    """How many kernels in a row only move numbers."""
    longest = run = 0
    for part in parts:
        run = run + 1 if part in LIGHT else 0
        longest = max(longest, run)
    return longest


def _feed_forward(parts: Sequence[str], roles: list[str], products: list[int], norm: int) -> list[str] | str:
    """A layer without experts: products after its norm, and the activation between them."""
    if products and "norm" in parts[products[0] : products[-1]]:
        return "a norm lies between the products of the feed-forward part"
    activation = next((at for at in range(norm, len(parts)) if parts[at] == "activation"), -1)
    if activation < 0 and len(products) == 2 and products[1] - products[0] == 2:
        between = products[0] + 1  # nothing else comes there, whatever it is called
        if parts[between] in (*LIGHT, UNKNOWN):
            activation = between
            roles[activation] = "activation"
    if len(products) == 3 and activation < 0:
        return "three products after the norm, and no activation"
    before = [at for at in products if activation < 0 or at < activation]
    if activation < 0:  # fused into one of two products
        before, after = products[:1], products[1:]
    else:
        after = [at for at in products if at > activation]
    if not 1 <= len(before) <= 2 or len(after) != 1:
        return f"{len(before)} products before and {len(after)} after the activation"
    for at in before:
        roles[at] = "gate_up"
    roles[after[0]] = "down"
    return roles


def _with_experts(
    parts: Sequence[str], roles: list[str], products: list[int], experts: list[int]
) -> list[str] | str:
    """A layer with experts: the product before them is the router, others are those of shared experts."""
    before = [at for at in products if at < experts[0]]
    if not before:
        return "no router before the experts"
    if "norm" in parts[before[0] : experts[-1]]:
        return "a norm lies between the router and the experts"
    for at in range(before[0], experts[-1]):
        if parts[at] in ("sampling", *LIGHT):  # the router's choice is sorted, what it chooses is moved
            roles[at] = "experts"
    for at in range(max(experts[-1], products[-1]) + 1, len(parts)):  # as what they compute may be
        roles[at] = UNKNOWN if roles[at] in LIGHT else roles[at]
    if len(products) == 1:
        roles[before[0]] = "router"
        return roles
    shared = {"gate_up": -1, "down": -1}
    heavy = sorted((*products, *experts))
    for at in (at for at, part in enumerate(parts) if part == "activation" and at >= products[0]):
        gate_up = max((each for each in heavy if each < at), default=-1)
        down = min((each for each in heavy if each > at), default=-1)
        if gate_up in products and down in products:  # that of experts lies between these
            shared = {"gate_up": gate_up, "down": down}
    routers = [at for at in products if at not in shared.values()]
    if len(routers) != 1 or -1 in shared.values():
        return f"{len(products)} products beside the experts"
    roles[routers[0]] = "router"
    for role, at in shared.items():
        roles[at] = role
    return roles


def _after(parts: Sequence[str], roles: list[str], end: int) -> None:
    """After the last layer: the product is the head's; what follows picks tokens."""
    head = next((at for at in range(end, len(parts)) if parts[at] == PRODUCT), -1)
    if head >= 0:
        roles[head] = "lm_head"
        for at in range(head + 1, len(parts)):
            if parts[at] in ("elementwise", "gather", UNKNOWN):
                roles[at] = "sampling"


def _before(parts: Sequence[str], roles: list[str], begin: int) -> None:
    """Before the first layer: inputs, and the embedding."""
    for at in range(begin):
        if parts[at] in ("elementwise", "gather", UNKNOWN):
            roles[at] = "embedding"
