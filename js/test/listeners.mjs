// A view's signal has as many listeners as the view has to let go of: no leak, which Node.js suspects from 11 on.

import { setMaxListeners } from "node:events";

setMaxListeners(0);
