"""Nodes of the backward pass, by the name that autograd gives them."""

from __future__ import annotations

from typing import Final

NODE: Final = "autograd::engine::evaluate_function: "
"""What the names of nodes begin with; the name of the function follows."""


def is_node(name: str) -> bool:
    """Whether an operator of this name is a node of the backward pass."""
    return name.startswith(NODE)
