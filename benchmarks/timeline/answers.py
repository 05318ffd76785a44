"""How long the kernel's answers take to reach the page, and how large the messages are that bring them.

Both ends are read off the page's connection to JupyterLab: the time from the question that is sent to the
message with its answer, whatever lies between.
"""

from __future__ import annotations

from dataclasses import dataclass

from playwright.sync_api import Page

# Headers of a message are text, whatever form it has, and short beside the slices that follow them.
WATCH = """() => {
  const seen = window.answers = { asked: new Map(), ms: [], largest: 0 };
  const text = (data) => typeof data === 'string' ? data.slice(0, 4096)
    : new TextDecoder('latin1').decode(new Uint8Array(data.buffer ?? data, data.byteOffset ?? 0,
                                                      Math.min(data.byteLength, 4096)));
  const call = (data) => /"call": ?"([^"]+)"/.exec(text(data))?.[1];
  const send = WebSocket.prototype.send;
  WebSocket.prototype.send = function (data) {
    const asked = /"method": ?"window"/.test(text(data)) && call(data);
    if (asked) seen.asked.set(asked, performance.now());
    return send.call(this, data);
  };
  const Native = WebSocket;
  window.WebSocket = class extends Native {
    constructor(...given) {
      super(...given);
      this.addEventListener('message', ({ data }) => {
        seen.largest = Math.max(seen.largest, data.byteLength ?? data.length);
        const answered = call(data), begun = seen.asked.get(answered);
        if (begun === undefined) return;
        seen.asked.delete(answered);
        seen.ms.push(performance.now() - begun);
      });
    }
  };
}"""


@dataclass(frozen=True)
class Answers:
    """How many windows were answered, in how many ms (median, 95 %), and the largest message of all in MB.

    No windows are asked for, and their ms are NaN, where the browser holds all slices.
    """

    count: int
    median_ms: float
    late_ms: float
    largest_mb: float


def watch(page: Page) -> None:
    """Count from the next page that is opened on."""
    page.add_init_script(f"({WATCH})()")


def answers(page: Page) -> Answers:
    """What was counted."""
    ms, largest = page.evaluate("() => [window.answers.ms, window.answers.largest]")
    ms.sort()
    at = [ms[int(share * (len(ms) - 1))] if ms else float("nan") for share in (0.5, 0.95)]
    return Answers(len(ms), at[0], at[1], largest / 1e6)
