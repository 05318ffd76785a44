// What the launcher of an explorer lists: its panels, ranks, iterations and commands, and names of events.

import { requestStep } from "./history";
import { type Choice, type Choices, mentions } from "./launcher";
import { byRelevance, type Entry } from "./panelbar";
import type { Rpc } from "./rpc";
import { shortName } from "./timeline/labels";

export interface Places {
  panels(): readonly Entry[];
  relevant(): readonly string[];
  lacking(): Readonly<Record<string, string>>;
  ranks(): readonly number[];
  iterations(): readonly number[];
  commands: readonly Choice[];
  rpc: Rpc;
  open(kind: string): void;
  select(trait: "ranks" | "iterations" | "names" | "query", value: unknown): void;
}

/** Ranks and iterations are many: so many that fit the number are listed. */
const NUMBERS = 4;
/** What people type who look for a panel, where its name and title say it in other words. */
const KEYWORDS: Partial<Record<string, string>> = {
  overview: "findings slow why bottleneck summary advice recommendations",
  step_parts: "slow step iteration compare two steps difference why waterfall",
  step_times: "slow steps iterations outliers duration",
  gpu_utilization: "utilisation busy usage load nvidia-smi over time",
  temporal_breakdown: "gpu util utilization utilisation busy idle time breakdown",
  comm_comp_overlap: "hidden communication nccl",
  utilization: "gpu util utilization utilisation mfu flops tensor core efficiency",
  idle_breakdown: "gpu util utilization idle why waiting bubbles",
  idle_gaps: "bubbles longest",
  kernel_breakdown: "longest kernel slowest top kernels time",
  kernel_durations: "longest kernel slowest durations average",
  operators: "slow operators flops bytes longest op",
  stragglers: "slow rank late straggler",
  rank_waits: "slow rank late straggler waiting",
  launch_stats: "latency cuda overhead slow cpu",
  memory_timeline: "memory oom leak peak allocated",
  memory_peak: "memory oom peak allocated",
  module_stacks: "nn.Module layers treemap tree map",
  call_stacks: "flame graph python stack slow function",
  critical_path: "critical path longest bottleneck",
  events: "csv table export all events search",
  what_if: "simulate speedup faster saving",
};
const CANNOT = "Cannot answer here";

export function choicesOf(places: Places): Choices {
  const panels = (text: string): Choice[] => {
    const entries = byRelevance(places.panels(), places.relevant());
    const lacking = places.lacking();
    const choice = ({ kind, label, title, group }: Entry): Choice => ({
      group: kind in lacking ? CANNOT : group,
      label,
      detail: lacking[kind] ?? title,
      run: () => places.open(kind),
    });
    // "Job" leads to the panel of that name before those that only speak of jobs, "gpu util" to the one that begins so
    const named = ({ label }: Entry) =>
      Number(!!text && label.toLowerCase().startsWith(text.toLowerCase())) / label.length;
    return entries
      .filter(({ kind, label, title, group }) => mentions(text, label, title, group, KEYWORDS[kind]))
      .sort((one, other) => named(other) - named(one))
      .map(choice)
      .sort((one, other) => Number(one.group === CANNOT) - Number(other.group === CANNOT));
  };

  const numbers = (text: string, name: "ranks" | "iterations", values: readonly number[]): Choice[] => {
    const [, word = "", number] = /^([a-z]*)\s*(\d+)$/i.exec(text) ?? [];
    if (number === undefined || !name.startsWith(word.toLowerCase())) return [];
    return values
      .filter((value) => String(value).startsWith(number))
      .slice(0, NUMBERS)
      .map((value) => ({
        group: name === "ranks" ? "Ranks" : "Iterations",
        label: `${name === "ranks" ? "Rank" : "Iteration"} ${value}`,
        run: () => places.select(name, [value]),
      }));
  };

  return {
    now: (text) => [
      ...numbers(text, "ranks", places.ranks()),
      ...numbers(text, "iterations", places.iterations()),
      ...panels(text),
      ...places.commands.filter(({ label, detail, keywords }) => mentions(text, label, detail, keywords)),
      ...(text ? [search(text, places)] : []),
    ],
    later: async (text) => {
      if (text.length < 2) return [];
      const { result } = await places.rpc.call<string[]>("find_names", { text });
      return result.map((name) => ({
        group: "Event names",
        label: shortName(name),
        detail: name,
        run: () => places.select("names", [name]),
      }));
    },
  };
}

function search(text: string, places: Places): Choice {
  return {
    group: "Event names",
    label: `Search events for “${text}”`,
    run: () => places.select("query", text),
  };
}

/** What can be done from anywhere, beside what the explorer adds. */
export function historyCommands(rpc: Rpc): Choice[] {
  return [
    { group: "Commands", label: "Undo", detail: "the last selection", run: () => requestStep(rpc, "undo") },
    { group: "Commands", label: "Redo", detail: "the last selection", run: () => requestStep(rpc, "redo") },
  ];
}
