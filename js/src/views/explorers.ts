// The views that an explorer is made of, by the name that a part's `_view` trait has for them.

import type { View } from "../model";
import { breadcrumb } from "./breadcrumb";
import { breakdown } from "./breakdown";
import { events } from "./events";
import { explorer } from "./explorer";
import { inspector } from "./inspector";
import { iterations } from "./iterations";
import { ranks } from "./ranks";
import { story } from "./story";
import { timeline } from "./timeline";

export const explorersViews: Readonly<Record<string, View>> = {
  ranks,
  iterations,
  timeline,
  breakdown,
  breadcrumb,
  events,
  inspector,
  explorer,
  story,
};
