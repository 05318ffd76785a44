// The widgets' bundle: `Runtime` (hta_widgets/widgets/runtime.py) carries it, every part mounts its view from here.

import "./charts/compared";
import comparisons from "./comparisons.css";
import type { View } from "./model";
import { mounting } from "./mount";
import { explorersViews } from "./views/explorers";

export const views: Readonly<Record<string, View>> = explorersViews;

export const mount = mounting(views, comparisons, "comparisons");

export default { initialize: () => ({ mount }) };
