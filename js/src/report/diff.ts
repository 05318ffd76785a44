// The bundle that stands in the page of saved runs side by side, or of a memory snapshot (hta_widgets/report/page.py).

import "../charts/compared";
import comparisons from "../comparisons.css";
import { mounting } from "../mount";
import { breakdown } from "../views/breakdown";
import { diff } from "../views/diff";
import { memory } from "../views/memory";
import { runStory } from "../views/run_story";
import { timeline } from "../views/timeline";
import { openReport } from "./open";

const views = { diff, memory, run_story: runStory, breakdown, timeline };

void openReport(document, { mount: mounting(views, comparisons), views });
