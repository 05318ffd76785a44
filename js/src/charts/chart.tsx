// The chart of an answer: Python says which one (a chart of hta_widgets/charts/spec.py, by type).

import type { FunctionComponent } from "preact";
import type { Table } from "../columns";
import { Bars, type StackChart } from "./bars";
import { Flame, type FlameChart } from "./flame";
import { Heat, type HeatChart } from "./heat";
import { Histogram, type HistogramChart } from "./histogram";
import { Lines, type LinesChart } from "./lines";
import { type RooflineChart, RooflineView } from "./roofline";
import { type BarsChart, Rows } from "./rows";
import type { Selecting } from "./select";
import { Spread, type SpreadChart } from "./spread";
import { Treemap, type TreemapChart } from "./treemap";
import { Trend, type TrendChart } from "./trend";
import type { WaterfallChart } from "./waterfall";

export type Chart =
  | StackChart
  | BarsChart
  | LinesChart
  | HeatChart
  | TrendChart
  | SpreadChart
  | HistogramChart
  | FlameChart
  | TreemapChart
  | RooflineChart
  | WaterfallChart
  | { type?: undefined };

export interface ChartProps<C> {
  chart: C;
  /** what the chart draws (hta_widgets/charts/marks.py) */
  marks: Table;
  legend: readonly string[];
  /** the time that is shown, in ns */
  extent: readonly number[];
  width: number;
  selecting: Selecting;
}

// biome-ignore lint/suspicious/noExplicitAny: each takes the chart of its own type
type AnyChart = FunctionComponent<ChartProps<any>>;

/** The charts by type; a view that not every bundle has adds its own (views/diff.tsx). */
export const CHARTS: Partial<Record<string, AnyChart>> = {
  stack: Bars,
  bars: Rows,
  lines: Lines,
  heat: Heat,
  trend: Trend,
  spread: Spread,
  histogram: Histogram,
  flame: Flame,
  treemap: Treemap,
  roofline: RooflineView,
};

export function Drawing(props: ChartProps<Chart>) {
  const Chart = CHARTS[props.chart.type ?? ""];
  return Chart && (props.marks.rows > 0 || props.legend.length > 0) ? <Chart {...props} /> : null;
}
