// The chart of an answer: which one is told by Python (a chart of hta_widgets/analysis/charts.py, by type).

import type { Table } from "../columns";
import { Bars, type StackChart } from "./bars";
import { Flame, type FlameChart } from "./flame";
import { Heat, type HeatChart } from "./heat";
import { Histogram, type HistogramChart } from "./histogram";
import { Lines, type LinesChart } from "./lines";
import { type BarsChart, Rows } from "./rows";
import type { Selecting } from "./select";
import { Spread, type SpreadChart } from "./spread";

export type Chart =
  | StackChart
  | BarsChart
  | LinesChart
  | HeatChart
  | SpreadChart
  | HistogramChart
  | FlameChart
  | { type?: undefined };

export interface ChartProps<C> {
  chart: C;
  /** what the chart draws (hta_widgets/widgets/marks.py) */
  marks: Table;
  legend: readonly string[];
  /** the time that is shown, in ns */
  extent: readonly number[];
  width: number;
  selecting: Selecting;
}

export function Drawing({ chart, ...props }: ChartProps<Chart>) {
  if (props.marks.rows === 0) return null;
  switch (chart.type) {
    case "stack":
      return <Bars chart={chart} {...props} />;
    case "bars":
      return <Rows chart={chart} {...props} />;
    case "lines":
      return <Lines chart={chart} {...props} />;
    case "heat":
      return <Heat chart={chart} {...props} />;
    case "spread":
      return <Spread chart={chart} {...props} />;
    case "histogram":
      return <Histogram chart={chart} {...props} />;
    case "flame":
      return <Flame chart={chart} {...props} />;
    default:
      return null;
  }
}
