// Opens a saved report (hta_widgets/report): the parts of an explorer as they were, without Python.

import type { ReadonlySignal } from "@preact/signals";
import { render } from "preact";
import { Button } from "../button";
import { FrozenHost } from "../host";
import type { View } from "../model";
import type { Mount } from "../mount";
import { adoptStyles } from "../shared";
import { followTheme } from "../theme";
import { visible } from "../visible";
import { answerEvents } from "./events";
import { arrangePanels } from "./panels";
import { FrozenPart } from "./part";
import { type ReportFacts, unpack } from "./payload";
import css from "./report.css";
import { FrozenSelection } from "./selection";

const PAYLOAD = "hta-payload";

/** What the bundle draws with. */
export interface Drawing {
  mount: Mount;
  views: Readonly<Record<string, View>>;
}

/** Draw the report that the page holds. */
export async function openReport(page: Document, { mount, views }: Drawing): Promise<void> {
  const main = page.querySelector("main") ?? page.body;
  try {
    const { root, about, parts } = await unpack(page.getElementById(PAYLOAD)?.textContent ?? "");
    const models = Object.fromEntries(
      Object.entries(parts).map(([ref, part]) => [ref, new FrozenPart(part.state, part.questions)]),
    );
    const explorer = models[root];
    if (!explorer) throw new Error(`no part ${root}`);
    const tables = Object.values(models).filter((model) => model.get("_view") === "events");
    tables.forEach(answerEvents);
    arrangePanels(explorer);
    const selection = new FrozenSelection(Object.values(models));
    const [banner, el] = [page.createElement("div"), page.createElement("div")];
    banner.className = "hta";
    const { signal } = new AbortController(); // a report ends with its page
    followTheme(banner, signal);
    main.replaceChildren(banner, el);
    adoptStyles(main, "report", css);
    render(
      <Banner
        facts={about}
        sorts={tables.length > 0}
        replays={Object.values(models).some((model) => model.savedAnswer("graph"))}
        moved={selection.moved}
        restore={() => selection.restore()}
      />,
      banner,
    );
    await mount({ model: explorer, el, signal, host: new FrozenHost(models, views) });
    // the critical path can be shown if it was saved
    main.dataset.path = String(Object.values(models).some((model) => model.savedAnswer("path")));
    main.dataset.ready = "true";
  } catch (error) {
    main.textContent = visible(
      `This report cannot be opened: ${error instanceof Error ? error.message : error}`,
    );
  }
}

interface BannerProps {
  facts: ReportFacts;
  /** whether there is a table of events, which can be sorted here */
  sorts: boolean;
  /** whether there are sliders that work here */
  replays: boolean;
  moved: ReadonlySignal<boolean>;
  restore(): void;
}

function Banner({ facts, sorts, replays, moved, restore }: BannerProps) {
  const hover = sorts ? "Hover, zoom and sort" : "Hover and zoom";
  const can = replays ? `${hover}; move the sliders of What if` : hover;
  return (
    <div class="hta-report">
      <p class="hta-muted">
        {`Frozen report of ${facts.made}, ${facts.version}. ${can}; ${replays ? "other figures" : "figures"} recompute in a notebook only.`}
      </p>
      {facts.notes.map((note) => (
        <p key={note} class="hta-notice">
          {note}
        </p>
      ))}
      <div role="status">
        {moved.value && (
          <p class="hta-notice" data-severity="warning">
            The selection lights up here, but the figures are still those of the saved selection.{" "}
            <Button onClick={restore}>Back to it</Button>
          </p>
        )}
      </div>
    </div>
  );
}
