"""The palette is readable: against its background, and pair by pair for colour-blind readers."""

import re
from itertools import combinations

import numpy as np
import pytest

from hta_widgets.palette import BACKGROUND, DARK, LIGHT, colour
from tests.support import ROOT

# Machado, Oliveira & Fernandes 2009, severity 1.0, on linear RGB.
VISION = {
    "trichromat": np.eye(3),
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "tritanopia": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
}
XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)
LEAST_DIFFERENCE = 10.0  # CIE76; 2.3 is just noticeable side by side


def linear(colour: str) -> np.ndarray:
    channels = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)


def contrast(a: str, b: str) -> float:
    """WCAG 2 contrast ratio."""
    dim, bright = sorted(float(XYZ[1] @ linear(item)) for item in (a, b))
    return (bright + 0.05) / (dim + 0.05)


def lab(rgb: np.ndarray) -> np.ndarray:
    x, y, z = XYZ @ np.clip(rgb, 0, 1) / np.array([0.95047, 1.0, 1.08883])
    fx, fy, fz = (np.cbrt(t) if t > 0.008856 else 7.787 * t + 16 / 116 for t in (x, y, z))
    return np.array([116 * fy - 16, 500 * (fx - fy), 200 * (fy - fz)])


@pytest.mark.parametrize(("theme", "palette"), [("light", LIGHT), ("dark", DARK)])
def test_every_fill_stands_out_from_its_background(theme, palette):
    for name, fill in palette.items():
        assert contrast(fill, BACKGROUND[theme]) >= 3.0, name


@pytest.mark.parametrize("vision", VISION)
@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
def test_every_pair_of_fills_can_be_distinguished(palette, vision):
    for a, b in combinations(palette, 2):
        seen = [lab(VISION[vision] @ linear(palette[name])) for name in (a, b)]
        difference = np.linalg.norm(seen[0] - seen[1])
        assert difference >= LEAST_DIFFERENCE, f"{a} and {b} under {vision}: {difference:.1f}"


def test_both_themes_name_the_same_classes():
    assert list(LIGHT) == list(DARK)
    assert colour("compute") == LIGHT["compute"]
    assert colour("compute", "dark") == DARK["compute"]


@pytest.mark.parametrize(("rule", "palette"), [(".hta", LIGHT), ('.hta[data-theme="dark"]', DARK)])
def test_the_front_end_has_the_same_colours(rule, palette):
    css = (ROOT / "js" / "src" / "theme.css").read_text()
    block = re.search(rf"^{re.escape(rule)} {{(.*?)^}}", css, re.MULTILINE | re.DOTALL)
    assert block is not None
    drawn = dict(re.findall(r"--hta-(\w+): (#\w{6});", block[1]))
    assert {name: drawn[name].upper() for name in palette} == palette
