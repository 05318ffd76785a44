// The bundle that stands in the page of a saved explorer that shows the job (hta_widgets/report/page.py): all views
// that an explorer can show.

import css from "../job/job.css";
import { mounting } from "../mount";
import { explorersViews } from "../views/explorers";
import { job } from "../views/job";
import { whatIf } from "../views/what_if";
import whatIfCss from "../what_if/what_if.css";
import { openReport } from "./open";

const views = { ...explorersViews, what_if: whatIf, job };

void openReport(document, { mount: mounting(views, whatIfCss + css), views });
