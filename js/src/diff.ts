// The bundle of `DiffViewer` and `MemoryView`: a page without these does not carry it. Their panels and timelines are
// parts of the widgets' bundle.

import comparisons from "./comparisons.css";
import { mounting } from "./mount";
import { diff } from "./views/diff";
import { memory } from "./views/memory";

export const views = { diff, memory };

export const mount = mounting(views, comparisons, "comparisons");

export default { initialize: () => ({ mount }) };
