// Two steps beside each other: a sentence, and bars of which each begins where the one above it ends.

import { duration, exact, signed } from "./format";

/** hta_widgets/widgets/step_content.py describes it. */
export interface StepDifference {
  title: string;
  sentence: string;
  first: string;
  second: string;
  first_ns: number;
  second_ns: number;
  parts: [label: string, timeClass: string, pattern: string, change: number][];
  names: [name: string, short: string, timeClass: string, change: number][];
}

interface Row {
  label: string;
  from: number;
  to: number;
  value: string;
  title: string;
  whole: boolean;
  timeClass: string;
  pattern: string;
}

/** So much of the picture lies left of what changes. */
const LEAD = 0.15;
/** Smaller parts of the greatest change share a row. */
const SMALL = 1 / 50;

export function Difference({ found }: { found: StepDifference }) {
  const rows = rowsOf(found);
  const inner = rows.filter((row) => !row.whole).flatMap(({ from, to }) => [from, to]);
  const edges = [found.first_ns, found.second_ns, ...inner];
  const [least, most] = [Math.min(...edges), Math.max(...edges)];
  const low = Math.max(0, least - LEAD * (most - least || least || 1));
  const share = (ns: number) => (100 * (ns - low)) / (most - low || 1);
  return (
    <div class="hta-difference">
      <p>{found.sentence}</p>
      <table class="hta-fall">
        <caption class="hta-hidden">{`${found.title}: ${found.sentence}`}</caption>
        <tbody>
          {rows.map(({ label, from, to, value, title, whole, timeClass, pattern }) => (
            <tr key={label} data-whole={whole || undefined} title={title}>
              <th scope="row">{label}</th>
              <td class="hta-fall-track" aria-hidden="true">
                <i
                  data-pattern={pattern || undefined}
                  style={{
                    left: `${share(whole ? low : Math.min(from, to))}%`,
                    width: `${Math.max(0.5, share(Math.max(from, to)) - share(whole ? low : Math.min(from, to)))}%`,
                    background: `var(--hta-${timeClass})`,
                  }}
                />
              </td>
              <td>{value}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <p class="hta-muted hta-small">
        {low > 0 && `Bars start at ${duration(low)}, not at zero. `}The parts add up to the difference.
      </p>
      {found.names.length > 0 && (
        <>
          <h4>Largest changes of device time by name, hidden or not</h4>
          <dl class="hta-fall-names">
            {found.names.map(([name, short, timeClass, change]) => (
              <div key={`${name}${timeClass}`} title={`${name}\n${exact(change, "ns")}`}>
                <dt class="hta-cut">
                  <i class="hta-swatch" style={{ background: `var(--hta-${timeClass}, var(--hta-idle))` }} />
                  {short}
                </dt>
                <dd>{signed(change, duration(change))}</dd>
              </div>
            ))}
          </dl>
        </>
      )}
    </div>
  );
}

function rowsOf(found: StepDifference): Row[] {
  const whole = (label: string, ns: number): Row => ({
    label: label[0]?.toUpperCase() + label.slice(1),
    from: 0,
    to: ns,
    value: duration(ns),
    title: exact(ns, "ns"),
    whole: true,
    timeClass: "text",
    pattern: "",
  });
  let at = found.first_ns;
  const parts = folded(found.parts).map(([label, timeClass, pattern, change]): Row => {
    const from = at;
    at += change;
    const value = signed(change, duration(change));
    return { label, from, to: at, value, title: exact(change, "ns"), whole: false, timeClass, pattern };
  });
  return [whole(found.first, found.first_ns), ...parts, whole(found.second, found.second_ns)];
}

/** The parts, with those that are too small for a bar as one. */
function folded(parts: StepDifference["parts"]): StepDifference["parts"] {
  const least = SMALL * Math.max(...parts.map(([, , , change]) => Math.abs(change)));
  const small = parts.filter(([, , , change]) => Math.abs(change) < least);
  if (small.length < 2) return parts;
  const sum = small.reduce((total, [, , , change]) => total + change, 0);
  return [...parts.filter((part) => !small.includes(part)), [`${small.length} others`, "idle", "", sum]];
}
