// What the shades of a picture mean: from the least to the most.

import type { Scale as Unit } from "../charts/unit";
import { type Shading, tint } from "./ranks";

const STEPS = 6;

export function Scale({ hue, shades, unit }: { hue: string; shades: Shading; unit: Unit }) {
  const stops = Array.from({ length: STEPS }, (_, step) => {
    const value = shades.least + ((shades.most - shades.least) * step) / (STEPS - 1);
    return tint(hue, shades.of(value));
  });
  return (
    <span class="hta-job-scale">
      <span>{shades.least ? unit.text(shades.least) : "0"}</span>
      <i style={{ background: `linear-gradient(to right, ${stops.join(", ")})` }} />
      {shades.most > shades.least && <span>{unit.text(shades.most)}</span>}
    </span>
  );
}

export interface Choice {
  name: string;
  label: string;
  title: string;
  disabled?: boolean;
}

/** Buttons of which one is on. */
export function Choices({
  label,
  choices,
  chosen,
  choose,
}: {
  label: string;
  choices: readonly Choice[];
  chosen: string;
  choose(name: string): void;
}) {
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset is for forms
    <span class="hta-job-choices" role="group" aria-label={label}>
      {choices.map(({ name, label: text, title, disabled }) => (
        <button
          key={name}
          type="button"
          aria-pressed={chosen === name}
          title={title}
          disabled={disabled}
          onClick={() => choose(name)}
        >
          {text}
        </button>
      ))}
    </span>
  );
}
