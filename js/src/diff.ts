// The bundle of `DiffViewer` and `MemoryView`: a page without these does not carry it. Their panels and timelines are
// parts of the widgets' bundle.

import comparisons from "./comparisons.css";
import { mounting } from "./mount";
import { diff } from "./views/diff";
import { memory } from "./views/memory";
import { runStory } from "./views/run_story";

export const views = { diff, memory, run_story: runStory };

export const mount = mounting(views, comparisons, "comparisons");

export default { initialize: () => ({ mount }) };
