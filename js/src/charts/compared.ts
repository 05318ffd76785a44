// The chart that only comparisons have.

import { CHARTS } from "./chart";
import { Waterfall } from "./waterfall";

CHARTS.waterfall = Waterfall;
