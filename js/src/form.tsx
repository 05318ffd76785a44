// The options of an analysis: a choice, or a text, each with its default.

import type { Signal } from "@preact/signals";

export interface Field {
  name: string;
  label: string;
  choices: string[];
  default: string;
  hint: string;
}

export type Options = Record<string, unknown>;

export function Form({ fields, options }: { fields: readonly Field[]; options: Signal<Options> }) {
  const set = (field: Field, value: string) => {
    const others = Object.entries(options.value).filter(([name]) => name !== field.name);
    options.value = Object.fromEntries(value === field.default ? others : [...others, [field.name, value]]);
  };
  return (
    <div class="hta-form">
      {fields.map((field) => {
        const value = String(options.value[field.name] ?? field.default);
        return (
          // biome-ignore lint/a11y/noLabelWithoutControl: one of the two controls is inside
          <label key={field.name}>
            {field.label}{" "}
            {field.choices.length ? (
              <select value={value} onChange={(event) => set(field, event.currentTarget.value)}>
                {field.choices.map((choice) => (
                  <option key={choice} value={choice}>
                    {choice || field.hint}
                  </option>
                ))}
              </select>
            ) : (
              <input
                type="text"
                value={value}
                placeholder={field.hint}
                spellcheck={false}
                onChange={(event) => set(field, event.currentTarget.value.trim())}
              />
            )}
          </label>
        );
      })}
    </div>
  );
}
