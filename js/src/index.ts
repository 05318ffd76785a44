// The widgets' bundle: `Runtime` (hta_widgets/widgets/runtime.py) carries it, every part mounts its view from here.

import comparisons from "./comparisons.css";
import type { View } from "./model";
import { mounting } from "./mount";
import { diff } from "./views/diff";
import { explorersViews } from "./views/explorers";

export const views: Readonly<Record<string, View>> = { ...explorersViews, diff };

export const mount = mounting(views, comparisons);

export default { initialize: () => ({ mount }) };
