// The bundle of `JobView`: a page without that view does not carry it.

import css from "./job/job.css";
import { mounting } from "./mount";
import { job } from "./views/job";

export const views = { job };

export const mount = mounting(views, css, "job");

export default { initialize: () => ({ mount }) };
