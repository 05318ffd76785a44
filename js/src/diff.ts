// The bundle of `DiffViewer`: a page without that viewer does not carry it. Its panels and timelines are parts of the
// widgets' bundle.

import comparisons from "./comparisons.css";
import { mounting } from "./mount";
import { diff } from "./views/diff";

export const views = { diff };

export const mount = mounting(views, comparisons, "comparisons");

export default { initialize: () => ({ mount }) };
