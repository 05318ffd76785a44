// The bundle of `WhatIf`: a page without that widget does not carry it.

import { mounting } from "./mount";
import { whatIf } from "./views/what_if";
import css from "./what_if/what_if.css";

export const views = { what_if: whatIf };

export const mount = mounting(views, css, "what_if");

export default { initialize: () => ({ mount }) };
