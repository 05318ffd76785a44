// Call stacks as boxes: callers above what they call, as wide as their time.

import type { ChartProps } from "./chart";
import { type Node, type Tree, TreeBoxes, type TreeChart } from "./tree";

const ROW = 18;
const DEEPEST = 24;
const NARROWEST = 1; // px

export interface FlameChart extends TreeChart {
  type: "flame";
}

export function Flame(props: ChartProps<FlameChart>) {
  const place = (tree: Tree, root: number, weight: number) => layout(tree, root, weight, props.width);
  return <TreeBoxes label="Call stacks" everything="Whole program" {...{ ...props, place }} />;
}

/** Boxes of what lies below `root`, itself included, that are at least a pixel wide. */
function layout(tree: Tree, root: number, weight: number, width: number): Node[] {
  const sizes = tree.sizes(weight);
  const whole = tree.sum(root, weight) || 1;
  const boxes: Node[] = [];
  const place = (rows: readonly number[], from: number, depth: number) => {
    let x = from;
    for (const row of rows) {
      const size = (width * (sizes[row] ?? 0)) / whole;
      if (size >= NARROWEST) {
        boxes.push({ row, x, y: depth * ROW, width: size, height: ROW });
        if (depth < DEEPEST) place(tree.children(row), x, depth + 1);
      }
      x += size;
    }
  };
  place(tree.tops(root), 0, 0);
  return boxes;
}
