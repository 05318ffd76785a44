// The bundle that stands in the page of a saved explorer that shows What if, or of What if alone
// (hta_widgets/report/page.py).

import { mounting } from "../mount";
import { explorersViews } from "../views/explorers";
import { whatIf } from "../views/what_if";
import css from "../what_if/what_if.css";
import { openReport } from "./open";

const views = { ...explorersViews, what_if: whatIf };

void openReport(document, { mount: mounting(views, css), views });
