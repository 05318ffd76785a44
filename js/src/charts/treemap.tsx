// A tree as rectangles within rectangles: the larger the area, the more time.

import type { ChartProps } from "./chart";
import type { Box } from "./place";
import { LINE, type Node, type Tree, TreeBoxes, type TreeChart } from "./tree";

const HEAD = LINE + 2; // above what a box holds
const EDGE = 2; // around it
const TALLEST = 400; // px: a chart that is taller scrolls
const LEAST = { width: 24, height: 8 }; // px: what has less room inside is drawn as one

export interface TreemapChart extends TreeChart {
  type: "treemap";
}

type Sized = Omit<Node, keyof Box> & { value: number };

export function Treemap(props: ChartProps<TreemapChart>) {
  const { width } = props;
  const area = { x: 0, y: 0, width, height: Math.round(Math.min(TALLEST, Math.max(240, width / 2.5))) };
  const place = (tree: Tree, root: number, weight: number) => layout(tree, root, weight, area);
  return <TreeBoxes label="Modules" everything="Whole model" {...{ ...props, place }} />;
}

/** Boxes of what lies below `root`, itself included, holders before what they hold. */
function layout(tree: Tree, root: number, weight: number, area: Box): Node[] {
  const sizes = tree.sizes(weight);
  const nodes: Node[] = [];
  const nodesOf = (rows: readonly number[]): Sized[] =>
    rows.map((row) => ({ row, value: sizes[row] ?? 0 })).filter(({ value }) => value > 0);
  const fill = (parts: Sized[], box: Box) => {
    parts.sort((a, b) => b.value - a.value);
    const boxes = squarified(
      parts.map(({ value }) => value),
      box,
    );
    for (const [at, part] of parts.entries()) {
      const node: Node = { ...part, ...(boxes[at] ?? box) };
      nodes.push(node);
      const within = part.itself ? [] : nodesOf(tree.children(part.row));
      const room = {
        x: node.x + EDGE,
        y: node.y + HEAD,
        width: node.width - 2 * EDGE - 1,
        height: node.height - HEAD - EDGE - 1,
      };
      if (!within.length || room.width < LEAST.width || room.height < LEAST.height) continue;
      node.holds = true;
      const left = within.reduce((rest, { value }) => rest - value, part.value);
      if (left > 0) within.push({ row: part.row, value: left, itself: true });
      fill(within, room);
    }
  };
  fill(nodesOf(tree.tops(root)), area);
  return nodes;
}

/**
 * Rectangles of sizes, the largest first, that fill a box and are about square.
 *
 * Bruls, Huizing, van Wijk: "Squarified treemaps" (2000): a row along the shorter side takes the next one as long as
 * its worst ratio of sides does not get worse.
 */
export function squarified(sizes: readonly number[], box: Box): Box[] {
  const scale = (box.width * box.height) / (sizes.reduce((sum, size) => sum + size, 0) || 1);
  const boxes: Box[] = [];
  let { x, y, width, height } = box;
  for (let from = 0; from < sizes.length; ) {
    const side = Math.min(width, height);
    let [to, sum, worst] = [from, 0, Number.POSITIVE_INFINITY];
    for (; to < sizes.length; to++) {
      const area = (sizes[to] ?? 0) * scale;
      const [most, least, all] = [(sizes[from] ?? 0) * scale, area, sum + area];
      const ratio = Math.max((side * side * most) / (all * all), (all * all) / (side * side * least));
      if (ratio > worst) break;
      [sum, worst] = [all, ratio];
    }
    const thick = side > 0 ? sum / side : 0;
    let along = 0;
    for (; from < to; from++) {
      const long = thick > 0 ? ((sizes[from] ?? 0) * scale) / thick : 0;
      boxes.push(
        width >= height
          ? { x, y: y + along, width: thick, height: long }
          : { x: x + along, y, width: long, height: thick },
      );
      along += long;
    }
    if (width >= height) [x, width] = [x + thick, width - thick];
    else [y, height] = [y + thick, height - thick];
  }
  return boxes;
}
