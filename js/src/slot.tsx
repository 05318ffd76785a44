// A place for another widget: the host finds it by reference and draws it here until the view is taken down.

import { useEffect, useRef } from "preact/hooks";
import type { Host } from "./model";
import { visible } from "./visible";

export interface SlotProps {
  area: string;
  ref_: string;
  host: Host;
  signal: AbortSignal;
}

export function Slot({ area, ref_, host, signal }: SlotProps) {
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const controller = new AbortController();
    const stop = () => controller.abort();
    signal.addEventListener("abort", stop, { once: true });
    host
      .getWidget(ref_, { signal: controller.signal })
      .then(async (widget) => {
        if (place.current && !controller.signal.aborted) {
          await widget.render({ el: place.current, signal: controller.signal });
        }
      })
      .catch((error: unknown) => {
        if (place.current && !controller.signal.aborted)
          place.current.textContent = visible(`This part failed: ${error}`);
      });
    return () => {
      signal.removeEventListener("abort", stop);
      controller.abort();
    };
  }, [ref_, host, signal]);
  return <div ref={place} class="hta-slot" data-area={area} />;
}
