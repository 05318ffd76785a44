// What Python tells of a scope (hta_widgets/analysis/findings/story.py), and the forms in which a saving is known.

export type Form =
  | "simulated"
  | "bound"
  | "unknown"
  | "hidden"
  | "memory"
  | "rest"
  /** between runs: what differs beyond noise, and what may be noise */
  | "differs"
  | "doubtful";

export interface Part {
  ns: number;
  form: Form;
  /** what it was before the savings, where that is known */
  from_ns?: number;
  /** the class of the time; "all": it is not told apart */
  lost_as: "compute" | "communication" | "memory" | "idle" | "host" | "all";
  /** -1 for the rest */
  finding: number;
}

export interface Place {
  rank: number;
  start_ns: number;
  end_ns: number;
  label: string;
  cause: [number, number] | null;
}

export interface Advice {
  topic: string;
  noun: string;
  title: string;
  form: Form;
  figure: string;
  label: string;
  what: string[];
  why: string[];
  todo: string;
  sure: string;
  wrong_if: string;
  risk: string;
  needs: string;
  own: string;
  kind: string;
  edits: string;
  lost_as: Part["lost_as"];
  places: Place[];
  ranks: number[];
}

export interface Story {
  scope: string;
  narrowed: boolean;
  headline: string;
  limits: string;
  /** what is withheld, and why; "" where nothing is */
  trust: string;
  whole_ns: number;
  per_step: boolean;
  parts: Part[];
  saved: string;
  remains: string;
  advice: Advice[];
  clean: string[];
  unknown: { name: string; remedy: string }[];
  asides: string[];
  kinds: string[];
  /** where nothing is found: why, and the panel to open */
  nothing: string;
  /** what to try with the work itself */
  hint: string;
  look_at: string;
}

export const CLASS: Record<Part["lost_as"], string> = {
  compute: "compute",
  communication: "communication",
  memory: "copies",
  idle: "idle",
  host: "CPU",
  all: "the rest",
};

/** A smaller share of the bar has no label. */
export const LEAST = 0.005;

export const isSaving = ({ form }: { form: Form }) => form === "simulated" || form === "bound";

/** The mark of a form: its shape tells, not its hue. */
export const glyph = (form: Form, of: Part["lost_as"]) => ({
  class: "hta-glyph hta-part",
  "data-form": form,
  "data-class": of,
  "aria-hidden": true as const,
});
