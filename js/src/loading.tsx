// What a view shows while its traces load or when they cannot be loaded, and notices about them.

import type { Signal } from "@preact/signals";
import { Button } from "./button";
import { type Model, trait } from "./model";
import { Rpc } from "./rpc";
import type { Status } from "./state";

export interface Notice {
  severity: string;
  text: string;
}

export interface Loads {
  status: Signal<Status>;
  message: Signal<string>;
  progress: Signal<number | null>;
  notices: Signal<Notice[]>;
  rpc: Rpc;
}

/** The traits of hta_widgets/widgets/loading_part.py. */
export function loads(model: Model, signal: AbortSignal): Loads {
  return {
    status: trait<Status>(model, "status", signal),
    message: trait<string>(model, "message", signal),
    progress: trait<number | null>(model, "progress", signal),
    notices: trait<Notice[]>(model, "notices", signal),
    rpc: new Rpc(model, signal),
  };
}

/** Progress, and a way to stop it; or why there is nothing, and a way to try again. */
export function Loading({ status, message, progress, rpc }: Loads) {
  // The answer is not awaited: the traits show what happened.
  const request = (method: string) => rpc.call(method).catch(() => undefined);
  if (status.value === "error" || status.value === "empty") {
    const failed = status.value === "error";
    return (
      <div class="hta-notice" role="alert" data-severity={failed ? "error" : "info"}>
        <p>{message.value}</p>
        <Button onClick={() => request("load")}>{failed ? "Try again" : "Load"}</Button>
      </div>
    );
  }
  if (status.value !== "busy") return null;
  const known = progress.value;
  return (
    <div class="hta-loading">
      <div class="hta-bar">
        <span class="hta-grow" role="status">
          {message.value}
        </span>
        <Button onClick={() => request("cancel")}>Cancel</Button>
      </div>
      <div
        class="hta-progress"
        role="progressbar"
        aria-label="Loading"
        aria-valuemin={0}
        aria-valuemax={100}
        aria-valuenow={known === null ? undefined : Math.round(100 * known)}
        data-unknown={known === null ? "" : undefined}
      >
        <div style={known === null ? undefined : { width: `${100 * known}%` }} />
      </div>
    </div>
  );
}

export function Notices({ notices }: Pick<Loads, "notices">) {
  return (
    <>
      {notices.value.map(({ severity, text }) => (
        <p key={text} class="hta-notice" data-severity={severity}>
          {text}
        </p>
      ))}
    </>
  );
}
