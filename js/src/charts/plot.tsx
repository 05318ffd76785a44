// The drawing area of a chart: scrolls where it is too large, and is one group to a screen reader.

import type { ComponentChildren } from "preact";

export interface PlotProps {
  label: string;
  width: number;
  height: number;
  onKeyDown?: (event: KeyboardEvent) => void;
  children: ComponentChildren;
}

export function Plot({ label, width, height, onKeyDown, children }: PlotProps) {
  return (
    <div class="hta-chart">
      {/* biome-ignore lint/a11y/useSemanticElements: an svg holds no fieldset */}
      <svg
        class="hta-bars"
        width={width}
        height={height}
        role="group"
        aria-label={label}
        {...(onKeyDown && { onKeyDown })}
      >
        {children}
      </svg>
    </div>
  );
}
