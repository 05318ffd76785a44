// The bundle that stands in the page of a saved explorer (hta_widgets/report/page.py).

import { mounting } from "../mount";
import { explorersViews } from "../views/explorers";
import { openReport } from "./open";

void openReport(document, { mount: mounting(explorersViews), views: explorersViews });
