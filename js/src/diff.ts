// The bundle of `DiffViewer`: a page without that viewer does not carry it. Its panels and timelines are parts of the
// widgets' bundle.

import comparisons from "./comparisons.css";
import { mounting } from "./mount";
import { diff } from "./views/diff";
import { runStory } from "./views/run_story";

export const views = { diff, run_story: runStory };

export const mount = mounting(views, comparisons, "comparisons");

export default { initialize: () => ({ mount }) };
