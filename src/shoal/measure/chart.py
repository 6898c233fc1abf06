"""Charts as SVG text: lines, axes and a legend. No library, no script, nothing loaded from anywhere."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal
from xml.sax.saxutils import escape

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["ChartAxis", "Curve", "chart"]

_WIDTH, _HEIGHT = 680, 400
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 190, 44, 52  # margins; the legend stands in the right one
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#444444", "#a6761d")
_TICKS = 6


@dataclass(frozen=True, kw_only=True)
class ChartAxis:
    """An axis: its title, its range (None: the range of the values), and how numbers are written."""

    label: str
    low: float | None = None
    high: float | None = None
    log: bool = False
    percent: bool = False

    def write(self, value: float) -> str:
        """Write a tick's number."""
        return f"{value * 100:.0f} %" if self.percent else f"{value:.6g}"


@dataclass(frozen=True, kw_only=True)
class Curve:
    """A line through points; `line` says how it is drawn, `colour` is one of eight, by turns unless given."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    line: Literal["solid", "dashed", "dotted"] = "solid"
    colour: int | None = None


def chart(title: str, curves: Sequence[Curve], x: ChartAxis, y: ChartAxis) -> str:
    """Draw curves and return the text of an SVG file. Points that an axis can't show (0 on a log axis) are left out.

    >>> one = Curve(name="one", x=[0, 1], y=[0, 1])
    >>> chart("A line", [one], ChartAxis(label="x"), ChartAxis(label="y")).startswith("<svg ")
    True
    """
    points = [list(_points(curve, x, y)) for curve in curves]
    across = _Scale(x, [a for each in points for a, _ in each], _LEFT, _WIDTH - _RIGHT)
    up = _Scale(y, [b for each in points for _, b in each], _HEIGHT - _BOTTOM, _TOP)
    size = f'viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" height="{_HEIGHT}"'
    look = 'font-family="system-ui, sans-serif" font-size="12" fill="#222222"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} {look}>',
        f"<title>{escape(title)}</title>",
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#ffffff"/>',
        _text(_LEFT, 24, title, size=14, weight="bold"),
        *_axes(across, up),
    ]
    for number, (curve, where) in enumerate(zip(curves, points, strict=True)):
        parts += _line(curve, number, [(across.at(a), up.at(b)) for a, b in where])
    return "\n".join([*parts, "</svg>", ""])


def _points(curve: Curve, x: ChartAxis, y: ChartAxis) -> Iterable[tuple[float, float]]:
    for a, b in zip(curve.x, curve.y, strict=True):
        seen = math.isfinite(a) and math.isfinite(b)
        if seen and not (x.log and a <= 0) and not (y.log and b <= 0):
            yield float(a), float(b)


class _Scale:
    """The positions of values between two edges of the drawing."""

    def __init__(self, axis: ChartAxis, values: Sequence[float], start: float, stop: float) -> None:
        self.axis, self.start, self.stop = axis, start, stop
        low = axis.low if axis.low is not None else min(values, default=1.0 if axis.log else 0.0)
        high = axis.high if axis.high is not None else max(values, default=1.0)
        if axis.log:
            low, high = 10 ** math.floor(math.log10(low)), 10 ** math.ceil(math.log10(high))
        if low == high:
            high = low * 10 if axis.log else low + 1
        self.low, self.high = low, high

    def at(self, value: float) -> float:
        """Return the position of a value; a value beyond an edge is put on the edge."""
        if self.axis.log:
            share = math.log10(value / self.low) / math.log10(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return round(self.start + min(1.0, max(0.0, share)) * (self.stop - self.start), 1)

    def ticks(self) -> list[float]:
        """Return round values between the edges."""
        if self.axis.log:
            first, last = round(math.log10(self.low)), round(math.log10(self.high))
            return [10.0**power for power in range(first, last + 1, max(1, (last - first) // _TICKS))]
        rough = (self.high - self.low) / _TICKS
        unit = 10 ** math.floor(math.log10(rough))
        step = next(unit * n for n in (1, 2, 5, 10) if unit * n >= rough * 0.999)
        first = math.ceil(self.low / step - 1e-9)
        return [n * step for n in range(first, math.floor(self.high / step + 1e-9) + 1)]


def _axes(across: _Scale, up: _Scale) -> Iterable[str]:
    right, bottom = _WIDTH - _RIGHT, _HEIGHT - _BOTTOM
    for value in across.ticks():
        x = across.at(value)
        yield f'<path d="M{x} {_TOP}V{bottom}" stroke="#e4e4e4"/>'
        yield _text(x, bottom + 18, across.axis.write(value), anchor="middle")
    for value in up.ticks():
        y = up.at(value)
        yield f'<path d="M{_LEFT} {y}H{right}" stroke="#e4e4e4"/>'
        yield _text(_LEFT - 8, y + 4, up.axis.write(value), anchor="end")
    yield f'<path d="M{_LEFT} {_TOP}V{bottom}H{right}" fill="none" stroke="#444444"/>'
    yield _text((_LEFT + right) / 2, _HEIGHT - 12, across.axis.label, anchor="middle")
    middle = (_TOP + bottom) / 2
    yield _text(16, middle, up.axis.label, anchor="middle", turn=f' transform="rotate(-90 16 {middle})"')


def _line(curve: Curve, number: int, where: Sequence[tuple[float, float]]) -> Iterable[str]:
    colour = _COLOURS[(number if curve.colour is None else curve.colour) % len(_COLOURS)]
    dash = {"solid": "", "dashed": ' stroke-dasharray="7 4"', "dotted": ' stroke-dasharray="2 3"'}[curve.line]
    stroke = f'fill="none" stroke="{colour}" stroke-width="2" stroke-linejoin="round"{dash}'
    if len(where) == 1:
        yield f'<circle cx="{where[0][0]}" cy="{where[0][1]}" r="3" fill="{colour}"/>'
    elif where:
        path = "L".join(f"{x} {y}" for x, y in where)
        yield f'<path d="M{path}" {stroke}/>'
    left, y = _WIDTH - _RIGHT + 16, _TOP + 10 + 20 * number
    yield f'<path d="M{left} {y}h24" {stroke}/>'
    yield _text(left + 32, y + 4, curve.name)


def _text(
    x: float, y: float, text: str, *, anchor: str = "start", size: int = 12, weight: str = "normal", turn: str = ""
) -> str:
    look = f'text-anchor="{anchor}" font-size="{size}" font-weight="{weight}"{turn}'
    return f'<text x="{x}" y="{y}" {look}>{escape(text)}</text>'
